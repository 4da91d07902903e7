//! Every name that is allowed, and options in any order, with a comma at the end or without.
#![deny(warnings)]

use outbox::{Event, Registry, outbox_handler};

macro_rules! payloads {
    ($($name:ident)*) => {$(
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        struct $name {}
    )*};
}
payloads!(Short Digits Long Raw Options);

#[outbox_handler("a")]
async fn short(_: Short) {}

#[outbox_handler("3d.model-v2_final.0")]
async fn digits(_: Digits) {}

#[outbox_handler(
    "a.name.of.200.bytes.xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
)]
async fn long(_: Long) {}

#[outbox_handler(r#"raw.string"#)]
async fn raw(_: Raw) {}

#[outbox_handler(
    "pass.options",
    timeout = "1h30m5s1ms",
    version = 0x10,
    concurrency = 1_000,
    max_attempts = 2147483647
)]
async fn options(_: Options) {}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 5);
    assert_eq!(Long::EVENT_TYPE.len(), 200);
    assert_eq!((Options::VERSION, Options::MAX_ATTEMPTS), (16, i32::MAX as u32));
}
