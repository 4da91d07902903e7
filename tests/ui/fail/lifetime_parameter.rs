use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    cents: i64,
}

struct Label<'a>(&'a str);

impl outbox::FromDelivery for Label<'_> {
    fn from_delivery(_: &mut outbox::Delivery) -> Result<Self, outbox::ExtractError> {
        Ok(Self("label"))
    }
}

#[outbox_handler("billing.invoice")]
async fn push<'a>(event: Invoice, label: Label<'a>) -> HandlerResult {
    let _ = (event.cents, label.0);
    Ok(())
}

fn main() {}
