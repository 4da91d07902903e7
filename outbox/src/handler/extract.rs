//! How a handler gets its arguments: the payload decoded, then one extractor for each further argument.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use super::error::BoxError;
use super::{Context, IntoHandlerResult};
use crate::event::Event;
use crate::upcast;

/// An argument of a handler, beside its payload. [`Context`] and [`State<T>`] are extractors; so is your own type
/// that implements this.
///
/// What an extractor needs is asked once at start-up, so that a missing piece is an error of `run()` that names
/// the handler, and never a failure at the first event.
///
/// ```
/// use outbox::{Context, Delivery, ExtractError, FromDelivery};
///
/// struct TraceParent(Option<String>);
///
/// impl FromDelivery for TraceParent {
///     fn from_delivery(delivery: &mut Delivery) -> Result<Self, ExtractError> {
///         Ok(Self(delivery.context().header("traceparent").map(str::to_owned)))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a handler argument",
    label = "not an extractor",
    note = "after the payload a handler takes `Context`, `State<T>`, or a type of yours that implements `outbox::FromDelivery`"
)]
pub trait FromDelivery: Sized {
    /// Names what this extractor needs of the worker; checked before anything is claimed.
    fn requires(requirements: &mut Requirements<'_>) {
        let _ = requirements;
    }

    /// Takes the argument out of the delivery.
    ///
    /// # Errors
    /// An [`ExtractError`] counts as a failed attempt of the event.
    fn from_delivery(delivery: &mut Delivery) -> Result<Self, ExtractError>;
}

/// One event on its way into its handler.
#[derive(Debug)]
pub struct Delivery {
    payload: String,
    context: Context,
    states: States,
    /// What is lent to this one run.
    lent: Option<Box<dyn Any + Send>>,
}

impl Delivery {
    pub(crate) fn new(payload: String, context: Context, states: States) -> Self {
        Self { payload, context, states, lent: None }
    }

    /// Lends something to this run.
    #[cfg(feature = "sql")]
    pub(crate) fn lend(&mut self, lent: impl Any + Send) {
        self.lent = Some(Box::new(lent));
    }

    /// Takes what was lent, if it is of that type.
    #[cfg(feature = "sql")]
    pub(crate) fn take_lent<T: 'static>(&mut self) -> Option<T> {
        self.lent.take()?.downcast().ok().map(|lent| *lent)
    }

    /// The event's context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The payload as it is stored: JSON text.
    pub fn raw_payload(&self) -> &str {
        &self.payload
    }

    /// The value given to the worker with `state`, if there is one of that type.
    pub fn state<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        self.states.get::<T>()
    }
}

/// A value that the application gave to the worker: `outbox::run().state(client)`, or `Outbox::state`.
///
/// ```
/// use outbox::{HandlerResult, State, outbox_handler};
/// # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// # struct Invoice { cents: i64 }
/// #[derive(Clone)]
/// struct Stripe;
///
/// #[outbox_handler("doc.state")]
/// async fn charge(_invoice: Invoice, State(_stripe): State<Stripe>) -> HandlerResult {
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct State<T>(pub T);

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for State<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Clone + Send + Sync + 'static> FromDelivery for State<T> {
    fn requires(requirements: &mut Requirements<'_>) {
        requirements.state::<T>();
    }

    fn from_delivery(delivery: &mut Delivery) -> Result<Self, ExtractError> {
        delivery.state::<T>().map(Self).ok_or_else(|| ExtractError::new(missing_state(type_name::<T>())))
    }
}

impl FromDelivery for Context {
    fn from_delivery(delivery: &mut Delivery) -> Result<Self, ExtractError> {
        Ok(delivery.context.clone())
    }
}

fn missing_state(type_name: &str) -> String {
    format!("needs `State<{type_name}>`: give the value with `.state(value)` before the worker runs")
}

/// Why an extractor could not give its argument.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ExtractError(BoxError);

impl ExtractError {
    /// An extraction error with the given cause or message.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// The values that handlers take as [`State`], by their type.
#[derive(Clone, Default)]
pub struct States {
    values: Arc<HashMap<TypeId, Box<dyn AnyState>>>,
}

trait AnyState: Any + Send + Sync {
    fn clone_state(&self) -> Box<dyn AnyState>;
}

impl<T: Clone + Send + Sync + 'static> AnyState for T {
    fn clone_state(&self) -> Box<dyn AnyState> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn AnyState> {
    fn clone(&self) -> Self {
        (**self).clone_state()
    }
}

impl States {
    /// Adds a value; one of the same type that was there is replaced.
    pub fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        Arc::make_mut(&mut self.values).insert(TypeId::of::<T>(), Box::new(value));
    }

    /// The value of that type.
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        let value: &dyn Any = &**self.values.get(&TypeId::of::<T>())?;
        value.downcast_ref::<T>().cloned()
    }

    fn contains<T: 'static>(&self) -> bool {
        self.values.contains_key(&TypeId::of::<T>())
    }
}

impl std::fmt::Debug for States {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("States").field("values", &self.values.len()).finish()
    }
}

/// Collects what the extractors of one handler need and do not find.
#[derive(Debug)]
pub struct Requirements<'a> {
    states: &'a States,
    missing: Vec<String>,
    transaction: Option<TransactionOf>,
}

/// The database of the transaction that a handler takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransactionOf {
    pub(crate) database: TypeId,
    pub(crate) name: &'static str,
}

impl<'a> Requirements<'a> {
    pub(crate) fn new(states: &'a States) -> Self {
        Self { states, missing: Vec::new(), transaction: None }
    }

    /// Needs a `State<T>`.
    pub fn state<T: 'static>(&mut self) {
        if !self.states.contains::<T>() {
            self.missing(missing_state(type_name::<T>()));
        }
    }

    /// Needs a transaction of this database, lent for each run.
    #[cfg(feature = "sql")]
    pub(crate) fn transaction<DB: 'static>(&mut self, name: &'static str) {
        if self.transaction.replace(TransactionOf { database: TypeId::of::<DB>(), name }).is_some() {
            self.missing("takes `Tx` twice, and an event completes in one transaction: take it once");
        }
    }

    pub(crate) fn lent_transaction(&self) -> Option<TransactionOf> {
        self.transaction
    }

    /// Says that something is missing, in a sentence that says what to do.
    pub fn missing(&mut self, what: impl Into<String>) {
        self.missing.push(what.into());
    }

    pub(crate) fn into_missing(self) -> Vec<String> {
        self.missing
    }
}

/// How a run failed, before the worker decides what follows.
#[derive(Debug)]
pub enum Failure {
    /// The payload does not decode into the handler's type, or into what its version was, or an upcast refused it.
    Undecodable(String),
    /// The handler, or one of its extractors, returned an error.
    Handler(BoxError),
}

impl From<ExtractError> for Failure {
    fn from(error: ExtractError) -> Self {
        Self::Handler(Box::new(error))
    }
}

/// Decodes the payload, whatever its version, as the generated code of every handler does first.
///
/// # Errors
/// `Failure::Undecodable` with the decoder's message, which names line and column, or the error of an upcast.
pub fn decode_payload<E: Event>(delivery: &Delivery) -> Result<E, Failure> {
    upcast::read(delivery.context.event_version(), &delivery.payload)
}

/// Turns what a handler returned into the runner's result.
///
/// # Errors
/// The handler's own error.
pub fn finish(result: impl IntoHandlerResult) -> Result<(), Failure> {
    result.into_handler_result().map_err(Failure::Handler)
}
