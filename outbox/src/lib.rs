#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod event;
mod handler;
mod payload;
#[doc(hidden)]
pub mod private;
mod registry;
mod retry;

pub use event::{Event, EventId};
pub use handler::{
    Context, Delivery, ExtractError, FromDelivery, HandlerError, HandlerResult, Headers, IntoHandlerResult,
    Requirements, ResultExt, State, States,
};
pub use outbox_macros::{Event, outbox_handler};
pub use payload::{MAX_DEPTH, MAX_PAYLOAD_BYTES, PayloadError};
pub use registry::{HandlerDef, Registry, RegistryError};
pub use retry::Backoff;
