//! Row P3 of the contract, E13, and subjects: what events have in common.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outbox::{
    BatchOptions, Enqueue, EnqueueError, EventId, HandlerError, OnDeadLetter, Processed, Receipt, Status,
};
use tokio::sync::Semaphore;

use crate::fixture::{Anything, Fixture, Harness, Job, Other, Script, eventually};

/// Enqueues one event, with more to say about it.
async fn keyed<DB: Harness>(
    fixture: &Fixture<DB>,
    n: i64,
    say: impl for<'t> FnOnce(Enqueue<'t>) -> Enqueue<'t>,
) -> EventId {
    let mut tx = fixture.outbox.begin().await.unwrap();
    let receipt = say(fixture.outbox.enqueue::<Job>(&mut tx, Job { n })).await.unwrap();
    tx.commit().await.unwrap();
    receipt.id()
}

pub async fn p03_a_key_runs_one_at_a_time_and_in_sequence<DB: Harness>() {
    let running: Arc<Mutex<HashMap<i64, i64>>> = Arc::default();
    let script = {
        let running = Arc::clone(&running);
        Script::new(move |n, _| {
            let running = Arc::clone(&running);
            async move {
                let key = n / 1000;
                assert_eq!(running.lock().unwrap().insert(key, n), None, "two of key {key} at once");
                tokio::time::sleep(Duration::from_millis(1)).await;
                running.lock().unwrap().remove(&key);
                Ok(())
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    // Ten keys, interleaved, over two types and two workers.
    let mut tx = fixture.outbox.begin().await.unwrap();
    for step in 0..20 {
        for key in 0..10 {
            let n = key * 1000 + step;
            let name = format!("key {key}");
            if step % 2 == 0 {
                fixture.outbox.enqueue::<Job>(&mut tx, Job { n }).ordering_key(name).await.unwrap();
            } else {
                fixture.outbox.enqueue::<Other>(&mut tx, Other { n }).ordering_key(name).await.unwrap();
            }
        }
    }
    tx.commit().await.unwrap();
    let workers =
        [fixture.outbox.worker().spawn().await.unwrap(), fixture.outbox.worker().spawn().await.unwrap()];
    eventually("all ran", async || fixture.script.runs().len() >= 200).await;
    for worker in workers {
        worker.stop().await.unwrap();
    }
    let numbers = fixture.script.numbers();
    assert_eq!(numbers.len(), 200, "each once");
    for key in 0..10 {
        let of_key: Vec<i64> = numbers.iter().copied().filter(|n| n / 1000 == key).collect();
        assert_eq!(of_key, (0..20).map(|step| key * 1000 + step).collect::<Vec<_>>());
    }
}

pub async fn p03_a_head_that_waits_or_retries_blocks_its_key_alone<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::new(|n, ctx| async move {
        if n == 1 && ctx.attempts() == 0 { Err("not yet".into()) } else { Ok(()) }
    }))
    .await;
    keyed(&fixture, 1, |event| event.ordering_key("a")).await;
    let second = keyed(&fixture, 2, |event| event.ordering_key("a")).await;
    keyed(&fixture, 3, |event| event.ordering_key("b").delay(Duration::from_secs(60))).await;
    keyed(&fixture, 4, |event| event.ordering_key("b")).await;
    keyed(&fixture, 5, |event| event).await;
    fixture.batch(10).await;
    // The two run side by side.
    let sorted = |mut numbers: Vec<i64>| {
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(sorted(fixture.script.numbers()), [1, 5]);
    assert!(fixture.get(second).await.is_blocked);
    assert_eq!(fixture.outbox.process_event(second).await.unwrap(), Processed::Blocked);
    fixture.clock.advance(Duration::from_secs(2));
    fixture.batch(10).await;
    assert_eq!(fixture.script.numbers()[2..], [1, 2]);
    fixture.clock.advance(Duration::from_secs(60));
    fixture.batch(10).await;
    assert_eq!(fixture.script.numbers()[4..], [3, 4]);
}

pub async fn p03_a_dead_letter_lets_the_next_go_or_blocks_visibly<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::new(|n, ctx| async move {
        if n % 10 == 1 && ctx.attempts() == 0 { Err(HandlerError::permanent("no").into()) } else { Ok(()) }
    }))
    .await;
    for n in 1..4 {
        keyed(&fixture, n, |event| event.ordering_key("goes on")).await;
    }
    let head =
        keyed(&fixture, 11, |event| event.ordering_key("stops").on_dead_letter(OnDeadLetter::Block)).await;
    for n in 12..14 {
        keyed(&fixture, n, |event| event.ordering_key("stops").on_dead_letter(OnDeadLetter::Block)).await;
    }
    fixture.batch(20).await;
    let mut ran = fixture.script.numbers();
    ran.sort_unstable();
    assert_eq!(ran, [1, 2, 3, 11]);
    let blocked = fixture.outbox.blocked_keys(10).await.unwrap();
    assert_eq!(blocked.len(), 1);
    assert_eq!((blocked[0].ordering_key.as_str(), blocked[0].id, blocked[0].waiting), ("stops", head, 2));
    assert_eq!(fixture.get(head).await.on_dead_letter, OnDeadLetter::Block);

    // What the event's own type says holds where the enqueue says nothing.
    let other = fixture.enqueue(Other { n: 1 }).await;
    let allowed = keyed(&fixture, 14, |event| event).await;
    assert_eq!(fixture.get(allowed).await.on_dead_letter, OnDeadLetter::Continue);
    assert_eq!(
        fixture.get(other).await.on_dead_letter,
        OnDeadLetter::Continue,
        "without a key there is nothing to block"
    );
    let mut tx = fixture.outbox.begin().await.unwrap();
    let typed =
        fixture.outbox.enqueue::<Other>(&mut tx, Other { n: 2 }).ordering_key("typed").await.unwrap().id();
    tx.commit().await.unwrap();
    assert_eq!(fixture.get(typed).await.on_dead_letter, OnDeadLetter::Block);
    for id in [other, allowed, typed] {
        fixture.edit(id, "status = 'completed'").await;
    }

    // Discarding the dead letter lets the others go.
    fixture.outbox.discard(head).await.unwrap();
    assert!(fixture.outbox.blocked_keys(10).await.unwrap().is_empty());
    fixture.batch(20).await;
    assert_eq!(fixture.script.numbers()[4..], [12, 13]);
}

pub async fn p03_what_is_requeued_runs_beside_nothing_of_its_key<DB: Harness>() {
    let gate = Arc::new(Semaphore::new(0));
    let script = {
        let gate = Arc::clone(&gate);
        Script::new(move |n, ctx| {
            let gate = Arc::clone(&gate);
            async move {
                match n {
                    1 if ctx.crashes() == 0 && ctx.attempts() == 0 && gate.available_permits() == 0 => {
                        Err(HandlerError::permanent("no").into())
                    }
                    2 => {
                        gate.acquire().await.unwrap().forget();
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    let first = keyed(&fixture, 1, |event| event.ordering_key("k")).await;
    keyed(&fixture, 2, |event| event.ordering_key("k")).await;
    keyed(&fixture, 3, |event| event.ordering_key("k")).await;
    let worker = fixture.outbox.worker().spawn().await.unwrap();
    eventually("the second runs", async || fixture.script.runs().len() == 2).await;
    fixture.outbox.requeue(first).await.unwrap();
    // It comes before the second, which runs: neither may it run now, nor may anybody else be told to run it.
    assert_eq!(fixture.outbox.process_event(first).await.unwrap(), Processed::Blocked);
    assert_eq!(fixture.batch(10).await.completed, 0);
    gate.add_permits(2);
    eventually("all ran", async || fixture.script.runs().len() == 4).await;
    worker.stop().await.unwrap();
    assert_eq!(fixture.script.numbers(), [1, 2, 1, 3]);
}

pub async fn p03_an_older_event_that_commits_late_waits_for_the_younger<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    fixture.worker_row("other", 0).await;
    let (older, younger) = if DB::LOCKS_ROWS {
        late_commit_beside_an_open_claim(&fixture).await
    } else {
        // One transaction writes at a time: the older can only have been held up by an edit.
        let older = keyed(&fixture, 1, |event| event.ordering_key("k")).await;
        let younger = keyed(&fixture, 2, |event| event.ordering_key("k")).await;
        fixture.held_by(younger, "other", 0).await;
        assert_eq!(fixture.batch(10).await.completed, 0);
        (older, younger)
    };
    assert!(fixture.script.runs().is_empty());
    assert!(fixture.get(older).await.is_blocked);
    fixture.edit(younger, "status = 'completed', locked_by = NULL, locked_at = NULL").await;
    assert_eq!(fixture.batch(10).await.completed, 1);
    assert_eq!(fixture.script.numbers(), [1]);
}

/// Another worker's claim of the younger event is open when the older one commits, and a batch runs into it.
async fn late_commit_beside_an_open_claim<DB: Harness>(fixture: &Fixture<DB>) -> (EventId, EventId) {
    let mut late = fixture.outbox.begin().await.unwrap();
    let older = fixture.outbox.enqueue::<Job>(&mut late, Job { n: 1 }).ordering_key("k").await.unwrap().id();
    let younger = keyed(fixture, 2, |event| event.ordering_key("k")).await;
    let mut claim = fixture.outbox.begin().await.unwrap();
    let now = fixture.sql_time(0);
    let update = format!(
        "UPDATE outbox_event SET status = 'processing', fence = fence + 1, locked_by = 'other', locked_at = {now} \
         WHERE id = '{younger}'"
    );
    DB::sql_in(&mut claim, update).await;
    late.commit().await.unwrap();
    let batch = {
        let outbox = fixture.outbox.clone();
        tokio::spawn(async move { outbox.process_batch(BatchOptions::new()).await.unwrap() })
    };
    // It knows nothing of that claim, waits at the index for its transaction, and sees it then.
    DB::wait_for_a_waiter(fixture.outbox.pool()).await;
    claim.commit().await.unwrap();
    assert_eq!(batch.await.unwrap().completed, 0);
    (older, younger)
}

pub async fn p03_strict_order_is_the_order_of_commits<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut first = fixture.outbox.begin().await.unwrap();
    fixture.outbox.enqueue::<Job>(&mut first, Job { n: 1 }).ordering_key("k").strict_order().await.unwrap();
    let second = {
        let outbox = fixture.outbox.clone();
        tokio::spawn(async move {
            let mut tx = outbox.begin().await.unwrap();
            outbox.enqueue::<Job>(&mut tx, Job { n: 2 }).ordering_key("k").strict_order().await.unwrap();
            tx.commit().await.unwrap();
        })
    };
    if DB::LOCKS_ROWS {
        // Another key is free meanwhile.
        let mut other = fixture.outbox.begin().await.unwrap();
        fixture
            .outbox
            .enqueue::<Job>(&mut other, Job { n: 3 })
            .ordering_key("o")
            .strict_order()
            .await
            .unwrap();
        other.commit().await.unwrap();
        DB::wait_for_a_waiter(fixture.outbox.pool()).await;
        assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, 1);
    }
    first.commit().await.unwrap();
    second.await.unwrap();
    fixture.batch(10).await;
    let of_key: Vec<i64> = fixture.script.numbers().into_iter().filter(|n| *n < 3).collect();
    assert_eq!(of_key, [1, 2]);
}

/// Whoever uses a key for the first time and rolls back leaves those who wait for it nothing to trip over.
pub async fn p03_strict_order_outlives_a_rollback_of_whoever_came_first<DB: Harness>() {
    const WAITERS: i64 = 4;
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut first = fixture.outbox.begin().await.unwrap();
    fixture.outbox.enqueue::<Job>(&mut first, Job { n: 0 }).ordering_key("k").strict_order().await.unwrap();
    let waiters: Vec<_> = (1..=WAITERS)
        .map(|n| {
            let outbox = fixture.outbox.clone();
            tokio::spawn(async move {
                let mut tx = outbox.begin().await.unwrap();
                // The others' keys as well, in an order of one's own.
                let jobs = [Job { n }, Job { n: 10 + n }];
                let key =
                    move |job: &Job| if job.n < 10 { "k".to_owned() } else { format!("k{}", 7 * job.n) };
                outbox.enqueue_all::<Job>(&mut tx, jobs).ordering_key_of(key).strict_order().await.unwrap();
                tx.commit().await.unwrap();
            })
        })
        .collect();
    if DB::LOCKS_ROWS {
        DB::wait_for_waiters(fixture.outbox.pool(), WAITERS).await;
    }
    first.rollback().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap();
    }
    assert_eq!(fixture.batch(20).await.completed, 2 * WAITERS.unsigned_abs());
}

pub async fn p03_a_crowd_behind_one_key_hides_nobody<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    // More than a claim looks at, behind a head that is not due.
    fixture
        .outbox
        .enqueue::<Job>(&mut tx, Job { n: 0 })
        .ordering_key("crowd")
        .delay(Duration::from_secs(3600))
        .await
        .unwrap();
    let crowd = (1..1_300).map(|n| Job { n });
    fixture.outbox.enqueue_all::<Job>(&mut tx, crowd).ordering_key_of(|_| "crowd".to_owned()).await.unwrap();
    for n in 10_000..10_010 {
        fixture.outbox.enqueue::<Job>(&mut tx, Job { n }).ordering_key(n.to_string()).await.unwrap();
    }
    fixture.outbox.enqueue::<Job>(&mut tx, Job { n: 10_010 }).await.unwrap();
    tx.commit().await.unwrap();
    let worker = fixture.outbox.worker().spawn().await.unwrap();
    eventually("the others ran", async || fixture.script.runs().len() == 11).await;
    // And once the head goes, the crowd follows it one by one. Not under that worker: it would look dead for a moment.
    assert_eq!(worker.stop().await.unwrap().completed, 11);
    fixture.clock.advance(Duration::from_secs(3600));
    let worker = fixture.outbox.worker().spawn().await.unwrap();
    eventually("the crowd follows", async || fixture.script.runs().len() >= 211).await;
    worker.stop().await.unwrap();
    let followed = &fixture.script.numbers()[11..];
    assert!(followed.iter().copied().eq(0..i64::try_from(followed.len()).unwrap()), "{followed:?}");
}

pub async fn e13_many_are_stored_in_order_and_duplicates_alone_stay_out<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let there = keyed(&fixture, -1, |event| event.dedup_key("500")).await;
    let dead = keyed(&fixture, -2, |event| event.dedup_key("700")).await;
    fixture.edit(dead, "status = 'dead_letter'").await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    // More than two statements' worth; the last one has the key of the one before it.
    let jobs: Vec<Job> = (0..2_600).map(|n| Job { n }).collect();
    let receipts = fixture
        .outbox
        .enqueue_all::<Job>(&mut tx, &jobs)
        .dedup_key_of(|job| job.n.min(2_598).to_string())
        .subject_of(|job| format!("job {}", job.n))
        .header("tenant", "t")
        .max_attempts(3)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(receipts.len(), 2_600);
    assert_eq!(receipts[500], Receipt::Duplicate { id: there, status: Status::Pending });
    assert_eq!(receipts[700], Receipt::Duplicate { id: dead, status: Status::DeadLetter });
    assert_eq!(receipts[2_599], Receipt::Duplicate { id: receipts[2_598].id(), status: Status::Pending });
    let new: Vec<EventId> =
        receipts.iter().filter(|receipt| !receipt.is_duplicate()).map(Receipt::id).collect();
    assert_eq!(new.len(), 2_597);
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, 2_599);
    let (first, last) = (fixture.get(new[0]).await, fixture.get(new[2_596]).await);
    assert_eq!((first.max_attempts, first.subject.as_deref()), (3, Some("job 0")));
    assert_eq!(first.headers.as_deref(), Some(r#"{"tenant":"t"}"#));
    assert_eq!((first.payload.as_str(), last.payload.as_str()), (r#"{"n":0}"#, r#"{"n":2598}"#));
    let out_of_order = "SELECT count(*) FROM (SELECT seq, lag(seq) OVER (ORDER BY id) AS earlier FROM outbox_event) AS pairs \
                        WHERE seq <= earlier";
    assert_eq!(fixture.count(out_of_order).await, 0, "in the order of the iterator");
}

pub async fn e13_a_refused_payload_names_its_place<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    let mut deep = serde_json::json!(1);
    for _ in 0..200 {
        deep = serde_json::json!([deep]);
    }
    let payloads = [Anything(serde_json::json!(1)), Anything(deep)];
    let refused = outbox::enqueue_all::<Anything>(&mut tx, payloads).await;
    assert!(matches!(refused, Err(EnqueueError::InBulk { index: 1, .. })), "{refused:?}");
    let long = outbox::enqueue_all::<Job>(&mut tx, [Job { n: 1 }]).ordering_key_of(|_| "k".repeat(256)).await;
    assert!(matches!(long, Err(EnqueueError::InBulk { index: 0, .. })), "{long:?}");
    // Nothing was sent, and the transaction is as good as before.
    assert!(outbox::enqueue_all::<Job>(&mut tx, Vec::<Job>::new()).await.unwrap().is_empty());
    outbox::enqueue_all::<Job>(&mut tx, [Job { n: 1 }]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, 1);
}

pub async fn o04_a_subject_is_under_way_until_its_events_are_over<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    fixture.outbox.enqueue::<Job>(&mut tx, Job { n: 1 }).subject("order 7").await.unwrap();
    // Inside the caller's own transaction, before it commits.
    assert!(fixture.outbox.has_inflight_subject::<Job>(&mut tx, "order 7").await.unwrap());
    assert!(!fixture.outbox.has_inflight_subject::<Job>(&mut tx, "order 8").await.unwrap());
    assert!(!fixture.outbox.has_inflight_subject::<Other>(&mut tx, "order 7").await.unwrap());
    tx.commit().await.unwrap();
    fixture.batch(10).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    assert!(!fixture.outbox.has_inflight_subject::<Job>(&mut tx, "order 7").await.unwrap());
    tx.rollback().await.unwrap();
}
