//! Where the tables are, and how they come to be there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outbox::{BatchOptions, Outbox};
use outbox_tests::harness::Fresh;

use crate::fixture::{Fixture, Harness, Job, Script, another_pool, eventually};

pub async fn t_a_schema_may_have_any_name<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let schema = DB::schema(fixture.outbox.pool(), "My \"Q\" 'x'");
    let tenant = fixture.outbox.clone().schema(&schema);
    tenant.migrate().await.unwrap();
    tenant.migrate().await.unwrap();
    let mut tx = tenant.begin().await.unwrap();
    let id = outbox::enqueue::<Job>(&mut tx, Job { n: 1 }).schema(&schema).await.unwrap().id();
    tenant.enqueue::<Job>(&mut tx, Job { n: 2 }).await.unwrap();
    tx.commit().await.unwrap();
    assert!(fixture.outbox.get(id).await.unwrap().is_none());
    assert_eq!(fixture.batch(10).await.completed, 0);
    assert_eq!(tenant.process_batch(BatchOptions::new()).await.unwrap().completed, 2);
    assert!(tenant.stats().await.unwrap().is_idle());
    let refused = outbox::enqueue::<Job>(&mut tenant.begin().await.unwrap(), Job { n: 1 }).schema("").await;
    assert!(matches!(refused, Err(outbox::EnqueueError::Schema(_))));
}

pub async fn t_twenty_may_migrate_at_once<DB: Harness>() {
    let Fresh { outbox, keep, .. } = DB::fresh().await;
    let migrating: Vec<_> = (0..20)
        .map(|_| {
            let outbox = outbox.clone();
            tokio::spawn(async move { outbox.migrate().await })
        })
        .collect();
    for migrated in migrating {
        migrated.await.unwrap().unwrap();
    }
    let applied = DB::count(outbox.pool(), "SELECT count(*) FROM outbox_migration").await;
    assert_eq!(
        applied,
        DB::count(outbox.pool(), "SELECT max(version) FROM outbox_migration").await,
        "each once"
    );
    assert!(outbox.stats().await.unwrap().is_idle());
    drop(keep);
}

pub async fn t_an_interrupted_migration_is_gone_on_with<DB: Harness>() {
    let Fresh { outbox, keep, .. } = DB::fresh().await;
    let migrating = {
        let outbox = outbox.clone();
        tokio::spawn(async move { outbox.migrate().await })
    };
    // Wherever that is by now, its connection is dropped with whatever it holds.
    tokio::task::yield_now().await;
    migrating.abort();
    drop(migrating.await);
    outbox.migrate().await.unwrap();
    assert!(outbox.stats().await.unwrap().is_idle());
    drop(keep);
}

/// Whatever such a process holds at that moment, its connection is gone with it.
pub async fn t_a_process_that_dies_while_it_migrates_blocks_no_other<DB: Harness>() {
    let Fresh { outbox, keep, .. } = DB::fresh().await;
    for ms in [0, 1, 2, 4, 8, 16, 32] {
        let theirs = outbox.clone();
        let process = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let theirs = Outbox::new(another_pool(theirs.pool(), 1));
                drop(tokio::time::timeout(Duration::from_millis(ms), theirs.migrate()).await);
            });
        });
        tokio::task::spawn_blocking(|| process.join().unwrap()).await.unwrap();
    }
    outbox.migrate().await.unwrap();
    assert_eq!(DB::count(outbox.pool(), "SELECT count(*) FROM outbox_migration").await, 1);
    assert!(outbox.stats().await.unwrap().is_idle());
    drop(keep);
}

/// Which sqlx keeps in a table of its own, with numbers that may be the same.
pub async fn t_the_applications_own_migrations_are_left_alone<DB: Harness>() {
    let Fresh { outbox, keep, .. } = DB::fresh().await;
    let own = "CREATE TABLE _sqlx_migrations (version BIGINT PRIMARY KEY, description VARCHAR(99) NOT NULL)";
    DB::sql(outbox.pool(), own.to_owned()).await;
    let applied =
        "INSERT INTO _sqlx_migrations (version, description) VALUES (1, 'orders'), (7, 'customers')";
    DB::sql(outbox.pool(), applied.to_owned()).await;
    outbox.migrate().await.unwrap();
    outbox.migrate().await.unwrap();
    assert!(outbox.stats().await.unwrap().is_idle());
    let left = "SELECT count(*) FROM _sqlx_migrations WHERE description IN ('orders', 'customers')";
    assert_eq!(DB::count(outbox.pool(), left).await, 2);
    assert_eq!(DB::count(outbox.pool(), "SELECT count(*) FROM _sqlx_migrations").await, 2);
    drop(keep);
}

/// The first block of SQL below a heading of the migrations' README.
fn recorded_by_hand(heading: &str) -> &'static str {
    let readme = include_str!("../../migrations/README.md");
    let below = readme.split_once(&format!("\n### {heading}")).unwrap().1;
    below.split_once("```sql\n").unwrap().1.split_once("```").unwrap().0
}

pub async fn t_a_team_may_apply_the_files_itself<DB: Harness>() {
    let Fresh { outbox, keep, .. } = DB::fresh().await;
    for migration in DB::MIGRATIONS {
        DB::sql(outbox.pool(), migration.sql.to_owned()).await;
    }
    DB::sql(outbox.pool(), recorded_by_hand(DB::DATABASE).to_owned()).await;
    assert!(outbox.stats().await.unwrap().is_idle());
    outbox.migrate().await.unwrap();
    let versions = DB::count(outbox.pool(), "SELECT count(*) FROM outbox_migration").await;
    assert_eq!(usize::try_from(versions).unwrap(), DB::MIGRATIONS.len(), "nothing was left to do");
    drop(keep);
}

/// Events that go on being enqueued, each in a transaction of its own.
struct Producer(Arc<AtomicBool>, tokio::task::JoinHandle<i64>);

impl Producer {
    fn start<DB: Harness>(outbox: &Outbox<DB>, first: i64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (outbox, stopped) = (outbox.clone(), Arc::clone(&stop));
        let task = tokio::spawn(async move {
            let mut next = first;
            while !stopped.load(Ordering::Relaxed) {
                enqueue(&outbox, next).await;
                next += 1;
            }
            next
        });
        Self(stop, task)
    }

    /// How many there are, with those before the first.
    async fn stop(self) -> i64 {
        self.0.store(true, Ordering::Relaxed);
        self.1.await.unwrap()
    }
}

async fn enqueue<DB: Harness>(outbox: &Outbox<DB>, n: i64) {
    let mut tx = outbox.begin().await.unwrap();
    outbox.enqueue::<Job>(&mut tx, Job { n }).await.unwrap();
    outbox.commit(tx).await.unwrap();
}

/// A rolling upgrade: the tables first, under workers of the old release, which go on; then workers of the new one.
pub async fn t_the_tables_are_upgraded_under_running_workers<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let old = &fixture.outbox;
    let new = old.clone().later_migration("0002_later.sql", DB::LATER);
    let early = new.worker().spawn().await.map(drop).unwrap_err().to_string();
    assert!(early.contains("0002_later.sql is to be applied"), "{early}");
    let spawn = async |outbox: &Outbox<DB>| {
        outbox.worker().poll_interval(Duration::from_millis(5)).spawn().await.unwrap()
    };
    let runs_on = async |what: &str| {
        let ran = fixture.script.runs().len();
        eventually(what, async || fixture.script.runs().len() > ran + 50).await;
    };

    fixture.jobs(0..1000).await;
    let producer = Producer::start(old, 1000);
    let old_worker = spawn(old).await;
    runs_on("the old release works").await;
    DB::make_later_index(old.pool()).await;
    let (one, other) = tokio::join!(new.migrate(), new.migrate());
    one.unwrap();
    other.unwrap();
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_migration WHERE version = 2").await, 1);
    assert_eq!(fixture.count("SELECT count(later) FROM outbox_event").await, 0, "the column is there");
    runs_on("the old release works on newer tables").await;
    // It may start there too, and leaves them as they are.
    old.migrate().await.unwrap();
    let restarted = spawn(old).await;
    let mut completed = old_worker.stop().await.unwrap().completed;
    runs_on("an old release that starts on newer tables works").await;
    let new_worker = spawn(&new).await;
    completed += restarted.stop().await.unwrap().completed;
    runs_on("the new release works").await;

    let all = producer.stop().await;
    eventually("all ran", async || fixture.script.runs().len() >= usize::try_from(all).unwrap()).await;
    completed += new_worker.stop().await.unwrap().completed;
    assert_eq!(i64::try_from(completed).unwrap(), all);
    let mut numbers = fixture.script.numbers();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..all), "each ran, and once");
    let untouched = "status = 'completed' AND attempts = 0 AND crashes = 0";
    assert_eq!(fixture.count(&format!("SELECT count(*) FROM outbox_event WHERE {untouched}")).await, all);
}

/// What changes a table waits for everybody who has used it, and everybody else waits behind that.
pub async fn t_a_migration_keeps_no_producer_waiting_behind_a_long_transaction<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let old = &fixture.outbox;
    let new = old.clone().later_migration("0002_later.sql", DB::LATER);
    let mut long = old.begin().await.unwrap();
    old.enqueue::<Job>(&mut long, Job { n: 0 }).await.unwrap();
    let migrating = {
        let new = new.clone();
        tokio::spawn(async move { new.migrate().await })
    };
    // Where one transaction at a time writes, all wait for that one anyway.
    if DB::LOCKS_ROWS {
        DB::wait_for_a_waiter(old.pool()).await;
        for n in 1..20 {
            enqueue(old, n).await;
        }
        assert!(!migrating.is_finished(), "it cannot go by");
    }
    old.commit(long).await.unwrap();
    migrating.await.unwrap().unwrap();
    new.migrate().await.unwrap();
    let expected = if DB::LOCKS_ROWS { 20 } else { 1 };
    assert_eq!(new.process_batch(BatchOptions::new().batch_size(100)).await.unwrap().completed, expected);
}

pub async fn t_tenants_share_a_database_and_nothing_else<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let tenants: Vec<Outbox<DB>> = ["Alpha", "be ta"]
        .iter()
        .map(|name| fixture.outbox.clone().schema(&DB::schema(fixture.outbox.pool(), name)))
        .collect();
    let mut workers = Vec::new();
    for (tenant, number) in tenants.iter().zip([10, 20]) {
        tenant.migrate().await.unwrap();
        let mut tx = tenant.begin().await.unwrap();
        // The same keys in each.
        for n in number..number + 5 {
            let key = (n - number).to_string();
            let job = tenant.enqueue::<Job>(&mut tx, Job { n }).dedup_key(&key).ordering_key(&key);
            assert!(!job.await.unwrap().is_duplicate());
        }
        tx.commit().await.unwrap();
    }
    for tenant in &tenants {
        workers.push(tenant.worker().poll_interval(Duration::from_millis(5)).spawn().await.unwrap());
    }
    eventually("both ran theirs", async || fixture.script.runs().len() >= 10).await;
    for worker in workers {
        assert_eq!(worker.stop().await.unwrap().completed, 5);
    }
    assert_eq!(fixture.batch(10).await.completed, 0, "nothing is in the default place");
}
