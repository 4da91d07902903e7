//! hexeract-outbox-sql on PostgreSQL: each event is marked as delivered in a transaction of its own, its row stays.

use std::time::Duration;

use hexeract_core::HandlerContext;
use hexeract_outbox::{Event, Handler, OutboxError, OutboxPublisher};
use hexeract_outbox_sql::postgres::{PgOutboxPublisher, PgOutboxWorkerBuilder, ensure_schema};

use crate::connect::sqlx08::postgres;
use crate::protocol::{self, INVOICE_SQL, Invoice, Result};
use crate::{Info, Peer};

/// The name of the table.
pub const TABLE: &str = "outbox";

impl Event for Invoice {
    const EVENT_TYPE: &'static str = "invoice";
}

/// The handler.
pub struct NoOp;

impl Handler<Invoice> for NoOp {
    type Error = OutboxError;

    async fn handle(&self, _: Invoice, _: &HandlerContext) -> std::result::Result<(), OutboxError> {
        protocol::handled();
        Ok(())
    }
}

pub struct This;

impl Peer for This {
    const INFO: Info = Info {
        name: "hexeract",
        version: "0.6.0",
        database: "postgres",
        keeps_rows: true,
        variants: &["default", "workers1", "workers16"],
        commands: &["drain", "enqueue"],
    };
    const UNFINISHED: &str = "SELECT count(*) FROM outbox WHERE delivered_at IS NULL";

    async fn setup(url: &str) -> Result {
        Ok(ensure_schema(&postgres(url, 1).await?, TABLE).await?)
    }

    async fn fill(url: &str, events: u64) -> Result {
        let pool = postgres(url, 1).await?;
        let sql = format!(
            "INSERT INTO {TABLE} (event_id, event_type, payload)
             SELECT gen_random_uuid(), 'invoice', {INVOICE_SQL}::jsonb FROM generate_series(1, {events}) AS i"
        );
        sqlx08::query(&sql).execute(&pool).await?;
        sqlx08::query("VACUUM ANALYZE").execute(&pool).await?;
        Ok(())
    }

    async fn drain(url: &str, variant: &str) -> Result {
        let workers = match variant {
            "workers1" => 1,
            "workers16" => 16,
            _ => 8,
        };
        let pool = postgres(url, workers).await?;
        let mut prepared = Vec::new();
        for _ in 0..workers {
            let worker = PgOutboxWorkerBuilder::new(pool.clone())
                .table_name(TABLE)
                .batch_size(500)
                .register_handler::<Invoice, _>(NoOp)
                .build()?;
            prepared.push(worker);
        }
        protocol::go_and_count();
        let cancel = tokio_util::sync::CancellationToken::new();
        let running: Vec<_> =
            prepared.into_iter().map(|worker| tokio::spawn(worker.run(cancel.clone()))).collect();
        for worker in running {
            worker.await??;
        }
        Ok(())
    }

    async fn enqueue(url: &str, writers: u32, time: Duration) -> Result {
        let pool = postgres(url, writers).await?;
        let publisher = PgOutboxPublisher::new(pool.clone(), TABLE)?;
        protocol::write_for(writers, time, move |invoice: Invoice| {
            let (pool, publisher) = (pool.clone(), publisher.clone());
            async move {
                let mut tx = pool.begin().await?;
                publisher.publish_in_tx(&mut tx, &invoice).await?;
                Ok(tx.commit().await?)
            }
        })
        .await
    }
}
