//! Payloads as JSON text: what is refused before it is stored, so that what was stored always comes back equal.

use std::fmt;
use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::ser::{CompactFormatter, Formatter};

mod finite;

/// How deep arrays and objects of a payload may nest.
pub const MAX_DEPTH: usize = 128;

/// How large a payload's JSON text may be, in bytes (8 MiB). Store larger things elsewhere and enqueue their address.
pub const MAX_PAYLOAD_BYTES: usize = 8 * 1024 * 1024;

/// Why a payload cannot be stored so that it would come back equal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// A `NaN` or an infinity: JSON has no such number, it would come back as null.
    #[error("the payload holds a number that is not finite (NaN or infinity), which JSON cannot hold")]
    NotFinite,
    /// Nested too deep.
    #[error("the payload nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Too large.
    #[error(
        "the payload is larger than {MAX_PAYLOAD_BYTES} bytes of JSON; store it elsewhere and enqueue its address"
    )]
    TooLarge,
    /// `\u0000` or half a surrogate pair, on a database that cannot store or query it.
    #[error("the payload holds {0}, which this database cannot query; remove it or encode the value")]
    Unqueryable(&'static str),
    /// The type's own `Serialize` failed.
    #[error("the payload does not serialize: {0}")]
    Serialize(#[source] serde_json::Error),
}

/// The payload's JSON text.
pub(crate) fn encode<T: Serialize>(value: &T) -> Result<String, PayloadError> {
    let mut text = Text::default();
    let mut guard = Guard::default();
    let result = value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, &mut guard));
    if text.too_large {
        return Err(PayloadError::TooLarge);
    }
    if guard.too_deep {
        return Err(PayloadError::TooDeep);
    }
    result.map_err(PayloadError::Serialize)?;
    if guard.wrote_null {
        // serde_json writes a float that is not finite as null; a second look tells the two apart.
        value.serialize(finite::Check).map_err(|_| PayloadError::NotFinite)?;
    }
    // serde_json writes UTF-8; a raw fragment comes from a `RawValue`, which holds a str.
    String::from_utf8(text.bytes).map_err(|error| PayloadError::Serialize(serde::ser::Error::custom(error)))
}

/// The value of a stored payload.
pub(crate) fn decode<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    if depth_exceeds(text, MAX_DEPTH) {
        return Err(serde::de::Error::custom(format_args!("nested deeper than {MAX_DEPTH} levels")));
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // serde_json's own limit is one level below ours, and ours is checked.
    deserializer.disable_recursion_limit();
    let value = T::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Whether the JSON text nests deeper than `limit`.
pub(crate) fn depth_exceeds(text: &str, limit: usize) -> bool {
    if text.len() <= limit {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// What in the JSON text some databases keep but cannot query: an escaped NUL or half a surrogate pair.
#[cfg(any(test, feature = "mysql", feature = "postgres"))]
pub(crate) fn unqueryable(text: &str) -> Option<&'static str> {
    let mut rest = text;
    let mut high_before = false;
    while let Some(at) = rest.find('\\') {
        if at > 0 && high_before {
            return Some("half a surrogate pair");
        }
        let (escape, after) = rest[at + 1..].split_at_checked(1)?;
        if escape != "u" {
            if high_before {
                return Some("half a surrogate pair");
            }
            rest = after;
            continue;
        }
        let code = after.get(..4).and_then(|hex| u16::from_str_radix(hex, 16).ok())?;
        match (code, high_before) {
            (0, _) => return Some("the character NUL"),
            (0xd800..=0xdbff, false) => high_before = true,
            (0xdc00..=0xdfff, true) => high_before = false,
            (0xd800..=0xdfff, _) | (_, true) => return Some("half a surrogate pair"),
            _ => {}
        }
        rest = &after[4..];
    }
    high_before.then_some("half a surrogate pair")
}

/// The text under way; refuses to grow past the limit, so that a huge value fails early.
#[derive(Default)]
struct Text {
    bytes: Vec<u8>,
    too_large: bool,
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_PAYLOAD_BYTES {
            self.too_large = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Watches what is written: its depth, and whether there was a null.
#[derive(Default)]
struct Guard {
    depth: usize,
    too_deep: bool,
    wrote_null: bool,
}

impl Guard {
    fn enter(&mut self) -> io::Result<()> {
        self.depth += 1;
        self.check(self.depth > MAX_DEPTH)
    }

    fn check(&mut self, too_deep: bool) -> io::Result<()> {
        self.too_deep |= too_deep;
        if too_deep { Err(io::Error::other("nested too deep")) } else { Ok(()) }
    }
}

impl Formatter for &mut Guard {
    fn write_null<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.wrote_null = true;
        CompactFormatter.write_null(writer)
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        CompactFormatter.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        CompactFormatter.end_array(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.enter()?;
        CompactFormatter.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        CompactFormatter.end_object(writer)
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.check(depth_exceeds(fragment, MAX_DEPTH.saturating_sub(self.depth)))?;
        CompactFormatter.write_raw_fragment(writer, fragment)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("bytes", &self.bytes.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::RawValue};

    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner]))
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).expect("the test's JSON is valid")
    }

    #[test]
    fn depth_is_limited_at_128() {
        let text = encode(&nested(MAX_DEPTH)).expect("128 levels are accepted");
        assert_eq!(decode::<Value>(&text).expect("and come back"), nested(MAX_DEPTH));
        assert!(matches!(encode(&nested(MAX_DEPTH + 1)), Err(PayloadError::TooDeep)));
        let too_deep = format!("{}1{}", "[".repeat(129), "]".repeat(129));
        assert!(decode::<Value>(&too_deep).is_err());
        assert!(matches!(encode(&raw(&too_deep)), Err(PayloadError::TooDeep)));
        assert!(matches!(encode(&[raw(&too_deep[1..258])]), Err(PayloadError::TooDeep)));
        let only_text = format!("\"{}\"", "[\\\"{".repeat(MAX_DEPTH));
        assert!(encode(&raw(&only_text)).is_ok(), "brackets inside a string are no depth");
    }

    #[test]
    fn a_number_that_is_not_finite_is_refused_wherever_it_stands() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(matches!(encode(&bad), Err(PayloadError::NotFinite)));
            assert!(matches!(encode(&(1, Some(vec![bad]))), Err(PayloadError::NotFinite)));
        }
        assert!(matches!(encode(&f32::NAN), Err(PayloadError::NotFinite)));
        assert_eq!(encode(&(None::<f64>, ())).expect("nulls are fine"), "[null,null]");
    }

    #[test]
    fn size_is_limited() {
        let fits = "x".repeat(MAX_PAYLOAD_BYTES - 2);
        assert_eq!(encode(&fits).expect("fits").len(), MAX_PAYLOAD_BYTES);
        assert!(matches!(encode(&(fits + "x")), Err(PayloadError::TooLarge)));
    }

    #[test]
    fn what_cannot_be_queried_is_seen() {
        assert_eq!(unqueryable(r#"{"a":"b\u0000c"}"#), Some("the character NUL"));
        for half in [r#""\ud800""#, r#""\udc00""#, r#""\ud800x""#, r#""\ud800\n""#, r#""\ud800\ud800\udc00""#]
        {
            assert_eq!(unqueryable(half), Some("half a surrogate pair"), "{half}");
        }
        for fine in [r#""\ud83d\ude00""#, r#""\\u0000""#, r#""a\"\\""#, "\"é\"", r#""\\\\ud800""#] {
            assert_eq!(unqueryable(fine), None, "{fine}");
        }
    }
}
