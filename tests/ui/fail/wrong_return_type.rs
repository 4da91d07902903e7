use outbox::outbox_handler;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

#[outbox_handler("billing.invoice")]
async fn push(event: Invoice) -> i64 {
    event.cents
}

fn main() {}
