//! What a claim costs with much in the table: by the server's own account of the statement, for each event that came.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use super::Settings;
use crate::Result;
use crate::contestant::{Contestant, drain_filled, wait_for};
use crate::measure::median;
use crate::ours;
use crate::report::Line;
use crate::server::{Database, Kind, Server};

const PART: &str = "backlog";
const MILLION: u64 = 1_000_000;

/// Rows of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    event_type: &'static str,
    columns: &'static str,
    values: &'static str,
}

pub(crate) const DUE: Rows = Rows {
    event_type: "bench.invoice",
    columns: "available_at",
    values: "clock_timestamp() - interval '1 minute'",
};
pub(crate) const SLOW: Rows = Rows { event_type: "bench.slow", ..DUE };
const FOREIGN: Rows = Rows {
    event_type: "bench.foreign",
    columns: "available_at",
    values: "clock_timestamp() - interval '1 day'",
};
const SCHEDULED: Rows = Rows { values: "clock_timestamp() + interval '1 day'", ..DUE };
const HISTORY: Rows =
    Rows { columns: "status, processed_at", values: "'completed', clock_timestamp()", ..DUE };

/// Stores rows as a producer would have: with ids in the order of time. `first` tells these from others.
pub(crate) async fn fill(database: &Database, rows: Rows, number: u64, first: u64) -> Result<()> {
    let Rows { event_type, columns, values } = rows;
    for start in (first..first + number).step_by(MILLION as usize) {
        let last = (start + MILLION).min(first + number) - 1;
        let insert = format!(
            "SET synchronous_commit = off; INSERT INTO outbox_event (id, event_type, payload, {columns}) \
             SELECT (lpad(to_hex(1750000000000 + n), 12, '0') || '70008' || lpad(to_hex(n), 15, '0'))::uuid, '{event_type}', \
                    format('{{\"n\":%s,\"invoice\":%s,\"customer\":\"cus_%s\",\"cents\":1999,\"currency\":\"EUR\"}}', n, n, n)::json, \
                    {values} FROM generate_series({start}::bigint, {last}::bigint) AS n"
        );
        database.run(&insert).await?;
    }
    Ok(())
}

pub(crate) async fn run(settings: &Settings) -> Result<Vec<Line>> {
    let server = Server::start(Kind::Postgres).await?;
    let ours = Contestant::ours("kept")?;
    let turns = 2 * settings.rounds;

    let mut small = Vec::new();
    for _ in 0..turns {
        let database = server.fresh("backlog").await?;
        ours.setup(&database).await?;
        fill(&database, DUE, 1_000, 0).await?;
        database.settle_down().await?;
        small.push(claim_cost(&database, &ours, 1_000).await?);
    }
    let base = median(&small);
    let mut lines = vec![Line::of_rounds(PART, "a claim, backlog of 1 k", &small, "µs/event")];

    // One after the other into the same table, so that each has all before it to bear as well.
    let database = server.fresh("backlog").await?;
    ours.setup(&database).await?;
    let mut first = 0;
    for (name, rows, number) in [
        ("and 1 M scheduled for tomorrow", SCHEDULED, MILLION),
        ("and 1 M of a foreign type in front", FOREIGN, MILLION),
        ("and 10 M completed", HISTORY, 10 * MILLION),
        ("and a backlog of 10 M", DUE, 10 * MILLION),
    ] {
        // What the last one left, and enough for this one's turns.
        fill(&database, rows, number, first).await?;
        first += number;
        fill(&database, DUE, 3_000 * turns as u64, first).await?;
        first += 3_000 * turns as u64;
        database.settle_down().await?;
        let mut costs = Vec::new();
        for _ in 0..turns {
            costs.push(claim_cost(&database, &ours, 1_000).await?);
        }
        let ratio = median(&costs) / base;
        lines.push(
            Line::of_rounds(PART, format!("a claim, {name}"), &costs, "µs/event")
                .limit_ratio(ratio)
                .target("limit ≤ 1.3", ratio <= 1.3),
        );
    }
    lines.push(after_idling(settings, &server, &ours).await?);
    server.stop().await?;
    Ok(lines)
}

/// What claiming an event costs the server, in microseconds, while a worker handles so many.
async fn claim_cost(database: &Database, ours: &Contestant, events: u64) -> Result<f64> {
    database.run("SELECT pg_stat_statements_reset()").await?;
    let mut worker = ours.start("drain", database, &[]).await?;
    worker.say("go").await?;
    let handled = Arc::new(AtomicU64::new(0));
    let worker = worker.count_into(Arc::clone(&handled));
    wait_for(&handled, events, Instant::now()).await?;
    worker.kill().await?;
    // The statement that is still running when its session is cut is not counted; those before it are.
    database.number(CLAIM_COST).await
}

/// Microseconds of the claim for each event that came.
const CLAIM_COST: &str = "SELECT (1000 * sum(total_exec_time) / sum(rows))::float8 FROM pg_stat_statements \
                          WHERE query LIKE 'UPDATE%fence = fence + %RETURNING seq, id%' AND rows > 0 \
                          AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// A worker that has idled on an empty table meets a hundred thousand events at once.
async fn after_idling(settings: &Settings, server: &Server, ours: &Contestant) -> Result<Line> {
    const EVENTS: u64 = 100_000;
    let (mut normal, mut idled) = (Vec::new(), Vec::new());
    for _ in 0..settings.rounds {
        let database = server.fresh("backlog").await?;
        ours.setup(&database).await?;
        fill(&database, DUE, EVENTS, 0).await?;
        database.settle_down().await?;
        normal.push(drain_filled(&database, ours, 1, EVENTS).await?.rate);

        let database = server.fresh("backlog").await?;
        ours.setup(&database).await?;
        let mut worker = ours.start("drain", &database, &[]).await?;
        worker.say("go").await?;
        let handled = Arc::new(AtomicU64::new(0));
        let worker = worker.count_into(Arc::clone(&handled));
        tokio::time::sleep(Duration::from_secs(5)).await;
        let mut unfinished = database.question(ours::UNFINISHED).await?;
        fill(&database, DUE, EVENTS, 0).await?;
        let began = Instant::now();
        wait_for(&handled, EVENTS, began).await?;
        while unfinished.ask().await? > 0.0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        idled.push(EVENTS as f64 / began.elapsed().as_secs_f64());
        worker.kill().await?;
    }
    let ratio = median(&idled) / median(&normal);
    Ok(Line::of_rounds(PART, "100,000 at once after idling on an empty table", &idled, "events/s")
        .limit_ratio(ratio)
        .target("≥ 0.9 of the normal rate", ratio >= 0.9))
}
