//! What the author of a handler sees: the context, the extractors, and what a handler returns.

mod context;
mod error;
mod extract;

pub(crate) use context::{Cancellation, ContextInner};
pub use context::{Context, Headers};
pub(crate) use error::{BoxError, Directive, directive_of, error_text};
pub use error::{HandlerError, HandlerResult, IntoHandlerResult, ResultExt};
pub use extract::{Delivery, ExtractError, FromDelivery, Requirements, State, States};
pub use extract::{Failure, decode_payload, finish};
