//! Rows E1–E13 of the contract.

use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use outbox::{Context, EnqueueError, EventId, Outbox, PayloadError, Processed, Receipt, Status};
use serde_json::{Value, json};

use crate::fixture::{
    Anything, Fixture, Harness, Job, Other, Script, another_pool, eventually, ms, start_time,
};

pub async fn e01_commit_stores_a_pending_event<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let id = fixture.enqueue(Job { n: 1 }).await;
    let record = fixture.get(id).await;
    assert_eq!(record.status, Status::Pending);
    assert_eq!((record.attempts, record.crashes, record.max_attempts, record.fence), (0, 0, 10, 0));
    assert_eq!((record.event_type.as_str(), record.event_version), ("test.job", 2));
    assert_eq!((record.available_at, record.created_at), (start_time(), start_time()));
    assert!(record.locked_at.is_none() && record.locked_by.is_none());
    assert!(record.processed_at.is_none() && record.last_error.is_none());
    assert_eq!(id.as_uuid().get_version_num(), 7);
    assert_eq!(record.payload, r#"{"n":1}"#);
}

pub async fn e02_rollback_leaves_no_row<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    let id = outbox::enqueue::<Job>(&mut tx, Job { n: 1 }).await.unwrap().id();
    tx.rollback().await.unwrap();
    let mut tx = fixture.outbox.begin().await.unwrap();
    outbox::enqueue::<Job>(&mut tx, &Job { n: 2 }).await.unwrap();
    drop(tx);
    assert!(fixture.outbox.get(id).await.unwrap().is_none());
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, 0);
}

pub async fn e03_nothing_is_seen_before_the_commit<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    let id = fixture.outbox.enqueue::<Job>(&mut tx, Job { n: 1 }).await.unwrap().id();
    assert_eq!(fixture.outbox.process_event(id).await.unwrap(), Processed::NotFound);
    if DB::LOCKS_ROWS {
        // Where a writer locks the whole database a batch waits for it; there the row above has said it.
        assert_eq!(fixture.batch(10).await.completed, 0);
    }
    tx.commit().await.unwrap();
    assert_eq!(fixture.outbox.process_event(id).await.unwrap(), Processed::Completed);
}

pub async fn e05_every_value_comes_back_equal<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut values = vec![
        json!({"a": [1, "two", null, {"deep": true}]}),
        json!([]),
        json!({}),
        json!("text"),
        json!(""),
        json!(0),
        json!(true),
        json!(false),
        Value::Null,
        json!(u64::MAX),
        json!(i64::MIN),
        json!("ünïcödé \u{1f600} \u{202e} \u{fffd} \"quoted\" \\ \n\t\u{7f}"),
        json!({"": 1, "a.b": 2, "\"": 3, "ключ": 4}),
        json!("x".repeat(5 * 1024 * 1024)),
        (0..DB::DEEPEST).fold(json!(1), |inner, _| json!([inner])),
    ];
    let floats =
        [0.1, 0.1 + 0.2, -0.0, 5e-324, f64::MIN_POSITIVE, f64::MAX, f64::MIN, 1e23, 123_456_789.123_456_79];
    values.extend(floats.map(|float| json!(float)));
    for line in include_str!("../data/github-webhooks.jsonl").lines() {
        values.push(serde_json::from_str(line).unwrap());
    }
    for value in values {
        fixture.enqueue(Anything(value.clone())).await;
        assert_eq!(fixture.batch(1).await.completed, 1);
        let seen = fixture.seen.0.lock().unwrap().pop().unwrap();
        assert!(seen == value, "{}", value.to_string().chars().take(200).collect::<String>());
        // Equality of floats does not tell the zeros apart.
        assert_eq!(seen.as_f64().map(f64::to_bits), value.as_f64().map(f64::to_bits));
    }
}

pub async fn e05_what_would_not_come_back_is_refused_before_any_sql<DB: Harness>() {
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, outbox::Event)]
    #[event("test.float")]
    struct Float {
        value: Option<f64>,
    }
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = outbox::enqueue::<Float>(&mut tx, Float { value: Some(value) }).await;
        assert!(matches!(refused, Err(EnqueueError::Payload(PayloadError::NotFinite))), "{refused:?}");
    }
    let deep = (0..129).fold(json!(1), |inner, _| json!([inner]));
    let refused = outbox::enqueue::<Anything>(&mut tx, Anything(deep)).await;
    assert!(matches!(refused, Err(EnqueueError::Payload(PayloadError::TooDeep))), "{refused:?}");
    let large = json!("x".repeat(outbox::MAX_PAYLOAD_BYTES));
    let refused = outbox::enqueue::<Anything>(&mut tx, Anything(large)).await;
    assert!(matches!(refused, Err(EnqueueError::Payload(PayloadError::TooLarge))), "{refused:?}");
    // The transaction is as usable as before.
    outbox::enqueue::<Float>(&mut tx, Float { value: None }).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, 1);
}

pub async fn e06_what_cannot_be_stored_or_queried_is_refused_before_any_sql<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    let job = || Job { n: 1 };
    let header = outbox::enqueue::<Job>(&mut tx, job()).header("tenant", "a\0b").await;
    assert!(matches!(header, Err(EnqueueError::Key { what: "header value", .. })), "{header:?}");
    let name = outbox::enqueue::<Job>(&mut tx, job()).header("a\0b", "x").await;
    assert!(matches!(name, Err(EnqueueError::Key { what: "header name", .. })), "{name:?}");
    for key in ["a\0b".to_owned(), String::new(), "é".repeat(128)] {
        let refused = outbox::enqueue::<Job>(&mut tx, job()).dedup_key(key).await;
        assert!(matches!(refused, Err(EnqueueError::Key { what: "dedup key", .. })), "{refused:?}");
    }
    outbox::enqueue::<Job>(&mut tx, job()).dedup_key("k".repeat(255)).await.unwrap();
    // An escaped NUL is either refused, or stored and comes back.
    let nul = Anything(json!({"text": "a\0b"}));
    match outbox::enqueue::<Anything>(&mut tx, nul.clone()).await {
        Err(error) => {
            assert!(matches!(error, EnqueueError::Payload(PayloadError::Unqueryable(_))), "{error}")
        }
        Ok(_) => {
            tx.commit().await.unwrap();
            fixture.batch(10).await;
            assert_eq!(fixture.seen.0.lock().unwrap().pop(), Some(nul.0));
            return;
        }
    }
    tx.commit().await.unwrap();
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, 1);
}

pub async fn e07_sequence_numbers_are_distinct_and_increase<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let ids = fixture.jobs(0..20).await;
    let mut seqs = Vec::new();
    for id in ids {
        seqs.push(fixture.get(id).await.seq);
    }
    assert!(seqs.windows(2).all(|pair| pair[0] < pair[1]), "{seqs:?}");
}

pub async fn e08_a_transaction_that_commits_last_is_not_skipped<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    if DB::LOCKS_ROWS {
        let mut long = fixture.outbox.begin().await.unwrap();
        let late = fixture.outbox.enqueue::<Job>(&mut long, Job { n: 1 }).await.unwrap().id();
        fixture.jobs(2..5).await;
        assert_eq!(fixture.batch(10).await.completed, 3);
        // And for a loop, which goes on from where it was.
        let worker = fixture.outbox.worker().spawn().await.unwrap();
        fixture.jobs(5..8).await;
        eventually("the loop ran the later ones", async || fixture.script.runs().len() == 6).await;
        long.commit().await.unwrap();
        eventually("it ran the late one", async || fixture.script.runs().len() == 7).await;
        worker.stop().await.unwrap();
        assert_eq!(fixture.get(late).await.status, Status::Completed);
    } else {
        // One writer at a time: what is due before others that ran already still runs.
        fixture.jobs(2..5).await;
        assert_eq!(fixture.batch(10).await.completed, 3);
        let mut tx = fixture.outbox.begin().await.unwrap();
        let early = start_time() - Duration::from_secs(3600);
        fixture.outbox.enqueue::<Job>(&mut tx, Job { n: 1 }).available_at(early).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(fixture.batch(10).await.completed, 1);
    }
    assert_eq!(fixture.script.numbers().last(), Some(&1));
}

pub async fn e09_attempts_are_given_by_call_constant_or_default<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    for wrong in [0, u32::MAX] {
        let refused = outbox::enqueue::<Job>(&mut tx, Job { n: 1 }).max_attempts(wrong).await;
        assert!(matches!(refused, Err(EnqueueError::MaxAttempts(_))), "{refused:?}");
    }
    let default = outbox::enqueue::<Job>(&mut tx, Job { n: 1 }).await.unwrap().id();
    let constant = outbox::enqueue::<Other>(&mut tx, Other { n: 1 }).await.unwrap().id();
    let called = outbox::enqueue::<Other>(&mut tx, Other { n: 1 }).max_attempts(7).await.unwrap().id();
    tx.commit().await.unwrap();
    for (id, attempts) in [(default, 10), (constant, 3), (called, 7)] {
        assert_eq!(fixture.get(id).await.max_attempts, attempts);
    }
}

pub async fn e10_an_event_waits_for_its_time<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    let minute = Duration::from_secs(60);
    let delayed = fixture.outbox.enqueue::<Job>(&mut tx, Job { n: 1 }).delay(minute).await.unwrap().id();
    let dated = fixture
        .outbox
        .enqueue::<Job>(&mut tx, Job { n: 2 })
        .available_at(start_time() + minute)
        .await
        .unwrap();
    let past = fixture
        .outbox
        .enqueue::<Job>(&mut tx, Job { n: 3 })
        .available_at(start_time() - minute)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(fixture.batch(10).await.completed, 1);
    assert_eq!(fixture.get(past.id()).await.status, Status::Completed);
    fixture.clock.advance(minute - Duration::from_millis(1));
    assert_eq!(fixture.batch(10).await.completed, 0);
    for id in [delayed, dated.id()] {
        let record = fixture.get(id).await;
        assert_eq!(
            (record.status, record.fence, ms(record.available_at)),
            (Status::Pending, 0, ms(start_time()) + 60_000)
        );
    }
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(fixture.batch(10).await.completed, 2);
}

pub async fn e11_a_dedup_key_is_stored_once<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::fail("no")).await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    let first = outbox::enqueue::<Job>(&mut tx, Job { n: 1 }).dedup_key("k").max_attempts(1).await.unwrap();
    let second = outbox::enqueue::<Job>(&mut tx, Job { n: 2 }).dedup_key("k").await.unwrap();
    assert_eq!(second, Receipt::Duplicate { id: first.id(), status: Status::Pending });
    let other_type =
        outbox::enqueue::<Other>(&mut tx, Other { n: 3 }).dedup_key("k").delay(Duration::from_secs(9)).await;
    assert!(!other_type.unwrap().is_duplicate());
    tx.commit().await.unwrap();
    fixture.clock.advance(Duration::ZERO);
    let due = fixture.sql_time(0);
    fixture.edit(first.id(), &format!("available_at = {due}")).await;
    assert_eq!(fixture.outbox.process_event(first.id()).await.unwrap(), Processed::DeadLettered);
    let mut tx = fixture.outbox.begin().await.unwrap();
    let third = outbox::enqueue::<Job>(&mut tx, Job { n: 4 }).dedup_key("k").await.unwrap();
    assert_eq!(third, Receipt::Duplicate { id: first.id(), status: Status::DeadLetter });
    tx.commit().await.unwrap();
    fixture.outbox.discard(first.id()).await.unwrap();
    let mut tx = fixture.outbox.begin().await.unwrap();
    assert!(!outbox::enqueue::<Job>(&mut tx, Job { n: 5 }).dedup_key("k").await.unwrap().is_duplicate());
}

pub async fn e12_an_id_of_ones_own_is_stored_once<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let id: EventId = "0a0b0c0d-0000-4000-8000-00000000ABCD".parse().unwrap();
    let mut tx = fixture.outbox.begin().await.unwrap();
    assert_eq!(outbox::enqueue::<Job>(&mut tx, Job { n: 1 }).id(id).await.unwrap(), Receipt::Enqueued(id));
    let again = outbox::enqueue::<Other>(&mut tx, Other { n: 1 }).id(id).await.unwrap();
    assert_eq!(again, Receipt::Duplicate { id, status: Status::Pending });
    tx.commit().await.unwrap();
    assert_eq!(fixture.get(id).await.event_type, "test.job");
}

pub async fn e_headers_reach_the_handler<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::new(|_, ctx: Context| async move {
        let expected = ctx.header("traceparent") == Some("00-1-2-01") && ctx.header("ключ") == Some("\"'{}");
        if expected && ctx.headers().len() == 2 { Ok(()) } else { Err(format!("{:?}", ctx.headers()).into()) }
    }))
    .await;
    let mut tx = fixture.outbox.begin().await.unwrap();
    let job = fixture.outbox.enqueue::<Job>(&mut tx, Job { n: 1 });
    job.header("traceparent", "00-1-2-01").header("ключ", "\"'{}").await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(fixture.batch(10).await.completed, 1);
}

pub async fn e_a_plain_insert_is_an_enqueue<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    fixture
        .sql(
            "INSERT INTO outbox_event (id, event_type, payload) \
             VALUES ('0a0b0c0d-0000-4000-8000-000000000001', 'test.job', '{\"n\": 7}')",
        )
        .await;
    // Its time is the database's own, which is before the clock of the test.
    assert_eq!(fixture.batch(10).await.completed, 1);
    assert_eq!(fixture.script.numbers(), [7]);
}

/// sqlx leaves a connection unusable whose `begin` was given up: in a `select!`, by a timeout, by a client that hung up.
pub async fn e_a_begin_that_is_given_up_harms_no_connection<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let outbox = Outbox::new(another_pool(fixture.outbox.pool(), 1));
    for turns in 0..40 {
        let mut begin = Box::pin(outbox.begin());
        for _ in 0..turns {
            if std::future::poll_fn(|context| Poll::Ready(begin.as_mut().poll(context).is_ready())).await {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(begin);
        let mut tx = outbox.begin().await.unwrap();
        outbox::enqueue::<Job>(&mut tx, Job { n: turns }).await.unwrap();
        outbox.commit(tx).await.unwrap();
        let mut tx = outbox.begin().await.unwrap();
        outbox::enqueue::<Job>(&mut tx, Job { n: -1 }).await.unwrap();
        tx.rollback().await.unwrap();
    }
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, 40);
    assert_eq!(fixture.batch(100).await.completed, 40);
}
