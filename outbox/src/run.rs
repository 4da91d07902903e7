//! `outbox::run()`: everything from the environment, for a program that is a worker.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use crate::backend::Backend;
use crate::handle::{ConnectError, Outbox, url_scheme};
use crate::handler::States;
use crate::registry::Registry;
use crate::worker::{Counts, Options, RunError, Worker, WorkerHandle, builder_methods};

/// Runs a worker with all linked handlers on the database of `DATABASE_URL`, until SIGINT or SIGTERM.
///
/// Returns a builder that is awaited.
///
/// ```no_run
/// #[derive(Clone)]
/// struct Stripe;
///
/// #[tokio::main]
/// async fn main() -> Result<(), outbox::RunError> {
///     outbox::run().state(Stripe).migrate_on_start().await?;
///     Ok(())
/// }
/// ```
pub fn run() -> Run {
    Run {
        url: None,
        schema: None,
        transaction_pooling: false,
        migrate: false,
        registry: None,
        states: States::default(),
        options: Options::default(),
    }
}

/// A worker about to run; await it.
#[must_use = "nothing runs until this is awaited"]
#[derive(Debug)]
pub struct Run {
    url: Option<String>,
    schema: Option<String>,
    transaction_pooling: bool,
    migrate: bool,
    registry: Option<Registry>,
    states: States,
    options: Options,
}

/// Does the same with the worker of whichever database the URL names.
macro_rules! on_database {
    ($run:expr, $url:expr, $worker:ident => $then:expr) => {
        match url_scheme($url) {
            #[cfg(feature = "sqlite")]
            "sqlite" => {
                let $worker = $run.worker::<sqlx::Sqlite>($url).await?;
                $then
            }
            #[cfg(feature = "postgres")]
            "postgres" | "postgresql" => {
                let $worker = $run.worker::<sqlx::Postgres>($url).await?;
                $then
            }
            #[cfg(feature = "mysql")]
            "mysql" | "mariadb" => {
                let $worker = $run.worker::<sqlx::MySql>($url).await?;
                $then
            }
            scheme => Err(unknown_scheme(scheme)),
        }
    };
}

impl Run {
    /// The database, instead of `DATABASE_URL`.
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// Where the outbox's tables are; see [`Outbox::schema`].
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = Some(name.into());
        self
    }

    /// The database is behind a pooler in transaction mode; see [`Outbox::transaction_pooling`].
    pub fn transaction_pooling(mut self) -> Self {
        self.transaction_pooling = true;
        self
    }

    /// Makes or upgrades the outbox's tables before the worker starts.
    pub fn migrate_on_start(mut self) -> Self {
        self.migrate = true;
        self
    }

    /// The handlers, instead of all that are linked into the program.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Gives handlers a value that they take as [`State<T>`](crate::State).
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    builder_methods!();

    /// Starts in the background instead, without listening for signals.
    ///
    /// # Errors
    /// [`RunError`], before anything is claimed.
    pub async fn spawn(self) -> Result<WorkerHandle, RunError> {
        let url = self.database_url()?;
        on_database!(self, &url, worker => worker.spawn().await)
    }

    async fn until_signal(self) -> Result<Counts, RunError> {
        let signals = Signals::listen().map_err(RunError::Signal)?;
        let url = self.database_url()?;
        on_database!(self, &url, worker => worker.run_until(signals.wait()).await)
    }

    fn database_url(&self) -> Result<String, RunError> {
        let url = self.url.clone().or_else(|| std::env::var("DATABASE_URL").ok());
        url.filter(|url| !url.is_empty()).ok_or(RunError::NoUrl)
    }

    async fn worker<DB: Backend>(self, url: &str) -> Result<Worker<DB>, RunError> {
        let registry = self.registry.unwrap_or_else(Registry::linked);
        // What the program itself lacks is said first: it needs no database.
        registry.check(&self.states, &self.options.expected)?;
        let mut outbox: Outbox<DB> = Outbox::connect(url).await?;
        if let Some(schema) = &self.schema {
            outbox = outbox.schema(schema);
        }
        if self.transaction_pooling {
            outbox = outbox.transaction_pooling();
        }
        outbox.registry = registry.into();
        outbox.states = self.states;
        if self.migrate {
            outbox.migrate().await?;
        }
        Ok(Worker::with_options(outbox, self.options))
    }
}

impl IntoFuture for Run {
    type Output = Result<Counts, RunError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.until_signal())
    }
}

fn unknown_scheme(scheme: &str) -> RunError {
    let known: &[&str] = &[
        #[cfg(feature = "sqlite")]
        "sqlite:",
        #[cfg(feature = "postgres")]
        "postgres:",
        #[cfg(feature = "mysql")]
        "mysql:",
    ];
    let expected = format!("{} (each is a feature of the crate `outbox`)", known.join(" or "));
    ConnectError::Scheme { scheme: scheme.to_owned(), expected }.into()
}

/// The signals that end a program.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    #[cfg(unix)]
    async fn wait(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn listen() -> std::io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn wait(self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
