//! The tests of `outbox`: `conformance` is the contract, one suite for every database; `processes` kills real ones.

pub mod harness;
pub mod ledger;

pub mod events {
    //! What the test's processes send each other.
    #![allow(missing_docs, reason = "names say it")]

    use outbox::Event;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, Event)]
    #[event("test.order", max_attempts = 3)]
    pub struct Order {
        pub n: u32,
        pub takes_ms: u32,
        pub aborts: bool,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
    #[event("test.left")]
    pub struct Left {
        pub n: u32,
    }

    /// From one account to another. Its handler takes a transaction, whose type names the database: so does the event.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
    #[event("test.transfer.sqlite", max_attempts = 1000)]
    pub struct Transfer {
        pub from: i64,
        pub to: i64,
        pub cents: i64,
    }

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
    #[event("test.transfer.postgres", max_attempts = 1000)]
    pub struct PgTransfer(pub Transfer);

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
    #[event("test.transfer.mysql", max_attempts = 1000)]
    pub struct MyTransfer(pub Transfer);

    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
    #[event("test.right")]
    pub struct Right {
        pub n: u32,
    }
}
