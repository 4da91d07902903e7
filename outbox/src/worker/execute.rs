//! Runs events: decode, run, catch a panic, keep the time limit.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use tracing::Instrument;

use super::hands::Start;
use super::session::{Finished, Session};
use super::transact;
use crate::backend::Backend;
use crate::backend::data::{Claimed, from_ms};
use crate::handler::{
    Cancellation, Context, ContextInner, Delivery, Failure, Stop, directive_of, error_text,
};
use crate::registry::{HandlerDef, HandlerFuture};
use crate::transition::{Lease, Outcome};

/// A task that runs events for as long as there is a slot for one more. A task for each event would cost more than many a
/// handler does.
pub(super) async fn serve<DB: Backend>(session: Arc<Session<DB>>, first: Start) {
    let mut next = Some(first);
    while let Some(start) = next {
        execute(&session, start).await;
        // Handlers that are ready at once would otherwise keep the thread to themselves.
        tokio::task::coop::consume_budget().await;
        next = session.next();
    }
}

/// Runs one event to its outcome, and hands that on.
async fn execute<DB: Backend>(session: &Arc<Session<DB>>, start: Start) {
    let Start { lane, def, timeout, takes_tx, claimed, cancellation } = start;
    let report = Report::new(session, lane, &claimed);
    if session.rests(lane) {
        report.done(Outcome::Released);
        return;
    }
    let span = tracing::info_span!(
        "outbox.handle",
        event_type = def.event_type,
        event_id = %claimed.id,
        attempt = claimed.attempts + 1,
    );
    let lease = lease_of(&claimed);
    let delivery = deliver(claimed, cancellation.clone(), session.states());
    let outcome = async {
        if !takes_tx {
            return run((def.run)(delivery), timeout, &cancellation).await;
        }
        let handler = Handler { lane, def: &def, timeout, cancellation: &cancellation };
        // Boxed: it is large, and every task would have room for it.
        Box::pin(run_in_transaction(session, handler, lease, delivery)).await
    };
    let outcome = outcome.instrument(span).await;
    report.done(outcome);
}

/// How a handler is run.
struct Handler<'a> {
    lane: usize,
    def: &'a HandlerDef,
    timeout: Duration,
    cancellation: &'a Cancellation,
}

/// Runs a handler in a transaction, which begins before its time does, and in which its event completes.
async fn run_in_transaction<DB: Backend>(
    session: &Arc<Session<DB>>,
    handler: Handler<'_>,
    lease: Lease,
    mut delivery: Delivery,
) -> Outcome {
    let Handler { lane, def, timeout, cancellation } = handler;
    let (tx, home) = match transact::lend(session).await {
        Ok(lent) => lent,
        Err(outcome) => return outcome,
    };
    delivery.lend(tx);
    let outcome = run((def.run)(delivery), timeout, cancellation).await;
    transact::conclude(session, lease, session.policy(lane), outcome, home).await
}

fn deliver(claimed: Claimed, cancellation: Cancellation, states: crate::States) -> Delivery {
    let context = Context::new(ContextInner {
        event_id: claimed.id,
        event_type: claimed.event_type.into_boxed_str(),
        event_version: claimed.version,
        attempts: claimed.attempts,
        crashes: claimed.crashes,
        max_attempts: claimed.max_attempts,
        created_at: from_ms(claimed.created_at),
        raw_headers: claimed.headers,
        headers: OnceLock::new(),
        cancellation,
    });
    Delivery::new(claimed.payload, context, states)
}

/// How the wait for a handler ended.
enum Ended {
    Returned(Result<(), Failure>),
    Panicked(Box<dyn Any + Send>),
    Stopped(Stop),
}

async fn run(future: HandlerFuture, timeout: Duration, cancellation: &Cancellation) -> Outcome {
    let mut future = Some(future);
    // The handler comes first: one that is ready at its first poll costs no timer.
    let ended = tokio::select! {
        biased;
        ended = guarded(&mut future) => ended,
        () = tokio::time::sleep(timeout) => Ended::Stopped(Stop::TimedOut),
        stop = cancellation.stopped() => Ended::Stopped(stop),
    };
    match ended {
        Ended::Returned(Ok(())) => Outcome::Completed,
        Ended::Returned(Err(Failure::Undecodable(error))) => Outcome::Undecodable { error },
        Ended::Returned(Err(Failure::Handler(error))) => {
            Outcome::Failed { error: error_text(&*error), directive: directive_of(&*error) }
        }
        Ended::Panicked(panic) => {
            Outcome::Failed { error: format!("panicked: {}", panic_message(&*panic)), directive: None }
        }
        Ended::Stopped(why) => {
            cancellation.stop(why);
            end(&mut future).await;
            match why {
                Stop::TimedOut => Outcome::TimedOut { after: timeout },
                Stop::Shutdown => Outcome::Released,
                Stop::LeaseLost => Outcome::Lost,
            }
        }
    }
}

/// Polls the handler, and catches what it throws, also from the drop of its finished future.
async fn guarded(future: &mut Option<HandlerFuture>) -> Ended {
    poll_fn(|cx| {
        let Some(running) = future.as_mut() else { return Poll::Pending };
        let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(running).poll(cx)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(result)) => {
                let ended = match drop_quietly(future) {
                    Ok(()) => Ended::Returned(result),
                    Err(panic) => Ended::Panicked(panic),
                };
                Poll::Ready(ended)
            }
            Err(panic) => {
                // The future is spoilt; a second panic from its drop says nothing new.
                drop(drop_quietly(future));
                Poll::Ready(Ended::Panicked(panic))
            }
        }
    })
    .await
}

/// Ends a handler whose run no longer counts: one more poll, for a handler that watches `ctx.cancelled()` and tidies
/// up, whatever it returns; then its future is dropped.
async fn end(future: &mut Option<HandlerFuture>) {
    {
        let mut once = std::pin::pin!(guarded(future));
        poll_fn(|cx| {
            drop(once.as_mut().poll(cx));
            Poll::Ready(())
        })
        .await;
    }
    if let Err(panic) = drop_quietly(future) {
        tracing::warn!(name: "outbox.panic", "a handler panicked while it was dropped: {}", panic_message(&*panic));
    }
}

fn drop_quietly(future: &mut Option<HandlerFuture>) -> Result<(), Box<dyn Any + Send>> {
    let taken = future.take();
    catch_unwind(AssertUnwindSafe(|| drop(taken)))
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

/// Hands the outcome on, whatever happens: a task that is dropped before it has one says so.
struct Report<'s, DB: Backend> {
    session: &'s Arc<Session<DB>>,
    lane: usize,
    lease: Lease,
    began: Instant,
    done: bool,
}

impl<'s, DB: Backend> Report<'s, DB> {
    fn new(session: &'s Arc<Session<DB>>, lane: usize, claimed: &Claimed) -> Self {
        let lease = lease_of(claimed);
        Self { session, lane, lease, began: Instant::now(), done: false }
    }

    fn done(mut self, outcome: Outcome) {
        self.hand_on(outcome);
    }

    fn hand_on(&mut self, outcome: Outcome) {
        self.done = true;
        let finished = Finished { lane: self.lane, lease: self.lease, outcome };
        self.session.ended(finished, self.began.elapsed());
    }
}

impl<DB: Backend> Drop for Report<'_, DB> {
    fn drop(&mut self) {
        if !self.done {
            // The runtime is going down, or the runner itself has a fault: the event was not handled, and nobody runs
            // what comes after it.
            self.hand_on(Outcome::Released);
            self.session.pump();
        }
    }
}

pub(super) fn lease_of(claimed: &Claimed) -> Lease {
    Lease {
        seq: claimed.seq,
        fence: claimed.fence,
        attempts: claimed.attempts,
        max_attempts: claimed.max_attempts,
    }
}
