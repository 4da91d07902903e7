//! The service itself: what you would write. All of its SQL is in this file.

use std::error::Error;
use std::time::Duration;

use outbox::{Backoff, Context, HandlerResult, Outbox, State, outbox_handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::database::Db;
use crate::provider::Client;

/// An order, and the event that it was placed.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Order {
    pub(crate) id: i64,
    pub(crate) customer: String,
    pub(crate) cents: i64,
}

/// The card of this customer is refused, whatever is tried.
pub(crate) const REFUSED_CUSTOMER: &str = "mallory";

/// Nobody may owe more than this.
const CREDIT_LIMIT_CENTS: i64 = 50_000;

/// Charges an order. Runs after the commit, again after an error, and more than once after a crash; the key is the
/// same each time, so that the provider charges once.
#[outbox_handler(
    "billing.order_placed",
    max_attempts = 12,
    timeout = "5s",
    concurrency = 8,
    backoff = Backoff::exponential(Duration::from_millis(50), Duration::from_secs(1)).jitter(50)
)]
async fn charge(order: Order, ctx: Context, State(provider): State<Client>) -> HandlerResult {
    provider.charge(&order, &ctx.idempotency_key()).await
}

/// Stores the order and its event: both, or, if it would go over the customer's limit, neither.
pub(crate) async fn place_order(outbox: &Outbox<Db>, order: &Order) -> Result<bool, Box<dyn Error>> {
    let mut tx = outbox.begin().await?;
    sqlx::query("INSERT INTO orders (id, customer, cents) VALUES ($1, $2, $3)")
        .bind(order.id)
        .bind(&order.customer)
        .bind(order.cents)
        .execute(&mut *tx)
        .await?;
    outbox.enqueue::<Order>(&mut tx, order).await?;

    let owed: i64 = sqlx::query_scalar("SELECT CAST(SUM(cents) AS BIGINT) FROM orders WHERE customer = $1")
        .bind(&order.customer)
        .fetch_one(&mut *tx)
        .await?;
    if owed > CREDIT_LIMIT_CENTS {
        tx.rollback().await?;
        return Ok(false);
    }
    outbox.commit(tx).await?; // a plain `tx.commit()` does as well; this one wakes the worker
    Ok(true)
}

pub(crate) async fn make_tables(outbox: &Outbox<Db>) -> Result<(), Box<dyn Error>> {
    outbox.migrate().await?;
    sqlx::query("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer TEXT NOT NULL, cents BIGINT NOT NULL)")
        .execute(outbox.pool())
        .await?;
    Ok(())
}

/// What a faulty program in another language might enqueue: an order that is none.
pub(crate) async fn insert_poison(outbox: &Outbox<Db>) -> Result<(), sqlx::Error> {
    sqlx::query(
        r#"INSERT INTO outbox_event (id, event_type, payload)
           VALUES ('0a0b0c0d-0000-4000-8000-000000000001', 'billing.order_placed', '{"order": "three apples, please"}')"#,
    )
    .execute(outbox.pool())
    .await?;
    Ok(())
}

/// The stored orders, and the events of each status with the attempts that failed.
pub(crate) async fn totals(outbox: &Outbox<Db>) -> Result<(i64, Vec<(String, i64, i64)>), sqlx::Error> {
    let orders = sqlx::query_scalar("SELECT COUNT(*) FROM orders").fetch_one(outbox.pool()).await?;
    let events = sqlx::query_as(
        "SELECT status, COUNT(*), CAST(SUM(attempts) AS BIGINT) FROM outbox_event GROUP BY status ORDER BY status",
    )
    .fetch_all(outbox.pool())
    .await?;
    Ok((orders, events))
}

impl Order {
    /// Sixty orders of six customers, some of whom want more than they may owe.
    pub(crate) fn samples() -> impl Iterator<Item = Self> {
        let mut random = fastrand::Rng::with_seed(1);
        let customers = ["ann", "bob", "carol", "dave", "erin", "frank"];
        let sample = move |id| Self {
            id,
            customer: (*random.choice(&customers).unwrap_or(&"ann")).to_owned(),
            cents: random.i64(100..9_000),
        };
        let refused = Self { id: 1, customer: REFUSED_CUSTOMER.to_owned(), cents: 4_200 };
        std::iter::once(refused).chain((2..=60).map(sample))
    }
}
