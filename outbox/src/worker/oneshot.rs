//! One-shot calls, for cron, serverless and "right after commit": a worker's life in small.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::abandon::EndsWithCall;
use super::poll::{self, Look};
use super::session::{Finished, Session, Setup};
use super::{Counts, Options, RunError, heartbeat, preflight, reap, settle};
use crate::backend::Backend;
use crate::backend::data::{Claimed, Status};
use crate::event::EventId;
use crate::handle::Outbox;
use crate::store::run;

/// How much one call of [`Outbox::process_batch`] does.
///
/// ```
/// use std::time::Duration;
/// let options = outbox::BatchOptions::new().batch_size(100).max_runtime(Duration::from_secs(300));
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct BatchOptions {
    batch_size: usize,
    max_runtime: Option<Duration>,
    min_remaining: Option<Duration>,
}

impl BatchOptions {
    /// Ten events, no time limit.
    pub fn new() -> Self {
        Self { batch_size: 10, max_runtime: None, min_remaining: None }
    }

    /// How many events at most; 0 only reaps.
    pub fn batch_size(mut self, events: usize) -> Self {
        self.batch_size = events;
        self
    }

    /// How long the call may take. Nothing is claimed that might not end in time.
    pub fn max_runtime(mut self, limit: Duration) -> Self {
        self.max_runtime = Some(limit);
        self
    }

    /// How much of `max_runtime` must be left for another claim: by default the longest timeout of the registered
    /// handlers plus 5 s.
    pub fn min_remaining(mut self, time: Duration) -> Self {
        self.min_remaining = Some(time);
        self
    }
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// What [`Outbox::process_event`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Processed {
    /// The handler succeeded.
    Completed,
    /// The handler failed; the event will be tried again.
    Retried,
    /// The handler took too long; the event will be tried again.
    TimedOut,
    /// The event became a dead letter.
    DeadLettered,
    /// The handler asked to run later.
    Snoozed,
    /// The lease was lost while the handler ran; its outcome was not written.
    LeaseLost,
    /// The event was given back: its earlier run has not ended, or its type rests.
    Released,
    /// The event is due later; nothing was done.
    NotDue,
    /// Somebody else has the row locked; nothing was done, and nothing waited.
    Locked,
    /// A worker has the event; nothing was done.
    Processing,
    /// Another event of its ordering key comes first; nothing was done.
    Blocked,
    /// The event is over; nothing was done.
    Finished(Status),
    /// There is no such event, or its transaction has not committed.
    NotFound,
}

impl<DB: Backend> Outbox<DB> {
    /// Reaps, then claims and runs due events until the batch, the time or the queue ends.
    ///
    /// # Errors
    /// [`RunError`]; before any statement where the options or the handlers are wrong.
    pub async fn process_batch(&self, options: BatchOptions) -> Result<Counts, RunError> {
        let worker = preflight(self, Options::for_one_shot(&self.registry))?;
        let deadline = Deadline::new(options, worker.longest_timeout(&self.registry))?;
        let one = OneShot::open(self, worker).await?;
        let ran = one.batch(options.batch_size, deadline).await;
        let counts = one.close().await;
        ran.map(|()| counts)
    }

    /// Runs one event now, if it is due and nobody has it.
    ///
    /// # Errors
    /// [`RunError::NoHandler`] for a type, or a version, that no handler here takes; the row is untouched.
    pub async fn process_event(&self, id: EventId) -> Result<Processed, RunError> {
        let worker = preflight(self, Options::for_one_shot(&self.registry))?;
        // Looked at first: most answers need no worker.
        if let Some(answer) = self.look_at(id).await? {
            return Ok(answer);
        }
        let one = OneShot::open(self, worker).await?;
        let ran = one.event(id).await;
        let counts = one.close().await;
        if ran? {
            return Ok(processed(counts));
        }
        // Somebody was faster.
        Ok(self.look_at(id).await?.unwrap_or(Processed::Locked))
    }

    /// What stands against running an event; `None`: nothing, it is due.
    async fn look_at(&self, id: EventId) -> Result<Option<Processed>, RunError> {
        let Some(record) = run!(self.store, |at| DB::get(at, &id.to_string()))? else {
            return Ok(Some(Processed::NotFound));
        };
        match record.status {
            Status::Processing => return Ok(Some(Processed::Processing)),
            Status::Completed | Status::DeadLetter => return Ok(Some(Processed::Finished(record.status))),
            Status::Pending => {}
        }
        let handler = self.registry.handler_of(&record.event_type);
        if handler.is_none_or(|def| def.version < record.event_version) {
            return Err(RunError::NoHandler { event_type: record.event_type, version: record.event_version });
        }
        if record.is_blocked {
            return Ok(Some(Processed::Blocked));
        }
        Ok((!record.is_due).then_some(Processed::NotDue))
    }
}

/// The one count that is not zero says what became of the one event.
fn processed(counts: Counts) -> Processed {
    match counts {
        Counts { completed: 1.., .. } => Processed::Completed,
        Counts { dead_lettered: 1.., .. } => Processed::DeadLettered,
        Counts { timed_out: 1.., .. } => Processed::TimedOut,
        Counts { retried: 1.., .. } => Processed::Retried,
        Counts { snoozed: 1.., .. } => Processed::Snoozed,
        Counts { released: 1.., .. } => Processed::Released,
        _ => Processed::LeaseLost,
    }
}

/// Until when new events may be claimed.
#[derive(Clone, Copy, Debug)]
struct Deadline(Option<Instant>);

impl Deadline {
    fn new(options: BatchOptions, longest_timeout: Duration) -> Result<Self, RunError> {
        const MARGIN: Duration = Duration::from_secs(5);
        let Some(max_runtime) = options.max_runtime else { return Ok(Self(None)) };
        let needed = options.min_remaining.unwrap_or(longest_timeout + MARGIN);
        let Some(spare) = max_runtime.checked_sub(needed) else {
            return Err(RunError::Option {
                option: "max_runtime",
                problem: format!(
                    "is {max_runtime:?}, and a claim needs {needed:?} to be left: no event would ever run; make it longer, \
                     or set `min_remaining`, or give the handlers shorter timeouts"
                ),
            });
        };
        Ok(Self(Some(Instant::now() + spare)))
    }

    fn is_over(self) -> bool {
        self.0.is_some_and(|until| Instant::now() > until)
    }
}

struct OneShot<DB: Backend> {
    setup: Arc<Setup<DB>>,
    session: Arc<Session<DB>>,
    settling: tokio::task::JoinHandle<()>,
    _guard: EndsWithCall<DB>,
}

impl<DB: Backend> OneShot<DB> {
    async fn open(outbox: &Outbox<DB>, options: Options) -> Result<Self, RunError> {
        crate::migrate::check(&outbox.store).await?;
        let setup = Setup::of_one_shot(outbox, options).await?;
        let (session, finished): (_, mpsc::UnboundedReceiver<Finished>) = Session::open(&setup).await?;
        let guard = EndsWithCall(Arc::clone(&session));
        heartbeat::start(&session).map_err(RunError::Thread)?;
        let settling = tokio::spawn(settle::serve(Arc::clone(&session), finished));
        Ok(Self { setup, session, settling, _guard: guard })
    }

    async fn batch(&self, batch_size: usize, deadline: Deadline) -> Result<(), RunError> {
        reap::run_once(&self.session).await?;
        let claimed = self.claim_until(batch_size, deadline).await;
        if claimed.is_err() {
            poll::recover(&self.session).await;
        }
        // Also after a claim that failed: what runs ends, and its outcome is written.
        self.finish().await;
        Ok(claimed?)
    }

    async fn claim_until(&self, batch_size: usize, deadline: Deadline) -> Result<(), sqlx::Error> {
        let mut left = batch_size;
        while left > 0 && !deadline.is_over() && !self.session.over.is_cancelled() {
            // Asked before the claim: what ends meanwhile may have enqueued what comes next, or held back a suspect.
            let busy = self.session.hands().len() > 0;
            match poll::claim_once(&self.session, true, left).await? {
                Some(Look { came: came @ 1.., .. }) => left -= came,
                _ if busy => self.session.wait_for_progress().await,
                // Nothing more where the last claim ended; the call ends only after a look at everything.
                Some(Look { swept: false, .. }) => self.session.hands().sweep_next(),
                _ => break,
            }
        }
        Ok(())
    }

    async fn event(&self, id: EventId) -> Result<bool, RunError> {
        let claimed = match self.claim_event(id).await {
            Ok(claimed) => claimed,
            Err(error) => {
                poll::recover(&self.session).await;
                return Err(error.into());
            }
        };
        let found = claimed.is_some();
        self.session.take_in(claimed.into_iter().collect());
        self.finish().await;
        Ok(found)
    }

    async fn claim_event(&self, id: EventId) -> Result<Option<Claimed>, sqlx::Error> {
        let claims = &self.setup.claims;
        run!(claims, |at| DB::claim_event(at, &id.to_string(), &self.session.worker))
    }

    /// Every handler keeps its own timeout, and a lost lease ends the rest.
    async fn finish(&self) {
        tokio::select! {
            _ = self.session.wait_until(Duration::MAX, |hands| hands.len() == 0) => {}
            () = self.session.over.cancelled() => {
                self.session.wait_until(Duration::from_secs(1), |hands| hands.len() == 0).await;
            }
        }
    }

    async fn close(self) -> Counts {
        self.session.close().await;
        // It ends with the session, and has nothing left to write.
        if let Err(error) = self.settling.await {
            tracing::error!(name: "outbox.settle", %error, "the settle service failed");
        }
        self.setup.tally.counts()
    }
}
