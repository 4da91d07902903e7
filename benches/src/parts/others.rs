//! SQLite and MariaDB: draining and enqueueing, by the bare statements and by the peers that run there.

use std::collections::BTreeMap;

use super::Settings;
use crate::Result;
use crate::contestant::{Contestant, drain};
use crate::measure::median;
use crate::peers;
use crate::report::Line;
use crate::server::{Kind, Server};

/// How long a turn of single enqueues takes.
const SECONDS: &str = "2";

pub(crate) async fn sqlite(settings: &Settings) -> Result<Vec<Line>> {
    let peers = if settings.peers { peers::on("sqlite").await? } else { Vec::new() };
    let mut lines = Vec::new();
    for synchronous in ["FULL", "NORMAL"] {
        let mut all = both(synchronous)?;
        for peer in &peers {
            all.extend(peer.contestants().take(1).map(|who| who.with_synchronous(synchronous)));
        }
        let server = Server::start(Kind::Sqlite).await?;
        lines.extend(drained("sqlite", synchronous, settings, &server, &all).await?);
        let all = both(synchronous)?;
        lines.extend(enqueued("sqlite", synchronous, &["8", SECONDS], settings, &server, &all).await?);
        server.stop().await?;
    }
    Ok(lines)
}

pub(crate) async fn mariadb(settings: &Settings) -> Result<Vec<Line>> {
    let server = Server::start(Kind::Mariadb).await?;
    let all = [Contestant::ours("kept")?, Contestant::bare("kept")?];
    let mut lines = drained("mariadb", "", settings, &server, &all).await?;
    for writers in ["1", "16"] {
        lines.extend(enqueued("mariadb", "", &[writers, SECONDS], settings, &server, &all).await?);
    }
    let database = server.fresh("deadlocks").await?;
    let deadlocks = "SELECT CAST(variable_value AS SIGNED) FROM information_schema.global_status \
                     WHERE variable_name = 'Innodb_deadlocks'";
    let deadlocks = database.number(deadlocks).await?;
    lines.push(
        Line::new("mariadb", "deadlocks in all of this", deadlocks, "deadlocks")
            .target("none", deadlocks == 0.0),
    );
    server.stop().await?;
    Ok(lines)
}

fn both(synchronous: &'static str) -> Result<Vec<Contestant>> {
    let all = [Contestant::ours("kept")?, Contestant::bare("kept")?];
    Ok(all.into_iter().map(|who| who.with_synchronous(synchronous)).collect())
}

fn named(what: &str, how: &str) -> String {
    if how.is_empty() { what.to_owned() } else { format!("{what}, {how}") }
}

async fn drained(
    part: &'static str,
    how: &str,
    settings: &Settings,
    server: &Server,
    all: &[Contestant],
) -> Result<Vec<Line>> {
    let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut events: BTreeMap<&str, u64> = BTreeMap::new();
    for who in all {
        // Who is slow gets fewer.
        let rate = drain(server, who, 1, 1_000).await?.rate;
        events.insert(&who.name, if rate < 5_000.0 { (2.0 * rate) as u64 } else { settings.events });
    }
    for round in 0..settings.rounds {
        for index in 0..all.len() {
            let who = &all[(index + round) % all.len()];
            let rate = drain(server, who, 1, events[who.name.as_str()]).await?.rate;
            rates.entry(&who.name).or_default().push(rate);
        }
    }
    let mut lines: Vec<_> = rates
        .iter()
        .map(|(name, rates)| Line::of_rounds(part, named(&format!("drain: {name}"), how), rates, "events/s"))
        .collect();
    let (ours, bare) = (median(&rates["ours"]), median(&rates["bare"]));
    let mut line =
        Line::new(part, named("drain, by the bare limit", how), ours, "events/s").limit_ratio(ours / bare);
    if how != "NORMAL" {
        line = line.target("limit ≥ 0.8", ours / bare >= 0.8);
    }
    let peers = rates.iter().filter(|(name, _)| !["ours", "bare"].contains(name));
    if let Some((best, peer)) =
        peers.map(|(name, rates)| (median(rates), name)).max_by(|one, other| one.0.total_cmp(&other.0))
    {
        line = line.peer_ratio(ours / best, peer);
    }
    lines.push(line);
    Ok(lines)
}

async fn enqueued(
    part: &'static str,
    how: &str,
    arguments: &[&str],
    settings: &Settings,
    server: &Server,
    all: &[Contestant],
) -> Result<Vec<Line>> {
    let words: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for round in 0..settings.rounds {
        for index in 0..all.len() {
            let who = &all[(index + round) % all.len()];
            let database = server.fresh("enqueue").await?;
            who.setup(&database).await?;
            let rate = who.stores("enqueue", &database, &words).await?;
            rates.entry(&who.name).or_default().push(rate);
        }
    }
    let ratio = median(&rates["ours"]) / median(&rates["bare"]);
    let what = format!("enqueue, {} writers", arguments[0]);
    Ok(rates
        .iter()
        .map(|(name, rates)| {
            let line = Line::of_rounds(part, named(&format!("{what}: {name}"), how), rates, "events/s");
            if *name == "ours" { line.limit_ratio(ratio) } else { line }
        })
        .collect())
}
