//! A server of a test's own, to which things are done that others would suffer from.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use outbox::Outbox;
use outbox_tests::events::Left;
use outbox_tests::harness::{Fresh, Harness, eventually, say_left_out};
use sqlx::{AssertSqlSafe, Connection, MySql, PgConnection, PgPool, Postgres};

use super::{Site, Worker, refused};

/// PostgreSQL can be stopped without a chance to tidy up, and kept from writing its queue of notifications.
struct Server {
    process: Child,
    answers: BufReader<ChildStdout>,
    url: String,
}

impl Server {
    fn postgres() -> Self {
        Self::start("postgres-server", &[])
    }

    fn start(script: &str, options: &[&str]) -> Self {
        let script = format!("{}/lib/{script}", env!("CARGO_MANIFEST_DIR"));
        let mut bash = Command::new("bash");
        bash.arg(script).args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = bash.spawn().unwrap();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let mut url = String::new();
        answers.read_line(&mut url).unwrap();
        Self { process, answers, url: url.trim().to_owned() }
    }

    fn obey(&mut self, command: &str) {
        writeln!(self.process.stdin.as_mut().unwrap(), "{command}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        assert_eq!(answer.trim(), format!("{command}: done"));
    }

    async fn site(&self) -> Site<Postgres> {
        let pool = PgPool::connect(&self.url).await.unwrap();
        let database = Fresh { outbox: Outbox::new(pool), url: self.url.clone(), keep: Box::new(()) };
        database.outbox.migrate().await.unwrap();
        Site { folder: tempfile::tempdir().unwrap(), database }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        drop(self.process.wait());
    }
}

fn is_left_out() -> bool {
    Postgres::left_out().map(say_left_out::<Postgres>).is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_falls_over_under_four_workers_loses_nothing() {
    if is_left_out() {
        return;
    }
    let mut server = tokio::task::block_in_place(Server::postgres);
    let site = server.site().await;
    site.orders(0..10_000, 2).await;
    let mut workers: Vec<Worker> = (0..4).map(|_| site.worker("all", 5_000)).collect();
    site.wait_for_runs(2_000).await;
    let mut killed = workers.pop().unwrap();
    killed.signal("-KILL");
    killed.0.wait().unwrap();
    site.wait_for_runs(4_000).await;
    tokio::task::block_in_place(|| server.obey("restart"));
    eventually("the server is back", async || site.outbox().stats().await.is_ok()).await;
    site.wait_for("status = 'completed'", 10_000).await;
    workers.into_iter().for_each(Worker::terminate);
    assert_eq!(site.runs().len(), 10_000);
    assert_eq!(site.count("attempts <> 0").await, 0, "no crash and no lost connection spends an attempt");
}

/// What the library logs on this thread.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<u8>>>);

impl Said {
    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        let said = self.clone();
        let subscriber =
            tracing_subscriber::fmt().with_ansi(false).with_writer(move || said.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Said {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

async fn notify(pool: &PgPool, channel: &str, bytes: usize) -> sqlx::Result<()> {
    let notify = format!("NOTIFY {channel}, '{}'", "x".repeat(bytes));
    sqlx::raw_sql(AssertSqlSafe(notify)).execute(pool).await.map(drop)
}

/// Enqueues events of these numbers, each in a transaction of its own, and waits for each to run.
async fn all_run(site: &Site<Postgres>, numbers: std::ops::Range<u32>) {
    for n in numbers {
        let mut tx = site.outbox().begin().await.unwrap();
        site.outbox().enqueue::<Left>(&mut tx, Left { n }).await.unwrap();
        site.outbox().commit(tx).await.unwrap();
        site.wait_for_runs(usize::try_from(n).unwrap() + 1).await;
    }
}

/// A queue of notifications without room fails each transaction that has one to send. It takes gigabytes to fill; here a
/// session that listens and sleeps in a transaction keeps the queue from moving on, and its pages, which the server
/// cannot write, are soon all in use. After that, and after a restart of the server, signs travel again.
#[tokio::test]
async fn where_no_notification_has_room_enqueues_commit_and_polling_finds_them() {
    if is_left_out() {
        return;
    }
    let mut server = Server::postgres();
    let site = server.site().await;
    let said = Said::default();
    let _listening = said.listen();
    let pool = site.outbox().pool();
    let mut sleeper = PgConnection::connect(&server.url).await.unwrap();
    sqlx::raw_sql("LISTEN padding; BEGIN; SELECT 1").execute(&mut sleeper).await.unwrap();
    server.obey("seal");
    for bytes in [7_000, 500, 50, 0] {
        for n in 0.. {
            assert!(n < 10_000, "the queue has room for all");
            if notify(pool, "padding", bytes).await.is_err() {
                break;
            }
        }
    }

    let worker = site.worker("test.left", 60_000);
    let _notifier = site.outbox().notifier();
    all_run(&site, 0..20).await;
    eventually("the notifier says so", async || {
        said.text().contains("signs between processes are interrupted")
    })
    .await;
    assert!(notify(pool, "outbox", 5).await.is_err(), "all the while nothing could be notified");
    worker.terminate();
    sleeper.close().await.unwrap();
    server.obey("unseal");

    // It hardly polls: it hears.
    let worker = site.worker_that("test.left", 60_000, &["listen"]);
    all_run(&site, 20..40).await;
    server.obey("restart");
    eventually("the server is back", async || site.outbox().stats().await.is_ok()).await;
    all_run(&site, 40..60).await;
    worker.terminate();
}

/// Who listens and does not read keeps the queue of notifications from moving on, and in a transaction also the server
/// from tidying up anything. The worker's connection reads while its handlers are all busy, and is in no transaction.
#[tokio::test]
async fn a_busy_worker_reads_what_it_listens_to_and_holds_nothing_back() {
    if is_left_out() {
        return;
    }
    let server = Server::postgres();
    let site = server.site().await;
    let pool = site.outbox().pool();
    site.orders(0..500, 60_000).await;
    let _worker = site.worker_that("all", 60_000, &["listen"]);
    site.wait_for_runs(10).await;
    for schema in 0..300 {
        // Of this and of other schemas.
        sqlx::query("SELECT pg_notify('outbox', 'now ' || repeat('x', $1))")
            .bind(schema)
            .execute(pool)
            .await
            .unwrap();
    }
    let held = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'outbox listen' \
                AND state = 'idle' AND backend_xmin IS NULL AND backend_xid IS NULL";
    eventually("it has read them all and holds nothing back", async || {
        Postgres::count(pool, "SELECT (pg_notification_queue_usage() * 1e12)::bigint").await == 0
            && Postgres::count(pool, held).await == 1
    })
    .await;
    assert!(site.count("status = 'pending'").await > 0 && site.count("status = 'completed'").await == 0);
}

/// It knows no way to pass over locked rows: each claim would be an error, which must not look like having nothing to do.
#[test]
fn a_mariadb_that_is_too_old_is_refused_at_start() {
    if let Some(why) = MySql::left_out() {
        return say_left_out::<MySql>(why);
    }
    // It says what it is told to say.
    let server = Server::start("mariadb-server", &["--version=10.5.23-MariaDB"]);
    let said = refused("all", Some(&format!("{}/mysql", server.url)));
    assert!(said.contains("MariaDB 10.6 or newer") && said.contains("10.5.23-MariaDB"), "{said}");
}
