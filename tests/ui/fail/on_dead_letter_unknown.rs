use outbox::outbox_handler;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

#[outbox_handler("billing.invoice", on_dead_letter = "stop")]
async fn invoice(_invoice: Invoice) {}

fn main() {}
