//! What can happen to an outbox, as plain data: a schedule is a list of steps, made at random and shrunk when it fails.
//!
//! Every step means something wherever it stands, if only that nothing happens: so what is left of a schedule that was
//! cut short is a schedule. Events, runs and workers are named by numbers that are taken modulo how many there are.

use outbox::{OnDeadLetter, Status};
use proptest::prelude::*;

/// A worker's place; when its worker has crashed, another starts there.
pub const SLOTS: usize = 3;

#[derive(Clone, Debug)]
pub enum Step {
    /// An event is enqueued, in a transaction that commits or rolls back.
    Enqueue {
        new: New,
        commits: bool,
    },
    /// A worker claims what it may, at most this many events. It reaps first.
    Claim {
        slot: usize,
        up_to: usize,
    },
    /// A worker claims this event, if that is possible.
    ClaimOne {
        slot: usize,
        event: usize,
    },
    /// A run ends, whether its worker is alive, or was declared dead long ago.
    End {
        run: usize,
        ending: Ending,
    },
    /// A worker stops renewing. It may have been killed; or it was only stopped, and its runs end later all the same.
    Crash {
        slot: usize,
    },
    /// Time passes; living workers renew.
    Advance {
        ms: i64,
    },
    /// Somebody reaps and claims nothing.
    Reap,
    Requeue {
        event: usize,
    },
    Discard {
        event: usize,
    },
    Prune {
        status: Status,
        older_than_ms: i64,
    },
}

/// An event to enqueue.
#[derive(Clone, Copy, Debug)]
pub struct New {
    pub kind: Kind,
    pub key: Option<u8>,
    /// Whether its dead letter blocks its key.
    pub blocks: bool,
    pub dedup: Option<u8>,
    pub delay_ms: i64,
    pub max_attempts: u32,
}

impl New {
    pub fn on_dead_letter(&self) -> OnDeadLetter {
        if self.blocks { OnDeadLetter::Block } else { OnDeadLetter::Continue }
    }
}

/// Which handler an event has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Waits until the schedule ends it.
    Job,
    /// Never ends by itself: its time limit does, at once.
    Hasty,
    /// Writes something in the transaction in which it completes.
    Transfer,
}

/// How a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Ending {
    Succeed,
    Fail,
    RetryAfter,
    Permanent,
    Snooze,
    Discard,
    TimeOut,
}

impl Ending {
    pub const RETRY_AFTER_MS: i64 = 10_000;
    pub const SNOOZE_MS: i64 = 5_000;
}

pub fn schedules() -> impl Strategy<Value = Vec<Step>> {
    // From one on, since that is as far as a failure can be shrunk.
    prop::collection::vec(steps(), 1..50)
}

fn steps() -> impl Strategy<Value = Step> {
    let slot = 0..SLOTS;
    let any = 0..8usize;
    prop_oneof![
        8 => (news(), prop::bool::weighted(0.9)).prop_map(|(new, commits)| Step::Enqueue { new, commits }),
        8 => (slot.clone(), 1..4usize).prop_map(|(slot, up_to)| Step::Claim { slot, up_to }),
        3 => (slot.clone(), any.clone()).prop_map(|(slot, event)| Step::ClaimOne { slot, event }),
        9 => (any.clone(), endings()).prop_map(|(run, ending)| Step::End { run, ending }),
        2 => slot.prop_map(|slot| Step::Crash { slot }),
        5 => times().prop_map(|ms| Step::Advance { ms }),
        1 => Just(Step::Reap),
        3 => any.clone().prop_map(|event| Step::Requeue { event }),
        1 => any.prop_map(|event| Step::Discard { event }),
        1 => (statuses(), times()).prop_map(|(status, older_than_ms)| Step::Prune { status, older_than_ms }),
    ]
}

fn news() -> impl Strategy<Value = New> {
    let kinds = prop_oneof![8 => Just(Kind::Job), 1 => Just(Kind::Hasty), 1 => Just(Kind::Transfer)];
    let key = prop_oneof![2 => Just(None), 3 => Just(Some(0)), 1 => Just(Some(1))];
    let dedup = prop_oneof![4 => Just(None), 1 => (0..2u8).prop_map(Some)];
    let delay_ms = prop_oneof![4 => Just(0), 1 => Just(3_000)];
    (kinds, key, any::<bool>(), dedup, delay_ms, 1..4u32).prop_map(
        |(kind, key, blocks, dedup, delay_ms, max_attempts)| New {
            kind,
            key,
            blocks,
            dedup,
            delay_ms,
            max_attempts,
        },
    )
}

fn endings() -> impl Strategy<Value = Ending> {
    prop_oneof![
        4 => Just(Ending::Succeed),
        4 => Just(Ending::Fail),
        1 => Just(Ending::RetryAfter),
        2 => Just(Ending::Permanent),
        1 => Just(Ending::Snooze),
        1 => Just(Ending::Discard),
    ]
}

/// A moment, the longest backoff but one, more than the lease, more than the stuck threshold.
fn times() -> impl Strategy<Value = i64> {
    prop_oneof![2 => Just(1_000), 3 => Just(4_000), 3 => Just(61_000), 1 => Just(601_000)]
}

fn statuses() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::Completed), Just(Status::DeadLetter)]
}
