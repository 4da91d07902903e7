//! Waking the workers of this process: an enqueue says "soon", a commit through the handle says "now".

use std::sync::LazyLock;

use tokio::sync::watch;

/// How often each was said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nudges {
    pub(crate) soon: u64,
    pub(crate) now: u64,
}

static NUDGES: LazyLock<watch::Sender<Nudges>> = LazyLock::new(|| watch::Sender::new(Nudges::default()));

/// Something was written that will be committed in the next milliseconds.
pub(crate) fn soon() {
    NUDGES.send_modify(|nudges| nudges.soon = nudges.soon.wrapping_add(1));
}

/// Something was committed.
pub(crate) fn now() {
    NUDGES.send_modify(|nudges| nudges.now = nudges.now.wrapping_add(1));
}

/// Hears what is said from now on.
pub(crate) fn listen() -> watch::Receiver<Nudges> {
    NUDGES.subscribe()
}
