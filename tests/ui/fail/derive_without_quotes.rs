use outbox::Event;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Event)]
#[event(billing.refund, max_attempts = 5)]
struct Refund {
    cents: i64,
}

fn main() {}
