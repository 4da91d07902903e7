//! Enqueuing one event.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use super::check::{EnqueueError, check_keys, check_payload};
use super::common::{Common, common_methods};
use super::target::{Target, connection_of};
use super::{InTransaction, Receipt};
use crate::backend::Place;
use crate::backend::data::NewRow;
use crate::clock::Clock;
use crate::event::{Event, EventId};
use crate::nudge;
use crate::payload::{self, PayloadError};

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
    Enqueue::new::<E>(tx, payload.borrow(), Place::without_handle(), Clock::database())
}

/// An event about to be enqueued; await it.
#[must_use = "nothing is enqueued until this is awaited"]
pub struct Enqueue<'t> {
    target: Box<dyn Target + 't>,
    common: Common,
    id: EventId,
    payload: Result<String, PayloadError>,
    ordering_key: Option<String>,
    dedup_key: Option<String>,
    subject: Option<String>,
}

impl<'t> Enqueue<'t> {
    pub(crate) fn new<E: Event>(
        tx: &'t mut (impl InTransaction + ?Sized),
        payload: &E,
        place: Place,
        clock: Clock,
    ) -> Self {
        Self {
            target: connection_of(tx),
            common: Common::new::<E>(place, clock),
            id: EventId::new(),
            payload: payload::encode(payload),
            ordering_key: None,
            dedup_key: None,
            subject: None,
        }
    }

    common_methods!();

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

    /// Events with the same key, of whatever types, run one at a time and in sequence, over all workers; a retry holds
    /// its key up. Of transactions side by side see [`strict_order`](Self::strict_order).
    pub fn ordering_key(mut self, key: impl Into<String>) -> Self {
        self.ordering_key = Some(key.into());
        self
    }

    /// What the event is about, for [`Outbox::has_inflight_subject`](crate::Outbox::has_inflight_subject).
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    async fn run(mut self) -> Result<Receipt, EnqueueError> {
        let payload = check_payload(self.payload, &*self.target)?;
        let headers = self.common.check()?;
        check_keys(self.ordering_key.as_deref(), self.dedup_key.as_deref(), self.subject.as_deref())?;
        let Self { id, ordering_key, dedup_key, subject, .. } = self;
        let row = NewRow { id, payload, ordering_key, dedup_key, subject };
        let event = self.common.events(headers.as_deref(), &[]).event(&row);
        let at = self.common.destination();
        if let (true, Some(key)) = (self.common.strict_order, event.ordering_key) {
            self.target.lock_keys(at, &BTreeSet::from([key])).await.map_err(EnqueueError::Database)?;
        }
        let receipt = self.target.insert(at, &event).await.map_err(EnqueueError::Database)?;
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
            .field("event_type", &self.common.event_type)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
