//! Rows L1–L11 of the contract.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use outbox::{BatchOptions, Counts, EventId, Outbox, Processed, RunError, Status};
use sqlx::Pool;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use crate::fixture::{
    Fixture, Harness, Job, Other, Script, another_pool, eventually, say_skipped, start_time,
};

/// An event whose handler waits, in a one-shot call of its own.
struct Held<DB: Harness> {
    fixture: Fixture<DB>,
    id: EventId,
    go: Arc<Notify>,
    cancelled: Arc<Semaphore>,
    call: JoinHandle<Result<Processed, RunError>>,
}

impl<DB: Harness> Held<DB> {
    async fn new() -> Self {
        let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let cancelled = Arc::new(Semaphore::new(0));
        let script = {
            let (entered, go, cancelled) = (Arc::clone(&entered), Arc::clone(&go), Arc::clone(&cancelled));
            Script::new(move |_, ctx| {
                let (entered, go, cancelled) =
                    (Arc::clone(&entered), Arc::clone(&go), Arc::clone(&cancelled));
                async move {
                    entered.notify_one();
                    tokio::select! {
                        () = go.notified() => {}
                        () = ctx.cancelled() => cancelled.add_permits(1),
                    }
                    Ok(())
                }
            })
        };
        let fixture = Fixture::<DB>::new(script).await;
        let id = fixture.enqueue(Job { n: 1 }).await;
        let outbox = fixture.outbox.clone();
        let call = tokio::spawn(async move { outbox.process_event(id).await });
        entered.notified().await;
        Self { fixture, id, go, cancelled, call }
    }

    async fn finish(self) -> (Fixture<DB>, EventId, Processed) {
        self.go.notify_one();
        let processed = self.call.await.unwrap().unwrap();
        (self.fixture, self.id, processed)
    }
}

pub async fn l01_every_claim_raises_the_fence<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::fail("again")).await;
    let id = fixture.enqueue(Job { n: 1 }).await;
    for fence in 1..4 {
        fixture.batch(10).await;
        assert_eq!(fixture.get(id).await.fence, fence);
        fixture.clock.advance(Duration::from_secs(60));
    }
}

pub async fn l01_an_outcome_is_guarded_by_fence_owner_and_status<DB: Harness>() {
    for edit in ["fence = fence + 1", "locked_by = 'somebody'", "status = 'pending'"] {
        let held = Held::<DB>::new().await;
        held.fixture.edit(held.id, edit).await;
        let before = held.fixture.get(held.id).await;
        let (fixture, id, processed) = held.finish().await;
        assert_eq!(processed, Processed::LeaseLost, "{edit}");
        let after = fixture.get(id).await;
        assert_eq!(
            (after.status, after.fence, after.locked_by, after.processed_at),
            (before.status, before.fence, before.locked_by, None),
            "{edit}"
        );
    }
}

pub async fn l02_a_claim_that_was_forgotten_is_the_same_claim<DB: Harness>() {
    let gate = Arc::new(Semaphore::new(0));
    let script = {
        let gate = Arc::clone(&gate);
        Script::new(move |_, _| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Ok(())
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    let id = fixture.enqueue(Job { n: 1 }).await;
    let worker = fixture.outbox.worker().spawn().await.unwrap();
    eventually("it runs", async || fixture.script.runs().len() == 1).await;
    // As a server has it that lost the claim in a crash: the next one gives the same fence again.
    fixture.edit(id, "status = 'pending', fence = fence - 1, locked_by = NULL, locked_at = NULL").await;
    eventually("it is claimed again", async || fixture.get(id).await.status == Status::Processing).await;
    // Claims come one after the other: once another event runs, what came with that one has been looked at.
    fixture.enqueue(Job { n: 2 }).await;
    eventually("the other runs", async || fixture.script.numbers().contains(&2)).await;
    gate.add_permits(2);
    eventually("both are over", async || {
        fixture.count("SELECT count(*) FROM outbox_event WHERE status = 'completed'").await == 2
    })
    .await;
    assert_eq!(fixture.script.runs().len(), 2, "one run each");
    worker.stop().await.unwrap();
}

pub async fn l02_a_lost_lease_cancels_the_handler<DB: Harness>() {
    let held = Held::<DB>::new().await;
    held.fixture.edit(held.id, "fence = fence + 1").await;
    drop(held.go);
    // Nobody lets the handler go on: the heartbeat finds the loss, after at most a sixth of the lease.
    let processed = held.call.await.unwrap().unwrap();
    assert_eq!(processed, Processed::LeaseLost);
    assert_eq!(held.cancelled.available_permits(), 1, "the handler saw that it was cancelled");
    assert_eq!(held.fixture.get(held.id).await.status, Status::Processing, "untouched");
}

pub async fn l02_a_worker_that_was_declared_dead_comes_back_under_a_new_id<DB: Harness>() {
    let ran = Arc::new(Semaphore::new(0));
    let script = {
        let ran = Arc::clone(&ran);
        Script::new(move |n, _| {
            let ran = Arc::clone(&ran);
            async move {
                ran.add_permits(1);
                if n == 0 { std::future::pending().await } else { Ok(()) }
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    let worker = fixture.outbox.worker().lease(Duration::from_secs(2)).spawn().await.unwrap();
    fixture.jobs([0]).await;
    ran.acquire().await.unwrap().forget();
    let now = fixture.sql_time(0);
    fixture.sql(format!("UPDATE outbox_worker SET stopped_at = {now}")).await;
    eventually("a second worker row", async || {
        fixture.count("SELECT count(*) FROM outbox_worker").await == 2
    })
    .await;
    fixture.jobs([1]).await;
    eventually("the new session works", async || {
        fixture.count("SELECT count(*) FROM outbox_event WHERE status = 'completed'").await == 1
    })
    .await;
    // The first job was reaped from the dead session, and runs again as a suspect: at once, or, if the dying session
    // got it once more, some seconds later, which this clock never reaches by itself.
    eventually("it runs again", async || {
        fixture.sql(format!("UPDATE outbox_event SET available_at = {now} WHERE status = 'pending'")).await;
        ran.available_permits() == 2
    })
    .await;
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event WHERE crashes = 1").await, 1);
    drop(worker);
}

pub async fn l03_a_row_that_is_gone_or_finished_by_others_is_a_lost_lease<DB: Harness>() {
    let held = Held::<DB>::new().await;
    held.fixture.sql("DELETE FROM outbox_event").await;
    assert_eq!(held.finish().await.2, Processed::LeaseLost);

    let held = Held::<DB>::new().await;
    let now = held.fixture.sql_time(0);
    held.fixture
        .edit(held.id, &format!("status = 'completed', processed_at = {now}, locked_by = NULL"))
        .await;
    assert_eq!(held.finish().await.2, Processed::LeaseLost);

    let held = Held::<DB>::new().await;
    held.fixture
        .edit(held.id, &format!("status = 'dead_letter', processed_at = {now}, locked_by = NULL"))
        .await;
    held.fixture.outbox.requeue(held.id).await.unwrap();
    let (fixture, id, processed) = held.finish().await;
    assert_eq!(processed, Processed::LeaseLost);
    assert_eq!(fixture.get(id).await.status, Status::Pending);
}

pub async fn l04_a_dead_workers_events_come_back_unspent_and_alone<DB: Harness>() {
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let script = {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        Script::new(move |_, ctx| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            async move {
                if ctx.crashes() > 0 {
                    most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    running.fetch_sub(1, Ordering::SeqCst);
                }
                Ok(())
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    let ids = fixture.jobs(0..20).await;
    fixture.worker_row("dying", 0).await;
    for id in &ids {
        fixture.held_by(*id, "dying", 0).await;
    }
    fixture.clock.advance(Duration::from_millis(59_999));
    assert_eq!(fixture.reap().await, 0, "its heartbeat is younger than the lease");
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(fixture.reap().await, 20);
    for id in &ids {
        let record = fixture.get(*id).await;
        assert_eq!((record.status, record.attempts, record.crashes), (Status::Pending, 0, 1));
        assert_eq!(record.available_at, start_time(), "it keeps its time");
        assert_eq!(record.last_error.as_deref(), Some("worker lost"));
    }
    let counts = fixture.outbox.process_batch(BatchOptions::new().batch_size(100)).await.unwrap();
    assert_eq!(counts.completed, 20);
    assert_eq!(most.load(Ordering::SeqCst), 1, "suspects run one at a time");
    assert!(fixture.script.runs().iter().all(|run| run.crashes == 1));
}

pub async fn l04_a_second_crash_spends_an_attempt_until_it_is_a_dead_letter<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let id = fixture.enqueue(Job { n: 1 }).await;
    fixture.edit(id, "max_attempts = 2").await;
    let expected = [(Status::Pending, 0), (Status::Pending, 1), (Status::DeadLetter, 2)];
    for (crash, (status, attempts)) in (1..).zip(expected) {
        fixture.held_by(id, "nobody", 0).await;
        assert_eq!(fixture.reap().await, 1);
        let record = fixture.get(id).await;
        assert_eq!((record.status, record.attempts, record.crashes), (status, attempts, crash));
    }
    let record = fixture.get(id).await;
    assert_eq!(record.last_error.as_deref(), Some("worker lost"));
    assert!(record.processed_at.is_some() && record.locked_by.is_none());
}

pub async fn l05_an_event_held_past_the_stuck_threshold_spends_an_attempt<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..2).await;
    fixture.worker_row("alive", 0).await;
    fixture.held_by(ids[0], "alive", 599_999).await;
    fixture.held_by(ids[1], "alive", 600_000).await;
    fixture.edit(ids[1], "max_attempts = 1").await;
    assert_eq!(fixture.reap().await, 1);
    assert_eq!(fixture.get(ids[0]).await.status, Status::Processing);
    let record = fixture.get(ids[1]).await;
    assert_eq!((record.status, record.attempts, record.crashes), (Status::DeadLetter, 1, 0));
    assert!(record.last_error.unwrap().contains("stuck"));
}

pub async fn l06_a_live_workers_event_is_never_reaped<DB: Harness>() {
    let held = Held::<DB>::new().await;
    for _ in 0..9 {
        held.fixture.clock.advance(Duration::from_secs(59));
        let now = held.fixture.sql_time(0);
        held.fixture
            .sql(format!("UPDATE outbox_worker SET heartbeat_at = {now} WHERE stopped_at IS NULL"))
            .await;
        assert_eq!(held.fixture.reap().await, 0);
    }
    assert_eq!(held.finish().await.2, Processed::Completed);
}

/// Each handler waits for a connection of the application's pool, or has one and waits.
pub async fn l06_handlers_that_use_up_the_pool_take_nothing_from_the_loop<DB: Harness>() {
    const HANDLERS: i64 = 12;
    let pool: Arc<OnceLock<Pool<DB>>> = Arc::default();
    let (entered, done) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let script = {
        let (pool, entered, done) = (Arc::clone(&pool), Arc::clone(&entered), Arc::clone(&done));
        Script::new(move |n, _| {
            let (pool, entered, done) = (Arc::clone(&pool), Arc::clone(&entered), Arc::clone(&done));
            async move {
                if n < HANDLERS {
                    let connection = pool.get().unwrap().acquire().await?;
                    entered.add_permits(1);
                    drop(done.acquire().await?);
                    drop(connection);
                }
                Ok(())
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    pool.set(fixture.outbox.pool().clone()).unwrap();
    let observer = another_pool(fixture.outbox.pool(), 2);
    fixture.jobs(0..HANDLERS).await;
    let worker = fixture.outbox.worker().lease(Duration::from_secs(12)).spawn().await.unwrap();
    drop(entered.acquire_many(fixture.outbox.pool().options().get_max_connections()).await.unwrap());
    assert!(fixture.outbox.pool().try_acquire().is_none(), "they have them all");
    // The worker still renews, claims and writes outcomes.
    fixture.clock.advance(Duration::from_secs(5));
    let renewed = format!("SELECT count(*) FROM outbox_worker WHERE heartbeat_at = {}", fixture.sql_time(0));
    eventually("it renews", async || DB::count(&observer, &renewed).await == 1).await;
    let others = Outbox::new(observer.clone());
    let mut tx = others.begin().await.unwrap();
    for n in 100..110 {
        fixture.outbox.enqueue::<Job>(&mut tx, Job { n }).await.unwrap();
    }
    others.commit(tx).await.unwrap();
    let completed = "SELECT count(*) FROM outbox_event WHERE status = 'completed'";
    eventually("others run", async || DB::count(&observer, completed).await == 10).await;
    done.add_permits(1);
    eventually("all run", async || DB::count(&observer, completed).await == 10 + HANDLERS).await;
    let counts = worker.stop().await.unwrap();
    assert_eq!((counts.completed, counts.lease_lost), (10 + HANDLERS.unsigned_abs(), 0));
}

pub async fn l07_a_row_without_owner_or_time_is_freed<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..3).await;
    fixture.worker_row("alive", 0).await;
    for (id, column) in
        [(ids[0], "locked_at"), (ids[1], "locked_by"), (ids[2], "locked_at = NULL, locked_by")]
    {
        fixture.held_by(id, "alive", 0).await;
        fixture.edit(id, &format!("{column} = NULL")).await;
    }
    assert_eq!(fixture.reap().await, 3);
    for id in ids {
        let record = fixture.get(id).await;
        assert_eq!((record.status, record.attempts, record.crashes), (Status::Pending, 0, 0));
    }
}

pub async fn l08_the_reaper_takes_everything_page_by_page<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    fixture.worker_row("alive", 0).await;
    fixture.worker_row("dead", 61_000).await;
    fixture.jobs(0..2500).await;
    let now = fixture.sql_time(0);
    // A page full of what may not be touched hides nothing behind it.
    fixture
        .sql(format!(
            "UPDATE outbox_event SET status = 'processing', locked_at = {now}, \
             locked_by = CASE WHEN seq <= 1200 THEN 'alive' ELSE 'dead' END"
        ))
        .await;
    assert_eq!(fixture.reap().await, 1300);
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event WHERE status = 'processing'").await, 1200);
}

pub async fn l08_neither_reaper_nor_settle_waits_for_a_row_that_somebody_locks<DB: Harness>() {
    if !DB::LOCKS_ROWS {
        return say_skipped::<DB>(
            "l08_neither_reaper_nor_settle_waits_for_a_row_that_somebody_locks",
            "it locks itself, not single rows",
        );
    }
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..2).await;
    fixture.held_by(ids[0], "nobody", 0).await;
    fixture.held_by(ids[1], "nobody", 0).await;
    let mut foreign = fixture.outbox.begin().await.unwrap();
    DB::lock_row(&mut foreign, ids[0]).await;
    assert_eq!(fixture.reap().await, 1);
    foreign.rollback().await.unwrap();
    assert_eq!(fixture.reap().await, 1);

    let held = Held::<DB>::new().await;
    let mut foreign = held.fixture.outbox.begin().await.unwrap();
    DB::lock_row(&mut foreign, held.id).await;
    held.go.notify_one();
    let others = held.fixture.with_script(Script::succeed());
    held.fixture.jobs(0..10).await;
    assert_eq!(others.process_batch(BatchOptions::new()).await.unwrap().completed, 10, "others go on");
    assert_eq!(held.fixture.get(held.id).await.status, Status::Processing, "and this one waits for its turn");
    foreign.rollback().await.unwrap();
    assert_eq!(held.call.await.unwrap().unwrap(), Processed::Completed);
}

pub async fn l08_reapers_side_by_side_free_each_event_once<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    fixture.worker_row("dead", 61_000).await;
    fixture.jobs(0..3000).await;
    let now = fixture.sql_time(0);
    fixture
        .sql(format!(
            "UPDATE outbox_event SET status = 'processing', locked_at = {now}, locked_by = 'dead', crashes = 1"
        ))
        .await;
    let reapers = (0..4).map(|_| {
        let outbox = fixture.outbox.clone();
        tokio::spawn(async move { outbox.process_batch(BatchOptions::new().batch_size(0)).await })
    });
    let mut reaped = 0;
    for reaper in reapers.collect::<Vec<_>>() {
        reaped += reaper.await.unwrap().unwrap().reaped;
    }
    // What one had locked the others passed over: it may have been left to the next sweep, and was freed once.
    reaped += fixture.reap().await;
    assert_eq!(reaped, 3000);
    assert_eq!(
        fixture.count("SELECT count(*) FROM outbox_event WHERE attempts = 1 AND crashes = 2").await,
        3000
    );
}

pub async fn l08_the_reaper_does_not_stand_in_the_queue<DB: Harness>() {
    let entered = Arc::new(Semaphore::new(0));
    let script = {
        let entered = Arc::clone(&entered);
        Script::new(move |_, _| {
            entered.add_permits(1);
            std::future::pending()
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    // The only slot is taken for good, and others wait for it.
    let worker = fixture.outbox.worker().concurrency(1).lease(Duration::from_secs(2)).spawn().await.unwrap();
    fixture.jobs(0..3).await;
    entered.acquire().await.unwrap().forget();
    let lost = fixture.enqueue(Other { n: 1 }).await;
    fixture.held_by(lost, "nobody", 0).await;
    eventually("it is freed all the same", async || fixture.get(lost).await.crashes == 1).await;
    drop(worker);
}

pub async fn l08_a_completed_event_is_never_reaped<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let id = fixture.enqueue(Job { n: 1 }).await;
    fixture.batch(1).await;
    fixture.edit(id, "locked_by = 'nobody'").await;
    assert_eq!(fixture.reap().await, 0);
    assert_eq!(fixture.get(id).await.status, Status::Completed);
}

pub async fn l09_two_claimers_never_get_the_same_event<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    fixture.jobs(0..1000).await;
    let mut workers = Vec::new();
    for _ in 0..4 {
        workers.push(fixture.outbox.worker().spawn().await.unwrap());
    }
    eventually("all are complete", async || {
        fixture.count("SELECT count(*) FROM outbox_event WHERE status = 'completed'").await == 1000
    })
    .await;
    let mut completed = 0;
    for worker in workers {
        completed += worker.stop().await.unwrap().completed;
    }
    let runs = fixture.script.runs();
    let distinct: HashSet<EventId> = runs.iter().map(|run| run.id).collect();
    assert_eq!((runs.len(), distinct.len(), completed), (1000, 1000, 1000));
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event WHERE fence <> 1").await, 0);
}

pub async fn l10_a_row_that_somebody_locks_is_passed_over<DB: Harness>() {
    if !DB::LOCKS_ROWS {
        return say_skipped::<DB>(
            "l10_a_row_that_somebody_locks_is_passed_over",
            "it locks itself, not single rows",
        );
    }
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..3).await;
    let mut foreign = fixture.outbox.begin().await.unwrap();
    DB::lock_row(&mut foreign, ids[0]).await;
    // Also where it is all that a claim has room for.
    assert_eq!(fixture.batch(1).await.completed, 1);
    assert_eq!(fixture.get(ids[1]).await.status, Status::Completed);
    assert_eq!(fixture.batch(10).await.completed, 1);
    assert_eq!(fixture.outbox.process_event(ids[0]).await.unwrap(), Processed::Locked);
    drop(foreign);
    eventually("the lock is gone", async || {
        fixture.outbox.process_event(ids[0]).await.unwrap() != Processed::Locked
    })
    .await;
    assert_eq!(fixture.get(ids[0]).await.status, Status::Completed);
}

/// A worker with one running handler, others that wait in memory behind it, and a shutdown.
async fn shut_down<DB: Harness>(grace: Duration) -> (Fixture<DB>, Vec<EventId>, Counts) {
    let entered = Arc::new(Notify::new());
    let stopping = Arc::new(Notify::new());
    let script = {
        let (entered, stopping) = (Arc::clone(&entered), Arc::clone(&stopping));
        Script::new(move |n, _| {
            let (entered, stopping) = (Arc::clone(&entered), Arc::clone(&stopping));
            async move {
                if n > 0 {
                    return Ok(());
                }
                entered.notify_one();
                stopping.notified().await;
                Ok(())
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    let ids = fixture.jobs([0]).await;
    let worker = fixture.outbox.worker().concurrency(1).grace(grace).spawn().await.unwrap();
    entered.notified().await;
    let more = fixture.jobs(1..4).await;
    let stopped = tokio::spawn(worker.stop());
    if grace > Duration::from_secs(1) {
        stopping.notify_one();
    }
    let counts = stopped.await.unwrap().unwrap();
    (fixture, ids.into_iter().chain(more).collect(), counts)
}

pub async fn l11_shutdown_waits_for_what_runs_and_starts_nothing<DB: Harness>() {
    let (fixture, ids, counts) = shut_down::<DB>(Duration::from_secs(20)).await;
    assert_eq!(counts.completed, 1);
    assert_eq!(fixture.script.numbers(), [0]);
    for id in &ids[1..] {
        let record = fixture.get(*id).await;
        assert_eq!((record.status, record.attempts, record.crashes), (Status::Pending, 0, 0));
    }
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_worker WHERE stopped_at IS NULL").await, 0);
}

pub async fn l11_after_the_grace_time_running_events_go_back_unspent<DB: Harness>() {
    let (fixture, ids, counts) = shut_down::<DB>(Duration::from_millis(50)).await;
    assert_eq!((counts.completed, counts.released), (0, 1));
    for id in ids {
        let record = fixture.get(id).await;
        assert_eq!((record.status, record.attempts, record.crashes), (Status::Pending, 0, 0));
        assert!(record.locked_by.is_none() && record.available_at == start_time());
    }
}
