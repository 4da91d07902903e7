//! Looking after events: find, requeue, discard, prune, count. What a command line or a dashboard calls.

use std::time::Duration;

use crate::backend::data::{BlockedKey, EventRecord, Status, TypeStats, WorkerInfo, duration_ms, to_ms};
use crate::backend::{At, Backend};
use crate::enqueue::InTransaction;
use crate::event::{Event, EventId, names};
use crate::handle::Outbox;
use crate::nudge;
use crate::store::{Store, run};

/// How many rows one statement touches, so that none holds its locks for long.
pub(crate) const PAGE: i64 = 1000;

/// Up to which number things are counted.
const COUNT_CAP: i64 = 10_000;

/// What waits and who works, at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// The event types that have unfinished events or dead letters, by name.
    pub event_types: Vec<TypeStats>,
    /// The live workers, of all processes.
    pub workers: Vec<WorkerInfo>,
}

impl Stats {
    /// Up to which number the waiting events of a type are counted: a count of millions would read millions.
    pub const COUNT_CAP: u64 = COUNT_CAP.unsigned_abs();

    /// The types with due events that no live worker handles.
    pub fn waiting_for_nobody(&self) -> impl Iterator<Item = &TypeStats> {
        self.event_types.iter().filter(|of| of.due > 0 && of.live_workers == 0)
    }

    /// Whether nothing is due, scheduled or running.
    pub fn is_idle(&self) -> bool {
        self.event_types.iter().all(|of| of.due + of.scheduled + of.processing == 0)
    }
}

/// A page of a list that is newest first.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    limit: u32,
    before: Option<(i64, i64)>,
}

impl Page {
    /// The newest ones, at most `limit`.
    pub fn first(limit: u32) -> Self {
        Self { limit, before: None }
    }

    /// Those that come after `last`, the last record of the page before.
    pub fn after(last: &EventRecord, limit: u32) -> Self {
        let processed_at = last.processed_at.map_or(0, to_ms);
        Self { limit, before: Some((processed_at, last.seq)) }
    }
}

impl Default for Page {
    fn default() -> Self {
        Self::first(100)
    }
}

impl<DB: Backend> Outbox<DB> {
    /// One stored event, every column of it; `None` if there is none with this id.
    ///
    /// # Errors
    /// The database's own.
    pub async fn get(&self, id: EventId) -> Result<Option<EventRecord>, AdminError> {
        Ok(run!(self.store, |at| DB::get(at, &id.to_string()))?)
    }

    /// Whether an event of this type, or of one of its aliases, that is not finished (waiting, also for a later time, or
    /// running) has the top-level payload field `key` with this value as text: `5` equals `"5"`; null and a missing
    /// field equal nothing. In the caller's transaction, so that the answer and what is written on it belong together.
    ///
    /// # Errors
    /// The database's own.
    pub async fn has_inflight<E: Event>(
        &self,
        tx: &mut (impl InTransaction<Database = DB> + ?Sized),
        key: &str,
        value: &str,
    ) -> Result<bool, AdminError> {
        let conn = tx.connection();
        for name in names(E::EVENT_TYPE, E::ALIASES) {
            let at: At<'_, DB> = self.store.at(conn);
            if DB::has_inflight(at, name, key, value).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// As [`has_inflight`](Self::has_inflight), by the subject that the events were enqueued with: one probe of an
    /// index for each name, however long the backlog is.
    ///
    /// # Errors
    /// The database's own.
    pub async fn has_inflight_subject<E: Event>(
        &self,
        tx: &mut (impl InTransaction<Database = DB> + ?Sized),
        subject: &str,
    ) -> Result<bool, AdminError> {
        let conn = tx.connection();
        for name in names(E::EVENT_TYPE, E::ALIASES) {
            let at: At<'_, DB> = self.store.at(conn);
            if DB::has_inflight_subject(at, name, subject).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ordering keys that a dead letter blocks, those that have been for longest first.
    ///
    /// # Errors
    /// The database's own.
    pub async fn blocked_keys(&self, limit: u32) -> Result<Vec<BlockedKey>, AdminError> {
        Ok(run!(self.store, |at| DB::blocked_keys(at, COUNT_CAP, i64::from(limit)))?)
    }

    /// Dead letters of these types, newest first. No types: none.
    ///
    /// # Errors
    /// The database's own.
    pub async fn find_dead_lettered(
        &self,
        event_types: &[&str],
        page: Page,
    ) -> Result<Vec<EventRecord>, AdminError> {
        if event_types.is_empty() || page.limit == 0 {
            return Ok(Vec::new());
        }
        let limit = i64::from(page.limit);
        Ok(run!(self.store, |at| DB::dead_letters(at, event_types, page.before, limit))?)
    }

    /// Gives a dead letter a new life: due now, with all its attempts.
    ///
    /// # Errors
    /// [`AdminError::NotThatStatus`] names the state of an event that is no dead letter; nothing is changed.
    pub async fn requeue(&self, id: EventId) -> Result<(), AdminError> {
        if run!(self.store, |at| DB::requeue(at, &id.to_string()))? {
            nudge::now();
            return Ok(());
        }
        Err(self.not_that_status(id, "a dead letter").await)
    }

    /// Gives every dead letter of these types a new life; how many there were.
    ///
    /// # Errors
    /// The database's own; what was requeued before it stays so.
    pub async fn requeue_all(&self, event_types: &[&str]) -> Result<u64, AdminError> {
        let mut requeued = 0;
        loop {
            let page = run!(self.store, |at| DB::requeue_types(at, event_types, PAGE))?;
            requeued += page;
            if page < PAGE.unsigned_abs() {
                break;
            }
        }
        nudge::now();
        Ok(requeued)
    }

    /// Deletes one finished event: a dead letter that nobody needs, or a completed one.
    ///
    /// # Errors
    /// [`AdminError::NotThatStatus`] names the state of an event that is not finished; nothing is changed.
    pub async fn discard(&self, id: EventId) -> Result<(), AdminError> {
        if run!(self.store, |at| DB::discard(at, &id.to_string()))? {
            return Ok(());
        }
        Err(self.not_that_status(id, "completed or a dead letter").await)
    }

    /// Deletes events that have been finished, in this status, for at least `older_than`; how many.
    ///
    /// # Errors
    /// [`AdminError::NotTerminal`] for a status that is not finished, before any statement.
    pub async fn prune(&self, status: Status, older_than: Duration) -> Result<u64, AdminError> {
        if !status.is_terminal() {
            return Err(AdminError::NotTerminal(status));
        }
        Ok(prune(&self.store, status, older_than, || false).await?)
    }

    /// What waits, by type, and who works. Its cost does not grow with the backlog.
    ///
    /// # Errors
    /// The database's own.
    pub async fn stats(&self) -> Result<Stats, AdminError> {
        let mut event_types = run!(self.store, |at| DB::stats(at, COUNT_CAP))?;
        for of in &mut event_types {
            of.handled_here = self.registry.handler_of(&of.event_type).is_some();
        }
        let workers = run!(self.store, |at| DB::workers(at))?;
        Ok(Stats { event_types, workers })
    }

    async fn not_that_status(&self, id: EventId, needed: &'static str) -> AdminError {
        match self.get(id).await {
            Ok(Some(record)) => AdminError::NotThatStatus { id, status: record.status, needed },
            Ok(None) => AdminError::NotFound(id),
            Err(error) => error,
        }
    }
}

/// Deletes page by page, in order of seq, what is finished in this status and old enough, until told to stop.
pub(crate) async fn prune<DB: Backend>(
    store: &Store<DB>,
    status: Status,
    older_than: Duration,
    stop: impl Fn() -> bool,
) -> Result<u64, sqlx::Error> {
    let older_than_ms = duration_ms(older_than);
    let (mut pruned, mut after) = (0, 0);
    loop {
        // A connection for each page: where there is only one, claims and outcomes come in between.
        let page = run!(store, |at| DB::prune_page(at, status, older_than_ms, after, PAGE))?;
        let Some(last) = page.last else { break };
        if page.old > 0 {
            pruned += run!(store, |at| DB::prune(at, status, older_than_ms, after, last))?;
        }
        if page.rows < PAGE || page.all_young || stop() {
            break;
        }
        after = last;
    }
    Ok(pruned)
}

/// Why an event was not looked after.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// No such event.
    #[error("there is no event {0}")]
    NotFound(EventId),
    /// The event is in another state than the call is for.
    #[error("event {id} is {status}, and only {needed} will do")]
    NotThatStatus {
        /// The event.
        id: EventId,
        /// Its state.
        status: Status,
        /// What it would have to be.
        needed: &'static str,
    },
    /// Pruning is for what is finished.
    #[error("events that are {0} cannot be pruned: only completed ones and dead letters can")]
    NotTerminal(Status),
    /// The database refused, or does not answer.
    #[error("the database refused: {0}")]
    Database(#[from] sqlx::Error),
}

crate::readable::readable!(AdminError);
