//! hexeract-outbox-sql on SQLite: each event is marked as delivered in a transaction of its own, its row stays.

use std::time::Duration;

use hexeract_outbox::OutboxPublisher;
use hexeract_outbox_sql::sqlite::{SqliteOutboxPublisher, SqliteOutboxWorkerBuilder, ensure_schema};

use super::hexeract::{NoOp, TABLE};
use crate::connect::sqlx08::sqlite;
use crate::protocol::{self, Invoice, Result};
use crate::{Info, Peer};

pub struct This;

impl Peer for This {
    const INFO: Info = Info {
        name: "hexeract-sqlite",
        version: "0.6.0",
        database: "sqlite",
        keeps_rows: true,
        variants: &["default"],
        commands: &["drain", "enqueue"],
    };
    const UNFINISHED: &str = "SELECT count(*) FROM outbox WHERE delivered_at IS NULL";

    async fn setup(url: &str) -> Result {
        Ok(ensure_schema(&sqlite(url, 1).await?, TABLE).await?)
    }

    async fn fill(url: &str, events: u64) -> Result {
        let pool = sqlite(url, 1).await?;
        let sql = format!(
            "WITH RECURSIVE numbers (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i < {events})
             INSERT INTO {TABLE} (event_id, event_type, payload)
             SELECT randomblob(16), 'invoice',
                    format('{{\"invoice\":%d,\"customer\":\"cus_%08d\",\"cents\":1999,\"currency\":\"EUR\"}}', i, i)
             FROM numbers"
        );
        sqlx08::query(&sql).execute(&pool).await?;
        sqlx08::query("ANALYZE").execute(&pool).await?;
        Ok(())
    }

    async fn drain(url: &str, _: &str) -> Result {
        // One writer at a time is all that SQLite has.
        let worker = SqliteOutboxWorkerBuilder::new(sqlite(url, 2).await?)
            .table_name(TABLE)
            .batch_size(500)
            .register_handler::<Invoice, _>(NoOp)
            .build()?;
        protocol::go_and_count();
        Ok(worker.run(tokio_util::sync::CancellationToken::new()).await?)
    }

    async fn enqueue(url: &str, writers: u32, time: Duration) -> Result {
        let pool = sqlite(url, writers).await?;
        let publisher = SqliteOutboxPublisher::new(pool.clone(), TABLE)?;
        protocol::write_for(writers, time, move |invoice: Invoice| {
            let (pool, publisher) = (pool.clone(), publisher.clone());
            async move {
                let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
                publisher.publish_in_tx(&mut tx, &invoice).await?;
                Ok(tx.commit().await?)
            }
        })
        .await
    }
}
