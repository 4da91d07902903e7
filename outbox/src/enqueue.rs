//! Enqueue: a typed payload becomes a row, in the caller's own transaction.

use std::borrow::Borrow;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use sqlx::{Database, Transaction};

use crate::backend::data::{Duplicate, NewEvent, Status, duration_ms, to_ms};
use crate::backend::{At, Backend};
use crate::clock::Clock;
use crate::event::{Event, EventId};
use crate::handler::Headers;
use crate::payload::{self, PayloadError};
use crate::{nudge, schema_name};

/// How long an event type, a key or a header's name may be, in bytes.
pub const MAX_KEY_BYTES: usize = 255;

/// How large all headers of an event may be together, in bytes of JSON.
pub const MAX_HEADERS_BYTES: usize = 64 * 1024;

/// What an event can be enqueued in: a transaction.
///
/// Also a single connection, on the caller's own responsibility: outside of a transaction the event is stored at
/// once, whatever becomes of the business data. A pool is not possible: its next statement may run on another
/// connection, outside of any transaction.
#[diagnostic::on_unimplemented(
    message = "events are enqueued in a transaction, and `{Self}` is none",
    label = "not a transaction",
    note = "begin one and pass it: `let mut tx = pool.begin().await?; outbox::enqueue::<E>(&mut tx, payload).await?; tx.commit().await?`",
    note = "a single connection works too (`&mut *connection`), but then nothing ties the event to your data"
)]
pub trait InTransaction: Send {
    /// Its database.
    type Database: Backend;

    /// The connection that it holds.
    fn connection(&mut self) -> &mut <Self::Database as Database>::Connection;
}

impl<DB: Backend> InTransaction for Transaction<'_, DB> {
    type Database = DB;

    fn connection(&mut self) -> &mut DB::Connection {
        self
    }
}

#[cfg(feature = "sqlite")]
impl InTransaction for sqlx::SqliteConnection {
    type Database = sqlx::Sqlite;

    fn connection(&mut self) -> &mut sqlx::SqliteConnection {
        self
    }
}

#[cfg(feature = "postgres")]
impl InTransaction for sqlx::PgConnection {
    type Database = sqlx::Postgres;

    fn connection(&mut self) -> &mut sqlx::PgConnection {
        self
    }
}

/// Enqueues an event in the caller's transaction: it commits or rolls back with everything else there.
///
/// Returns a builder that is awaited.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, schemars::JsonSchema, outbox::Event)]
/// # #[event("doc.enqueue")]
/// # struct InvoiceEvent { cents: i64 }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let outbox = outbox::Outbox::<sqlx::Sqlite>::connect("sqlite::memory:").await?;
/// # outbox.migrate().await?;
/// # let pool = outbox.pool();
/// let mut tx = pool.begin().await?;
/// // … the application's own statements in `tx` …
/// outbox::enqueue::<InvoiceEvent>(&mut tx, InvoiceEvent { cents: 4200 })
///     .delay(std::time::Duration::from_secs(60))
///     .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
///     .await?;
/// tx.commit().await?;
/// # Ok(()) }
/// ```
///
/// A pool does not compile:
///
/// ```compile_fail,E0277
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, schemars::JsonSchema, outbox::Event)]
/// # #[event("doc.pool")]
/// # struct InvoiceEvent { cents: i64 }
/// # async fn with(mut pool: sqlx::SqlitePool) {
/// outbox::enqueue::<InvoiceEvent>(&mut pool, InvoiceEvent { cents: 4200 }).await;
/// # }
/// ```
///
/// A single connection does, on your own responsibility; and a transaction that a helper function was lent can be used
/// more than once:
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, schemars::JsonSchema, outbox::Event)]
/// # #[event("doc.connection")]
/// # struct InvoiceEvent { cents: i64 }
/// # use sqlx::{Sqlite, SqliteConnection, Transaction};
/// async fn on_a_connection(connection: &mut SqliteConnection) -> Result<(), outbox::EnqueueError> {
///     outbox::enqueue::<InvoiceEvent>(connection, InvoiceEvent { cents: 1 }).await?;
///     Ok(())
/// }
///
/// async fn twice(tx: &mut Transaction<'_, Sqlite>) -> Result<(), outbox::EnqueueError> {
///     let invoice = InvoiceEvent { cents: 2 };
///     outbox::enqueue::<InvoiceEvent>(tx, &invoice).await?;
///     outbox::enqueue::<InvoiceEvent>(tx, invoice).await?;
///     Ok(())
/// }
/// ```
///
/// # Errors
/// [`EnqueueError`]; all but its `Database` are found before any statement is sent, and the transaction is as usable as
/// before.
pub fn enqueue<E: Event>(tx: &mut (impl InTransaction + ?Sized), payload: impl Borrow<E>) -> Enqueue<'_> {
    Enqueue::new::<E>(tx, payload.borrow(), None, Clock::database())
}

/// An event about to be enqueued; await it.
#[must_use = "nothing is enqueued until this is awaited"]
pub struct Enqueue<'t> {
    target: Box<dyn Target + 't>,
    schema: Option<String>,
    clock: Clock,
    id: EventId,
    event_type: &'static str,
    version: u32,
    payload: Result<String, PayloadError>,
    headers: Headers,
    max_attempts: u32,
    available_at: Option<i64>,
    delay_ms: i64,
    dedup_key: Option<String>,
}

impl<'t> Enqueue<'t> {
    pub(crate) fn new<E: Event>(
        tx: &'t mut (impl InTransaction + ?Sized),
        payload: &E,
        schema: Option<String>,
        clock: Clock,
    ) -> Self {
        Self {
            target: connection_of(tx),
            schema,
            clock,
            id: EventId::new(),
            event_type: E::EVENT_TYPE,
            version: E::VERSION,
            payload: payload::encode(payload),
            headers: Headers::new(),
            max_attempts: E::MAX_ATTEMPTS,
            available_at: None,
            delay_ms: 0,
            dedup_key: None,
        }
    }

    /// Not due before this long from now, by the database's clock; to the millisecond.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay_ms = duration_ms(delay);
        self
    }

    /// Not due before this time, by the database's clock; to the millisecond. A time that is past: now.
    pub fn available_at(mut self, time: SystemTime) -> Self {
        self.available_at = Some(to_ms(time));
        self
    }

    /// How many attempts this event gets, instead of its type's.
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// The event's id, chosen by the caller. An id that is stored already is a [`Receipt::Duplicate`].
    pub fn id(mut self, id: EventId) -> Self {
        self.id = id;
        self
    }

    /// A key that no other stored event of this type has; else the answer is [`Receipt::Duplicate`], and nothing
    /// is stored. The key is free again once its event is pruned or discarded.
    pub fn dedup_key(mut self, key: impl Into<String>) -> Self {
        self.dedup_key = Some(key.into());
        self
    }

    /// A header, for the handler's [`Context`](crate::Context): a trace context, a tenant.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into(), value.into());
        self
    }

    /// The schema of the outbox's tables; see [`Outbox::schema`](crate::Outbox::schema).
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = Some(name.into());
        self
    }

    async fn run(mut self) -> Result<Receipt, EnqueueError> {
        let payload = self.payload?;
        if let Some(what) = self.target.unqueryable(&payload) {
            return Err(PayloadError::Unqueryable(what).into());
        }
        if let Some(schema) = &self.schema {
            schema_name::check(schema).map_err(EnqueueError::Schema)?;
        }
        check_attempts(self.max_attempts)?;
        check_key("event type", self.event_type)?;
        if let Some(key) = &self.dedup_key {
            check_key("dedup key", key)?;
        }
        let headers = encode_headers(&self.headers)?;
        let event = NewEvent {
            id: self.id,
            event_type: self.event_type,
            version: self.version,
            payload: &payload,
            headers: headers.as_deref(),
            max_attempts: self.max_attempts,
            available_at: self.available_at,
            delay_ms: self.delay_ms,
            dedup_key: self.dedup_key.as_deref(),
        };
        let inserted = self.target.insert(self.schema.as_deref(), self.clock.now_ms(), &event).await;
        let receipt = inserted.map_err(EnqueueError::Database)?;
        if !receipt.is_duplicate() {
            // Before the commit, which is the caller's: the worker looks again in the next milliseconds.
            nudge::soon();
        }
        Ok(receipt)
    }
}

impl<'t> IntoFuture for Enqueue<'t> {
    type Output = Result<Receipt, EnqueueError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 't>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl fmt::Debug for Enqueue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue")
            .field("event_type", &self.event_type)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A connection whose database is not in its type, so that `enqueue::<InvoiceEvent>` needs that one argument.
trait Target: Send {
    fn unqueryable(&self, payload: &str) -> Option<&'static str>;

    fn insert<'a>(
        &'a mut self,
        schema: Option<&'a str>,
        now: Option<i64>,
        event: &'a NewEvent<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Receipt, sqlx::Error>> + Send + 'a>>;
}

struct Connection<'t, DB: Backend>(&'t mut DB::Connection);

fn connection_of<'t, T: InTransaction + ?Sized>(tx: &'t mut T) -> Box<dyn Target + 't> {
    Box::new(Connection::<'t, T::Database>(tx.connection()))
}

impl<DB: Backend> Target for Connection<'_, DB> {
    fn unqueryable(&self, payload: &str) -> Option<&'static str> {
        DB::unqueryable(payload)
    }

    fn insert<'a>(
        &'a mut self,
        schema: Option<&'a str>,
        now: Option<i64>,
        event: &'a NewEvent<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Receipt, sqlx::Error>> + Send + 'a>> {
        Box::pin(async move {
            let sql = DB::statements(schema);
            let sql = &*sql;
            loop {
                if DB::insert(At { conn: &mut *self.0, sql, now }, event).await? {
                    return Ok(Receipt::Enqueued(event.id));
                }
                // In a statement of its own: one that inserts and reads sees neither row when the other transaction
                // commits in between.
                let found = DB::find_duplicate(At { conn: &mut *self.0, sql, now }, event).await?;
                if let Some(Duplicate { id, status }) = found {
                    return Ok(Receipt::Duplicate { id, status });
                }
                // It went in between, and the insert has its chance again.
            }
        })
    }
}

/// What became of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// Stored, under this id.
    Enqueued(EventId),
    /// Not stored: this event was there before, with the same id or the same dedup key. Look at its status: a dead
    /// letter does nothing until somebody requeues it.
    Duplicate {
        /// The event that is stored.
        id: EventId,
        /// Its state at this moment.
        status: Status,
    },
}

impl Receipt {
    /// The id of the stored event, new or not.
    pub fn id(&self) -> EventId {
        match self {
            Self::Enqueued(id) | Self::Duplicate { id, .. } => *id,
        }
    }

    /// Whether the event was there before.
    pub fn is_duplicate(&self) -> bool {
        matches!(self, Self::Duplicate { .. })
    }
}

/// Why an event was not enqueued. All but [`Database`](Self::Database) are found before any statement is sent: the
/// transaction is as usable as before.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The payload would not come back equal.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// No attempts, or more than can be counted.
    #[error("max_attempts is {0}: an event needs at least one attempt, and at most 2147483647")]
    MaxAttempts(u32),
    /// An event type, key or header name that cannot be stored.
    #[error("the {what} {problem}")]
    Key {
        /// Which one.
        what: &'static str,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// A schema name that no database takes.
    #[error("the schema {0}")]
    Schema(&'static str),
    /// The database refused the statement; its error says why. A transaction may have to be rolled back.
    #[error("the event could not be stored (have the tables been made, with `Outbox::migrate()`?): {0}")]
    Database(#[source] sqlx::Error),
}

crate::readable::readable!(EnqueueError);

fn check_attempts(attempts: u32) -> Result<(), EnqueueError> {
    if attempts == 0 || i32::try_from(attempts).is_err() {
        return Err(EnqueueError::MaxAttempts(attempts));
    }
    Ok(())
}

fn check_key(what: &'static str, key: &str) -> Result<(), EnqueueError> {
    let problem = if key.is_empty() {
        "is empty".to_owned()
    } else if key.len() > MAX_KEY_BYTES {
        format!("has {} bytes, and at most {MAX_KEY_BYTES} are possible; use a hash of it", key.len())
    } else if key.contains('\0') {
        "holds the character NUL, which databases do not store".to_owned()
    } else {
        return Ok(());
    };
    Err(EnqueueError::Key { what, problem })
}

fn encode_headers(headers: &Headers) -> Result<Option<String>, EnqueueError> {
    if headers.is_empty() {
        return Ok(None);
    }
    for (name, value) in headers {
        check_key("header name", name)?;
        if value.contains('\0') {
            let problem = "holds the character NUL, which databases do not store".to_owned();
            return Err(EnqueueError::Key { what: "header value", problem });
        }
    }
    let text = payload::encode(headers)?;
    if text.len() > MAX_HEADERS_BYTES {
        let problem = format!(
            "take {} bytes, and at most {MAX_HEADERS_BYTES} are possible; use the payload",
            text.len()
        );
        return Err(EnqueueError::Key { what: "headers", problem });
    }
    Ok(Some(text))
}
