//! How long an event waits on an idle worker, from its commit to the start of its handler; and what an idle worker asks of
//! the database.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use outbox::{Outbox, Retention, State, outbox_handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sqlx::{PgPool, Postgres};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::Settings;
use crate::Result;
use crate::contestant::Contestant;
use crate::measure::{median, quantile};
use crate::ours::{Ping, registry, unix_nanos};
use crate::pools::Open;
use crate::report::Line;
use crate::server::{Database, Kind, Server};

const PART: &str = "latency";
const SAMPLES: u64 = 300;
/// As the worker has it unless it is told otherwise.
const POLL_INTERVAL_MS: f64 = 100.0;
const IDLE: Duration = Duration::from_secs(20);

/// An event whose handler says at once that it began.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
struct Tick {
    n: u64,
}

#[outbox_handler("bench.tick")]
async fn tick(tick: Tick, State(began): State<UnboundedSender<(u64, Instant)>>) {
    // Nobody listens once everything was measured.
    let _ = began.send((tick.n, Instant::now()));
}

pub(crate) async fn run(settings: &Settings) -> Result<Vec<Line>> {
    let server = Server::start(Kind::Postgres).await?;
    let ours = Contestant::ours("kept")?;
    let samples = SAMPLES * settings.rounds as u64 / 5;
    let mut lines = Vec::new();
    for (name, tells, target50, target99) in [
        ("in one process, after outbox.commit(tx)", true, 1.2, Some(4.0)),
        ("in one process, after tx.commit()", false, 3.0, None),
    ] {
        let database = server.fresh("latency").await?;
        ours.setup(&database).await?;
        let waits = in_one_process(&database, tells, samples.max(20)).await?;
        lines.extend(three(name, &waits, target50, target99));
    }
    for (name, variant, target50) in [
        ("across processes, polling", "ping", POLL_INTERVAL_MS / 2.0 + 2.0),
        ("across processes, listening", "ping-listen", 3.0),
    ] {
        let database = server.fresh("latency").await?;
        ours.setup(&database).await?;
        let waits = across_processes(&database, variant, samples.max(20)).await?;
        lines.extend(three(name, &waits, target50, None));
    }
    lines.push(idle(&server, &ours).await?);
    server.stop().await?;
    Ok(lines)
}

/// The middle, and the tail.
fn three(name: &str, waits: &[f64], target50: f64, target99: Option<f64>) -> Vec<Line> {
    let p50 = median(waits);
    let p99 = quantile(waits, 0.99);
    let mut tail = Line::new(PART, format!("{name}, p99"), p99, "ms");
    if let Some(target) = target99 {
        tail = tail.target(format!("≤ {target} ms"), p99 <= target);
    }
    vec![
        Line::new(PART, format!("{name}, p50"), p50, "ms")
            .target(format!("≤ {target50} ms"), p50 <= target50),
        tail,
        Line::new(PART, format!("{name}, p99.9"), quantile(waits, 0.999), "ms"),
    ]
}

/// A pause in which everything comes to rest, of no fixed length, so that nothing falls into step.
async fn rest() {
    tokio::time::sleep(Duration::from_micros(fastrand::u64(20_000..60_000))).await;
}

async fn in_one_process(database: &Database, tells: bool, samples: u64) -> Result<Vec<f64>> {
    let (sender, mut began): (_, UnboundedReceiver<(u64, Instant)>) = unbounded_channel();
    let pool = Postgres::open(&database.url, 2).await?;
    let outbox = Outbox::new(pool.clone()).registry(registry("bench.tick")).state(sender);
    let worker = outbox.worker().retention(Retention::KeepForever).spawn().await?;
    let mut waits = Vec::new();
    for n in 0..samples {
        rest().await;
        let mut tx = pool.begin().await?;
        outbox::enqueue::<Tick>(&mut tx, Tick { n }).await?;
        if tells {
            outbox.commit(tx).await?;
        } else {
            tx.commit().await?;
        }
        let committed = Instant::now();
        let (which, at) = began.recv().await.ok_or("the worker has ended")?;
        if which != n {
            return Err("an event came twice".into());
        }
        // It may begin before the committer's task goes on.
        waits.push(at.saturating_duration_since(committed).as_secs_f64() * 1e3);
    }
    worker.stop().await?;
    Ok(waits)
}

async fn across_processes(database: &Database, variant: &str, samples: u64) -> Result<Vec<f64>> {
    let mut worker = Contestant::ours(variant)?.start("drain", database, &[]).await?;
    worker.say("go").await?;
    let pool: PgPool = Postgres::open(&database.url, 2).await?;
    let outbox = Outbox::new(pool);
    let _signs = (variant == "ping-listen").then(|| outbox.notifier());
    let mut committed = HashMap::new();
    let mut waits = Vec::new();
    // The first ones find the worker still on its way.
    for n in 0..samples + 5 {
        rest().await;
        // A producer that comes at any time between two polls.
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..100_000))).await;
        let mut tx = outbox.begin().await?;
        outbox.enqueue::<Ping>(&mut tx, Ping { n }).await?;
        outbox.commit(tx).await?;
        committed.insert(n, unix_nanos());
        let answer = worker.expect("began").await?;
        let (which, at) = answer.split_once(' ').ok_or("no number and time")?;
        let (which, at) = (which.parse::<u64>()?, at.parse::<u128>()?);
        let since = committed.remove(&which).ok_or("an event came twice")?;
        if n >= 5 {
            waits.push(at.saturating_sub(since) as f64 / 1e6);
        }
    }
    worker.kill().await?;
    Ok(waits)
}

/// Statements a second of a worker that has nothing to do.
async fn idle(server: &Server, ours: &Contestant) -> Result<Line> {
    let database = server.fresh("idle").await?;
    ours.setup(&database).await?;
    let mut worker = ours.start("drain", &database, &[]).await?;
    worker.say("go").await?;
    // Until it has prepared what it needs.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = database.counters().await?;
    tokio::time::sleep(IDLE).await;
    let asked = database.counters().await?.since(before).statements;
    worker.kill().await?;
    // Counting took a few statements of its own.
    let rate = asked / IDLE.as_secs_f64();
    Ok(Line::new(PART, "an idle worker", rate, "statements/s").target("≤ 12", rate <= 12.0))
}
