//! Under the lints of a crate that wants to know everything; clippy's are held against the crate `handlers`.
#![deny(
    warnings,
    future_incompatible,
    keyword_idents,
    let_underscore,
    missing_copy_implementations,
    missing_debug_implementations,
    missing_docs,
    nonstandard_style,
    rust_2018_idioms,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unreachable_pub,
    unused,
    unused_crate_dependencies,
    unused_import_braces,
    unused_lifetimes,
    unused_qualifications,
    unused_results,
    variant_size_differences
)]
#![allow(unused_crate_dependencies, reason = "those of the other cases")]
#![forbid(unsafe_code)]

use outbox::{Backoff, Context, Event, HandlerResult, State, outbox_handler};
use std::time::Duration;

/// A payload.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Invoice {
    /// How much.
    pub cents: i64,
}

/// With everything.
#[outbox_handler(
    "pass.strict",
    max_attempts = 5,
    version = 2,
    timeout = "30s",
    concurrency = 8,
    backoff = Backoff::fixed(Duration::from_secs(1))
)]
pub async fn push(event: Invoice, ctx: Context, State(name): State<&'static str>) -> HandlerResult {
    if event.cents == 0 { Err(format!("{name}: {}", ctx.event_id()).into()) } else { Ok(()) }
}

/// Named where it stands.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema, Event)]
#[event("pass.derived", version = 2, max_attempts = 5)]
pub struct Refund;

#[outbox_handler]
async fn refund(_: Refund) {}

fn main() {}
