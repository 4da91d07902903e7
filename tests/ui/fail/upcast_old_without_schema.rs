use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Deserialize)]
struct InvoiceV1 {
    cents: i64,
}

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    amount: i64,
}

fn from_v1(old: InvoiceV1) -> Invoice {
    Invoice { amount: old.cents }
}

#[outbox_handler("billing.invoice", version = 2, upcast(1 => from_v1))]
async fn push(event: Invoice) -> HandlerResult {
    let _ = event.amount;
    Ok(())
}

fn main() {}
