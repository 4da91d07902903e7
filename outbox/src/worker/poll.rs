//! The poll service: claims when there is room and reason, waits when there is not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::session::Session;
use crate::backend::Backend;
use crate::backend::data::{Claim, Claimed};
use crate::nudge::{self, Nudges};
use crate::retry_pause::RetryPause;
use crate::store::run;

/// After an enqueue, looks this long after it: its transaction commits at a time we cannot know.
const SOON_MS: [u64; 5] = [1, 1, 2, 4, 8];

/// Claims until the session drains.
pub(super) async fn serve<DB: Backend>(session: Arc<Session<DB>>) {
    let interval = session.setup.options.poll_interval;
    let mut pace = Pace::new(interval);
    let mut pause = RetryPause::default();
    // Whether it is time to look at types that the last claim left empty, too.
    let mut look_again = true;
    while !session.draining.is_cancelled() && !session.over.is_cancelled() {
        session.take_back(false);
        match claim_once(&session, look_again, usize::MAX).await {
            Ok(Some(look)) => {
                pause.reset();
                pace.looked(look.came > 0);
                look_again = false;
                continue;
            }
            Ok(None) => {}
            Err(error) => {
                let wait = pause.next();
                tracing::warn!(name: "outbox.claim", %error, retry_in = ?wait, "claiming failed");
                sleep_unless_draining(&session, wait).await;
                recover(&session).await;
                look_again = true;
                continue;
            }
        }
        tokio::select! {
            () = session.draining.cancelled() => break,
            () = session.over.cancelled() => break,
            // Room was made: a claim, if a type had more than came.
            () = session.wake.notified() => {}
            () = pace.wait(), if !look_again => look_again = true,
            // There was no room to look; what waits too long in memory is to go back all the same.
            () = tokio::time::sleep(interval), if look_again => {}
        }
    }
}

/// What a claim came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// How many events came.
    pub(super) came: usize,
    /// Whether it looked at everything.
    pub(super) swept: bool,
}

/// One claim, of at most `most` events, if there is room for any and reason to look.
pub(super) async fn claim_once<DB: Backend>(
    session: &Arc<Session<DB>>,
    look_again: bool,
    most: usize,
) -> Result<Option<Look>, sqlx::Error> {
    if session.is_stalled() {
        return Ok(None);
    }
    let sent = Instant::now();
    let Some(mut request) = session.hands().request(look_again, sent) else { return Ok(None) };
    request.limit = request.limit.min(most);
    let mut claimed = {
        let claim = Claim {
            worker: &session.worker,
            kinds: &request.kinds,
            limit: request.limit,
            suspects: request.suspects,
            ended_keys: &request.ended_keys,
            keyed_looks: request.keyed_looks,
        };
        run!(session.setup.claims, |at| DB::claim(at, &claim))?
    };
    // A statement's answer promises no order.
    claimed.sort_unstable_by_key(Claimed::position);
    session.hands().note_claim(&request, &claimed, sent, Instant::now());
    let look = Look { came: claimed.len(), swept: request.sweeps };
    session.take_in(claimed);
    Ok(Some(look))
}

/// After a claim that failed: it may have been carried out all the same, and only its answer was lost. What this
/// worker holds in the table and not in hand goes back.
pub(super) async fn recover<DB: Backend>(session: &Session<DB>) {
    let in_hand: Vec<i64> = session.hands().held().into_iter().map(|(seq, _)| seq).collect();
    match run!(session.setup.claims, |at| DB::release_strays(at, &session.worker, &in_hand)) {
        Ok(0) => {}
        Ok(number) => {
            tracing::warn!(name: "outbox.strays", number, "gave back events whose claim had no answer")
        }
        // The next claim fails as well then, and this is tried again after it.
        Err(error) => tracing::debug!(name: "outbox.strays", %error, "could not look for lost claims"),
    }
}

async fn sleep_unless_draining<DB: Backend>(session: &Session<DB>, wait: Duration) {
    tokio::select! {
        () = session.draining.cancelled() => {}
        () = session.over.cancelled() => {}
        () = tokio::time::sleep(wait) => {}
    }
}

/// When to look at the database again.
struct Pace {
    interval: Duration,
    due: Instant,
    nudges: watch::Receiver<Nudges>,
    heard: Nudges,
    soon: std::slice::Iter<'static, u64>,
}

impl Pace {
    fn new(interval: Duration) -> Self {
        let nudges = nudge::listen();
        let heard = *nudges.borrow();
        Self { interval, due: Instant::now(), nudges, heard, soon: [].iter() }
    }

    /// A look was taken; what was announced may have come with it.
    fn looked(&mut self, found: bool) {
        if found {
            self.soon = [].iter();
        }
        let wait = match self.soon.next() {
            Some(ms) => Duration::from_millis(*ms),
            // Jitter: processes that started together do not poll together.
            None => self.interval.mul_f64(0.8 + 0.4 * fastrand::f64()),
        };
        self.due = Instant::now() + wait;
    }

    /// Until the next look is due.
    async fn wait(&mut self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(self.due.into()) => return,
                changed = self.nudges.changed() => {
                    if changed.is_err() {
                        // The sender is a static and never goes; the timer is enough without it.
                        return tokio::time::sleep_until(self.due.into()).await;
                    }
                }
            }
            let nudges = *self.nudges.borrow_and_update();
            let (now, soon) = (nudges.is_now_since(&self.heard), nudges.is_soon_since(&self.heard));
            self.heard = nudges;
            if now {
                return;
            }
            if soon {
                self.soon = SOON_MS.iter();
                let first = self.soon.next().map_or(Duration::ZERO, |ms| Duration::from_millis(*ms));
                self.due = self.due.min(Instant::now() + first);
            }
        }
    }
}
