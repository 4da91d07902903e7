//! Enqueue: a typed payload becomes a row, in the caller's own transaction.

mod all;
mod check;
mod common;
mod one;
mod target;
mod transaction;

pub use all::{EnqueueAll, enqueue_all};
pub use check::{EnqueueError, MAX_HEADERS_BYTES, MAX_KEY_BYTES};
pub use one::{Enqueue, enqueue};
pub use transaction::InTransaction;

use crate::backend::data::Status;
use crate::event::EventId;

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
