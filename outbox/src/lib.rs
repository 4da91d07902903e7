#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(any(feature = "mysql", feature = "postgres", feature = "sqlite")),
    allow(
        dead_code,
        unused_imports,
        unused_macros,
        reason = "only a worker calls it, and a worker needs a database"
    )
)]

mod event;
mod handler;
mod payload;
#[doc(hidden)]
pub mod private;
mod readable;
mod registry;
mod retry;
pub mod schema;
mod upcast;

// Everything below needs a database; a crate that only holds payload types or handlers does without.
#[cfg(feature = "sql")]
mod admin;
#[cfg(feature = "sql")]
mod backend;
#[cfg(feature = "sql")]
mod clock;
#[cfg(feature = "sql")]
mod enqueue;
#[cfg(feature = "sql")]
mod handle;
#[cfg(feature = "sql")]
mod migrate;
#[cfg(feature = "sql")]
mod nudge;
#[cfg(feature = "sql")]
mod retry_pause;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod run;
#[cfg(feature = "sql")]
mod schema_name;
#[cfg(feature = "sql")]
mod signals;
#[cfg(feature = "sql")]
mod store;
#[cfg(feature = "sql")]
mod transition;
#[cfg(feature = "sql")]
mod worker;

pub use event::{Event, EventId, OnDeadLetter};
pub use handler::{
    Context, Delivery, ExtractError, FromDelivery, HandlerError, HandlerResult, Headers, IntoHandlerResult,
    Requirements, ResultExt, State, States,
};
pub use outbox_macros::{Event, handler, outbox_handler};
pub use payload::{MAX_DEPTH, MAX_PAYLOAD_BYTES, PayloadError};
pub use registry::{HandlerDef, Registry, RegistryError};
pub use retry::Backoff;

#[cfg(feature = "sql")]
pub use {
    admin::{AdminError, Page, Stats},
    backend::{Backend, BlockedKey, EventRecord, Status, TypeStats, WorkerInfo},
    enqueue::{
        Enqueue, EnqueueAll, EnqueueError, InTransaction, MAX_HEADERS_BYTES, MAX_KEY_BYTES, Receipt, enqueue,
        enqueue_all,
    },
    handle::{ConnectError, Outbox},
    handler::Tx,
    migrate::MigrateError,
    signals::Notifier,
    worker::{BatchOptions, Counts, Processed, Retention, RunError, Worker, WorkerHandle},
};

#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub use run::{Run, run};

#[cfg(all(feature = "sql", feature = "testing"))]
pub use clock::Clock;
