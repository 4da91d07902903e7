//! Made by a macro, with any part of the handler as its argument.
#![deny(warnings)]

use outbox::{Registry, outbox_handler};

macro_rules! whole {
    ($($event_type:literal: $payload:ident, $function:ident;)*) => {$(
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        struct $payload {}

        #[outbox_handler($event_type)]
        async fn $function(_event: $payload) {}
    )*};
}

whole! {
    "pass.invoice": Invoice, push;
    "pass.refund": Refund, refund;
}

macro_rules! around {
    ($event_type:literal, $attempts:literal, $backoff:expr, $payload:ty, $result:ty, $body:block) => {
        #[outbox_handler($event_type, max_attempts = $attempts, timeout = "5s", backoff = $backoff)]
        async fn around(event: $payload) -> $result {
            let _ = event;
            $body
        }
    };
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Around {}

around!(
    "pass.around",
    7,
    outbox::Backoff::fixed(std::time::Duration::from_secs(1)),
    self::Around,
    Result<(), String>,
    { Ok(()) }
);

macro_rules! items {
    ($($item:item)*) => { $(#[outbox_handler("pass.item")] $item)* };
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Item {}

items! {
    async fn item(_event: Item) {}
}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 4);
    assert_eq!(<Around as outbox::Event>::MAX_ATTEMPTS, 7);
}
