//! The backoff is any constant expression.
#![deny(warnings)]

use std::time::Duration;

use outbox::{Backoff, Registry, outbox_handler};

macro_rules! payloads {
    ($($name:ident)*) => {$(
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        struct $name {}
    )*};
}
payloads!(Constant Call Block Choice);

const SLOW: Backoff = Backoff::fixed(Duration::from_secs(600));

const fn seconds(first: u64) -> Backoff {
    Backoff::exponential(Duration::from_secs(first), Duration::from_secs(60)).jitter(10)
}

#[outbox_handler("pass.constant", backoff = self::SLOW)]
async fn constant(_: Constant) {}

#[outbox_handler("pass.call", backoff = seconds(1 + 2), concurrency = 2)]
async fn call(_: Call) {}

#[outbox_handler(
    "pass.block",
    backoff = {
        let first = 5;
        seconds(first)
    }
)]
async fn block(_: Block) {}

#[outbox_handler("pass.choice", backoff = if cfg!(test) { seconds(1) } else { SLOW })]
async fn choice(_: Choice) {}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 4);
}
