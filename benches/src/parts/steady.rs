//! A steady state: producers that enqueue in transactions of their own beside a worker that keeps up.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::Settings;
use crate::Result;
use crate::contestant::{Contestant, rate};
use crate::measure::median;
use crate::ours;
use crate::report::Line;
use crate::server::{Kind, Server};

const PART: &str = "steady";
const PRODUCERS: &str = "8";
const SECONDS: f64 = 4.0;

/// What one turn came to.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// Events a second that were enqueued.
    rate: f64,
    /// Seconds' worth of events that waited at the end.
    behind: f64,
    /// Transactions beyond those of the producers, for each event.
    extra: f64,
}

pub(crate) async fn run(settings: &Settings) -> Result<Vec<Line>> {
    let server = Server::start(Kind::Postgres).await?;
    let ours = Contestant::ours("kept")?;
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for round in 0..2 * settings.rounds {
        for with_worker in [round % 2 == 0, round % 2 == 1] {
            let turn = turn(&server, &ours, with_worker).await?;
            if with_worker { &mut beside } else { &mut alone }.push(turn);
        }
    }
    server.stop().await?;
    let rates = |turns: &[Turn]| turns.iter().map(|turn| turn.rate).collect::<Vec<_>>();
    let ratio = median(&rates(&beside)) / median(&rates(&alone));
    let behind = median(&beside.iter().map(|turn| turn.behind).collect::<Vec<_>>());
    let extra = median(&beside.iter().map(|turn| turn.extra).collect::<Vec<_>>());
    Ok(vec![
        Line::of_rounds(PART, "8 producers without a worker", &rates(&alone), "events/s"),
        Line::of_rounds(PART, "8 producers beside a worker", &rates(&beside), "events/s")
            .limit_ratio(ratio)
            .target("limit ≥ 0.9", ratio >= 0.9),
        Line::new(PART, "what waits at the end, in seconds of enqueueing", behind, "s")
            .target("≤ 0.25", behind <= 0.25),
        Line::new(PART, "transactions of the worker an event", extra, "transactions")
            .target("≤ 0.1", extra <= 0.1),
    ])
}

async fn turn(server: &Server, ours: &Contestant, with_worker: bool) -> Result<Turn> {
    let database = server.fresh("steady").await?;
    ours.setup(&database).await?;
    database.settle_down().await?;
    let mut producers =
        ours.start("enqueue", &database, &[PRODUCERS.to_owned(), SECONDS.to_string()]).await?;
    let worker = if with_worker {
        let mut worker = ours.start("drain", &database, &[]).await?;
        worker.say("go").await?;
        Some(worker.count_into(Arc::new(AtomicU64::new(0))))
    } else {
        None
    };
    let mut waiting = database.question(ours::UNFINISHED).await?;
    let before = database.counters().await?;
    producers.say("go").await?;
    let answer = producers.expect("enqueued").await?;
    let rate = rate(&answer)?;
    let behind = waiting.ask().await? / rate;
    drop(waiting);
    if let Some(worker) = worker {
        worker.kill().await?;
    }
    producers.kill().await?;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let events = rate * SECONDS;
    let extra = database.counters().await?.since(before).transactions / events - 1.0;
    Ok(Turn { rate, behind, extra })
}
