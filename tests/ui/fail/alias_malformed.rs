use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    amount: i64,
}

#[outbox_handler("billing.invoice", aliases("billing.old", "Billing Invoice"))]
async fn push(event: Invoice) -> HandlerResult {
    let _ = event.amount;
    Ok(())
}

fn main() {}
