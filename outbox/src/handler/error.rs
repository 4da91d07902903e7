//! What a handler returns, and the errors by which it steers what follows.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::time::Duration;

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// What a handler usually returns. Any error retries, with backoff, until the event's attempts are spent.
pub type HandlerResult<E = Box<dyn Error + Send + Sync>> = Result<(), E>;

/// An error that says what is to happen to the event, beside what went wrong.
///
/// It is an ordinary error: return it with `?`, also through `anyhow` or an error type of your own that keeps it
/// as its source; the runner looks through the whole chain.
///
/// ```
/// use std::time::Duration;
/// use outbox::{HandlerError, HandlerResult, outbox_handler};
/// # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// # struct Invoice { cents: i64 }
///
/// #[outbox_handler("doc.handler_error")]
/// async fn charge(invoice: Invoice) -> HandlerResult {
///     if invoice.cents < 0 {
///         return Err(HandlerError::permanent("an invoice below zero").into()); // a dead letter at once
///     }
///     if invoice.cents > 1_000_000 {
///         return Err(HandlerError::snooze(Duration::from_secs(60)).into()); // later, and no attempt spent
///     }
///     Ok(())
/// }
/// ```
pub struct HandlerError {
    marker: Marker,
}

/// The runner's side of [`HandlerError`]. It stands in the chain as the error's own source, since a wrapper such
/// as `anyhow` hides the type of what it wraps but passes its sources on.
#[derive(Debug)]
struct Marker {
    directive: Directive,
    cause: BoxError,
}

/// What the handler asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Directive {
    /// A failed attempt; the next one not before this delay, nor before the backoff.
    RetryAfter(Duration),
    /// A failed attempt that cannot be mended by another.
    Permanent,
    /// Not now; no attempt is spent.
    Snooze(Duration),
    /// Nothing is to be done for this event any more; it counts as completed, with a note.
    Discard,
}

impl HandlerError {
    fn new(directive: Directive, cause: impl Into<BoxError>) -> Self {
        Self { marker: Marker { directive, cause: cause.into() } }
    }

    /// A failed attempt; the next one is not due before `delay` is over, nor before the backoff is.
    pub fn retry_after(delay: Duration, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Directive::RetryAfter(delay), cause)
    }

    /// A failure that no retry can mend: the event becomes a dead letter at once.
    pub fn permanent(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Directive::Permanent, cause)
    }

    /// Not now: the event is due again after `delay`, and no attempt is spent.
    pub fn snooze(delay: Duration) -> Self {
        Self::new(Directive::Snooze(delay), format!("snoozed for {delay:?}"))
    }

    /// Nothing is left to do: the event completes, and the note is kept with it.
    pub fn discard(note: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Directive::Discard, note)
    }
}

impl fmt::Debug for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerError")
            .field("directive", &self.marker.directive)
            .field("cause", &self.marker.cause)
            .finish()
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.marker.fmt(f)
    }
}

impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl Error for HandlerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.marker)
    }
}

impl Error for Marker {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.source()
    }
}

/// Says of any result's error what is to happen to the event.
///
/// ```
/// use std::time::Duration;
/// use outbox::{HandlerResult, ResultExt};
///
/// fn parse(card: &str) -> HandlerResult {
///     let _number: u64 = card.parse().permanent()?; // no retry makes a number of it
///     Ok(())
/// }
/// # assert!(parse("x").is_err());
/// ```
pub trait ResultExt<T> {
    /// The error becomes [`HandlerError::permanent`].
    ///
    /// # Errors
    /// The error, if there is one.
    fn permanent(self) -> Result<T, HandlerError>;

    /// The error becomes [`HandlerError::retry_after`].
    ///
    /// # Errors
    /// The error, if there is one.
    fn retry_after(self, delay: Duration) -> Result<T, HandlerError>;

    /// The error becomes [`HandlerError::discard`].
    ///
    /// # Errors
    /// The error, if there is one.
    fn discard(self) -> Result<T, HandlerError>;
}

impl<T, E: Into<Box<dyn Error + Send + Sync>>> ResultExt<T> for Result<T, E> {
    fn permanent(self) -> Result<T, HandlerError> {
        self.map_err(HandlerError::permanent)
    }

    fn retry_after(self, delay: Duration) -> Result<T, HandlerError> {
        self.map_err(|error| HandlerError::retry_after(delay, error))
    }

    fn discard(self) -> Result<T, HandlerError> {
        self.map_err(HandlerError::discard)
    }
}

/// What a handler may return: `()`, or a `Result<(), E>` with any error type.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "not a handler's result",
    note = "return `()`, `outbox::HandlerResult`, or `Result<(), E>` where `E: Into<Box<dyn Error + Send + Sync>>`"
)]
pub trait IntoHandlerResult {
    /// The result with its error boxed.
    ///
    /// # Errors
    /// The handler's error.
    fn into_handler_result(self) -> HandlerResult;
}

impl IntoHandlerResult for () {
    fn into_handler_result(self) -> HandlerResult {
        Ok(())
    }
}

// An error type that is none is to be told what a handler returns, and not of the conversions inside.
#[diagnostic::do_not_recommend]
impl<E: Into<Box<dyn Error + Send + Sync>>> IntoHandlerResult for Result<(), E> {
    fn into_handler_result(self) -> HandlerResult {
        self.map_err(Into::into)
    }
}

/// The first directive in the error's chain.
pub(crate) fn directive_of(error: &(dyn Error + 'static)) -> Option<Directive> {
    chain(error).find_map(|error| {
        let marker = error
            .downcast_ref::<Marker>()
            .or_else(|| error.downcast_ref::<HandlerError>().map(|error| &error.marker))?;
        Some(marker.directive.clone())
    })
}

/// The text of an error with all its causes, `a: b: c`; a cause that only repeats its wrapper's words is left out.
pub(crate) fn error_text(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut previous: Option<String> = None;
    for error in chain(error) {
        let words = error.to_string();
        if previous.as_ref().is_some_and(|previous| previous.ends_with(&words)) {
            continue;
        }
        if previous.is_some() {
            text.push_str(": ");
        }
        text.push_str(&words);
        previous = Some(words);
    }
    text
}

/// The error and its sources. The bound is for an error that is its own source.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    const MAX_DEPTH: usize = 64;
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
    .take(MAX_DEPTH)
}

/// What is kept of an error text: no NUL or other control characters (a database may refuse them, a terminal
/// obey them), at most [`MAX_ERROR_BYTES`].
pub(crate) fn scrub(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| c.is_control() && c != '\n' && c != '\t';
    let text = if text.contains(is_bad) {
        Cow::Owned(text.replace(is_bad, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    };
    if text.len() <= MAX_ERROR_BYTES {
        return text;
    }
    Cow::Owned(text[..text.floor_char_boundary(MAX_ERROR_BYTES)].to_owned())
}

/// How much of an error's text is kept with the event, in bytes.
pub(crate) const MAX_ERROR_BYTES: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapper(#[source] BoxError);

    #[test]
    fn directive_is_found_through_wrappers() {
        let error = Wrapper(HandlerError::permanent("bad card").into());
        assert_eq!(directive_of(&error), Some(Directive::Permanent));
        assert_eq!(error_text(&error), "wrapped: bad card");
    }

    #[test]
    fn text_holds_the_whole_chain_once() {
        let error = Wrapper(Box::new(Wrapper("the root".into())));
        assert_eq!(error_text(&error), "wrapped: the root");
        let error = HandlerError::retry_after(Duration::from_secs(1), Wrapper("the root".into()));
        assert_eq!(error_text(&error), "wrapped: the root");
    }

    #[test]
    fn scrub_replaces_control_characters_and_cuts_on_a_boundary() {
        assert_eq!(scrub("a\0b\x1bc\nd"), "a\u{fffd}b\u{fffd}c\nd");
        let long = "é".repeat(MAX_ERROR_BYTES);
        let cut = scrub(&long);
        assert!(cut.len() <= MAX_ERROR_BYTES && cut.chars().all(|c| c == 'é'));
    }
}
