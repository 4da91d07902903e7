//! The real outbox under a schedule: each step is done to it and to the reference, and then they are compared.
//!
//! Nothing is left to chance: a claim is a one-shot call that asks for as many events as the reference says there are,
//! and whose handlers wait until the schedule ends them; a step is over when what it does has been written.

use std::time::{Duration, SystemTime};

use outbox::{AdminError, Clock, EnqueueError, EventId, Outbox, Receipt, Status};

use crate::calls::Call;
use crate::database::{Database, Row, Store, stored};
use crate::handlers::{Gates, Hasty, Job};
use crate::reference::{Answer, Reference};
use crate::schedule::{Ending, Kind, New, Step};

/// What the outbox did otherwise than the reference.
pub type Checked<T = ()> = Result<T, String>;

pub struct World<DB: Database> {
    pub outbox: Outbox<DB>,
    pub reference: Reference,
    /// The events of the reference.
    pub ids: Vec<EventId>,
    /// The workers of the reference, by the names that they gave themselves: of those that got something.
    pub workers: Vec<Option<String>>,
    /// What is under way, also of workers that have crashed.
    pub calls: Vec<Call>,
    clock: Clock,
}

/// For how many handlers with a transaction a worker has connections, where several can write.
const TRANSFERS_AT_ONCE: usize = 8;

/// Where the clock of every schedule begins.
const START_MS: i64 = 1_800_000_000_000;

impl<DB: Database> World<DB> {
    pub async fn new(store: &Store<DB>) -> Self {
        store.empty().await;
        let clock = Clock::fixed(SystemTime::UNIX_EPOCH + duration(START_MS));
        Self {
            // Its own calls run nothing; each that does gets gates of its own.
            outbox: store.outbox.clone().clock(clock.clone()).state(Gates::new().0),
            clock,
            reference: Reference::new(START_MS, if DB::WRITES_ALONE { 1 } else { TRANSFERS_AT_ONCE }),
            ids: Vec::new(),
            workers: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// Runs the schedule, and then everything to its end.
    pub async fn run(mut self, schedule: &[Step]) -> Checked {
        for (number, step) in schedule.iter().enumerate() {
            self.step(step).await.map_err(|difference| format!("step {number}, {step:?}: {difference}"))?;
        }
        self.drain().await.map_err(|difference| format!("at the end: {difference}"))
    }

    async fn step(&mut self, step: &Step) -> Checked {
        match *step {
            Step::Enqueue { new, commits } => self.enqueue(new, commits).await,
            Step::Claim { slot, up_to } => self.claim(slot, up_to).await,
            Step::ClaimOne { slot, event } => self.claim_one(slot, event).await,
            Step::End { run, ending } => self.end(run, ending).await,
            Step::Crash { slot } => self.crash(slot),
            Step::Advance { ms } => self.advance(ms).await,
            Step::Reap => self.reap().await,
            Step::Requeue { event } => self.requeue(event).await,
            Step::Discard { event } => self.discard(event).await,
            Step::Prune { status, older_than_ms } => self.prune(status, older_than_ms).await,
        }?;
        self.compare().await
    }

    async fn enqueue(&mut self, new: New, commits: bool) -> Checked {
        let receipt = self.insert(new, commits).await.map_err(|error| error.to_string())?;
        if !commits {
            return Ok(());
        }
        let answer = match receipt {
            Receipt::Duplicate { id, status } => Answer::Duplicate(self.place(id)?, status),
            _ => {
                self.ids.push(receipt.id());
                Answer::Enqueued(self.ids.len() - 1)
            }
        };
        same("the receipt", self.reference.enqueue(new), answer)
    }

    async fn insert(&self, new: New, commits: bool) -> Result<Receipt, EnqueueError> {
        let mut tx = self.outbox.begin().await.map_err(EnqueueError::Database)?;
        let event = self.ids.len();
        let mut enqueue = match new.kind {
            Kind::Job => self.outbox.enqueue::<Job>(&mut tx, Job(event)),
            Kind::Hasty => self.outbox.enqueue::<Hasty>(&mut tx, Hasty(event)),
            Kind::Transfer => self.outbox.enqueue::<DB::Transfer>(&mut tx, DB::transfer(event)),
        };
        if let Some(key) = new.key {
            enqueue = enqueue.ordering_key(format!("key {key}"));
        }
        if let Some(key) = new.dedup {
            enqueue = enqueue.dedup_key(format!("dedup {key}"));
        }
        let enqueue = enqueue.on_dead_letter(new.on_dead_letter()).max_attempts(new.max_attempts);
        let receipt = enqueue.delay(duration(new.delay_ms)).await?;
        let ended = if commits { tx.commit().await } else { tx.rollback().await };
        ended.map_err(EnqueueError::Database)?;
        Ok(receipt)
    }

    fn place(&self, id: EventId) -> Checked<usize> {
        self.ids.iter().position(|known| *known == id).ok_or_else(|| format!("nobody knows event {id}"))
    }

    async fn requeue(&mut self, event: usize) -> Checked {
        let dead = self.reference.dead_letters();
        let chosen = event.checked_rem(dead.len()).map(|number| dead[number]);
        let Some(event) = chosen.or_else(|| self.known(event)) else { return Ok(()) };
        let (state, done) = (self.state(event), self.reference.requeue(event));
        let answer = self.outbox.requeue(self.ids[event]).await;
        same("requeue", if done { Ok(()) } else { Err(state) }, answer.map_err(refusal))
    }

    async fn discard(&mut self, event: usize) -> Checked {
        let Some(event) = self.known(event) else { return Ok(()) };
        let (state, done) = (self.state(event), self.reference.discard(event));
        let answer = self.outbox.discard(self.ids[event]).await;
        same("discard", if done { Ok(()) } else { Err(state) }, answer.map_err(refusal))
    }

    async fn prune(&mut self, status: Status, older_than_ms: i64) -> Checked {
        let answer = self.outbox.prune(status, duration(older_than_ms)).await;
        same("prune", Ok(self.reference.prune(status, older_than_ms)), answer.map_err(refusal))
    }

    pub fn known(&self, event: usize) -> Option<usize> {
        event.checked_rem(self.ids.len())
    }

    /// What a refusal names; `None`: there is no such event.
    fn state(&self, event: usize) -> Option<Status> {
        Some(&self.reference.events()[event]).filter(|event| event.stored).map(|event| event.status)
    }

    /// Time passes, and the living renew: their own threads do that by the real time, which hardly passes here.
    async fn advance(&mut self, ms: i64) -> Checked {
        self.clock.advance(duration(ms));
        self.reference.advance(ms);
        let lives = |call: &&Call| self.reference.renews(call.worker);
        let names: Vec<String> = (self.calls.iter().filter(lives))
            .filter_map(|call| self.workers[call.worker].as_ref())
            .map(|name| format!("'{name}'"))
            .collect();
        if !names.is_empty() {
            let (now, names) = (DB::time(self.reference.now()), names.join(", "));
            let renew = format!(
                "UPDATE outbox_worker SET heartbeat_at = {now} WHERE stopped_at IS NULL AND id IN ({names})"
            );
            DB::run(self.outbox.pool(), renew).await;
        }
        Ok(())
    }

    /// Whatever has happened: once time passes and somebody works, everything comes to its end. Then those that were
    /// declared dead come back, and change nothing.
    async fn drain(&mut self) -> Checked {
        const ROUNDS: usize = 40;
        for _ in 0..ROUNDS {
            while let Some(call) = self.calls.iter().position(|call| self.reference.renews(call.worker)) {
                self.end_one(call, 0, Ending::Succeed).await?;
            }
            if self.reference.check_end().is_ok() {
                break;
            }
            self.advance(61_000).await?;
            self.claim(0, 64).await?;
            self.compare().await?;
        }
        self.reference.check_end()?;
        while !self.calls.is_empty() {
            self.end_one(0, 0, Ending::Fail).await?;
        }
        self.compare().await
    }

    /// Everything that is stored is as the reference says.
    async fn compare(&self) -> Checked {
        self.reference.check()?;
        let found = stored(self.outbox.pool()).await;
        let events = self.reference.events().iter().zip(&self.ids);
        let expected: Vec<Row> = events
            .clone()
            .filter(|(event, _)| event.stored)
            .map(|(event, id)| Row {
                id: id.to_string(),
                status: event.status,
                attempts: event.attempts,
                crashes: event.crashes,
                fence: event.fence,
                due: event.due,
                processed_at: event.processed_at,
                owner: event.owner.and_then(|owner| self.workers[owner].clone()),
                last_error: event.last_error.clone(),
            })
            .collect();
        same("the number of rows", expected.len(), found.rows.len())?;
        for (expected, found) in expected.into_iter().zip(found.rows) {
            same("a row", expected, found)?;
        }
        let applied = events.enumerate().filter(|(_, (event, _))| event.applied > 0).map(|(place, _)| place);
        same("what handlers have written", applied.collect::<Vec<_>>(), found.applied)
    }
}

impl<DB: Database> Drop for World<DB> {
    fn drop(&mut self) {
        // After a failure: none of them may claim from the next schedule.
        self.calls.iter().for_each(|call| call.task.abort());
    }
}

pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, found: T) -> Checked {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what} differs\n  expected {expected:?}\n  found    {found:?}"))
}

/// The state that a refusal names.
fn refusal(error: AdminError) -> Option<Status> {
    match error {
        AdminError::NotThatStatus { status, .. } => Some(status),
        AdminError::NotFound(_) => None,
        other => panic!("{other}"),
    }
}

fn duration(ms: i64) -> Duration {
    Duration::from_millis(ms.unsigned_abs())
}
