//! What an event can be enqueued in, and as what.
#![deny(warnings)]

use outbox::{EnqueueError, Event, enqueue};
use sqlx::{PgConnection, PgPool, PgTransaction};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Event)]
#[event("pass.enqueue")]
struct Invoice {}

async fn with_a_pool(pool: &PgPool) -> Result<(), Box<dyn std::error::Error>> {
    let mut tx = pool.begin().await?;
    enqueue::<Invoice>(&mut tx, Invoice {}).await?;
    lent(&mut tx).await?;
    on_a_connection(&mut tx).await?;
    tx.commit().await?;
    let mut connection = pool.acquire().await?;
    on_a_connection(&mut connection).await?;
    Ok(())
}

async fn lent(tx: &mut PgTransaction<'_>) -> Result<(), EnqueueError> {
    enqueue::<Invoice>(tx, &Invoice {}).await?;
    enqueue::<Invoice>(tx, Invoice {}).dedup_key("once").await?;
    Ok(())
}

async fn on_a_connection(connection: &mut PgConnection) -> Result<(), EnqueueError> {
    enqueue::<Invoice>(connection, Invoice {}).await.map(drop)
}

fn main() {
    let _: fn(&'static PgPool) -> _ = with_a_pool;
}
