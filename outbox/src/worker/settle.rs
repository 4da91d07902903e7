//! The settle service: writes outcomes in batches. While a write is under way the next batch gathers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::session::{Finished, Session};
use crate::backend::Backend;
use crate::backend::data::{FoundRow, Settlement, Status};
use crate::retry_pause::RetryPause;
use crate::store::run;
use crate::transition::{Outcome, Verdict, transition};

/// How many outcomes one statement writes at most.
const SETTLE_BATCH: usize = 1000;

/// How long rows that somebody else had locked wait for the next batch, when none comes by itself.
const LOCKED_PAUSE: Duration = Duration::from_millis(20);

/// How many outcomes have to wait before a second batch is written beside one that is under way: while that one waits
/// for its commit, the database has time for another; small ones would cost more than they gain.
const WORTH_A_SECOND: usize = 256;

/// Writes outcomes until the session closes.
pub(super) async fn serve<DB: Backend>(
    session: Arc<Session<DB>>,
    mut finished: mpsc::UnboundedReceiver<Finished>,
) {
    let mut gathered = Vec::with_capacity(SETTLE_BATCH);
    // Rows that somebody else had locked.
    let mut locked: Vec<Write> = Vec::new();
    let mut writing = JoinSet::new();
    loop {
        let mut is_time_for_locked = false;
        let room = SETTLE_BATCH - gathered.len();
        tokio::select! {
            biased;
            number = finished.recv_many(&mut gathered, room), if room > 0 => {
                if number == 0 {
                    break;
                }
                // Others that end at this moment come along.
                tokio::task::yield_now().await;
                while gathered.len() < SETTLE_BATCH && let Ok(another) = finished.try_recv() {
                    gathered.push(another);
                }
            }
            Some(written) = writing.join_next() => {
                match written {
                    Ok(mut left) => locked.append(&mut left),
                    // Their rows stay ours until the reaper sees them held for too long.
                    Err(error) => tracing::error!(name: "outbox.settle", %error, "outcomes are lost"),
                }
                session.wake.notify_one();
            }
            () = session.closed.cancelled() => break,
            () = tokio::time::sleep(LOCKED_PAUSE), if !locked.is_empty() => is_time_for_locked = true,
        }
        let worth = match writing.len() {
            0 => !gathered.is_empty() || is_time_for_locked,
            1 => !DB::WRITES_ALONE && gathered.len() >= WORTH_A_SECOND,
            _ => false,
        };
        if worth {
            let mut writes = decide(&session, &mut gathered);
            writes.append(&mut locked);
            writing.spawn(write_all(Arc::clone(&session), writes));
        }
    }
    // What is under way ends by itself; dropped, it would leave connections in the middle of a statement.
    writing.detach_all();
}

/// An outcome that waits to be written.
#[derive(Debug)]
struct Write {
    settlement: Settlement,
    verdict: Verdict,
    timed_out: bool,
    /// A transaction in which the event was to complete may have committed.
    in_doubt: bool,
    lane: usize,
}

fn decide<DB: Backend>(session: &Session<DB>, batch: &mut Vec<Finished>) -> Vec<Write> {
    let mut writes = Vec::with_capacity(batch.len());
    let mut ended = Vec::new();
    for Finished { lane, lease, outcome } in batch.drain(..) {
        let timed_out = matches!(outcome, Outcome::TimedOut { .. });
        let in_doubt = matches!(outcome, Outcome::CommitFailed { .. });
        let policy = session.policy(lane);
        let (verdict, settlement) = transition(lease, outcome, policy, fastrand::f64());
        match settlement {
            Some(settlement) => writes.push(Write { settlement, verdict, timed_out, in_doubt, lane }),
            None => ended.push(Ended { seq: lease.seq, fence: lease.fence, verdict, timed_out }),
        }
    }
    end(session, &ended);
    writes
}

/// An event of which nothing is to be written any more.
#[derive(Debug)]
struct Ended {
    seq: i64,
    fence: i64,
    verdict: Verdict,
    timed_out: bool,
}

impl Ended {
    fn new(write: &Write, verdict: Verdict) -> Self {
        let Settlement { seq, fence, .. } = write.settlement;
        Self { seq, fence, verdict, timed_out: write.timed_out }
    }
}

/// Counts them, and makes room for others.
fn end<DB: Backend>(session: &Session<DB>, ended: &[Ended]) {
    if ended.is_empty() {
        return;
    }
    for Ended { verdict, timed_out, .. } in ended {
        session.setup.tally.add(*verdict, *timed_out);
    }
    let mut hands = session.hands();
    for Ended { seq, fence, verdict, .. } in ended {
        hands.settled(*seq, *fence, matches!(verdict, Verdict::Completed | Verdict::DeadLettered));
    }
}

/// Writes the batch. A write that failed is never given up before the lease is lost, and what it meant is never
/// changed. What comes back is ours, and somebody else had it locked: it goes with the next batch.
async fn write_all<DB: Backend>(session: Arc<Session<DB>>, mut writes: Vec<Write>) -> Vec<Write> {
    let session = &*session;
    let mut pause = RetryPause::default();
    let mut answer_lost = false;
    loop {
        let last_try = session.over.is_cancelled() || session.closed.is_cancelled();
        match write_once(session, &mut writes, answer_lost).await {
            Ok(()) => break,
            Err(error) if last_try => {
                tracing::error!(
                    name: "outbox.settle", %error, number = writes.len(),
                    "outcomes were not written before the lease was lost; their events will run again"
                );
                let lost: Vec<_> =
                    writes.drain(..).map(|write| Ended::new(&write, Verdict::LeaseLost)).collect();
                end(session, &lost);
                break;
            }
            Err(error) => {
                if !answer_lost {
                    answer_lost = true;
                    session.stall();
                }
                let wait = pause.next();
                tracing::warn!(name: "outbox.settle", %error, number = writes.len(), retry_in = ?wait, "writing outcomes failed");
                tokio::select! {
                    () = session.over.cancelled() => {}
                    () = session.closed.cancelled() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
        }
    }
    if answer_lost {
        session.unstall();
    }
    writes
}

/// One statement for the whole batch; then those rows that it did not match are read again. What remains in
/// `writes` is still to be written.
async fn write_once<DB: Backend>(
    session: &Session<DB>,
    writes: &mut Vec<Write>,
    answer_lost: bool,
) -> Result<(), sqlx::Error> {
    let settlements: Vec<Settlement> = writes.iter().map(|write| write.settlement.clone()).collect();
    let store = &session.setup.store;
    let matched = run!(store, |at| DB::settle(at, &session.worker, &settlements))?;
    // As a rule all of them.
    let all = matched.len() == writes.len();
    let matched: HashSet<i64> = if all { HashSet::new() } else { matched.into_iter().collect() };
    take_out(session, writes, |write| {
        (all || matched.contains(&write.settlement.seq)).then_some(write.verdict)
    });
    if writes.is_empty() {
        return Ok(());
    }
    let seqs: Vec<i64> = writes.iter().map(|write| write.settlement.seq).collect();
    let found = run!(store, |at| DB::reread(at, &seqs))?;
    let found: HashMap<i64, FoundRow> = found.into_iter().map(|row| (row.seq, row)).collect();
    take_out(session, writes, |write| {
        judge(write, found.get(&write.settlement.seq), &session.worker, answer_lost)
    });
    Ok(())
}

/// Ends those of which it is decided how they count.
fn take_out<DB: Backend>(
    session: &Session<DB>,
    writes: &mut Vec<Write>,
    decided: impl Fn(&Write) -> Option<Verdict>,
) {
    let mut ended = Vec::with_capacity(writes.len());
    writes.retain(|write| {
        let verdict = decided(write);
        if let Some(verdict) = verdict {
            report(session, write, verdict);
            ended.push(Ended::new(write, verdict));
        }
        verdict.is_none()
    });
    end(session, &ended);
}

/// What a row that an outcome did not match says: `None` where it is still ours and was only locked by somebody.
fn judge(write: &Write, found: Option<&FoundRow>, worker: &str, answer_lost: bool) -> Option<Verdict> {
    let Some(row) = found else {
        // Deleted: by our own earlier write, if its answer was lost, else by somebody else.
        return Some(match write {
            Write { in_doubt: true, .. } => Verdict::Completed,
            Write { settlement, verdict, .. } if answer_lost && settlement.delete => *verdict,
            Write { .. } => Verdict::LeaseLost,
        });
    };
    if row.fence != write.settlement.fence {
        return Some(Verdict::LeaseLost);
    }
    if row.owner.as_deref() == Some(worker) && row.status == Status::Processing {
        return None;
    }
    if write.in_doubt && row.status == Status::Completed {
        return Some(Verdict::Completed);
    }
    // Nobody has claimed it since; what it is now is what our own earlier write made it, or somebody's edit.
    let ours = answer_lost && row.owner.is_none() && row.status == write.settlement.status;
    Some(if ours { write.verdict } else { Verdict::LeaseLost })
}

/// Says what became of an event, where somebody wants to know.
fn report<DB: Backend>(session: &Session<DB>, write: &Write, verdict: Verdict) {
    let handler = &session.setup.outbox.registry.handlers()[write.lane];
    let (seq, attempts, error) = (write.settlement.seq, write.settlement.attempts, &write.settlement.error);
    match verdict {
        Verdict::DeadLettered => {
            tracing::error!(name: "outbox.dead_letter", event_type = handler.event_type, seq, attempts, ?error, "dead letter");
        }
        Verdict::Retried => {
            tracing::warn!(name: "outbox.retry", event_type = handler.event_type, seq, attempts, ?error, delay_ms = write.settlement.delay_ms, "failed, will be tried again");
        }
        Verdict::LeaseLost => {
            tracing::warn!(name: "outbox.lease_lost", event_type = handler.event_type, seq, "the lease was lost while the handler ran; its outcome was not written");
        }
        Verdict::Completed | Verdict::Snoozed | Verdict::Released => {
            tracing::trace!(name: "outbox.settled", event_type = handler.event_type, seq, ?verdict);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::data::WriteError;

    fn write(status: Status, delete: bool) -> Write {
        let settlement = Settlement {
            seq: 1,
            fence: 5,
            status,
            attempts: 0,
            delay_ms: None,
            error: WriteError::Clear,
            delete,
        };
        Write { settlement, verdict: Verdict::Completed, timed_out: false, in_doubt: false, lane: 0 }
    }

    fn row(fence: i64, status: Status, owner: Option<&str>) -> FoundRow {
        FoundRow { seq: 1, fence, status, owner: owner.map(str::to_owned) }
    }

    #[test]
    fn a_success_whose_answer_was_lost_is_no_lost_lease() {
        let completed = write(Status::Completed, false);
        let found = row(5, Status::Completed, None);
        assert_eq!(judge(&completed, Some(&found), "me", true), Some(Verdict::Completed));
        assert_eq!(judge(&completed, Some(&found), "me", false), Some(Verdict::LeaseLost));
        assert_eq!(judge(&write(Status::Completed, true), None, "me", true), Some(Verdict::Completed));
        assert_eq!(judge(&write(Status::Completed, true), None, "me", false), Some(Verdict::LeaseLost));
    }

    #[test]
    fn a_transaction_that_committed_unheard_is_a_success() {
        let failure = Write { in_doubt: true, verdict: Verdict::Retried, ..write(Status::Pending, false) };
        let completed = row(5, Status::Completed, None);
        assert_eq!(judge(&failure, Some(&completed), "me", false), Some(Verdict::Completed));
        assert_eq!(judge(&failure, None, "me", false), Some(Verdict::Completed), "where it is deleted");
        let newer = row(6, Status::Completed, None);
        assert_eq!(judge(&failure, Some(&newer), "me", false), Some(Verdict::LeaseLost));
    }

    #[test]
    fn a_row_that_is_still_ours_is_written_again() {
        let found = row(5, Status::Processing, Some("me"));
        assert_eq!(judge(&write(Status::Completed, false), Some(&found), "me", false), None);
    }

    #[test]
    fn a_row_of_somebody_else_is_a_lost_lease() {
        let completed = write(Status::Completed, false);
        for found in [row(6, Status::Processing, Some("me")), row(5, Status::Processing, Some("other"))] {
            assert_eq!(judge(&completed, Some(&found), "me", true), Some(Verdict::LeaseLost));
        }
        assert_eq!(
            judge(&completed, Some(&row(5, Status::Pending, None)), "me", true),
            Some(Verdict::LeaseLost)
        );
    }
}
