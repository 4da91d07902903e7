//! The slow rounds: deletes what has been completed for long, forgets workers that ended, and speaks up for events
//! that nobody handles.

use std::time::Duration;

use super::Retention;
use super::session::Session;
use crate::admin::{self, PAGE};
use crate::backend::Backend;
use crate::backend::data::{Status, TypeStats, duration_ms};
use crate::store::run;

/// One round.
pub(super) async fn run_once<DB: Backend>(session: &Session<DB>) -> Result<(), sqlx::Error> {
    if let Retention::Keep(age) = session.setup.options.retention {
        prune_completed(session, age).await?;
    }
    run!(session.setup.store, |at| DB::prune_workers(at))?;
    report_unhandled(session).await
}

async fn prune_completed<DB: Backend>(session: &Session<DB>, age: Duration) -> Result<(), sqlx::Error> {
    let draining = || session.draining.is_cancelled();
    let pruned = admin::prune(&session.setup.store, Status::Completed, age, draining).await?;
    if pruned > 0 {
        tracing::debug!(name: "outbox.pruned", pruned, "deleted completed events");
    }
    Ok(())
}

async fn report_unhandled<DB: Backend>(session: &Session<DB>) -> Result<(), sqlx::Error> {
    let stats = match session.setup.outbox.through(&session.setup.store).stats().await {
        Ok(stats) => stats,
        Err(crate::AdminError::Database(error)) => return Err(error),
        Err(error) => return Err(sqlx::Error::Protocol(error.to_string())),
    };
    for of in stats.event_types.iter().filter(|of| of.due > 0 && !of.handled_here) {
        report_one(of);
        if of.live_workers == 0
            && let Some(after) = session.setup.options.unknown_after
        {
            bury(session, &of.event_type, after).await?;
        }
    }
    Ok(())
}

fn report_one(of: &TypeStats) {
    let (event_type, due, oldest) = (&of.event_type, of.due, of.oldest_due_age.unwrap_or_default());
    if of.live_workers > 0 {
        tracing::info!(name: "outbox.unhandled_here", event_type, due, live_workers = of.live_workers, "events wait that no handler here takes; other workers do");
    } else {
        tracing::warn!(
            name: "outbox.unhandled", event_type, due, ?oldest,
            "events wait that no live worker has a handler for; if it lives in a crate that nothing else refers to, \
             name it once in the program: `use that_crate as _;`"
        );
    }
}

async fn bury<DB: Backend>(
    session: &Session<DB>,
    event_type: &str,
    after: Duration,
) -> Result<(), sqlx::Error> {
    let error = format!("no handler registered for event type '{event_type}'");
    loop {
        let after_ms = duration_ms(after);
        let buried =
            run!(session.setup.store, |at| DB::bury_unknown(at, event_type, after_ms, &error, PAGE))?;
        if buried > 0 {
            tracing::error!(name: "outbox.dead_letter", event_type, buried, "{error}");
        }
        if buried < PAGE.unsigned_abs() {
            return Ok(());
        }
    }
}
