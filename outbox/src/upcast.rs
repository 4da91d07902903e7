//! Older versions of a payload: decoded as what they were, then led to what the payload is now, one version at a time.

use std::any::type_name;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;

use crate::event::Event;
use crate::handler::{BoxError, Failure, error_text};
use crate::payload;

/// How one older version of a payload is read.
#[derive(Clone, Copy, Debug)]
pub struct Upcast<E> {
    version: u32,
    read: fn(&str) -> Result<E, Failure>,
    schema: fn() -> Schema,
}

impl<E> Upcast<E> {
    /// `read` decodes that version and leads it to the present; `schema` is that of what it decodes.
    pub const fn new(version: u32, read: fn(&str) -> Result<E, Failure>, schema: fn() -> Schema) -> Self {
        Self { version, read, schema }
    }
}

/// Reads a stored payload of this version. Compiled for each payload, and so written with little.
pub(crate) fn read<E: Event>(version: u32, text: &str) -> Result<E, Failure> {
    if version >= E::VERSION || E::UPCASTS.is_empty() {
        return decode(text);
    }
    for upcast in E::UPCASTS {
        if upcast.version == version {
            return (upcast.read)(text);
        }
    }
    Err(unread(version, E::UPCASTS[0].version, type_name::<E>()))
}

fn unread(version: u32, oldest: u32, payload: &str) -> Failure {
    Failure::Undecodable(format!(
        "payload of version {version} is not read any more: the oldest version that {payload} is led from is {oldest}"
    ))
}

/// The schemas of the older versions that are read in ways of their own.
pub(crate) fn schemas<E: Event>() -> Vec<(u32, Schema)> {
    let mut schemas = Vec::new();
    for upcast in E::UPCASTS {
        schemas.push((upcast.version, (upcast.schema)()));
    }
    schemas
}

fn decode<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    payload::decode(text).map_err(|error| {
        Failure::Undecodable(format!("payload does not decode into {}: {error}", type_name::<T>()))
    })
}

/// Decodes what this function takes.
pub fn decode_as<A: DeserializeOwned, R>(_: impl FnOnce(A) -> R, text: &str) -> Result<A, Failure> {
    decode(text)
}

/// The schema of what this function takes.
pub fn schema_of<A: JsonSchema, R>(_: impl FnOnce(A) -> R) -> Schema {
    SchemaGenerator::default().into_root_schema_for::<A>()
}

/// One step, from this version to the payload that the next step takes.
pub fn upcast<A, B, R, S>(
    version: u32,
    step: impl FnOnce(A) -> R,
    _next: impl FnOnce(B) -> S,
    old: A,
) -> Result<B, Failure>
where
    R: IntoNext<B>,
{
    step(old).into_next().map_err(|error| {
        Failure::Undecodable(format!("upcast from version {version} failed: {}", error_text(&*error)))
    })
}

/// What a function that leads to the payload type `T` may return: that, or a `Result` of it.
#[diagnostic::on_unimplemented(
    message = "this upcast gives `{Self}`, and the next version of the payload is `{T}`",
    label = "does not lead to `{T}`",
    note = "each function of `upcast(…)` takes the payload of its version and returns that of the next one, `{T}`, or a `Result<{T}, E>`"
)]
pub trait IntoNext<T> {
    /// The payload, or the error with which it was refused.
    fn into_next(self) -> Result<T, BoxError>;
}

impl<T> IntoNext<T> for T {
    fn into_next(self) -> Result<T, BoxError> {
        Ok(self)
    }
}

/// Another answer for every type, so that the compiler does not settle on the first before it has seen what the next
/// function takes: its error is then the one above, and not one about code that nobody wrote.
#[derive(Debug)]
pub struct Other<T>(T);

impl<T> IntoNext<Other<T>> for T {
    fn into_next(self) -> Result<Other<T>, BoxError> {
        Ok(Other(self))
    }
}

impl<T, E: Into<BoxError>> IntoNext<T> for Result<T, E> {
    fn into_next(self) -> Result<T, BoxError> {
        self.map_err(Into::into)
    }
}
