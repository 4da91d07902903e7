//! A JSON Schema as the alternatives that it allows: references followed, compositions merged, unions taken apart.

use serde_json::{Map, Value};

use super::leaf;

/// How far references are followed at one place; a schema that refers only to itself allows nothing.
const MAX_REFERENCES: usize = 64;

/// A whole schema, in which references are looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'s>(pub(super) &'s Value);

/// One alternative: no reference, no union, at most one type.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    keywords: Map<String, Value>,
    /// The reference that led here, if there was nothing but that.
    pub(super) origin: Option<String>,
}

/// The types of JSON, and the lack of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Anything,
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// What an object may hold beside its named properties.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest<'s> {
    /// Whatever it is, it is not read.
    Ignored,
    /// Nothing.
    Denied,
    /// Entries of this schema, with keys of this pattern.
    Entries { keys: Option<&'s str>, schema: &'s Value },
}

impl<'s> Document<'s> {
    /// The alternatives at this place.
    pub(super) fn shapes(self, node: &Value) -> Vec<Shape> {
        self.alternatives(node, MAX_REFERENCES)
    }

    fn alternatives(self, node: &Value, references: usize) -> Vec<Shape> {
        let Value::Object(keywords) = node else {
            return if node == &Value::Bool(false) { Vec::new() } else { vec![Shape::default()] };
        };
        let mut keywords = keywords.clone();
        if let Some(reference) = keywords.remove("$ref") {
            let Some(target) = self.target(&reference).filter(|_| references > 0) else { return Vec::new() };
            let mut shapes = self.alternatives(&merged(target, &keywords), references - 1);
            if keywords.keys().all(|keyword| leaf::is_annotation(keyword)) {
                let origin = reference.as_str().map(str::to_owned);
                shapes.iter_mut().for_each(|shape| shape.origin.clone_from(&origin));
            }
            return shapes;
        }
        if let Some(Value::Array(parts)) = keywords.remove("allOf") {
            let whole = parts.iter().fold(Value::Object(keywords), |whole, part| {
                merged(&whole, part.as_object().unwrap_or(&Map::new()))
            });
            return self.alternatives(&whole, references);
        }
        for union in ["oneOf", "anyOf"] {
            if let Some(Value::Array(members)) = keywords.remove(union) {
                let with_siblings = |member: &Value| match member {
                    Value::Object(member) => {
                        self.alternatives(&merged(&Value::Object(keywords.clone()), member), references)
                    }
                    other => self.alternatives(other, references),
                };
                return members.iter().flat_map(with_siblings).collect();
            }
        }
        split(keywords)
    }

    fn target(self, reference: &Value) -> Option<&'s Value> {
        self.0.pointer(reference.as_str()?.strip_prefix('#')?)
    }
}

/// The same schema without what says nothing of what decodes: docs may be reworded.
pub(super) fn without_annotations(node: &Value) -> Value {
    let below = |(name, schema): (&String, &Value)| (name.clone(), without_annotations(schema));
    let member = |(keyword, value): (&String, &Value)| {
        let value = match (keyword.as_str(), value) {
            // Their keys are names, which may be those of keywords.
            ("properties" | "patternProperties" | "$defs", Value::Object(named)) => {
                named.iter().map(below).collect()
            }
            ("const" | "enum", value) => value.clone(),
            (_, value) => without_annotations(value),
        };
        (keyword.clone(), value)
    };
    match node {
        Value::Object(keywords) => keywords
            .iter()
            .filter(|(keyword, _)| *keyword == "$defs" || !leaf::is_annotation(keyword))
            .map(member)
            .collect(),
        Value::Array(members) => members.iter().map(without_annotations).collect(),
        other => other.clone(),
    }
}

/// Both at once: the fields of both, and of anything else what the second says.
fn merged(first: &Value, second: &Map<String, Value>) -> Value {
    let mut whole = first.as_object().cloned().unwrap_or_default();
    for (keyword, value) in second {
        match (keyword.as_str(), whole.get_mut(keyword), value) {
            ("properties" | "$defs", Some(Value::Object(fields)), Value::Object(more)) => {
                fields.extend(more.clone());
            }
            ("required", Some(Value::Array(names)), Value::Array(more)) => names.extend(more.iter().cloned()),
            _ => drop(whole.insert(keyword.clone(), value.clone())),
        }
    }
    Value::Object(whole)
}

/// A list of values, or of types, as one alternative for each.
fn split(mut keywords: Map<String, Value>) -> Vec<Shape> {
    if let Some(Value::Array(values)) = keywords.remove("enum") {
        let constant = |value: Value| Shape::new(Map::from_iter([("const".to_owned(), value)]));
        return values.into_iter().map(constant).collect();
    }
    let Some(Value::Array(types)) = keywords.get("type").cloned() else { return vec![Shape::new(keywords)] };
    let typed = |name: Value| {
        let mut keywords = if name == "null" { Map::new() } else { keywords.clone() };
        keywords.insert("type".to_owned(), name);
        Shape::new(keywords)
    };
    types.into_iter().map(typed).collect()
}

impl Shape {
    fn new(keywords: Map<String, Value>) -> Self {
        Self { keywords, origin: None }
    }

    pub(super) fn get(&self, keyword: &str) -> Option<&Value> {
        self.keywords.get(keyword)
    }

    pub(super) fn text(&self, keyword: &str) -> Option<&str> {
        self.get(keyword)?.as_str()
    }

    pub(super) fn number(&self, keyword: &str) -> Option<f64> {
        self.get(keyword)?.as_f64()
    }

    pub(super) fn keywords(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.keywords.iter().map(|(keyword, value)| (keyword.as_str(), value))
    }

    pub(super) fn kind(&self) -> Kind {
        match (self.get("const"), self.text("type")) {
            (Some(Value::Null), _) | (_, Some("null")) => Kind::Null,
            (Some(Value::Bool(_)), _) | (_, Some("boolean")) => Kind::Boolean,
            (Some(Value::String(_)), _) | (_, Some("string")) => Kind::String,
            (Some(Value::Number(number)), _) if !number.is_f64() => Kind::Integer,
            (_, Some("integer")) => Kind::Integer,
            (Some(Value::Number(_)), _) | (_, Some("number")) => Kind::Number,
            (Some(Value::Array(_)), _) | (_, Some("array")) => Kind::Array,
            (Some(Value::Object(_)), _) | (_, Some("object")) => Kind::Object,
            _ if self.get("properties").is_some() => Kind::Object,
            _ => Kind::Anything,
        }
    }

    pub(super) fn properties(&self) -> impl Iterator<Item = (&str, &Value)> {
        let fields = self.get("properties").and_then(Value::as_object);
        fields.into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
    }

    pub(super) fn property(&self, name: &str) -> Option<&Value> {
        self.get("properties")?.get(name)
    }

    pub(super) fn requires(&self, name: &str) -> bool {
        let required = self.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|required| required == name))
    }

    pub(super) fn rest(&self) -> Rest<'_> {
        let patterns = self.get("patternProperties").and_then(Value::as_object);
        if let Some((keys, schema)) = patterns.and_then(|patterns| patterns.iter().next()) {
            return Rest::Entries { keys: Some(keys), schema };
        }
        match self.get("additionalProperties").or_else(|| self.get("unevaluatedProperties")) {
            None => Rest::Ignored,
            Some(Value::Bool(false)) => Rest::Denied,
            Some(schema) => Rest::Entries { keys: None, schema },
        }
    }

    /// The types of a tuple's places.
    pub(super) fn tuple(&self) -> Option<&Vec<Value>> {
        self.get("prefixItems")?.as_array()
    }

    /// What tells this alternative from its siblings: a constant, a variant's name, a tag; else the type's name.
    pub(super) fn label(&self) -> String {
        if let Some(value) = self.get("const") {
            return value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        }
        let tag =
            |(name, schema): (&str, &Value)| Some(format!("{name}: {}", schema.get("const")?.as_str()?));
        let tags: Vec<String> = self.properties().filter_map(tag).collect();
        if !tags.is_empty() {
            return tags.join(", ");
        }
        match (self.properties().next(), self.rest()) {
            (Some((name, _)), Rest::Denied) if self.properties().count() == 1 && self.requires(name) => {
                name.to_owned()
            }
            _ => self.kind().name().to_owned(),
        }
    }

    /// Whether the label is that of an enum's variant.
    pub(super) fn is_variant(&self) -> bool {
        self.label() != self.kind().name()
    }
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anything => "anything",
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}
