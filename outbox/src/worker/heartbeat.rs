//! The heartbeat: one row for each worker, renewed from a thread and a connection of its own, so that neither a
//! handler that blocks its thread nor a drained pool can stop it.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sqlx::Pool;

use super::session::Session;
use crate::backend::Backend;

/// Renews the lease until the session closes; loses it for the session when it cannot.
pub(super) fn start<DB: Backend>(session: &Arc<Session<DB>>) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let session = Arc::clone(session);
    std::thread::Builder::new()
        .name("outbox-heartbeat".to_owned())
        .spawn(move || runtime.block_on(serve(&session)))
}

async fn serve<DB: Backend>(session: &Session<DB>) {
    let lease = session.setup.options.lease;
    let interval = lease / 6;
    // Handlers must be gone before the reaper of another worker may give their events away.
    let limit = lease - lease / 10;
    let mut renewed = session.registered;
    let mut pool = None;
    let mut wait = interval;
    loop {
        let left = limit.saturating_sub(renewed.elapsed());
        tokio::select! {
            () = session.closed.cancelled() => break,
            () = tokio::time::sleep(wait.min(left)) => {}
        }
        let sent = Instant::now();
        let open = pool.get_or_insert_with(|| session.setup.heartbeat.open());
        match tokio::time::timeout(interval, beat(session, open)).await {
            Ok(Ok(Some(lost))) => {
                renewed = sent;
                wait = interval;
                session.lose_some(&lost);
            }
            Ok(Ok(None)) => {
                session.lose("this worker was declared dead: its heartbeat came too late");
                break;
            }
            Ok(Err(error)) => {
                tracing::warn!(name: "outbox.heartbeat", %error, "the heartbeat failed");
                wait = pause(interval);
            }
            Err(_) => {
                tracing::warn!(name: "outbox.heartbeat", "the heartbeat has no answer");
                // Its connection is left to whatever it waits for.
                pool = None;
                wait = pause(interval);
            }
        }
        if renewed.elapsed() >= limit {
            session.lose("this worker could not renew its heartbeat");
            break;
        }
    }
    if let Some(pool) = pool
        && !session.setup.heartbeat.is_shared()
    {
        pool.close().await;
    }
}

fn pause(interval: Duration) -> Duration {
    interval.min(Duration::from_secs(1)).mul_f64(0.5 + 0.5 * fastrand::f64())
}

/// The leases, (seq, fence), that are lost; `None` where all are.
async fn beat<DB: Backend>(
    session: &Session<DB>,
    pool: &Pool<DB>,
) -> Result<Option<Vec<(i64, i64)>>, sqlx::Error> {
    let in_hand = session.hands().held();
    let store = &session.setup.store;
    let mut held = store.hold(pool).await?;
    let lost = DB::heartbeat(store.at(held.connection()), &session.worker, &in_hand).await?;
    held.done().await?;
    // By the time of the answer an event may have ended and be in hand again under a newer fence.
    Ok(lost.map(|seqs| in_hand.into_iter().filter(|(seq, _)| seqs.contains(seq)).collect()))
}
