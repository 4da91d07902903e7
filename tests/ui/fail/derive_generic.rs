use outbox::Event;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Event)]
#[event("billing.refund")]
struct Refund<T> {
    cents: T,
}

fn main() {}
