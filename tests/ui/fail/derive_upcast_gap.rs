#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, outbox::Event)]
#[event("billing.invoice", version = 4, upcast(1 => from_v1, 3 => from_v1))]
struct Invoice {
    cents: i64,
}

fn from_v1(old: Invoice) -> Invoice {
    old
}

fn main() {}
