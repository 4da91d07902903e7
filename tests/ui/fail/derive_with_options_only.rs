use outbox::Event;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Event)]
#[event(max_attempts = 5)]
struct Refund {
    cents: i64,
}

fn main() {}
