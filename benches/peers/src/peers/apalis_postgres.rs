//! apalis on PostgreSQL: the status of tasks is updated, their rows stay.

use std::time::{Duration, Instant};

use apalis::prelude::*;
use apalis_postgres::{Config, PostgresStorage};

use crate::connect::sqlx09::postgres;
use crate::protocol::{self, Invoice, Result};
use crate::{Info, Peer};

const QUEUE: &str = "invoice";

fn storage(pool: &sqlx09::PgPool) -> PostgresStorage<Invoice> {
    PostgresStorage::new(pool).with_config(Config::default().queue(QUEUE).batch_size(5_000).lock_tasks(false))
}

async fn store(pool: &sqlx09::PgPool, events: u64) -> Result {
    let mut storage = storage(pool);
    for chunk in Invoice::chunks(events, 5_000) {
        storage.push_bulk(chunk).await?;
    }
    Ok(())
}

async fn work(_: Invoice) -> std::result::Result<(), BoxDynError> {
    protocol::handled();
    Ok(())
}

pub struct This;

impl Peer for This {
    const INFO: Info = Info {
        name: "apalis-postgres",
        version: "1.0.0",
        database: "postgres",
        keeps_rows: true,
        variants: &["default", "parallel"],
        commands: &["drain", "enqueue", "bulk"],
    };
    const UNFINISHED: &str = "SELECT count(*) FROM apalis.jobs WHERE status <> 'Done'";

    async fn setup(url: &str) -> Result {
        PostgresStorage::setup(&postgres(url, 2).await?).await?;
        Ok(())
    }

    async fn fill(url: &str, events: u64) -> Result {
        let pool = postgres(url, 2).await?;
        store(&pool, events).await?;
        sqlx09::query("VACUUM ANALYZE").execute(&pool).await?;
        Ok(())
    }

    async fn drain(url: &str, variant: &str) -> Result {
        let pool = postgres(url, 10).await?;
        let worker = WorkerBuilder::new("drain").backend(storage(&pool).with_pubsub());
        if variant == "parallel" {
            let worker = worker.parallelize(tokio::spawn).build(work);
            protocol::go_and_count();
            worker.run().await?;
        } else {
            let worker = worker.build(work);
            protocol::go_and_count();
            worker.run().await?;
        }
        Ok(())
    }

    async fn enqueue(url: &str, writers: u32, time: Duration) -> Result {
        let pool = postgres(url, writers).await?;
        protocol::write_for(writers, time, move |invoice| {
            let pool = pool.clone();
            async move {
                let mut tx = pool.begin().await?;
                let task = TaskBuilder::new(serde_json::to_vec(&invoice)?).build();
                apalis_postgres::queries::push_tasks(&mut *tx, QUEUE, vec![task]).await?;
                Ok(tx.commit().await?)
            }
        })
        .await
    }

    async fn bulk(url: &str, events: u64) -> Result {
        let pool = postgres(url, 2).await?;
        protocol::go();
        let start = Instant::now();
        store(&pool, events).await?;
        protocol::enqueued(events, start);
        Ok(())
    }
}
