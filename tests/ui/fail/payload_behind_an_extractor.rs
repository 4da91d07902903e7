use outbox::{Context, HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

#[outbox_handler("billing.invoice")]
async fn push(ctx: Context, event: Invoice) -> HandlerResult {
    let _ = (ctx, event.cents);
    Ok(())
}

fn main() {}
