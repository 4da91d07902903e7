//! The handlers of this program: collected at link time, checked at start.

#[cfg(feature = "sql")]
use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use schemars::{Schema, SchemaGenerator};

use crate::event::{self, Event};
use crate::handler::{Delivery, Failure, Requirements, States, TransactionOf};
use crate::retry::Backoff;
use crate::{payload, upcast};

/// The future of one run of a handler.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// One handler: the event type that it takes, its options, and its erased function.
///
/// The attribute [`outbox_handler`](crate::outbox_handler) makes one and submits it to the program's registry.
#[derive(Clone, Debug)]
pub struct HandlerDef {
    pub(crate) event_type: &'static str,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) version: u32,
    pub(crate) max_attempts: u32,
    pub(crate) name: &'static str,
    pub(crate) file: &'static str,
    pub(crate) line: u32,
    pub(crate) timeout: Option<Duration>,
    pub(crate) concurrency: Option<u32>,
    pub(crate) backoff: Backoff,
    pub(crate) requires: fn(&mut Requirements<'_>),
    pub(crate) schema: fn() -> Schema,
    pub(crate) older_schemas: fn() -> Vec<(u32, Schema)>,
    pub(crate) decodes: fn(&str) -> bool,
    pub(crate) run: fn(Delivery) -> HandlerFuture,
}

inventory::collect!(HandlerDef);

impl HandlerDef {
    /// A handler with default options. `name` is its path; `file` and `line` are where it stands.
    pub const fn new<E: Event>(
        name: &'static str,
        file: &'static str,
        line: u32,
        run: fn(Delivery) -> HandlerFuture,
    ) -> Self {
        Self {
            event_type: E::EVENT_TYPE,
            aliases: E::ALIASES,
            version: E::VERSION,
            max_attempts: E::MAX_ATTEMPTS,
            name,
            file,
            line,
            timeout: None,
            concurrency: None,
            backoff: Backoff::DEFAULT,
            requires: |_| {},
            schema: || SchemaGenerator::default().into_root_schema_for::<E>(),
            older_schemas: upcast::schemas::<E>,
            decodes: |text| payload::decode::<E>(text).is_ok(),
            run,
        }
    }

    /// How long one run may take.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How many runs at a time one worker may have.
    pub const fn concurrency(mut self, concurrency: u32) -> Self {
        self.concurrency = Some(concurrency);
        self
    }

    /// How long a failed event waits.
    pub const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// What the handler's extractors need.
    pub const fn requires(mut self, requires: fn(&mut Requirements<'_>)) -> Self {
        self.requires = requires;
        self
    }

    /// The name of the event type that it handles.
    pub fn event_type(&self) -> &'static str {
        self.event_type
    }

    /// The names that the event type had before; events stored under them are handled as well.
    pub fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    /// Every name under which it handles events, the present one first.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        event::names(self.event_type, self.aliases)
    }

    /// Whether it handles events that are stored under this name.
    pub(crate) fn handles(&self, event_type: &str) -> bool {
        self.names().any(|name| name == event_type)
    }

    /// By what handlers are put in order, for everything that prints, claims or compares.
    pub(crate) fn order(&self) -> (&'static str, &'static str, u32) {
        (self.event_type, self.file, self.line)
    }

    /// The newest version of the payload that it handles.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The JSON Schema of the payload.
    pub fn payload_schema(&self) -> Schema {
        (self.schema)()
    }

    /// The database of the transaction that its function takes, if it takes one.
    pub(crate) fn transaction(&self) -> Option<TransactionOf> {
        let states = States::default();
        let mut requirements = Requirements::new(&states);
        (self.requires)(&mut requirements);
        requirements.lent_transaction()
    }

    /// The versions from which an upcast leads to the payload, each with the JSON Schema of what it was.
    pub fn older_payload_schemas(&self) -> Vec<(u32, Schema)> {
        (self.older_schemas)()
    }

    /// The path of the handler function.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Where the handler stands, as `file:line`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

impl fmt::Display for HandlerDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` for `{}` ({}:{})", self.name, self.event_type, self.file, self.line)
    }
}

/// A set of handlers, at most one for each event type.
///
/// By default it is what the linker found, [`linked`](Self::linked). A platform without link-time registration, or a
/// program that wants its handlers listed in one place, names them:
///
/// ```
/// # use outbox::{HandlerResult, Registry, outbox_handler};
/// mod billing {
///     # use outbox::{HandlerResult, outbox_handler};
///     # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
///     # pub struct Invoice { cents: i64 }
///     #[outbox_handler("doc.registry", register = false)]
///     pub async fn push_invoice(invoice: Invoice) -> HandlerResult {
///         println!("{} cents", invoice.cents);
///         Ok(())
///     }
/// }
///
/// let registry = Registry::empty().with(outbox::handler!(billing::push_invoice));
/// assert_eq!(registry.handlers().len(), 1);
/// let run = outbox::run().registry(registry); // or Outbox::registry
/// # drop(run);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Registry {
    handlers: Vec<HandlerDef>,
}

impl Registry {
    /// Every handler that is linked into this program, but those with `register = false`.
    ///
    /// A crate that nothing refers to is not linked, and its handlers are not here: name it once, `use handlers as _;`.
    pub fn linked() -> Self {
        let mut handlers: Vec<HandlerDef> = inventory::iter::<HandlerDef>.into_iter().cloned().collect();
        // The linker's order is its own affair; everything that prints or claims wants a stable one.
        handlers.sort_by_key(HandlerDef::order);
        Self { handlers }
    }

    /// A registry without handlers, for those that are added with [`with`](Self::with).
    pub fn empty() -> Self {
        Self::default()
    }

    /// Adds one handler.
    #[must_use]
    pub fn with(mut self, handler: HandlerDef) -> Self {
        self.handlers.push(handler);
        self
    }

    /// Keeps only the handlers for which this says yes: for a process that is to serve a part of the event types.
    #[must_use]
    pub fn retain(mut self, keep: impl FnMut(&HandlerDef) -> bool) -> Self {
        self.handlers.retain(keep);
        self
    }

    /// The handlers.
    pub fn handlers(&self) -> &[HandlerDef] {
        &self.handlers
    }

    /// The handler of events that are stored under this name.
    pub(crate) fn handler_of(&self, event_type: &str) -> Option<&HandlerDef> {
        self.handlers.iter().find(|def| def.handles(event_type))
    }

    /// Checks the whole set: there are handlers, one for each type, each has what it needs, each of the expected
    /// types is there.
    ///
    /// # Errors
    /// The first [`RegistryError`] found; those of one kind are reported together.
    pub fn check(&self, states: &States, expected: &[String]) -> Result<(), RegistryError> {
        if self.handlers.is_empty() {
            return Err(RegistryError::NoHandlers);
        }
        self.check_duplicates()?;
        self.check_options()?;
        self.check_needs(states)?;
        let missing: Vec<&str> =
            expected.iter().filter(|name| self.handler_of(name).is_none()).map(String::as_str).collect();
        if missing.is_empty() {
            Ok(())
        } else {
            Err(RegistryError::NotLinked { event_types: missing.join("`, `") })
        }
    }

    /// Checks that handlers which take a transaction take one of this database.
    ///
    /// # Errors
    /// [`RegistryError::Unmet`].
    #[cfg(feature = "sql")]
    pub(crate) fn check_database(&self, database: TypeId, name: &str) -> Result<(), RegistryError> {
        let wrong = |def: &HandlerDef| {
            let of = def.transaction().filter(|of| of.database != database)?;
            Some(format!("{def} takes a transaction of `{}`, and this worker runs on {name}", of.name))
        };
        let needs: Vec<String> = self.handlers.iter().filter_map(wrong).collect();
        if needs.is_empty() { Ok(()) } else { Err(RegistryError::Unmet { needs: needs.join("\n  ") }) }
    }

    fn check_duplicates(&self) -> Result<(), RegistryError> {
        let mut by_name: HashMap<&str, &HandlerDef> = HashMap::new();
        for def in &self.handlers {
            for name in def.names() {
                if let Some(other) = by_name.insert(name, def) {
                    return Err(RegistryError::TwoHandlers {
                        event_type: name.to_owned(),
                        first: claim_on(name, other),
                        second: claim_on(name, def),
                    });
                }
            }
        }
        Ok(())
    }

    /// The attribute checks its own options; these are for definitions made by hand.
    fn check_options(&self) -> Result<(), RegistryError> {
        for def in &self.handlers {
            let what = if def.concurrency == Some(0) {
                "a concurrency of 0, which never runs anything: use 1 or more"
            } else if def.timeout == Some(Duration::ZERO) {
                "a timeout of 0, which fails every run: use a longer one"
            } else if def.version == 0 {
                "the event version 0: versions count from 1"
            } else {
                continue;
            };
            return Err(RegistryError::Option { handler: def.to_string(), what });
        }
        Ok(())
    }

    fn check_needs(&self, states: &States) -> Result<(), RegistryError> {
        let mut unmet = Vec::new();
        for def in &self.handlers {
            let mut requirements = Requirements::new(states);
            (def.requires)(&mut requirements);
            unmet.extend(requirements.into_missing().into_iter().map(|what| format!("{def} {what}")));
        }
        if unmet.is_empty() { Ok(()) } else { Err(RegistryError::Unmet { needs: unmet.join("\n  ") }) }
    }
}

/// Who says that a name is its own, and where.
fn claim_on(name: &str, def: &HandlerDef) -> String {
    let by = if def.event_type == name { "" } else { ", by an alias" };
    format!("`{}` at {}{by}", def.name, def.place())
}

/// What is wrong with a program's set of handlers. Nothing was claimed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The program has no handler.
    #[error(
        "no handler is linked into this program: annotate one with #[outbox_handler(\"…\")], and if the handlers \
         live in a crate that nothing else refers to, name it once in this program: `use that_crate as _;`"
    )]
    NoHandlers,
    /// Two handlers for one event type.
    #[error(
        "two handlers for event type `{event_type}`: {first} and {second}; an event type has one handler, remove one"
    )]
    TwoHandlers {
        /// The event type.
        event_type: String,
        /// One handler, with its file and line.
        first: String,
        /// The other.
        second: String,
    },
    /// Handlers whose extractors did not find what they need.
    #[error("handlers lack what they need:\n  {needs}")]
    Unmet {
        /// A line for each need, with the handler's file and line.
        needs: String,
    },
    /// An expected handler is not there.
    #[error(
        "no handler is linked for the expected event type `{event_types}`: if it lives in a crate that nothing else \
         refers to, name it once in this program: `use that_crate as _;`"
    )]
    NotLinked {
        /// The event types without a handler.
        event_types: String,
    },
    /// An option that no handler can run with.
    #[error("handler {handler} has {what}")]
    Option {
        /// The handler, with its file and line.
        handler: String,
        /// What is wrong and what to do.
        what: &'static str,
    },
}

crate::readable::readable!(RegistryError);
