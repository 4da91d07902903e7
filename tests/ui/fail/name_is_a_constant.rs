use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

#[allow(dead_code)]
const NAME: &str = "billing.invoice";

#[outbox_handler(NAME)]
async fn push(event: Invoice) -> HandlerResult {
    let _ = event.cents;
    Ok(())
}

fn main() {}
