//! What the test needs of a database beside the outbox: one that stays open over many schedules, and all rows at once.

use std::any::Any;
use std::str::FromStr;

use outbox::{Backend, Event, Outbox, Registry, Status};
use outbox_tests::harness::{Fresh, Harness};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, MySql, Pool, Postgres, Sqlite};

use crate::handlers::{MyTransfer, PgTransfer, SqliteTransfer};

pub trait Database: Harness {
    /// The event whose handler takes a transaction of this database.
    type Transfer: Event;
    fn transfer(event: usize) -> Self::Transfer;
    /// Connections that do not wait for the disk: nothing here falls over.
    fn open(url: &str) -> Pool<Self>;
    /// Runs statements where the tables are found by their names.
    fn run(pool: &Pool<Self>, statements: String) -> impl Future<Output = ()> + Send;
    /// A column of texts.
    fn texts(pool: &Pool<Self>, query: String) -> impl Future<Output = Vec<String>> + Send;
    /// A time as milliseconds since 1970.
    fn ms(column: &str) -> String;
    /// The type of texts, in a cast.
    const TEXT: &str = "text";
    /// How many schedules are tried, unless somebody says.
    const SCHEDULES: u64 = 1000;
}

impl Database for Sqlite {
    type Transfer = SqliteTransfer;

    fn transfer(event: usize) -> SqliteTransfer {
        SqliteTransfer(event)
    }

    fn open(url: &str) -> Pool<Self> {
        let options = SqliteConnectOptions::from_str(url).unwrap().synchronous(SqliteSynchronous::Off);
        SqlitePoolOptions::new().max_connections(4).connect_lazy_with(options)
    }

    async fn run(pool: &Pool<Self>, statements: String) {
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await.unwrap();
    }

    async fn texts(pool: &Pool<Self>, query: String) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(pool).await.unwrap()
    }

    fn ms(column: &str) -> String {
        column.to_owned()
    }
}

impl Database for Postgres {
    type Transfer = PgTransfer;

    fn transfer(event: usize) -> PgTransfer {
        PgTransfer(event)
    }

    fn open(url: &str) -> Pool<Self> {
        let options = PgConnectOptions::from_str(url).unwrap().options([("synchronous_commit", "off")]);
        PgPoolOptions::new().max_connections(4).test_before_acquire(false).connect_lazy_with(options)
    }

    async fn run(pool: &Pool<Self>, statements: String) {
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await.unwrap();
    }

    async fn texts(pool: &Pool<Self>, query: String) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(pool).await.unwrap()
    }

    fn ms(column: &str) -> String {
        format!("(extract(epoch FROM {column}) * 1000)::bigint")
    }
}

impl Database for MySql {
    type Transfer = MyTransfer;

    fn transfer(event: usize) -> MyTransfer {
        MyTransfer(event)
    }

    /// Whether a commit waits for the disk is the server's affair alone.
    fn open(url: &str) -> Pool<Self> {
        let options = MySqlConnectOptions::from_str(url).unwrap();
        MySqlPoolOptions::new().max_connections(4).test_before_acquire(false).connect_lazy_with(options)
    }

    async fn run(pool: &Pool<Self>, statements: String) {
        sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await.unwrap();
    }

    async fn texts(pool: &Pool<Self>, query: String) -> Vec<String> {
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(pool).await.unwrap()
    }

    fn ms(column: &str) -> String {
        column.to_owned()
    }

    const TEXT: &str = "char";
    /// Each takes a tenth of a second here.
    const SCHEDULES: u64 = 400;
}

/// A database for many schedules, one after the other.
pub struct Store<DB: Backend> {
    pub outbox: Outbox<DB>,
    _keep: Box<dyn Any + Send>,
}

impl<DB: Database> Store<DB> {
    pub async fn new() -> Self {
        let Fresh { url, keep, .. } = DB::fresh().await;
        let is_here = |event_type: &str| {
            !event_type.starts_with("model.transfer.") || event_type == DB::Transfer::EVENT_TYPE
        };
        let registry = Registry::linked().retain(|def| is_here(def.event_type()));
        let outbox = Outbox::new(DB::open(&url)).registry(registry);
        outbox.migrate().await.unwrap();
        DB::run(outbox.pool(), "CREATE TABLE model_applied (event BIGINT NOT NULL)".to_owned()).await;
        Self { outbox, _keep: keep }
    }

    pub async fn empty(&self) {
        let empty = "DELETE FROM outbox_event; DELETE FROM outbox_worker; DELETE FROM model_applied";
        DB::run(self.outbox.pool(), empty.to_owned()).await;
    }
}

/// An event as it is stored, as far as the reference has an opinion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub id: String,
    pub status: Status,
    pub attempts: u32,
    pub crashes: u32,
    pub fence: i64,
    pub due: i64,
    pub processed_at: Option<i64>,
    pub owner: Option<String>,
    pub last_error: Option<String>,
}

/// Everything that is stored: the events in their sequence, and what handlers have written.
#[derive(Debug)]
pub struct Stored {
    pub rows: Vec<Row>,
    pub applied: Vec<usize>,
}

pub async fn stored<DB: Database>(pool: &Pool<DB>) -> Stored {
    // One text a row, the same query for all, in one snapshot.
    let (due, processed_at, text) = (DB::ms("available_at"), DB::ms("processed_at"), DB::TEXT);
    let texts = DB::texts(
        pool,
        format!(
            "SELECT line FROM (
                 SELECT seq AS place, CAST(id AS {text}) || '|' || status || '|' || attempts || '|' || crashes || '|' || fence || '|' || {due}
                     || '|' || coalesce(CAST({processed_at} AS {text}), '') || '|' || coalesce(locked_by, '')
                     || '|' || coalesce(last_error, '') AS line
                 FROM outbox_event
                 UNION ALL
                 SELECT event, CAST(event AS {text}) FROM model_applied) AS stored
             ORDER BY place"
        ),
    );
    let mut stored = Stored { rows: Vec::new(), applied: Vec::new() };
    for text in texts.await {
        match text.parse() {
            Ok(event) => stored.applied.push(event),
            Err(_) => stored.rows.push(row(&text)),
        }
    }
    stored.applied.sort_unstable();
    stored
}

fn row(text: &str) -> Row {
    let columns: Vec<&str> = text.split('|').collect();
    let text = |at: usize| Some(columns[at].to_owned()).filter(|text| !text.is_empty());
    Row {
        id: columns[0].to_owned(),
        status: columns[1].parse().unwrap(),
        attempts: columns[2].parse().unwrap(),
        crashes: columns[3].parse().unwrap(),
        fence: columns[4].parse().unwrap(),
        due: columns[5].parse().unwrap(),
        processed_at: text(6).map(|ms| ms.parse().unwrap()),
        owner: text(7),
        last_error: text(8),
    }
}
