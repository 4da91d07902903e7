use outbox::{HandlerResult, outbox_handler};

#[outbox_handler("billing.invoice")]
async fn push(event: (String, i64)) -> HandlerResult {
    let _ = event;
    Ok(())
}

fn main() {}
