//! What the worker costs the database, counted: rows read and locked, statements, transactions. Counts do not depend on
//! the machine's speed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod locks;
mod plans;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use outbox::{BatchOptions, HandlerDef, Outbox, Registry, State, outbox_handler};
use outbox_tests::events::{Left, Right};
use outbox_tests::harness::{Fresh, Harness, eventually, say_left_out};
use sqlx::{AssertSqlSafe, PgPool, Postgres, Row};
use tokio::sync::{Mutex, MutexGuard};

use crate::plans::Plans;

/// How many handlers ran.
#[derive(Clone, Default)]
struct Ran(Arc<AtomicU32>);

#[outbox_handler]
async fn left(_: Left, State(ran): State<Ran>) {
    ran.0.fetch_add(1, Ordering::Relaxed);
}

#[outbox_handler]
async fn right(_: Right, State(ran): State<Ran>) {
    ran.0.fetch_add(1, Ordering::Relaxed);
}

/// The handlers of the two types.
fn both() -> Registry {
    Registry::linked().retain(|def: &HandlerDef| matches!(def.event_type(), "test.left" | "test.right"))
}

/// A database of the test's own, with handlers for the two types; `None` without a server.
///
/// One test at a time: a transaction that is open anywhere on the server keeps dead rows from going away, and claims
/// read past them.
async fn database() -> Option<(Fresh<Postgres>, Arc<AtomicU32>, MutexGuard<'static, ()>)> {
    static ALONE: Mutex<()> = Mutex::const_new(());
    if let Some(why) = Postgres::left_out() {
        say_left_out::<Postgres>(why);
        return None;
    }
    let alone = ALONE.lock().await;
    let mut fresh = Postgres::fresh().await;
    let ran = Ran::default();
    fresh.outbox = fresh.outbox.registry(both()).state(ran.clone());
    fresh.outbox.migrate().await.unwrap();
    Some((fresh, ran.0, alone))
}

/// Rows of one kind, as a loaded table has them.
async fn fill(outbox: &Outbox<Postgres>, event_type: &str, rows: u32, columns: &str, values: &str) {
    let insert = format!(
        "INSERT INTO outbox_event (id, event_type, payload, {columns}) \
         SELECT gen_random_uuid(), '{event_type}', '{{\"n\": 1}}', {values} FROM generate_series(1, {rows})"
    );
    Postgres::sql(outbox.pool(), insert).await;
}

async fn fill_with_everything(outbox: &Outbox<Postgres>) {
    let now = "clock_timestamp()";
    let minute = "clock_timestamp() - interval '1 minute'";
    fill(outbox, "test.left", 300_000, "status, processed_at", &format!("'completed', {now}")).await;
    fill(outbox, "test.foreign", 200_000, "available_at", "clock_timestamp() - interval '1 day'").await;
    fill(outbox, "test.left", 200_000, "available_at", "clock_timestamp() + interval '1 day'").await;
    fill(outbox, "test.left", 200_000, "available_at", minute).await;
    fill(outbox, "test.right", 100, "available_at", minute).await;
}

#[derive(Clone, Copy, Debug)]
struct Reads {
    by_scan: i64,
    by_index: i64,
}

/// Rows of the table that were read so far. The claim's connection reports when it is idle, or at its end.
async fn reads(pool: &PgPool) -> Reads {
    let query = "SELECT (SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'outbox_event'), \
                 (SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes WHERE relname = 'outbox_event')";
    let row = sqlx::query(AssertSqlSafe(query)).fetch_one(pool).await.unwrap();
    Reads { by_scan: row.get(0), by_index: row.get(1) }
}

/// Index entries read since `before`, for each of so many events. The table itself was never read through.
async fn reads_per_event(outbox: &Outbox<Postgres>, before: Reads, events: u32) -> i64 {
    let pool = outbox.pool();
    eventually("the connections have reported", async || {
        reads(pool).await.by_index > before.by_index + 2 * i64::from(events)
    })
    .await;
    let after = reads(pool).await;
    assert_eq!(after.by_scan, before.by_scan, "rows read by sequential scans");
    let each = (after.by_index - before.by_index) / i64::from(events);
    println!("{each} index entries an event");
    each
}

/// Statements sent to this database so far; `None` where the server does not count them.
async fn statements(pool: &PgPool) -> Option<i64> {
    let create = "CREATE EXTENSION IF NOT EXISTS pg_stat_statements SCHEMA public";
    sqlx::raw_sql(create).execute(pool).await.ok()?;
    let query = "SELECT coalesce(sum(calls), 0)::bigint FROM public.pg_stat_statements \
                 WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())";
    sqlx::query_scalar(query).fetch_one(pool).await.ok()
}

/// How much WAL the server has written so far, in bytes.
async fn wal_bytes(pool: &PgPool) -> i64 {
    let query = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}

async fn transactions(pool: &PgPool) -> i64 {
    let query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}

/// Waits without asking the database, whose reads and transactions are counted.
async fn wait_for_runs(number: u32, ran: &AtomicU32) {
    let mut last = 0;
    let mut limit = Instant::now() + Duration::from_secs(20);
    while ran.load(Ordering::Relaxed) < number {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let now = ran.load(Ordering::Relaxed);
        if now > last {
            (last, limit) = (now, Instant::now() + Duration::from_secs(20));
        }
        assert!(Instant::now() < limit, "{now} of {number} ran, and no more");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_reads_no_more_than_a_few_times_its_batch() {
    let Some((Fresh { outbox, keep, .. }, _, _alone)) = database().await else { return };
    fill_with_everything(&outbox).await;
    let before = reads(outbox.pool()).await;
    for _ in 0..10 {
        outbox.process_batch(BatchOptions::new().batch_size(50)).await.unwrap();
    }
    let each = reads_per_event(&outbox, before, 500).await;
    // Each event is read for its claim, its share, its update and its settlement, with its locks.
    assert!(each <= 20, "{each} index entries an event");

    // The same by the server's own account of the plan, loops and discarded rows counted.
    let plans = Plans::listen();
    let explained = Plans::explained(outbox.pool().connect_options().as_ref().clone());
    let pool = outbox.pool().options().clone().connect_with(explained).await.unwrap();
    let explained = Outbox::new(pool).registry(both()).state(Ran::default());
    assert_eq!(explained.process_batch(BatchOptions::new().batch_size(100)).await.unwrap().completed, 100);
    let claims = plans.of("UPDATE \"public\".\"outbox_event\" SET status = 'processing'");
    assert!(!claims.is_empty(), "no plan was sent");
    for claim in claims {
        let read = plans::rows_read(&claim["Plan"]);
        println!("a claim of at most 100 reads {read} rows");
        assert!(read <= 500.0, "{read} rows: {claim:#}");
    }
    drop(keep);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_was_prepared_on_an_empty_table_reads_no_more() {
    const EVENTS: u32 = 50_000;
    let Some((Fresh { outbox, keep, .. }, ran, _alone)) = database().await else { return };
    // Not more often: until the insert below commits, each poll reads past what is there and not visible yet.
    let worker = outbox.worker().poll_interval(Duration::from_millis(100)).spawn().await.unwrap();
    // From the sixth time on the server may keep the plan that it made for the empty table.
    let idled =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'outbox claim' AND state = 'idle'";
    let begun = transactions(outbox.pool()).await;
    eventually("the worker has claimed nothing for a while", async || {
        Postgres::count(outbox.pool(), idled).await > 0 && transactions(outbox.pool()).await > begun + 20
    })
    .await;
    let before = reads(outbox.pool()).await;
    fill(&outbox, "test.left", EVENTS, "available_at", "clock_timestamp()").await;
    wait_for_runs(EVENTS, &ran).await;
    worker.stop().await.unwrap();
    let each = reads_per_event(&outbox, before, EVENTS).await;
    assert!(each <= 20, "{each} index entries an event");
    drop(keep);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_held_open_elsewhere_does_not_make_claims_read_more() {
    const EVENTS: u32 = 50_000;
    let Some((Fresh { outbox, keep, .. }, ran, _alone)) = database().await else { return };
    fill(&outbox, "test.left", EVENTS, "available_at", "clock_timestamp()").await;
    // Its snapshot keeps the index entries of everything that is claimed from now on.
    let mut held = outbox.pool().begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ").await.unwrap();
    sqlx::query("SELECT 1").execute(&mut *held).await.unwrap();
    let before = reads(outbox.pool()).await;
    let worker = outbox.worker().spawn().await.unwrap();
    wait_for_runs(EVENTS, &ran).await;
    worker.stop().await.unwrap();
    let each = reads_per_event(&outbox, before, EVENTS).await;
    // Without the mark each claim reads past all earlier ones: half of the events, a hundred times.
    assert!(each <= 25, "{each} index entries an event");
    held.rollback().await.unwrap();
    drop(keep);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_of_a_key_is_found_among_many_keys_and_before_many_others() {
    const KEYS: u32 = 200_000;
    const CROWD: u32 = 2_000;
    let Some((Fresh { outbox, keep, .. }, ran, _alone)) = database().await else { return };
    // Each of these keys has a head that is not due, and one event behind it that waits.
    let tomorrow = "clock_timestamp() + interval '1 day'";
    let key = "'key ' || generate_series";
    fill(&outbox, "test.left", KEYS, "available_at, ordering_key", &format!("{tomorrow}, {key}")).await;
    fill(&outbox, "test.left", 20_000, "available_at, ordering_key", &format!("clock_timestamp(), {key}"))
        .await;
    // And one key has a crowd.
    fill(&outbox, "test.right", CROWD, "available_at, ordering_key", "clock_timestamp(), 'crowd'").await;
    let before = reads(outbox.pool()).await;
    let worker = outbox.worker().spawn().await.unwrap();
    wait_for_runs(CROWD, &ran).await;
    worker.stop().await.unwrap();
    let each = reads_per_event(&outbox, before, CROWD).await;
    // One claim, one settlement, and a look at a few dozen of those that wait.
    assert!(each <= 1_000, "{each} index entries an event");
    drop(keep);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_drains_in_few_statements_and_transactions() {
    const EVENTS: u32 = 100_000;
    let Some((Fresh { outbox, keep, .. }, ran, _alone)) = database().await else { return };
    fill(&outbox, "test.left", EVENTS / 2, "available_at", "clock_timestamp()").await;
    fill(&outbox, "test.right", EVENTS / 2, "available_at", "clock_timestamp()").await;
    let pool = outbox.pool().clone();
    let sent_before = statements(&pool).await;
    let before = transactions(&pool).await;
    let wal_before = wal_bytes(&pool).await;
    let worker = outbox.worker().spawn().await.unwrap();
    let began = Instant::now();
    wait_for_runs(EVENTS, &ran).await;
    println!("{EVENTS} events in {:?}", began.elapsed());
    assert_eq!(worker.stop().await.unwrap().completed, u64::from(EVENTS));
    let wal = (wal_bytes(&pool).await - wal_before) / i64::from(EVENTS);
    println!("{wal} bytes of WAL an event");
    // Two row versions, and their entries in three and in two indexes.
    assert!((200..=1_800).contains(&wal), "{wal} bytes of WAL an event");
    if let (Some(before), Some(after)) = (sent_before, statements(&pool).await) {
        let sent = after - before;
        println!("{sent} statements");
        assert!(sent >= 100, "{sent} statements cannot be all");
        assert!(sent < i64::from(EVENTS) / 20, "{sent} statements for {EVENTS} events");
    } else {
        println!("LEFT OUT: the count of statements, since the server does not load pg_stat_statements");
    }
    // The loop's connections report when they close; what comes late would only add to the few.
    eventually("they have reported", async || transactions(&pool).await > before + 100).await;
    let spent = transactions(&pool).await - before;
    println!("{spent} transactions");
    assert!(spent < i64::from(EVENTS) / 20, "{spent} transactions for {EVENTS} events");
    drop(keep);
}
