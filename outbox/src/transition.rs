//! PURE: a claimed event and what its run came to → what is written, and how it counts.

use std::time::Duration;

use crate::backend::data::{Settlement, Status, WriteError, duration_ms};
use crate::handler::{Directive, MAX_ERROR_BYTES, scrub};
use crate::retry::Backoff;

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The handler returned `Ok`.
    Completed,
    /// The handler returned an error, or panicked; with what the error asks for.
    Failed { error: String, directive: Option<Directive> },
    /// The payload does not decode.
    Undecodable { error: String },
    /// The run took longer than its timeout, and its future is gone.
    TimedOut { after: Duration },
    /// Completed, in a transaction that has committed.
    Committed,
    /// The transaction in which it was to complete did not commit, or did and nobody said so.
    CommitFailed { error: String },
    /// Not run, or dropped at shutdown: given back as it was.
    Released,
    /// Given back, to be looked at again after a while, and not counted.
    Postponed { delay: Duration },
    /// The lease was lost: nothing is written.
    Lost,
}

/// How a settled event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Completed,
    Retried,
    DeadLettered,
    Snoozed,
    Released,
    LeaseLost,
}

/// What of a claimed event the decision needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lease {
    pub(crate) seq: i64,
    pub(crate) fence: i64,
    pub(crate) attempts: u32,
    pub(crate) max_attempts: u32,
}

/// What the worker has decided beforehand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) backoff: Backoff,
    /// Completed rows are deleted.
    pub(crate) delete_completed: bool,
}

/// Decides. `random` in 0..1 is for the backoff's jitter. `None`: nothing is to be written.
pub(crate) fn transition(
    lease: Lease,
    outcome: Outcome,
    policy: Policy,
    random: f64,
) -> (Verdict, Option<Settlement>) {
    let (verdict, write) = match outcome {
        Outcome::Lost => return (Verdict::LeaseLost, None),
        Outcome::Committed => return (Verdict::Completed, None),
        Outcome::Completed => (Verdict::Completed, Write::completed(WriteError::Clear)),
        Outcome::Failed { error, directive } => failed(lease, &error, directive, policy.backoff, random),
        Outcome::Undecodable { error } => (Verdict::DeadLettered, Write::dead_letter(&error)),
        Outcome::TimedOut { after } => {
            failed(lease, &format!("timed out after {}", seconds(after)), None, policy.backoff, random)
        }
        Outcome::CommitFailed { error } => failed(lease, &error, None, policy.backoff, random),
        Outcome::Released => (Verdict::Released, Write::given_back(None)),
        Outcome::Postponed { delay } => (Verdict::Released, Write::given_back(Some(delay))),
    };
    let settlement = Settlement {
        seq: lease.seq,
        fence: lease.fence,
        status: write.status,
        attempts: lease.attempts.saturating_add(u32::from(write.spends)),
        delay_ms: write.delay.map(duration_ms),
        error: write.error,
        delete: write.status == Status::Completed && policy.delete_completed,
    };
    (verdict, Some(settlement))
}

fn failed(
    lease: Lease,
    error: &str,
    directive: Option<Directive>,
    backoff: Backoff,
    random: f64,
) -> (Verdict, Write) {
    let failures = lease.attempts.saturating_add(1);
    let at_least = match directive {
        Some(Directive::Snooze(delay)) => return (Verdict::Snoozed, Write::given_back(Some(delay))),
        Some(Directive::Discard) => {
            return (Verdict::Completed, Write::completed(WriteError::Set(kept(error))));
        }
        Some(Directive::Permanent) => return (Verdict::DeadLettered, Write::dead_letter(error)),
        Some(Directive::RetryAfter(delay)) => delay,
        None => Duration::ZERO,
    };
    if failures >= lease.max_attempts {
        return (Verdict::DeadLettered, Write::dead_letter(error));
    }
    let delay = backoff.delay(failures, random).max(at_least);
    let error = WriteError::Set(kept(error));
    (Verdict::Retried, Write { status: Status::Pending, spends: true, delay: Some(delay), error })
}

/// The part of a settlement that the outcome decides.
struct Write {
    status: Status,
    spends: bool,
    delay: Option<Duration>,
    error: WriteError,
}

impl Write {
    fn completed(error: WriteError) -> Self {
        Self { status: Status::Completed, spends: false, delay: None, error }
    }

    fn dead_letter(error: &str) -> Self {
        Self { status: Status::DeadLetter, spends: true, delay: None, error: WriteError::Set(kept(error)) }
    }

    fn given_back(delay: Option<Duration>) -> Self {
        Self { status: Status::Pending, spends: false, delay, error: WriteError::Keep }
    }
}

fn kept(error: &str) -> String {
    let text = scrub(error);
    debug_assert!(text.len() <= MAX_ERROR_BYTES, "scrub cuts");
    text.into_owned()
}

/// `90s`, or `1.5s`.
fn seconds(duration: Duration) -> String {
    format!("{}s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Lease = Lease { seq: 7, fence: 3, attempts: 0, max_attempts: 3 };
    const POLICY: Policy = Policy { backoff: Backoff::DEFAULT, delete_completed: false };

    fn decide(lease: Lease, outcome: Outcome) -> (Verdict, Settlement) {
        let (verdict, settlement) = transition(lease, outcome, POLICY, 0.0);
        (verdict, settlement.expect("something is written"))
    }

    fn failure(directive: Option<Directive>) -> Outcome {
        Outcome::Failed { error: "no".to_owned(), directive }
    }

    #[test]
    fn success_spends_no_attempt_and_clears_the_error() {
        let (verdict, written) = decide(LEASE, Outcome::Completed);
        assert_eq!(verdict, Verdict::Completed);
        assert_eq!(
            (written.status, written.attempts, written.error),
            (Status::Completed, 0, WriteError::Clear)
        );
        // Even where an edit by hand has left more attempts than there are.
        let (verdict, _) = decide(Lease { attempts: 9, ..LEASE }, Outcome::Completed);
        assert_eq!(verdict, Verdict::Completed);
    }

    #[test]
    fn a_failure_waits_and_the_last_one_is_a_dead_letter() {
        for (attempts, delay) in [(0, Some(2000)), (1, Some(4000)), (2, None), (9, None)] {
            let (verdict, written) = decide(Lease { attempts, ..LEASE }, failure(None));
            assert_eq!(written.attempts, attempts + 1);
            assert_eq!(written.delay_ms, delay, "after {attempts} attempts");
            let dead = verdict == Verdict::DeadLettered && written.status == Status::DeadLetter;
            assert_eq!(dead, delay.is_none());
            assert_eq!(written.error, WriteError::Set("no".to_owned()));
        }
    }

    #[test]
    fn directives_decide() {
        let minute = Duration::from_secs(60);
        let (verdict, written) = decide(LEASE, failure(Some(Directive::Permanent)));
        assert_eq!(
            (verdict, written.status, written.attempts),
            (Verdict::DeadLettered, Status::DeadLetter, 1)
        );
        let (_, written) = decide(LEASE, failure(Some(Directive::RetryAfter(minute))));
        assert_eq!((written.delay_ms, written.attempts), (Some(60_000), 1));
        let (_, written) = decide(LEASE, failure(Some(Directive::RetryAfter(Duration::ZERO))));
        assert_eq!(written.delay_ms, Some(2000), "not before the backoff");
        let (verdict, written) = decide(LEASE, failure(Some(Directive::Snooze(minute))));
        assert_eq!((verdict, written.delay_ms, written.attempts), (Verdict::Snoozed, Some(60_000), 0));
        let (verdict, written) = decide(LEASE, failure(Some(Directive::Discard)));
        assert_eq!((verdict, written.error), (Verdict::Completed, WriteError::Set("no".to_owned())));
    }

    #[test]
    fn a_timeout_is_a_failed_attempt_and_says_its_length() {
        let (verdict, written) = decide(LEASE, Outcome::TimedOut { after: Duration::from_secs(90) });
        assert_eq!((verdict, written.attempts), (Verdict::Retried, 1));
        assert_eq!(written.error, WriteError::Set("timed out after 90s".to_owned()));
    }

    #[test]
    fn what_is_given_back_stays_as_it_was() {
        let (verdict, written) = decide(LEASE, Outcome::Released);
        assert_eq!((verdict, written.status), (Verdict::Released, Status::Pending));
        assert_eq!((written.attempts, written.delay_ms, written.error), (0, None, WriteError::Keep));
        assert!(matches!(transition(LEASE, Outcome::Lost, POLICY, 0.0), (Verdict::LeaseLost, None)));
    }
}
