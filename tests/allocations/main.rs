//! What a worker allocates for each event, counted: like statements, it does not depend on the machine's speed.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use outbox::{HandlerDef, Registry, State, outbox_handler};
use outbox_tests::events::Left;
use outbox_tests::harness::{Fresh, Harness, eventually};
use sqlx::Sqlite;

#[global_allocator]
static COUNTING: dhat::Alloc = dhat::Alloc;

/// How many handlers ran.
#[derive(Clone, Default)]
struct Ran(Arc<AtomicU32>);

#[outbox_handler]
async fn left(_: Left, State(ran): State<Ran>) {
    ran.0.fetch_add(1, Ordering::Relaxed);
}

/// Allocations while a worker drains so many events.
async fn allocations(events: u32) -> u64 {
    let Fresh { outbox, keep, .. } = Sqlite::fresh().await;
    let ran = Ran::default();
    let own = |def: &HandlerDef| def.event_type() == "test.left";
    let outbox = outbox.registry(Registry::linked().retain(own)).state(ran.clone());
    outbox.migrate().await.unwrap();
    let mut tx = outbox.begin().await.unwrap();
    outbox.enqueue_all::<Left>(&mut tx, (0..events).map(|n| Left { n })).await.unwrap();
    tx.commit().await.unwrap();

    let before = dhat::HeapStats::get().total_blocks;
    let worker = outbox.worker().spawn().await.unwrap();
    eventually("all have run", async || ran.0.load(Ordering::Relaxed) == events).await;
    assert_eq!(worker.stop().await.unwrap().completed, u64::from(events));
    let blocks = dhat::HeapStats::get().total_blocks - before;
    drop(keep);
    blocks
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_costs_a_bounded_number_of_allocations() {
    let _counting = dhat::Profiler::builder().testing().build();
    // The difference, so that what a worker allocates once does not count.
    let (few, many) = (allocations(1_000).await, allocations(11_000).await);
    let each = many.saturating_sub(few) as f64 / 10_000.0;
    println!("{each:.1} allocations an event");
    assert!(each > 5.0, "{each} allocations cannot be all: is anything counted?");
    assert!(each <= 60.0, "{each} allocations an event");
}
