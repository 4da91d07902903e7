use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

struct Service;

impl Service {
    #[outbox_handler("billing.invoice")]
    async fn push(&self, event: Invoice) -> HandlerResult {
        let _ = event.cents;
        Ok(())
    }
}

fn main() {}
