//! What can be said of one event as of many.

use crate::backend::Place;
use crate::backend::data::{NewEvents, NewRow};
use crate::clock::Clock;
use crate::enqueue::check::{EnqueueError, check_attempts, check_key, encode_headers};
use crate::enqueue::target::Where;
use crate::event::{Event, OnDeadLetter};
use crate::handler::Headers;
use crate::schema_name;

#[derive(Debug)]
pub(super) struct Common {
    pub(super) place: Place,
    pub(super) clock: Clock,
    pub(super) event_type: &'static str,
    pub(super) version: u32,
    pub(super) headers: Headers,
    pub(super) max_attempts: u32,
    pub(super) available_at: Option<i64>,
    pub(super) delay_ms: i64,
    pub(super) on_dead_letter: OnDeadLetter,
    pub(super) strict_order: bool,
}

impl Common {
    pub(super) fn new<E: Event>(place: Place, clock: Clock) -> Self {
        Self {
            place,
            clock,
            event_type: E::EVENT_TYPE,
            version: E::VERSION,
            headers: Headers::new(),
            max_attempts: E::MAX_ATTEMPTS,
            available_at: None,
            delay_ms: 0,
            on_dead_letter: E::ON_DEAD_LETTER,
            strict_order: false,
        }
    }

    /// What these rows have in common.
    pub(super) fn events<'a>(&'a self, headers: Option<&'a str>, rows: &'a [NewRow]) -> NewEvents<'a> {
        NewEvents {
            event_type: self.event_type,
            version: self.version,
            headers,
            max_attempts: self.max_attempts,
            available_at: self.available_at,
            delay_ms: self.delay_ms,
            on_dead_letter: self.on_dead_letter,
            rows,
        }
    }

    /// Where they go.
    pub(super) fn destination(&self) -> Where<'_> {
        Where { place: &self.place, now: self.clock.now_ms() }
    }

    /// Refuses what is impossible; the headers as they are stored.
    pub(super) fn check(&self) -> Result<Option<String>, EnqueueError> {
        if let Some(schema) = &self.place.schema {
            schema_name::check(schema).map_err(EnqueueError::Schema)?;
        }
        check_attempts(self.max_attempts)?;
        check_key("event type", self.event_type)?;
        encode_headers(&self.headers)
    }
}

/// The setters of both builders, on a field `common`.
macro_rules! common_methods {
    () => {
        /// Not due before this long from now, by the database's clock; to the millisecond.
        pub fn delay(mut self, delay: std::time::Duration) -> Self {
            self.common.delay_ms = crate::backend::data::duration_ms(delay);
            self
        }

        /// Not due before this time, by the database's clock; to the millisecond. A time that is past: now.
        pub fn available_at(mut self, time: std::time::SystemTime) -> Self {
            self.common.available_at = Some(crate::backend::data::to_ms(time));
            self
        }

        /// How many attempts an event gets, instead of its type's.
        pub fn max_attempts(mut self, attempts: u32) -> Self {
            self.common.max_attempts = attempts;
            self
        }

        /// A header, for the handler's [`Context`](crate::Context): a trace context, a tenant.
        pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
            self.common.headers.insert(name.into(), value.into());
            self
        }

        /// What becomes of the ordering key if the event becomes a dead letter, instead of what its type says.
        pub fn on_dead_letter(mut self, then: crate::OnDeadLetter) -> Self {
            self.common.on_dead_letter = then;
            self
        }

        /// Transactions that enqueue with the same ordering key wait for each other, so that its events commit, and
        /// run, in the order in which they were enqueued. Without this, of two transactions side by side the one that
        /// enqueued later may commit first, and then its event may run first. Needs a transaction: it holds the key
        /// until that ends; now and then two keys share what is held. No effect on SQLite, which writes one transaction at
        /// a time.
        pub fn strict_order(mut self) -> Self {
            self.common.strict_order = true;
            self
        }

        /// The schema of the outbox's tables; see [`Outbox::schema`](crate::Outbox::schema).
        pub fn schema(mut self, name: impl Into<String>) -> Self {
            self.common.place.schema = Some(name.into().into());
            self
        }
    };
}
pub(super) use common_methods;
