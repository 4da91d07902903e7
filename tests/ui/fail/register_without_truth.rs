use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    amount: i64,
}

#[outbox_handler("billing.invoice", register = "no")]
async fn push(event: Invoice) -> HandlerResult {
    let _ = event.amount;
    Ok(())
}

fn main() {}
