//! The seam to the databases: plain data in, plain data out. Only this module holds SQL.

pub(crate) mod data;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
pub(crate) mod signals;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statements;

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;

use sqlx::{Database, Pool, Transaction};

use crate::event::EventId;

pub use data::{BlockedKey, EventRecord, Status, TypeStats, WorkerInfo};
use data::{
    Claim, Claimed, Duplicate, FoundRow, Identity, LoopNeeds, LoopPools, NewEvent, NewEvents, NewRow,
    PrunePage, Reaped, Settlement, WorkerRow,
};
pub(crate) use statements::Place;

/// One step of the tables' history, applied once, in order.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Its number, from 1.
    pub version: i64,
    /// Its file's name.
    pub name: &'static str,
    /// Its statements.
    pub sql: &'static str,
}

/// Where a statement runs: a connection, the statements of a schema, and the time, if a test has moved it.
#[derive(Debug)]
pub struct At<'a, DB: Backend> {
    /// The connection, inside a transaction or not.
    pub conn: &'a mut DB::Connection,
    /// The statements for the schema.
    pub sql: &'a DB::Statements,
    /// Milliseconds since 1970 instead of the database's clock.
    pub now: Option<i64>,
}

/// The shape that every answer has.
pub trait Answer<T>: Future<Output = Result<T, sqlx::Error>> + Send {}
impl<T, F: Future<Output = Result<T, sqlx::Error>> + Send> Answer<T> for F {}

pub(crate) mod sealed {
    /// Keeps the seam ours: its methods may change in any release.
    pub trait Sealed {}
}

/// A database that the outbox runs on. Sealed: its methods are not for applications, and change freely.
#[diagnostic::on_unimplemented(
    message = "the outbox does not run on `{Self}`",
    note = "enable the feature of your database in the dependency on `outbox`: `sqlite`, `postgres` or `mysql`"
)]
pub trait Backend: Database + sealed::Sealed {
    /// Every statement, for one schema.
    type Statements: Send + Sync + std::fmt::Debug + 'static;

    /// Its signs between processes.
    type Signals: signals::Signals<Self>;

    /// The database's name for people.
    const DATABASE: &'static str;
    /// The URL schemes of its connections.
    const SCHEMES: &'static [&'static str];
    /// Whether an open transaction that writes keeps all others from writing.
    const WRITES_ALONE: bool;
    /// The tables' history.
    const MIGRATIONS: &'static [Migration];

    /// The statements for a schema.
    fn statements(place: &Place) -> Arc<Self::Statements>;

    /// What of a payload this database cannot store or query.
    fn unqueryable(payload: &str) -> Option<&'static str>;

    /// Whether the same statement may well succeed in a moment: whoever it met has gone on then.
    fn is_transient(error: &sqlx::Error) -> bool;

    /// A pool for an application that has none, with the settings that the outbox wants.
    fn connect(url: &str) -> impl Answer<Pool<Self>>;

    /// Begins a transaction that is going to write.
    fn begin(pool: &Pool<Self>) -> impl Answer<Transaction<'static, Self>>;

    /// Whether a statement outside of a transaction is one of its own. Where not, each gets one by
    /// [`begin_pooled`](Self::begin_pooled).
    fn commits_by_itself(_conn: &mut Self::Connection) -> impl Answer<bool> {
        std::future::ready(Ok(true))
    }

    /// Begins a transaction for one statement of ours, with what the connections of [`loop_pools`](Self::loop_pools) say at
    /// their start otherwise: for connections that change from transaction to transaction.
    fn begin_pooled(pool: &Pool<Self>) -> impl Answer<Transaction<'static, Self>>;

    /// The worker's own connections, apart from those of the application.
    fn loop_pools(pool: &Pool<Self>, place: &Place, needs: LoopNeeds) -> impl Answer<LoopPools<Self>>;

    /// The version of the tables, 0 where there are none.
    fn schema_version(at: At<'_, Self>, schema: Option<&str>) -> impl Answer<i64>;

    /// Applies what is missing of a history, in one transaction for each step. A step that meets somebody's long
    /// transaction gives up within a second, with an error that [`is_transient`](Self::is_transient): whoever comes after it
    /// waits behind it.
    fn migrate(
        conn: &mut Self::Connection,
        schema: Option<&str>,
        migrations: &[Migration],
    ) -> impl Answer<()>;

    /// Stores an event; whether it did. Not, if its id or its key of the type is there already.
    fn insert(at: At<'_, Self>, event: &NewEvent<'_>) -> impl Answer<bool>;

    /// The events because of which inserts stored nothing, each with its place among the arguments.
    fn find_duplicates(
        at: At<'_, Self>,
        event_type: &str,
        wanted: &[Identity<'_>],
    ) -> impl Answer<Vec<(usize, Duplicate)>>;

    /// Stores some of many events, in one statement; the ids of those that were stored.
    fn insert_all(at: At<'_, Self>, events: &NewEvents<'_>, rows: &[&NewRow]) -> impl Answer<Vec<EventId>>;

    /// Holds ordering keys until the caller's transaction ends, where transactions run side by side. In one order, so that
    /// two of these calls do not wait for each other crosswise.
    fn lock_keys(at: At<'_, Self>, schema: Option<&str>, keys: &BTreeSet<&str>) -> impl Answer<()>;

    /// Claims a batch of due events.
    fn claim(at: At<'_, Self>, claim: &Claim<'_>) -> impl Answer<Vec<Claimed>>;

    /// Claims one event, if it is due.
    fn claim_event(at: At<'_, Self>, id: &str, worker: &str) -> impl Answer<Option<Claimed>>;

    /// Writes outcomes; the sequence numbers of the rows that were still this worker's.
    fn settle(at: At<'_, Self>, worker: &str, outcomes: &[Settlement]) -> impl Answer<Vec<i64>>;

    /// Rows as they are.
    fn reread(at: At<'_, Self>, seqs: &[i64]) -> impl Answer<Vec<FoundRow>>;

    /// Gives back what this worker holds in the table but not in hand.
    fn release_strays(at: At<'_, Self>, worker: &str, in_hand: &[i64]) -> impl Answer<u64>;

    /// A worker appears.
    fn register(at: At<'_, Self>, worker: &WorkerRow<'_>) -> impl Answer<()>;

    /// A worker lives. `None`: it was declared dead. Else which of `in_hand` (seq, fence) is not its own any more.
    fn heartbeat(at: At<'_, Self>, worker: &str, in_hand: &[(i64, i64)]) -> impl Answer<Option<Vec<i64>>>;

    /// A worker has ended.
    fn stop_worker(at: At<'_, Self>, worker: &str) -> impl Answer<()>;

    /// Declares workers dead, then frees a page of events without an owner or held too long.
    fn reap(at: At<'_, Self>, page: i64) -> impl Answer<Vec<Reaped>>;

    /// What a page of the table, in order of seq from after `after`, holds to prune.
    fn prune_page(
        at: At<'_, Self>,
        status: Status,
        older_than_ms: i64,
        after: i64,
        page: i64,
    ) -> impl Answer<PrunePage>;

    /// Deletes within a page, up to `last`, what is finished in this status and old enough.
    fn prune(at: At<'_, Self>, status: Status, older_than_ms: i64, after: i64, last: i64)
    -> impl Answer<u64>;

    /// Forgets workers that ended long ago.
    fn prune_workers(at: At<'_, Self>) -> impl Answer<u64>;

    /// Turns a page of long-waiting events of a type that nobody handles into dead letters.
    fn bury_unknown(
        at: At<'_, Self>,
        event_type: &str,
        after_ms: i64,
        error: &str,
        page: i64,
    ) -> impl Answer<u64>;

    /// Whether an unfinished event of the type has this field with this value.
    fn has_inflight(at: At<'_, Self>, event_type: &str, key: &str, value: &str) -> impl Answer<bool>;

    /// Whether an unfinished event of the type has this subject.
    fn has_inflight_subject(at: At<'_, Self>, event_type: &str, subject: &str) -> impl Answer<bool>;

    /// Ordering keys that a dead letter blocks, those that have been for longest first; what waits is counted up to `cap`.
    fn blocked_keys(at: At<'_, Self>, cap: i64, limit: i64) -> impl Answer<Vec<BlockedKey>>;

    /// One event, whole.
    fn get(at: At<'_, Self>, id: &str) -> impl Answer<Option<EventRecord>>;

    /// Dead letters of these types, newest first, from before (processed_at in ms, seq).
    fn dead_letters(
        at: At<'_, Self>,
        types: &[&str],
        before: Option<(i64, i64)>,
        limit: i64,
    ) -> impl Answer<Vec<EventRecord>>;

    /// Gives a dead letter a new life; whether it was one.
    fn requeue(at: At<'_, Self>, id: &str) -> impl Answer<bool>;

    /// Gives a page of dead letters of these types a new life.
    fn requeue_types(at: At<'_, Self>, types: &[&str], page: i64) -> impl Answer<u64>;

    /// Deletes one finished event; whether it was one.
    fn discard(at: At<'_, Self>, id: &str) -> impl Answer<bool>;

    /// What waits, by type, counted up to `cap`.
    fn stats(at: At<'_, Self>, cap: i64) -> impl Answer<Vec<TypeStats>>;

    /// The live workers.
    fn workers(at: At<'_, Self>) -> impl Answer<Vec<WorkerInfo>>;
}
