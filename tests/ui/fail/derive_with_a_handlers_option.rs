use outbox::Event;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Event)]
#[event("billing.refund", timeout = "5s")]
struct Refund {
    cents: i64,
}

fn main() {}
