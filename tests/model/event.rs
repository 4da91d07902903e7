//! One event of the reference, and what can become of it.

use outbox::Status;

use crate::schedule::{Kind, New};

/// An event that was committed.
#[derive(Clone, Debug)]
pub struct Event {
    pub new: New,
    /// Not discarded, not pruned.
    pub stored: bool,
    pub status: Status,
    pub attempts: u32,
    pub crashes: u32,
    /// How often it was claimed.
    pub fence: i64,
    pub due: i64,
    pub owner: Option<usize>,
    pub processed_at: Option<i64>,
    pub last_error: Option<String>,
    /// How often its handler's own writes were committed.
    pub applied: u32,
    pub locked_at: i64,
    /// A person has sent it back.
    pub requeued: bool,
}

impl Event {
    pub fn new(new: New, now: i64) -> Self {
        Self {
            new,
            stored: true,
            status: Status::Pending,
            attempts: 0,
            crashes: 0,
            fence: 0,
            due: now + new.delay_ms,
            owner: None,
            processed_at: None,
            last_error: None,
            applied: 0,
            locked_at: now,
            requeued: false,
        }
    }

    /// Whether the next of its key has to wait until it is out of the way.
    pub fn is_to_get_through(&self) -> bool {
        match self.status {
            Status::Pending | Status::Processing => true,
            Status::DeadLetter => self.new.blocks,
            Status::Completed => false,
        }
    }

    pub fn complete(&mut self, note: Option<&str>, now: i64) {
        self.finish(Status::Completed, now);
        self.last_error = note.map(str::to_owned);
        self.applied += u32::from(self.is_applied());
    }

    /// What a handler writes in its transaction stays with a success, and with nothing else: a note is none.
    pub fn is_applied(&self) -> bool {
        self.new.kind == Kind::Transfer && self.status == Status::Completed && self.last_error.is_none()
    }

    pub fn bury(&mut self, error: &str, now: i64) {
        self.attempts += 1;
        self.finish(Status::DeadLetter, now);
        self.last_error = Some(error.to_owned());
    }

    fn finish(&mut self, status: Status, now: i64) {
        self.status = status;
        self.owner = None;
        self.processed_at = Some(now);
    }

    pub fn wait(&mut self, due: i64) {
        self.status = Status::Pending;
        self.owner = None;
        self.processed_at = None;
        self.due = due;
    }

    /// A failed attempt: the last one makes it a dead letter.
    pub fn spend(&mut self, error: &str, due: i64, now: i64) {
        if self.attempts + 1 >= self.new.max_attempts {
            return self.bury(error, now);
        }
        self.attempts += 1;
        self.wait(due);
        self.last_error = Some(error.to_owned());
    }

    /// The first crash is nobody's fault; a second one with the same event is taken for its fault.
    pub fn lose_worker(&mut self, now: i64) {
        let is_suspect = self.crashes > 0;
        self.crashes += 1;
        if is_suspect {
            return self.spend("worker lost", self.due, now);
        }
        self.wait(self.due);
        self.last_error = Some("worker lost".to_owned());
    }

    /// A new life; what was counted in the former one is forgotten.
    pub fn requeue(&mut self, now: i64) {
        self.attempts = 0;
        self.crashes = 0;
        self.last_error = None;
        self.requeued = true;
        self.wait(now);
    }
}
