//! A handler that is compiled out leaves nothing behind: nothing that it names is there.
#![deny(warnings)]

use outbox::{Registry, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Chosen {}

#[cfg(any())]
#[outbox_handler("pass.above", backoff = NOT_THERE)]
async fn above(_: NotThere, _: NeitherThere) -> NotThereEither {}

#[outbox_handler("pass.below", backoff = NOT_THERE)]
#[cfg(any())]
async fn below(_: NotThere, _: NeitherThere) -> NotThereEither {}

#[outbox_handler("pass.twice")]
#[cfg(all())]
#[cfg(any())]
async fn twice(_: NotThere) {}

#[outbox_handler("pass.chosen")]
#[cfg(all())]
async fn chosen(_: Chosen) {}

#[outbox_handler("pass.chosen")]
#[cfg(not(all()))]
async fn chosen(_: Chosen) {}

fn main() {
    let registry = Registry::linked();
    assert!(matches!(registry.handlers(), [only] if only.event_type() == "pass.chosen"));
}
