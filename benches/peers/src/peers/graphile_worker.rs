//! graphile_worker: jobs are deleted when they are done.

use std::time::{Duration, Instant};

use graphile_worker::{
    IntoTaskHandlerResult, JobSpec, LocalQueueConfig, TaskHandler, WorkerContext, WorkerOptions, WorkerUtils,
};

use crate::connect::sqlx09::postgres;
use crate::protocol::{self, Invoice, Result};
use crate::{Info, Peer};

const SCHEMA: &str = "graphile_worker";

impl TaskHandler for Invoice {
    const IDENTIFIER: &'static str = "invoice";

    async fn run(self, _: WorkerContext) -> impl IntoTaskHandlerResult {
        protocol::handled();
        Ok::<(), String>(())
    }
}

async fn store(utils: &WorkerUtils, events: u64) -> Result {
    let spec = JobSpec::default();
    for chunk in Invoice::chunks(events, 5_000) {
        let jobs: Vec<_> = chunk.into_iter().map(|invoice| (invoice, &spec)).collect();
        utils.add_jobs(&jobs).await?;
    }
    Ok(())
}

/// The tasks must be known before jobs of them are added; a worker registers them.
async fn utils(pool: &sqlx09::PgPool) -> Result<WorkerUtils> {
    let worker =
        WorkerOptions::default().pg_pool(pool.clone()).schema(SCHEMA).define_job::<Invoice>().init().await?;
    Ok(worker.create_utils())
}

pub struct This;

impl Peer for This {
    const INFO: Info = Info {
        name: "graphile_worker",
        version: "0.14.1",
        database: "postgres",
        keeps_rows: false,
        variants: &["default", "queues4"],
        commands: &["drain", "enqueue", "bulk"],
    };
    const UNFINISHED: &str = "SELECT count(*) FROM graphile_worker._private_jobs";

    async fn setup(url: &str) -> Result {
        let pool = postgres(url, 2).await?;
        WorkerUtils::new(pool, SCHEMA).migrate().await?;
        Ok(())
    }

    async fn fill(url: &str, events: u64) -> Result {
        let pool = postgres(url, 2).await?;
        store(&utils(&pool).await?, events).await?;
        sqlx09::query("VACUUM ANALYZE").execute(&pool).await?;
        Ok(())
    }

    async fn drain(url: &str, variant: &str) -> Result {
        let (size, queues) = if variant == "queues4" { (1_250, 4) } else { (2_000, 1) };
        let worker = WorkerOptions::default()
            .pg_pool(postgres(url, 10).await?)
            .schema(SCHEMA)
            .concurrency(100)
            .local_queue(LocalQueueConfig::default().with_size(size).with_queue_count(queues))
            .complete_job_batch_delay(Duration::from_millis(5))
            .fail_job_batch_delay(Duration::from_millis(5))
            .define_job::<Invoice>()
            .init()
            .await?;
        protocol::go_and_count();
        worker.run().await?;
        Ok(())
    }

    async fn enqueue(url: &str, writers: u32, time: Duration) -> Result {
        let pool = postgres(url, writers).await?;
        let utils = utils(&pool).await?;
        protocol::write_for(writers, time, move |invoice| {
            let (pool, utils) = (pool.clone(), utils.clone());
            async move {
                let mut tx = pool.begin().await?;
                utils.with_executor(&mut tx).add_job(invoice, JobSpec::default()).await?;
                Ok(tx.commit().await?)
            }
        })
        .await
    }

    async fn bulk(url: &str, events: u64) -> Result {
        let utils = utils(&postgres(url, 2).await?).await?;
        protocol::go();
        let start = Instant::now();
        store(&utils, events).await?;
        protocol::enqueued(events, start);
        Ok(())
    }
}
