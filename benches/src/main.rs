//! Ours, the limit and the peers, measured in one run: `cargo run --release -p outbox-benches -- all`, or one part of it.
//! See `benches/README.md`.

mod bare;
mod child;
mod contestant;
mod measure;
mod ours;
mod parts;
mod payload;
mod peers;
mod pools;
mod protocol;
mod report;
mod server;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use sqlx::{MySql, Postgres, Sqlite};

/// A benchmark has one answer to every error: to say it and end.
type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "usage: outbox-benches all | PART… [--rounds N] [--events N] [--without-peers]\n\
                     parts: drain enqueue steady latency backlog held scaling memory sqlite mariadb";

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let ended = match arguments.first().map(String::as_str) {
        Some("contestant") => contestant(&arguments[1..]).await.map(|()| true),
        _ => run(&arguments).await,
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            println!("a target was not met");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs parts, and says what they came to; whether every target was met.
async fn run(arguments: &[String]) -> Result<bool> {
    let mut settings = parts::Settings::default();
    let mut chosen = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--rounds" => settings.rounds = words.next().ok_or(USAGE)?.parse()?,
            "--events" => settings.events = words.next().ok_or(USAGE)?.parse()?,
            "--without-peers" => settings.peers = false,
            "all" => chosen.extend(parts::ALL),
            name => chosen.push(*parts::ALL.iter().find(|part| **part == name).ok_or(USAGE)?),
        }
    }
    if chosen.is_empty() {
        return Err(USAGE.into());
    }
    report::heading();
    let mut lines = Vec::new();
    for part in chosen {
        let came = parts::run(part, &settings).await?;
        report::print(&came);
        lines.extend(came);
    }
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench/summary.json"));
    report::write(&path, &lines)?;
    Ok(report::all_met(&lines))
}

/// The other side: one contestant's command, `NAME COMMAND URL … VARIANT`.
async fn contestant(arguments: &[String]) -> Result<()> {
    let url = arguments.get(2).ok_or(USAGE)?;
    match url.split_once(':').map(|(scheme, _)| scheme) {
        Some("postgres") => contestant_on::<Postgres>(arguments).await,
        Some("mysql") => contestant_on::<MySql>(arguments).await,
        Some("sqlite") => contestant_on::<Sqlite>(arguments).await,
        _ => Err(USAGE.into()),
    }
}

async fn contestant_on<DB: bare::Bare>(arguments: &[String]) -> Result<()>
where
    for<'c> &'c mut DB::Connection: Send,
{
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["ours", "setup", url, _] => ours::setup::<DB>(url).await,
        ["ours", "fill", url, number, _] => ours::fill::<DB>(url, number.parse()?).await,
        ["ours", "unfinished", _, _] => protocol::say(ours::UNFINISHED),
        ["ours", "drain", url, variant] => ours::drain::<DB>(url, variant).await,
        ["ours", "enqueue", url, writers, seconds, _] => {
            ours::enqueue::<DB>(url, writers.parse()?, Duration::from_secs_f64(seconds.parse()?)).await
        }
        ["ours", "bulk", url, number, _] => ours::bulk::<DB>(url, number.parse()?).await,
        ["bare", "setup", url, variant] => bare::setup::<DB>(url, variant).await,
        ["bare", "fill", url, number, variant] => bare::fill::<DB>(url, number.parse()?, variant).await,
        ["bare", "unfinished", _, variant] => protocol::say(bare::unfinished(variant)),
        ["bare", "drain", url, variant] => bare::drain::<DB>(url, variant).await,
        ["bare", "enqueue", url, writers, seconds, _] => {
            bare::enqueue::<DB>(url, writers.parse()?, Duration::from_secs_f64(seconds.parse()?)).await
        }
        ["bare", "bulk", url, number, _] => bare::bulk::<DB>(url, number.parse()?).await,
        _ => Err(USAGE.into()),
    }
}
