//! Payloads whose shape and name have changed: upcasts and aliases, rows R10 and R11 of the contract.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outbox::{
    Context, Event, EventId, HandlerResult, Outbox, Processed, Registry, RunError, State, Status, handler,
    outbox_handler,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fixture::{Fixture, Harness, Script, eventually};

#[derive(Serialize, Deserialize, JsonSchema)]
struct TransferV2 {
    cents: String,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct TransferV3 {
    cents: i64,
}

/// Version 4. Version 1 is not read any more.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Transfer {
    n: i64,
}

fn from_v2(old: TransferV2) -> Result<TransferV3, Box<dyn std::error::Error + Send + Sync>> {
    assert_ne!(old.cents, "panic", "cents that nobody expected");
    let cents = old.cents.parse().map_err(|error| std::io::Error::other(Unreadable(error)))?;
    Ok(TransferV3 { cents })
}

#[derive(Debug, Clone)]
struct Unreadable(std::num::ParseIntError);

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the cents are no number")
    }
}

impl std::error::Error for Unreadable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

fn from_v3(old: TransferV3) -> Transfer {
    Transfer { n: old.cents }
}

#[outbox_handler(
    "test.transfer",
    version = 4,
    upcast(2 => from_v2, 3 => from_v3),
    aliases("test.transfer_old", "test.transfer_older"),
    concurrency = 2,
    register = false
)]
async fn transfer(transfer: Transfer, ctx: Context, State(script): State<Script>) -> HandlerResult {
    script.run(transfer.n, ctx).await
}

/// Another handler that wants the same old name.
#[derive(Serialize, Deserialize, JsonSchema, Event)]
#[event("test.rival", aliases("test.transfer_old"))]
struct Rival {}

#[outbox_handler(register = false)]
async fn rival(_rival: Rival) {}

async fn fixture<DB: Harness>(script: Script) -> Fixture<DB> {
    let mut fixture = Fixture::<DB>::new(script).await;
    fixture.outbox = fixture.outbox.registry(Registry::empty().with(handler!(transfer)));
    fixture
}

/// An event as an older program stored it.
async fn stored<DB: Harness>(fixture: &Fixture<DB>, version: u32, payload: &str) -> EventId {
    let id = fixture.enqueue(Transfer { n: 0 }).await;
    fixture.edit(id, &format!("event_version = {version}, payload = '{payload}'")).await;
    id
}

async fn renamed<DB: Harness>(fixture: &Fixture<DB>, n: i64, name: &str) -> EventId {
    let id = fixture.enqueue(Transfer { n }).await;
    fixture.edit(id, &format!("event_type = '{name}'")).await;
    id
}

pub async fn r10_an_older_version_is_led_to_the_present_one<DB: Harness>() {
    let fixture = fixture::<DB>(Script::succeed()).await;
    let ids = [
        stored(&fixture, 2, r#"{"cents": "200"}"#).await,
        stored(&fixture, 3, r#"{"cents": 300}"#).await,
        fixture.enqueue(Transfer { n: 400 }).await,
    ];
    assert_eq!(fixture.get(ids[2]).await.event_version, 4, "the newest one is what is written");
    let newer = stored(&fixture, 5, r#"{"n": 500}"#).await;
    assert_eq!(fixture.batch(10).await.completed, 3);
    let mut numbers = fixture.script.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, [200, 300, 400]);
    assert_eq!(fixture.get(newer).await.fence, 0);
}

pub async fn r11_what_cannot_be_led_to_the_present_is_a_dead_letter<DB: Harness>() {
    let fixture = fixture::<DB>(Script::succeed()).await;
    let cases = [
        (1, r#"{"n": 1}"#, "payload of version 1 is not read any more"),
        (2, r#"{"n": 1}"#, "TransferV2: missing field `cents`"),
        (2, r#"{"cents": "many"}"#, "upcast from version 2 failed: the cents are no number: invalid digit"),
        (3, r#"{"n": 1}"#, "TransferV3: missing field `cents`"),
        (4, r#"{"cents": 1}"#, "Transfer: missing field `n`"),
    ];
    for (version, payload, expected) in cases {
        let id = stored(&fixture, version, payload).await;
        assert_eq!(fixture.outbox.process_event(id).await.unwrap(), Processed::DeadLettered, "{expected}");
        let record = fixture.get(id).await;
        assert_eq!((record.status, record.payload.as_str()), (Status::DeadLetter, payload));
        let error = record.last_error.unwrap();
        assert!(error.contains(expected), "{error}");
    }
    // A panic may be the machine's fault, and is tried again as every other one.
    let id = stored(&fixture, 2, r#"{"cents": "panic"}"#).await;
    assert_eq!(fixture.outbox.process_event(id).await.unwrap(), Processed::Retried);
    let error = fixture.get(id).await.last_error.unwrap();
    assert!(error.starts_with("panicked: ") && error.contains("cents that nobody expected"), "{error}");
    assert!(fixture.script.runs().is_empty());
}

pub async fn r_events_under_an_old_name_are_handled<DB: Harness>() {
    let fixture = fixture::<DB>(Script::succeed()).await;
    let ids = [
        fixture.enqueue(Transfer { n: 1 }).await,
        renamed(&fixture, 2, "test.transfer_old").await,
        renamed(&fixture, 3, "test.transfer_older").await,
        renamed(&fixture, 4, "test.transfer_old").await,
    ];
    let foreign = renamed(&fixture, 5, "test.transfer_oldest").await;
    assert_eq!(fixture.get(ids[0]).await.event_type, "test.transfer", "the new name is what is written");
    let handled = async || {
        let stats = fixture.outbox.stats().await.unwrap();
        stats.event_types.into_iter().map(|of| (of.event_type, of.handled_here)).collect::<Vec<_>>()
    };
    let expected = ["test.transfer", "test.transfer_old", "test.transfer_older", "test.transfer_oldest"];
    assert_eq!(handled().await, expected.map(|name| (name.to_owned(), name != "test.transfer_oldest")));
    let inflight = async |n: &str| {
        let mut tx = fixture.outbox.begin().await.unwrap();
        fixture.outbox.has_inflight::<Transfer>(&mut tx, "n", n).await.unwrap()
    };
    assert!(inflight("1").await && inflight("3").await && !inflight("5").await);
    assert_eq!(fixture.outbox.process_event(ids[3]).await.unwrap(), Processed::Completed);
    assert!(matches!(fixture.outbox.process_event(foreign).await, Err(RunError::NoHandler { .. })));
    assert_eq!(fixture.batch(10).await.completed, 3);
    let mut numbers = fixture.script.numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert!(!inflight("3").await);
    let worker = fixture.outbox.worker().expect_handlers(["test.transfer_old"]).spawn().await.unwrap();
    let kinds = fixture.outbox.stats().await.unwrap().workers.pop().unwrap().kinds;
    let kinds: serde_json::Value = serde_json::from_str(&kinds).unwrap();
    let kind = |name: &str| serde_json::json!({ "type": name, "version": 4 });
    assert_eq!(kinds, serde_json::json!([kind(expected[0]), kind(expected[1]), kind(expected[2])]));
    worker.stop().await.unwrap();
}

pub async fn r_all_names_share_one_limit<DB: Harness>() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let script = {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        Script::new(move |_, _| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(1)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
        })
    };
    let fixture = fixture::<DB>(script).await;
    for n in 0..60 {
        fixture.enqueue(Transfer { n }).await;
    }
    fixture.sql("UPDATE outbox_event SET event_type = 'test.transfer_old' WHERE seq % 3 = 1").await;
    fixture.sql("UPDATE outbox_event SET event_type = 'test.transfer_older' WHERE seq % 3 = 2").await;
    let worker = fixture.outbox.worker().spawn().await.unwrap();
    eventually("all have run", async || fixture.script.runs().len() == 60).await;
    assert_eq!(worker.stop().await.unwrap().completed, 60);
    assert_eq!(most.load(Ordering::SeqCst), 2, "as many as the handler allows, and no more");
}

pub async fn r_a_name_has_one_handler<DB: Harness>() {
    let fixture = fixture::<DB>(Script::succeed()).await;
    let message = async |outbox: Outbox<DB>| outbox.worker().spawn().await.map(drop).unwrap_err().to_string();
    let both = Registry::empty().with(handler!(transfer)).with(handler!(rival));
    let error = message(fixture.outbox.clone().registry(both)).await;
    assert!(error.contains("`test.transfer_old`"), "{error}");
    assert!(error.contains("payloads::transfer` at ") && error.contains("payloads::rival` at "), "{error}");
    assert_eq!(error.matches("payloads.rs:").count(), 2, "{error}");
    assert_eq!(error.matches(", by an alias").count(), 2, "{error}");
}
