//! What the author of a handler sees: the context, the extractors, and what a handler returns.

mod context;
mod error;
mod extract;
mod stop;
#[cfg(feature = "sql")]
mod tx;

#[cfg(feature = "sql")]
pub(crate) use context::ContextInner;
pub use context::{Context, Headers};
pub(crate) use error::{BoxError, error_text};
#[cfg(feature = "sql")]
pub(crate) use error::{Directive, MAX_ERROR_BYTES, directive_of, scrub};
pub use error::{HandlerError, HandlerResult, IntoHandlerResult, ResultExt};
pub(crate) use extract::TransactionOf;
pub use extract::{Delivery, ExtractError, FromDelivery, Requirements, State, States};
pub use extract::{Failure, decode_payload, finish};
#[cfg(feature = "sql")]
pub(crate) use stop::{Cancellation, Stop};
#[cfg(feature = "sql")]
pub(crate) use tx::Home;
#[cfg(feature = "sql")]
pub use tx::Tx;
