use std::process::Command;
use std::time::Duration;

use outbox::{EventId, Outbox};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePoolOptions};
use sqlx::{AssertSqlSafe, Pool, Sqlite, Transaction};

use super::{Fresh, Harness};

impl Harness for Sqlite {
    async fn fresh() -> Fresh<Self> {
        let folder = tempfile::tempdir().unwrap();
        let options = SqliteConnectOptions::new()
            .filename(folder.path().join("test.db"))
            .create_if_missing(true)
            .busy_timeout(Duration::from_secs(10));
        let pool = SqlitePoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
        let url = format!("sqlite://{}", folder.path().join("test.db").display());
        Fresh { outbox: Outbox::new(pool), url, keep: Box::new(folder) }
    }

    async fn sql(pool: &Pool<Self>, statement: String) -> u64 {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(pool).await.unwrap().rows_affected()
    }

    async fn sql_in(connection: &mut SqliteConnection, statement: String) {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.unwrap();
    }

    async fn wait_for_waiters(_: &Pool<Self>, _: i64) {
        unreachable!("SQLite locks the database")
    }

    async fn count(pool: &Pool<Self>, query: &str) -> i64 {
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(pool).await.unwrap()
    }

    fn time(ms: i64) -> String {
        ms.to_string()
    }

    const BREAK_WRITES: &str = "CREATE TRIGGER broken BEFORE UPDATE ON outbox_event WHEN OLD.status = 'processing' \
                                BEGIN SELECT RAISE(ABORT, 'broken by the test'); END";
    const BREAK_CLAIMS: &str = "CREATE TRIGGER unclaimable BEFORE UPDATE ON outbox_event WHEN OLD.status = 'pending' \
                                BEGIN SELECT RAISE(ABORT, 'broken by the test'); END";
    const MEND_WRITES: &str = "DROP TRIGGER broken";
    const BREAK_SIGNALS: Option<&str> = Some("SELECT 1");
    const BAD_MOMENTS: Option<&str> = None;
    const LATER: &str = "ALTER TABLE outbox_event ADD COLUMN later TEXT; \
                         CREATE INDEX IF NOT EXISTS outbox_event_later ON outbox_event (created_at); \
                         ALTER TABLE outbox_worker ADD COLUMN later TEXT";
    const TX_EVENT: &str = "test.tx_sqlite";

    fn client(url: &str, statement: &str) -> Command {
        let mut sqlite = Command::new("sqlite3");
        let path = url.strip_prefix("sqlite://").unwrap();
        sqlite.args(["-bail", "-cmd", ".timeout 10000", path, statement]);
        sqlite
    }

    async fn make_later_index(pool: &Pool<Self>) {
        let index = "CREATE INDEX outbox_event_later ON outbox_event (created_at)";
        sqlx::raw_sql(index).execute(pool).await.unwrap();
    }

    async fn lock_row(_: &mut Transaction<'static, Self>, _: EventId) {
        unreachable!("SQLite locks the database")
    }
}
