//! A pool, the statements of a schema and the clock, together: what everything that asks the database holds.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Pool, Transaction};
use tokio::sync::OnceCell;

use crate::backend::{At, Backend, Migration, Place};
use crate::clock::Clock;

#[derive(Debug)]
pub(crate) struct Store<DB: Backend> {
    pub(crate) pool: Pool<DB>,
    pub(crate) place: Place,
    pub(crate) clock: Clock,
    /// What its tables have to be brought to.
    pub(crate) migrations: Cow<'static, [Migration]>,
    sql: Arc<DB::Statements>,
    /// Whether the pool's sessions commit by themselves; those of the loop are made like them.
    commits_by_itself: Arc<OnceCell<bool>>,
}

impl<DB: Backend> Clone for Store<DB> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            place: self.place.clone(),
            clock: self.clock.clone(),
            migrations: self.migrations.clone(),
            sql: Arc::clone(&self.sql),
            commits_by_itself: Arc::clone(&self.commits_by_itself),
        }
    }
}

impl<DB: Backend> Store<DB> {
    pub(crate) fn new(pool: Pool<DB>) -> Self {
        let place = Place::default();
        let sql = DB::statements(&place);
        Self {
            pool,
            place,
            clock: Clock::database(),
            migrations: Cow::Borrowed(DB::MIGRATIONS),
            sql,
            commits_by_itself: Arc::default(),
        }
    }

    /// The same for tables elsewhere.
    pub(crate) fn placed(self, place: Place) -> Self {
        let sql = DB::statements(&place);
        Self { place, sql, ..self }
    }

    /// The same tables through other connections.
    pub(crate) fn through(&self, pool: Pool<DB>) -> Self {
        Self { pool, ..self.clone() }
    }

    /// Where its tables are, if not in the default place.
    pub(crate) fn schema(&self) -> Option<&str> {
        self.place.schema.as_deref()
    }

    /// Something to run one of the backend's methods on, with [`at`](Self::at).
    pub(crate) async fn acquire(&self) -> Result<Held<DB>, sqlx::Error> {
        self.hold(&self.pool).await
    }

    /// The same from another pool.
    pub(crate) async fn hold(&self, pool: &Pool<DB>) -> Result<Held<DB>, sqlx::Error> {
        if !self.place.pooled {
            let mut conn = pool.acquire().await?;
            if *self.commits_by_itself.get_or_try_init(|| DB::commits_by_itself(&mut conn)).await? {
                return Ok(Held::Connection(conn));
            }
        }
        let pool = pool.clone();
        // A task of its own: a `begin` that is given up halfway would leave its connection unusable.
        let begun = tokio::spawn(async move { DB::begin_pooled(&pool).await }).await;
        Ok(Held::Transaction(begun.unwrap_or(Err(sqlx::Error::WorkerCrashed))?))
    }

    pub(crate) fn at<'a>(&'a self, conn: &'a mut DB::Connection) -> At<'a, DB> {
        At { conn, sql: &self.sql, now: self.clock.now_ms() }
    }
}

/// A connection, or behind a pooler a transaction, in which a statement has one to itself.
#[derive(Debug)]
pub(crate) enum Held<DB: Backend> {
    Connection(PoolConnection<DB>),
    Transaction(Transaction<'static, DB>),
}

impl<DB: Backend> Held<DB> {
    pub(crate) fn connection(&mut self) -> &mut DB::Connection {
        match self {
            Self::Connection(connection) => connection,
            Self::Transaction(transaction) => transaction,
        }
    }

    /// After the statement.
    pub(crate) async fn done(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Connection(_) => Ok(()),
            Self::Transaction(transaction) => transaction.commit().await,
        }
    }
}

/// Runs one method of the backend on a connection of the store's, and again after a moment where the database says that
/// only the moment was bad: a deadlock, a serialization failure. A macro, since an async closure cannot say that its
/// future is `Send`.
macro_rules! run {
    ($store:expr, |$at:ident| $call:expr) => {{
        let store = &$store;
        let mut tries = crate::store::Tries::default();
        loop {
            let answer = match store.acquire().await {
                Ok(mut held) => {
                    let $at = store.at(held.connection());
                    match $call.await {
                        Ok(answer) => held.done().await.map(|()| answer),
                        Err(error) => Err(error),
                    }
                }
                Err(error) => Err(error),
            };
            match answer {
                Err(error) if tries.again(DB::is_transient(&error)).await => {}
                answer => break answer,
            }
        }
    }};
}
pub(crate) use run;

/// How often a statement was tried.
#[derive(Debug, Default)]
pub(crate) struct Tries(u32);

impl Tries {
    const MOST: u32 = 8;

    /// Waits a moment, with jitter, if another try makes sense.
    pub(crate) async fn again(&mut self, is_transient: bool) -> bool {
        if !is_transient || self.0 == Self::MOST {
            return false;
        }
        self.0 += 1;
        let longest = Duration::from_millis(2 << self.0);
        tokio::time::sleep(longest.mul_f64(fastrand::f64())).await;
        true
    }
}
