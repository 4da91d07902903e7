//! Ours as a contestant, on each database.

use std::time::{Duration, Instant};

use outbox::{Outbox, Registry, Retention, State, outbox_handler};
use tokio::task::JoinSet;

use crate::Result;
use crate::payload::{EVENT_TYPE, Invoice};
use crate::pools::Open;
use crate::protocol::{Handled, ready, report, say};

/// Does nothing, and counts.
#[outbox_handler("bench.invoice")]
async fn invoice(_: Invoice, State(handled): State<Handled>) {
    handled.add(1);
}

/// Takes its time, so that many are in flight.
#[outbox_handler("bench.slow")]
async fn slow(_: Slow, State(handled): State<Handled>) {
    handled.add(1);
    tokio::time::sleep(Duration::from_secs(60)).await;
}

/// An event whose handler takes its time.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema, serde::Serialize)]
pub(crate) struct Slow {
    n: u64,
}

/// Says when it began, in nanoseconds since 1970.
#[outbox_handler("bench.ping")]
async fn ping(ping: Ping) {
    drop(say(&format!("began {} {}", ping.n, unix_nanos())));
}

/// An event whose handler says when it began.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema, serde::Serialize)]
pub(crate) struct Ping {
    pub(crate) n: u64,
}

pub(crate) fn unix_nanos() -> u128 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// The handler of one type alone.
pub(crate) fn registry(event_type: &'static str) -> Registry {
    Registry::linked().retain(move |def| def.event_type() == event_type)
}

pub(crate) const UNFINISHED: &str =
    "SELECT count(*) FROM outbox_event WHERE status IN ('pending', 'processing')";

pub(crate) async fn setup<DB: Open>(url: &str) -> Result<()> {
    Ok(Outbox::new(DB::open(url, 1).await?).migrate().await?)
}

/// Stores events as an application does that has many.
pub(crate) async fn fill<DB: Open>(url: &str, number: u64) -> Result<()> {
    let outbox = Outbox::new(DB::open(url, 1).await?);
    for first in (0..number).step_by(10_000) {
        let mut tx = outbox.begin().await?;
        let events = (first..number.min(first + 10_000)).map(Invoice::new);
        outbox.enqueue_all::<Invoice>(&mut tx, events).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// A worker: `kept` or `deleted`, with `:256` for another number of handlers at once; `slow` and `ping` for the others'
/// events.
pub(crate) async fn drain<DB: Open>(url: &str, variant: &str) -> Result<()> {
    let (kind, concurrency) = variant.split_once(':').unwrap_or((variant, "64"));
    let handled = Handled::default();
    let event_type = match kind {
        "slow" => "bench.slow",
        "ping" | "ping-listen" => "bench.ping",
        _ => EVENT_TYPE,
    };
    let outbox = Outbox::new(DB::open(url, 2).await?).registry(registry(event_type)).state(handled.clone());
    let retention = if kind == "deleted" { Retention::DeleteOnSuccess } else { Retention::KeepForever };
    let mut worker = outbox.worker().retention(retention).concurrency(concurrency.parse()?);
    if kind == "ping-listen" {
        worker = worker.listen();
    }
    ready().await?;
    let running = worker.spawn().await?;
    report(&handled).await?;
    running.stop().await?;
    Ok(())
}

/// So many tasks, each event in a transaction of its own.
pub(crate) async fn enqueue<DB: Open>(url: &str, writers: u32, time: Duration) -> Result<()> {
    let outbox = Outbox::new(DB::open(url, writers).await?);
    measure(writers, time, move |number| {
        let outbox = outbox.clone();
        async move {
            let mut tx = outbox.begin().await?;
            outbox.enqueue::<Invoice>(&mut tx, Invoice::new(number)).await?;
            outbox.commit(tx).await?;
            Ok(())
        }
    })
    .await
}

/// Calls from so many tasks for so long, and says how many there were.
pub(crate) async fn measure<F>(
    writers: u32,
    time: Duration,
    call: impl Fn(u64) -> F + Clone + Send + 'static,
) -> Result<()>
where
    F: Future<Output = Result<()>> + Send,
{
    // Every connection is open, and its statement prepared.
    let mut warm = JoinSet::new();
    for _ in 0..writers {
        let call = call.clone();
        warm.spawn(async move { call(0).await });
    }
    while let Some(ended) = warm.join_next().await {
        ended??;
    }
    ready().await?;
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..writers {
        let call = call.clone();
        tasks.spawn(async move {
            let mut calls = 0;
            while began.elapsed() < time {
                calls += 1;
                call(calls).await?;
            }
            Result::Ok(calls)
        });
    }
    let mut total = 0;
    while let Some(ended) = tasks.join_next().await {
        total += ended??;
    }
    say(&format!("enqueued {total} {}", began.elapsed().as_secs_f64()))
}

/// All at once, in one transaction.
pub(crate) async fn bulk<DB: Open>(url: &str, number: u64) -> Result<()> {
    let outbox = Outbox::new(DB::open(url, 1).await?);
    ready().await?;
    let began = Instant::now();
    let mut tx = outbox.begin().await?;
    outbox.enqueue_all::<Invoice>(&mut tx, (0..number).map(Invoice::new)).await?;
    outbox.commit(tx).await?;
    say(&format!("enqueued {number} {}", began.elapsed().as_secs_f64()))
}
