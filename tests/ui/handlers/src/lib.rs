//! A user's crate of handlers: of another edition, with the dependency renamed, and with every lint on.

use std::time::Duration;

use mailbox::{outbox_handler, Backoff, Context, Event, HandlerResult, State};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Named by its handler.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Invoice {
    /// How much.
    pub cents: i64,
}

/// Named where it stands.
#[derive(Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("ui.refund", version = 2, crate = mailbox)]
pub struct Refund {
    /// How much.
    pub cents: i64,
}

/// Takes all that a handler can.
///
/// # Errors
/// For an invoice of nothing.
#[outbox_handler(
    "ui.invoice",
    max_attempts = 5,
    timeout = "30s",
    concurrency = 8,
    backoff = Backoff::fixed(Duration::from_secs(5)),
    crate = mailbox,
)]
pub async fn push(event: Invoice, ctx: Context, State(log): State<fn(String)>) -> HandlerResult {
    if event.cents == 0 {
        return Err("nothing to push".into());
    }
    std::future::ready(event.cents).await;
    log(ctx.idempotency_key());
    Ok(())
}

#[outbox_handler(crate = mailbox)]
async fn refund(Refund { cents }: Refund) {
    std::future::ready(cents).await;
}
