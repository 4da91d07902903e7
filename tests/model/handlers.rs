//! Handlers that do what the schedule says: each run reports that it began, and waits at its gate.

use std::time::Duration;

use outbox::{Context, HandlerError, HandlerResult, State, Tx, outbox_handler};
use outbox_tests::harness::Harness;
use serde::{Deserialize, Serialize};
use sqlx::{MySql, Postgres, Sqlite};
use tokio::sync::{mpsc, oneshot};

use crate::schedule::Ending;

/// An event: its place in the schedule.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Job(pub usize);

#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hasty(pub usize);

/// For handlers with a transaction: one for each database, since its type names it.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SqliteTransfer(pub usize);

#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PgTransfer(pub usize);

#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MyTransfer(pub usize);

#[outbox_handler("model.job")]
async fn job(Job(event): Job, ctx: Context, State(gates): State<Gates>) -> HandlerResult {
    gates.pass(event, &ctx).await
}

#[outbox_handler("model.hasty", timeout = "1ms")]
async fn hasty(Hasty(event): Hasty, ctx: Context, State(gates): State<Gates>) -> HandlerResult {
    gates.begin(event, &ctx, Gate::Sealed(Ending::TimeOut));
    std::future::pending().await
}

/// While it runs nobody else can write, so it cannot wait: its first attempt fails, after it has written.
#[outbox_handler("model.transfer.sqlite")]
async fn transfer_sqlite(
    SqliteTransfer(event): SqliteTransfer,
    ctx: Context,
    mut tx: Tx<Sqlite>,
    State(gates): State<Gates>,
) -> HandlerResult {
    let ending = if ctx.attempts() == 0 { Ending::Fail } else { Ending::Succeed };
    Sqlite::sql_in(&mut tx, applied(event)).await;
    gates.begin(event, &ctx, Gate::Sealed(ending));
    result(ending)
}

#[outbox_handler("model.transfer.postgres")]
async fn transfer_postgres(
    PgTransfer(event): PgTransfer,
    ctx: Context,
    mut tx: Tx<Postgres>,
    State(gates): State<Gates>,
) -> HandlerResult {
    Postgres::sql_in(&mut tx, applied(event)).await;
    gates.pass(event, &ctx).await
}

#[outbox_handler("model.transfer.mysql")]
async fn transfer_mysql(
    MyTransfer(event): MyTransfer,
    ctx: Context,
    mut tx: Tx<MySql>,
    State(gates): State<Gates>,
) -> HandlerResult {
    MySql::sql_in(&mut tx, applied(event)).await;
    gates.pass(event, &ctx).await
}

fn applied(event: usize) -> String {
    format!("INSERT INTO model_applied (event) VALUES ({event})")
}

fn result(ending: Ending) -> HandlerResult {
    let ms = |ms: i64| Duration::from_millis(ms.unsigned_abs());
    match ending {
        Ending::Succeed => Ok(()),
        Ending::Fail | Ending::TimeOut => Err("failed".into()),
        Ending::RetryAfter => Err(HandlerError::retry_after(ms(Ending::RETRY_AFTER_MS), "later").into()),
        Ending::Permanent => Err(HandlerError::permanent("never").into()),
        Ending::Snooze => Err(HandlerError::snooze(ms(Ending::SNOOZE_MS)).into()),
        Ending::Discard => Err(HandlerError::discard("a note").into()),
    }
}

/// A run that has begun.
#[derive(Debug)]
pub struct Begun {
    pub event: usize,
    pub attempts: u32,
    pub crashes: u32,
    pub gate: Gate,
}

/// What a run waits for.
#[derive(Debug)]
pub enum Gate {
    Waits(oneshot::Sender<Ending>),
    /// It does not wait, and ends so.
    Sealed(Ending),
}

/// Where the handlers of one call report.
#[derive(Clone)]
pub struct Gates(mpsc::UnboundedSender<Begun>);

impl Gates {
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Begun>) {
        let (sender, begun) = mpsc::unbounded_channel();
        (Self(sender), begun)
    }

    fn begin(&self, event: usize, ctx: &Context, gate: Gate) {
        let begun = Begun { event, attempts: ctx.attempts(), crashes: ctx.crashes(), gate };
        // Nobody listens once the schedule has failed.
        drop(self.0.send(begun));
    }

    async fn pass(&self, event: usize, ctx: &Context) -> HandlerResult {
        let (gate, opened) = oneshot::channel();
        self.begin(event, ctx, Gate::Waits(gate));
        result(opened.await?)
    }
}
