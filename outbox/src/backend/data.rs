//! What goes through the seam: plain data, the same for every database. Times are milliseconds since 1970, UTC.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use sqlx::Pool;

use crate::event::{EventId, OnDeadLetter};

/// The state of a stored event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Waits to be claimed, now or at a later time.
    Pending,
    /// A worker has claimed it.
    Processing,
    /// Its handler succeeded.
    Completed,
    /// Its attempts are spent, or its failure is permanent: it waits for a person.
    DeadLetter,
}

impl Status {
    /// The word in the column `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::DeadLetter => "dead_letter",
        }
    }

    /// Whether the event is over: completed, or a dead letter.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::DeadLetter)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Status {
    type Err = UnknownStatus;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        [Self::Pending, Self::Processing, Self::Completed, Self::DeadLetter]
            .into_iter()
            .find(|status| status.as_str() == word)
            .ok_or_else(|| UnknownStatus(word.to_owned()))
    }
}

/// A word in the column `status` that is none of the four.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no status of an event: pending, processing, completed or dead_letter")]
pub struct UnknownStatus(String);

/// An event to store.
#[derive(Debug)]
pub struct NewEvent<'a> {
    pub id: EventId,
    pub event_type: &'a str,
    pub version: u32,
    pub payload: &'a str,
    pub headers: Option<&'a str>,
    pub max_attempts: u32,
    pub available_at: Option<i64>,
    pub delay_ms: i64,
    pub ordering_key: Option<&'a str>,
    pub on_dead_letter: OnDeadLetter,
    pub dedup_key: Option<&'a str>,
    pub subject: Option<&'a str>,
}

/// One of many events to store.
#[derive(Clone, Debug)]
pub struct NewRow {
    pub id: EventId,
    pub payload: String,
    pub ordering_key: Option<String>,
    pub dedup_key: Option<String>,
    pub subject: Option<String>,
}

impl NewRow {
    pub fn identity(&self) -> Identity<'_> {
        Identity { id: self.id, dedup_key: self.dedup_key.as_deref() }
    }
}

/// What an event to store must not have in common with a stored one.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    pub id: EventId,
    pub dedup_key: Option<&'a str>,
}

/// What many events to store have in common.
#[derive(Debug)]
pub struct NewEvents<'a> {
    pub event_type: &'a str,
    pub version: u32,
    pub headers: Option<&'a str>,
    pub max_attempts: u32,
    pub available_at: Option<i64>,
    pub delay_ms: i64,
    pub on_dead_letter: OnDeadLetter,
    pub rows: &'a [NewRow],
}

impl<'a> NewEvents<'a> {
    /// One of them.
    pub fn event<'r>(&self, row: &'r NewRow) -> NewEvent<'r>
    where
        'a: 'r,
    {
        NewEvent {
            id: row.id,
            event_type: self.event_type,
            version: self.version,
            payload: &row.payload,
            headers: self.headers,
            max_attempts: self.max_attempts,
            available_at: self.available_at,
            delay_ms: self.delay_ms,
            ordering_key: row.ordering_key.as_deref(),
            on_dead_letter: self.on_dead_letter,
            dedup_key: row.dedup_key.as_deref(),
            subject: row.subject.as_deref(),
        }
    }
}

/// An event that was stored before.
#[derive(Debug)]
pub struct Duplicate {
    pub id: EventId,
    pub status: Status,
}

/// An event type that a worker handles, up to a version, and how many of it it has room for.
#[derive(Clone, Debug)]
pub struct Kind<'a> {
    pub event_type: &'a str,
    pub version: u32,
    pub room: usize,
    /// Of events without an ordering key, only those that stand behind this; `None`: all.
    pub after: Option<Position>,
    /// The same of events with one.
    pub keyed_after: Option<Position>,
}

/// Where an event stands in the order of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// When it was due, in the backend's own unit: exact, since it is compared with the column.
    pub due: i64,
    pub seq: i64,
}

/// What a worker asks for.
#[derive(Debug)]
pub struct Claim<'a> {
    pub worker: &'a str,
    /// In the order in which ties are dealt: the caller turns it from claim to claim.
    pub kinds: &'a [Kind<'a>],
    pub limit: usize,
    /// How many events with which a worker died: 0 or 1.
    pub suspects: usize,
    /// Ordering keys of which an event has just ended: their next one is looked for, wherever it stands.
    pub ended_keys: &'a [String],
    /// How many events with an ordering key are looked at for each type; most of them may wait for others. `None`: all.
    pub keyed_looks: Option<usize>,
}

/// A claimed event.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub seq: i64,
    pub id: EventId,
    pub fence: i64,
    pub event_type: String,
    pub version: u32,
    pub payload: String,
    pub headers: Option<String>,
    pub attempts: u32,
    pub crashes: u32,
    pub max_attempts: u32,
    /// As in [`Position`].
    pub due: i64,
    pub created_at: i64,
    pub ordering_key: Option<String>,
}

impl Claimed {
    pub fn position(&self) -> Position {
        Position { due: self.due, seq: self.seq }
    }
}

/// What the column `last_error` becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    Keep,
    Clear,
    Set(String),
}

impl WriteError {
    /// What is set.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Set(text) => Some(text),
            Self::Keep | Self::Clear => None,
        }
    }
}

/// An outcome as it is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub seq: i64,
    pub fence: i64,
    pub status: Status,
    pub attempts: u32,
    /// From the moment of the write; `None` keeps `available_at`.
    pub delay_ms: Option<i64>,
    pub error: WriteError,
    /// A completed row that is not kept.
    pub delete: bool,
}

impl Settlement {
    /// Completed, and nothing else about it: a completion spends no attempt.
    pub fn is_plain_completion(&self) -> bool {
        self.status == Status::Completed && self.error == WriteError::Clear && self.delay_ms.is_none()
    }
}

/// A row that an outcome did not match.
#[derive(Debug)]
pub struct FoundRow {
    pub seq: i64,
    pub fence: i64,
    pub status: Status,
    pub owner: Option<String>,
}

/// A worker as it registers.
#[derive(Debug)]
pub struct WorkerRow<'a> {
    pub id: &'a str,
    pub host: &'a str,
    pub pid: u32,
    /// `[{"type": …, "version": …}, …]`
    pub kinds: &'a str,
    pub lease_ms: i64,
    pub stuck_ms: i64,
}

/// An event that the reaper freed.
#[derive(Debug)]
pub struct Reaped {
    pub event_type: String,
    pub status: Status,
}

/// A page of the table, as pruning sees it.
#[derive(Clone, Copy, Debug)]
pub struct PrunePage {
    /// The page's last row; `None` where there is none.
    pub last: Option<i64>,
    /// How many rows it has.
    pub rows: i64,
    /// How many of them may go.
    pub old: i64,
    /// Whether all were stored too lately for any to be old enough; so is everything behind them.
    pub all_young: bool,
}

/// The worker's own connections.
#[derive(Debug)]
pub struct LoopPools<DB: sqlx::Database> {
    /// Claims run here.
    pub claim: Pool<DB>,
    /// Everything else that the loop writes.
    pub settle: Pool<DB>,
    /// Heartbeats, from a thread and a runtime of their own.
    pub heartbeat: HeartbeatPool<DB>,
    /// For transactions that handlers take.
    pub transactions: Pool<DB>,
}

/// What the worker's own connections are for.
#[derive(Clone, Copy, Debug)]
pub struct LoopNeeds {
    /// How many transactions handlers may have at once.
    pub transactions: u32,
    /// They lie idle between calls, and are asked whether they still live before each use.
    pub lie_idle: bool,
}

/// Where heartbeats get their connection. A connection belongs to the runtime that opened it, so what is not shared
/// is opened by the heartbeat's thread itself.
pub enum HeartbeatPool<DB: sqlx::Database> {
    /// A pool whose connections are good in any runtime.
    Shared(Pool<DB>),
    /// How to make one.
    Own(sqlx::pool::PoolOptions<DB>, <DB::Connection as sqlx::Connection>::Options),
}

impl<DB: sqlx::Database> fmt::Debug for HeartbeatPool<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Connect options can hold a password.
        f.write_str(if self.is_shared() { "Shared" } else { "Own" })
    }
}

impl<DB: sqlx::Database> Clone for HeartbeatPool<DB> {
    fn clone(&self) -> Self {
        match self {
            Self::Shared(pool) => Self::Shared(pool.clone()),
            Self::Own(options, connect) => Self::Own(options.clone(), connect.clone()),
        }
    }
}

impl<DB: sqlx::Database> HeartbeatPool<DB> {
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    pub(crate) fn open(&self) -> Pool<DB> {
        match self {
            Self::Shared(pool) => pool.clone(),
            Self::Own(options, connect) => options.clone().connect_lazy_with(connect.clone()),
        }
    }
}

/// A stored event, every column of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EventRecord {
    /// The database's sequence number.
    pub seq: i64,
    /// The event's id.
    pub id: EventId,
    /// Its type.
    pub event_type: String,
    /// The version of its payload.
    pub event_version: u32,
    /// Its payload, the JSON text as it was stored.
    pub payload: String,
    /// Its headers, a JSON object.
    pub headers: Option<String>,
    /// Its state.
    pub status: Status,
    /// Whether it waits and is due, by the database's clock.
    pub is_due: bool,
    /// Whether it waits for another event of its ordering key.
    pub is_blocked: bool,
    /// The attempts spent.
    pub attempts: u32,
    /// How many workers died with it.
    pub crashes: u32,
    /// The attempts that it gets.
    pub max_attempts: u32,
    /// When it is, or was, due.
    pub available_at: SystemTime,
    /// When it was claimed, while a worker has it.
    pub locked_at: Option<SystemTime>,
    /// Which worker has it.
    pub locked_by: Option<String>,
    /// The fencing token: how often it was claimed.
    pub fence: i64,
    /// The text of its last failure, or a note.
    pub last_error: Option<String>,
    /// Its ordering key.
    pub ordering_key: Option<String>,
    /// What becomes of its ordering key if it becomes a dead letter.
    pub on_dead_letter: OnDeadLetter,
    /// Its dedup key.
    pub dedup_key: Option<String>,
    /// Its subject.
    pub subject: Option<String>,
    /// When it was stored.
    pub created_at: SystemTime,
    /// When it completed or became a dead letter.
    pub processed_at: Option<SystemTime>,
}

/// An ordering key that a dead letter blocks.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BlockedKey {
    /// The key.
    pub ordering_key: String,
    /// The dead letter: requeue it, or discard it.
    pub id: EventId,
    /// Its type.
    pub event_type: String,
    /// Since when it blocks.
    pub since: SystemTime,
    /// How many events wait behind it, counted up to [`Stats::COUNT_CAP`](crate::Stats::COUNT_CAP).
    pub waiting: u64,
}

/// What waits and runs of one event type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TypeStats {
    /// The event type.
    pub event_type: String,
    /// Events that are due, counted up to [`Stats::COUNT_CAP`](crate::Stats::COUNT_CAP).
    pub due: u64,
    /// Events that are due later, counted up to the same.
    pub scheduled: u64,
    /// Events that workers have.
    pub processing: u64,
    /// Dead letters, counted up to ten times the cap over all types.
    pub dead_letter: u64,
    /// How long the oldest due event has been due.
    pub oldest_due_age: Option<Duration>,
    /// How many live workers handle the type. 0: its events wait for nobody.
    pub live_workers: u32,
    /// Whether a handler in this program handles it.
    pub handled_here: bool,
}

/// A live worker.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WorkerInfo {
    /// Its id, one for each start.
    pub id: String,
    /// Its host's name.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// What it handles: `[{"type": …, "version": …}, …]`.
    pub kinds: String,
    /// When it started.
    pub started_at: SystemTime,
    /// Its last heartbeat.
    pub heartbeat_at: SystemTime,
}

/// What the column `on_dead_letter` holds.
pub(super) fn on_dead_letter_column(value: OnDeadLetter) -> Option<&'static str> {
    match value {
        OnDeadLetter::Continue => None,
        OnDeadLetter::Block => Some("block"),
    }
}

/// What the column says.
pub(super) fn on_dead_letter(column: Option<&str>) -> OnDeadLetter {
    if column.is_some() { OnDeadLetter::Block } else { OnDeadLetter::Continue }
}

/// A list, for a database that takes lists as one JSON text.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(super) fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// A number for the database.
pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A time from the database.
pub(crate) fn from_ms(ms: i64) -> SystemTime {
    let distance = Duration::from_millis(ms.unsigned_abs());
    let time = if ms < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(distance)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(distance)
    };
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A time for the database.
pub(crate) fn to_ms(time: SystemTime) -> i64 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => duration_ms(after),
        Err(before) => -duration_ms(before.duration()),
    }
}

/// A duration for the database: at most a thousand years, so that no sum overflows.
pub(crate) fn duration_ms(duration: Duration) -> i64 {
    const MAX_MS: i64 = 1000 * 366 * 24 * 3600 * 1000;
    i64::try_from(duration.as_millis()).unwrap_or(MAX_MS).min(MAX_MS)
}
