//! The worker: claims events, runs their handlers, writes what came of it, and looks after the rest.
//!
//! One file for each small service: `poll` claims, `execute` runs, `settle` writes, `heartbeat`, `reap` and `prune`
//! run beside them. `session` is what they share, `hands` its bookkeeping.

mod abandon;
mod execute;
mod hands;
mod heartbeat;
mod lane;
mod life;
mod oneshot;
mod options;
mod poll;
mod prune;
mod reap;
mod session;
mod settle;
mod sweep;
mod tally;
mod transact;

use std::any::TypeId;
use std::future::Future;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::backend::Backend;
use crate::handle::{ConnectError, Outbox};
use crate::migrate::{self, MigrateError};
use crate::registry::RegistryError;

pub use oneshot::{BatchOptions, Processed};
pub use options::Retention;
pub(crate) use options::{Options, builder_methods};
pub use tally::Counts;

/// A worker to be configured and run; made by [`Outbox::worker`].
///
/// ```no_run
/// # async fn shutdown() {}
/// # async fn run(outbox: outbox::Outbox<sqlx::Sqlite>) -> Result<(), outbox::RunError> {
/// let counts = outbox.worker().concurrency(64).run_until(shutdown()).await?;
/// println!("{} events completed", counts.completed);
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a worker does nothing until it is run"]
pub struct Worker<DB: Backend> {
    outbox: Outbox<DB>,
    options: Options,
}

impl<DB: Backend> Worker<DB> {
    pub(crate) fn new(outbox: Outbox<DB>) -> Self {
        Self { outbox, options: Options::default() }
    }

    pub(crate) fn with_options(outbox: Outbox<DB>, options: Options) -> Self {
        Self { outbox, options }
    }

    /// Gives handlers a value that they take as [`State<T>`](crate::State).
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.outbox = self.outbox.state(value);
        self
    }

    builder_methods!();

    /// Runs until `shutdown` resolves, then finishes in order: no more claims, what has not started goes back at
    /// once, what runs gets the grace time.
    ///
    /// # Errors
    /// [`RunError`] at start, before anything is claimed; later only for what cannot go on: a database that goes
    /// away is waited for.
    pub async fn run_until(self, shutdown: impl Future) -> Result<Counts, RunError> {
        let stop = CancellationToken::new();
        let running = self.start(stop.clone()).await?;
        let mut running = StopOnDrop { stop, task: running };
        tokio::select! {
            ended = &mut running.task => return joined(ended),
            _ = shutdown => running.stop.cancel(),
        }
        joined((&mut running.task).await)
    }

    /// Starts in the background, once everything that can be checked is.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until), those at start.
    pub async fn spawn(self) -> Result<WorkerHandle, RunError> {
        let stop = CancellationToken::new();
        let task = self.start(stop.clone()).await?;
        Ok(WorkerHandle { running: StopOnDrop { stop, task } })
    }

    async fn start(self, stop: CancellationToken) -> Result<JoinHandle<Result<Counts, RunError>>, RunError> {
        let Self { outbox, options } = self;
        let options = preflight(&outbox, options)?;
        migrate::check(&outbox.store).await?;
        let life = life::Life::begin(&outbox, options).await?;
        Ok(tokio::spawn(life.run(stop)))
    }
}

/// Everything that can be found wrong without the database.
fn preflight<DB: Backend>(outbox: &Outbox<DB>, options: Options) -> Result<Options, RunError> {
    let options = options.on::<DB>();
    outbox.registry.check(&outbox.states, &options.expected)?;
    outbox.registry.check_database(TypeId::of::<DB>(), DB::DATABASE)?;
    options.check(&outbox.registry)?;
    if options.listen && outbox.store.place.pooled {
        let problem =
            "hears nothing through a pooler in transaction mode: leave one of the two out".to_owned();
        return Err(RunError::Option { option: "listen", problem });
    }
    Ok(options)
}

fn joined(ended: Result<Result<Counts, RunError>, tokio::task::JoinError>) -> Result<Counts, RunError> {
    ended.unwrap_or_else(|error| Err(RunError::Stopped(error.to_string())))
}

/// A worker that runs in the background. Dropping the handle stops the worker, in order but unwatched.
#[derive(Debug)]
#[must_use = "dropping the handle stops the worker"]
pub struct WorkerHandle {
    running: StopOnDrop,
}

impl WorkerHandle {
    /// Stops the worker in order, and waits until it has ended.
    ///
    /// # Errors
    /// What ended the worker before, if anything did.
    pub async fn stop(mut self) -> Result<Counts, RunError> {
        self.running.stop.cancel();
        joined((&mut self.running.task).await)
    }

    /// Whether the worker has ended by itself, which it only does on an error.
    pub fn is_finished(&self) -> bool {
        self.running.task.is_finished()
    }
}

#[derive(Debug)]
struct StopOnDrop {
    stop: CancellationToken,
    task: JoinHandle<Result<Counts, RunError>>,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Why a worker does not run.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The program's handlers are not right.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// An option is not possible.
    #[error("{option} {problem}")]
    Option {
        /// Which one.
        option: &'static str,
        /// What is wrong and what to do.
        problem: String,
    },
    /// No database URL.
    #[error(
        "the database is not named: set the environment variable DATABASE_URL, such as sqlite://app.db, or call `.url(…)`"
    )]
    NoUrl,
    /// The database cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The tables are not there.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The event cannot be run here.
    #[error(
        "no handler in this program takes event type `{event_type}` in version {version}; the event is untouched"
    )]
    NoHandler {
        /// Its type.
        event_type: String,
        /// Its version.
        version: u32,
    },
    /// The heartbeat's thread could not be started.
    #[error("the heartbeat's thread could not be started: {0}")]
    Thread(#[source] std::io::Error),
    /// The signals that end the program could not be listened for.
    #[error("the signals for shutdown cannot be listened for: {0}")]
    Signal(#[source] std::io::Error),
    /// The database refused, or does not answer.
    #[error("the database refused: {0}")]
    Database(#[from] sqlx::Error),
    /// A service of the worker ended, which is a fault of this library.
    #[error("a service of the worker stopped: {0}; please report this")]
    Stopped(String),
}

crate::readable::readable!(RunError);

/// How long the timeout of a handler is that names none.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(90);
