//! awa: its queue storage appends finished jobs to partitions that are truncated in turn.

use std::time::{Duration, Instant};

use awa::{Client, InsertOpts, JobArgs, JobError, JobResult, QueueConfig, QueueStorage, QueueStorageConfig};
use sqlx08::PgPool;

use crate::connect::sqlx08::postgres;
use crate::protocol::{self, Invoice, Result};
use crate::{Info, Peer};

impl JobArgs for Invoice {
    fn kind() -> &'static str {
        "invoice"
    }
}

async fn store(pool: &PgPool, events: u64) -> Result {
    let storage = QueueStorage::new(QueueStorageConfig::default())?;
    for chunk in Invoice::chunks(events, 5_000) {
        let jobs: std::result::Result<Vec<_>, _> = chunk
            .iter()
            .map(|invoice| awa::model::insert::params_with(invoice, InsertOpts::default()))
            .collect();
        storage.enqueue_params_copy(pool, &jobs?).await?;
    }
    Ok(())
}

pub struct This;

impl Peer for This {
    const INFO: Info = Info {
        name: "awa",
        version: "0.6.9",
        database: "postgres",
        keeps_rows: true,
        variants: &["default", "claimers4"],
        commands: &["drain", "enqueue", "bulk"],
    };
    // The view awa.jobs, which has all, takes seconds. Jobs wait between two cursors; claimed and finished ones are
    // ranges, which are truncated together.
    const UNFINISHED: &str = "SELECT ((SELECT coalesce(sum(awa.sequence_next_value(stored.seq_name) - \
         awa.sequence_next_value(claimed.seq_name)), 0) FROM awa.queue_enqueue_heads AS stored \
         JOIN awa.queue_claim_heads AS claimed USING (queue, priority, enqueue_shard)) \
         + (SELECT coalesce(sum(cardinality(job_ids)), 0) FROM awa.lease_claim_batches) \
         - (SELECT coalesce(sum(upper(one) - lower(one)), 0) FROM awa.lease_claim_closure_batches, \
         unnest(receipt_ranges) AS one) \
         + (SELECT count(*) FROM awa.leases) + (SELECT count(*) FROM awa.deferred_jobs))::bigint";

    async fn setup(url: &str) -> Result {
        let pool = postgres(url, 2).await?;
        awa::migrations::run(&pool).await?;
        // What the first worker does in an empty database: jobs go to the queue storage from the start.
        sqlx08::query("SELECT awa.storage_auto_finalize_if_fresh('awa')").execute(&pool).await?;
        Ok(())
    }

    async fn fill(url: &str, events: u64) -> Result {
        let pool = postgres(url, 2).await?;
        store(&pool, events).await?;
        sqlx08::query("VACUUM ANALYZE").execute(&pool).await?;
        Ok(())
    }

    async fn drain(url: &str, variant: &str) -> Result {
        let (max_workers, claimers, claim_batch_size) = match variant {
            "claimers4" => (400, 4, 512),
            _ => (400, 1, 512),
        };
        let queue = QueueConfig {
            max_workers,
            claimers,
            claim_batch_size,
            poll_interval: Duration::from_millis(50),
            deadline_duration: Duration::ZERO,
            ..QueueConfig::default()
        };
        let client = Client::builder(postgres(url, 20).await?)
            .queue("default", queue)
            .register(|_: Invoice, _| async {
                protocol::handled();
                Ok::<_, JobError>(JobResult::Completed)
            })
            .build()?;
        protocol::go_and_count();
        client.start().await?;
        std::future::pending().await
    }

    async fn enqueue(url: &str, writers: u32, time: Duration) -> Result {
        let pool = postgres(url, writers).await?;
        protocol::write_for(writers, time, move |invoice| {
            let pool = pool.clone();
            async move {
                let mut tx = pool.begin().await?;
                awa::insert(&mut *tx, &invoice).await?;
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
