//! underway: each task is taken, run and finished alone; its row stays for two weeks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx08::{PgPool, Postgres, Transaction};
use underway::{Queue, Task, Worker};

use crate::connect::sqlx08::postgres;
use crate::protocol::{self, Invoice, Result};
use crate::{Info, Peer};

#[derive(Clone)]
struct NoOp;

impl Task for NoOp {
    type Input = Invoice;
    type Output = ();

    async fn execute(&self, _: Transaction<'_, Postgres>, _: Invoice) -> underway::task::Result<()> {
        protocol::handled();
        Ok(())
    }
}

async fn queue(pool: &PgPool) -> Result<Queue<NoOp>> {
    Ok(Queue::builder().name("invoice").pool(pool.clone()).build().await?)
}

pub struct This;

impl Peer for This {
    const INFO: Info = Info {
        name: "underway",
        version: "0.2.0",
        database: "postgres",
        keeps_rows: true,
        variants: &["default", "workers4"],
        commands: &["drain", "enqueue", "bulk"],
    };
    const UNFINISHED: &str = "SELECT count(*) FROM underway.task WHERE state <> 'succeeded'";

    async fn setup(url: &str) -> Result {
        let pool = postgres(url, 1).await?;
        underway::run_migrations(&pool).await?;
        queue(&pool).await?;
        Ok(())
    }

    async fn fill(url: &str, events: u64) -> Result {
        let pool = postgres(url, 2).await?;
        let invoices: Vec<_> = (0..events).map(Invoice::new).collect();
        queue(&pool).await?.enqueue_multi(&pool, &NoOp, &invoices).await?;
        sqlx08::query("VACUUM ANALYZE").execute(&pool).await?;
        Ok(())
    }

    async fn drain(url: &str, variant: &str) -> Result {
        let workers = if variant == "workers4" { 4 } else { 16 };
        // Two listeners and a connection for each.
        let pool = postgres(url, workers * 4).await?;
        let queue = Arc::new(queue(&pool).await?);
        protocol::go_and_count();
        let running: Vec<_> = (0..workers)
            .map(|_| {
                let worker = Worker::new(queue.clone(), NoOp);
                tokio::spawn(async move { worker.run().await })
            })
            .collect();
        for worker in running {
            worker.await??;
        }
        Ok(())
    }

    async fn enqueue(url: &str, writers: u32, time: Duration) -> Result {
        let pool = postgres(url, writers).await?;
        let queue = Arc::new(queue(&pool).await?);
        protocol::write_for(writers, time, move |invoice| {
            let (pool, queue) = (pool.clone(), queue.clone());
            async move {
                let mut tx = pool.begin().await?;
                queue.enqueue(&mut *tx, &NoOp, &invoice).await?;
                Ok(tx.commit().await?)
            }
        })
        .await
    }

    async fn bulk(url: &str, events: u64) -> Result {
        let pool = postgres(url, 2).await?;
        let queue = queue(&pool).await?;
        protocol::go();
        let start = Instant::now();
        let invoices: Vec<_> = (0..events).map(Invoice::new).collect();
        queue.enqueue_multi(&pool, &NoOp, &invoices).await?;
        protocol::enqueued(events, start);
        Ok(())
    }
}
