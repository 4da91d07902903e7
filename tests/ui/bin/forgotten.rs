//! A program that depends on a crate of handlers and never names it: the linker leaves them out.

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), outbox::RunError> {
    // No server has this name: the program's handlers are looked at first.
    outbox::run().url("postgres://nowhere.invalid").await?;
    Ok(())
}
