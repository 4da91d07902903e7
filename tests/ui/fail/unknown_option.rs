use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

#[outbox_handler("billing.invoice", retries = 5)]
async fn push(event: Invoice) -> HandlerResult {
    let _ = event.cents;
    Ok(())
}

fn main() {}
