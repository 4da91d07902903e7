//! Other outboxes and job queues, each behind the same few commands, for the benchmarks to be run against them. The
//! README says how they are configured and what the commands are.

mod connect;
mod protocol;

mod peers {
    pub mod apalis_postgres;
    pub mod apalis_sqlite;
    pub mod awa;
    pub mod graphile_worker;
    pub mod hexeract;
    pub mod hexeract_sqlite;
    pub mod outbox_core;
    pub mod riverqueue;
    pub mod sqlxmq;
    pub mod underway;
}

use std::time::Duration;

use protocol::Result;
use serde::Serialize;

/// What there is to know about a peer.
#[derive(Serialize)]
struct Info {
    name: &'static str,
    version: &'static str,
    database: &'static str,
    /// Whether the rows of finished events stay.
    keeps_rows: bool,
    variants: &'static [&'static str],
    commands: &'static [&'static str],
}

/// A peer: how its events are stored and handled.
trait Peer {
    /// What there is to know about it.
    const INFO: Info;
    /// Counts the events that are not finished.
    const UNFINISHED: &'static str;

    /// Creates its tables in an empty database.
    async fn setup(url: &str) -> Result;
    /// Stores that many events that are due.
    async fn fill(url: &str, events: u64) -> Result;
    /// Handles events for ever.
    async fn drain(url: &str, variant: &str) -> Result;
    /// Stores events for that time, each in a transaction of its own.
    async fn enqueue(_url: &str, _writers: u32, _time: Duration) -> Result {
        Err("it does not enqueue in the caller's transaction".into())
    }
    /// Stores that many events, many at once.
    async fn bulk(_url: &str, _events: u64) -> Result {
        Err("it has no call for many events".into())
    }
}

async fn run<P: Peer>(command: &[&str]) -> Result {
    match *command {
        ["setup", url] => P::setup(url).await,
        ["fill", url, events] => P::fill(url, events.parse()?).await,
        ["unfinished", _] => {
            protocol::query(P::UNFINISHED);
            Ok(())
        }
        ["drain", _, variant] if !P::INFO.variants.contains(&variant) => {
            Err(format!("no variant {variant}").into())
        }
        ["drain", url, variant] => {
            P::drain(url, variant).await?;
            Err("the worker has ended".into())
        }
        ["enqueue", url, writers, seconds] => {
            P::enqueue(url, writers.parse()?, Duration::from_secs_f64(seconds.parse()?)).await
        }
        ["bulk", url, events] => P::bulk(url, events.parse()?).await,
        _ => Err(USAGE.into()),
    }
}

const USAGE: &str = "usage: outbox-bench-peers list
       outbox-bench-peers PEER setup URL
       outbox-bench-peers PEER fill URL EVENTS
       outbox-bench-peers PEER unfinished URL
       outbox-bench-peers PEER drain URL VARIANT
       outbox-bench-peers PEER enqueue URL WRITERS SECONDS
       outbox-bench-peers PEER bulk URL EVENTS";

macro_rules! peers {
    ($($peer:ident),*) => {
        async fn dispatch(args: &[&str]) -> Result {
            match *args {
                ["list"] => protocol::list(&[$(peers::$peer::This::INFO),*]),
                $([name, ref command @ ..] if name == peers::$peer::This::INFO.name => {
                    run::<peers::$peer::This>(command).await
                })*
                _ => Err(USAGE.into()),
            }
        }
    };
}

peers!(
    graphile_worker,
    outbox_core,
    riverqueue,
    apalis_postgres,
    awa,
    hexeract,
    sqlxmq,
    underway,
    apalis_sqlite,
    hexeract_sqlite
);

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match dispatch(&args).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
