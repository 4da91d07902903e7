//! Enqueuing many events.

use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
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

/// How many events, and about how many bytes of payload, one statement takes.
const CHUNK_EVENTS: usize = 1000;
const CHUNK_BYTES: usize = 4 * 1024 * 1024;

/// Enqueues any number of events in the caller's transaction, a thousand with each statement. The payloads are taken from
/// the iterator as they are needed, so they need not all be in memory.
///
/// Returns a builder that is awaited; it answers with a [`Receipt`] for each event, in their order.
///
/// ```
/// # use serde::{Deserialize, Serialize};
/// # #[derive(Serialize, Deserialize, schemars::JsonSchema, outbox::Event)]
/// # #[event("doc.enqueue_all")]
/// # struct InvoiceEvent { invoice_id: u64, cents: i64 }
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let outbox = outbox::Outbox::<sqlx::Sqlite>::connect("sqlite::memory:").await?;
/// # outbox.migrate().await?;
/// let mut tx = outbox.begin().await?;
/// let invoices = (0..2500).map(|invoice_id| InvoiceEvent { invoice_id, cents: 4200 });
/// let receipts = outbox::enqueue_all::<InvoiceEvent>(&mut tx, invoices)
///     .dedup_key_of(|invoice| format!("invoice-{}", invoice.invoice_id))
///     .await?;
/// outbox.commit(tx).await?;
/// assert_eq!(receipts.iter().filter(|receipt| !receipt.is_duplicate()).count(), 2500);
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`EnqueueError`]. A payload that is refused names its place; what came before it may be in the transaction already,
/// which is for the caller to roll back.
pub fn enqueue_all<'t, E: Event>(
    tx: &'t mut (impl InTransaction + ?Sized),
    payloads: impl IntoIterator<Item: Borrow<E>, IntoIter: Send + 't>,
) -> EnqueueAll<'t, E> {
    EnqueueAll::new(tx, payloads, Place::without_handle(), Clock::database())
}

/// Events about to be enqueued; await it.
#[must_use = "nothing is enqueued until this is awaited"]
pub struct EnqueueAll<'t, E> {
    target: Box<dyn Target + 't>,
    common: Common,
    /// Pulls the next event through the functions below.
    next: Box<Draw<'t, E>>,
    keys: KeysOf<'t, E>,
    event: PhantomData<fn(E)>,
}

type Draw<'t, E> = dyn FnMut(&KeysOf<'t, E>) -> Option<Drawn> + Send + 't;
type KeyOf<'t, E> = Box<dyn Fn(&E) -> String + Send + Sync + 't>;

/// How an event's keys follow from its payload.
struct KeysOf<'t, E> {
    ordering: Option<KeyOf<'t, E>>,
    dedup: Option<KeyOf<'t, E>>,
    subject: Option<KeyOf<'t, E>>,
}

/// An event as it comes from the iterator.
struct Drawn {
    payload: Result<String, PayloadError>,
    ordering_key: Option<String>,
    dedup_key: Option<String>,
    subject: Option<String>,
}

impl<'t, E: Event> EnqueueAll<'t, E> {
    pub(crate) fn new(
        tx: &'t mut (impl InTransaction + ?Sized),
        payloads: impl IntoIterator<Item: Borrow<E>, IntoIter: Send + 't>,
        place: Place,
        clock: Clock,
    ) -> Self {
        let mut payloads = payloads.into_iter();
        let draw = move |keys: &KeysOf<'t, E>| {
            let payload = payloads.next()?;
            let payload: &E = payload.borrow();
            let key = |key_of: &Option<KeyOf<'t, E>>| key_of.as_ref().map(|key_of| key_of(payload));
            Some(Drawn {
                payload: payload::encode(payload),
                ordering_key: key(&keys.ordering),
                dedup_key: key(&keys.dedup),
                subject: key(&keys.subject),
            })
        };
        Self {
            target: connection_of(tx),
            common: Common::new::<E>(place, clock),
            next: Box::new(draw),
            keys: KeysOf { ordering: None, dedup: None, subject: None },
            event: PhantomData,
        }
    }

    common_methods!();

    /// As [`Enqueue::ordering_key`](crate::Enqueue::ordering_key), from each payload.
    pub fn ordering_key_of(mut self, key_of: impl Fn(&E) -> String + Send + Sync + 't) -> Self {
        self.keys.ordering = Some(Box::new(key_of));
        self
    }

    /// As [`Enqueue::dedup_key`](crate::Enqueue::dedup_key), from each payload. A duplicate keeps no other event out.
    pub fn dedup_key_of(mut self, key_of: impl Fn(&E) -> String + Send + Sync + 't) -> Self {
        self.keys.dedup = Some(Box::new(key_of));
        self
    }

    /// As [`Enqueue::subject`](crate::Enqueue::subject), from each payload.
    pub fn subject_of(mut self, subject_of: impl Fn(&E) -> String + Send + Sync + 't) -> Self {
        self.keys.subject = Some(Box::new(subject_of));
        self
    }

    async fn run(mut self) -> Result<Vec<Receipt>, EnqueueError> {
        let headers = self.common.check()?;
        let mut receipts = Vec::new();
        loop {
            let rows = self.chunk(receipts.len())?;
            if rows.is_empty() {
                break;
            }
            let at = self.common.destination();
            if self.common.strict_order {
                let keys: BTreeSet<&str> =
                    rows.iter().filter_map(|row| row.ordering_key.as_deref()).collect();
                if !keys.is_empty() {
                    self.target.lock_keys(at, &keys).await.map_err(EnqueueError::Database)?;
                }
            }
            let events = self.common.events(headers.as_deref(), &rows);
            receipts.extend(self.target.insert_all(at, &events).await.map_err(EnqueueError::Database)?);
        }
        if receipts.iter().any(|receipt| !receipt.is_duplicate()) {
            nudge::soon();
        }
        Ok(receipts)
    }

    /// The next events, as many as one statement takes. `before`: how many there were.
    fn chunk(&mut self, before: usize) -> Result<Vec<NewRow>, EnqueueError> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < CHUNK_EVENTS && bytes < CHUNK_BYTES {
            let Some(drawn) = (self.next)(&self.keys) else { break };
            let row = self.check(drawn).map_err(|source| EnqueueError::InBulk {
                index: before + rows.len(),
                source: Box::new(source),
            })?;
            bytes += row.payload.len();
            rows.push(row);
        }
        Ok(rows)
    }

    fn check(&self, drawn: Drawn) -> Result<NewRow, EnqueueError> {
        let Drawn { payload, ordering_key, dedup_key, subject } = drawn;
        let payload = check_payload(payload, &*self.target)?;
        check_keys(ordering_key.as_deref(), dedup_key.as_deref(), subject.as_deref())?;
        Ok(NewRow { id: EventId::new(), payload, ordering_key, dedup_key, subject })
    }
}

impl<'t, E: Event> IntoFuture for EnqueueAll<'t, E> {
    type Output = Result<Vec<Receipt>, EnqueueError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 't>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

impl<E> fmt::Debug for EnqueueAll<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnqueueAll").field("event_type", &self.common.event_type).finish_non_exhaustive()
    }
}
