//! PURE: the schema of what is stored, and that of what reads it → the changes between them.

use std::collections::HashSet;

use serde_json::Value;

use super::leaf;
use super::path::Path;
use super::rules::{Change, Rule};
use super::shape::{Document, Kind, Rest, Shape};

pub(super) type Changes = Vec<(Path, Change)>;

/// Everything that differs.
pub(super) fn compare(stored: &Value, reader: &Value) -> Changes {
    let mut comparison =
        Comparison { stored: Document(stored), reader: Document(reader), open: HashSet::new() };
    // By a reference, so that a payload that holds itself is known again.
    let whole = serde_json::json!({ "$ref": "#" });
    comparison.node(&whole, &whole, &Path::default())
}

struct Comparison<'s> {
    stored: Document<'s>,
    reader: Document<'s>,
    /// References that are being compared: a type that holds itself is compared once.
    open: HashSet<(String, String)>,
}

pub(super) fn change(path: &Path, rule: Rule, what: impl Into<String>) -> (Path, Change) {
    (path.clone(), Change { rule, path: path.to_string(), what: what.into() })
}

fn breaks(changes: &Changes) -> usize {
    changes.iter().filter(|(_, change)| change.is_breaking()).count()
}

impl Comparison<'_> {
    fn node(&mut self, stored: &Value, reader: &Value, path: &Path) -> Changes {
        self.unions(&self.stored.shapes(stored), &self.reader.shapes(reader), path)
    }

    /// Finds for each stored alternative the one that reads it.
    fn unions(&mut self, stored: &[Shape], reader: &[Shape], path: &Path) -> Changes {
        if let Some(changes) = anything(stored, reader, path) {
            return changes;
        }
        let mut changes = Vec::new();
        let mut used = vec![false; reader.len()];
        let mut unread = Vec::new();
        for shape in stored {
            match self.reader_of(shape, reader, path) {
                Some((index, found)) => {
                    used[index] = true;
                    changes.extend(found);
                }
                None => unread.push(shape),
            }
        }
        let unused = reader.iter().zip(&used).filter(|(_, used)| !**used);
        let unused: Vec<&Shape> = unused.map(|(shape, _)| shape).collect();
        match (unread.as_slice(), unused.as_slice()) {
            // What is left on each side is the same thing, changed.
            ([old], [new]) if old.kind() != Kind::Null && new.kind() != Kind::Null => {
                changes.extend(self.pair(old, new, path));
            }
            _ => {
                changes.extend(unread.into_iter().map(|shape| gone(shape, reader, path)));
                changes.extend(unused.into_iter().map(|shape| added(shape, path)));
            }
        }
        changes
    }

    /// The alternative of the same name; or one of another name that takes every value: a string where there was an
    /// enum, a float for an integer.
    fn reader_of(&mut self, stored: &Shape, reader: &[Shape], path: &Path) -> Option<(usize, Changes)> {
        let label = stored.label();
        let alike = (0..reader.len()).filter(|index| reader[*index].label() == label).collect();
        self.best(stored, reader, alike, path).or_else(|| {
            let all = (0..reader.len()).collect();
            self.best(stored, reader, all, path).filter(|(_, changes)| breaks(changes) == 0)
        })
    }

    /// Of these alternatives the one that fits best, and what differs.
    fn best(
        &mut self,
        stored: &Shape,
        reader: &[Shape],
        among: Vec<usize>,
        path: &Path,
    ) -> Option<(usize, Changes)> {
        let compared = among.into_iter().map(|index| (index, self.pair(stored, &reader[index], path)));
        compared.min_by_key(|(_, changes)| breaks(changes))
    }

    /// One alternative against one.
    fn pair(&mut self, stored: &Shape, reader: &Shape, path: &Path) -> Changes {
        let origins = stored.origin.clone().zip(reader.origin.clone());
        if origins.as_ref().is_some_and(|pair| !self.open.insert(pair.clone())) {
            return Vec::new();
        }
        let mut changes = leaf::compare(stored, reader, path);
        match (stored.kind(), reader.kind()) {
            (Kind::Object, Kind::Object) => changes.extend(self.object(stored, reader, path)),
            (Kind::Array, Kind::Array) => changes.extend(self.array(stored, reader, path)),
            _ => {}
        }
        if let Some(pair) = origins {
            self.open.remove(&pair);
        }
        changes
    }

    fn object(&mut self, stored: &Shape, reader: &Shape, path: &Path) -> Changes {
        let mut changes = Vec::new();
        for (name, old) in stored.properties() {
            let at = path.field(name);
            match (reader.property(name), reader.rest()) {
                (Some(new), _) => {
                    changes.extend(self.node(old, new, &at));
                    changes.extend(presence(stored.requires(name), reader.requires(name), &at));
                }
                (None, Rest::Entries { schema, .. }) => changes.extend(self.node(old, schema, &at)),
                (None, Rest::Ignored) => changes.push(change(&at, Rule::FieldRemoved, "the field is gone")),
                (None, Rest::Denied) => {
                    changes.push(change(
                        &at,
                        Rule::FieldRefused,
                        "the field is gone, and unknown ones are denied",
                    ));
                }
            }
        }
        for (name, _) in reader.properties().filter(|(name, _)| stored.property(name).is_none()) {
            let (rule, what) = if reader.requires(name) {
                (Rule::RequiredFieldAdded, "a new field without a default")
            } else {
                (Rule::FieldAdded, "a new field that may be missing")
            };
            changes.push(change(&path.field(name), rule, what));
        }
        changes.extend(self.rest(stored.rest(), reader.rest(), path));
        changes
    }

    fn rest(&mut self, stored: Rest<'_>, reader: Rest<'_>, path: &Path) -> Changes {
        match (stored, reader) {
            (
                Rest::Entries { keys: old_keys, schema: old },
                Rest::Entries { keys: new_keys, schema: new },
            ) => {
                let at = path.entry();
                let mut changes = self.node(old, new, &at);
                if old_keys != new_keys {
                    let rule = if new_keys.is_none() { Rule::FormatWidened } else { Rule::FormatNarrowed };
                    let what =
                        format!("the keys changed from {} to {}", pattern(old_keys), pattern(new_keys));
                    changes.push(change(&at, rule, what));
                }
                changes
            }
            (Rest::Entries { .. }, Rest::Ignored | Rest::Denied) => {
                vec![change(path, Rule::EntriesRefused, "a map became a struct")]
            }
            (Rest::Ignored, Rest::Denied) => {
                vec![change(path, Rule::UnknownFieldsDenied, "unknown fields are denied now")]
            }
            (Rest::Denied, _) | (Rest::Ignored, Rest::Ignored | Rest::Entries { .. }) => Vec::new(),
        }
    }

    fn array(&mut self, stored: &Shape, reader: &Shape, path: &Path) -> Changes {
        let any = Value::Bool(true);
        let items = |shape: &Shape| shape.get("items").cloned().unwrap_or_else(|| any.clone());
        match (stored.tuple(), reader.tuple()) {
            (Some(old), Some(new)) if old.len() == new.len() => {
                let places = old.iter().zip(new).enumerate();
                places.flat_map(|(index, (old, new))| self.node(old, new, &path.place(index))).collect()
            }
            (Some(old), Some(new)) => {
                let what = format!("a tuple of {} became one of {}", old.len(), new.len());
                vec![change(path, Rule::LengthNarrowed, what)]
            }
            (None, Some(new)) => {
                let what = format!("a list became a tuple of {}", new.len());
                vec![change(path, Rule::LengthNarrowed, what)]
            }
            (Some(old), None) => {
                let new = items(reader);
                let places = old.iter().enumerate();
                places.flat_map(|(index, old)| self.node(old, &new, &path.place(index))).collect()
            }
            (None, None) => self.node(&items(stored), &items(reader), &path.item()),
        }
    }
}

/// What is to be said where one of the two takes any value.
fn anything(stored: &[Shape], reader: &[Shape], path: &Path) -> Option<Changes> {
    let is_anything = |shapes: &[Shape]| shapes.iter().any(|shape| shape.kind() == Kind::Anything);
    match (is_anything(stored), is_anything(reader)) {
        (true, true) => Some(Vec::new()),
        (false, true) => Some(vec![change(path, Rule::TypeWidened, "takes any value now")]),
        (true, false) => {
            let what = format!("type changed from anything to {}", names(reader));
            Some(vec![change(path, Rule::TypeChanged, what)])
        }
        (false, false) => None,
    }
}

fn presence(was_required: bool, is_required: bool, path: &Path) -> Option<(Path, Change)> {
    match (was_required, is_required) {
        (false, true) => {
            Some(change(path, Rule::FieldRequired, "the field could be missing, and is required now"))
        }
        (true, false) => Some(change(path, Rule::FieldOptional, "the field may be missing now")),
        _ => None,
    }
}

fn gone(shape: &Shape, reader: &[Shape], path: &Path) -> (Path, Change) {
    if shape.kind() == Kind::Null {
        return change(path, Rule::NullRefused, "null is not taken any more");
    }
    if shape.is_variant() {
        let what = format!("variant `{}` is gone, or has another form", shape.label());
        return change(path, Rule::VariantRemoved, what);
    }
    let what = format!("type changed from {} to {}", shape.kind().name(), names(reader));
    change(path, Rule::TypeChanged, what)
}

fn added(shape: &Shape, path: &Path) -> (Path, Change) {
    if shape.kind() == Kind::Null {
        return change(path, Rule::NullAccepted, "null is taken now");
    }
    if shape.is_variant() {
        return change(path, Rule::VariantAdded, format!("variant `{}` is new", shape.label()));
    }
    change(path, Rule::TypeWidened, format!("takes {} as well", shape.kind().name()))
}

/// The alternatives, for people.
fn names(shapes: &[Shape]) -> String {
    let mut names: Vec<String> = shapes.iter().map(Shape::label).collect();
    names.dedup();
    if names.is_empty() { "nothing".to_owned() } else { names.join(" or ") }
}

fn pattern(keys: Option<&str>) -> &str {
    keys.unwrap_or("any string")
}
