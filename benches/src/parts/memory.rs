//! How much memory a worker takes: whatever the backlog, and with many handlers in flight.

use super::backlog;
use crate::Result;
use crate::child::Child;
use crate::contestant::Contestant;
use crate::report::Line;
use crate::server::{Database, Kind, Server};

const PART: &str = "memory";
/// How many events are handled before one looks.
const EVENTS: u64 = 100_000;

pub(crate) async fn run() -> Result<Vec<Line>> {
    let server = Server::start(Kind::Postgres).await?;
    let ours = Contestant::ours("kept")?;

    let database = server.fresh("memory").await?;
    ours.setup(&database).await?;
    let mut worker = ours.start("drain", &database, &[]).await?;
    worker.say("go").await?;
    let mut fed = 0;
    while fed < EVENTS {
        backlog::fill(&database, backlog::DUE, 1_000, fed).await?;
        fed += 1_000;
        handled(&mut worker, fed).await?;
    }
    let (small, _) = worker.memory()?;
    worker.kill().await?;

    let database = server.fresh("memory").await?;
    ours.setup(&database).await?;
    backlog::fill(&database, backlog::DUE, 1_000_000, 0).await?;
    let mut worker = ours.start("drain", &database, &[]).await?;
    worker.say("go").await?;
    handled(&mut worker, EVENTS).await?;
    let (large, _) = worker.memory()?;
    worker.kill().await?;

    let flying = in_flight(&server).await?;
    server.stop().await?;
    let ratio = large / small;
    Ok(vec![
        Line::new(PART, "resident, backlog of 1 k", small / 1024.0, "MiB"),
        Line::new(PART, "resident, backlog of 1 M", large / 1024.0, "MiB")
            .limit_ratio(ratio)
            .target("limit ≤ 1.1", ratio <= 1.1),
        Line::new(PART, "resident, 10,000 handlers in flight", flying / 1024.0, "MiB"),
    ])
}

/// Waits until the worker has handled so many.
async fn handled(worker: &mut Child, events: u64) -> Result<()> {
    loop {
        if worker.expect("handled").await?.parse::<u64>()? >= events {
            return Ok(());
        }
    }
}

async fn in_flight(server: &Server) -> Result<f64> {
    const FLYING: u64 = 10_000;
    let ours = Contestant::ours("slow:10000")?;
    let database: Database = server.fresh("memory").await?;
    ours.setup(&database).await?;
    backlog::fill(&database, backlog::SLOW, FLYING, 0).await?;
    let mut worker = ours.start("drain", &database, &[]).await?;
    worker.say("go").await?;
    handled(&mut worker, FLYING).await?;
    let (resident, _) = worker.memory()?;
    worker.kill().await?;
    Ok(resident)
}
