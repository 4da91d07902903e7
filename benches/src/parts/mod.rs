//! The parts of the benchmark, each about one question.

mod backlog;
mod drain;
mod enqueue;
mod held;
mod latency;
mod memory;
mod others;
mod scaling;
mod steady;

use crate::Result;
use crate::report::Line;

/// What is the same for all parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How often each contestant has its turn.
    pub(crate) rounds: usize,
    /// How many events are drained.
    pub(crate) events: u64,
    /// Whether the peers are built and measured too.
    pub(crate) peers: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { rounds: 5, events: 50_000, peers: true }
    }
}

/// In the order in which they run.
pub(crate) const ALL: [&str; 10] =
    ["drain", "enqueue", "steady", "latency", "scaling", "memory", "sqlite", "mariadb", "backlog", "held"];

pub(crate) async fn run(part: &str, settings: &Settings) -> Result<Vec<Line>> {
    match part {
        "drain" => drain::run(settings).await,
        "enqueue" => enqueue::run(settings).await,
        "steady" => steady::run(settings).await,
        "latency" => latency::run(settings).await,
        "scaling" => scaling::run(settings).await,
        "memory" => memory::run().await,
        "sqlite" => others::sqlite(settings).await,
        "mariadb" => others::mariadb(settings).await,
        "backlog" => backlog::run(settings).await,
        "held" => held::run(settings).await,
        other => Err(format!("no such part: {other}").into()),
    }
}
