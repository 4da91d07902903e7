//! Rows R1–R17 of the contract.

use std::sync::Arc;
use std::time::Duration;

use outbox::{BatchOptions, HandlerError, Processed, Registry, RunError, Status};
use serde_json::json;
use tokio::sync::{Notify, Semaphore};

use crate::fixture::{
    Anything, Fixture, Foreign, Harness, Hasty, Job, Other, Script, eventually, ms, say_skipped, start_time,
};

pub async fn r01_success_completes_and_spends_nothing<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let id = fixture.enqueue(Job { n: 1 }).await;
    fixture.edit(id, "attempts = 3, last_error = 'an earlier failure'").await;
    assert_eq!(fixture.batch(10).await.completed, 1);
    let record = fixture.get(id).await;
    assert_eq!((record.status, record.attempts, record.last_error), (Status::Completed, 3, None));
    assert_eq!(record.processed_at, Some(start_time()));
    assert!(record.locked_at.is_none() && record.locked_by.is_none());
}

pub async fn r02_a_running_event_is_processing_and_knows_its_attempts<DB: Harness>() {
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = {
        let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
        Script::new(move |_, ctx| {
            let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
            async move {
                entered.notify_one();
                go.notified().await;
                if ctx.attempts() == 0 { Err("the first time".into()) } else { Ok(()) }
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    let id = fixture.enqueue(Job { n: 1 }).await;
    for attempts in [0, 1] {
        let outbox = fixture.outbox.clone();
        let running = tokio::spawn(async move { outbox.process_event(id).await });
        entered.notified().await;
        let record = fixture.get(id).await;
        assert_eq!((record.status, record.attempts), (Status::Processing, attempts));
        assert!(record.locked_at.is_some() && record.locked_by.is_some());
        assert_eq!(record.fence, i64::from(attempts) + 1);
        assert_eq!(fixture.outbox.process_event(id).await.unwrap(), Processed::Processing);
        go.notify_one();
        running.await.unwrap().unwrap();
        fixture.clock.advance(Duration::from_secs(10));
    }
    let attempts: Vec<u32> = fixture.script.runs().iter().map(|run| run.attempts).collect();
    assert_eq!(attempts, [0, 1]);
}

pub async fn r03_r04_r05_a_failure_backs_off_until_the_last<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::fail("not today")).await;
    let id = fixture.enqueue(Job { n: 1 }).await;
    fixture.edit(id, "max_attempts = 13").await;
    let delays = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600];
    for (failure, delay) in (1..).zip(delays) {
        assert_eq!(fixture.batch(1).await.retried, 1);
        let record = fixture.get(id).await;
        assert_eq!((record.status, record.attempts), (Status::Pending, failure));
        assert_eq!(record.last_error.as_deref(), Some("not today"));
        assert!(record.locked_at.is_none() && record.locked_by.is_none() && record.processed_at.is_none());
        assert_eq!(ms(record.available_at), ms(fixture.clock.now().unwrap()) + delay * 1000);
        assert_eq!(fixture.batch(1).await.retried, 0, "not before its time");
        fixture.clock.advance(Duration::from_secs(delay.unsigned_abs()));
    }
    assert_eq!(fixture.batch(1).await.dead_lettered, 1);
    let record = fixture.get(id).await;
    assert_eq!((record.status, record.attempts), (Status::DeadLetter, 13));
    assert_eq!(record.processed_at, fixture.clock.now());
    let seen: Vec<u32> = fixture.script.runs().iter().map(|run| run.attempts).collect();
    assert_eq!(seen, (0..13).collect::<Vec<u32>>());
}

pub async fn r06_a_panic_is_a_failure_and_the_rest_goes_on<DB: Harness>() {
    let script = Script::new(|n, _| async move {
        match n {
            1 => panic!("fell over {n}"),
            _ => Ok(()),
        }
    });
    let fixture = Fixture::<DB>::new(script).await;
    let ids = fixture.jobs(0..3).await;
    let counts = fixture.batch(10).await;
    assert_eq!((counts.completed, counts.retried), (2, 1));
    assert_eq!(fixture.get(ids[1]).await.last_error.as_deref(), Some("panicked: fell over 1"));
}

pub async fn r07_a_timeout_drops_the_future_and_spends_an_attempt<DB: Harness>() {
    struct Gone(Arc<Semaphore>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.add_permits(1);
        }
    }
    let gone = Arc::new(Semaphore::new(0));
    let script = {
        let gone = Arc::clone(&gone);
        Script::new(move |_, _| {
            let guard = Gone(Arc::clone(&gone));
            async move {
                let _guard = guard;
                std::future::pending().await
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    let id = fixture.enqueue(Hasty { n: 1 }).await;
    fixture.edit(id, "max_attempts = 2").await;
    assert_eq!(fixture.outbox.process_event(id).await.unwrap(), Processed::TimedOut);
    assert_eq!(gone.available_permits(), 1, "the future is gone before the outcome is written");
    let record = fixture.get(id).await;
    assert_eq!((record.status, record.attempts), (Status::Pending, 1));
    assert_eq!(record.last_error.as_deref(), Some("timed out after 0.05s"));
    assert_eq!(ms(record.available_at), ms(start_time()) + 2000);
    fixture.clock.advance(Duration::from_secs(2));
    let counts = fixture.batch(10).await;
    assert_eq!((counts.timed_out, counts.dead_lettered), (1, 1));
    assert_eq!(fixture.get(id).await.status, Status::DeadLetter);
}

pub async fn r08_a_handler_that_blocks_its_thread_keeps_its_event<DB: Harness>() {
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(std::sync::Barrier::new(2)));
    let script = {
        let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
        Script::new(move |_, ctx| {
            let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
            async move {
                entered.notify_one();
                if ctx.attempts() == 0 {
                    tokio::task::block_in_place(|| go.wait());
                }
                Ok(())
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    let id = fixture.enqueue(Hasty { n: 1 }).await;
    let outbox = fixture.outbox.clone();
    let blocked = tokio::spawn(async move { outbox.process_event(id).await });
    entered.notified().await;
    // Past its timeout, it is still this worker's.
    fixture.clock.advance(Duration::from_secs(30));
    assert_eq!(fixture.batch(10).await, outbox::Counts::default());
    assert_eq!(fixture.get(id).await.status, Status::Processing);
    // Past the stuck threshold it is taken away; the late outcome is fenced off. Its first worker, which cannot beat
    // on a clock that jumps, is kept alive by hand.
    fixture.clock.advance(Duration::from_secs(700));
    let now = fixture.sql_time(0);
    fixture.sql(format!("UPDATE outbox_worker SET heartbeat_at = {now} WHERE stopped_at IS NULL")).await;
    assert_eq!(fixture.reap().await, 1);
    let record = fixture.get(id).await;
    assert_eq!((record.status, record.attempts, record.crashes), (Status::Pending, 1, 0));
    tokio::task::spawn_blocking(move || go.wait()).await.unwrap();
    assert_eq!(blocked.await.unwrap().unwrap(), Processed::LeaseLost);
    assert_eq!(fixture.get(id).await.status, Status::Pending);
    assert_eq!(fixture.batch(10).await.completed, 1);
}

pub async fn r09_an_unknown_type_is_left_alone_and_reported<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let id = fixture.enqueue(Foreign { n: 1 }).await;
    fixture.jobs(0..2).await;
    assert_eq!(fixture.batch(10).await.completed, 2);
    let record = fixture.get(id).await;
    assert_eq!((record.status, record.fence), (Status::Pending, 0));
    let stats = fixture.outbox.stats().await.unwrap();
    let waiting: Vec<&str> = stats.waiting_for_nobody().map(|of| of.event_type.as_str()).collect();
    assert_eq!(waiting, ["test.foreign"]);
    let refused = fixture.outbox.process_event(id).await;
    assert!(matches!(refused, Err(RunError::NoHandler { .. })), "{refused:?}");
    assert_eq!(fixture.get(id).await.fence, 0);
}

pub async fn r09_an_unknown_type_is_buried_by_policy_alone<DB: Harness>() {
    let hour = Duration::from_secs(3600);
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let id = fixture.enqueue(Foreign { n: 1 }).await;
    let now = fixture.sql_time(0);
    fixture
        .sql(format!(
            "INSERT INTO outbox_worker (id, host, pid, kinds, lease_ms, stuck_ms, started_at, heartbeat_at, stopped_at) \
             VALUES ('other', 'elsewhere', 1, '[{{\"type\": \"test.foreign\", \"version\": 1}}]', 60000, 600000, {now}, {now}, {now})"
        ))
        .await;
    fixture.clock.advance(hour);
    let round = async || {
        // The slow round of a worker comes first thing at its start.
        let started = fixture.count("SELECT count(*) FROM outbox_worker").await;
        let worker = fixture.outbox.worker().unknown_after(hour).spawn().await.unwrap();
        fixture.enqueue(Job { n: 1 }).await;
        eventually("the worker works", async || {
            fixture.outbox.stats().await.unwrap().event_types.iter().all(|of| of.event_type == "test.foreign")
        })
        .await;
        worker.stop().await.unwrap();
        assert!(fixture.count("SELECT count(*) FROM outbox_worker").await > started);
    };
    round().await;
    assert_eq!(
        fixture.get(id).await.status,
        Status::Pending,
        "a worker that handles it was seen within the hour"
    );
    fixture.clock.advance(Duration::from_millis(1));
    let worker = fixture.outbox.worker().unknown_after(hour).spawn().await.unwrap();
    eventually("it is buried", async || fixture.get(id).await.status == Status::DeadLetter).await;
    worker.stop().await.unwrap();
    let expected = "no handler registered for event type 'test.foreign'";
    assert_eq!(fixture.get(id).await.last_error.as_deref(), Some(expected));
}

pub async fn r10_a_newer_version_is_left_alone<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..3).await;
    fixture.edit(ids[0], "event_version = 3").await;
    fixture.edit(ids[1], "event_version = 1").await;
    assert_eq!(fixture.batch(10).await.completed, 2);
    let record = fixture.get(ids[0]).await;
    assert_eq!((record.status, record.fence), (Status::Pending, 0));
    let refused = fixture.outbox.process_event(ids[0]).await;
    assert!(matches!(refused, Err(RunError::NoHandler { version: 3, .. })), "{refused:?}");
}

pub async fn r11_what_does_not_decode_is_a_dead_letter_and_its_neighbours_run<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..5).await;
    fixture.edit(ids[2], "payload = '{\"n\": \"no number\", \"kept\": 1.50}'").await;
    let counts = fixture.batch(10).await;
    assert_eq!((counts.completed, counts.dead_lettered), (4, 1));
    let record = fixture.get(ids[2]).await;
    assert_eq!((record.status, record.attempts), (Status::DeadLetter, 1));
    assert_eq!(record.payload, "{\"n\": \"no number\", \"kept\": 1.50}");
    assert!(record.last_error.unwrap().contains("does not decode"));
}

pub async fn r11_ten_in_a_row_rest_the_type<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    fixture.jobs(0..60).await;
    fixture.sql("UPDATE outbox_event SET payload = '[]'").await;
    fixture.enqueue(Other { n: 1 }).await;
    let counts = fixture.outbox.process_batch(BatchOptions::new().batch_size(1000)).await.unwrap();
    assert_eq!(counts.completed, 1, "other types go on");
    // Those whose decoding had begun on another thread when the tenth failed may follow it.
    assert!((10..=20).contains(&counts.dead_lettered), "{counts:?}");
    let pending = "SELECT count(*) FROM outbox_event WHERE status = 'pending' AND attempts = 0";
    assert_eq!(fixture.count(pending).await, 60 - i64::try_from(counts.dead_lettered).unwrap());
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event WHERE status = 'processing'").await, 0);
}

pub async fn r12_an_error_text_is_whole_scrubbed_and_cut<DB: Harness>() {
    #[derive(Debug)]
    struct Outer(std::io::Error);
    impl std::fmt::Display for Outer {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("outer\0\x1b[31m")
        }
    }
    impl std::error::Error for Outer {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }
    let script = Script::new(|n, _| async move {
        match n {
            1 => Err(Outer(std::io::Error::other("inner")).into()),
            _ => Err("é\u{1f600}".repeat(10_000).into()),
        }
    });
    let fixture = Fixture::<DB>::new(script).await;
    let ids = fixture.jobs(1..3).await;
    assert_eq!(fixture.batch(10).await.retried, 2);
    let text = fixture.get(ids[0]).await.last_error.unwrap();
    assert_eq!(text, "outer\u{fffd}\u{fffd}[31m: inner");
    let text = fixture.get(ids[1]).await.last_error.unwrap();
    assert!(text.len() <= 8192 && text.len() > 8180, "{}", text.len());
    assert!("é\u{1f600}".repeat(10_000).starts_with(&text));
}

pub async fn r13_r14_a_handler_steers_what_follows<DB: Harness>() {
    let minute = Duration::from_secs(60);
    let script = Script::new(move |n, _| async move {
        Err(match n {
            0 => HandlerError::permanent("never").into(),
            1 => HandlerError::retry_after(minute, "later").into(),
            2 => HandlerError::retry_after(Duration::ZERO, "backoff holds").into(),
            3 => HandlerError::snooze(minute).into(),
            _ => HandlerError::discard("not needed").into(),
        })
    });
    let fixture = Fixture::<DB>::new(script).await;
    let ids = fixture.jobs(0..5).await;
    let counts = fixture.batch(10).await;
    assert_eq!((counts.dead_lettered, counts.retried, counts.snoozed, counts.completed), (1, 2, 1, 1));
    let expected = [
        (Status::DeadLetter, 1, 0, Some("never")),
        (Status::Pending, 1, 60_000, Some("later")),
        (Status::Pending, 1, 2_000, Some("backoff holds")),
        (Status::Pending, 0, 60_000, None),
        (Status::Completed, 0, 0, Some("not needed")),
    ];
    for (id, (status, attempts, later, error)) in ids.into_iter().zip(expected) {
        let record = fixture.get(id).await;
        assert_eq!((record.status, record.attempts, record.last_error.as_deref()), (status, attempts, error));
        assert_eq!(ms(record.available_at), ms(start_time()) + later, "{error:?}");
    }
}

pub async fn r15_outcomes_are_written_once_the_database_takes_them<DB: Harness>() {
    let (ended, fixture) = {
        let ended = Arc::new(Semaphore::new(0));
        let script = {
            let ended = Arc::clone(&ended);
            Script::new(move |_, _| {
                ended.add_permits(1);
                async { Ok(()) }
            })
        };
        (ended, Fixture::<DB>::new(script).await)
    };
    fixture.sql(DB::BREAK_WRITES).await;
    fixture.jobs(0..3).await;
    let worker = fixture.outbox.worker().spawn().await.unwrap();
    drop(ended.acquire_many(3).await.unwrap());
    // While outcomes cannot be written nothing else is claimed: give it something to claim, and time to see.
    eventually("a write has failed", async || {
        fixture.count("SELECT count(*) FROM outbox_event WHERE status = 'processing'").await == 3
    })
    .await;
    fixture.sql(DB::MEND_WRITES).await;
    eventually("all is written", async || {
        fixture.count("SELECT count(*) FROM outbox_event WHERE status = 'completed'").await == 3
    })
    .await;
    let counts = worker.stop().await.unwrap();
    assert_eq!((counts.completed, counts.retried, counts.lease_lost), (3, 0, 0));
    assert_eq!(fixture.script.numbers().len(), 3, "no second run");
}

pub async fn r16_a_follow_up_runs_in_the_same_batch<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let inner = fixture.outbox.clone();
    let script = Script::new(move |n, ctx| {
        let outbox = inner.clone();
        async move {
            // On itself it is no deadlock.
            assert_eq!(outbox.process_event(ctx.event_id()).await?, Processed::Processing);
            if n < 3 {
                let mut tx = outbox.begin().await?;
                outbox.enqueue::<Job>(&mut tx, Job { n: n + 1 }).await?;
                outbox.commit(tx).await?;
            }
            Ok(())
        }
    });
    let outbox = fixture.with_script(script.clone());
    fixture.enqueue(Job { n: 0 }).await;
    assert_eq!(outbox.process_batch(BatchOptions::new()).await.unwrap().completed, 4);
    assert_eq!(script.numbers(), [0, 1, 2, 3]);
}

pub async fn r15_a_statement_that_came_at_a_bad_moment_is_tried_again<DB: Harness>() {
    let Some(bad_moments) = DB::BAD_MOMENTS else {
        let case = "r15_a_statement_that_came_at_a_bad_moment_is_tried_again";
        return say_skipped::<DB>(case, "it cannot be made to say so");
    };
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..20).await;
    fixture.sql(bad_moments).await;
    assert_eq!(fixture.batch(10).await.completed, 10);
    assert_eq!(fixture.outbox.process_event(ids[10]).await.unwrap(), Processed::Completed);
    let worker = fixture.outbox.worker().spawn().await.unwrap();
    eventually("the loop goes on", async || fixture.script.runs().len() == 20).await;
    assert_eq!(worker.stop().await.unwrap().completed, 9);
    assert_eq!(
        fixture.count("SELECT count(*) FROM outbox_event WHERE status = 'completed' AND attempts = 0").await,
        20
    );
    fixture.outbox.discard(ids[0]).await.unwrap();
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(fixture.outbox.prune(Status::Completed, Duration::from_secs(1)).await.unwrap(), 19);
}

pub async fn r17_spent_attempts_still_get_their_run<DB: Harness>() {
    let script = Script::new(|n, _| async move { if n == 0 { Ok(()) } else { Err("no".into()) } });
    let fixture = Fixture::<DB>::new(script).await;
    let ids = fixture.jobs(0..2).await;
    for id in &ids {
        fixture.edit(*id, "attempts = 12").await;
    }
    let counts = fixture.batch(10).await;
    assert_eq!((counts.completed, counts.dead_lettered), (1, 1));
    assert_eq!(fixture.get(ids[0]).await.status, Status::Completed);
    assert_eq!(fixture.get(ids[1]).await.status, Status::DeadLetter);
}

pub async fn r_completed_rows_can_go_at_once<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    fixture.jobs(0..20).await;
    fixture.enqueue(Anything(json!(1))).await;
    let worker = fixture.outbox.worker().retention(outbox::Retention::DeleteOnSuccess).spawn().await.unwrap();
    eventually("the table is empty", async || fixture.count("SELECT count(*) FROM outbox_event").await == 0)
        .await;
    assert_eq!(worker.stop().await.unwrap().completed, 21);
}

pub async fn r_what_a_program_lacks_is_said_before_anything_is_claimed<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let id = fixture.enqueue(Job { n: 1 }).await;
    let message =
        async |outbox: outbox::Outbox<DB>| outbox.worker().spawn().await.map(drop).unwrap_err().to_string();
    let empty = message(fixture.outbox.clone().registry(Registry::empty())).await;
    assert!(empty.contains("no handler is linked") && empty.contains("as _;"), "{empty}");
    let twice =
        Registry::linked().handlers().iter().find(|def| def.event_type() == "test.job").unwrap().clone();
    let twice = message(fixture.outbox.clone().registry(Registry::linked().with(twice))).await;
    assert!(twice.contains("two handlers") && twice.matches("fixture.rs:").count() == 2, "{twice}");
    let stateless = message(outbox::Outbox::new(fixture.outbox.pool().clone())).await;
    assert!(stateless.contains("Script") && stateless.contains("fixture.rs:"), "{stateless}");
    let expected = fixture.outbox.worker().expect_handlers(["test.job", "test.missing"]).spawn().await;
    assert!(expected.unwrap_err().to_string().contains("test.missing"));
    let stuck =
        fixture.outbox.worker().stuck_after(Duration::from_secs(60)).spawn().await.unwrap_err().to_string();
    assert!(stuck.contains("stuck_after") && stuck.contains("fixture.rs:"), "{stuck}");
    let elsewhere =
        fixture.outbox.clone().schema("not \"migrated\" yet").worker().spawn().await.unwrap_err().to_string();
    assert!(elsewhere.contains("Outbox::migrate()") && elsewhere.contains("0001_outbox.sql"), "{elsewhere}");
    assert_eq!(fixture.get(id).await.fence, 0);
}
