//! Handlers with a transaction: it is lent before they run, and their event completes in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::Transaction;

use super::session::Session;
use crate::Tx;
use crate::backend::data::Status;
use crate::backend::{At, Backend};
use crate::handler::Home;
use crate::store::run;
use crate::transition::{Lease, Outcome, Policy, transition};

/// How long an event waits whose transaction could not begin.
const BEGIN_PAUSE: Duration = Duration::from_secs(1);
/// How long a row that somebody else has locked is waited for at a time, and in all.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);
const LOCKED_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a rollback may take; a statement of a handler that was dropped may still be running.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// Begins a transaction for a handler.
pub(super) async fn lend<DB: Backend>(session: &Session<DB>) -> Result<(Tx<DB>, Home<DB>), Outcome> {
    let pool = session.setup.transactions.clone();
    // A task of its own: a `begin` that is given up halfway would leave its connection unusable.
    match tokio::spawn(async move { DB::begin(&pool).await }).await {
        Ok(Ok(tx)) => Ok(Tx::lend(tx)),
        Ok(Err(error)) => {
            tracing::warn!(name: "outbox.transaction", %error, "a handler's transaction could not begin; its event goes back");
            Err(Outcome::Postponed { delay: BEGIN_PAUSE })
        }
        Err(_) => Err(Outcome::Postponed { delay: BEGIN_PAUSE }),
    }
}

/// Ends the transaction as the run ended.
pub(super) async fn conclude<DB: Backend>(
    session: &Arc<Session<DB>>,
    lease: Lease,
    policy: Policy,
    outcome: Outcome,
    home: Home<DB>,
) -> Outcome {
    let Some(mut tx) = home.take() else {
        return match outcome {
            Outcome::Completed => Outcome::Failed {
                error: "the handler has ended and its transaction has not come back: \
                        do not move `Tx` into a task or a static"
                    .to_owned(),
                directive: None,
            },
            other => other,
        };
    };
    if !matches!(outcome, Outcome::Completed) {
        roll_back(tx).await;
        return outcome;
    }
    match complete(session, lease, policy, &mut tx).await {
        Ok(true) => match tx.commit().await {
            Ok(()) => Outcome::Committed,
            Err(error) if DB::is_transient(&error) => bad_moment(),
            // Perhaps it did commit, and only the answer was lost: whoever writes the failure sees that.
            Err(error) => Outcome::CommitFailed { error: format!("the transaction did not commit: {error}") },
        },
        Ok(false) => {
            roll_back(tx).await;
            Outcome::Lost
        }
        Err(error) if DB::is_transient(&error) => {
            roll_back(tx).await;
            bad_moment()
        }
        Err(error) => {
            roll_back(tx).await;
            let error = format!("the event could not be completed in the handler's transaction: {error}");
            Outcome::Failed { error, directive: None }
        }
    }
}

/// A serialization failure or a deadlock is nobody's fault: soon again, and no attempt spent.
fn bad_moment() -> Outcome {
    Outcome::Postponed { delay: Duration::from_millis(fastrand::u64(10..100)) }
}

/// Writes the completion; `false` where the lease is lost.
async fn complete<DB: Backend>(
    session: &Session<DB>,
    lease: Lease,
    policy: Policy,
    tx: &mut Transaction<'static, DB>,
) -> Result<bool, sqlx::Error> {
    let (_, settlement) = transition(lease, Outcome::Completed, policy, 0.0);
    let settlements: Vec<_> = settlement.into_iter().collect();
    let store = &session.setup.store;
    let began = Instant::now();
    loop {
        let at: At<'_, DB> = store.at(tx);
        if !DB::settle(at, &session.worker, &settlements).await?.is_empty() {
            return Ok(true);
        }
        // Not ours any more, or only locked by somebody; asked elsewhere, since this transaction may have a snapshot.
        // Where nobody else writes meanwhile it has none that is old, and may hold the only connection.
        let found = if DB::WRITES_ALONE {
            DB::reread(store.at(tx), &[lease.seq]).await?
        } else {
            run!(store, |at| DB::reread(at, &[lease.seq]))?
        };
        let still_ours = found.iter().any(|row| {
            row.fence == lease.fence
                && row.status == Status::Processing
                && row.owner.as_deref() == Some(session.worker.as_str())
        });
        if !still_ours || session.over.is_cancelled() {
            return Ok(false);
        }
        if began.elapsed() > LOCKED_TIMEOUT {
            return Err(sqlx::Error::Protocol("its row is locked by another transaction".to_owned()));
        }
        tokio::time::sleep(LOCKED_PAUSE).await;
    }
}

async fn roll_back<DB: Backend>(tx: Transaction<'static, DB>) {
    // A failure leaves a connection that the pool does not keep; the server rolls back when it is gone.
    if !matches!(tokio::time::timeout(ROLLBACK_TIMEOUT, tx.rollback()).await, Ok(Ok(()))) {
        tracing::debug!(name: "outbox.transaction", "a rollback had no answer");
    }
}
