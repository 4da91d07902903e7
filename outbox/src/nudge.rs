//! Waking the workers of this process: an enqueue says "soon", a commit through the handle says "now", and what other
//! processes say is heard.

use std::sync::LazyLock;

use tokio::sync::watch;

use crate::backend::signals::Sign;

/// How often each was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nudges {
    /// In this process, of a transaction that commits in the next milliseconds.
    pub(crate) soon: u64,
    /// In this process, of a commit.
    pub(crate) now: u64,
    /// By other processes: never told to them again.
    pub(crate) heard_soon: u64,
    pub(crate) heard_now: u64,
}

impl Nudges {
    /// Whether this process has said something since.
    pub(crate) fn said_more_than(&self, before: &Self) -> bool {
        (self.soon, self.now) != (before.soon, before.now)
    }

    /// Whether something is there to be seen since.
    pub(crate) fn is_now_since(&self, before: &Self) -> bool {
        (self.now, self.heard_now) != (before.now, before.heard_now)
    }

    /// Whether something is going to be there since.
    pub(crate) fn is_soon_since(&self, before: &Self) -> bool {
        (self.soon, self.heard_soon) != (before.soon, before.heard_soon)
    }
}

static NUDGES: LazyLock<watch::Sender<Nudges>> = LazyLock::new(|| watch::Sender::new(Nudges::default()));

fn count(counter: impl FnOnce(&mut Nudges) -> &mut u64) {
    NUDGES.send_modify(|nudges| {
        let counter = counter(nudges);
        *counter = counter.wrapping_add(1);
    });
}

/// Something was written that will be committed in the next milliseconds.
pub(crate) fn soon() {
    count(|nudges| &mut nudges.soon);
}

/// Something was committed.
pub(crate) fn now() {
    count(|nudges| &mut nudges.now);
}

/// Another process said so.
pub(crate) fn heard(sign: Sign) {
    count(|nudges| match sign {
        Sign::Soon => &mut nudges.heard_soon,
        Sign::Now => &mut nudges.heard_now,
    });
}

/// Hears what is said from now on.
pub(crate) fn listen() -> watch::Receiver<Nudges> {
    NUDGES.subscribe()
}
