//! A payload's type is written in any way that names one.
#![deny(warnings)]

use outbox::{Registry, outbox_handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, JsonSchema)]
struct Original {}

type Alias = Original;

#[outbox_handler("pass.alias")]
async fn alias(_event: Alias) {}

mod inner {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub(crate) struct Far {}
}

#[outbox_handler("pass.path")]
async fn path(_event: crate::inner::Far) {}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Wrapper<T> {
    inner: T,
}

#[outbox_handler("pass.wrapped")]
async fn wrapped(_event: Wrapper<Original>) {}

#[outbox_handler("pass.wrapped_tuple")]
async fn wrapped_tuple(_event: Wrapper<(Original, [u8; 1 + 1])>) {}

#[derive(Serialize, Deserialize, JsonSchema)]
enum Choice {
    One,
    Two(u32),
    Three { n: u32 },
}

#[outbox_handler("pass.choice")]
async fn choice(event: Choice) {
    assert!(matches!(event, Choice::One | Choice::Two(2) | Choice::Three { n: 3 }));
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Unit;

#[outbox_handler("pass.unit")]
async fn unit(_event: Unit) {}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Tuple(u32, String);

#[outbox_handler("pass.tuple")]
async fn tuple(_event: Tuple) {}

trait Service {
    type Payload;
}

struct Billing;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Projected {}

impl Service for Billing {
    type Payload = Projected;
}

#[outbox_handler("pass.projection")]
async fn projection(_event: <Billing as Service>::Payload) {}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 8);
}
