//! PURE: one alternative against one, without what lies below them: types, ranges, lengths, forms.

use serde_json::Value;

use super::compare::{Changes, change};
use super::path::Path;
use super::rules::Rule;
use super::shape::{Kind, Shape};

/// Integers up to this are exact in a double, and in a float.
const EXACT_IN_DOUBLE: f64 = 9_007_199_254_740_992.0;
const EXACT_IN_FLOAT: f64 = 16_777_216.0;

/// Keywords that this comparison, or the one of what lies below, understands.
const UNDERSTOOD: &[&str] = &[
    "type",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "prefixItems",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
];
/// Keywords that say nothing of what decodes.
const ANNOTATIONS: &[&str] = &[
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "contentMediaType",
];

pub(super) fn compare(stored: &Shape, reader: &Shape, path: &Path) -> Changes {
    if let Some(changes) = constants(stored, reader, path) {
        return changes;
    }
    let mut changes = match (stored.kind(), reader.kind()) {
        (Kind::Integer | Kind::Number, Kind::Number) => precision(stored, reader, path),
        (old, new) if old != new => {
            let what = format!("type changed from {} to {}", old.name(), new.name());
            return vec![change(path, Rule::TypeChanged, what)];
        }
        (_, Kind::String) => form(stored, reader, path),
        _ => Vec::new(),
    };
    match reader.kind() {
        Kind::Integer | Kind::Number => changes.extend(range(stored, reader, path)),
        Kind::String => changes.extend(lengths(stored, reader, ["minLength", "maxLength"], path)),
        // A tuple's length is its number of types, which are compared elsewhere.
        Kind::Array if stored.tuple().is_none() && reader.tuple().is_none() => {
            changes.extend(lengths(stored, reader, ["minItems", "maxItems"], path));
            if reader.get("uniqueItems") == Some(&Value::Bool(true)) && stored.get("uniqueItems").is_none() {
                let what = "a list became a set, which holds nothing twice";
                changes.push(change(path, Rule::LengthNarrowed, what));
            }
        }
        _ => {}
    }
    changes.extend(unknown(stored, reader, path));
    changes
}

fn constants(stored: &Shape, reader: &Shape, path: &Path) -> Option<Changes> {
    let label = || stored.label();
    match (stored.get("const"), reader.get("const")) {
        (Some(old), Some(new)) if old == new => Some(Vec::new()),
        (Some(_), Some(new)) => {
            Some(vec![change(path, Rule::VariantRemoved, format!("`{}` became {new}", label()))])
        }
        (None, Some(new)) => {
            Some(vec![change(path, Rule::VariantRemoved, format!("only {new} is taken now"))])
        }
        (Some(_), None) => {
            let fits =
                stored.kind() == reader.kind() && reader.keywords().all(|(keyword, _)| is_plain(keyword));
            let (rule, what) = if fits {
                (Rule::TypeWidened, format!("takes any {}, not only `{}`", reader.kind().name(), label()))
            } else {
                (Rule::VariantRemoved, format!("`{}` is gone, or has another form", label()))
            };
            Some(vec![change(path, rule, what)])
        }
        (None, None) => None,
    }
}

fn is_plain(keyword: &str) -> bool {
    keyword == "type" || is_annotation(keyword)
}

/// Whether the keyword says nothing of what decodes.
pub(super) fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-")
}

fn precision(stored: &Shape, reader: &Shape, path: &Path) -> Changes {
    let exact = if reader.text("format") == Some("float") { EXACT_IN_FLOAT } else { EXACT_IN_DOUBLE };
    let was_integer = stored.kind() == Kind::Integer;
    let (low, high) = bounds(stored);
    let fits = if was_integer {
        -exact <= low && high <= exact
    } else {
        exact == EXACT_IN_DOUBLE || stored.text("format") == Some("float")
    };
    if !fits {
        return vec![change(path, Rule::PrecisionLost, changed("number", stored, reader))];
    }
    was_integer.then(|| change(path, Rule::TypeWidened, "integer became number")).into_iter().collect()
}

fn range(stored: &Shape, reader: &Shape, path: &Path) -> Changes {
    let ((old_low, old_high), (new_low, new_high)) = (bounds(stored), bounds(reader));
    let what = || {
        if stored.text("format") == reader.text("format") {
            format!("range changed from {old_low:.0} … {old_high:.0} to {new_low:.0} … {new_high:.0}")
        } else {
            changed("range", stored, reader)
        }
    };
    if new_low > old_low || new_high < old_high {
        vec![change(path, Rule::RangeNarrowed, what())]
    } else if new_low < old_low || new_high > old_high {
        vec![change(path, Rule::RangeWidened, what())]
    } else {
        Vec::new()
    }
}

/// The numbers that the format and the limits leave.
fn bounds(shape: &Shape) -> (f64, f64) {
    let (low, high) = match shape.text("format") {
        Some("int8") => (-(2f64.powi(7)), 2f64.powi(7) - 1.0),
        Some("int16") => (-(2f64.powi(15)), 2f64.powi(15) - 1.0),
        Some("int32") => (-(2f64.powi(31)), 2f64.powi(31) - 1.0),
        Some("int64" | "int") => (-(2f64.powi(63)), 2f64.powi(63)),
        Some("int128") => (-(2f64.powi(127)), 2f64.powi(127)),
        Some("uint8") => (0.0, 2f64.powi(8) - 1.0),
        Some("uint16") => (0.0, 2f64.powi(16) - 1.0),
        Some("uint32") => (0.0, 2f64.powi(32) - 1.0),
        Some("uint64" | "uint") => (0.0, 2f64.powi(64)),
        Some("uint128") => (0.0, 2f64.powi(128)),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    let above = shape.number("minimum").or_else(|| shape.number("exclusiveMinimum"));
    let below = shape.number("maximum").or_else(|| shape.number("exclusiveMaximum"));
    (above.map_or(low, |limit| limit.max(low)), below.map_or(high, |limit| limit.min(high)))
}

fn form(stored: &Shape, reader: &Shape, path: &Path) -> Changes {
    let differ = |keyword: &str| {
        let (old, new) = (stored.text(keyword), reader.text(keyword));
        let rule = if new.is_none() { Rule::FormatWidened } else { Rule::FormatNarrowed };
        let shown = |value: Option<&str>| value.unwrap_or("any string").to_owned();
        let what = || format!("{keyword} changed from {} to {}", shown(old), shown(new));
        (old != new).then(|| change(path, rule, what()))
    };
    ["format", "pattern"].into_iter().filter_map(differ).collect()
}

fn lengths(stored: &Shape, reader: &Shape, [least, most]: [&str; 2], path: &Path) -> Changes {
    let of =
        |shape: &Shape| (shape.number(least).unwrap_or(0.0), shape.number(most).unwrap_or(f64::INFINITY));
    let (old, new) = (of(stored), of(reader));
    let what = || format!("length changed from {} … {} to {} … {}", old.0, old.1, new.0, new.1);
    if new.0 > old.0 || new.1 < old.1 {
        vec![change(path, Rule::LengthNarrowed, what())]
    } else if new != old {
        vec![change(path, Rule::LengthWidened, what())]
    } else {
        Vec::new()
    }
}

/// Constraints that are not understood, where they differ.
fn unknown(stored: &Shape, reader: &Shape, path: &Path) -> Changes {
    let is_known = |keyword: &str| UNDERSTOOD.contains(&keyword) || is_annotation(keyword);
    let unknown =
        reader.keywords().filter(|(keyword, value)| !is_known(keyword) && stored.get(keyword) != Some(value));
    unknown
        .map(|(keyword, value)| change(path, Rule::ConstraintChanged, format!("`{keyword}` is {value} now")))
        .collect()
}

fn changed(of: &str, stored: &Shape, reader: &Shape) -> String {
    let name = |shape: &Shape| shape.text("format").unwrap_or(shape.kind().name()).to_owned();
    format!("{of} changed from {} to {}", name(stored), name(reader))
}
