//! Inside of a function, as a test would have it: registered all the same.
#![deny(warnings)]

use outbox::{Registry, outbox_handler};

fn main() {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Outer {}

    #[outbox_handler("pass.outer")]
    async fn handle(_event: Outer) {}

    let nested = || {
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        struct Inner {}

        #[outbox_handler("pass.inner")]
        async fn handle(_event: Inner) {}

        handle(Inner {})
    };
    drop((handle(Outer {}), nested()));
    assert_eq!(Registry::linked().handlers().len(), 2);
}
