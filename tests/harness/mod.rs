//! The databases that tests run on: each gives every test one of its own.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test that cannot go on says where")]

use std::any::Any;
use std::collections::BTreeSet;
use std::future::Future;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use outbox::{Backend, EventId, Outbox};
use sqlx::{Pool, Transaction};

mod mysql;
mod postgres;
mod server;
mod sqlite;

/// A database that a case has for itself.
pub struct Fresh<DB: Backend> {
    pub outbox: Outbox<DB>,
    /// Where it is.
    pub url: String,
    /// What has to live as long as the database.
    pub keep: Box<dyn Any + Send>,
}

/// What the suite needs of a backend.
pub trait Harness: Backend {
    /// Why this backend cannot be tested here, if it cannot.
    fn left_out() -> Option<&'static str> {
        None
    }
    /// An empty database.
    fn fresh() -> impl Future<Output = Fresh<Self>> + Send;
    /// A name for a schema, which nobody else on the server uses, and which goes with the case's database.
    fn schema(_pool: &Pool<Self>, name: &str) -> String {
        name.to_owned()
    }
    /// Runs a statement as somebody's own program would.
    fn sql(pool: &Pool<Self>, statement: String) -> impl Future<Output = u64> + Send;
    /// The same in somebody's transaction.
    fn sql_in(connection: &mut Self::Connection, statement: String) -> impl Future<Output = ()> + Send;
    /// The event whose handler takes a transaction of this database.
    const TX_EVENT: &str;
    /// Waits until some statement waits for somebody's lock, where single rows are locked.
    fn wait_for_a_waiter(pool: &Pool<Self>) -> impl Future<Output = ()> + Send {
        Self::wait_for_waiters(pool, 1)
    }
    /// The same for several statements.
    fn wait_for_waiters(pool: &Pool<Self>, number: i64) -> impl Future<Output = ()> + Send;
    /// One number.
    fn count(pool: &Pool<Self>, query: &str) -> impl Future<Output = i64> + Send;
    /// A time as an SQL expression.
    fn time(ms: i64) -> String;
    /// A column of JSON as text, as an SQL expression.
    fn text(column: &str) -> String {
        format!("CAST({column} AS text)")
    }
    /// From here on no outcome can be written.
    const BREAK_WRITES: &str;
    /// From here on nothing can be claimed.
    const BREAK_CLAIMS: &str;
    /// Undoes `BREAK_WRITES`.
    const MEND_WRITES: &str;
    /// Cuts the connections over which processes give each other signs; `None` where they give none.
    const BREAK_SIGNALS: Option<&str>;
    /// The database's own command-line client, about to run a statement.
    fn client(url: &str, statement: &str) -> Command;
    /// From here on two of four statements that write fail as if they had met another at a bad moment, where a database
    /// can be made to say so.
    const BAD_MOMENTS: Option<&str>;
    /// Whether a constraint can be checked as late as at the commit.
    const DEFERS: bool = true;
    /// How many levels of a payload the database reads.
    const DEEPEST: usize = outbox::MAX_DEPTH;
    /// Whether a transaction locks single rows.
    const LOCKS_ROWS: bool = !Self::WRITES_ALONE;
    /// What a later release might add to the tables: columns, and an index that takes long where they are large.
    const LATER: &str;
    /// Makes that index beforehand, in the database's own way of keeping nobody from writing meanwhile.
    fn make_later_index(pool: &Pool<Self>) -> impl Future<Output = ()> + Send;
    /// Locks one event's row in somebody's transaction, where rows are locked.
    fn lock_row(tx: &mut Transaction<'static, Self>, id: EventId) -> impl Future<Output = ()> + Send;
}

/// Says once for each database that its cases were left out. Past the capture of the test runner, which keeps what a
/// passing test prints.
pub fn say_left_out<DB: Harness>(why: &str) {
    use std::io::Write;
    static SAID: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap().insert(DB::DATABASE) {
        drop(writeln!(std::io::stderr(), "LEFT OUT: cases on {}, since {why}", DB::DATABASE));
    }
}

/// Says that a case means nothing on a database, past the test runner's capture; `tests/run` counts these.
pub fn say_skipped<DB: Harness>(case: &str, why: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "SKIPPED {case} on {}: {why}", DB::DATABASE));
}

/// Waits for what must come.
pub async fn eventually<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let limit = tokio::time::Instant::now() + Duration::from_secs(20);
    while !holds().await {
        assert!(tokio::time::Instant::now() < limit, "never came: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
