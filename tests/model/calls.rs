//! Workers: a one-shot call is a worker whose claims the schedule decides, and whose runs wait for it.

use std::time::Duration;

use outbox::{BatchOptions, Counts, Outbox, Processed, RunError, Status};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;

use crate::database::{Database, Row, stored};
use crate::handlers::{Begun, Gate, Gates};
use crate::reference::{Reference, Run};
use crate::schedule::Ending;
use crate::world::{Checked, World, same};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(8);

/// A one-shot call that is under way.
pub struct Call {
    slot: usize,
    pub worker: usize,
    pub task: JoinHandle<Result<Answered, RunError>>,
    open: Vec<(Run, Gate)>,
    /// What it has to answer.
    counts: Counts,
}

/// How the reference judges what a call has claimed.
type ClaimedSo = fn(&mut Reference, usize, &[usize]) -> Checked<Vec<Run>>;

/// What a call answered.
#[derive(Debug, PartialEq, Eq)]
pub enum Answered {
    Batch(Counts),
    One(Processed),
}

impl<DB: Database> World<DB> {
    /// Whether a worker that lives has its hands full there.
    fn is_busy(&self, slot: usize) -> bool {
        self.calls.iter().any(|call| call.slot == slot && self.reference.renews(call.worker))
    }

    pub async fn claim(&mut self, slot: usize, up_to: usize) -> Checked {
        if self.is_busy(slot) {
            return Ok(());
        }
        let mut counts = Counts::default();
        counts.reaped = self.reference.reap();
        let number = self.reference.claims(up_to);
        // A call that gets less than it asks for looks again and again: this one asks for what there is.
        let options = BatchOptions::new().batch_size(if number > 0 { number } else { up_to });
        let call =
            |outbox: Outbox<DB>| async move { outbox.process_batch(options).await.map(Answered::Batch) };
        self.call(slot, number, counts, call, Reference::claim_batch).await
    }

    pub async fn claim_one(&mut self, slot: usize, event: usize) -> Checked {
        let Some(event) = self.known(event).filter(|_| !self.is_busy(slot)) else { return Ok(()) };
        let id = self.ids[event];
        if let Some(processed) = self.reference.look(event) {
            let answer = self.outbox.process_event(id).await.map_err(|error| error.to_string())?;
            return same("process_event", processed, answer);
        }
        let call = move |outbox: Outbox<DB>| async move { outbox.process_event(id).await.map(Answered::One) };
        self.call(slot, 1, Counts::default(), call, Reference::claim).await
    }

    pub async fn reap(&mut self) -> Checked {
        let mut counts = Counts::default();
        counts.reaped = self.reference.reap();
        let options = BatchOptions::new().batch_size(0);
        let answer = self.outbox.process_batch(options).await.map_err(|error| error.to_string())?;
        same("process_batch", counts, answer)
    }

    /// A one-shot call that is to get this many events.
    async fn call<F>(
        &mut self,
        slot: usize,
        number: usize,
        counts: Counts,
        call: impl FnOnce(Outbox<DB>) -> F,
        claim: ClaimedSo,
    ) -> Checked
    where
        F: Future<Output = Result<Answered, RunError>> + Send + 'static,
    {
        let (gates, mut reports) = Gates::new();
        let task = tokio::spawn(call(self.outbox.clone().state(gates)));
        let worker = self.reference.new_worker();
        self.workers.push(None);
        self.calls.push(Call { slot, worker, task, open: Vec::new(), counts });
        let begun = begun(&mut reports, number).await?;
        let events: Vec<usize> = begun.iter().map(|begun| begun.event).collect();
        for begun in &begun {
            let event = &self.reference.events()[begun.event];
            same("the context", (event.attempts, event.crashes), (begun.attempts, begun.crashes))?;
        }
        let runs = claim(&mut self.reference, worker, &events)?;
        let gates = begun.into_iter().map(|begun| begun.gate);
        let (open, sealed): (Vec<_>, Vec<_>) =
            runs.into_iter().zip(gates).partition(|(_, gate)| matches!(gate, Gate::Waits(_)));
        let last = self.calls.len() - 1;
        self.calls[last].open = open;
        self.learn_name(last).await;
        for (run, gate) in sealed {
            self.open(last, run, gate, Ending::Succeed).await?;
        }
        self.close_if_done(last).await
    }

    /// What a worker is called is known from what it holds.
    async fn learn_name(&mut self, call: usize) {
        let Call { worker, open, .. } = &self.calls[call];
        if let Some((run, _)) = open.first() {
            let id = self.ids[run.event].to_string();
            let rows = stored(self.outbox.pool()).await.rows;
            self.workers[*worker] = rows.into_iter().find(|row| row.id == id).and_then(|row| row.owner);
        }
    }

    pub async fn end(&mut self, run: usize, ending: Ending) -> Checked {
        let open = |call: usize| (0..self.calls[call].open.len()).map(move |run| (call, run));
        let all: Vec<(usize, usize)> = (0..self.calls.len()).flat_map(open).collect();
        let Some(number) = run.checked_rem(all.len()) else { return Ok(()) };
        let (call, run) = all[number];
        self.end_one(call, run, ending).await
    }

    pub async fn end_one(&mut self, call: usize, run: usize, ending: Ending) -> Checked {
        let (run, gate) = self.calls[call].open.remove(run);
        self.open(call, run, gate, ending).await?;
        self.close_if_done(call).await
    }

    /// Lets a run end, and waits until that is written. What is fenced off may come to nothing later.
    async fn open(&mut self, call: usize, run: Run, gate: Gate, ending: Ending) -> Checked {
        let is_leased = self.reference.is_leased(run);
        let ending = match gate {
            Gate::Sealed(ending) => ending,
            Gate::Waits(gate) => {
                gate.send(ending).map(|()| ending).map_err(|_| "a run was dropped".to_owned())?
            }
        };
        self.reference.end(run, ending, &mut self.calls[call].counts);
        if is_leased { self.written(run).await } else { Ok(()) }
    }

    /// Waits until a run's outcome has been written.
    async fn written(&self, run: Run) -> Checked {
        let id = self.ids[run.event].to_string();
        let waiting = async {
            let is_held =
                |row: &Row| row.id == id && row.status == Status::Processing && row.fence == run.fence;
            while stored(self.outbox.pool()).await.rows.iter().any(is_held) {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.map_err(|_| format!("the outcome of event {} is not written", run.event))
    }

    /// A call whose last run has ended answers, and its worker is gone.
    async fn close_if_done(&mut self, call: usize) -> Checked {
        if !self.calls[call].open.is_empty() {
            return Ok(());
        }
        let Call { mut task, counts, .. } = self.calls.remove(call);
        let Ok(answer) = tokio::time::timeout(PATIENCE, &mut task).await else {
            task.abort();
            return Err("a call that has nothing left to do does not answer".to_owned());
        };
        let answer = answer.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let expected = match answer {
            Answered::Batch(_) => Answered::Batch(counts),
            Answered::One(_) => Answered::One(processed(counts)),
        };
        same("the call's answer", expected, answer)
    }

    pub fn crash(&mut self, slot: usize) -> Checked {
        let lives = |call: &&Call| call.slot == slot && self.reference.renews(call.worker);
        if let Some(worker) = self.calls.iter().find(lives).map(|call| call.worker) {
            self.reference.crash(worker);
        }
        Ok(())
    }
}

/// The reports of as many runs as are to begin, and of no more.
async fn begun(reports: &mut UnboundedReceiver<Begun>, number: usize) -> Checked<Vec<Begun>> {
    let mut begun = Vec::new();
    while begun.len() < number {
        match tokio::time::timeout(PATIENCE, reports.recv()).await {
            Ok(Some(report)) => begun.push(report),
            _ => return Err(format!("{} events began, and {number} could", begun.len())),
        }
    }
    if number > 0 {
        return Ok(begun);
    }
    // The call gets nothing, and ends.
    match tokio::time::timeout(PATIENCE, reports.recv()).await {
        Ok(None) => Ok(begun),
        Ok(Some(report)) => Err(format!("event {} began, and nothing could", report.event)),
        Err(_) => Err("a call that gets nothing does not end".to_owned()),
    }
}

/// The one count that is not zero says what became of the one event.
fn processed(counts: Counts) -> Processed {
    match counts {
        Counts { completed: 1, .. } => Processed::Completed,
        Counts { dead_lettered: 1, .. } => Processed::DeadLettered,
        Counts { timed_out: 1, .. } => Processed::TimedOut,
        Counts { retried: 1, .. } => Processed::Retried,
        Counts { snoozed: 1, .. } => Processed::Snoozed,
        _ => Processed::LeaseLost,
    }
}
