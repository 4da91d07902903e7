//! Carries nudges between processes: what this one says goes to the others, what they say wakes the workers here.
//! Polling never depends on it.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::backend::Backend;
use crate::backend::signals::{Sign, Signals};
use crate::nudge::{self, Nudges};
use crate::retry_pause::RetryPause;
use crate::store::Store;

/// A burst of events is told once in this time: other processes need to know that there is something, not how often.
const DEBOUNCE: Duration = Duration::from_millis(5);
/// How often a connection that says nothing is asked whether it lives, and how long it may take to answer.
const CHECK_INTERVAL: Duration = Duration::from_secs(15);
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// Tells the workers of other processes of this one's events; made by [`Outbox::notifier`](crate::Outbox::notifier).
/// Dropping it ends it.
#[derive(Debug)]
#[must_use = "dropping it ends it"]
pub struct Notifier(JoinHandle<()>);

impl Notifier {
    pub(crate) fn start<DB: Backend>(store: Store<DB>) -> Self {
        Self(tokio::spawn(carry(store)))
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Until it is dropped. What breaks is opened again; polling goes on meanwhile.
pub(crate) async fn carry<DB: Backend>(store: Store<DB>) {
    let mut pause = RetryPause::default();
    let mut telling = Telling::new();
    loop {
        let broken = match DB::Signals::open(&store.pool, store.schema()).await {
            Ok(mut signals) => {
                pause.reset();
                // What was said while nobody listened is not said again.
                nudge::heard(Sign::Now);
                exchange(&mut signals, &mut telling).await
            }
            Err(error) => error,
        };
        let wait = pause.next();
        tracing::warn!(name: "outbox.signals", error = %broken, retry_in = ?wait, "signs between processes are interrupted; polling goes on");
        tokio::time::sleep(wait).await;
    }
}

/// Hears and tells until the connection breaks.
async fn exchange<DB: Backend>(signals: &mut impl Signals<DB>, telling: &mut Telling) -> sqlx::Error {
    let mut check = tokio::time::interval_at(Instant::now() + CHECK_INTERVAL, CHECK_INTERVAL);
    loop {
        let done = tokio::select! {
            sign = signals.next() => sign.map(nudge::heard),
            (sign, nudges) = telling.next() => signals.send(sign).await.map(|()| telling.told(nudges)),
            _ = check.tick() => match tokio::time::timeout(CHECK_TIMEOUT, signals.check()).await {
                Ok(answer) => answer,
                Err(_) => Err(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into())),
            },
        };
        if let Err(error) = done {
            return error;
        }
    }
}

/// What this process has to tell, not too often.
struct Telling {
    nudges: tokio::sync::watch::Receiver<Nudges>,
    told: Nudges,
    not_before: Instant,
}

impl Telling {
    fn new() -> Self {
        let nudges = nudge::listen();
        let told = *nudges.borrow();
        Self { nudges, told, not_before: Instant::now() }
    }

    /// Waits for something to tell: what, and up to which nudges. It may be given up halfway, and loses nothing.
    async fn next(&mut self) -> (Sign, Nudges) {
        while !self.nudges.borrow().said_more_than(&self.told) {
            if self.nudges.changed().await.is_err() {
                // The sender is a static and never goes.
                std::future::pending::<()>().await;
            }
        }
        tokio::time::sleep_until(self.not_before).await;
        let nudges = *self.nudges.borrow_and_update();
        // The later of the two is what may still have to be waited for.
        let sign = if nudges.soon == self.told.soon { Sign::Now } else { Sign::Soon };
        (sign, nudges)
    }

    /// It was told; else the next connection tells it.
    fn told(&mut self, nudges: Nudges) {
        self.told = nudges;
        self.not_before = Instant::now() + DEBOUNCE;
    }
}
