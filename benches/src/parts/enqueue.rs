//! How fast events are stored on PostgreSQL: in their caller's transaction, and many at once.

use std::collections::BTreeMap;

use super::Settings;
use crate::Result;
use crate::contestant::Contestant;
use crate::measure::median;
use crate::peers::{self, Peer};
use crate::report::Line;
use crate::server::{Kind, Server};

const PART: &str = "enqueue";
/// How long a turn of single enqueues takes.
const SECONDS: &str = "2";
const BULK: &str = "50000";

pub(crate) async fn run(settings: &Settings) -> Result<Vec<Line>> {
    let server = Server::start(Kind::Postgres).await?;
    let peers = if settings.peers { peers::on("postgres").await? } else { Vec::new() };
    let ways: [(&str, &str, &[&str]); 3] = [
        ("1 writer", "enqueue", &["1", SECONDS]),
        ("16 writers", "enqueue", &["16", SECONDS]),
        ("bulk", "bulk", &[BULK]),
    ];
    let mut lines = Vec::new();
    for (way, command, arguments) in ways {
        let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        let mut all = vec![Contestant::ours("kept")?, Contestant::bare("kept")?];
        let able = peers.iter().filter(|peer| peer.can(command));
        all.extend(able.filter_map(|peer: &Peer| peer.contestants().next()));
        let mut rates: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        // Twice the rounds: ratios close to one need more of them.
        for round in 0..2 * settings.rounds {
            for index in 0..all.len() {
                let who = &all[(index + round) % all.len()];
                let database = server.fresh("enqueue").await?;
                who.setup(&database).await?;
                database.settle_down().await?;
                let rate = who.stores(command, &database, &arguments).await?;
                rates.entry(who.name.clone()).or_default().push(rate);
            }
        }
        for (name, rates) in &rates {
            lines.push(Line::of_rounds(PART, format!("{way}: {name}"), rates, "events/s"));
        }
        let (ours, bare) = (median(&rates["ours"]), median(&rates["bare"]));
        let at_least = if command == "bulk" { 0.9 } else { 0.95 };
        let mut line = Line::new(PART, format!("{way}, by the bare INSERT"), ours, "events/s")
            .limit_ratio(ours / bare)
            .target(format!("limit ≥ {at_least}"), ours / bare >= at_least);
        let peers = rates.iter().filter(|(name, _)| *name != "ours" && *name != "bare");
        let best =
            peers.map(|(name, rates)| (median(rates), name)).max_by(|one, other| one.0.total_cmp(&other.0));
        if let Some((best, peer)) = best {
            line = line.peer_ratio(ours / best, peer);
        }
        lines.push(line);
    }
    server.stop().await?;
    Ok(lines)
}
