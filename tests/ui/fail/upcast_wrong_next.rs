use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
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

fn from_v2(old: String) -> Invoice {
    Invoice { amount: old.len() as i64 }
}

#[outbox_handler("billing.invoice", version = 3, upcast(1 => from_v1, 2 => from_v2))]
async fn push(event: Invoice) -> HandlerResult {
    let _ = event.amount;
    Ok(())
}

fn main() {}
