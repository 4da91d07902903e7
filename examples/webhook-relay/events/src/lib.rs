//! The payloads of the webhook relay: what GitHub sends, as far as this relay wants to know it.
//!
//! Each type names its event with `#[derive(Event)]`, so that the receiver can enqueue it without a handler in sight,
//! and a handler can take it without naming it again. Fields that GitHub sends now and then are `Option`s; what is not
//! named here is ignored, so that a new field at GitHub breaks nothing.
#![allow(missing_docs, reason = "the fields are GitHub's and described at https://docs.github.com/webhooks")]

mod actions;
mod issues;
mod parts;
mod pull_request;
mod repository;

pub use actions::*;
pub use issues::*;
pub use parts::*;
pub use pull_request::*;
pub use repository::*;

/// A payload that can say in one line what happened.
pub trait Summary {
    fn summary(&self) -> String;
}
