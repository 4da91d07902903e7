//! The time that statements work with: the database's own, unless a test has moved it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
#[cfg(feature = "testing")]
use std::time::{Duration, SystemTime};

#[cfg(feature = "testing")]
use crate::backend::data::{duration_ms, from_ms, to_ms};

const SYSTEM: i64 = i64::MIN;

/// The clock of a handle. All clones share one time.
///
/// By default every statement takes the database's clock. A test sets a time and moves it, and need not wait:
///
/// ```
/// # #[cfg(feature = "testing")] {
/// use std::time::{Duration, SystemTime};
///
/// let clock = outbox::Clock::fixed(SystemTime::UNIX_EPOCH);
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now(), Some(SystemTime::UNIX_EPOCH + Duration::from_secs(60)));
/// # }
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "testing"), expect(unreachable_pub, reason = "exported for tests"))]
pub struct Clock(Arc<AtomicI64>);

impl Clock {
    /// The database's clock.
    pub(crate) fn database() -> Self {
        Self(Arc::new(AtomicI64::new(SYSTEM)))
    }

    /// What a statement gets: `None` is the database's own time.
    pub(crate) fn now_ms(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Acquire)).filter(|now| *now != SYSTEM)
    }
}

#[cfg(feature = "testing")]
impl Clock {
    /// A clock that stands still at this time until it is moved.
    pub fn fixed(at: SystemTime) -> Self {
        Self(Arc::new(AtomicI64::new(to_ms(at))))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(duration_ms(by), Ordering::AcqRel);
    }

    /// The time that it stands at.
    pub fn now(&self) -> Option<SystemTime> {
        self.now_ms().map(from_ms)
    }
}
