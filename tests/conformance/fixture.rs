//! What every case starts from: a fresh database, a clock to move, a handler that does what the case says.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use outbox::{
    Backend, Backoff, BatchOptions, Clock, Context, Counts, Event, EventId, EventRecord, HandlerResult,
    Outbox, Receipt, Registry, State, Tx, outbox_handler,
};
use outbox_tests::harness::Fresh;
pub use outbox_tests::harness::{Harness, eventually, say_skipped};
use serde::{Deserialize, Serialize};
use sqlx::{MySql, Pool, Postgres, Sqlite};

/// The payload of most cases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Job {
    pub n: i64,
}

/// Any JSON value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Anything(pub serde_json::Value);

/// A second type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Other {
    pub n: i64,
}

/// A type whose handler has a short timeout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hasty {
    pub n: i64,
}

/// A type that nobody here handles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema, Event)]
#[event("test.foreign")]
pub struct Foreign {
    pub n: i64,
}

#[outbox_handler("test.job", version = 2)]
async fn job(job: Job, ctx: Context, State(script): State<Script>) -> HandlerResult {
    script.run(job.n, ctx).await
}

#[outbox_handler("test.anything", backoff = Backoff::fixed(Duration::ZERO))]
async fn anything(value: Anything, State(seen): State<Seen>) {
    seen.0.lock().unwrap().push(value.0);
}

#[outbox_handler("test.other", max_attempts = 3, concurrency = 2, on_dead_letter = "block")]
async fn other(other: Other, ctx: Context, State(script): State<Script>) -> HandlerResult {
    script.run(other.n, ctx).await
}

#[outbox_handler("test.hasty", timeout = "50ms")]
async fn hasty(hasty: Hasty, ctx: Context, State(script): State<Script>) -> HandlerResult {
    script.run(hasty.n, ctx).await
}

/// For handlers that take a transaction: one for each database, since its type names it.
#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SqliteTransfer {
    n: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PgTransfer {
    n: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MyTransfer {
    n: i64,
}

#[outbox_handler("test.tx_sqlite", timeout = "300ms")]
async fn tx_sqlite(
    transfer: SqliteTransfer,
    ctx: Context,
    tx: Tx<Sqlite>,
    State(script): State<TxScript<Sqlite>>,
) -> HandlerResult {
    (script.0)(transfer.n, ctx, tx).await
}

#[outbox_handler("test.tx_postgres", timeout = "300ms")]
async fn tx_postgres(
    transfer: PgTransfer,
    ctx: Context,
    tx: Tx<Postgres>,
    State(script): State<TxScript<Postgres>>,
) -> HandlerResult {
    (script.0)(transfer.n, ctx, tx).await
}

#[outbox_handler("test.tx_mysql", timeout = "300ms")]
async fn tx_mysql(
    transfer: MyTransfer,
    ctx: Context,
    tx: Tx<MySql>,
    State(script): State<TxScript<MySql>>,
) -> HandlerResult {
    (script.0)(transfer.n, ctx, tx).await
}

type TxAct<DB> =
    dyn Fn(i64, Context, Tx<DB>) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>> + Send + Sync;

/// What handlers with a transaction do.
pub struct TxScript<DB: Backend>(Arc<TxAct<DB>>);

impl<DB: Backend> Clone for TxScript<DB> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<DB: Backend> TxScript<DB> {
    pub fn new<F: Future<Output = HandlerResult> + Send + 'static>(
        act: impl Fn(i64, Context, Tx<DB>) -> F + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |n, ctx, tx| Box::pin(act(n, ctx, tx))))
    }
}

/// The values that `test.anything` was given.
#[derive(Clone, Debug, Default)]
pub struct Seen(pub Arc<Mutex<Vec<serde_json::Value>>>);

type Act = dyn Fn(i64, Context) -> Pin<Box<dyn Future<Output = HandlerResult> + Send>> + Send + Sync;

/// What handlers do, and what they did.
#[derive(Clone)]
pub struct Script {
    act: Arc<Act>,
    runs: Arc<Mutex<Vec<Run>>>,
}

/// One run of a handler.
#[derive(Clone, Debug)]
pub struct Run {
    pub n: i64,
    pub id: EventId,
    pub attempts: u32,
    pub crashes: u32,
}

impl Script {
    pub fn new<F: Future<Output = HandlerResult> + Send + 'static>(
        act: impl Fn(i64, Context) -> F + Send + Sync + 'static,
    ) -> Self {
        Self { act: Arc::new(move |n, ctx| Box::pin(act(n, ctx))), runs: Arc::default() }
    }

    pub fn succeed() -> Self {
        Self::new(|_, _| async { Ok(()) })
    }

    pub fn fail(message: &'static str) -> Self {
        Self::new(move |_, _| async move { Err(message.into()) })
    }

    pub async fn run(&self, n: i64, ctx: Context) -> HandlerResult {
        let run = Run { n, id: ctx.event_id(), attempts: ctx.attempts(), crashes: ctx.crashes() };
        self.runs.lock().unwrap().push(run);
        (self.act)(n, ctx).await
    }

    pub fn runs(&self) -> Vec<Run> {
        self.runs.lock().unwrap().clone()
    }

    /// The payloads' numbers in the order in which they ran.
    pub fn numbers(&self) -> Vec<i64> {
        self.runs().iter().map(|run| run.n).collect()
    }
}

/// Other connections to the same database.
pub fn another_pool<DB: Harness>(pool: &Pool<DB>, connections: u32) -> Pool<DB> {
    let options = pool.options().clone().max_connections(connections);
    options.connect_lazy_with(pool.connect_options().as_ref().clone())
}

pub struct Fixture<DB: Harness> {
    pub outbox: Outbox<DB>,
    pub clock: Clock,
    pub script: Script,
    pub seen: Seen,
    _keep: Box<dyn Any + Send>,
}

/// Where the clock of every case begins.
pub fn start_time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_000)
}

pub fn ms(time: SystemTime) -> i64 {
    i64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Handlers with a transaction of another database cannot run here.
fn is_for<DB: Harness>(event_type: &str) -> bool {
    !event_type.starts_with("test.tx_") || event_type == DB::TX_EVENT
}

impl<DB: Harness> Fixture<DB> {
    pub async fn new(script: Script) -> Self {
        let Fresh { outbox, keep, .. } = DB::fresh().await;
        let clock = Clock::fixed(start_time());
        let seen = Seen::default();
        let outbox = outbox
            .clock(clock.clone())
            .registry(Registry::linked().retain(|def| is_for::<DB>(def.event_type())))
            .state(TxScript::<DB>::new(|_, _, _| async { Ok(()) }))
            .state(script.clone())
            .state(seen.clone());
        outbox.migrate().await.unwrap();
        Self { outbox, clock, script, seen, _keep: keep }
    }

    /// The same database for a program whose handlers do something else.
    pub fn with_script(&self, script: Script) -> Outbox<DB> {
        self.outbox.clone().state(script)
    }

    pub async fn enqueue<E: Event + Sync>(&self, payload: E) -> EventId {
        let mut tx = self.outbox.begin().await.unwrap();
        let receipt: Receipt = self.outbox.enqueue::<E>(&mut tx, payload).await.unwrap();
        tx.commit().await.unwrap();
        assert!(!receipt.is_duplicate());
        receipt.id()
    }

    pub async fn jobs(&self, numbers: impl IntoIterator<Item = i64>) -> Vec<EventId> {
        let mut ids = Vec::new();
        let mut tx = self.outbox.begin().await.unwrap();
        for n in numbers {
            ids.push(self.outbox.enqueue::<Job>(&mut tx, Job { n }).await.unwrap().id());
        }
        tx.commit().await.unwrap();
        ids
    }

    pub async fn batch(&self, size: usize) -> Counts {
        self.outbox.process_batch(BatchOptions::new().batch_size(size)).await.unwrap()
    }

    /// Frees what is to be freed, and claims nothing.
    pub async fn reap(&self) -> u64 {
        self.batch(0).await.reaped
    }

    pub async fn get(&self, id: EventId) -> EventRecord {
        self.outbox.get(id).await.unwrap().unwrap()
    }

    pub async fn sql(&self, statement: impl Into<String>) -> u64 {
        DB::sql(self.outbox.pool(), statement.into()).await
    }

    pub async fn count(&self, query: &str) -> i64 {
        DB::count(self.outbox.pool(), query).await
    }

    /// Sets columns of one event, as somebody with a database client would.
    pub async fn edit(&self, id: EventId, columns: &str) {
        let rows = self.sql(format!("UPDATE outbox_event SET {columns} WHERE id = '{id}'")).await;
        assert_eq!(rows, 1);
    }

    /// The time of the fixture's clock, `later` than now, as an SQL expression.
    pub fn sql_time(&self, later_ms: i64) -> String {
        DB::time(ms(self.clock.now().unwrap()) + later_ms)
    }

    /// A worker that registered and then died or lives, by the age of its heartbeat.
    pub async fn worker_row(&self, name: &str, heartbeat_age_ms: i64) {
        let heartbeat = self.sql_time(-heartbeat_age_ms);
        self.sql(format!(
            "INSERT INTO outbox_worker (id, host, pid, kinds, lease_ms, stuck_ms, started_at, heartbeat_at) \
             VALUES ('{name}', 'elsewhere', 1, '[]', 60000, 600000, {heartbeat}, {heartbeat})"
        ))
        .await;
    }

    /// The event as a worker of that name would have claimed it.
    pub async fn held_by(&self, id: EventId, worker: &str, age_ms: i64) {
        let locked_at = self.sql_time(-age_ms);
        self.edit(
            id,
            &format!(
                "status = 'processing', fence = fence + 1, locked_by = '{worker}', locked_at = {locked_at}"
            ),
        )
        .await;
    }
}
