//! Row P4 of the contract: a handler's writes and its event's completion commit together.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use outbox::{BatchOptions, EventId, Processed, Retention, Status, Tx};
use sqlx::Pool;

use crate::fixture::{Fixture, Harness, Job, Script, TxScript, eventually, say_skipped};

/// A fixture whose handler with a transaction writes into a ledger and then does what the case says.
async fn ledger<DB: Harness>(act: TxScript<DB>) -> Fixture<DB> {
    let mut fixture = Fixture::<DB>::new(Script::succeed()).await;
    fixture.outbox = fixture.outbox.state(act);
    fixture.sql("CREATE TABLE ledger (n BIGINT NOT NULL)").await;
    fixture
}

/// An event for the handler with a transaction of this database.
async fn transfer<DB: Harness>(fixture: &Fixture<DB>, n: i64) -> EventId {
    let id = EventId::new();
    let (name, time) = (DB::TX_EVENT, fixture.sql_time(0));
    fixture
        .sql(format!(
            "INSERT INTO outbox_event (id, event_type, payload, available_at) VALUES ('{id}', '{name}', '{{\"n\": {n}}}', {time})"
        ))
        .await;
    id
}

async fn write<DB: Harness>(tx: &mut Tx<DB>, n: i64) {
    DB::sql_in(tx, format!("INSERT INTO ledger (n) VALUES ({n})")).await;
}

async fn written<DB: Harness>(fixture: &Fixture<DB>) -> i64 {
    fixture.count("SELECT count(*) FROM ledger").await
}

pub async fn p04_writes_and_completion_commit_together_or_not_at_all<DB: Harness>() {
    let fixture = ledger::<DB>(TxScript::new(|n, ctx, mut tx: Tx<DB>| async move {
        write(&mut tx, n).await;
        match n {
            1 => Ok(()),
            2 if ctx.attempts() == 0 => Err("no".into()),
            3 if ctx.attempts() == 0 => panic!("no"),
            4 if ctx.attempts() == 0 => std::future::pending().await,
            _ => Ok(()),
        }
    }))
    .await;
    let mut ids = Vec::new();
    for n in 1..=4 {
        ids.push(transfer(&fixture, n).await);
    }
    // One by one: where transactions are serializable, those side by side meet each other.
    let answers = [Processed::Completed, Processed::Retried, Processed::Retried, Processed::TimedOut];
    for (id, answer) in ids.iter().zip(answers) {
        assert_eq!(fixture.outbox.process_event(*id).await.unwrap(), answer);
    }
    assert_eq!(written(&fixture).await, 1);
    assert_eq!(fixture.get(ids[0]).await.status, Status::Completed);
    for id in &ids[1..] {
        let record = fixture.get(*id).await;
        assert_eq!((record.status, record.attempts, record.locked_by), (Status::Pending, 1, None));
    }
    fixture.clock.advance(Duration::from_secs(2));
    for id in &ids[1..] {
        assert_eq!(fixture.outbox.process_event(*id).await.unwrap(), Processed::Completed);
    }
    assert_eq!(written(&fixture).await, 4);
    assert_eq!(fixture.count("SELECT count(DISTINCT n) FROM ledger").await, 4);
}

pub async fn p04_follow_ups_belong_to_the_same_transaction<DB: Harness>() {
    let fixture = ledger::<DB>(TxScript::new(|n, ctx, mut tx: Tx<DB>| async move {
        outbox::enqueue::<Job>(&mut tx, Job { n }).dedup_key(n.to_string()).await?;
        if ctx.attempts() == 0 { Err("after the enqueue".into()) } else { Ok(()) }
    }))
    .await;
    transfer(&fixture, 7).await;
    assert_eq!(fixture.batch(10).await.retried, 1);
    assert_eq!(fixture.count("SELECT count(*) FROM outbox_event").await, 1, "rolled back with the rest");
    fixture.clock.advance(Duration::from_secs(3600));
    assert_eq!(fixture.batch(10).await.completed, 2);
    assert_eq!(fixture.script.numbers(), [7]);
}

pub async fn p04_a_lost_lease_rolls_back<DB: Harness>() {
    let pool: Arc<OnceLock<Pool<DB>>> = Arc::default();
    let script = {
        let pool = Arc::clone(&pool);
        TxScript::new(move |n, _, mut tx: Tx<DB>| {
            let pool = Arc::clone(&pool);
            async move {
                write(&mut tx, n).await;
                // As if another worker had claimed it since.
                let event_type = DB::TX_EVENT;
                let steal =
                    format!("UPDATE outbox_event SET fence = fence + 1 WHERE event_type = '{event_type}'");
                if DB::WRITES_ALONE {
                    DB::sql_in(&mut tx, steal).await;
                } else {
                    DB::sql(pool.get().unwrap(), steal).await;
                }
                Ok(())
            }
        })
    };
    let fixture = ledger::<DB>(script).await;
    pool.get_or_init(|| fixture.outbox.pool().clone());
    let id = transfer(&fixture, 1).await;
    let counts = fixture.batch(10).await;
    assert_eq!((counts.completed, counts.lease_lost), (0, 1), "{counts:?}");
    assert_eq!(written(&fixture).await, 0);
    assert_ne!(fixture.get(id).await.status, Status::Completed);
}

pub async fn p04_a_commit_that_fails_is_a_failure<DB: Harness>() {
    if !DB::DEFERS {
        let case = "p04_a_commit_that_fails_is_a_failure";
        return say_skipped::<DB>(
            case,
            "it checks every constraint at once, so no commit of the test's fails",
        );
    }
    let fixture = ledger::<DB>(TxScript::new(|n, ctx, mut tx: Tx<DB>| async move {
        write(&mut tx, n).await;
        if ctx.attempts() == 0 {
            DB::sql_in(&mut tx, "INSERT INTO child (parent) VALUES (1)".to_owned()).await;
        }
        Ok(())
    }))
    .await;
    fixture.sql("CREATE TABLE parent (id BIGINT PRIMARY KEY)").await;
    fixture
        .sql("CREATE TABLE child (parent BIGINT REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)")
        .await;
    let id = transfer(&fixture, 1).await;
    assert_eq!(fixture.batch(10).await.retried, 1);
    let record = fixture.get(id).await;
    let error = record.last_error.unwrap();
    assert!(error.contains("did not commit") && error.to_lowercase().contains("foreign key"), "{error}");
    assert_eq!((record.status, record.attempts, written(&fixture).await), (Status::Pending, 1, 0));
    fixture.clock.advance(Duration::from_secs(2));
    assert_eq!(fixture.batch(10).await.completed, 1);
    assert_eq!(written(&fixture).await, 1);
}

pub async fn p04_a_transaction_that_is_kept_is_a_failure<DB: Harness>() {
    let kept: Arc<Mutex<Vec<Tx<DB>>>> = Arc::default();
    let script = {
        let kept = Arc::clone(&kept);
        TxScript::new(move |_, _, mut tx: Tx<DB>| {
            let kept = Arc::clone(&kept);
            async move {
                // Where it holds the only write lock, its outcome could not be written.
                DB::sql_in(&mut tx, "ROLLBACK".to_owned()).await;
                kept.lock().unwrap().push(tx);
                Ok(())
            }
        })
    };
    let fixture = ledger::<DB>(script).await;
    let id = transfer(&fixture, 1).await;
    assert_eq!(fixture.batch(10).await.retried, 1);
    assert_eq!(kept.lock().unwrap().len(), 1);
    assert!(fixture.get(id).await.last_error.unwrap().contains("has not come back"));
    kept.lock().unwrap().clear();
}

pub async fn p04_completed_rows_can_go_in_the_same_transaction<DB: Harness>() {
    let fixture = ledger::<DB>(TxScript::new(|n, _, mut tx: Tx<DB>| async move {
        write(&mut tx, n).await;
        Ok(())
    }))
    .await;
    for n in 0..30 {
        transfer(&fixture, n).await;
    }
    // More than there are connections for.
    let worker = fixture.outbox.worker().retention(Retention::DeleteOnSuccess).tx_connections(2);
    let worker = worker.spawn().await.unwrap();
    eventually("all are gone", async || {
        // Where transactions are serializable they meet each other, and come again a little later.
        fixture.clock.advance(Duration::from_millis(100));
        fixture.count("SELECT count(*) FROM outbox_event").await == 0
    })
    .await;
    assert_eq!(worker.stop().await.unwrap().completed, 30);
    assert_eq!(fixture.count("SELECT count(DISTINCT n) FROM ledger").await, 30);
    assert_eq!(written(&fixture).await, 30);
}

pub async fn p04_what_no_transaction_can_do_is_said_at_start<DB: Harness>() {
    let fixture = ledger::<DB>(TxScript::new(|_, _, _: Tx<DB>| async { Ok(()) })).await;
    let elsewhere = fixture
        .outbox
        .clone()
        .registry(outbox::Registry::linked())
        .state(TxScript::<sqlx::Sqlite>::new(|_, _, _| async { Ok(()) }))
        .state(TxScript::<sqlx::Postgres>::new(|_, _, _| async { Ok(()) }))
        .state(TxScript::<sqlx::MySql>::new(|_, _, _| async { Ok(()) }));
    let refused = elsewhere.worker().spawn().await.unwrap_err().to_string();
    assert!(refused.contains("takes a transaction of") && refused.contains(DB::DATABASE), "{refused}");
    let refused = elsewhere.process_batch(BatchOptions::new()).await.unwrap_err().to_string();
    assert!(refused.contains("takes a transaction of"), "{refused}");
    let none = fixture.outbox.worker().tx_connections(0).spawn().await.unwrap_err().to_string();
    assert!(none.contains("tx_connections"), "{none}");
    // The handler's timeout is 300 ms.
    let short = fixture.outbox.worker().lease(Duration::from_millis(500)).spawn().await;
    assert_eq!(short.is_err(), DB::WRITES_ALONE, "nobody else could write for longer than half the lease");
    if let Err(error) = short {
        assert!(error.to_string().contains("half the lease"), "{error}");
    }
}
