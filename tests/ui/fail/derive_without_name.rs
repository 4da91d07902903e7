use outbox::Event;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Event)]
struct Refund {
    cents: i64,
}

fn main() {}
