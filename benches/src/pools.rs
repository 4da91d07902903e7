//! Connections as an application of each database would open them.

use std::future::Future;
use std::str::FromStr;

use outbox::Backend;
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{MySql, Pool, Postgres, Sqlite};

use crate::Result;

/// A database that the benchmark opens.
pub(crate) trait Open: Backend {
    /// A pool of so many connections, none of them asked whether it lives before it is used.
    fn open(url: &str, connections: u32) -> impl Future<Output = Result<Pool<Self>>> + Send;
}

impl Open for Postgres {
    async fn open(url: &str, connections: u32) -> Result<Pool<Self>> {
        let options = PgPoolOptions::new().max_connections(connections).test_before_acquire(false);
        Ok(options.connect_with(PgConnectOptions::from_str(url)?).await?)
    }
}

impl Open for MySql {
    async fn open(url: &str, connections: u32) -> Result<Pool<Self>> {
        let options = MySqlPoolOptions::new().max_connections(connections).test_before_acquire(false);
        // For the bare statements; the worker's own connections say so themselves.
        let options = options.after_connect(|conn, _| {
            Box::pin(async move {
                let set = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
                sqlx::query(set).execute(conn).await.map(drop)
            })
        });
        Ok(options.connect_with(MySqlConnectOptions::from_str(url)?).await?)
    }
}

impl Open for Sqlite {
    async fn open(url: &str, connections: u32) -> Result<Pool<Self>> {
        let options = SqliteConnectOptions::from_str(url)?
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(synchronous())
            .busy_timeout(std::time::Duration::from_secs(10));
        let pool = SqlitePoolOptions::new().max_connections(connections).test_before_acquire(false);
        Ok(pool.connect_with(options).await?)
    }
}

/// The variable that says how durable SQLite is to be in a contestant's process.
pub(crate) const SYNCHRONOUS: &str = "SYNCHRONOUS";

/// As durable as the others, unless the variable says otherwise.
fn synchronous() -> SqliteSynchronous {
    match std::env::var(SYNCHRONOUS).as_deref() {
        Ok("NORMAL") => SqliteSynchronous::Normal,
        _ => SqliteSynchronous::Full,
    }
}
