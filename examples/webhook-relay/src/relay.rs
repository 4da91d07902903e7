//! Relaying: the worker, and its progress on standard output.

use std::error::Error;
use std::time::Duration;

use outbox::Outbox;
use reqwest::{Client, Url};

use crate::Db;

pub(crate) async fn relay(
    outbox: Outbox<Db>,
    sink: Url,
    lease: Duration,
    until_done: bool,
) -> Result<(), Box<dyn Error>> {
    let worker = outbox.worker().state(Client::new()).state(sink).lease(lease).concurrency(8).spawn().await?;
    tokio::select! {
        done = progress(&outbox, until_done) => done?,
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    println!("stopped: {:?}", worker.stop().await?);
    Ok(())
}

/// Prints what is left whenever it changed; returns when nothing is, if that is wanted.
async fn progress(outbox: &Outbox<Db>, until_done: bool) -> Result<(), Box<dyn Error>> {
    let mut ticks = tokio::time::interval(Duration::from_millis(200));
    let mut last = None;
    loop {
        ticks.tick().await;
        let stats = outbox.stats().await?;
        let sum = |count: fn(&outbox::TypeStats) -> u64| stats.event_types.iter().map(count).sum::<u64>();
        let now = (sum(|of| of.due + of.scheduled), sum(|of| of.processing), sum(|of| of.dead_letter));
        if last.replace(now) != Some(now) {
            let (waiting, running, dead) = now;
            println!("{waiting:>4} waiting, {running:>2} in flight, {dead} dead letters");
        }
        if until_done && stats.is_idle() {
            return Ok(());
        }
    }
}
