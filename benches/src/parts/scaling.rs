//! Whether more worker processes do more, or at least not less.

use super::Settings;
use crate::Result;
use crate::contestant::{Contestant, drain};
use crate::measure::median;
use crate::report::Line;
use crate::server::{Kind, Server};

const PART: &str = "scaling";

pub(crate) async fn run(settings: &Settings) -> Result<Vec<Line>> {
    let server = Server::start(Kind::Postgres).await?;
    let ours = Contestant::ours("kept")?;
    let processes = [1, 2, 4];
    let mut rates = [const { Vec::new() }; 3];
    for round in 0..settings.rounds {
        for index in 0..processes.len() {
            let index = (index + round) % processes.len();
            rates[index].push(drain(&server, &ours, processes[index], 2 * settings.events).await?.rate);
        }
    }
    server.stop().await?;
    let one = median(&rates[0]);
    let lines = processes.iter().zip(&rates).map(|(processes, rates)| {
        let line = Line::of_rounds(PART, format!("{processes} worker process(es)"), rates, "events/s");
        let ratio = median(rates) / one;
        let line = line.limit_ratio(ratio);
        if *processes == 4 { line.target("≥ the rate of one", ratio >= 1.0) } else { line }
    });
    Ok(lines.collect())
}
