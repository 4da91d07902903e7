//! The only module that generated code names. Not part of the public API: it changes with the macros, whose version
//! is pinned to this crate's.

use std::future::Future;

pub use crate::handler::{Failure, FromDelivery, decode_payload, finish};
pub use crate::registry::{HandlerDef, HandlerFuture};
pub use crate::upcast::{Upcast, decode_as, schema_of, upcast};
pub use inventory;

/// The one place that asks a handler's future to be `Send`.
pub fn boxed(future: impl Future<Output = Result<(), Failure>> + Send + 'static) -> HandlerFuture {
    Box::pin(future)
}
