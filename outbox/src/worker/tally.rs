//! Counting outcomes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::transition::Verdict;

/// How many events came to which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Completed.
    pub completed: u64,
    /// Failed or timed out, to be tried again.
    pub retried: u64,
    /// Became dead letters.
    pub dead_lettered: u64,
    /// Timed out. Each of these also counts as retried or as a dead letter.
    pub timed_out: u64,
    /// Asked to run later, without spending an attempt.
    pub snoozed: u64,
    /// Lost their lease: another worker has them, or somebody edited the row. Nothing was written.
    pub lease_lost: u64,
    /// Given back, unstarted or stopped at shutdown.
    pub released: u64,
    /// Freed by the reaper from workers that died or do not end.
    pub reaped: u64,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    completed: AtomicU64,
    retried: AtomicU64,
    dead_lettered: AtomicU64,
    timed_out: AtomicU64,
    snoozed: AtomicU64,
    lease_lost: AtomicU64,
    released: AtomicU64,
    reaped: AtomicU64,
}

impl Tally {
    pub(super) fn add(&self, verdict: Verdict, timed_out: bool) {
        let counter = match verdict {
            Verdict::Completed => &self.completed,
            Verdict::Retried => &self.retried,
            Verdict::DeadLettered => &self.dead_lettered,
            Verdict::Snoozed => &self.snoozed,
            Verdict::LeaseLost => &self.lease_lost,
            Verdict::Released => &self.released,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        if timed_out && verdict != Verdict::LeaseLost {
            self.timed_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn add_reaped(&self, number: usize) {
        self.reaped.fetch_add(number as u64, Ordering::Relaxed);
    }

    pub(super) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            completed: read(&self.completed),
            retried: read(&self.retried),
            dead_lettered: read(&self.dead_lettered),
            timed_out: read(&self.timed_out),
            snoozed: read(&self.snoozed),
            lease_lost: read(&self.lease_lost),
            released: read(&self.released),
            reaped: read(&self.reaped),
        }
    }
}
