//! The only module that generated code names. Not part of the public API: it changes with the macros, whose version
//! is pinned to this crate's.

pub use crate::handler::{Failure, decode_payload, finish};
pub use crate::registry::{HandlerDef, HandlerFuture};
pub use inventory;
