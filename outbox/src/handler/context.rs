//! `Context`: what a handler can know of the event that it runs for.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use super::stop::Cancellation;
use crate::event::EventId;

/// The headers of an event: names and values that the producer gave, such as a trace context.
pub type Headers = BTreeMap<String, String>;

/// The event that a handler runs for. An argument of any handler that asks for it; cheap to clone.
///
/// ```
/// use outbox::{Context, HandlerResult, outbox_handler};
/// # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// # struct Invoice { cents: i64 }
///
/// #[outbox_handler("doc.context")]
/// async fn charge(invoice: Invoice, ctx: Context) -> HandlerResult {
///     // The same key at every attempt: the provider charges once, however often this runs.
///     let key = ctx.idempotency_key();
///     println!("charging {} cents, attempt {} of {}, key {key}", invoice.cents, ctx.attempts() + 1, ctx.max_attempts());
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Context {
    inner: Arc<ContextInner>,
}

#[derive(Debug)]
pub(crate) struct ContextInner {
    pub(crate) event_id: EventId,
    pub(crate) event_type: Box<str>,
    pub(crate) event_version: u32,
    pub(crate) attempts: u32,
    pub(crate) crashes: u32,
    pub(crate) max_attempts: u32,
    pub(crate) created_at: SystemTime,
    pub(crate) raw_headers: Option<String>,
    pub(crate) headers: OnceLock<Headers>,
    pub(crate) cancellation: Cancellation,
}

impl Context {
    pub(crate) fn new(inner: ContextInner) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// The event's id.
    pub fn event_id(&self) -> EventId {
        self.inner.event_id
    }

    /// The name of the event's type as it is stored, such as `billing.invoice`; an older one, if it was enqueued under
    /// an alias.
    pub fn event_type(&self) -> &str {
        &self.inner.event_type
    }

    /// The version of the stored payload.
    pub fn event_version(&self) -> u32 {
        self.inner.event_version
    }

    /// How many attempts were spent before this one: 0 at the first run, 1 at the second.
    pub fn attempts(&self) -> u32 {
        self.inner.attempts
    }

    /// How many workers died while they held this event. A crash spends no attempt until it happens twice.
    pub fn crashes(&self) -> u32 {
        self.inner.crashes
    }

    /// How many attempts this event gets in all.
    pub fn max_attempts(&self) -> u32 {
        self.inner.max_attempts
    }

    /// Whether a failure of this attempt makes the event a dead letter.
    pub fn is_last_attempt(&self) -> bool {
        self.attempts().saturating_add(1) >= self.max_attempts()
    }

    /// When the event was enqueued, by the database's clock, to the millisecond.
    pub fn created_at(&self) -> SystemTime {
        self.inner.created_at
    }

    /// The headers that the producer gave; a value that is no string is its JSON text.
    pub fn headers(&self) -> &Headers {
        self.inner.headers.get_or_init(|| parse_headers(self.inner.raw_headers.as_deref()))
    }

    /// One header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name).map(String::as_str)
    }

    /// A key that is the same at every attempt of this event and differs from every other event's: hand it to a
    /// provider that de-duplicates, since an event can run more than once.
    pub fn idempotency_key(&self) -> String {
        self.inner.event_id.to_string()
    }

    /// Resolves when this run no longer counts: its lease was lost, its time is over, or the worker's grace
    /// time at shutdown ended. The runner drops the handler's future right after; work that the handler moved
    /// to other tasks or threads should watch this and stop.
    pub async fn cancelled(&self) {
        self.inner.cancellation.stopped().await;
    }

    /// Whether [`cancelled`](Self::cancelled) has resolved.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancellation.get().is_some()
    }
}

fn parse_headers(raw: Option<&str>) -> Headers {
    // The column can be written by any program; what is no JSON object has no names to offer.
    let Some(Ok(map)) = raw.map(serde_json::from_str::<BTreeMap<String, serde_json::Value>>) else {
        return Headers::new();
    };
    map.into_iter()
        .map(|(name, value)| match value {
            serde_json::Value::String(text) => (name, text),
            other => (name, other.to_string()),
        })
        .collect()
}
