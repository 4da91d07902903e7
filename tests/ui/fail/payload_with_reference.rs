use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice<'a> {
    cents: &'a str,
}

#[outbox_handler("billing.invoice")]
async fn push(event: Invoice<'_>) -> HandlerResult {
    let _ = event.cents;
    Ok(())
}

fn main() {}
