use outbox::Event;
use sqlx::PgPool;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Event)]
#[event("billing.invoice")]
struct Invoice {
    cents: i64,
}

async fn push(mut pool: PgPool) -> Result<(), outbox::EnqueueError> {
    outbox::enqueue::<Invoice>(&mut pool, Invoice { cents: 1 }).await?;
    Ok(())
}

fn main() {
    let _ = push;
}
