//! How long a service waits after a database error: longer each time, with jitter, so that the processes of a fleet
//! do not come back together.

use std::time::Duration;

use crate::retry::Backoff;

const PAUSES: Backoff = Backoff::exponential(Duration::from_millis(50), Duration::from_secs(5)).jitter(50);

#[derive(Debug, Default)]
pub(crate) struct RetryPause {
    failures: u32,
}

impl RetryPause {
    pub(crate) fn next(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        PAUSES.delay(self.failures, fastrand::f64())
    }

    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}
