//! The payment provider: a real HTTP server that behaves as such servers do, and the client that calls it.

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use outbox::{HandlerError, HandlerResult};
use tokio::net::TcpListener;

use crate::billing::{Order, REFUSED_CUSTOMER};

/// The same seed, the same failures.
const SEED: u64 = 7;

/// Calls the provider; the state that the handler asks for.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: reqwest::Url,
}

impl Client {
    /// Charges the order, once for each key.
    pub(crate) async fn charge(&self, order: &Order, idempotency_key: &str) -> HandlerResult {
        let request = self.http.post(self.url.clone()).header("idempotency-key", idempotency_key).json(order);
        let response = request.send().await?;
        if response.status() == StatusCode::PAYMENT_REQUIRED {
            // No retry makes this card a good one: a dead letter at once.
            return Err(HandlerError::permanent(format!("the card of {} is refused", order.customer)).into());
        }
        response.error_for_status()?; // any other error is tried again
        Ok(())
    }
}

/// The provider's side.
pub(crate) struct Provider {
    address: SocketAddr,
    book: Arc<Mutex<Book>>,
}

/// What the provider wrote down.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    /// One charge for each key.
    pub(crate) charges: HashMap<String, Order>,
    /// How often each order came.
    calls: HashMap<i64, u64>,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) repeated: u64,
}

impl Provider {
    /// Serves on a free port until the process ends.
    pub(crate) async fn start() -> Result<Self, Box<dyn Error>> {
        let book = Arc::default();
        let router = Router::new().route("/charges", post(charge)).with_state(Arc::clone(&book));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, book })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/charges", self.address)
    }

    pub(crate) fn client(&self) -> Result<Client, Box<dyn Error>> {
        Ok(Client { http: reqwest::Client::new(), url: self.url().parse()? })
    }

    pub(crate) fn book(&self) -> Book {
        lock(&self.book).clone()
    }
}

impl Book {
    pub(crate) fn calls(&self) -> u64 {
        self.calls.values().sum()
    }
}

async fn charge(
    State(book): State<Arc<Mutex<Book>>>,
    headers: HeaderMap,
    Json(order): Json<Order>,
) -> StatusCode {
    let Some(key) = headers.get("idempotency-key").and_then(|key| key.to_str().ok()) else {
        return StatusCode::BAD_REQUEST;
    };
    let mut book = lock(&book);
    let calls = book.calls.entry(order.id).or_default();
    *calls += 1;
    // Decided by the order and not by the moment, so that every run sees the same failures.
    let mood = fastrand::Rng::with_seed(SEED ^ (order.id.unsigned_abs() << 32) ^ *calls).u8(0..100);

    if order.customer == REFUSED_CUSTOMER {
        book.refused += 1;
        return StatusCode::PAYMENT_REQUIRED;
    }
    if mood < 25 {
        book.failed += 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    if book.charges.contains_key(key) {
        book.repeated += 1;
        return StatusCode::OK;
    }
    book.charges.insert(key.to_owned(), order);
    if mood < 40 {
        // The worst kind: charged, but the caller is told that it failed.
        book.failed += 1;
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    StatusCode::CREATED
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}
