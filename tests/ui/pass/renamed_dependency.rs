//! The crate under another name, and re-exported by the user's own.
#![deny(warnings)]

extern crate outbox as mailbox;

mod prelude {
    pub(crate) use mailbox;
    pub(crate) use mailbox::{Event, outbox_handler};
}

use prelude::{Event, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {}

#[outbox_handler("pass.invoice", timeout = "5s", crate = mailbox)]
async fn push(_event: Invoice, _ctx: mailbox::Context) {}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Event)]
#[event("pass.refund", crate = crate::prelude::mailbox)]
struct Refund {}

#[outbox_handler(crate = prelude::mailbox)]
async fn refund(_event: Refund) {}

fn main() {
    assert_eq!(mailbox::Registry::linked().handlers().len(), 2);
}
