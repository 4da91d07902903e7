//! apalis on SQLite: the status of tasks is updated, their rows stay.

use std::time::Instant;

use apalis::prelude::*;
use apalis_sqlite::{Config, SqliteStorage};

use crate::connect::sqlx09::sqlite;
use crate::protocol::{self, Invoice, Result};
use crate::{Info, Peer};

fn storage(pool: &sqlx09::SqlitePool, batch: usize) -> SqliteStorage<Invoice> {
    SqliteStorage::new(pool)
        .with_config(Config::default().queue("invoice").batch_size(batch).lock_tasks(false))
}

async fn store(pool: &sqlx09::SqlitePool, events: u64) -> Result {
    let mut storage = storage(pool, 5_000);
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
        name: "apalis-sqlite",
        version: "1.0.0",
        database: "sqlite",
        keeps_rows: true,
        variants: &["default", "batch1000"],
        commands: &["drain", "bulk"],
    };
    const UNFINISHED: &str = "SELECT count(*) FROM Jobs WHERE status <> 'Done'";

    async fn setup(url: &str) -> Result {
        SqliteStorage::setup(&sqlite(url, 1).await?).await?;
        Ok(())
    }

    async fn fill(url: &str, events: u64) -> Result {
        let pool = sqlite(url, 1).await?;
        store(&pool, events).await?;
        sqlx09::query("ANALYZE").execute(&pool).await?;
        Ok(())
    }

    async fn drain(url: &str, variant: &str) -> Result {
        let pool = sqlite(url, 2).await?;
        let batch = if variant == "batch1000" { 1_000 } else { 5_000 };
        let worker = WorkerBuilder::new("drain").backend(storage(&pool, batch)).build(work);
        protocol::go_and_count();
        worker.run().await?;
        Ok(())
    }

    async fn bulk(url: &str, events: u64) -> Result {
        let pool = sqlite(url, 1).await?;
        protocol::go();
        let start = Instant::now();
        store(&pool, events).await?;
        protocol::enqueued(events, start);
        Ok(())
    }
}
