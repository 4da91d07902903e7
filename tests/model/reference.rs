//! The contract as code: what each step does, and what is then true. Pure: no database, no waiting, no chance.

use std::collections::HashMap;

use outbox::{Counts, Processed, Status};

use crate::event::Event;
use crate::schedule::{Ending, Kind, New};

/// How long a one-shot call is believed to live without a heartbeat.
const LEASE_MS: i64 = 60_000;
/// How long one of its events may be held, however well it lives.
const STUCK_MS: i64 = 600_000;

/// An outbox and its workers. Events and workers are named by their place: events stand in their sequence.
#[derive(Debug)]
pub struct Reference {
    now: i64,
    events: Vec<Event>,
    workers: Vec<Worker>,
    /// How far each key has come.
    furthest: HashMap<u8, usize>,
    transfers_at_once: usize,
}

#[derive(Debug)]
struct Worker {
    renews: bool,
    renewed_at: i64,
    declared_dead: bool,
}

/// A claimed event in a worker's hands: what the worker believes, which need not be so any more.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub event: usize,
    pub worker: usize,
    pub fence: i64,
}

/// The answer to an enqueue.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Enqueued(usize),
    Duplicate(usize, Status),
}

impl Reference {
    pub fn new(now: i64, transfers_at_once: usize) -> Self {
        Self { now, events: Vec::new(), workers: Vec::new(), furthest: HashMap::new(), transfers_at_once }
    }

    pub fn now(&self) -> i64 {
        self.now
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    pub fn enqueue(&mut self, new: New) -> Answer {
        let same = |event: &Event| event.stored && event.new.kind == new.kind && event.new.dedup == new.dedup;
        if let Some(event) = new.dedup.and_then(|_| self.events.iter().position(same)) {
            return Answer::Duplicate(event, self.events[event].status);
        }
        self.events.push(Event::new(new, self.now));
        Answer::Enqueued(self.events.len() - 1)
    }

    /// Time passes, and whoever lives renews.
    pub fn advance(&mut self, ms: i64) {
        self.now += ms;
        for worker in self.workers.iter_mut().filter(|worker| worker.renews) {
            worker.renewed_at = self.now;
        }
    }

    pub fn new_worker(&mut self) -> usize {
        self.workers.push(Worker { renews: true, renewed_at: self.now, declared_dead: false });
        self.workers.len() - 1
    }

    pub fn crash(&mut self, worker: usize) {
        self.workers[worker].renews = false;
    }

    pub fn renews(&self, worker: usize) -> bool {
        self.workers[worker].renews
    }

    /// Whoever has not renewed within the lease is dead, and what the dead hold is free again. How many events were.
    pub fn reap(&mut self) -> u64 {
        for worker in &mut self.workers {
            worker.declared_dead |= worker.renewed_at + LEASE_MS <= self.now;
        }
        let (now, workers) = (self.now, &self.workers);
        let held = self.events.iter_mut().filter_map(|event| event.owner.map(|owner| (owner, event)));
        let mut reaped = 0;
        for (owner, event) in held {
            if workers[owner].declared_dead {
                event.lose_worker(now);
                reaped += 1;
            } else if event.locked_at + STUCK_MS <= now {
                event.spend("held past the stuck threshold: the handler did not end", event.due, now);
                reaped += 1;
            }
        }
        reaped
    }

    /// What a worker may claim now: the first of its key, due, and held by nobody.
    fn may_run(&self, event: usize) -> bool {
        let Event { stored, status, due, .. } = self.events[event];
        stored && status == Status::Pending && due <= self.now && !self.is_blocked(event)
    }

    /// Whether another event of its key comes first.
    fn is_blocked(&self, event: usize) -> bool {
        let key = self.events[event].new.key;
        let in_the_way = |(place, other): (usize, &Event)| {
            place != event
                && other.new.key == key
                && (other.status == Status::Processing || place < event && other.is_to_get_through())
        };
        key.is_some() && self.events.iter().enumerate().filter(|(_, other)| other.stored).any(in_the_way)
    }

    fn is_suspect(&self, event: usize) -> bool {
        self.events[event].crashes > 0
    }

    /// How many events a worker that has nothing in hand gets at least with its first claim, if it asks for this many:
    /// of those with which a worker died one, and of transfers as many as may run at once.
    pub fn claims(&self, up_to: usize) -> usize {
        let claimable = (0..self.events.len()).filter(|event| self.may_run(*event));
        let (suspects, others): (Vec<usize>, Vec<usize>) =
            claimable.partition(|event| self.is_suspect(*event));
        let is_transfer = |event: &usize| self.events[*event].new.kind == Kind::Transfer;
        let room = self.transfers_at_once - usize::from(suspects.iter().any(is_transfer));
        let (transfers, others): (Vec<usize>, Vec<usize>) = others.into_iter().partition(is_transfer);
        (others.len() + transfers.len().min(room) + suspects.len().min(1)).min(up_to)
    }

    /// A worker that asked for a number of events has claimed these: whether it may have.
    pub fn claim_batch(&mut self, worker: usize, events: &[usize]) -> Result<Vec<Run>, String> {
        self.in_due_order(events)?;
        self.claim(worker, events)
    }

    /// A worker has claimed these, which it may have chosen.
    pub fn claim(&mut self, worker: usize, events: &[usize]) -> Result<Vec<Run>, String> {
        if let Some(event) = events.iter().find(|event| !self.may_run(**event)) {
            return Err(format!("event {event} must not run now"));
        }
        if events.iter().filter(|event| self.is_suspect(**event)).count() > 1 {
            return Err(format!("of {events:?} more than one was held by a worker that died"));
        }
        self.in_sequence(events)?;
        Ok(events.iter().map(|event| self.begin(worker, *event)).collect())
    }

    /// Of one kind, with or without a key, nothing is left behind that was due before something that was taken.
    fn in_due_order(&self, events: &[usize]) -> Result<(), String> {
        let class = |event: usize| {
            let Event { new, crashes, .. } = &self.events[event];
            (new.kind as u8, new.key.is_some(), *crashes > 0)
        };
        for left in (0..self.events.len()).filter(|event| self.may_run(*event) && !events.contains(event)) {
            let place = |event: usize| (self.events[event].due, event);
            if let Some(taken) =
                events.iter().find(|taken| class(**taken) == class(left) && place(left) < place(**taken))
            {
                return Err(format!("event {taken} was claimed before {left}, which was due first"));
            }
        }
        Ok(())
    }

    /// Nothing of a key begins after something that was enqueued later, unless a person has sent it back.
    fn in_sequence(&mut self, events: &[usize]) -> Result<(), String> {
        for event in events {
            let Event { new: New { key: Some(key), .. }, requeued, .. } = self.events[*event] else {
                continue;
            };
            let furthest = self.furthest.entry(key).or_default();
            if *event < *furthest && !requeued {
                return Err(format!("event {event} of key {key} was overtaken by {furthest}"));
            }
            *furthest = (*furthest).max(*event);
        }
        Ok(())
    }

    fn begin(&mut self, worker: usize, event: usize) -> Run {
        let now = self.now;
        let claimed = &mut self.events[event];
        claimed.status = Status::Processing;
        claimed.fence += 1;
        claimed.owner = Some(worker);
        claimed.locked_at = now;
        Run { event, worker, fence: claimed.fence }
    }

    /// What a call for this one event finds before it runs it; `None`: nothing stands against it.
    pub fn look(&self, event: usize) -> Option<Processed> {
        let Event { stored, status, due, .. } = self.events[event];
        match status {
            _ if !stored => Some(Processed::NotFound),
            Status::Processing => Some(Processed::Processing),
            Status::Completed | Status::DeadLetter => Some(Processed::Finished(status)),
            Status::Pending if self.is_blocked(event) => Some(Processed::Blocked),
            Status::Pending => (due > self.now).then_some(Processed::NotDue),
        }
    }

    /// Whether the run still has its lease.
    pub fn is_leased(&self, run: Run) -> bool {
        let event = &self.events[run.event];
        event.stored && event.fence == run.fence && event.owner == Some(run.worker)
    }

    /// A run ends: what that changes, and how its worker counts it.
    pub fn end(&mut self, run: Run, ending: Ending, counts: &mut Counts) {
        if !self.is_leased(run) {
            counts.lease_lost += 1;
            return;
        }
        let now = self.now;
        let event = &mut self.events[run.event];
        let backoff = now + (1000 << (event.attempts + 1));
        match ending {
            Ending::Succeed => event.complete(None, now),
            Ending::Discard => event.complete(Some("a note"), now),
            Ending::Snooze => event.wait(now + Ending::SNOOZE_MS),
            Ending::Fail => event.spend("failed", backoff, now),
            Ending::RetryAfter => event.spend("later", backoff.max(now + Ending::RETRY_AFTER_MS), now),
            Ending::TimeOut => event.spend("timed out after 0.001s", backoff, now),
            Ending::Permanent => event.bury("never", now),
        }
        counts.timed_out += u64::from(matches!(ending, Ending::TimeOut));
        match event.status {
            Status::Completed => counts.completed += 1,
            Status::DeadLetter => counts.dead_lettered += 1,
            _ if matches!(ending, Ending::Snooze) => counts.snoozed += 1,
            _ => counts.retried += 1,
        }
    }

    pub fn dead_letters(&self) -> Vec<usize> {
        let is_dead = |event: &Event| event.stored && event.status == Status::DeadLetter;
        (0..self.events.len()).filter(|event| is_dead(&self.events[*event])).collect()
    }

    /// Whether it was a dead letter, which alone gets a new life.
    pub fn requeue(&mut self, event: usize) -> bool {
        let now = self.now;
        let event = &mut self.events[event];
        let is_dead = event.stored && event.status == Status::DeadLetter;
        if is_dead {
            event.requeue(now);
        }
        is_dead
    }

    /// Whether it was finished, which alone is deleted.
    pub fn discard(&mut self, event: usize) -> bool {
        let event = &mut self.events[event];
        let is_over = event.stored && event.status.is_terminal();
        event.stored &= !is_over;
        is_over
    }

    pub fn prune(&mut self, status: Status, older_than_ms: i64) -> u64 {
        let before = self.now - older_than_ms;
        let is_old = |event: &&mut Event| {
            event.stored && event.status == status && event.processed_at.is_some_and(|at| at <= before)
        };
        self.events.iter_mut().filter(is_old).map(|event| event.stored = false).count() as u64
    }

    /// What must hold of every event, whatever led there.
    pub fn check(&self) -> Result<(), String> {
        let mut running = HashMap::new();
        for (place, event) in self.events.iter().enumerate().filter(|(_, event)| event.stored) {
            if event.attempts > event.new.max_attempts {
                return Err(format!("event {place} has spent more attempts than it has"));
            }
            if event.applied != u32::from(event.is_applied()) {
                return Err(format!("what event {place} does was done {} times", event.applied));
            }
            if (event.status == Status::Processing) != event.owner.is_some() {
                return Err(format!("event {place} is {} by {:?}", event.status, event.owner));
            }
            let key = event.new.key.filter(|_| event.status == Status::Processing);
            if let Some(other) = key.and_then(|key| running.insert(key, place)) {
                return Err(format!("events {other} and {place} of one key run at once"));
            }
        }
        Ok(())
    }

    /// Nothing is lost: what is stored is over, or waits behind a dead letter that was to block its key.
    pub fn check_end(&self) -> Result<(), String> {
        let waits = |place: usize, event: &Event| {
            event.stored && !event.status.is_terminal() && !self.waits_for_a_person(place)
        };
        match self.events.iter().enumerate().find(|(place, event)| waits(*place, event)) {
            Some((place, event)) => Err(format!("event {place} is still {}", event.status)),
            None => Ok(()),
        }
    }

    fn waits_for_a_person(&self, event: usize) -> bool {
        let key = self.events[event].new.key;
        let blocks = |other: &Event| {
            other.stored && other.new.key == key && other.status == Status::DeadLetter && other.new.blocks
        };
        key.is_some() && self.events[..event].iter().any(blocks)
    }
}
