//! A handler's lane: its events in memory, how fast they go, and how far its claims came.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Options;
use crate::backend::data::{Claimed, Position};
use crate::registry::HandlerDef;

/// How many events wait in memory at most, over all handlers.
pub(super) const MAX_QUEUED: usize = 2000;
/// What is claimed beyond the free slots should start within this time.
const PREFETCH_HORIZON: Duration = Duration::from_secs(1);

/// One handler and its events.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) def: HandlerDef,
    pub(super) concurrency: usize,
    pub(super) timeout: Duration,
    pub(super) takes_tx: bool,
    pub(super) running: usize,
    pub(super) queue: VecDeque<(Claimed, Instant)>,
    /// The mean time of a run in seconds, once there is one.
    pub(super) mean: Option<f64>,
    /// The event type, and the names that it had before.
    pub(super) names: Vec<Name>,
    pub(super) undecodable: u32,
    pub(super) rests_until: Option<Instant>,
}

/// A name under which events of a lane are stored.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) name: &'static str,
    /// The last claim left nothing due of this name.
    pub(super) dry: bool,
    /// The furthest event that came, in the order of this name: a claim that is no sweep begins behind it.
    pub(super) mark: Option<Position>,
    /// The same of events with an ordering key.
    pub(super) keyed_mark: Option<Position>,
}

impl Lane {
    pub(super) fn new(def: &HandlerDef, options: &Options) -> Self {
        let takes_tx = def.transaction().is_some();
        let limits = [def.concurrency, takes_tx.then_some(options.tx_connections)];
        let own = limits.into_iter().flatten().map(|limit| limit as usize);
        Self {
            def: def.clone(),
            concurrency: own.fold(options.concurrency, usize::min),
            timeout: options.timeout_of(def),
            takes_tx,
            running: 0,
            queue: VecDeque::new(),
            mean: None,
            names: def.names().map(|name| Name { name, dry: false, mark: None, keyed_mark: None }).collect(),
            undecodable: 0,
            rests_until: None,
        }
    }

    /// The last claims left nothing due.
    pub(super) fn is_dry(&self) -> bool {
        self.names.iter().all(|name| name.dry)
    }

    /// Which of its names a claim asks for. Where there is a choice not those that were empty, so that an old name that
    /// has run out takes nothing of the room.
    pub(super) fn asked(&self, all: bool) -> Vec<usize> {
        let all = all || self.is_dry();
        (0..self.names.len()).filter(|place| all || !self.names[*place].dry).collect()
    }

    /// How many events beyond the slots should start within the horizon.
    pub(super) fn prefetch(&self) -> usize {
        let Some(mean) = self.mean else { return 0 };
        let starts = self.concurrency as f64 * PREFETCH_HORIZON.as_secs_f64() / mean.max(1e-6);
        // A run as long as the horizon gains nothing from waiting here: others could take the event.
        if starts < self.concurrency as f64 { 0 } else { (starts as usize).min(MAX_QUEUED / 2) }
    }
}
