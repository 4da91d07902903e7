use std::process::Command;
use std::str::FromStr;

use outbox::{EventId, Outbox};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Pool, Postgres, Transaction};

use super::server::{AtEnd, fresh_name};
use super::{Fresh, Harness, eventually};

const URL: &str = "TEST_POSTGRES_URL";

/// A pooler in front of that server, in transaction mode: with it the tests go through it.
const POOLER: &str = "TEST_POSTGRES_POOLER";

/// Settings that every database of the tests gets, `name=value;name=value`: another isolation, another time zone.
const SETTINGS: &str = "TEST_POSTGRES_SETTINGS";

/// Drops a case's database.
async fn drop_database(server: PgConnectOptions, name: String) {
    let mut server = server.connect().await.unwrap();
    let drop = format!("DROP DATABASE {name} WITH (FORCE)");
    sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut server).await.unwrap();
    server.close().await.unwrap();
}

fn pool_of(options: PgConnectOptions) -> Pool<Postgres> {
    PgPoolOptions::new().max_connections(8).connect_lazy_with(options)
}

/// What a pooler takes of the options that sqlx sends.
fn through(pooler: &str, name: &str) -> PgConnectOptions {
    let options = PgConnectOptions::from_str(pooler).unwrap().database(name);
    options.statement_cache_capacity(0).extra_float_digits(None)
}

/// A transaction of somebody who knows where the tables are.
async fn in_public(pool: &Pool<Postgres>) -> Transaction<'static, Postgres> {
    let mut tx = pool.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await.unwrap();
    sqlx::raw_sql("SET LOCAL search_path TO public").execute(&mut *tx).await.unwrap();
    tx
}

impl Harness for Postgres {
    fn left_out() -> Option<&'static str> {
        std::env::var(URL).is_err().then_some("TEST_POSTGRES_URL names no server; ./tests/run starts one")
    }

    async fn fresh() -> Fresh<Self> {
        let server = PgConnectOptions::from_str(&std::env::var(URL).unwrap()).unwrap();
        let name = fresh_name();
        let mut connection = server.connect().await.unwrap();
        let create = format!("CREATE DATABASE {name}");
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut connection).await.unwrap();
        for setting in
            std::env::var(SETTINGS).unwrap_or_default().split(';').filter(|setting| !setting.is_empty())
        {
            let (setting, value) = setting.split_once('=').unwrap();
            let alter = format!("ALTER DATABASE {name} SET {setting} TO '{value}'");
            sqlx::raw_sql(AssertSqlSafe(alter)).execute(&mut connection).await.unwrap();
        }
        connection.close().await.unwrap();
        let url = server.clone().database(&name).to_url_lossy().to_string();
        let outbox = match std::env::var(POOLER) {
            Ok(pooler) => Outbox::new(pool_of(through(&pooler, &name))).transaction_pooling(),
            // The application's own connections look for tables elsewhere.
            Err(_) => {
                Outbox::new(pool_of(server.clone().database(&name).options([("search_path", "elsewhere")])))
            }
        };
        Fresh { outbox, url, keep: Box::new(AtEnd::new(|| drop_database(server, name))) }
    }

    async fn sql(pool: &Pool<Self>, statement: String) -> u64 {
        let mut tx = in_public(pool).await;
        let rows = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *tx).await.unwrap().rows_affected();
        tx.commit().await.unwrap();
        rows
    }

    async fn sql_in(connection: &mut PgConnection, statement: String) {
        sqlx::raw_sql("SET LOCAL search_path TO public").execute(&mut *connection).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.unwrap();
    }

    async fn wait_for_waiters(pool: &Pool<Self>, number: i64) {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        eventually("they wait for a lock", async || Self::count(pool, waiting).await >= number).await;
    }

    async fn count(pool: &Pool<Self>, query: &str) -> i64 {
        let mut tx = in_public(pool).await;
        sqlx::query_scalar(AssertSqlSafe(query)).persistent(false).fetch_one(&mut *tx).await.unwrap()
    }

    fn time(ms: i64) -> String {
        format!("to_timestamp({ms} / 1000.0)")
    }

    const BREAK_WRITES: &str = "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql \
                                AS $$ BEGIN RAISE EXCEPTION 'broken by the test'; END $$; \
                                CREATE TRIGGER broken BEFORE UPDATE ON outbox_event FOR EACH ROW \
                                WHEN (OLD.status = 'processing') EXECUTE FUNCTION broken()";
    const BREAK_CLAIMS: &str = "CREATE FUNCTION unclaimable() RETURNS trigger LANGUAGE plpgsql \
                                AS $$ BEGIN RAISE EXCEPTION 'broken by the test'; END $$; \
                                CREATE TRIGGER unclaimable BEFORE UPDATE ON outbox_event FOR EACH ROW \
                                WHEN (OLD.status = 'pending') EXECUTE FUNCTION unclaimable()";
    const MEND_WRITES: &str = "DROP TRIGGER broken ON outbox_event";
    const BREAK_SIGNALS: Option<&str> = Some(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                                 WHERE application_name = 'outbox listen' AND datname = current_database()",
    );
    const BAD_MOMENTS: Option<&str> = Some(
        "CREATE SEQUENCE moment; \
         CREATE FUNCTION bad_moment() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF nextval('public.moment') % 4 IN (1, 2) THEN \
                 RAISE EXCEPTION 'injected' USING ERRCODE = CASE currval('public.moment') % 2 WHEN 0 THEN '40001' ELSE '40P01' END; \
             END IF; RETURN NULL; END $$; \
         CREATE TRIGGER bad_moment BEFORE UPDATE OR DELETE ON outbox_event EXECUTE FUNCTION bad_moment(); \
         CREATE TRIGGER bad_moment BEFORE INSERT OR UPDATE ON outbox_worker EXECUTE FUNCTION bad_moment()",
    );
    const LATER: &str = "ALTER TABLE outbox_event ADD COLUMN later text; \
                         CREATE INDEX IF NOT EXISTS outbox_event_later ON outbox_event (created_at); \
                         ALTER TABLE outbox_worker ADD COLUMN later text";
    const TX_EVENT: &str = "test.tx_postgres";

    fn client(url: &str, statement: &str) -> Command {
        let mut psql = Command::new("psql");
        // The rest of the URL is for sqlx.
        let url = url.split('?').next().unwrap();
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--command", statement, url]);
        psql
    }

    async fn make_later_index(pool: &Pool<Self>) {
        let index = "CREATE INDEX CONCURRENTLY outbox_event_later ON public.outbox_event (created_at)";
        sqlx::raw_sql(index).execute(pool).await.unwrap();
    }

    async fn lock_row(tx: &mut Transaction<'static, Self>, id: EventId) {
        let lock = "SELECT 1 FROM public.outbox_event WHERE id = $1::uuid FOR UPDATE";
        sqlx::query(lock).bind(id.to_string()).persistent(false).execute(&mut **tx).await.unwrap();
    }
}
