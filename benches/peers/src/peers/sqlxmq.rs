//! sqlxmq: jobs are deleted when they are done, one by one.

use std::time::Duration;

use sqlxmq::{JobBuilder, JobRunnerOptions};

use crate::connect::sqlx08::postgres;
use crate::protocol::{self, INVOICE_SQL, Invoice, Result};
use crate::{Info, Peer};

pub struct This;

impl Peer for This {
    const INFO: Info = Info {
        name: "sqlxmq",
        version: "0.6.0",
        database: "postgres",
        keeps_rows: false,
        variants: &["default", "plain"],
        commands: &["drain", "enqueue"],
    };
    const UNFINISHED: &str = "SELECT count(*) FROM mq_msgs WHERE id <> uuid_nil()";

    async fn setup(url: &str) -> Result {
        let pool = postgres(url, 1).await?;
        sqlx08::raw_sql(include_str!("../../sql/sqlxmq.sql")).execute(&pool).await?;
        Ok(())
    }

    async fn fill(url: &str, events: u64) -> Result {
        let pool = postgres(url, 1).await?;
        let sql = format!(
            "SELECT mq_insert(array_agg(
                 (gen_random_uuid(), interval '0', 4, interval '1 second', '', '', NULL, false, 'invoice',
                  {INVOICE_SQL}, NULL)::mq_new_t))
             FROM generate_series(1, {events}) AS i"
        );
        sqlx08::query(&sql).execute(&pool).await?;
        sqlx08::query("VACUUM ANALYZE").execute(&pool).await?;
        Ok(())
    }

    async fn drain(url: &str, variant: &str) -> Result {
        // Without keep-alive a job that takes longer than its backoff is run again; these take none.
        let plain = variant == "plain";
        let (min, max, connections) = if plain { (16, 32, 32) } else { (200, 500, 20) };
        let pool = postgres(url, connections).await?;
        let mut options = JobRunnerOptions::new(&pool, |mut job| {
            tokio::spawn(async move {
                if job.json::<Invoice>().is_ok_and(|invoice| invoice.is_some()) {
                    protocol::handled();
                    job.complete().await.ok();
                }
            });
        });
        options.set_concurrency(min, max).set_keep_alive(plain);
        protocol::go_and_count();
        let _runner = options.run().await?;
        std::future::pending().await
    }

    async fn enqueue(url: &str, writers: u32, time: Duration) -> Result {
        let pool = postgres(url, writers).await?;
        protocol::write_for(writers, time, move |invoice: Invoice| {
            let pool = pool.clone();
            async move {
                let mut tx = pool.begin().await?;
                JobBuilder::new("invoice").set_json(&invoice)?.spawn(&mut *tx).await?;
                Ok(tx.commit().await?)
            }
        })
        .await
    }
}
