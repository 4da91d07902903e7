//! A session: one worker's life under one id, from its registration to its end. When its lease is lost it is over,
//! and the worker begins another under a new id.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sqlx::Pool;
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::hands::{Accepted, Hands, PREFETCH_WAIT, Start};
use super::tally::Tally;
use super::{Options, execute};
use crate::backend::Backend;
use crate::backend::data::{Claimed, HeartbeatPool, LoopNeeds, LoopPools, WorkerRow, duration_ms};
use crate::handle::Outbox;
use crate::handler::{States, Stop};
use crate::store::{Store, run};
use crate::transition::{Lease, Outcome, Policy};

/// A run that has ended, on its way to being written.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) lane: usize,
    pub(super) lease: Lease,
    pub(super) outcome: Outcome,
}

/// What all sessions of one worker share.
#[derive(Debug)]
pub(super) struct Setup<DB: Backend> {
    pub(super) outbox: Outbox<DB>,
    pub(super) options: Options,
    /// The tables through the connection that claims.
    pub(super) claims: Store<DB>,
    /// The tables through the connection that does everything else.
    pub(super) store: Store<DB>,
    pub(super) heartbeat: HeartbeatPool<DB>,
    /// For transactions that handlers take.
    pub(super) transactions: Pool<DB>,
    pub(super) tally: Tally,
}

impl<DB: Backend> Setup<DB> {
    /// For a loop, on connections of its own.
    pub(super) async fn of_a_loop(outbox: &Outbox<DB>, options: Options) -> Result<Arc<Self>, sqlx::Error> {
        let needs = LoopNeeds { transactions: options.tx_connections, lie_idle: false };
        let pools = DB::loop_pools(&outbox.store.pool, &outbox.store.place, needs).await?;
        Ok(Self::new(outbox, options, &pools))
    }

    /// For a one-shot call. All those of a handle share their connections: many at once do not open many each.
    pub(super) async fn of_one_shot(outbox: &Outbox<DB>, options: Options) -> Result<Arc<Self>, sqlx::Error> {
        let needs = LoopNeeds { transactions: options.tx_connections, lie_idle: true };
        let open = || DB::loop_pools(&outbox.store.pool, &outbox.store.place, needs);
        let pools = outbox.one_shots.get_or_try_init(open).await?;
        Ok(Self::new(outbox, options, pools))
    }

    fn new(outbox: &Outbox<DB>, options: Options, pools: &LoopPools<DB>) -> Arc<Self> {
        Arc::new(Self {
            claims: outbox.store.through(pools.claim.clone()),
            store: outbox.store.through(pools.settle.clone()),
            heartbeat: pools.heartbeat.clone(),
            transactions: pools.transactions.clone(),
            outbox: outbox.clone(),
            options,
            tally: Tally::default(),
        })
    }
}

#[derive(Debug)]
pub(super) struct Session<DB: Backend> {
    pub(super) setup: Arc<Setup<DB>>,
    pub(super) worker: String,
    /// When the registration was sent: the lease counts from there.
    pub(super) registered: Instant,
    hands: Mutex<Hands>,
    finished: mpsc::UnboundedSender<Finished>,
    /// No more claims.
    pub(super) draining: CancellationToken,
    /// The lease is lost: nothing that is in hand is ours any more.
    pub(super) over: CancellationToken,
    /// The session has ended.
    pub(super) closed: CancellationToken,
    /// Room was made, or an outcome written.
    pub(super) wake: Notify,
    /// How many batches of outcomes cannot be written at the moment; while any cannot, nothing more is claimed.
    stalled: AtomicUsize,
}

impl<DB: Backend> Session<DB> {
    /// Registers a worker. The receiver is for [`settle::serve`](super::settle::serve).
    pub(super) async fn open(
        setup: &Arc<Setup<DB>>,
    ) -> Result<(Arc<Self>, mpsc::UnboundedReceiver<Finished>), sqlx::Error> {
        // Bounded by what is in hand: `Hands` claims nothing while too much is unwritten.
        let (finished, receiver) = mpsc::unbounded_channel();
        let session = Self {
            worker: Uuid::now_v7().to_string(),
            registered: Instant::now(),
            hands: Mutex::new(Hands::new(&setup.outbox.registry, &setup.options)),
            finished,
            draining: CancellationToken::new(),
            over: CancellationToken::new(),
            closed: CancellationToken::new(),
            wake: Notify::new(),
            stalled: AtomicUsize::new(0),
            setup: Arc::clone(setup),
        };
        session.register().await?;
        Ok((Arc::new(session), receiver))
    }

    async fn register(&self) -> Result<(), sqlx::Error> {
        let options = &self.setup.options;
        let kinds: Vec<serde_json::Value> = self
            .setup
            .outbox
            .registry
            .handlers()
            .iter()
            .flat_map(|def| {
                def.names().map(|name| serde_json::json!({ "type": name, "version": def.version }))
            })
            .collect();
        let row = WorkerRow {
            id: &self.worker,
            host: &host_name(),
            pid: std::process::id(),
            kinds: &serde_json::Value::from(kinds).to_string(),
            lease_ms: duration_ms(options.lease),
            stuck_ms: duration_ms(options.stuck_after),
        };
        run!(self.setup.store, |at| DB::register(at, &row))
    }

    pub(super) fn hands(&self) -> MutexGuard<'_, Hands> {
        // The bookkeeping has no state between its statements that a panic could leave half done.
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn states(&self) -> States {
        self.setup.outbox.states.clone()
    }

    /// What is decided beforehand about the outcomes of a handler.
    pub(super) fn policy(&self, lane: usize) -> Policy {
        Policy {
            backoff: self.setup.outbox.registry.handlers()[lane].backoff,
            delete_completed: self.setup.options.retention.deletes_at_once(),
        }
    }

    pub(super) fn rests(&self, lane: usize) -> bool {
        self.hands().rests(lane, Instant::now())
    }

    /// Takes claimed events in and starts what has a slot.
    pub(super) fn take_in(self: &Arc<Self>, claimed: Vec<Claimed>) {
        let now = Instant::now();
        let accepted: Vec<_> = {
            let mut hands = self.hands();
            claimed.into_iter().map(|event| hands.accept(event, now)).collect()
        };
        for (accepted, back) in accepted {
            let outcome = match accepted {
                Accepted::Queued | Accepted::InHand => continue,
                // Its earlier run blocks a thread of this process; look again when that may have ended.
                Accepted::StillRunning => Outcome::Postponed { delay: PREFETCH_WAIT },
                Accepted::Unknown => Outcome::Released,
            };
            if let Some(event) = back {
                self.give_back(&event, outcome);
            }
        }
        self.pump();
    }

    /// Starts what has a slot. Nothing starts any more once the session drains.
    pub(super) fn pump(self: &Arc<Self>) {
        while let Some(start) = self.next() {
            tokio::spawn(execute::serve(Arc::clone(self), start));
        }
    }

    /// The next event that has a slot.
    pub(super) fn next(&self) -> Option<Start> {
        let starts = !self.draining.is_cancelled() && !self.over.is_cancelled();
        if starts { self.hands().next() } else { None }
    }

    /// A run has ended. Whoever ran it has a slot for the next.
    pub(super) fn ended(self: &Arc<Self>, finished: Finished, took: Duration) {
        let decoded = !matches!(finished.outcome, Outcome::Undecodable { .. });
        let ran = !matches!(finished.outcome, Outcome::Released);
        let rests = {
            let mut hands = self.hands();
            hands.ended(finished.lane, finished.lease.seq, took, self.over.is_cancelled());
            ran && hands.note_decoded(finished.lane, decoded, Instant::now())
        };
        if rests {
            tracing::error!(
                name: "outbox.undecodable",
                handler = %self.setup.outbox.registry.handlers()[finished.lane],
                "ten payloads in a row did not decode; this worker stops claiming the type for a minute: \
                 is this the right release of the handler?"
            );
        }
        self.hand_on(finished);
        self.wake.notify_one();
    }

    fn hand_on(&self, finished: Finished) {
        let Lease { seq, fence, .. } = finished.lease;
        if self.finished.send(finished).is_err() {
            // The session has closed: its lease is lost, or its grace time is over.
            self.hands().settled(seq, fence, false);
        }
    }

    /// Gives back what was not run.
    pub(super) fn give_back(&self, event: &Claimed, outcome: Outcome) {
        self.hand_on(Finished { lane: 0, lease: execute::lease_of(event), outcome });
    }

    /// Gives back what waits too long, or `all` that waits.
    pub(super) fn take_back(&self, all: bool) {
        let back = self.hands().take_back(all, Instant::now());
        for event in &back {
            self.give_back(event, Outcome::Released);
        }
    }

    /// Single leases are lost: their runs are stopped, and what of them waits is dropped.
    pub(super) fn lose_some(&self, leases: &[(i64, i64)]) {
        let dropped = self.hands().lose(leases);
        for event in &dropped {
            self.give_back(event, Outcome::Lost);
        }
    }

    /// The lease is lost: every run is stopped, and nothing more is written in this worker's name.
    pub(super) fn lose(&self, why: &str) {
        tracing::error!(name: "outbox.lease_lost", worker = self.worker, "{why}; all its handlers are stopped");
        self.over.cancel();
        self.hands().stop_all(Stop::LeaseLost);
        self.wake.notify_one();
    }

    /// A batch of outcomes cannot be written at the moment.
    pub(super) fn stall(&self) {
        self.stalled.fetch_add(1, Ordering::AcqRel);
    }

    /// It was written, or given up.
    pub(super) fn unstall(&self) {
        self.stalled.fetch_sub(1, Ordering::AcqRel);
        self.wake.notify_one();
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire) > 0
    }

    /// Waits until a run ends or an outcome is written; not long, since the news may have come before the wait.
    pub(super) async fn wait_for_progress(&self) {
        const LOOK: Duration = Duration::from_millis(20);
        drop(tokio::time::timeout(LOOK, self.wake.notified()).await);
    }

    /// Waits until this holds for what is in hand, or the time is over; whether it holds.
    pub(super) async fn wait_until(&self, limit: Duration, holds: impl Fn(&Hands) -> bool) -> bool {
        let waiting = async {
            while !holds(&self.hands()) {
                self.wait_for_progress().await;
            }
        };
        tokio::time::timeout(limit, waiting).await.is_ok()
    }

    /// The worker's row ends, when nothing is left that a second run could meet.
    pub(super) async fn close(&self) {
        self.draining.cancel();
        let left = self.hands().len();
        if left == 0
            && !self.over.is_cancelled()
            && let Err(error) = run!(self.setup.store, |at| DB::stop_worker(at, &self.worker))
        {
            // Its heartbeat ends now, and the reaper finds nothing of it.
            tracing::warn!(name: "outbox.stop", %error, "the worker's row could not be closed");
        }
        self.closed.cancel();
    }
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .or_else(|_| std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")))
        .unwrap_or_else(|_| "unknown".to_owned())
}
