use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

#[outbox_handler("billing.invoice")]
async fn push(event: impl Into<Invoice>) -> HandlerResult {
    let _ = event.into().cents;
    Ok(())
}

fn main() {}
