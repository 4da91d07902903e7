//! The sink: an HTTP server that writes down what arrives before it answers.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use tokio::net::TcpListener;

struct Sink {
    log: File,
    delay: Duration,
    fail_every: Option<u64>,
    requests: AtomicU64,
}

/// The part of a message that the log wants.
#[derive(Deserialize)]
struct Message {
    delivery: String,
    attempt: u32,
    summary: String,
}

pub(crate) async fn serve(
    listen: SocketAddr,
    log: &Path,
    delay: Duration,
    fail_every: Option<u64>,
) -> Result<(), Box<dyn Error>> {
    let log = OpenOptions::new().create(true).append(true).open(log)?;
    let sink = Arc::new(Sink { log, delay, fail_every, requests: AtomicU64::new(0) });
    let listener = TcpListener::bind(listen).await?;
    println!("http://{}/", listener.local_addr()?);
    axum::serve(listener, Router::new().route("/", post(receive)).with_state(sink)).await?;
    Ok(())
}

async fn receive(State(sink): State<Arc<Sink>>, Json(message): Json<Message>) -> StatusCode {
    let request = sink.requests.fetch_add(1, Ordering::Relaxed) + 1;
    if sink.fail_every.is_some_and(|n| request.is_multiple_of(n)) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    if let Err(error) = sink.write_down(&message) {
        eprintln!("cannot write the log: {error}");
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    // Arrived, but not answered yet: what is killed now arrives again.
    tokio::time::sleep(sink.delay).await;
    StatusCode::NO_CONTENT
}

impl Sink {
    /// One line, in one write, on disk before the answer: the log is the proof.
    fn write_down(&self, message: &Message) -> io::Result<()> {
        let summary: String = message.summary.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let line = format!("{} attempt {} | {summary}\n", message.delivery, message.attempt);
        (&self.log).write_all(line.as_bytes())?;
        self.log.sync_data()
    }
}
