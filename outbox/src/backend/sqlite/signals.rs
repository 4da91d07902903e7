//! Every writer changes the file's version: looking at that is cheaper than looking at the table.

use std::time::Duration;

use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions, Pool, Sqlite};

use super::{BUSY_TIMEOUT, Result, is_in_memory};
use crate::backend::signals::{Sign, Signals};

/// How often.
const INTERVAL: Duration = Duration::from_millis(5);

/// Watches the file's version. `None`: in memory, where no other process is.
#[derive(Debug)]
pub struct SqliteSignals {
    connection: Option<SqliteConnection>,
    version: i64,
}

impl Signals<Sqlite> for SqliteSignals {
    async fn open(pool: &Pool<Sqlite>, _schema: Option<&str>) -> Result<Self> {
        if is_in_memory(pool).await? {
            return Ok(Self { connection: None, version: 0 });
        }
        let connect = pool.connect_options().as_ref().clone().busy_timeout(BUSY_TIMEOUT);
        let mut connection = connect.connect().await?;
        let version = version(&mut connection).await?;
        Ok(Self { connection: Some(connection), version })
    }

    async fn next(&mut self) -> Result<Sign> {
        let Some(connection) = &mut self.connection else { return std::future::pending().await };
        loop {
            tokio::time::sleep(INTERVAL).await;
            let version = version(connection).await?;
            if version != self.version {
                self.version = version;
                // A version changes with a commit.
                return Ok(Sign::Now);
            }
        }
    }

    async fn send(&mut self, _sign: Sign) -> Result<()> {
        // The commit itself is the sign.
        Ok(())
    }

    async fn check(&mut self) -> Result<()> {
        Ok(())
    }
}

async fn version(connection: &mut SqliteConnection) -> Result<i64> {
    sqlx::query_scalar("PRAGMA data_version").fetch_one(connection).await
}
