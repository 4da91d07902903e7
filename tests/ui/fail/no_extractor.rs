use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

#[outbox_handler("billing.invoice")]
async fn push(event: Invoice, database: String) -> HandlerResult {
    let _ = (event.cents, database);
    Ok(())
}

fn main() {}
