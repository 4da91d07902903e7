//! `Outbox`: the handle that an application holds.

use std::borrow::Borrow;
use std::sync::Arc;

use sqlx::{Pool, Transaction};
use tokio::sync::OnceCell;

#[cfg(feature = "testing")]
use crate::backend::Migration;
use crate::backend::data::LoopPools;
use crate::backend::{Backend, Place};
#[cfg(feature = "testing")]
use crate::clock::Clock;
use crate::enqueue::{Enqueue, EnqueueAll, InTransaction};
use crate::event::Event;
use crate::handler::States;
use crate::migrate::{self, MigrateError};
use crate::nudge;
use crate::registry::Registry;
use crate::signals::Notifier;
use crate::store::Store;
use crate::worker::Worker;

/// The outbox of one database: a pool, and what handlers need. Cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use outbox::Outbox;
/// use sqlx::{Sqlite, SqlitePool};
///
/// let pool = SqlitePool::connect("sqlite::memory:").await?;
/// let outbox = Outbox::new(pool);
/// outbox.migrate().await?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Outbox<DB: Backend> {
    pub(crate) store: Store<DB>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) states: States,
    /// The connections of one-shot calls, opened by the first and kept for the next.
    pub(crate) one_shots: Arc<OnceCell<LoopPools<DB>>>,
}

impl<DB: Backend> Clone for Outbox<DB> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            registry: Arc::clone(&self.registry),
            states: self.states.clone(),
            one_shots: Arc::clone(&self.one_shots),
        }
    }
}

impl<DB: Backend> Outbox<DB> {
    /// The outbox in the database of this pool, with every handler that is linked into the program.
    ///
    /// Worker loops open a few connections of their own with the pool's options.
    pub fn new(pool: Pool<DB>) -> Self {
        Self {
            store: Store::new(pool),
            registry: Arc::new(Registry::linked()),
            states: States::default(),
            one_shots: Arc::default(),
        }
    }

    /// Connects, for an application that has no pool of its own. On SQLite the file is made when it is missing, and
    /// put into WAL mode.
    ///
    /// # Errors
    /// [`ConnectError`]: the URL is for another database, or the database does not answer.
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        let scheme = url_scheme(url);
        if !DB::SCHEMES.contains(&scheme) {
            return Err(ConnectError::Scheme {
                scheme: scheme.to_owned(),
                expected: DB::SCHEMES.join(":, "),
            });
        }
        let connected = DB::connect(url).await;
        connected.map(Self::new).map_err(|source| ConnectError::Database { database: DB::DATABASE, source })
    }

    /// Where the outbox's tables are.
    ///
    /// On PostgreSQL this is the schema, on MySQL and MariaDB the database. SQLite has none: there it is a prefix,
    /// `billing.outbox_event` is the name of a table. Any name of up to 63 bytes is possible, whatever characters it has.
    #[must_use]
    pub fn schema(mut self, name: &str) -> Self {
        let place = Place { schema: Some(name.into()), ..self.store.place.clone() };
        self.store = self.store.placed(place);
        self
    }

    /// The pool's connections go through a pooler that gives each transaction another one: PgBouncer in transaction
    /// mode, and its like. Then every statement of the outbox has a short transaction to itself, nothing is kept
    /// prepared, and no session has a setting that could leak to others.
    ///
    /// It costs two round trips more for each statement, most of which carry hundreds of events.
    /// [`listen`](Worker::listen) needs a direct connection. Your own statements need `query.persistent(false)` there, and
    /// the connect options `statement_cache_capacity(0)` and `extra_float_digits(None)`.
    #[must_use]
    pub fn transaction_pooling(mut self) -> Self {
        let place = self.store.place.clone().pooled();
        self.one_shots = Arc::default();
        self.store = self.store.placed(place);
        self
    }

    /// The handlers, instead of all that are linked into the program.
    #[must_use]
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = Arc::new(registry);
        self
    }

    /// Gives handlers a value that they take as [`State<T>`](crate::State).
    #[must_use]
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// Works with another clock than the database's.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.store.clock = clock;
        self
    }

    /// Works as a release would that brings the tables one step further: after its own migrations comes this one.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn later_migration(mut self, name: &'static str, sql: &'static str) -> Self {
        let migrations = self.store.migrations.to_mut();
        let version = migrations.last().map_or(0, |migration| migration.version) + 1;
        migrations.push(Migration { version, name, sql });
        self
    }

    /// The pool.
    pub fn pool(&self) -> &Pool<DB> {
        &self.store.pool
    }

    /// Makes the outbox's tables, or brings them to this release's version. Safe to call at every start, and from
    /// many processes at once.
    ///
    /// # Errors
    /// [`MigrateError`]: the schema's name is impossible, or the database refused.
    pub async fn migrate(&self) -> Result<(), MigrateError> {
        migrate::migrate(&self.store).await
    }

    /// Begins a transaction that is going to write, rightly for each database: on SQLite it takes the write lock at
    /// once, since a transaction that reads first and then writes fails there with "database is locked".
    ///
    /// # Errors
    /// The database's own.
    pub async fn begin(&self) -> Result<Transaction<'static, DB>, sqlx::Error> {
        let pool = self.store.pool.clone();
        // A task of its own: a `begin` whose caller gives up halfway would leave its connection unusable.
        match tokio::spawn(async move { DB::begin(&pool).await }).await {
            Ok(begun) => begun,
            Err(_) => Err(sqlx::Error::WorkerCrashed),
        }
    }

    /// Commits, then wakes the workers of this process, which would otherwise find the event at their next look.
    ///
    /// # Errors
    /// The database's own.
    pub async fn commit(&self, tx: Transaction<'_, DB>) -> Result<(), sqlx::Error> {
        tx.commit().await?;
        nudge::now();
        Ok(())
    }

    /// As the function [`enqueue`](crate::enqueue), in this handle's schema.
    pub fn enqueue<'t, E: Event>(
        &self,
        tx: &'t mut (impl InTransaction<Database = DB> + ?Sized),
        payload: impl Borrow<E>,
    ) -> Enqueue<'t> {
        Enqueue::new::<E>(tx, payload.borrow(), self.store.place.clone(), self.store.clock.clone())
    }

    /// As the function [`enqueue_all`](crate::enqueue_all), in this handle's schema.
    pub fn enqueue_all<'t, E: Event>(
        &self,
        tx: &'t mut (impl InTransaction<Database = DB> + ?Sized),
        payloads: impl IntoIterator<Item: Borrow<E>, IntoIter: Send + 't>,
    ) -> EnqueueAll<'t, E> {
        EnqueueAll::new(tx, payloads, self.store.place.clone(), self.store.clock.clone())
    }

    /// The same outbox through other connections.
    pub(crate) fn through(&self, store: &Store<DB>) -> Self {
        Self { store: store.clone(), ..self.clone() }
    }

    /// Tells the workers of other processes at once of what this process enqueues; for a producer that runs no worker
    /// of its own. They hear it if they [`listen`](crate::Worker::listen).
    ///
    /// Must be called within a Tokio runtime. On PostgreSQL it is a NOTIFY on a connection of its own, outside of every
    /// business transaction, at most every 5 ms; a commit on SQLite is a sign by itself.
    pub fn notifier(&self) -> Notifier {
        Notifier::start(self.store.clone())
    }

    /// A worker, to be configured and run.
    pub fn worker(&self) -> Worker<DB> {
        Worker::new(self.clone())
    }
}

/// The part of a URL before its first colon.
pub(crate) fn url_scheme(url: &str) -> &str {
    url.split_once(':').map_or("", |(scheme, _)| scheme)
}

/// Why there is no connection.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL is for something else.
    #[error("the database URL begins with `{scheme}:`, and here it must begin with {expected}:")]
    Scheme {
        /// What it begins with.
        scheme: String,
        /// What is possible.
        expected: String,
    },
    /// The database does not answer, or refuses.
    #[error("cannot connect to {database} (is it running, and is the URL right?): {source}")]
    Database {
        /// Which database.
        database: &'static str,
        /// Its answer.
        source: sqlx::Error,
    },
}

crate::readable::readable!(ConnectError);
