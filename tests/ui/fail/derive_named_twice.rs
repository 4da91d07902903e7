use outbox::Event;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Event)]
#[event("billing.refund")]
#[event("billing.refund")]
struct Refund {
    cents: i64,
}

fn main() {}
