//! When a claim looks at everything again, and not only at what stands behind the last claim.
//!
//! A database with versions of rows (PostgreSQL) keeps the index entries of claimed events for as long as any open
//! transaction on the server is older than they, and every claim would read past all of them: the known death spiral of
//! such queues. So a claim begins behind the last event that came, in the order of its type. Events that appear in
//! front of it (a transaction that commits late, an event that was given back, one that was due in the past) are found
//! by a sweep: a claim from the start. It may take a small part of the time, so that it comes at nearly every look
//! while it is cheap, and seldom once it is not.

use std::time::{Duration, Instant};

/// How much time passes between sweeps, in times of what the last one took.
const TIMES: u32 = 25;
/// How long an event that appears in front may have to wait at most, besides the sweep itself.
const LONGEST: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Sweep {
    next: Option<Instant>,
}

impl Sweep {
    /// Due at once, whatever may have been there before.
    pub(super) fn due_at_once() -> Self {
        Self { next: None }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    /// A sweep ended now.
    pub(super) fn ended(&mut self, now: Instant, took: Duration) {
        self.next = Some(now + took.saturating_mul(TIMES).min(LONGEST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_as_rare_as_it_is_dear() {
        let now = Instant::now();
        let ms = Duration::from_millis;
        let mut sweep = Sweep::due_at_once();
        assert!(sweep.is_due(now));
        sweep.ended(now, ms(1));
        assert!(!sweep.is_due(now + ms(24)) && sweep.is_due(now + ms(25)));
        sweep.ended(now, ms(200));
        assert!(!sweep.is_due(now + ms(4_999)) && sweep.is_due(now + ms(5_000)));
        sweep.ended(now, ms(60_000));
        assert!(sweep.is_due(now + LONGEST), "one stall does not put it off for long");
    }
}
