//! `#[derive(Event)]` on every kind of type, and the bare attribute in any of its forms.
#![deny(warnings)]

use outbox::{Event, Registry, outbox_handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema, Event)]
#[event("pass.fields")]
struct Fields {
    n: u32,
}

#[outbox_handler]
async fn fields(event: Fields) {
    assert_eq!(event.n, 0);
}

/// Derives and their attributes stand in any order.
#[derive(Event)]
#[event("pass.tuple", max_attempts = 3, version = 2)]
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
struct Tuple(u32);

#[outbox_handler()]
async fn tuple(_event: Tuple) {}

#[derive(Serialize, Deserialize, JsonSchema, outbox::Event)]
#[event("pass.unit")]
struct Unit;

#[outbox_handler(timeout = "5s")]
async fn unit(_event: Unit) {}

#[derive(Serialize, Deserialize, JsonSchema, Event)]
#[event("pass.choice", version = 4)]
#[serde(tag = "kind")]
enum Choice {
    One,
    Two { n: u32 },
}

#[outbox_handler(concurrency = 1)]
async fn choice(event: Choice) {
    assert!(matches!(event, Choice::One | Choice::Two { n: 0 }));
}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 4);
    assert_eq!((Tuple::EVENT_TYPE, Tuple::VERSION, Tuple::MAX_ATTEMPTS), ("pass.tuple", 2, 3));
    assert_eq!((Choice::VERSION, Choice::MAX_ATTEMPTS), (4, 10));
}
