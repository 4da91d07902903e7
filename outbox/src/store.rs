//! A pool, the statements of a schema and the clock, together: what everything that asks the database holds.

use std::sync::Arc;

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
