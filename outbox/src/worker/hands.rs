//! What a worker has in hand: queued, running, finished but not yet written. Plain bookkeeping, no I/O.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Options;
use super::lane::{Lane, MAX_QUEUED, Name};
use super::sweep::Sweep;
use crate::backend::data::{Claimed, Kind, Position};
use crate::event::EventId;
use crate::handler::{Cancellation, Stop};
use crate::registry::{HandlerDef, Registry};

/// How many events one claim takes at most. More gains nothing, see PERF in ARCHITECTURE.md.
pub(super) const CLAIM_BATCH: usize = 500;
/// How many events with an ordering key a claim looks at for each type, unless it sweeps: all of these when somebody
/// says that there is something new, else as many as the last claim showed to be worth it.
const KEYED_LOOKS: std::ops::RangeInclusive<usize> = 50..=1000;
/// An event that waits longer than this in memory is given back.
pub(super) const PREFETCH_WAIT: Duration = Duration::from_secs(5);
/// How many payloads of one type in a row may fail to decode before the type rests.
const UNDECODABLE_IN_A_ROW: u32 = 10;
/// How long such a type rests.
pub(super) const UNDECODABLE_REST: Duration = Duration::from_secs(60);

/// An event from its claim to its settlement.
#[derive(Debug)]
struct Held {
    id: EventId,
    fence: i64,
    suspect: bool,
    ordering_key: Option<String>,
    running: bool,
    cancellation: Cancellation,
}

/// Hashes sequence numbers, by which every event is looked up several times. The database counts them, so nobody chooses
/// them to collide, and one multiplication scatters them enough (Knuth, The Art of Computer Programming, 6.4).
#[derive(Clone, Copy, Debug, Default)]
struct SeqHasher(u64);

type BySeq = BuildHasherDefault<SeqHasher>;

impl Hasher for SeqHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_i64(i64::from(*byte)));
    }

    fn write_i64(&mut self, seq: i64) {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0 ^ seq.cast_unsigned()).wrapping_mul(GOLDEN);
    }

    fn finish(&self) -> u64 {
        // The map takes its place from the low bits, and the high ones are the scattered ones.
        self.0.rotate_left(32)
    }
}

/// Everything in hand.
#[derive(Debug)]
pub(super) struct Hands {
    lanes: Vec<Lane>,
    /// The lane, and which of its names.
    by_type: HashMap<&'static str, (usize, usize)>,
    held: HashMap<i64, Held, BySeq>,
    concurrency: usize,
    running: usize,
    /// How many handlers with a transaction may run, and how many do.
    tx_connections: usize,
    running_tx: usize,
    queued: usize,
    suspects: usize,
    /// The lane where the next claim begins: behind the one that the last claim served first, so that none is always first,
    /// also where there is room for one event at a time.
    claim_turn: usize,
    /// The lane where dealing begins: behind the one that was dealt to last.
    deal_turn: usize,
    sweep: Sweep,
    /// Ordering keys of which an event has ended here since the last claim.
    ended_keys: Vec<String>,
    /// How many events with an ordering key the last claim brought.
    keyed_came: usize,
}

/// What a claim may bring.
#[derive(Debug)]
pub(super) struct Request {
    /// In this claim's order.
    pub(super) kinds: Vec<Kind<'static>>,
    /// Where each belongs: the lane, and which of its names.
    owners: Vec<(usize, usize)>,
    pub(super) sweeps: bool,
    pub(super) limit: usize,
    pub(super) suspects: usize,
    pub(super) ended_keys: Vec<String>,
    pub(super) keyed_looks: Option<usize>,
}

/// What a claim brought of one name: how many, and how far in its order, without and with an ordering key.
#[derive(Clone, Copy, Default)]
struct Came {
    number: usize,
    furthest: Option<Position>,
    keyed: Option<Position>,
}

/// An event that is to run now.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) lane: usize,
    pub(super) def: HandlerDef,
    pub(super) timeout: Duration,
    pub(super) takes_tx: bool,
    pub(super) claimed: Claimed,
    pub(super) cancellation: Cancellation,
}

/// What became of a claimed event on its way in.
#[derive(Debug)]
pub(super) enum Accepted {
    Queued,
    /// In hand already under this very claim: the server forgot it, or somebody undid it by hand, and it is ours again.
    InHand,
    /// A run of it that lost its lease has not ended here: it must not start a second time.
    StillRunning,
    /// No handler takes it.
    Unknown,
}

/// Events whose lease is lost and whose run, in this process, has not ended: it blocks its thread.
static ZOMBIES: LazyLock<Mutex<HashSet<EventId>>> = LazyLock::new(Mutex::default);

fn zombies() -> std::sync::MutexGuard<'static, HashSet<EventId>> {
    ZOMBIES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hands {
    pub(super) fn new(registry: &Registry, options: &Options) -> Self {
        let concurrency = options.concurrency;
        let lanes: Vec<Lane> = registry.handlers().iter().map(|def| Lane::new(def, options)).collect();
        let names = |(index, lane): (usize, &Lane)| {
            let each = lane.names.iter().enumerate();
            each.map(|(place, name)| (name.name, (index, place))).collect::<Vec<_>>()
        };
        let by_type = lanes.iter().enumerate().flat_map(names).collect();
        Self {
            lanes,
            by_type,
            held: HashMap::default(),
            concurrency,
            running: 0,
            tx_connections: options.tx_connections as usize,
            running_tx: 0,
            queued: 0,
            suspects: 0,
            claim_turn: 0,
            deal_turn: 0,
            sweep: Sweep::due_at_once(),
            ended_keys: Vec::new(),
            keyed_came: 0,
        }
    }

    /// What to ask of the database: `None` where nothing is wanted now. Types that the last claim left empty are
    /// reason enough for a claim only when somebody says that time has passed (`look_again`).
    pub(super) fn request(&mut self, look_again: bool, now: Instant) -> Option<Request> {
        let unsettled = self.held.len().saturating_sub(self.running + self.queued);
        if unsettled >= 3 * CLAIM_BATCH {
            return None;
        }
        let limit = self.total_room().min(CLAIM_BATCH);
        if limit == 0 || !(0..self.lanes.len()).any(|lane| self.is_hungry(lane, look_again, now)) {
            return None;
        }
        let order = (0..self.lanes.len()).map(|index| (index + self.claim_turn) % self.lanes.len());
        let sweeps = self.sweep.is_due(now);
        let (mut kinds, mut owners) = (Vec::new(), Vec::new());
        for index in order {
            let lane = &self.lanes[index];
            let asked = lane.asked(look_again || sweeps);
            // Rounded up, so that none is left out: the names together may bring one event too many for each of them,
            // which waits here. No more run at once than may.
            let room = self.room(index, now).div_ceil(asked.len().max(1));
            for place in asked.into_iter().filter(|_| room > 0) {
                let Name { name, mark, keyed_mark, .. } = lane.names[place];
                kinds.push(Kind {
                    event_type: name,
                    version: lane.def.version,
                    room,
                    after: mark.filter(|_| !sweeps),
                    keyed_after: keyed_mark.filter(|_| !sweeps),
                });
                owners.push((index, place));
            }
        }
        Some(Request {
            kinds,
            owners,
            sweeps,
            limit,
            suspects: usize::from(self.suspects == 0),
            ended_keys: std::mem::take(&mut self.ended_keys),
            keyed_looks: (!sweeps).then_some(if look_again {
                *KEYED_LOOKS.end()
            } else {
                (4 * self.keyed_came).clamp(*KEYED_LOOKS.start(), *KEYED_LOOKS.end())
            }),
        })
    }

    /// A lane that could start an event at once, or whose queue has run low.
    fn is_hungry(&self, index: usize, look_again: bool, now: Instant) -> bool {
        let lane = &self.lanes[index];
        let idle =
            lane.queue.is_empty() && lane.running < lane.concurrency && self.running < self.concurrency;
        let low = lane.queue.len() < lane.prefetch() / 2;
        (look_again || !lane.is_dry()) && (idle || low) && self.room(index, now) > 0
    }

    fn room(&self, index: usize, now: Instant) -> usize {
        let lane = &self.lanes[index];
        if lane.rests_until.is_some_and(|until| now < until) {
            return 0;
        }
        (lane.concurrency + lane.prefetch()).saturating_sub(lane.running + lane.queue.len())
    }

    fn total_room(&self) -> usize {
        let prefetch: usize = self.lanes.iter().map(Lane::prefetch).sum();
        (self.concurrency + prefetch.min(MAX_QUEUED)).saturating_sub(self.running + self.queued)
    }

    /// The next claim is to be a sweep.
    pub(super) fn sweep_next(&mut self) {
        self.sweep = Sweep::due_at_once();
    }

    /// Notes which types a claim left empty, and how far it came.
    pub(super) fn note_claim(&mut self, request: &Request, claimed: &[Claimed], sent: Instant, now: Instant) {
        let mut got: HashMap<(usize, usize), Came> = HashMap::new();
        for event in claimed {
            if let Some(owner) = self.by_type.get(event.event_type.as_str()) {
                let came = got.entry(*owner).or_default();
                came.number += 1;
                let mark = if event.ordering_key.is_some() { &mut came.keyed } else { &mut came.furthest };
                // What a worker died with is claimed out of order.
                if event.crashes == 0 {
                    *mark = (*mark).max(Some(event.position()));
                }
            }
        }
        // In the order in which they were asked for.
        if let Some((lane, _)) = request.owners.iter().find(|owner| got.contains_key(owner)) {
            self.claim_turn = (lane + 1) % self.lanes.len();
        }
        self.keyed_came = claimed.iter().filter(|event| event.ordering_key.is_some()).count();
        let cut_short = claimed.len() >= request.limit;
        for (owner, kind) in request.owners.iter().zip(&request.kinds) {
            let name = &mut self.lanes[owner.0].names[owner.1];
            let Came { number, furthest, keyed } = got.get(owner).copied().unwrap_or_default();
            name.dry = !cut_short && number < kind.room;
            // A sweep that left some behind is gone on with from where it ended.
            let goes_back = request.sweeps && !name.dry;
            let moved = |mark: Option<Position>, came: Option<Position>| {
                if goes_back && came.is_some() { came } else { mark.max(came) }
            };
            name.mark = moved(name.mark, furthest);
            // What waits in front of this one for others of its key is found by its key.
            name.keyed_mark = moved(name.keyed_mark, keyed);
        }
        if request.sweeps {
            self.sweep.ended(now, now.saturating_duration_since(sent));
        }
    }

    /// Takes a claimed event in.
    pub(super) fn accept(&mut self, claimed: Claimed, now: Instant) -> (Accepted, Option<Claimed>) {
        let Some((lane, _)) = self.by_type.get(claimed.event_type.as_str()).copied() else {
            return (Accepted::Unknown, Some(claimed));
        };
        if self.held.get(&claimed.seq).is_some_and(|held| held.fence == claimed.fence) {
            return (Accepted::InHand, None);
        }
        if self.held.contains_key(&claimed.seq) || zombies().contains(&claimed.id) {
            return (Accepted::StillRunning, Some(claimed));
        }
        let suspect = claimed.crashes > 0;
        let ordering_key = claimed.ordering_key.clone();
        let held = Held {
            id: claimed.id,
            fence: claimed.fence,
            suspect,
            ordering_key,
            running: false,
            cancellation: Cancellation::default(),
        };
        self.held.insert(claimed.seq, held);
        self.suspects += usize::from(suspect);
        self.queued += 1;
        self.lanes[lane].queue.push_back((claimed, now));
        (Accepted::Queued, None)
    }

    /// The next event that has a slot, dealt round the lanes.
    pub(super) fn next(&mut self) -> Option<Start> {
        if self.running >= self.concurrency || self.queued == 0 {
            return None;
        }
        let count = self.lanes.len();
        let tx_is_free = self.running_tx < self.tx_connections;
        let free = |lane: &Lane| {
            !lane.queue.is_empty() && lane.running < lane.concurrency && (tx_is_free || !lane.takes_tx)
        };
        let index = (0..count)
            .map(|index| (index + self.deal_turn) % count)
            .find(|index| free(&self.lanes[*index]))?;
        self.deal_turn = (index + 1) % count;
        let lane = &mut self.lanes[index];
        let (claimed, _) = lane.queue.pop_front()?;
        self.queued -= 1;
        let held = self.held.get_mut(&claimed.seq)?;
        held.running = true;
        lane.running += 1;
        self.running += 1;
        self.running_tx += usize::from(lane.takes_tx);
        Some(Start {
            lane: index,
            def: lane.def.clone(),
            timeout: lane.timeout,
            takes_tx: lane.takes_tx,
            claimed,
            cancellation: held.cancellation.clone(),
        })
    }

    /// A run has ended; its slot is free, its outcome not yet written. `over`: the whole session's lease is lost.
    pub(super) fn ended(&mut self, lane: usize, seq: i64, took: Duration, over: bool) {
        const WEIGHT: f64 = 0.1;
        self.running -= 1;
        let lane = &mut self.lanes[lane];
        lane.running -= 1;
        self.running_tx -= usize::from(lane.takes_tx);
        let took = took.as_secs_f64();
        lane.mean = Some(lane.mean.map_or(took, |mean| mean + WEIGHT * (took - mean)));
        if let Some(held) = self.held.get_mut(&seq) {
            held.running = false;
            if over {
                zombies().remove(&held.id);
            }
        }
    }

    /// An event is settled, or not ours to settle; whether it is over, so that the next of its key may go.
    ///
    /// The fence tells a claim that is given back from an earlier run of the same event that has not ended here.
    pub(super) fn settled(&mut self, seq: i64, fence: i64, over: bool) {
        let Some(held) = self.held.get(&seq).filter(|held| held.fence == fence) else { return };
        let next_of_key = over && held.ordering_key.is_some();
        if held.suspect || next_of_key {
            // Another one may be claimed now that the last claim was not allowed to see.
            self.lanes.iter_mut().flat_map(|lane| &mut lane.names).for_each(|name| name.dry = false);
        }
        let Some(held) = self.held.remove(&seq) else { return };
        self.suspects -= usize::from(held.suspect);
        // What has no place is found by the next sweep.
        if next_of_key && self.ended_keys.len() < MAX_QUEUED {
            self.ended_keys.extend(held.ordering_key);
        }
    }

    /// Counts payloads that do not decode; `true` when the type begins to rest.
    pub(super) fn note_decoded(&mut self, lane: usize, decoded: bool, now: Instant) -> bool {
        let lane = &mut self.lanes[lane];
        if decoded {
            lane.undecodable = 0;
            return false;
        }
        lane.undecodable += 1;
        let rests = lane.undecodable >= UNDECODABLE_IN_A_ROW;
        if rests {
            // After the rest a single one more is enough for the next.
            lane.undecodable = UNDECODABLE_IN_A_ROW - 1;
            lane.rests_until = Some(now + UNDECODABLE_REST);
        }
        rests
    }

    /// Whether the lane rests because its payloads do not decode.
    pub(super) fn rests(&self, lane: usize, now: Instant) -> bool {
        self.lanes[lane].rests_until.is_some_and(|until| now < until)
    }

    /// Takes out of the queues what waits too long, or belongs to a lane that rests; everything, when `all`.
    pub(super) fn take_back(&mut self, all: bool, now: Instant) -> Vec<Claimed> {
        let mut back = Vec::new();
        for lane in &mut self.lanes {
            let everything = all || lane.rests_until.is_some_and(|until| now < until);
            while let Some((_, since)) = lane.queue.front() {
                if !everything && now.saturating_duration_since(*since) < PREFETCH_WAIT {
                    break;
                }
                back.extend(lane.queue.pop_front().map(|(claimed, _)| claimed));
            }
        }
        self.queued -= back.len();
        back
    }

    /// What is held, for the heartbeat: (seq, fence).
    pub(super) fn held(&self) -> Vec<(i64, i64)> {
        self.held.iter().map(|(seq, held)| (*seq, held.fence)).collect()
    }

    /// Leases that are not ours any more: runs are stopped, and what waits is taken out.
    /// A newer claim of the same event stays: the fence tells it.
    pub(super) fn lose(&mut self, leases: &[(i64, i64)]) -> Vec<Claimed> {
        let lost: HashSet<(i64, i64)> = leases.iter().copied().collect();
        let running = |(seq, fence): &(i64, i64)| {
            self.held.get(seq).filter(|held| held.running && held.fence == *fence)
        };
        for held in lost.iter().filter_map(running) {
            held.cancellation.stop(Stop::LeaseLost);
        }
        let mut dropped = Vec::new();
        for lane in &mut self.lanes {
            let (out, keep) =
                lane.queue.drain(..).partition(|(claimed, _)| lost.contains(&(claimed.seq, claimed.fence)));
            lane.queue = keep;
            dropped.extend(VecDeque::into_iter(out).map(|(claimed, _)| claimed));
        }
        self.queued -= dropped.len();
        dropped
    }

    /// Stops every run.
    pub(super) fn stop_all(&mut self, stop: Stop) {
        for held in self.held.values().filter(|held| held.running) {
            held.cancellation.stop(stop);
            if stop == Stop::LeaseLost {
                zombies().insert(held.id);
            }
        }
    }

    /// How many handlers run.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    /// How many events are in hand in any way.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }
}
