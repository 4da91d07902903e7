//! Rows P1 and P2 of the contract.

use std::sync::Arc;
use std::time::Duration;

use outbox::{BatchOptions, HandlerDef, Registry};
use tokio::sync::Semaphore;

use crate::fixture::{Anything, Fixture, Harness, Hasty, Job, Other, Script, eventually, start_time};

pub async fn p01_one_at_a_time_they_run_in_due_order<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..6).await;
    for (id, earlier) in [(ids[4], 3), (ids[1], 2), (ids[3], 2)] {
        let time = fixture.sql_time(-earlier);
        fixture.edit(id, &format!("available_at = {time}")).await;
    }
    let worker = fixture.outbox.worker().concurrency(1).spawn().await.unwrap();
    eventually("all ran", async || fixture.script.runs().len() == 6).await;
    worker.stop().await.unwrap();
    assert_eq!(fixture.script.numbers(), [4, 1, 3, 0, 2, 5]);
}

pub async fn p01_what_appears_in_front_of_others_that_ran_still_runs<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let worker = fixture.outbox.worker().poll_interval(Duration::from_millis(5)).spawn().await.unwrap();
    let mut expected = Vec::new();
    // More than one claim takes, so that it has to be gone on with; each lot due before the one that ran last.
    for lot in 0..4 {
        let numbers: Vec<i64> = (0..700).map(|n| lot * 1000 + n).collect();
        let due = start_time() - Duration::from_secs(3600 * u64::try_from(lot).unwrap());
        let mut tx = fixture.outbox.begin().await.unwrap();
        for n in &numbers {
            fixture.outbox.enqueue::<Job>(&mut tx, Job { n: *n }).available_at(due).await.unwrap();
        }
        tx.commit().await.unwrap();
        expected.extend(numbers);
        eventually("the lot ran", async || fixture.script.runs().len() == expected.len()).await;
    }
    worker.stop().await.unwrap();
    let mut ran = fixture.script.numbers();
    ran.sort_unstable();
    assert_eq!(ran, expected);
}

pub async fn p02_a_backlog_holds_nobody_back<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    fixture.jobs(0..500).await;
    fixture.enqueue(Other { n: 1000 }).await;
    fixture.enqueue(Hasty { n: 2000 }).await;
    fixture.enqueue(Anything(serde_json::json!(1))).await;
    // Four types: within four claims of one event each, each has had its turn.
    for _ in 0..4 {
        fixture.outbox.process_batch(BatchOptions::new().batch_size(4)).await.unwrap();
    }
    let numbers = fixture.script.numbers();
    assert!(numbers.contains(&1000) && numbers.contains(&2000), "{numbers:?}");
    assert_eq!(fixture.seen.0.lock().unwrap().len(), 1);
}

pub async fn p02_types_share_the_only_slot<DB: Harness>() {
    for types in [&["test.job", "test.other"][..], &["test.job", "test.other", "test.hasty"]] {
        // So slow that nothing is claimed in advance.
        let fixture = Fixture::<DB>::new(Script::new(|_, _| async {
            tokio::time::sleep(Duration::from_millis(1050)).await;
            Ok(())
        }))
        .await;
        fixture.jobs(0..8).await;
        for n in 100..108 {
            fixture.enqueue(Other { n }).await;
        }
        let handled = Registry::linked().retain(|def: &HandlerDef| types.contains(&def.event_type()));
        let worker = fixture.outbox.clone().registry(handled).worker().concurrency(1).spawn().await.unwrap();
        eventually("seven have begun", async || fixture.script.numbers().len() >= 7).await;
        drop(worker);
        let ran = fixture.script.numbers();
        let jobs = ran.iter().filter(|n| **n < 100).count();
        assert!(jobs > 2 && ran.len() - jobs > 2, "of {types:?}: {ran:?}");
    }
}

pub async fn p02_each_handler_keeps_its_own_limit<DB: Harness>() {
    let running = Arc::new(Semaphore::new(0));
    let go = Arc::new(Semaphore::new(0));
    let script = {
        let (running, go) = (Arc::clone(&running), Arc::clone(&go));
        Script::new(move |_, _| {
            let (running, go) = (Arc::clone(&running), Arc::clone(&go));
            async move {
                running.add_permits(1);
                go.acquire().await?.forget();
                Ok(())
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    for n in 0..10 {
        fixture.enqueue(Other { n }).await;
    }
    let worker = fixture.outbox.worker().spawn().await.unwrap();
    running.acquire_many(2).await.unwrap().forget();
    // Its slots are taken; another type's event still starts, which shows that claims went on meanwhile.
    fixture.enqueue(Job { n: 99 }).await;
    eventually("the other type starts", async || fixture.script.numbers().contains(&99)).await;
    assert_eq!(fixture.script.numbers().iter().filter(|n| **n < 99).count(), 2);
    go.add_permits(11);
    eventually("all is done", async || fixture.outbox.stats().await.unwrap().is_idle()).await;
    assert_eq!(worker.stop().await.unwrap().completed, 11);
}

pub async fn p02_a_slow_types_queue_in_memory_hides_no_new_type<DB: Harness>() {
    let script = Script::new(|n, _| async move {
        if n < 1000 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    });
    let fixture = Fixture::<DB>::new(script).await;
    let worker = fixture.outbox.worker().concurrency(2).spawn().await.unwrap();
    fixture.jobs(0..400).await;
    eventually("the backlog is being worked on", async || fixture.script.runs().len() > 20).await;
    fixture.enqueue(Other { n: 1000 }).await;
    eventually("the other type runs", async || fixture.script.numbers().contains(&1000)).await;
    assert!(fixture.script.runs().len() < 350, "before the backlog was done");
    drop(worker);
}
