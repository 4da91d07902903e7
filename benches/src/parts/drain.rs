//! How fast a backlog of events whose handlers do nothing is drained on PostgreSQL: by ours, by the bare statements, and
//! by the peers.

use std::collections::BTreeMap;

use super::Settings;
use crate::Result;
use crate::contestant::{Contestant, Drained, drain};
use crate::measure::median;
use crate::peers;
use crate::report::Line;
use crate::server::{Kind, Server};

const PART: &str = "drain";

/// Below this rate a contestant gets fewer events, so that its turn ends.
const SLOW: f64 = 5_000.0;

/// What a contestant's turns came to.
#[derive(Debug, Default)]
struct Turns {
    rates: Vec<f64>,
    last: Option<Drained>,
}

pub(crate) async fn run(settings: &Settings) -> Result<Vec<Line>> {
    let server = Server::start(Kind::Postgres).await?;
    let mut all = vec![
        Contestant::ours("kept")?,
        Contestant::bare("kept")?,
        Contestant::bare("lean-kept")?,
        Contestant::ours("deleted")?,
        Contestant::bare("deleted")?,
        Contestant::bare("lean-deleted")?,
    ];
    if settings.peers {
        for peer in peers::on("postgres").await? {
            all.extend(peer.contestants());
        }
    }
    // Tried once, not counted: who is slow, and which configuration of a peer is worth its turns.
    let mut events = BTreeMap::new();
    let mut fastest: BTreeMap<String, (f64, String)> = BTreeMap::new();
    for who in &all {
        let trial = settings.events.min(5_000);
        let mut rate = match drain(&server, who, 1, 500.min(trial)).await {
            Ok(drained) => drained.rate,
            Err(error) => {
                println!("{} is left out: {error}", who.label());
                continue;
            }
        };
        if rate > 1_000.0 {
            rate = drain(&server, who, 1, settings.events).await?.rate;
        }
        events.insert(who.label(), if rate < SLOW { (rate as u64 * 2).max(500) } else { settings.events });
        let best = fastest.entry(who.name.clone()).or_default();
        if rate > best.0 {
            *best = (rate, who.variant.clone());
        }
    }
    // Of a peer's configurations those that came near its best.
    all.retain(|who| events.contains_key(&who.label()));
    let mut turns: BTreeMap<(String, usize), Turns> = BTreeMap::new();
    for round in 0..settings.rounds {
        for processes in [1, 2] {
            for index in 0..all.len() {
                // Nobody is always first.
                let who = &all[(index + round) % all.len()];
                let number = events[&who.label()];
                if processes > 1 && number < settings.events {
                    continue;
                }
                let drained = drain(&server, who, processes, number).await?;
                let turns = turns.entry((who.label(), processes)).or_default();
                turns.rates.push(drained.rate);
                turns.last = Some(drained);
            }
        }
    }
    server.stop().await?;
    lines(&all, &turns)
}

fn lines(all: &[Contestant], turns: &BTreeMap<(String, usize), Turns>) -> Result<Vec<Line>> {
    let rate = |label: &str, processes: usize| -> f64 {
        turns.get(&(label.to_owned(), processes)).map_or(f64::NAN, |turns| median(&turns.rates))
    };
    let best_peer = |processes: usize| {
        let peers = all.iter().filter(|who| who.name != "ours" && who.name != "bare");
        peers
            .map(|who| (rate(&who.label(), processes), who.label()))
            .filter(|(rate, _)| !rate.is_nan())
            .max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let mut lines = Vec::new();
    for ((label, processes), turns) in turns {
        let name = format!("{label}, {processes} process{}", if *processes > 1 { "es" } else { "" });
        let mut line = Line::of_rounds(PART, name, &turns.rates, "events/s");
        if let Some(Drained { each, client_cpu, .. }) = turns.last {
            line = line.note(format!(
                "{:.4} statements, {:.4} transactions, {:.0} B of WAL, {:.1} + {:.1} µs of server and client an event",
                each.statements,
                each.transactions,
                each.wal_bytes,
                each.cpu * 1e6,
                client_cpu * 1e6,
            ));
        }
        lines.push(line);
    }
    for (end, at_least) in [("kept", 1.5), ("deleted", 2.0)] {
        let (ours, bare) = (format!("ours {end}"), format!("bare {end}"));
        let limit = rate(&ours, 1) / rate(&bare, 1);
        let lean = rate(&ours, 1) / rate(&format!("bare lean-{end}"), 1);
        lines.push(
            Line::new(
                PART,
                format!("rows {end}, by the bare limit on the same table"),
                rate(&ours, 1),
                "events/s",
            )
            .limit_ratio(limit)
            .target("limit ≥ 0.85", limit >= 0.85)
            .note(format!("{lean:.2} of the limit on a table with nothing else")),
        );
        for processes in [1, 2] {
            // Two processes are asked for rows that are kept.
            if processes == 2 && end == "deleted" {
                continue;
            }
            let total = rate(&ours, processes);
            let name = format!("rows {end}, {processes} process(es), by the fastest peer");
            let line = Line::new(PART, name, total, "events/s");
            lines.push(match best_peer(processes) {
                Some((best, peer)) => line
                    .peer_ratio(total / best, &peer)
                    .target(format!("peer ≥ {at_least}"), total / best >= at_least),
                None => line.target(format!("peer ≥ {at_least}"), false).note("no peer was measured"),
            });
        }
    }
    let each = |label: &str| {
        let turns = turns.get(&(label.to_owned(), 1)).and_then(|turns| turns.last);
        turns.map(|drained| drained.each).ok_or_else(|| format!("{label} was not measured"))
    };
    let (ours, bare) = (each("ours kept")?, each("bare kept")?);
    lines.push(
        Line::new(PART, "statements an event", ours.statements, "statements")
            .limit_ratio(ours.statements / bare.statements)
            .target("≤ 0.02", ours.statements <= 0.02),
    );
    for end in ["kept", "deleted"] {
        let (ours, bare) = (each(&format!("ours {end}"))?, each(&format!("bare {end}"))?);
        let ratio = ours.wal_bytes / bare.wal_bytes;
        lines.push(
            Line::new(PART, format!("bytes of WAL an event, rows {end}"), ours.wal_bytes, "bytes")
                .limit_ratio(ratio)
                .target("limit ≤ 1.1", ratio <= 1.1),
        );
    }
    Ok(lines)
}
