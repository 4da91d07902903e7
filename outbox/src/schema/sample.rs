//! A payload of the stored shape, made up from its schema: what schemas do not say, an alias, shows when it is decoded.

use serde_json::{Map, Value, json};

use super::path::{Path, Step};
use super::rules::{Change, Rule};
use super::shape::{Document, Kind, Rest, Shape};

/// How deep a sample goes: a type that holds itself has no end.
const MAX_DEPTH: usize = 8;

/// Whether a text decodes into the present type.
pub(super) type Decodes = fn(&str) -> bool;

/// Takes a field's removal back where its old name is still read, and the demand for a new field where that is what reads
/// it. Where no sample decodes, nothing is shown, and everything stands.
pub(super) fn renamed(stored: &Value, changes: Vec<(Path, Change)>, decodes: Decodes) -> Vec<Change> {
    let suspicious = |change: &Change| {
        matches!(change.rule, Rule::FieldRemoved | Rule::FieldRefused | Rule::RequiredFieldAdded)
    };
    if !changes.iter().any(|(_, change)| suspicious(change)) {
        return changes.into_iter().map(|(_, change)| change).collect();
    }
    let trial = Trial { stored, sample: of(stored), decodes };
    let judge = |(path, change): (Path, Change)| match (change.rule, path.parent()) {
        (Rule::RequiredFieldAdded, Some((parent, _))) if trial.does_without(parent) => None,
        (Rule::FieldRemoved | Rule::FieldRefused, Some((parent, name))) if trial.reads(parent, name) => {
            let what = "the field has a new name, and its old one is read".to_owned();
            Some(Change { rule: Rule::FieldRenamed, what, ..change })
        }
        _ => Some(change),
    };
    changes.into_iter().filter_map(judge).collect()
}

/// A payload that this schema allows.
pub(super) fn of(schema: &Value) -> Value {
    Maker { document: Document(schema), number: 0 }.value(schema, MAX_DEPTH)
}

struct Trial<'s> {
    stored: &'s Value,
    sample: Value,
    decodes: Decodes,
}

impl Trial<'_> {
    /// Whether this object decodes with what every stored one has, and nothing more.
    fn does_without(&self, object: &[Step]) -> bool {
        let required = required_at(self.stored, object);
        self.decodes_with(object, |fields| fields.retain(|name, _| required.contains(name)))
    }

    /// Whether a field of this object is read: without it, or with something else in its place, what decodes does not.
    fn reads(&self, object: &[Step], name: &str) -> bool {
        let put =
            |value: Value| self.decodes_with(object, |fields| drop(fields.insert(name.to_owned(), value)));
        self.decodes_with(object, |_| {})
            && !(self.decodes_with(object, |fields| drop(fields.remove(name)))
                && [json!(true), json!("another type"), json!([[]])].into_iter().all(put))
    }

    fn decodes_with(&self, object: &[Step], edit: impl FnOnce(&mut Map<String, Value>)) -> bool {
        let mut sample = self.sample.clone();
        let Some(fields) = object_at(&mut sample, object) else { return false };
        edit(fields);
        (self.decodes)(&sample.to_string())
    }
}

fn object_at<'v>(value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Map<String, Value>> {
    let at = steps.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get_mut(name),
        Step::Item => value.get_mut(0),
        Step::Place(index) => value.get_mut(index),
        Step::Entry => value.as_object_mut()?.values_mut().next(),
    });
    at?.as_object_mut()
}

fn required_at(stored: &Value, steps: &[Step]) -> Vec<String> {
    let document = Document(stored);
    let mut shape = document.shapes(stored).into_iter().find(|shape| shape.kind() == Kind::Object);
    for step in steps {
        let below = shape.and_then(|shape| match (step, shape.rest()) {
            (Step::Field(name), _) => shape.property(name).cloned(),
            (Step::Item, _) => shape.get("items").cloned(),
            (Step::Place(index), _) => shape.tuple()?.get(*index).cloned(),
            (Step::Entry, Rest::Entries { schema, .. }) => Some(schema.clone()),
            (Step::Entry, _) => None,
        });
        shape = below.and_then(|node| most(document.shapes(&node)));
    }
    let shape = shape.unwrap_or_default();
    shape.properties().map(|(name, _)| name.to_owned()).filter(|name| shape.requires(name)).collect()
}

/// The alternative that says most: not null.
fn most(shapes: Vec<Shape>) -> Option<Shape> {
    let mut shapes = shapes.into_iter();
    let first = shapes.next()?;
    if first.kind() == Kind::Null { shapes.next().or(Some(first)) } else { Some(first) }
}

struct Maker<'s> {
    document: Document<'s>,
    /// No two values are alike: some may have to differ.
    number: u32,
}

impl Maker<'_> {
    fn value(&mut self, node: &Value, depth: usize) -> Value {
        let shapes = self.document.shapes(node);
        if depth == 0 && shapes.iter().any(|shape| shape.kind() == Kind::Null) {
            return Value::Null;
        }
        most(shapes).map_or(Value::Null, |shape| self.one(&shape, depth.saturating_sub(1)))
    }

    fn one(&mut self, shape: &Shape, depth: usize) -> Value {
        if let Some(value) = shape.get("const") {
            return value.clone();
        }
        self.number += 1;
        match shape.kind() {
            Kind::Null => Value::Null,
            Kind::Boolean => json!(true),
            Kind::Integer | Kind::Anything => json!(self.integer(shape)),
            Kind::Number => json!(f64::from(self.number) + 0.5),
            Kind::String => json!(self.text(shape)),
            Kind::Array => self.array(shape, depth),
            Kind::Object => self.object(shape, depth),
        }
    }

    fn integer(&self, shape: &Shape) -> i64 {
        let limit = |keyword: &str| shape.get(keyword).and_then(Value::as_i64);
        let number = i64::from(self.number % 100).max(limit("minimum").unwrap_or(0));
        number.min(limit("maximum").unwrap_or(i64::MAX))
    }

    fn text(&self, shape: &Shape) -> String {
        let number = self.number % 60;
        match shape.text("format") {
            Some("uuid") => format!("67e55044-10b1-426f-9247-bb680e5fe0{number:02}"),
            Some("date-time") => format!("2024-05-06T07:08:{number:02}Z"),
            Some("partial-date-time") => format!("2024-05-06T07:08:{number:02}"),
            Some("date") => format!("2024-05-{:02}", number % 28 + 1),
            Some("time" | "partial-time") => format!("07:08:{number:02}"),
            Some("ipv4" | "ip") => format!("10.0.0.{number}"),
            Some("ipv6") => format!("fe80::{number}"),
            Some("uri") => format!("https://example.com/{number}"),
            Some("email") => format!("someone{number}@example.com"),
            _ if shape.number("maxLength") == Some(1.0) => "x".to_owned(),
            _ => format!("text {number}"),
        }
    }

    fn array(&mut self, shape: &Shape, depth: usize) -> Value {
        if let Some(places) = shape.tuple() {
            return places.iter().map(|place| self.value(place, depth)).collect();
        }
        let least = shape.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        // One, so that what it holds is looked at; none, where that would never end.
        let number = if depth == 0 { least } else { least.max(1) };
        let any = Value::Bool(true);
        let items = shape.get("items").unwrap_or(&any);
        (0..number.min(64)).map(|_| self.value(items, depth)).collect()
    }

    fn object(&mut self, shape: &Shape, depth: usize) -> Value {
        let mut fields = Map::new();
        for (name, schema) in shape.properties().filter(|(name, _)| depth > 0 || shape.requires(name)) {
            fields.insert(name.to_owned(), self.value(schema, depth));
        }
        if let Rest::Entries { keys, schema } = shape.rest()
            && depth > 0
        {
            let key = if keys.is_some() { "1" } else { "key" };
            fields.insert(key.to_owned(), self.value(schema, depth));
        }
        fields.into()
    }
}
