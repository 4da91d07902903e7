//! Real worker processes on one database: many at once, killed, aborted, stopped.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outbox::{Event, Outbox};
use outbox_tests::events::{Left, Order, Right};
use sqlx::Sqlite;
use tempfile::TempDir;

struct Site {
    folder: TempDir,
    outbox: Outbox<Sqlite>,
}

impl Site {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outbox = Outbox::connect(&url(&folder)).await.unwrap();
        outbox.migrate().await.unwrap();
        Self { folder, outbox }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn worker(&self, handlers: &str, lease_ms: u32) -> Worker {
        let errors = fs::OpenOptions::new().append(true).create(true).open(self.path("stderr")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_test-worker"))
            .args([handlers, self.path("log").to_str().unwrap(), &lease_ms.to_string()])
            .env("DATABASE_URL", url(&self.folder))
            .stderr(Stdio::from(errors))
            .spawn()
            .unwrap();
        Worker(child)
    }

    async fn enqueue<E: Event + Sync>(&self, events: impl IntoIterator<Item = E>) {
        let mut tx = self.outbox.begin().await.unwrap();
        for event in events {
            outbox::enqueue::<E>(&mut tx, event).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    async fn orders(&self, number: u32) {
        self.enqueue((0..number).map(|n| Order { n, ..Order::default() })).await;
    }

    /// How often each number ran.
    fn runs(&self) -> HashMap<u32, usize> {
        let mut runs = HashMap::new();
        for line in fs::read_to_string(self.path("log")).unwrap_or_default().lines() {
            *runs.entry(line.split(' ').next().unwrap().parse().unwrap()).or_default() += 1;
        }
        runs
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    async fn count(&self, condition: &str) -> i64 {
        let query = format!("SELECT count(*) FROM outbox_event WHERE {condition}");
        sqlx::query_scalar(sqlx::AssertSqlSafe(query)).fetch_one(self.outbox.pool()).await.unwrap()
    }

    async fn wait_for(&self, condition: &str, number: i64) {
        let limit = Instant::now() + Duration::from_secs(60);
        while self.count(condition).await != number {
            assert!(Instant::now() < limit, "{condition}: never {number}\n{}", self.stderr());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn url(folder: &TempDir) -> String {
    format!("sqlite://{}", folder.path().join("test.db").display())
}

struct Worker(Child);

impl Worker {
    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Ends in order, and says how.
    fn terminate(mut self) {
        self.signal("-TERM");
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn four_processes_run_each_of_ten_thousand_events_once() {
    let site = Site::new().await;
    let workers: Vec<Worker> = (0..4).map(|_| site.worker("all", 60_000)).collect();
    site.orders(10_000).await;
    site.wait_for("status = 'completed'", 10_000).await;
    workers.into_iter().for_each(Worker::terminate);
    let runs = site.runs();
    assert_eq!((runs.len(), runs.values().sum::<usize>()), (10_000, 10_000));
    assert_eq!(site.count("fence <> 1 OR attempts <> 0 OR crashes <> 0").await, 0);
    let stderr = site.stderr();
    assert!(!stderr.contains("WARN outbox") && !stderr.contains("ERROR"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_sigkill_of_one_all_complete_and_only_what_it_held_runs_twice() {
    let site = Site::new().await;
    site.enqueue((0..10_000).map(|n| Order { n, takes_ms: 2, aborts: false })).await;
    let mut workers: Vec<Worker> = (0..4).map(|_| site.worker("all", 2_000)).collect();
    let limit = Instant::now() + Duration::from_secs(60);
    while site.runs().len() < 2_000 {
        assert!(Instant::now() < limit, "{}", site.stderr());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut killed = workers.pop().unwrap();
    killed.signal("-KILL");
    killed.0.wait().unwrap();
    site.wait_for("status = 'completed'", 10_000).await;
    workers.into_iter().for_each(Worker::terminate);
    let runs = site.runs();
    assert_eq!(runs.len(), 10_000);
    let again = i64::try_from(runs.values().filter(|number| **number > 1).count()).unwrap();
    let held = site.count("crashes > 0").await;
    assert!(runs.values().all(|number| *number <= 2));
    assert!(again <= held, "{again} ran twice, and it held {held}");
    assert_eq!(site.count("attempts <> 0").await, 0, "the crash spent nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_event_that_kills_its_process_ends_as_a_dead_letter_and_its_neighbours_complete() {
    let site = Site::new().await;
    site.enqueue((0..500).map(|n| Order { n, takes_ms: 1, aborts: n == 250 })).await;
    let mut worker = site.worker("all", 400);
    let limit = Instant::now() + Duration::from_secs(90);
    let mut deaths = 0;
    while site.count("status IN ('completed', 'dead_letter')").await < 500 {
        assert!(Instant::now() < limit, "{}", site.stderr());
        if worker.0.try_wait().unwrap().is_some() {
            deaths += 1;
            worker = site.worker("all", 400);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.terminate();
    assert_eq!(site.count("status = 'completed'").await, 499);
    let query = "SELECT payload, last_error FROM outbox_event WHERE status = 'dead_letter'";
    let (payload, error): (String, String) =
        sqlx::query_as(query).fetch_one(site.outbox.pool()).await.unwrap();
    assert!(payload.contains("\"n\":250"), "{payload}");
    assert_eq!(error, "worker lost");
    assert_eq!(deaths, 4, "one crash spends nothing, three attempts follow");
    assert_eq!(site.count("status = 'completed' AND attempts <> 0").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_sigterm_nothing_stays_claimed_and_nothing_is_spent() {
    let site = Site::new().await;
    site.enqueue((0..2_000).map(|n| Order { n, takes_ms: 20, aborts: false })).await;
    let worker = site.worker("all", 60_000);
    let limit = Instant::now() + Duration::from_secs(60);
    while site.runs().len() < 100 {
        assert!(Instant::now() < limit, "{}", site.stderr());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    worker.terminate();
    let completed = site.count("status = 'completed'").await;
    assert_eq!(usize::try_from(completed).unwrap(), site.runs().len(), "what ran was finished");
    assert!(completed < 2_000);
    assert_eq!(site.count("status = 'pending' AND attempts = 0 AND crashes = 0").await, 2_000 - completed);
    let live: i64 = sqlx::query_scalar("SELECT count(*) FROM outbox_worker WHERE stopped_at IS NULL")
        .fetch_one(site.outbox.pool())
        .await
        .unwrap();
    assert_eq!(live, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_with_different_handlers_leave_each_others_events_alone() {
    let site = Site::new().await;
    site.enqueue((0..20).map(|n| Left { n })).await;
    site.enqueue((100..120).map(|n| Right { n })).await;
    site.orders(1).await;
    let left = site.worker("test.left", 60_000);
    site.wait_for("status = 'completed'", 20).await;
    assert!(site.runs().keys().all(|n| *n < 100));
    let right = site.worker("test.right", 60_000);
    site.wait_for("status = 'completed'", 40).await;
    let stats = site.outbox.stats().await.unwrap();
    let nobody: Vec<&str> = stats.waiting_for_nobody().map(|of| of.event_type.as_str()).collect();
    assert_eq!(nobody, ["test.order"]);
    left.terminate();
    right.terminate();
    let stderr = site.stderr();
    let unhandled = stderr.lines().filter(|line| line.contains("no live worker has a handler"));
    assert_eq!(unhandled.filter(|line| line.contains("test.order")).count(), 2, "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_slept_past_its_lease_comes_back_and_harms_nothing() {
    let site = Site::new().await;
    site.enqueue((0..50).map(|n| Order { n, takes_ms: 300, aborts: false })).await;
    let sleeper = site.worker("all", 600);
    let limit = Instant::now() + Duration::from_secs(60);
    while site.runs().is_empty() {
        assert!(Instant::now() < limit, "{}", site.stderr());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    sleeper.signal("-STOP");
    let other = site.worker("all", 600);
    site.wait_for("status = 'completed'", 50).await;
    other.terminate();
    sleeper.signal("-CONT");
    // Its late outcomes met a newer fence; it goes on under a new id.
    site.enqueue((100..110).map(|n| Order { n, ..Order::default() })).await;
    site.wait_for("status = 'completed'", 60).await;
    sleeper.terminate();
    assert_eq!(site.count("attempts <> 0 OR status <> 'completed'").await, 0);
    assert!(
        site.stderr().contains("declared dead") || site.stderr().contains("could not renew"),
        "{}",
        site.stderr()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn producers_and_workers_on_one_file_never_meet_a_locked_database() {
    let site = Site::new().await;
    sqlx::query("CREATE TABLE orders (n INTEGER PRIMARY KEY)").execute(site.outbox.pool()).await.unwrap();
    let workers = [site.worker("all", 60_000), site.worker("all", 60_000)];
    let mut producers = Vec::new();
    for producer in 0..8 {
        let outbox = site.outbox.clone();
        producers.push(tokio::spawn(async move {
            for n in producer * 100..(producer + 1) * 100 {
                let mut tx = outbox.begin().await?;
                // Reads first, then writes, as services do.
                let query = "SELECT count(*) FROM orders WHERE n = ?";
                let taken: i64 = sqlx::query_scalar(query).bind(n).fetch_one(&mut *tx).await?;
                assert_eq!(taken, 0);
                sqlx::query("INSERT INTO orders (n) VALUES (?)").bind(n).execute(&mut *tx).await?;
                outbox::enqueue::<Order>(&mut tx, Order { n, ..Order::default() }).await?;
                outbox.commit(tx).await?;
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        }));
    }
    for producer in producers {
        producer.await.unwrap().unwrap();
    }
    site.wait_for("status = 'completed'", 800).await;
    workers.into_iter().for_each(Worker::terminate);
    assert!(!site.stderr().contains("locked"), "{}", site.stderr());
}

/// Runs the worker to its end, which is an error: what it says.
fn refused(handlers: &str, url: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_test-worker"));
    command.args([handlers, folder.path().join("log").to_str().unwrap()]).env_remove("DATABASE_URL");
    if let Some(url) = url {
        command.env("DATABASE_URL", url.replace("{folder}", folder.path().to_str().unwrap()));
    }
    let output = command.output().unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_wrong_at_start_is_said_with_what_to_do() {
    for (handlers, url, words) in [
        ("all", None, "DATABASE_URL"),
        ("all", Some("oracle://x"), "`oracle:`"),
        ("all", Some("no url"), "sqlite:"),
        ("all", Some("sqlite://{folder}/none/app.db"), "cannot connect to SQLite"),
        ("all", Some("sqlite://{folder}/app.db"), "Outbox::migrate()"),
        ("none", Some("sqlite://{folder}/app.db"), "no handler is linked"),
    ] {
        let said = refused(handlers, url);
        assert!(said.contains(words), "{url:?}: {said}");
    }
}
