//! A worker's whole life: one session after another until shutdown, each with its services.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::session::{Finished, Session, Setup};
use super::{Counts, Options, RunError, heartbeat, poll, prune, reap, settle};
use crate::backend::Backend;
use crate::handle::Outbox;
use crate::handler::Stop;
use crate::retry_pause::RetryPause;
use crate::signals::Notifier;

/// How long a dropped handler gets to be really gone, and a last write to end, at shutdown.
pub(super) const LAST_MOMENTS: Duration = Duration::from_secs(2);
/// How long outcomes are still tried to be written at shutdown.
const LAST_WRITES: Duration = Duration::from_secs(10);
const PRUNE_INTERVAL: Duration = Duration::from_secs(60);

type Opened<DB> = (Arc<Session<DB>>, mpsc::UnboundedReceiver<Finished>);

#[derive(Debug)]
pub(super) struct Life<DB: Backend> {
    setup: Arc<Setup<DB>>,
    first: Opened<DB>,
}

/// How a session ended.
enum End {
    Shutdown,
    LeaseLost,
}

impl<DB: Backend> Life<DB> {
    /// Registers the worker: what goes wrong here is an error of the start.
    pub(super) async fn begin(outbox: &Outbox<DB>, options: Options) -> Result<Self, RunError> {
        let setup = Setup::of_a_loop(outbox, options).await?;
        let first = Session::open(&setup).await?;
        announce(&first.0);
        Ok(Self { setup, first })
    }

    pub(super) async fn run(self, stop: CancellationToken) -> Result<Counts, RunError> {
        let Self { setup, first } = self;
        let _notifier = setup.options.listen.then(|| Notifier::start(setup.outbox.store.clone()));
        let mut opened = Some(first);
        while let Some((session, finished)) = opened.take() {
            match live(&session, finished, &stop).await? {
                End::Shutdown => break,
                End::LeaseLost => opened = reopen(&setup, &stop).await,
            }
        }
        let counts = setup.tally.counts();
        tracing::info!(name: "outbox.stopped", ?counts, "the worker has stopped");
        Ok(counts)
    }
}

/// A new session after one that was lost; the database may be away for long. `None` at shutdown.
async fn reopen<DB: Backend>(setup: &Arc<Setup<DB>>, stop: &CancellationToken) -> Option<Opened<DB>> {
    let mut pause = RetryPause::default();
    while !stop.is_cancelled() {
        match Session::open(setup).await {
            Ok(opened) => {
                tracing::info!(name: "outbox.started", worker = opened.0.worker, "the worker is back under a new id");
                return Some(opened);
            }
            Err(error) => {
                let wait = pause.next();
                tracing::warn!(name: "outbox.register", %error, retry_in = ?wait, "the worker cannot register");
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = tokio::time::sleep(wait) => {}
                }
            }
        }
    }
    None
}

async fn live<DB: Backend>(
    session: &Arc<Session<DB>>,
    finished: mpsc::UnboundedReceiver<Finished>,
    stop: &CancellationToken,
) -> Result<End, RunError> {
    heartbeat::start(session).map_err(RunError::Thread)?;
    let settling = tokio::spawn(settle::serve(Arc::clone(session), finished));
    let mut services = JoinSet::new();
    services.spawn(poll::serve(Arc::clone(session)));
    services.spawn(every(Arc::clone(session), Service::Reap));
    services.spawn(every(Arc::clone(session), Service::Prune));
    let end = tokio::select! {
        biased;
        () = stop.cancelled() => Ok(End::Shutdown),
        () = session.over.cancelled() => Ok(End::LeaseLost),
        // They end only after the two above.
        Some(ended) = services.join_next() => Err(RunError::Stopped(match ended {
            Ok(()) => "it ended by itself".to_owned(),
            Err(error) => error.to_string(),
        })),
    };
    session.draining.cancel();
    match &end {
        Ok(End::LeaseLost) => leave(session).await,
        Ok(End::Shutdown) | Err(_) => drain(session, &mut services).await,
    }
    session.close().await;
    // A service that waits for the database is left to it: it writes nothing that its guard does not allow.
    services.detach_all();
    drop(settling);
    end
}

/// Shutdown in order: no more claims, what waits goes back, what runs gets its grace time.
async fn drain<DB: Backend>(session: &Session<DB>, services: &mut JoinSet<()>) {
    let began = Instant::now();
    let grace = session.setup.options.grace;
    session.take_back(true);
    // A claim under way may still bring something; it is started or goes back with the rest.
    let claims_end = async { while services.join_next().await.is_some() {} };
    drop(tokio::time::timeout(LAST_MOMENTS, claims_end).await);
    session.take_back(true);
    let left = grace.saturating_sub(began.elapsed());
    let ended = session.wait_until(left, |hands| hands.running() == 0).await;
    if !ended {
        let running = session.hands().running();
        tracing::warn!(name: "outbox.grace", running, "the grace time is over; handlers are stopped and their events go back");
        session.hands().stop_all(Stop::Shutdown);
        session.wait_until(LAST_MOMENTS, |hands| hands.running() == 0).await;
    }
    let still = session.hands().running();
    if still > 0 {
        tracing::error!(name: "outbox.grace", still, "handlers block their threads; their events stay locked until the lease ends");
    }
    session.wait_until(LAST_WRITES, |hands| hands.len() <= hands.running()).await;
}

/// The lease is lost: the runs were stopped; they are given a moment to be gone.
async fn leave<DB: Backend>(session: &Session<DB>) {
    session.wait_until(LAST_MOMENTS, |hands| hands.running() == 0).await;
}

#[derive(Clone, Copy, Debug)]
enum Service {
    Reap,
    Prune,
}

impl Service {
    fn interval(self, lease: Duration) -> Duration {
        match self {
            // A dead worker's events are to run elsewhere soon after its lease has ended.
            Self::Reap => lease / 4,
            Self::Prune => PRUNE_INTERVAL,
        }
    }

    async fn run_once<DB: Backend>(self, session: &Session<DB>) -> Result<(), sqlx::Error> {
        match self {
            Self::Reap => reap::run_once(session).await,
            Self::Prune => prune::run_once(session).await,
        }
    }
}

/// Runs a service at once and then at its interval, until the session drains. Errors are waited out.
async fn every<DB: Backend>(session: Arc<Session<DB>>, service: Service) {
    let interval = service.interval(session.setup.options.lease);
    let mut pause = RetryPause::default();
    loop {
        let wait = match service.run_once(&session).await {
            Ok(()) => {
                pause.reset();
                interval.mul_f64(0.9 + 0.2 * fastrand::f64())
            }
            Err(error) => {
                let wait = pause.next().min(interval);
                tracing::warn!(name: "outbox.maintenance", ?service, %error, retry_in = ?wait, "maintenance failed");
                wait
            }
        };
        tokio::select! {
            () = session.draining.cancelled() => return,
            () = session.over.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Says at start what this worker handles.
fn announce<DB: Backend>(session: &Session<DB>) {
    let handlers = session.setup.outbox.registry.handlers();
    tracing::info!(
        name: "outbox.started", worker = session.worker, database = DB::DATABASE, handlers = handlers.len(),
        concurrency = session.setup.options.concurrency, "the worker has started"
    );
    for def in handlers {
        tracing::info!(
            name: "outbox.handler", event_type = def.event_type, aliases = ?def.aliases, version = def.version,
            handler = def.name, place = def.place(), max_attempts = def.max_attempts,
            timeout = ?session.setup.options.timeout_of(def), concurrency = def.concurrency, backoff = ?def.backoff,
            "handles"
        );
    }
}
