use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

fn from_the_environment() -> outbox::Backoff {
    outbox::Backoff::fixed(std::time::Duration::from_secs(5))
}

#[outbox_handler("billing.invoice", backoff = from_the_environment())]
async fn push(event: Invoice) -> HandlerResult {
    let _ = event.cents;
    Ok(())
}

fn main() {}
