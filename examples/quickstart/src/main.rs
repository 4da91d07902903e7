//! A small billing service: customers order, and a payment provider that fails now and then charges their cards.
//!
//! `cargo run -p quickstart` needs nothing but Rust; with `--features postgres` it uses the server of `DATABASE_URL`. It takes a few seconds, ends by itself, and exits with 0 only if
//! every order that was committed was charged exactly once. Read `billing.rs` first.

mod billing;
#[cfg_attr(feature = "postgres", path = "database/postgres.rs")]
#[cfg_attr(not(feature = "postgres"), path = "database/sqlite.rs")]
mod database;
mod provider;
mod report;

use std::error::Error;
use std::time::Duration;

use crate::billing::Order;
use crate::database::Db;
use crate::provider::Provider;

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let provider = Provider::start().await?;
    println!("payment provider at {}", provider.url());

    let outbox = database::open().await?.state(provider.client()?);
    billing::make_tables(&outbox).await?;
    let worker = outbox.worker().spawn().await?;

    let (mut placed, mut refused) = (Vec::new(), Vec::new());
    for order in Order::samples() {
        match billing::place_order(&outbox, &order).await? {
            true => placed.push(order),
            false => refused.push(order),
        }
    }
    billing::insert_poison(&outbox).await?;

    tokio::time::timeout(PATIENCE, until_nothing_is_pending(&outbox)).await??;
    worker.stop().await?;

    let report = report::Report::collect(&outbox, &placed, &refused, &provider.book()).await?;
    println!("\n{report}");
    report.verdict()
}

async fn until_nothing_is_pending(outbox: &outbox::Outbox<Db>) -> Result<(), Box<dyn Error>> {
    let mut ticks = tokio::time::interval(Duration::from_millis(250));
    loop {
        ticks.tick().await;
        let stats = outbox.stats().await?;
        if stats.is_idle() {
            return Ok(());
        }
        for of in stats.event_types {
            println!(
                "{}: {} due, {} wait for a retry, {} running",
                of.event_type, of.due, of.scheduled, of.processing
            );
        }
    }
}
