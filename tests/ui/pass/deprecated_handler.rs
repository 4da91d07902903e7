//! A handler on its way out still runs, and its registration is no use of it.
#![deny(warnings)]

use outbox::{Registry, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {}

#[outbox_handler("pass.deprecated")]
#[deprecated = "until the last of its events is gone"]
async fn push(_event: Invoice) {}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 1);
}
