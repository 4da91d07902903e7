//! Pools of both generations of sqlx, made the same way. All connections are opened at once, so that none is opened
//! while the time is taken, and none is tested before it is used.

use crate::protocol::Result;

macro_rules! pools {
    ($sqlx:ident) => {
        pub mod $sqlx {
            use super::{Result, synchronous_of};
            use $sqlx::postgres::{PgPool, PgPoolOptions};
            use $sqlx::sqlite::{
                SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
            };

            /// A pool on PostgreSQL.
            pub async fn postgres(url: &str, connections: u32) -> Result<PgPool> {
                let options = PgPoolOptions::new().max_connections(connections).min_connections(connections);
                let pool = options.test_before_acquire(false).connect(url).await?;
                futures::future::try_join_all((0..connections).map(|_| pool.acquire())).await?;
                Ok(pool)
            }

            /// A pool on SQLite, in WAL mode.
            pub async fn sqlite(url: &str, connections: u32) -> Result<SqlitePool> {
                let (url, full) = synchronous_of(url);
                let synchronous = if full { SqliteSynchronous::Full } else { SqliteSynchronous::Normal };
                let connect = url.parse::<SqliteConnectOptions>()?.create_if_missing(true);
                let connect = connect.journal_mode(SqliteJournalMode::Wal).synchronous(synchronous);
                let connect = connect.busy_timeout(std::time::Duration::from_secs(30));
                let options =
                    SqlitePoolOptions::new().max_connections(connections).min_connections(connections);
                let pool = options.test_before_acquire(false).connect_with(connect).await?;
                futures::future::try_join_all((0..connections).map(|_| pool.acquire())).await?;
                Ok(pool)
            }
        }
    };
}

pools!(sqlx08);
pools!(sqlx09);

/// Takes `synchronous=full` or `synchronous=normal` (the default) from a URL, which sqlx does not know.
fn synchronous_of(url: &str) -> (String, bool) {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let full = query.split('&').any(|part| part.eq_ignore_ascii_case("synchronous=full"));
    let rest: Vec<_> =
        query.split('&').filter(|part| !part.is_empty() && !part.starts_with("synchronous=")).collect();
    let url = if rest.is_empty() { path.into() } else { format!("{path}?{}", rest.join("&")) };
    (url, full)
}
