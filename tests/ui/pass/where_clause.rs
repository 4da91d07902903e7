//! A where clause that holds is no generic parameter.
#![deny(warnings)]

use outbox::{HandlerResult, Registry, outbox_handler};

#[derive(Clone, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {}

#[outbox_handler("pass.where")]
async fn push(event: Invoice) -> HandlerResult
where
    Invoice: Clone + Send,
    Vec<Invoice>: IntoIterator<Item = Invoice>,
{
    drop(event.clone());
    Ok(())
}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 1);
}
