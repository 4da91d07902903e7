use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

use outbox::{EventId, Outbox};
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, MySql, Pool, Transaction};

use super::server::{AtEnd, fresh_name};
use super::{Fresh, Harness, eventually};

const URL: &str = "TEST_MYSQL_URL";

/// Statements that every session of the tests' applications begins with: it does not commit by itself, isolates more.
const SETTINGS: &str = "TEST_MYSQL_SETTINGS";

/// Drops a case's database, and those that are its schemas.
async fn drop_database(server: MySqlConnectOptions, name: String) {
    let mut server = server.connect().await.unwrap();
    // Somebody's last statement may still be at it.
    let own = "SELECT CAST(schema_name AS CHAR) FROM information_schema.schemata \
               WHERE schema_name = ? OR LEFT(schema_name, LENGTH(?) + 1) = CONCAT(?, ' ')";
    let own = sqlx::query_scalar(own).bind(&name).bind(&name).bind(&name);
    let own: Vec<String> = own.fetch_all(&mut server).await.unwrap();
    for name in own {
        let drop = format!("SET lock_wait_timeout = 10; DROP DATABASE `{}`", name.replace('`', "``"));
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut server).await.unwrap();
    }
    server.close().await.unwrap();
}

impl Harness for MySql {
    fn left_out() -> Option<&'static str> {
        std::env::var(URL).is_err().then_some("TEST_MYSQL_URL names no server; ./tests/run starts one")
    }

    async fn fresh() -> Fresh<Self> {
        let server = MySqlConnectOptions::from_str(&std::env::var(URL).unwrap()).unwrap();
        let name = fresh_name();
        let mut connection = server.connect().await.unwrap();
        let create = format!("CREATE DATABASE {name}");
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        // The time zone is the server's, which is not UTC in these tests.
        let application = server.clone().database(&name).timezone(None);
        let settings = std::env::var(SETTINGS).unwrap_or_default();
        let options = MySqlPoolOptions::new().max_connections(8).after_connect(move |connection, _| {
            let settings = settings.clone();
            Box::pin(async move {
                if !settings.is_empty() {
                    sqlx::raw_sql(AssertSqlSafe(settings)).execute(connection).await?;
                }
                Ok(())
            })
        });
        let pool = options.connect_lazy_with(application);
        let url = server.clone().database(&name).to_url_lossy().to_string();
        Fresh { outbox: Outbox::new(pool), url, keep: Box::new(AtEnd::new(|| drop_database(server, name))) }
    }

    /// A schema is a database of the server's, which all cases share.
    fn schema(pool: &Pool<Self>, name: &str) -> String {
        format!("{} {name}", pool.connect_options().get_database().unwrap())
    }

    async fn sql(pool: &Pool<Self>, statement: String) -> u64 {
        // A session may not commit by itself.
        let mut tx = pool.begin().await.unwrap();
        let rows = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *tx).await.unwrap().rows_affected();
        tx.commit().await.unwrap();
        rows
    }

    async fn sql_in(connection: &mut MySqlConnection, statement: String) {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.unwrap();
    }

    async fn wait_for_waiters(pool: &Pool<Self>, number: i64) {
        let waiting = "SELECT count(*) FROM information_schema.processlist AS session \
                       LEFT JOIN information_schema.innodb_trx AS trx ON session.id = trx.trx_mysql_thread_id \
                       WHERE (trx.trx_state = 'LOCK WAIT' OR session.state = 'Waiting for table metadata lock') \
                         AND session.db = database()";
        eventually("they wait for a lock", async || {
            // The server looks again only when it was left alone for a tenth of a second.
            tokio::time::sleep(Duration::from_millis(120)).await;
            Self::count(pool, waiting).await >= number
        })
        .await;
    }

    async fn count(pool: &Pool<Self>, query: &str) -> i64 {
        let begin = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION";
        let mut tx = pool.begin_with(begin).await.unwrap();
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut *tx).await.unwrap()
    }

    fn time(ms: i64) -> String {
        ms.to_string()
    }

    fn text(column: &str) -> String {
        column.to_owned()
    }

    const BREAK_WRITES: &str = "CREATE TRIGGER broken BEFORE UPDATE ON outbox_event FOR EACH ROW \
                                IF OLD.status = 'processing' THEN \
                                    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'broken by the test'; END IF";
    const BREAK_CLAIMS: &str = "CREATE TRIGGER unclaimable BEFORE UPDATE ON outbox_event FOR EACH ROW \
                                IF OLD.status = 'pending' THEN \
                                    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'broken by the test'; END IF";
    const MEND_WRITES: &str = "DROP TRIGGER broken";
    const BREAK_SIGNALS: Option<&str> = None;
    // A trigger runs for each row: the time tells the statements of a session apart.
    const BAD_MOMENTS: Option<&str> = Some(
        "CREATE PROCEDURE bad_moment() BEGIN \
             IF @statement IS NULL OR @statement <> UTC_TIMESTAMP(6) THEN \
                 SET @statement = UTC_TIMESTAMP(6), @moment = COALESCE(@moment, 0) + 1; \
             END IF; \
             IF @moment % 4 = 1 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'injected'; END IF; \
             IF @moment % 4 = 2 THEN SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'injected'; END IF; \
         END; \
         CREATE TRIGGER bad_update BEFORE UPDATE ON outbox_event FOR EACH ROW CALL bad_moment(); \
         CREATE TRIGGER bad_delete BEFORE DELETE ON outbox_event FOR EACH ROW CALL bad_moment(); \
         CREATE TRIGGER bad_beginning BEFORE INSERT ON outbox_worker FOR EACH ROW CALL bad_moment(); \
         CREATE TRIGGER bad_beat BEFORE UPDATE ON outbox_worker FOR EACH ROW CALL bad_moment()",
    );
    const LATER: &str = "ALTER TABLE outbox_event ADD COLUMN later VARCHAR(16); \
                         CREATE INDEX by_creation ON outbox_event (created_at); \
                         ALTER TABLE outbox_worker ADD COLUMN later VARCHAR(16)";
    const DEFERS: bool = false;
    const DEEPEST: usize = 31;
    const TX_EVENT: &str = "test.tx_mysql";

    fn client(url: &str, statement: &str) -> Command {
        let server = MySqlConnectOptions::from_str(url).unwrap();
        let mut mariadb = Command::new("mariadb");
        mariadb.args([
            "--no-defaults",
            "--host",
            server.get_host(),
            "--port",
            &server.get_port().to_string(),
        ]);
        mariadb.args(["--user", server.get_username(), "--database", server.get_database().unwrap()]);
        mariadb.args(["--execute", statement]);
        mariadb
    }

    async fn make_later_index(pool: &Pool<Self>) {
        let index = "CREATE INDEX by_creation ON outbox_event (created_at) ALGORITHM = INPLACE LOCK = NONE";
        sqlx::raw_sql(index).execute(pool).await.unwrap();
    }

    async fn lock_row(tx: &mut Transaction<'static, Self>, id: EventId) {
        let lock = "SELECT 1 FROM outbox_event WHERE id = ? FOR UPDATE";
        sqlx::query(lock).bind(id.to_string()).execute(&mut **tx).await.unwrap();
    }
}
