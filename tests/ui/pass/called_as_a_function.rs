//! A handler stays a function: for a test, for another handler, for itself, and as a value.
#![deny(warnings)]

use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Countdown {
    from: u32,
}

#[outbox_handler("pass.countdown")]
async fn countdown(event: Countdown) -> HandlerResult {
    match event.from.checked_sub(1) {
        Some(from) => Box::pin(countdown(Countdown { from })).await,
        None => Err("ignition".into()),
    }
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Start {}

#[outbox_handler("pass.start")]
async fn start(_event: Start) -> HandlerResult {
    countdown(Countdown { from: 3 }).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let function = start;
    assert_eq!(function(Start {}).await.expect_err("it has one").to_string(), "ignition");
}
