//! What is refused before any statement is sent.

use super::target::Target;
use crate::handler::Headers;
use crate::payload::{self, PayloadError};

/// How long an event type, a key or a header's name may be, in bytes.
pub const MAX_KEY_BYTES: usize = 255;

/// How large all headers of an event may be together, in bytes of JSON.
pub const MAX_HEADERS_BYTES: usize = 64 * 1024;

/// Why an event was not enqueued. All but [`Database`](Self::Database) are found before any statement is sent: the
/// transaction is as usable as before.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The payload would not come back equal.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// No attempts, or more than can be counted.
    #[error("max_attempts is {0}: an event needs at least one attempt, and at most 2147483647")]
    MaxAttempts(u32),
    /// An event type, key or header name that cannot be stored.
    #[error("the {what} {problem}")]
    Key {
        /// Which one.
        what: &'static str,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// A schema name that no database takes.
    #[error("the schema {0}")]
    Schema(&'static str),
    /// One of many events is refused.
    #[error("event {index} of the bulk, counted from 0: {source}")]
    InBulk {
        /// Its place.
        index: usize,
        /// Why.
        source: Box<EnqueueError>,
    },
    /// The database refused the statement; its error says why. A transaction may have to be rolled back.
    #[error("the event could not be stored (have the tables been made, with `Outbox::migrate()`?): {0}")]
    Database(#[source] sqlx::Error),
}

crate::readable::readable!(EnqueueError);

pub(super) fn check_attempts(attempts: u32) -> Result<(), EnqueueError> {
    if attempts == 0 || i32::try_from(attempts).is_err() {
        return Err(EnqueueError::MaxAttempts(attempts));
    }
    Ok(())
}

pub(super) fn check_key(what: &'static str, key: &str) -> Result<(), EnqueueError> {
    let problem = if key.is_empty() {
        "is empty".to_owned()
    } else if key.len() > MAX_KEY_BYTES {
        format!("has {} bytes, and at most {MAX_KEY_BYTES} are possible; use a hash of it", key.len())
    } else if key.contains('\0') {
        "holds the character NUL, which databases do not store".to_owned()
    } else {
        return Ok(());
    };
    Err(EnqueueError::Key { what, problem })
}

/// The keys of one event, where it has them.
pub(super) fn check_keys(
    ordering_key: Option<&str>,
    dedup_key: Option<&str>,
    subject: Option<&str>,
) -> Result<(), EnqueueError> {
    for (what, key) in [("ordering key", ordering_key), ("dedup key", dedup_key), ("subject", subject)] {
        if let Some(key) = key {
            check_key(what, key)?;
        }
    }
    Ok(())
}

/// A payload that would come back equal from this database.
pub(super) fn check_payload(
    payload: Result<String, PayloadError>,
    target: &dyn Target,
) -> Result<String, EnqueueError> {
    let payload = payload?;
    match target.unqueryable(&payload) {
        None => Ok(payload),
        Some(what) => Err(PayloadError::Unqueryable(what).into()),
    }
}

pub(super) fn encode_headers(headers: &Headers) -> Result<Option<String>, EnqueueError> {
    if headers.is_empty() {
        return Ok(None);
    }
    for (name, value) in headers {
        check_key("header name", name)?;
        if value.contains('\0') {
            let problem = "holds the character NUL, which databases do not store".to_owned();
            return Err(EnqueueError::Key { what: "header value", problem });
        }
    }
    let text = payload::encode(headers)?;
    if text.len() > MAX_HEADERS_BYTES {
        let problem = format!(
            "take {} bytes, and at most {MAX_HEADERS_BYTES} are possible; use the payload",
            text.len()
        );
        return Err(EnqueueError::Key { what: "headers", problem });
    }
    Ok(Some(text))
}
