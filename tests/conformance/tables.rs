//! Where the tables are, and how they come to be there.

use std::time::Duration;

use outbox::{BatchOptions, Outbox};
use outbox_tests::harness::Fresh;

use crate::fixture::{Fixture, Harness, Job, Script, eventually};

pub async fn t_a_schema_may_have_any_name<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let schema = DB::schema("My \"Q\" 'x'");
    let tenant = fixture.outbox.clone().schema(&schema);
    tenant.migrate().await.unwrap();
    tenant.migrate().await.unwrap();
    let mut tx = tenant.begin().await.unwrap();
    let id = outbox::enqueue::<Job>(&mut tx, Job { n: 1 }).schema(&schema).await.unwrap().id();
    tenant.enqueue::<Job>(&mut tx, Job { n: 2 }).await.unwrap();
    tx.commit().await.unwrap();
    assert!(fixture.outbox.get(id).await.unwrap().is_none());
    assert_eq!(fixture.batch(10).await.completed, 0);
    assert_eq!(tenant.process_batch(BatchOptions::new()).await.unwrap().completed, 2);
    assert!(tenant.stats().await.unwrap().is_idle());
    let refused = outbox::enqueue::<Job>(&mut tenant.begin().await.unwrap(), Job { n: 1 }).schema("").await;
    assert!(matches!(refused, Err(outbox::EnqueueError::Schema(_))));
}

pub async fn t_twenty_may_migrate_at_once<DB: Harness>() {
    let Fresh { outbox, keep, .. } = DB::fresh().await;
    let migrating: Vec<_> = (0..20)
        .map(|_| {
            let outbox = outbox.clone();
            tokio::spawn(async move { outbox.migrate().await })
        })
        .collect();
    for migrated in migrating {
        migrated.await.unwrap().unwrap();
    }
    let applied = DB::count(outbox.pool(), "SELECT count(*) FROM outbox_migration").await;
    assert_eq!(
        applied,
        DB::count(outbox.pool(), "SELECT max(version) FROM outbox_migration").await,
        "each once"
    );
    assert!(outbox.stats().await.unwrap().is_idle());
    drop(keep);
}

pub async fn t_an_interrupted_migration_is_gone_on_with<DB: Harness>() {
    let Fresh { outbox, keep, .. } = DB::fresh().await;
    let migrating = {
        let outbox = outbox.clone();
        tokio::spawn(async move { outbox.migrate().await })
    };
    // Wherever that is by now, its connection is dropped with whatever it holds.
    tokio::task::yield_now().await;
    migrating.abort();
    drop(migrating.await);
    outbox.migrate().await.unwrap();
    assert!(outbox.stats().await.unwrap().is_idle());
    drop(keep);
}

pub async fn t_tenants_share_a_database_and_nothing_else<DB: Harness>() {
    let fixture = Fixture::<DB>::new(Script::succeed()).await;
    let tenants: Vec<Outbox<DB>> =
        ["Alpha", "be ta"].iter().map(|name| fixture.outbox.clone().schema(&DB::schema(name))).collect();
    let mut workers = Vec::new();
    for (tenant, number) in tenants.iter().zip([10, 20]) {
        tenant.migrate().await.unwrap();
        let mut tx = tenant.begin().await.unwrap();
        // The same keys in each.
        for n in number..number + 5 {
            let key = (n - number).to_string();
            let job = tenant.enqueue::<Job>(&mut tx, Job { n }).dedup_key(&key).ordering_key(&key);
            assert!(!job.await.unwrap().is_duplicate());
        }
        tx.commit().await.unwrap();
    }
    for tenant in &tenants {
        workers.push(tenant.worker().poll_interval(Duration::from_millis(5)).spawn().await.unwrap());
    }
    eventually("both ran theirs", async || fixture.script.runs().len() >= 10).await;
    for worker in workers {
        assert_eq!(worker.stop().await.unwrap().completed, 5);
    }
    assert_eq!(fixture.batch(10).await.completed, 0, "nothing is in the default place");
}
