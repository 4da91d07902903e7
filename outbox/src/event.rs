//! What an event is: a typed payload with a name, and the id of one stored event.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::upcast::Upcast;

/// A payload type with the name it is stored under.
///
/// Implemented by `#[outbox_handler("billing.invoice")]` for the handler's payload, or, in a crate that only
/// holds payload types, by `#[derive(Event)]`. The version and the attempts are constants of the event, so a
/// producer that links no handler writes the right ones.
///
/// ```
/// use outbox::Event;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, schemars::JsonSchema, Event)]
/// #[event("billing.invoice", max_attempts = 5)]
/// struct InvoiceEvent {
///     invoice_id: u64,
///     cents: i64,
/// }
///
/// assert_eq!(InvoiceEvent::EVENT_TYPE, "billing.invoice");
/// assert_eq!(InvoiceEvent::MAX_ATTEMPTS, 5);
/// ```
///
/// # A payload that changes
///
/// What decodes into the new struct as well needs nothing: a new field with `#[serde(default)]`, a wider number. Else the
/// version goes up by one, the old struct stays, and a function leads from the one to the other; each such function takes
/// the version before its successor's, so that none has to change again. It may return a `Result`: an event that it
/// refuses becomes a dead letter, like one that does not decode.
///
/// ```
/// # use outbox::Event;
/// # use serde::{Deserialize, Serialize};
/// # use schemars::JsonSchema;
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct InvoiceV1 {
///     cents: i64,
/// }
///
/// #[derive(Serialize, Deserialize, JsonSchema, Event)]
/// #[event("billing.invoice_issued", version = 2, upcast(1 => from_v1), aliases("billing.invoice_created"))]
/// struct Invoice {
///     amount: String,
///     currency: String,
/// }
///
/// fn from_v1(old: InvoiceV1) -> Invoice {
///     Invoice { amount: format!("{}.{:02}", old.cents / 100, old.cents % 100), currency: "EUR".to_owned() }
/// }
/// ```
///
/// An older program leaves newer versions alone, so workers can be replaced one by one. [`schema::check`] is the test that
/// finds the change that somebody forgot to give a version.
///
/// [`schema::check`]: crate::schema::check
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an outbox event",
    label = "this payload has no event type",
    note = "name the event in its handler's attribute, `#[outbox_handler(\"billing.invoice\")]`, or derive it: `#[derive(Event)] #[event(\"billing.invoice\")]`"
)]
pub trait Event: Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    /// The name under which events of this type are stored and handled, such as `billing.invoice`.
    const EVENT_TYPE: &'static str;
    /// The version of the payload's shape that this type writes, from 1.
    const VERSION: u32 = 1;
    /// How many attempts an event gets before it is a dead letter.
    const MAX_ATTEMPTS: u32 = 10;
    /// What becomes of an event's ordering key, if it has one, when the event becomes a dead letter.
    const ON_DEAD_LETTER: OnDeadLetter = OnDeadLetter::Continue;
    /// Names that the type had before: events that are stored under them are handled as well. Enqueuing writes the
    /// new name, and looks for a dedup key under the new name alone.
    const ALIASES: &'static [&'static str] = &[];
    /// How older versions are read, as `upcast(1 => from_v1)` says. None: as the payload itself.
    #[doc(hidden)]
    const UPCASTS: &'static [Upcast<Self>] = &[];
}

/// Every name under which events of a type are stored, the present one first.
pub(crate) fn names(
    event_type: &'static str,
    aliases: &'static [&'static str],
) -> impl Iterator<Item = &'static str> {
    std::iter::once(event_type).chain(aliases.iter().copied())
}

/// What becomes of an ordering key when one of its events becomes a dead letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDeadLetter {
    /// The next event of the key goes on.
    #[default]
    Continue,
    /// The key stands still until the dead letter is requeued, discarded or pruned; see
    /// `Outbox::blocked_keys`.
    Block,
}

/// The id of one stored event: a UUID, version 7 where this library makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(Uuid);

impl EventId {
    /// A new id in time order (UUIDv7).
    #[expect(clippy::new_without_default, reason = "a default that differs at every call would surprise")]
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }

    /// The UUID itself.
    pub fn as_uuid(&self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for EventId {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl From<EventId> for Uuid {
    fn from(id: EventId) -> Self {
        id.0
    }
}

impl FromStr for EventId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
