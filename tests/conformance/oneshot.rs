//! Rows O1–O7 of the contract.

use std::sync::Arc;
use std::time::Duration;

use outbox::{AdminError, BatchOptions, EventId, Page, Processed, RunError, Status};
use serde_json::json;
use tokio::sync::Notify;

use crate::fixture::{Anything, Fixture, Foreign, Harness, Job, Other, Script, eventually, start_time};

pub async fn o01_a_batch_reaps_then_runs_until_its_size<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..25).await;
    fixture.held_by(ids[0], "nobody", 0).await;
    let counts = fixture.outbox.process_batch(BatchOptions::new()).await.unwrap();
    assert_eq!((counts.completed, counts.reaped), (10, 1));
    let counts = fixture.batch(100).await;
    assert_eq!((counts.completed, counts.reaped), (15, 0));
    assert_eq!(fixture.batch(100).await.completed, 0);
}

pub async fn o01_a_call_that_is_dropped_gives_back_what_it_runs<DB: Harness>() {
    let entered = Arc::new(Notify::new());
    let script = {
        let entered = Arc::clone(&entered);
        Script::new(move |_, _| {
            entered.notify_one();
            std::future::pending()
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    let id = fixture.enqueue(Job { n: 1 }).await;
    tokio::select! {
        answer = fixture.outbox.process_event(id) => panic!("{answer:?}"),
        () = entered.notified() => {}
    }
    eventually("its worker is gone", async || {
        fixture.count("SELECT count(*) FROM outbox_worker WHERE stopped_at IS NULL").await == 0
    })
    .await;
    let record = fixture.get(id).await;
    assert_eq!((record.status, record.attempts, record.crashes), (Status::Pending, 0, 0));
    assert_eq!(fixture.with_script(Script::succeed()).process_event(id).await.unwrap(), Processed::Completed);
}

pub async fn o01_time_that_never_suffices_is_an_error_before_any_sql<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..2).await;
    fixture.held_by(ids[0], "nobody", 0).await;
    // The longest timeout of the handlers here is the default, 90 s; 5 s are kept beside it.
    let short = BatchOptions::new().max_runtime(Duration::from_secs(94));
    let refused = fixture.outbox.process_batch(short).await;
    assert!(matches!(refused, Err(RunError::Option { option: "max_runtime", .. })), "{refused:?}");
    assert_eq!(fixture.get(ids[0]).await.status, Status::Processing, "not even reaped");
    let long = BatchOptions::new().max_runtime(Duration::from_secs(120));
    assert_eq!(fixture.outbox.process_batch(long).await.unwrap().completed, 2);
    fixture.jobs(0..1).await;
    let own = BatchOptions::new().max_runtime(Duration::from_secs(10)).min_remaining(Duration::from_secs(5));
    assert_eq!(fixture.outbox.process_batch(own).await.unwrap().completed, 1);
}

pub async fn o01_a_claim_that_fails_abandons_nothing_that_runs<DB: Harness>() {
    let (entered, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let script = {
        let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
        Script::new(move |_, _| {
            let (entered, go) = (Arc::clone(&entered), Arc::clone(&go));
            async move {
                entered.notify_one();
                go.notified().await;
                Ok(())
            }
        })
    };
    let fixture = Fixture::<DB>::new(script).await;
    let first = fixture.jobs([0]).await[0];
    let outbox = fixture.outbox.clone();
    let batch = tokio::spawn(async move { outbox.process_batch(BatchOptions::new()).await });
    entered.notified().await;
    fixture.sql(DB::BREAK_CLAIMS).await;
    let second = fixture.jobs([1]).await[0];
    go.notify_one();
    let failed = batch.await.unwrap();
    assert!(matches!(failed, Err(RunError::Database(_))), "{failed:?}");
    assert_eq!(fixture.get(first).await.status, Status::Completed);
    assert_eq!(fixture.get(second).await.status, Status::Pending);
    let live = "SELECT count(*) FROM outbox_worker WHERE stopped_at IS NULL";
    assert_eq!(fixture.count(live).await, 0, "its worker has ended in order");
}

pub async fn o02_one_event_and_what_stands_against_it<DB: Harness>() {
    let script = Script::new(|n, _| async move {
        match n {
            0 => Ok(()),
            1 => Err("no".into()),
            _ => Err(outbox::HandlerError::permanent("never").into()),
        }
    });
    let fixture = Fixture::<DB>::new(script).await;
    let ids = fixture.jobs(0..4).await;
    let later = fixture.sql_time(1);
    fixture.edit(ids[3], &format!("available_at = {later}")).await;
    let process = async |id| fixture.outbox.process_event(id).await.unwrap();
    assert_eq!(process(ids[0]).await, Processed::Completed);
    assert_eq!(process(ids[0]).await, Processed::Finished(Status::Completed));
    assert_eq!(process(ids[1]).await, Processed::Retried);
    assert_eq!(process(ids[1]).await, Processed::NotDue);
    assert_eq!(process(ids[2]).await, Processed::DeadLettered);
    assert_eq!(process(ids[2]).await, Processed::Finished(Status::DeadLetter));
    assert_eq!(process(ids[3]).await, Processed::NotDue);
    assert_eq!(process(EventId::new()).await, Processed::NotFound);
    let foreign = fixture.enqueue(Foreign { n: 1 }).await;
    assert!(matches!(fixture.outbox.process_event(foreign).await, Err(RunError::NoHandler { .. })));
}

pub async fn o03_two_calls_at_once_are_one_run<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..20).await;
    let worker = fixture.outbox.worker().spawn().await.unwrap();
    let mut calls = Vec::new();
    for id in ids {
        for _ in 0..2 {
            let outbox = fixture.outbox.clone();
            calls.push(tokio::spawn(async move { outbox.process_event(id).await }));
        }
    }
    let mut completed = 0;
    for call in calls {
        match call.await.unwrap().unwrap() {
            Processed::Completed => completed += 1,
            Processed::Processing | Processed::Locked | Processed::Finished(Status::Completed) => {}
            other => panic!("{other:?}"),
        }
    }
    let by_the_worker = worker.stop().await.unwrap().completed;
    assert_eq!(completed + by_the_worker, 20);
    assert_eq!(fixture.script.runs().len(), 20);
}

pub async fn o04_has_inflight_compares_a_top_level_field_as_text<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    let payload = json!({
        "number": 5, "text": "five \"5\" ünï", "truth": true, "nothing": null, "big": u64::MAX, "a.b": 1, "q\"uote": 2,
        "ключ": 3, "nested": {"inner": 4}, "$": "dollar",
    });
    fixture
        .outbox
        .enqueue::<Anything>(&mut tx, Anything(payload))
        .delay(Duration::from_secs(60))
        .await
        .unwrap();
    for (key, value, expected) in [
        ("number", "5", true),
        ("number", "6", false),
        ("number", "5.0", false),
        ("text", "five \"5\" ünï", true),
        ("truth", "true", true),
        ("big", "18446744073709551615", true),
        ("a.b", "1", true),
        ("q\"uote", "2", true),
        ("ключ", "3", true),
        ("$", "dollar", true),
        ("inner", "4", false),
        ("nothing", "null", false),
        ("nothing", "", false),
        ("missing", "null", false),
    ] {
        let found = fixture.outbox.has_inflight::<Anything>(&mut tx, key, value).await.unwrap();
        assert_eq!(found, expected, "{key} = {value}, inside the transaction");
    }
    assert!(!fixture.outbox.has_inflight::<Job>(&mut tx, "number", "5").await.unwrap(), "another type");
    tx.commit().await.unwrap();
    let id = fixture.jobs([7]).await[0];
    fixture.held_by(id, "somebody", 0).await;
    let inflight = async || {
        let mut tx = fixture.outbox.begin().await.unwrap();
        fixture.outbox.has_inflight::<Job>(&mut tx, "n", "7").await.unwrap()
    };
    assert!(inflight().await, "processing counts");
    for over in ["completed", "dead_letter"] {
        fixture.edit(id, &format!("status = '{over}'")).await;
        assert!(!inflight().await, "{over} does not");
    }
    fixture.edit(id, "status = 'pending', crashes = 1").await;
    assert!(inflight().await, "a suspect counts");
}

pub async fn o05_dead_letters_are_found_newest_first_page_by_page<DB: Harness>() {
    let fixture =
        Fixture::<DB>::new(Script::new(|_, _| async { Err(outbox::HandlerError::permanent("no").into()) }))
            .await;
    let ids = fixture.jobs(0..7).await;
    let mut expected = Vec::new();
    for (index, id) in ids.iter().enumerate() {
        fixture.outbox.process_event(*id).await.unwrap();
        expected.insert(0, *id);
        // Some become dead letters at the same moment.
        if index % 3 == 0 {
            fixture.clock.advance(Duration::from_secs(1));
        }
    }
    let other = fixture.enqueue(Other { n: 1 }).await;
    fixture.outbox.process_event(other).await.unwrap();
    let find = async |types: &[&str], page| fixture.outbox.find_dead_lettered(types, page).await.unwrap();
    assert!(find(&[], Page::default()).await.is_empty());
    assert!(find(&["test.none"], Page::default()).await.is_empty());
    assert_eq!(find(&["test.other", "test.job"], Page::default()).await.len(), 8);
    let mut found = Vec::new();
    let mut page = Page::first(2);
    loop {
        let records = find(&["test.job"], page).await;
        let Some(last) = records.last() else { break };
        page = Page::after(last, 2);
        found.extend(records.iter().map(|record| record.id));
    }
    assert_eq!(found, expected);
}

pub async fn o06_only_a_dead_letter_is_requeued<DB: Harness>() {
    let fixture =
        Fixture::<DB>::new(Script::new(|_, _| async { Err(outbox::HandlerError::permanent("no").into()) }))
            .await;
    let ids = fixture.jobs(0..3).await;
    fixture.outbox.process_event(ids[0]).await.unwrap();
    fixture.edit(ids[0], "crashes = 2").await;
    fixture.clock.advance(Duration::from_secs(5));
    fixture.outbox.requeue(ids[0]).await.unwrap();
    let record = fixture.get(ids[0]).await;
    assert_eq!((record.status, record.attempts, record.crashes, record.fence), (Status::Pending, 0, 0, 1));
    assert_eq!((record.last_error, record.processed_at), (None, None));
    assert_eq!(record.available_at, start_time() + Duration::from_secs(5));
    let now = fixture.sql_time(0);
    for status in [Status::Pending, Status::Processing, Status::Completed] {
        fixture.edit(ids[1], &format!("status = '{status}', processed_at = {now}")).await;
        let refused = fixture.outbox.requeue(ids[1]).await;
        assert!(
            matches!(&refused, Err(AdminError::NotThatStatus { status: is, .. }) if *is == status),
            "{refused:?}"
        );
        assert_eq!(fixture.get(ids[1]).await.status, status);
    }
    assert!(matches!(fixture.outbox.requeue(EventId::new()).await, Err(AdminError::NotFound(_))));
    fixture.sql(format!("UPDATE outbox_event SET status = 'dead_letter', processed_at = {now}")).await;
    let other = fixture.enqueue(Other { n: 1 }).await;
    fixture.outbox.process_event(other).await.unwrap();
    assert_eq!(fixture.outbox.requeue_all(&["test.job", "test.none"]).await.unwrap(), 3);
    assert_eq!(fixture.outbox.requeue_all(&[]).await.unwrap(), 0);
    assert_eq!(fixture.get(other).await.status, Status::DeadLetter);
}

pub async fn o07_only_what_is_finished_is_discarded_or_pruned<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..4).await;
    for unfinished in [Status::Pending, Status::Processing] {
        fixture.edit(ids[0], &format!("status = '{unfinished}'")).await;
        let refused = fixture.outbox.discard(ids[0]).await;
        assert!(
            matches!(&refused, Err(AdminError::NotThatStatus { status, .. }) if *status == unfinished),
            "{refused:?}"
        );
        let refused = fixture.outbox.prune(unfinished, Duration::ZERO).await;
        assert!(matches!(refused, Err(AdminError::NotTerminal(_))), "{refused:?}");
    }
    let old = fixture.sql_time(-60_000);
    let young = fixture.sql_time(-59_999);
    fixture.sql(format!("UPDATE outbox_event SET created_at = {old}")).await;
    fixture.edit(ids[1], &format!("status = 'completed', processed_at = {old}")).await;
    fixture.edit(ids[2], &format!("status = 'completed', processed_at = {young}")).await;
    fixture.edit(ids[3], &format!("status = 'dead_letter', processed_at = {old}")).await;
    let minute = Duration::from_secs(60);
    assert_eq!(fixture.outbox.prune(Status::Completed, minute).await.unwrap(), 1);
    assert!(fixture.outbox.get(ids[1]).await.unwrap().is_none());
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, 3);
    assert_eq!(fixture.outbox.prune(Status::DeadLetter, minute).await.unwrap(), 1);
    fixture.outbox.discard(ids[2]).await.unwrap();
    assert!(matches!(fixture.outbox.discard(ids[2]).await, Err(AdminError::NotFound(_))));
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, 1);
}

pub async fn o07_pruning_reaches_every_page<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    fixture.jobs(0..3500).await;
    let old = fixture.sql_time(-60_000);
    // Every fourth is a dead letter, and stays.
    fixture
        .sql(format!(
            "UPDATE outbox_event SET created_at = {old}, processed_at = {old}, \
             status = CASE WHEN seq % 4 = 0 THEN 'dead_letter' ELSE 'completed' END"
        ))
        .await;
    let dead = fixture.count("SELECT count(*) FROM outbox_event WHERE status = 'dead_letter'").await;
    let pruned = fixture.outbox.prune(Status::Completed, Duration::from_secs(1)).await.unwrap();
    assert_eq!(pruned, 3500 - dead.unsigned_abs());
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, dead);
}
