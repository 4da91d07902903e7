//! A transaction that somebody holds open for minutes: the dead rows that it keeps are the known end of queues that claim
//! with SKIP LOCKED.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use outbox::Outbox;
use sqlx::{Connection, PgConnection, Postgres};

use super::{Settings, backlog};
use crate::Result;
use crate::contestant::{Contestant, drain_filled};
use crate::measure::median;
use crate::ours;
use crate::payload::Invoice;
use crate::pools::Open;
use crate::report::Line;
use crate::server::{Database, Kind, Server};

const PART: &str = "held";
/// Events a second.
const LOAD: u64 = 800;
const EVERY: Duration = Duration::from_secs(10);

pub(crate) async fn run(settings: &Settings) -> Result<Vec<Line>> {
    let server = Server::start(Kind::Postgres).await?;
    let ours = Contestant::ours("kept")?;
    let mut lines = steady(settings, &server, &ours).await?;
    lines.push(drained(settings, &server, &ours).await?);
    server.stop().await?;
    Ok(lines)
}

/// A transaction with a snapshot, until it is dropped.
async fn hold(database: &Database) -> Result<PgConnection> {
    let mut connection = PgConnection::connect(&database.url).await?;
    sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox_event")
        .execute(&mut connection)
        .await?;
    Ok(connection)
}

/// The claim's account so far: milliseconds and calls, those too that found nothing.
const CLAIMS: &str = "FROM pg_stat_statements WHERE query LIKE 'UPDATE%fence = fence + %RETURNING seq, id%' \
                      AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())";

async fn steady(settings: &Settings, server: &Server, ours: &Contestant) -> Result<Vec<Line>> {
    let database = server.fresh("held").await?;
    ours.setup(&database).await?;
    let mut worker = ours.start("drain", &database, &[]).await?;
    worker.say("go").await?;
    let worker = worker.count_into(Arc::new(AtomicU64::new(0)));
    let outbox = Outbox::new(Postgres::open(&database.url, 4).await?);
    let producer = tokio::spawn(produce(outbox));
    // Warm before the transaction begins.
    tokio::time::sleep(EVERY).await;
    let held = hold(&database).await?;
    let mut spent =
        database.question(&format!("SELECT coalesce(sum(total_exec_time), 0)::float8 {CLAIMS}")).await?;
    let mut calls = database.question(&format!("SELECT coalesce(sum(calls), 0)::float8 {CLAIMS}")).await?;
    let mut waiting = database.question(ours::UNFINISHED).await?;
    let (mut before, mut times, mut backlogs) =
        ((spent.ask().await?, calls.ask().await?), Vec::new(), Vec::new());
    // Five minutes, in a run of five rounds.
    for _ in 0..6 * settings.rounds {
        tokio::time::sleep(EVERY).await;
        let now = (spent.ask().await?, calls.ask().await?);
        times.push((now.0 - before.0) / (now.1 - before.1));
        backlogs.push(waiting.ask().await?);
        before = now;
    }
    producer.abort();
    drop(held);
    worker.kill().await?;
    let tenth = (times.len() / 6).max(1);
    let (first, last) = (&times[..tenth], &times[times.len() - tenth..]);
    let ratio = median(last) / median(first);
    let backlog = median(&backlogs[backlogs.len() - tenth..]);
    let seconds = backlog / LOAD as f64;
    Ok(vec![
        Line::new(PART, "a claim at the start of a held transaction", median(first), "ms"),
        Line::new(PART, "a claim at its end, at 800 events a second", median(last), "ms")
            .limit_ratio(ratio)
            .target("limit ≤ 1.5", ratio <= 1.5),
        Line::new(PART, "what waits at its end, in seconds of enqueueing", seconds, "s")
            .target("≤ 0.25", seconds <= 0.25),
    ])
}

/// Enqueues at a steady rate, each event in a transaction of its own.
async fn produce(outbox: Outbox<Postgres>) -> Result<()> {
    let mut ticks = tokio::time::interval(Duration::from_micros(1_000_000 / LOAD));
    for number in 0.. {
        ticks.tick().await;
        let mut tx = outbox.begin().await?;
        outbox.enqueue::<Invoice>(&mut tx, Invoice::new(number)).await?;
        outbox.commit(tx).await?;
    }
    Ok(())
}

/// A backlog of a hundred thousand, beside a held transaction and without one.
async fn drained(settings: &Settings, server: &Server, ours: &Contestant) -> Result<Line> {
    const EVENTS: u64 = 100_000;
    let (mut without, mut beside) = (Vec::new(), Vec::new());
    for round in 0..settings.rounds {
        for holds in [round % 2 == 0, round % 2 == 1] {
            let database = server.fresh("held").await?;
            ours.setup(&database).await?;
            backlog::fill(&database, backlog::DUE, EVENTS, 0).await?;
            database.settle_down().await?;
            let held = if holds { Some(hold(&database).await?) } else { None };
            let rate = drain_filled(&database, ours, 1, EVENTS).await?.rate;
            drop(held);
            if holds { &mut beside } else { &mut without }.push(rate);
        }
    }
    let ratio = median(&beside) / median(&without);
    Ok(Line::of_rounds(PART, "drain of 100,000 beside a held transaction", &beside, "events/s")
        .limit_ratio(ratio)
        .target("limit ≥ 0.9", ratio >= 0.9))
}
