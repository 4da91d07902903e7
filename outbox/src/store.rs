//! A pool, the statements of a schema and the clock, together: what everything that asks the database holds.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Pool;
use sqlx::pool::PoolConnection;

use crate::backend::{At, Backend};
use crate::clock::Clock;

#[derive(Debug)]
pub(crate) struct Store<DB: Backend> {
    pub(crate) pool: Pool<DB>,
    pub(crate) schema: Option<Arc<str>>,
    pub(crate) clock: Clock,
    sql: Arc<DB::Statements>,
}

impl<DB: Backend> Clone for Store<DB> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            schema: self.schema.clone(),
            clock: self.clock.clone(),
            sql: Arc::clone(&self.sql),
        }
    }
}

impl<DB: Backend> Store<DB> {
    pub(crate) fn new(pool: Pool<DB>, schema: Option<Arc<str>>, clock: Clock) -> Self {
        let sql = DB::statements(schema.as_deref());
        Self { pool, schema, clock, sql }
    }

    /// The same tables through other connections.
    pub(crate) fn through(&self, pool: Pool<DB>) -> Self {
        Self { pool, ..self.clone() }
    }

    /// A connection to run one of the backend's methods on, with [`at`](Self::at).
    pub(crate) async fn acquire(&self) -> Result<PoolConnection<DB>, sqlx::Error> {
        self.pool.acquire().await
    }

    pub(crate) fn at<'a>(&'a self, conn: &'a mut DB::Connection) -> At<'a, DB> {
        At { conn, sql: &self.sql, now: self.clock.now_ms() }
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
                Ok(mut conn) => {
                    let $at = store.at(&mut conn);
                    $call.await
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
