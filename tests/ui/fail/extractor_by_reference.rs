use outbox::{Context, HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

#[outbox_handler("billing.invoice")]
async fn push(event: Invoice, ctx: &Context) -> HandlerResult {
    let _ = (ctx, event.cents);
    Ok(())
}

fn main() {}
