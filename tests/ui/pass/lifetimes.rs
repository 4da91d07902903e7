//! Extractors with lifetimes, written out and elided; references that live as long as the program.
#![deny(warnings)]

use std::borrow::Cow;

use outbox::{Delivery, ExtractError, FromDelivery, Registry, State, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Payload<'a> {
    text: Cow<'a, str>,
}

struct Label<'a>(Cow<'a, str>);

impl FromDelivery for Label<'_> {
    fn from_delivery(_: &mut Delivery) -> Result<Self, ExtractError> {
        Ok(Self("label".into()))
    }
}

struct Local;

impl FromDelivery for &'static Local {
    fn from_delivery(_: &mut Delivery) -> Result<Self, ExtractError> {
        Ok(&Local)
    }
}

#[outbox_handler("pass.lifetimes")]
async fn handle(
    event: Payload<'static>,
    elided: Label<'_>,
    written: Label<'static>,
    _reference: &'static Local,
    State(text): State<&'static str>,
) {
    assert!(event.text == text && elided.0 == written.0);
}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 1);
}
