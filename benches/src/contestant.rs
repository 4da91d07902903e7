//! Who is measured: ours, the limit, and the peers; all by the same commands in processes of their own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::process::Command;

use crate::Result;
use crate::child::{self, Child};
use crate::pools::SYNCHRONOUS;
use crate::server::{Counters, Database, Server};

/// One of them, in one configuration.
#[derive(Clone, Debug)]
pub(crate) struct Contestant {
    program: PathBuf,
    /// What the program knows it as.
    pub(crate) name: String,
    pub(crate) variant: String,
    /// How durable SQLite is to be.
    synchronous: Option<&'static str>,
}

impl Contestant {
    pub(crate) fn ours(variant: &str) -> Result<Self> {
        Self::here("ours", variant)
    }

    pub(crate) fn bare(variant: &str) -> Result<Self> {
        Self::here("bare", variant)
    }

    fn here(name: &str, variant: &str) -> Result<Self> {
        Ok(Self::new(std::env::current_exe()?, name, variant))
    }

    pub(crate) fn new(program: PathBuf, name: &str, variant: &str) -> Self {
        Self { program, name: name.to_owned(), variant: variant.to_owned(), synchronous: None }
    }

    pub(crate) fn with_synchronous(self, synchronous: &'static str) -> Self {
        Self { synchronous: Some(synchronous), ..self }
    }

    pub(crate) fn label(&self) -> String {
        format!("{} {}", self.name, self.variant)
    }

    /// Whether this program is the benchmark itself, whose every command knows its variant.
    fn is_here(&self) -> bool {
        self.name == "ours" || self.name == "bare"
    }

    fn arguments(&self, command: &str, database: &Database, further: &[String]) -> Vec<String> {
        let mut arguments = Vec::new();
        if self.is_here() {
            arguments.push("contestant".to_owned());
        }
        let mut url = database.url.clone();
        if !self.is_here() && self.synchronous == Some("FULL") {
            // The peers' program takes it from there.
            url.push_str("&synchronous=full");
        }
        arguments.extend([self.name.clone(), command.to_owned(), url]);
        arguments.extend(further.iter().cloned());
        if self.is_here() || command == "drain" {
            arguments.push(self.variant.clone());
        }
        arguments
    }

    pub(crate) async fn setup(&self, database: &Database) -> Result<()> {
        self.run("setup", database, &[]).await.map(drop)
    }

    pub(crate) async fn fill(&self, database: &Database, events: u64) -> Result<()> {
        self.run("fill", database, &[events.to_string()]).await.map(drop)
    }

    pub(crate) async fn unfinished(&self, database: &Database) -> Result<String> {
        self.run("unfinished", database, &[]).await
    }

    async fn run(&self, command: &str, database: &Database, further: &[String]) -> Result<String> {
        child::run(self.command(command, database, further)).await
    }

    fn command(&self, command: &str, database: &Database, further: &[String]) -> Command {
        let mut process = Command::new(&self.program);
        process.args(self.arguments(command, database, further));
        if let Some(synchronous) = self.synchronous {
            process.env(SYNCHRONOUS, synchronous);
        }
        process
    }

    /// A process that waits for `go`.
    pub(crate) async fn start(
        &self,
        command: &str,
        database: &Database,
        further: &[String],
    ) -> Result<Child> {
        let mut child = Child::start(self.command(command, database, further))?;
        child.expect("ready").await?;
        Ok(child)
    }

    /// Events a second that are stored: by `enqueue` with its writers and seconds, or by `bulk` with its number.
    pub(crate) async fn stores(&self, command: &str, database: &Database, further: &[String]) -> Result<f64> {
        let mut child = self.start(command, database, further).await?;
        child.say("go").await?;
        rate(&child.expect("enqueued").await?)
    }
}

/// A rate from `NUMBER SECONDS`.
pub(crate) fn rate(answer: &str) -> Result<f64> {
    let (number, seconds) = answer.split_once(' ').ok_or("no number and seconds")?;
    Ok(number.parse::<f64>()? / seconds.parse::<f64>()?)
}

/// What draining came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drained {
    /// Events a second.
    pub(crate) rate: f64,
    /// What the server did, for each event.
    pub(crate) each: Counters,
    /// Time on a processor in the contestant's own processes, in seconds for each event.
    pub(crate) client_cpu: f64,
}

/// Fills a fresh database and lets so many processes drain it; timed until all events are complete in the database.
pub(crate) async fn drain(
    server: &Server,
    who: &Contestant,
    processes: usize,
    events: u64,
) -> Result<Drained> {
    let database = server.fresh("drain").await?;
    who.setup(&database).await?;
    who.fill(&database, events).await?;
    database.settle_down().await?;
    drain_filled(&database, who, processes, events).await
}

/// The same in a database that was filled already.
pub(crate) async fn drain_filled(
    database: &Database,
    who: &Contestant,
    processes: usize,
    events: u64,
) -> Result<Drained> {
    let mut unfinished = database.question(&who.unfinished(database).await?).await?;
    let mut children = Vec::new();
    for _ in 0..processes {
        children.push(who.start("drain", database, &[]).await?);
    }
    let before = database.counters().await?;
    let began = Instant::now();
    let handled = Arc::new(AtomicU64::new(0));
    let mut counting = Vec::new();
    for mut child in children {
        child.say("go").await?;
        counting.push(child.count_into(Arc::clone(&handled)));
    }
    // The database is asked only when there is little left to wait for.
    wait_for(&handled, events, began).await?;
    while unfinished.ask().await? > 0.0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let rate = events as f64 / began.elapsed().as_secs_f64();
    let mut client_cpu = 0.0;
    for child in counting {
        client_cpu += child.cpu()? / events as f64;
        child.kill().await?;
    }
    drop(unfinished);
    // Sessions report what they did as they end.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let each = database.counters().await?.since(before).per(events as f64);
    Ok(Drained { rate, each, client_cpu })
}

/// Waits until so many were handled.
pub(crate) async fn wait_for(handled: &AtomicU64, events: u64, began: Instant) -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(600);
    while handled.load(Ordering::Relaxed) < events {
        if began.elapsed() > LIMIT {
            return Err(format!("only {} of {events} were handled", handled.load(Ordering::Relaxed)).into());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}
