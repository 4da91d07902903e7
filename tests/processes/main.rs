//! Real worker processes on one database: many at once, killed, aborted, stopped.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod private;

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use outbox::{Event, Outbox, Status};
use outbox_tests::events::{Left, Order, Right};
use outbox_tests::harness::{Fresh, Harness, eventually, say_left_out, say_skipped};
use tempfile::TempDir;

struct Site<DB: Harness> {
    folder: TempDir,
    database: Fresh<DB>,
}

impl<DB: Harness> Site<DB> {
    async fn new() -> Self {
        let database = DB::fresh().await;
        database.outbox.migrate().await.unwrap();
        Self { folder: tempfile::tempdir().unwrap(), database }
    }

    fn outbox(&self) -> &Outbox<DB> {
        &self.database.outbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn worker(&self, handlers: &str, lease_ms: u32) -> Worker {
        self.worker_that(handlers, lease_ms, &[])
    }

    fn worker_that(&self, handlers: &str, lease_ms: u32, more: &[&str]) -> Worker {
        let errors = fs::OpenOptions::new().append(true).create(true).open(self.path("stderr")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_test-worker"))
            .args([handlers, self.path("log").to_str().unwrap(), &lease_ms.to_string()])
            .args(more)
            .env("DATABASE_URL", &self.database.url)
            .stderr(Stdio::from(errors))
            .spawn()
            .unwrap();
        Worker(child)
    }

    async fn enqueue<E: Event + Sync>(&self, events: impl IntoIterator<Item = E>) {
        let mut tx = self.outbox().begin().await.unwrap();
        for event in events {
            outbox::enqueue::<E>(&mut tx, event).await.unwrap();
        }
        tx.commit().await.unwrap();
    }

    async fn orders(&self, numbers: std::ops::Range<u32>, takes_ms: u32) {
        self.enqueue(numbers.map(|n| Order { n, takes_ms, aborts: false })).await;
    }

    /// How often each number ran.
    fn runs(&self) -> HashMap<u32, usize> {
        let mut runs = HashMap::new();
        for line in fs::read_to_string(self.path("log")).unwrap_or_default().lines() {
            *runs.entry(line.split(' ').next().unwrap().parse().unwrap()).or_default() += 1;
        }
        runs
    }

    /// Waits until so many different events have begun to run.
    async fn wait_for_runs(&self, number: usize) {
        eventually("the workers work", async || self.runs().len() >= number).await;
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    async fn count(&self, condition: &str) -> i64 {
        DB::count(self.outbox().pool(), &format!("SELECT count(*) FROM outbox_event WHERE {condition}")).await
    }

    async fn wait_for(&self, condition: &str, number: i64) {
        let limit = Instant::now() + Duration::from_secs(90);
        while self.count(condition).await != number {
            assert!(Instant::now() < limit, "{condition}: never {number}\n{}", self.stderr());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
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

async fn four_processes_run_each_of_ten_thousand_events_once<DB: Harness>() {
    let site = Site::<DB>::new().await;
    let workers: Vec<Worker> = (0..4).map(|_| site.worker("all", 60_000)).collect();
    site.orders(0..10_000, 0).await;
    site.wait_for("status = 'completed'", 10_000).await;
    workers.into_iter().for_each(Worker::terminate);
    let runs = site.runs();
    assert_eq!((runs.len(), runs.values().sum::<usize>()), (10_000, 10_000));
    assert_eq!(site.count("fence <> 1 OR attempts <> 0 OR crashes <> 0").await, 0);
    let stderr = site.stderr();
    assert!(!stderr.contains("WARN outbox") && !stderr.contains("ERROR"), "{stderr}");
}

async fn after_sigkill_of_one_all_complete_and_only_what_it_held_runs_twice<DB: Harness>() {
    let site = Site::<DB>::new().await;
    site.orders(0..10_000, 2).await;
    let mut workers: Vec<Worker> = (0..4).map(|_| site.worker("all", 2_000)).collect();
    site.wait_for_runs(2_000).await;
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

async fn the_event_that_kills_its_process_is_a_dead_letter_and_its_neighbours_complete<DB: Harness>() {
    let site = Site::<DB>::new().await;
    site.enqueue((0..500).map(|n| Order { n, takes_ms: 1, aborts: n == 250 })).await;
    let mut worker = site.worker("all", 1_500);
    let limit = Instant::now() + Duration::from_secs(90);
    let mut deaths = 0;
    while site.count("status IN ('completed', 'dead_letter')").await < 500 {
        assert!(Instant::now() < limit, "{}", site.stderr());
        if worker.0.try_wait().unwrap().is_some() {
            deaths += 1;
            worker = site.worker("all", 1_500);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    worker.terminate();
    assert_eq!(site.count("status = 'completed'").await, 499);
    let payload = DB::text("payload");
    let blamed =
        format!("status = 'dead_letter' AND last_error = 'worker lost' AND {payload} LIKE '%\"n\":250,%'");
    assert_eq!(site.count(&blamed).await, 1);
    assert_eq!(deaths, 4, "one crash spends nothing, three attempts follow");
    assert_eq!(site.count("status = 'completed' AND attempts <> 0").await, 0);
}

async fn after_sigterm_nothing_stays_claimed_and_nothing_is_spent<DB: Harness>() {
    let site = Site::<DB>::new().await;
    site.orders(0..2_000, 20).await;
    let worker = site.worker("all", 60_000);
    site.wait_for_runs(100).await;
    worker.terminate();
    let completed = site.count("status = 'completed'").await;
    assert_eq!(usize::try_from(completed).unwrap(), site.runs().len(), "what ran was finished");
    assert!(completed < 2_000);
    assert_eq!(site.count("status = 'pending' AND attempts = 0 AND crashes = 0").await, 2_000 - completed);
    let live = "SELECT count(*) FROM outbox_worker WHERE stopped_at IS NULL";
    assert_eq!(DB::count(site.outbox().pool(), live).await, 0);
}

async fn programs_with_different_handlers_leave_each_others_events_alone<DB: Harness>() {
    let site = Site::<DB>::new().await;
    site.enqueue((0..20).map(|n| Left { n })).await;
    site.enqueue((100..120).map(|n| Right { n })).await;
    site.orders(0..1, 0).await;
    let left = site.worker("test.left", 60_000);
    site.wait_for("status = 'completed'", 20).await;
    assert!(site.runs().keys().all(|n| *n < 100));
    let right = site.worker("test.right", 60_000);
    site.wait_for("status = 'completed'", 40).await;
    let stats = site.outbox().stats().await.unwrap();
    let nobody: Vec<&str> = stats.waiting_for_nobody().map(|of| of.event_type.as_str()).collect();
    assert_eq!(nobody, ["test.order"]);
    eventually("both say so", async || {
        let stderr = site.stderr();
        let unhandled = stderr.lines().filter(|line| line.contains("no live worker has a handler"));
        unhandled.filter(|line| line.contains("test.order")).count() == 2
    })
    .await;
    left.terminate();
    right.terminate();
}

async fn a_worker_that_slept_past_its_lease_comes_back_and_harms_nothing<DB: Harness>() {
    let site = Site::<DB>::new().await;
    site.orders(0..50, 300).await;
    let sleeper = site.worker("all", 1_500);
    site.wait_for_runs(1).await;
    sleeper.signal("-STOP");
    let other = site.worker("all", 1_500);
    site.wait_for("status = 'completed'", 50).await;
    other.terminate();
    sleeper.signal("-CONT");
    // Its late outcomes met a newer fence; it goes on under a new id.
    site.orders(100..110, 0).await;
    site.wait_for("status = 'completed'", 60).await;
    sleeper.terminate();
    assert_eq!(site.count("attempts <> 0 OR status <> 'completed'").await, 0);
    assert!(
        site.stderr().contains("declared dead") || site.stderr().contains("could not renew"),
        "{}",
        site.stderr()
    );
}

/// Several processes write to one database, on SQLite to one file: nobody is told that it is busy.
async fn producers_beside_workers_meet_no_error<DB: Harness>() {
    let site = Site::<DB>::new().await;
    DB::sql(site.outbox().pool(), "CREATE TABLE orders (n INTEGER PRIMARY KEY)".to_owned()).await;
    let workers = [site.worker("all", 60_000), site.worker("all", 60_000)];
    let mut producers = Vec::new();
    for producer in 0..8 {
        let outbox = site.outbox().clone();
        producers.push(tokio::spawn(async move {
            for n in producer * 100..(producer + 1) * 100 {
                let mut tx = outbox.begin().await?;
                // Reads first, then writes, as services do.
                assert!(!outbox.has_inflight::<Order>(&mut tx, "n", &n.to_string()).await?);
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
    assert!(!site.stderr().contains("WARN outbox"), "{}", site.stderr());
}

/// Producers in bulk and in order, two workers, and somebody who deletes whatever is over, as often as he can: what locks
/// several rows does it in one order, and in few at a time, so nobody ends in a deadlock that somebody else would see.
async fn producers_workers_and_pruning_side_by_side_meet_no_error<DB: Harness>() {
    let site = Site::<DB>::new().await;
    let workers = [site.worker("test.order", 60_000), site.worker("test.order", 60_000)];
    let producing: Vec<_> = (0..4)
        .map(|producer| {
            let outbox = site.outbox().clone();
            tokio::spawn(async move {
                for first in (producer * 500..(producer + 1) * 500).step_by(25) {
                    let mut tx = outbox.begin().await?;
                    let orders = (first..first + 25).map(|n| Order { n, ..Order::default() });
                    outbox
                        .enqueue_all::<Order>(&mut tx, orders)
                        .ordering_key_of(|order| (order.n % 7).to_string())
                        .dedup_key_of(|order| order.n.to_string())
                        .await?;
                    outbox.commit(tx).await?;
                }
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
            })
        })
        .collect();
    let limit = Instant::now() + Duration::from_secs(90);
    let mut pruned = 0;
    while pruned < 2_000 {
        assert!(Instant::now() < limit, "{pruned} pruned\n{}", site.stderr());
        pruned += site.outbox().prune(Status::Completed, Duration::ZERO).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for producer in producing {
        producer.await.unwrap().unwrap();
    }
    workers.into_iter().for_each(Worker::terminate);
    let runs = site.runs();
    assert_eq!((runs.len(), runs.values().sum::<usize>()), (2_000, 2_000));
    assert!(!site.stderr().contains("WARN outbox"), "{}", site.stderr());
}

async fn a_worker_that_hardly_polls_hears_of_other_processes<DB: Harness>() {
    let Some(break_signals) = DB::BREAK_SIGNALS else {
        let case = "a_worker_that_hardly_polls_hears_of_other_processes";
        return say_skipped::<DB>(case, "it gives no signs");
    };
    let site = Site::<DB>::new().await;
    let worker = site.worker_that("test.left", 60_000, &["listen"]);
    let _notifier = site.outbox().notifier();
    for n in 0..40 {
        if n == 20 {
            // Elsewhere this is nobody, and nothing breaks.
            DB::sql(site.outbox().pool(), break_signals.to_owned()).await;
        }
        let mut tx = site.outbox().begin().await.unwrap();
        site.outbox().enqueue::<Left>(&mut tx, Left { n }).await.unwrap();
        site.outbox().commit(tx).await.unwrap();
        site.wait_for_runs(usize::try_from(n).unwrap() + 1).await;
    }
    worker.terminate();
}

async fn a_plain_insert_by_the_databases_own_client_is_an_enqueue<DB: Harness>() {
    let site = Site::<DB>::new().await;
    if DB::client(&site.database.url, "SELECT 1").output().is_err() {
        return say_left_out::<DB>("its command-line client is missing; ./tests/run installs it");
    }
    let worker = site.worker("test.left", 60_000);
    let id = outbox::EventId::new();
    let insert = format!(
        "INSERT INTO outbox_event (id, event_type, payload) VALUES ('{id}', 'test.left', '{{\"n\": 7}}')"
    );
    let sent = DB::client(&site.database.url, &insert).output().unwrap();
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    site.wait_for("status = 'completed'", 1).await;
    worker.terminate();
    assert_eq!(site.runs(), HashMap::from([(7, 1)]));
}

async fn a_transaction_is_booked_once_wherever_its_process_dies<DB: Harness>() {
    const TRANSFERS: i64 = 100;
    let site = Site::<DB>::new().await;
    for table in outbox_tests::ledger::TABLES {
        DB::sql(site.outbox().pool(), table.to_owned()).await;
    }
    DB::sql(site.outbox().pool(), "INSERT INTO account (id, cents) VALUES (0, 0), (1, 0), (2, 0)".to_owned())
        .await;
    let handlers = format!("test.transfer.{}", DB::SCHEMES[0]);
    for n in 0..TRANSFERS {
        let transfer = format!(r#"{{"from":{},"to":{},"cents":{n}}}"#, n % 3, (n + 1) % 3);
        let id = outbox::EventId::new();
        let insert = format!(
            "INSERT INTO outbox_event (id, event_type, max_attempts, payload) \
             VALUES ('{id}', '{handlers}', 1000, '{transfer}')"
        );
        DB::sql(site.outbox().pool(), insert).await;
    }
    let mut workers = [site.worker(&handlers, 1_500), site.worker(&handlers, 1_500)];
    let limit = Instant::now() + Duration::from_secs(180);
    let mut deaths = 0;
    while site.count("status = 'completed'").await < TRANSFERS {
        assert!(Instant::now() < limit, "{}", site.stderr());
        for worker in &mut workers {
            if worker.0.try_wait().unwrap().is_some() {
                deaths += 1;
                *worker = site.worker(&handlers, 1_500);
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    println!("{deaths} processes died");
    assert!(deaths > 0, "nothing was tried");
    drop(workers);
    let pool = site.outbox().pool();
    assert_eq!(DB::count(pool, "SELECT count(*) FROM booked").await, TRANSFERS);
    assert_eq!(DB::count(pool, "SELECT count(DISTINCT event_id) FROM booked").await, TRANSFERS);
    for account in 0..3 {
        let expected: i64 = (0..TRANSFERS)
            .map(|n| i64::from((n + 1) % 3 == account) * n - i64::from(n % 3 == account) * n)
            .sum();
        let cents = DB::count(pool, &format!("SELECT cents FROM account WHERE id = {account}")).await;
        assert_eq!(cents, expected, "account {account}");
    }
    assert_eq!(site.count("status <> 'completed'").await, 0);
}

macro_rules! on {
    ($database:ident, $db:ty: $($case:ident),* $(,)?) => {
        mod $database {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $case() {
                match <$db as outbox_tests::harness::Harness>::left_out() {
                    Some(why) => outbox_tests::harness::say_left_out::<$db>(why),
                    None => super::$case::<$db>().await,
                }
            })*
        }
    };
}

macro_rules! everything_on {
    ($database:ident, $db:ty) => {
        on! { $database, $db:
            four_processes_run_each_of_ten_thousand_events_once,
            after_sigkill_of_one_all_complete_and_only_what_it_held_runs_twice,
            the_event_that_kills_its_process_is_a_dead_letter_and_its_neighbours_complete,
            after_sigterm_nothing_stays_claimed_and_nothing_is_spent,
            programs_with_different_handlers_leave_each_others_events_alone,
            a_worker_that_slept_past_its_lease_comes_back_and_harms_nothing,
            producers_beside_workers_meet_no_error,
            producers_workers_and_pruning_side_by_side_meet_no_error,
            a_transaction_is_booked_once_wherever_its_process_dies,
            a_worker_that_hardly_polls_hears_of_other_processes,
            a_plain_insert_by_the_databases_own_client_is_an_enqueue,
        }
    };
}

everything_on!(sqlite, sqlx::Sqlite);
everything_on!(postgres, sqlx::Postgres);
everything_on!(mysql, sqlx::MySql);

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
