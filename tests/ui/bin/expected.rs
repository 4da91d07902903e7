//! The same mistake in a program that has a handler of its own, and says which others it expects.

use outbox::outbox_handler;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Own {}

#[outbox_handler("ui.own")]
async fn own(_event: Own) {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), outbox::RunError> {
    let expected = ["ui.own", "ui.invoice", "ui.refund"];
    outbox::run().url("postgres://nowhere.invalid").expect_handlers(expected).await?;
    Ok(())
}
