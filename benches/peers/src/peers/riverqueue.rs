//! riverqueue: the rows of finished jobs stay for a day.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use riverqueue::migrate::PostgresMigrator;
use riverqueue::{Client, Job, JobArgs, QueueConfig, WorkContext, WorkOutcome, Workers};

use crate::connect::sqlx09::postgres;
use crate::protocol::{self, Invoice, Result};
use crate::{Info, Peer};

impl JobArgs for Invoice {
    const KIND: &'static str = "invoice";
}

async fn work(_: WorkContext, _: Job<Invoice>) -> std::result::Result<WorkOutcome, Infallible> {
    protocol::handled();
    Ok(WorkOutcome::Complete)
}

async fn store(client: &Client, events: u64) -> Result {
    for chunk in Invoice::chunks(events, 5_000) {
        client.insert_many(chunk).await?;
    }
    Ok(())
}

pub struct This;

impl Peer for This {
    const INFO: Info = Info {
        name: "riverqueue",
        version: "0.5.0",
        database: "postgres",
        keeps_rows: true,
        variants: &["default", "workers10000"],
        commands: &["drain", "enqueue", "bulk"],
    };
    const UNFINISHED: &str = "SELECT count(*) FROM river_job WHERE finalized_at IS NULL";

    async fn setup(url: &str) -> Result {
        PostgresMigrator::new(postgres(url, 2).await?).migrate_up().await?;
        Ok(())
    }

    async fn fill(url: &str, events: u64) -> Result {
        let pool = postgres(url, 2).await?;
        store(&Client::builder(pool.clone()).build()?, events).await?;
        sqlx09::query("VACUUM ANALYZE").execute(&pool).await?;
        Ok(())
    }

    async fn drain(url: &str, variant: &str) -> Result {
        let max = match variant {
            "workers10000" => 10_000,
            _ => 2_000,
        };
        let mut workers = Workers::new();
        workers.add_fn(work)?;
        let client = Client::builder(postgres(url, 10).await?)
            .workers(workers)
            .fetch_cooldown(Duration::from_millis(1))
            .queue("default", QueueConfig::new(max))
            .build()?;
        protocol::go_and_count();
        let _run = client.start()?;
        std::future::pending().await
    }

    async fn enqueue(url: &str, writers: u32, time: Duration) -> Result {
        let pool = postgres(url, writers).await?;
        let client = Client::builder(pool.clone()).build()?;
        protocol::write_for(writers, time, move |invoice| {
            let (pool, client) = (pool.clone(), client.clone());
            async move {
                let mut tx = pool.begin().await?;
                client.insert(invoice).tx(&mut tx).await?;
                Ok(tx.commit().await?)
            }
        })
        .await
    }

    async fn bulk(url: &str, events: u64) -> Result {
        let client = Client::builder(postgres(url, 2).await?).build()?;
        protocol::go();
        let start = Instant::now();
        store(&client, events).await?;
        protocol::enqueued(events, start);
        Ok(())
    }
}
