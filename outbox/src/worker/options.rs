//! What of a worker can be set, and the checks of it.

use std::time::Duration;

use super::hands::PREFETCH_WAIT;
use super::{DEFAULT_TIMEOUT, RunError};
use crate::backend::Backend;
use crate::registry::{HandlerDef, Registry};

/// What becomes of completed events. Dead letters always stay until somebody requeues, discards or prunes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retention {
    /// They stay this long, and are then deleted in small batches.
    Keep(Duration),
    /// They are deleted as they complete: less to write, nothing to look at afterwards.
    DeleteOnSuccess,
    /// They stay.
    KeepForever,
}

impl Retention {
    pub(super) fn deletes_at_once(self) -> bool {
        self == Self::DeleteOnSuccess
    }
}

impl Default for Retention {
    /// Seven days.
    fn default() -> Self {
        Self::Keep(Duration::from_secs(7 * 24 * 3600))
    }
}

/// The timeout of handlers that name none and keep all others from writing: shorter than producers wait for the lock.
const TIMEOUT_ALONE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) concurrency: usize,
    pub(crate) timeout: Duration,
    pub(crate) poll_interval: Duration,
    pub(crate) listen: bool,
    pub(crate) lease: Duration,
    pub(crate) stuck_after: Duration,
    pub(crate) grace: Duration,
    pub(crate) tx_connections: u32,
    /// Where an open transaction keeps all others from writing.
    writes_alone: bool,
    pub(crate) retention: Retention,
    pub(crate) unknown_after: Option<Duration>,
    pub(crate) expected: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 64,
            timeout: DEFAULT_TIMEOUT,
            poll_interval: Duration::from_millis(100),
            listen: false,
            lease: Duration::from_secs(60),
            stuck_after: Duration::from_secs(600),
            grace: Duration::from_secs(25),
            tx_connections: 8,
            writes_alone: false,
            retention: Retention::default(),
            unknown_after: None,
            expected: Vec::new(),
        }
    }
}

impl Options {
    /// For one-shot calls, which set nothing: a stuck threshold that suits the longest handler.
    pub(super) fn for_one_shot(registry: &Registry) -> Self {
        let mut options = Self::default();
        let needed = PREFETCH_WAIT + options.longest_timeout(registry) + options.grace;
        options.stuck_after = options.stuck_after.max(needed.saturating_mul(2));
        options
    }

    pub(super) fn longest_timeout(&self, registry: &Registry) -> Duration {
        registry.handlers().iter().map(|def| self.timeout_of(def)).max().unwrap_or(self.timeout)
    }

    /// What this database makes of them.
    pub(super) fn on<DB: Backend>(mut self) -> Self {
        self.writes_alone = DB::WRITES_ALONE;
        if DB::WRITES_ALONE {
            self.tx_connections = self.tx_connections.min(1);
        }
        self
    }

    /// How long a run of this handler may take.
    pub(super) fn timeout_of(&self, def: &HandlerDef) -> Duration {
        let otherwise = if self.writes_alone && def.transaction().is_some() {
            self.timeout.min(TIMEOUT_ALONE)
        } else {
            self.timeout
        };
        def.timeout.unwrap_or(otherwise)
    }

    pub(super) fn check(&self, registry: &Registry) -> Result<(), RunError> {
        const MAX_UNKNOWN: Duration = Duration::from_secs(90 * 24 * 3600);
        let refuse = |option, problem: String| Err(RunError::Option { option, problem });
        if self.concurrency == 0 {
            return refuse("concurrency", "is 0, which runs nothing: use 1 or more".to_owned());
        }
        if self.poll_interval < Duration::from_millis(1) {
            return refuse(
                "poll_interval",
                "is below 1 ms, which would only poll: use 1 ms or more".to_owned(),
            );
        }
        if self.lease < Duration::from_millis(100) {
            return refuse(
                "lease",
                "is below 100 ms, which no heartbeat can keep: use some seconds or more".to_owned(),
            );
        }
        if self.unknown_after.is_some_and(|after| after.is_zero() || after > MAX_UNKNOWN) {
            return refuse("unknown_after", "must be above 0 and at most 90 days".to_owned());
        }
        if self.tx_connections == 0 {
            return refuse(
                "tx_connections",
                "is 0, which runs no handler with a transaction: use 1 or more".to_owned(),
            );
        }
        for def in registry.handlers() {
            let timeout = self.timeout_of(def);
            if self.writes_alone && def.transaction().is_some() && timeout > self.lease / 2 {
                return refuse(
                    "timeout",
                    format!(
                        "of handler {def} is {timeout:?}; while its transaction is open nobody else writes to this \
                         database, not even this worker's heartbeat: at most half the lease, {:?}",
                        self.lease / 2
                    ),
                );
            }
            let needed = PREFETCH_WAIT + timeout + self.grace;
            if self.stuck_after <= needed {
                return refuse(
                    "stuck_after",
                    format!(
                        "is {:?}, and handler {def} may rightly hold an event for {needed:?} (5s in memory + its timeout \
                         {timeout:?} + the grace time {:?}): make it longer, or the timeout shorter",
                        self.stuck_after, self.grace
                    ),
                );
            }
        }
        Ok(())
    }
}

/// The setters that `Worker` and `Run` have in common, on a field `options`.
macro_rules! builder_methods {
    () => {
        /// How many handlers run at once in this worker, 64 by default; a handler's own limit holds beside it.
        pub fn concurrency(mut self, handlers: usize) -> Self {
            self.options.concurrency = handlers;
            self
        }

        /// How many handlers that take a [`Tx`]($crate::Tx) run at once, each on a connection of its own; 8 by default,
        /// never more than one on SQLite.
        pub fn tx_connections(mut self, connections: u32) -> Self {
            self.options.tx_connections = connections;
            self
        }

        /// The timeout of handlers that name none, 90 s by default.
        pub fn timeout(mut self, timeout: std::time::Duration) -> Self {
            self.options.timeout = timeout;
            self
        }

        /// How often an idle worker looks for events that other processes enqueued, 100 ms by default.
        pub fn poll_interval(mut self, interval: std::time::Duration) -> Self {
            self.options.poll_interval = interval;
            self
        }

        /// Hears at once of what other processes enqueue, and tells them of what this one does, over one more
        /// connection: LISTEN and NOTIFY on PostgreSQL, a look at the file's version every 5 ms on SQLite. Polling goes
        /// on beside it and does not depend on it. A producer without a worker tells by
        /// [`Outbox::notifier`]($crate::Outbox::notifier).
        ///
        /// Needs a direct connection to PostgreSQL: through a pooler in transaction mode nothing is heard.
        pub fn listen(mut self) -> Self {
            self.options.listen = true;
            self
        }

        /// How long after this worker's last heartbeat its events run elsewhere, 60 s by default. The heartbeat is
        /// six times as frequent; a worker that cannot renew stops its handlers before.
        pub fn lease(mut self, lease: std::time::Duration) -> Self {
            self.options.lease = lease;
            self
        }

        /// After which time an event whose handler does not end is taken from this worker although it lives, 10 min
        /// by default. Must be longer than any handler may rightly take.
        pub fn stuck_after(mut self, threshold: std::time::Duration) -> Self {
            self.options.stuck_after = threshold;
            self
        }

        /// How long running handlers get at shutdown, 25 s by default; then they are dropped and their events go
        /// back, with no attempt spent.
        pub fn grace(mut self, grace: std::time::Duration) -> Self {
            self.options.grace = grace;
            self
        }

        /// What becomes of completed events, seven days by default.
        pub fn retention(mut self, retention: $crate::Retention) -> Self {
            self.options.retention = retention;
            self
        }

        /// Events of a type that no worker seen within this time has a handler for become dead letters, after they
        /// have waited this long. Off by default: they wait, and are reported. At most 90 days.
        pub fn unknown_after(mut self, age: std::time::Duration) -> Self {
            self.options.unknown_after = Some(age);
            self
        }

        /// Event types whose handlers must be linked into this program; else it does not start. The remedy against
        /// handlers that vanish because nothing refers to their crate.
        pub fn expect_handlers<I: IntoIterator<Item: Into<String>>>(mut self, event_types: I) -> Self {
            self.options.expected.extend(event_types.into_iter().map(Into::into));
            self
        }
    };
}
pub(crate) use builder_methods;
