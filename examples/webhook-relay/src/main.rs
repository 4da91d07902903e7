//! A webhook relay: deliveries are stored as they come, and relayed to a slow and moody sink, through crashes.
//!
//! - `ingest` stores deliveries; each and its event in one transaction.
//! - `relay` runs the worker.
//! - `sink` is the HTTP server that they are relayed to; it writes down what arrives.
//! - `committed` lists the deliveries that are stored, for a comparison with the sink's log.
//!
//! On SQLite, or with the feature `postgres` on PostgreSQL.
//!
//! `crash-test`, beside this crate, kills the relay in the middle and proves that nothing is lost.

mod ingest;
mod relay;
mod sink;

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use outbox::Outbox;
use reqwest::Url;
// Nothing else names this crate; without this line the linker would leave its handlers out.
use webhook_handlers as _;

/// The database, named once.
#[cfg(not(feature = "postgres"))]
type Db = sqlx::Sqlite;
/// The database, named once.
#[cfg(feature = "postgres")]
type Db = sqlx::Postgres;

const DELIVERIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/deliveries.jsonl");

#[derive(Parser)]
#[command(about = "Relays webhook deliveries to an HTTP sink, through crashes")]
struct Args {
    /// Where deliveries and events are stored
    #[arg(long, env = "DATABASE_URL", default_value = "sqlite://webhooks.db")]
    database: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Stores deliveries, each and its event in one transaction
    Ingest {
        /// One delivery a line: {"event": kind, "payload": object}
        #[arg(long, default_value = DELIVERIES)]
        file: PathBuf,
    },
    /// Relays what is stored to the sink, until Ctrl-C
    Relay {
        /// The sink's address, as `sink` printed it
        #[arg(long)]
        sink: Url,
        /// After how long another relay takes over from one that died
        #[arg(long, default_value = "60s", value_parser = duration)]
        lease: Duration,
        /// Ends when nothing is left to relay
        #[arg(long)]
        until_done: bool,
    },
    /// Receives what is relayed, and appends a line for each to a log
    Sink {
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        #[arg(long, default_value = "sink.log")]
        log: PathBuf,
        /// How long it takes to answer
        #[arg(long, default_value = "50ms", value_parser = duration)]
        delay: Duration,
        /// Refuses every n-th request with a 503
        #[arg(long)]
        fail_every: Option<u64>,
    },
    /// Lists the ids of the deliveries that are stored
    Committed,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let Args { database, command } = Args::parse();
    match command {
        Command::Ingest { file } => ingest::ingest(&open(&database).await?, &file).await,
        Command::Relay { sink, lease, until_done } => {
            tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
            relay::relay(open(&database).await?, sink, lease, until_done).await
        }
        Command::Sink { listen, log, delay, fail_every } => {
            sink::serve(listen, &log, delay, fail_every).await
        }
        Command::Committed => ingest::print_committed(&open(&database).await?).await,
    }
}

async fn open(database: &str) -> Result<Outbox<Db>, Box<dyn Error>> {
    let outbox = Outbox::<Db>::connect(database).await?;
    outbox.migrate().await?;
    ingest::create_table(&outbox).await?;
    Ok(outbox)
}

/// Reads `250ms`, `2s` or `5m`.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| format!("`{text}` does not begin with a number"))?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        _ => Err(format!("`{text}` has no unit: ms, s or m")),
    }
}
