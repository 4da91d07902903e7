//! outbox-core with outbox-postgres: the status of events is updated, a garbage collection deletes them days later.

use std::sync::Arc;
use std::time::Duration;

use outbox_core::prelude::*;
use outbox_postgres::{PostgresOutbox, PostgresWriter};

use crate::connect::sqlx08::postgres;
use crate::protocol::{self, INVOICE_SQL, Invoice, Result};
use crate::{Info, Peer};

struct NoOp;

#[async_trait::async_trait]
impl Transport<Invoice> for NoOp {
    async fn publish(&self, _: Event<Invoice>) -> std::result::Result<(), OutboxError> {
        protocol::handled();
        Ok(())
    }
}

pub struct This;

impl Peer for This {
    const INFO: Info = Info {
        name: "outbox-core",
        version: "0.6.0",
        database: "postgres",
        keeps_rows: true,
        variants: &["default", "managers1", "batch100"],
        commands: &["drain", "enqueue"],
    };
    const UNFINISHED: &str = "SELECT count(*) FROM outbox_events WHERE status <> 'Sent'";

    async fn setup(url: &str) -> Result {
        let pool = postgres(url, 1).await?;
        sqlx08::raw_sql(include_str!("../../sql/outbox-postgres.sql")).execute(&pool).await?;
        Ok(())
    }

    async fn fill(url: &str, events: u64) -> Result {
        let pool = postgres(url, 1).await?;
        let sql = format!(
            "INSERT INTO outbox_events (event_type, payload)
             SELECT 'invoice', {INVOICE_SQL}::jsonb FROM generate_series(1, {events}) AS i"
        );
        sqlx08::query(&sql).execute(&pool).await?;
        sqlx08::query("VACUUM ANALYZE").execute(&pool).await?;
        Ok(())
    }

    async fn drain(url: &str, variant: &str) -> Result {
        let (managers, batch_size) = match variant {
            "managers1" => (1, 5_000),
            "batch100" => (2, 100),
            _ => (2, 5_000),
        };
        let pool = postgres(url, managers * 2).await?;
        let mut config = OutboxConfig::default();
        config.batch_size = batch_size;
        config.poll_interval_secs = 1;
        let config = Arc::new(config);
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let mut prepared = Vec::new();
        for _ in 0..managers {
            let manager = OutboxManagerBuilder::new()
                .storage(Arc::new(PostgresOutbox::new(pool.clone(), config.clone())))
                .publisher(Arc::new(NoOp))
                .config(config.clone())
                .shutdown_rx(stopped.clone())
                .build()?;
            prepared.push(manager);
        }
        protocol::go_and_count();
        let running: Vec<_> = prepared.into_iter().map(|manager| tokio::spawn(manager.run())).collect();
        for manager in running {
            manager.await??;
        }
        drop(stop);
        Ok(())
    }

    async fn enqueue(url: &str, writers: u32, time: Duration) -> Result {
        let pool = postgres(url, writers).await?;
        let service =
            Arc::new(OutboxService::new(Arc::new(PostgresWriter), Arc::new(OutboxConfig::default())));
        protocol::write_for(writers, time, move |invoice: Invoice| {
            let (pool, service) = (pool.clone(), service.clone());
            async move {
                let mut tx = pool.begin().await?;
                service.add_event("invoice", invoice, None, &mut *tx).await?;
                Ok(tx.commit().await?)
            }
        })
        .await
    }
}
