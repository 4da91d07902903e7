use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

#[outbox_handler("billing.invoice")]
async fn push(event: Invoice) -> HandlerResult {
    let shared = std::rc::Rc::new(event.cents);
    std::future::ready(()).await;
    drop(shared);
    Ok(())
}

fn main() {}
