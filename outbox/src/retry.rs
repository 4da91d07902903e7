//! PURE: when a failed event runs again.

use std::time::Duration;

/// How long a failed event waits before its next attempt.
///
/// ```
/// use std::time::Duration;
/// use outbox::Backoff;
///
/// let backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60));
/// assert_eq!(backoff.delay(1, 0.0), Duration::from_secs(1));
/// assert_eq!(backoff.delay(3, 0.0), Duration::from_secs(4));
/// assert_eq!(backoff.delay(30, 0.0), Duration::from_secs(60));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    doubles: bool,
    jitter_percent: u8,
}

impl Backoff {
    /// The default: after failure n, 2ⁿ seconds, at most an hour: 2 s, 4 s, 8 s, … 2048 s, 3600 s. No jitter.
    pub const DEFAULT: Self = Self::exponential(Duration::from_secs(2), Duration::from_secs(3600));

    /// `first` after the first failure, twice as long after each further one, at most `max`.
    pub const fn exponential(first: Duration, max: Duration) -> Self {
        Self { first, max, doubles: true, jitter_percent: 0 }
    }

    /// The same delay after every failure.
    pub const fn fixed(delay: Duration) -> Self {
        Self { first: delay, max: delay, doubles: false, jitter_percent: 0 }
    }

    /// Lengthens each delay by a random part of it, up to this percentage, so that events that failed together do
    /// not come back together. Over 100 counts as 100.
    pub const fn jitter(mut self, percent: u8) -> Self {
        self.jitter_percent = if percent > 100 { 100 } else { percent };
        self
    }

    /// The delay after failure number `failures`, counted from 1; `random` in 0..1 chooses within the jitter.
    pub fn delay(&self, failures: u32, random: f64) -> Duration {
        let doublings = if self.doubles { failures.saturating_sub(1) } else { 0 };
        let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
        let delay = self.first.saturating_mul(factor).min(self.max);
        let share = random.clamp(0.0, 1.0) * f64::from(self.jitter_percent) / 100.0;
        let jitter = Duration::try_from_secs_f64(delay.as_secs_f64() * share).unwrap_or_default();
        delay.saturating_add(jitter)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_doubles_to_an_hour() {
        let delays: Vec<u64> = (1..=14).map(|n| Backoff::DEFAULT.delay(n, 0.5).as_secs()).collect();
        assert_eq!(delays, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600]);
    }

    #[test]
    fn delay_saturates() {
        for failures in [0, 1, 31, 32, 33, 64, u32::MAX] {
            assert!(Backoff::DEFAULT.delay(failures, 1.0) <= Duration::from_secs(3600));
        }
        let longest = Backoff::exponential(Duration::MAX, Duration::MAX).jitter(100);
        assert_eq!(longest.delay(u32::MAX, 1.0), Duration::MAX);
    }

    #[test]
    fn jitter_only_lengthens_and_is_bounded() {
        let backoff = Backoff::fixed(Duration::from_secs(10)).jitter(20);
        assert_eq!(backoff.delay(7, 0.0), Duration::from_secs(10));
        assert_eq!(backoff.delay(7, 1.0), Duration::from_secs(12));
        assert_eq!(backoff.delay(7, 99.0), Duration::from_secs(12));
    }
}
