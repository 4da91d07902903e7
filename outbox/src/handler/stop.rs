//! How a run is told to end before its handler does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// Why a run is to end before its handler does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its time is over.
    TimedOut,
    /// Its lease was lost: another worker may be running the event.
    LeaseLost,
    /// The worker's grace time at shutdown is over.
    Shutdown,
}

impl Stop {
    const ALL: [Self; 3] = [Self::TimedOut, Self::LeaseLost, Self::Shutdown];
}

/// One run's stop, shared by whoever may stop it and whoever is to hear of it. Made for every event, so it is a byte and a
/// list of waiters that nearly always stays empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancellation(Arc<Cell>);

#[derive(Debug, Default)]
struct Cell {
    /// 0, or one more than the place in `Stop::ALL`.
    stop: AtomicU8,
    stopped: Notify,
}

impl Cancellation {
    pub(crate) fn stop(&self, stop: Stop) {
        self.0.stop.store(stop as u8 + 1, Ordering::Release);
        self.0.stopped.notify_waiters();
    }

    /// Why it was stopped, if it was.
    pub(crate) fn get(&self) -> Option<Stop> {
        let stop = self.0.stop.load(Ordering::Acquire).checked_sub(1)?;
        Stop::ALL.get(usize::from(stop)).copied()
    }

    /// Waits until it is stopped; for ever, if it never is.
    pub(crate) async fn stopped(&self) -> Stop {
        loop {
            // From here on no stop is missed.
            let news = self.0.stopped.notified();
            if let Some(stop) = self.get() {
                return stop;
            }
            news.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stop_is_heard_before_and_after_the_wait_begins() {
        for stop in Stop::ALL {
            let cancellation = Cancellation::default();
            assert_eq!(cancellation.get(), None);
            let waiting = tokio::spawn({
                let cancellation = cancellation.clone();
                async move { cancellation.stopped().await }
            });
            tokio::task::yield_now().await;
            cancellation.stop(stop);
            assert_eq!(waiting.await.ok(), Some(stop));
            assert_eq!((cancellation.stopped().await, cancellation.get()), (stop, Some(stop)));
        }
    }
}
