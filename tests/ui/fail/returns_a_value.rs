use outbox::outbox_handler;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

#[outbox_handler("billing.invoice")]
async fn push(event: Invoice) -> Result<i64, String> {
    Ok(event.cents)
}

fn main() {}
