//! Each rule on types as they are written; and the files of a program that changes.
#![allow(dead_code, reason = "types whose schemas are compared")]

use std::collections::BTreeMap;

use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::rules::Rule;
use super::{Change, compare, sample};

struct Case {
    rule: Rule,
    path: &'static str,
    changes: Vec<Change>,
    /// Whether a payload of the old shape decodes into the new one.
    decodes: bool,
}

fn schema<T: JsonSchema>() -> Value {
    SchemaGenerator::default().into_root_schema_for::<T>().to_value()
}

fn case<Old: JsonSchema, New: JsonSchema + DeserializeOwned>(rule: Rule, path: &'static str) -> Case {
    let decodes = |text: &str| serde_json::from_str::<New>(text).is_ok();
    let old = schema::<Old>();
    let changes = sample::renamed(&old, compare::compare(&old, &schema::<New>()), decodes);
    Case { rule, path, changes, decodes: decodes(&sample::of(&old).to_string()) }
}

macro_rules! types {
    ($($(#[$attribute:meta])* $kind:ident $name:ident $body:tt)*) => {
        $(#[derive(JsonSchema, Serialize, Deserialize)] $(#[$attribute])* pub(super) $kind $name $body)*
    };
}

macro_rules! cases {
    ($($rule:ident at $path:literal: { $($old:tt)* } => { $($new:tt)* })*) => {
        vec![$({
            mod old {
                #[allow(unused_imports)]
                use super::*;
                types! { $($old)* }
            }
            mod new {
                #[allow(unused_imports)]
                use super::*;
                types! { $($new)* }
            }
            case::<old::P, new::P>(Rule::$rule, $path)
        }),*]
    };
}

/// One change each, on a payload `P`.
fn cases() -> Vec<Case> {
    let mut cases = fields();
    cases.extend(values());
    cases.extend(enums());
    cases
}

#[rustfmt::skip]
fn fields() -> Vec<Case> {
    cases! {
        FieldRemoved at "b": { struct P { a: u8, b: u8 } } => { struct P { a: u8 } }
        FieldRemoved at "b": { struct P { a: u8, b: Option<u8> } } => { struct P { a: u8 } }
        FieldRemoved at "lines[].b": {
            struct P { lines: Vec<L> } struct L { a: u8, b: u8 }
        } => {
            struct P { lines: Vec<L> } struct L { a: u8 }
        }
        FieldRemoved at "by_name{}.b": {
            struct P { by_name: BTreeMap<String, L> } struct L { a: u8, b: u8 }
        } => {
            struct P { by_name: BTreeMap<String, L> } struct L { a: u8 }
        }
        FieldRemoved at "b": {
            struct P { next: Option<Box<P>>, all: Vec<P>, b: u8 }
        } => {
            struct P { next: Option<Box<P>>, all: Vec<P> }
        }
        FieldRefused at "b": {
            struct P { a: u8, b: u8 }
        } => {
            #[serde(deny_unknown_fields)] struct P { a: u8 }
        }
        FieldRenamed at "b": { struct P { a: u8, b: u8 } } => { struct P { a: u8, #[serde(alias = "b")] c: u8 } }
        FieldRenamed at "b": {
            struct P { a: u8, b: Option<bool> }
        } => {
            #[serde(deny_unknown_fields)] struct P { a: u8, #[serde(alias = "b")] c: Option<bool> }
        }
        FieldRenamed at "lines[].b": {
            struct P { lines: Vec<L> } struct L { b: String }
        } => {
            struct P { lines: Vec<L> } struct L { #[serde(alias = "b")] c: String }
        }
        FieldAdded at "b": { struct P { a: u8 } } => { struct P { a: u8, b: Option<u8> } }
        FieldAdded at "b": { struct P { a: u8 } } => { struct P { a: u8, #[serde(default)] b: u8 } }
        RequiredFieldAdded at "b": { struct P { a: u8 } } => { struct P { a: u8, b: u8 } }
        RequiredFieldAdded at "inner.b": {
            struct P { inner: Option<I> } struct I { a: u8 }
        } => {
            struct P { inner: Option<I> } struct I { a: u8, b: u8 }
        }
        FieldRequired at "a": { struct P { #[serde(default)] a: u8 } } => { struct P { a: u8 } }
        FieldOptional at "a": { struct P { a: u8 } } => { struct P { #[serde(default)] a: u8 } }
        UnknownFieldsDenied at "": { struct P { a: u8 } } => { #[serde(deny_unknown_fields)] struct P { a: u8 } }
        EntriesRefused at "m": {
            struct P { m: BTreeMap<String, u8> }
        } => {
            struct P { m: M } struct M { #[serde(default)] a: u8 }
        }
    }
}

#[rustfmt::skip]
fn values() -> Vec<Case> {
    cases! {
        TypeChanged at "a": { struct P { a: i64 } } => { struct P { a: String } }
        TypeChanged at "a": { struct P { a: Option<i64> } } => { struct P { a: Option<String> } }
        TypeChanged at "a": { struct P { a: u8 } } => { struct P { a: Vec<u8> } }
        TypeChanged at "a": { struct P { a: f64 } } => { struct P { a: i64 } }
        TypeChanged at "a": { struct P { a: Value } } => { struct P { a: u8 } }
        TypeChanged at "a[1]": { struct P { a: (u8, u8) } } => { struct P { a: (u8, String) } }
        TypeChanged at "a{}": {
            struct P { a: BTreeMap<String, u8> }
        } => {
            struct P { a: BTreeMap<String, bool> }
        }
        TypeWidened at "a": { struct P { a: u8 } } => { struct P { a: Value } }
        TypeWidened at "a": { struct P { a: i32 } } => { struct P { a: f64 } }
        TypeWidened at "a": {
            struct P { a: E } enum E { X }
        } => {
            struct P { a: String }
        }
        NullRefused at "a[]": { struct P { a: Vec<Option<u8>> } } => { struct P { a: Vec<u8> } }
        NullRefused at "a[]": { struct P { a: Vec<Option<I>> } struct I { x: u8 } } => { struct P { a: Vec<I> } struct I { x: u8 } }
        NullAccepted at "a[]": { struct P { a: Vec<u8> } } => { struct P { a: Vec<Option<u8>> } }
        NullAccepted at "a": { struct P { a: u8 } } => { struct P { a: Option<u8> } }
        RangeNarrowed at "a": { struct P { a: i64 } } => { struct P { a: i32 } }
        RangeNarrowed at "a": { struct P { a: i64 } } => { struct P { a: u64 } }
        RangeNarrowed at "a": { struct P { a: u64 } } => { struct P { a: i64 } }
        RangeNarrowed at "a": { struct P { a: u8 } } => { struct P { #[schemars(range(max = 100))] a: u8 } }
        RangeNarrowed at "a": { struct P { a: u32 } } => { struct P { a: std::num::NonZeroU32 } }
        RangeWidened at "a": { struct P { a: u32 } } => { struct P { a: i64 } }
        RangeWidened at "a": { struct P { a: u32 } } => { struct P { a: u64 } }
        PrecisionLost at "a": { struct P { a: f64 } } => { struct P { a: f32 } }
        PrecisionLost at "a": { struct P { a: i64 } } => { struct P { a: f64 } }
        FormatNarrowed at "a": { struct P { a: String } } => { struct P { a: uuid::Uuid } }
        FormatNarrowed at "a": { struct P { a: String } } => { struct P { #[schemars(regex(pattern = "^x"))] a: String } }
        FormatNarrowed at "a{}": {
            struct P { a: BTreeMap<String, u8> }
        } => {
            struct P { a: BTreeMap<u32, u8> }
        }
        FormatWidened at "a": { struct P { a: uuid::Uuid } } => { struct P { a: String } }
        FormatWidened at "a{}": {
            struct P { a: BTreeMap<u32, u8> }
        } => {
            struct P { a: BTreeMap<String, u8> }
        }
        LengthNarrowed at "a": { struct P { a: (u8, u8) } } => { struct P { a: (u8, u8, u8) } }
        LengthNarrowed at "a": { struct P { a: Vec<u8> } } => { struct P { a: (u8, u8) } }
        LengthNarrowed at "a": { struct P { a: Vec<u8> } } => { struct P { a: [u8; 2] } }
        LengthNarrowed at "a": { struct P { a: String } } => { struct P { a: char } }
        LengthNarrowed at "a": { struct P { a: Vec<u8> } } => { struct P { a: std::collections::BTreeSet<u8> } }
        LengthWidened at "a": { struct P { a: [u8; 2] } } => { struct P { a: Vec<u8> } }
        LengthWidened at "a": { struct P { a: char } } => { struct P { a: String } }
        ConstraintChanged at "a": { struct P { a: i32 } } => { struct P { a: std::num::NonZeroI32 } }
    }
}

#[rustfmt::skip]
fn enums() -> Vec<Case> {
    cases! {
        VariantRemoved at "": { enum P { A, B, C } } => { enum P { A, B } }
        VariantRemoved at "": { enum P { A, B(u8) } } => { enum P { A } }
        VariantRemoved at "": { enum P { A, #[doc = "documented"] B } } => { enum P { A, Z } }
        VariantRemoved at "": {
            #[serde(tag = "t")] enum P { A { x: u8 }, B { x: u8 } }
        } => {
            #[serde(tag = "t")] enum P { A { x: u8 } }
        }
        VariantRemoved at "": {
            #[serde(tag = "t", content = "c")] enum P { A(u8), B(u8) }
        } => {
            #[serde(tag = "t", content = "c")] enum P { B(u8) }
        }
        VariantRemoved at "e": {
            struct P { e: Option<E> } enum E { A, B }
        } => {
            struct P { e: Option<E> } enum E { A }
        }
        TypeChanged at "": {
            #[serde(untagged)] enum P { A(u8), B(String), C(bool) }
        } => {
            #[serde(untagged)] enum P { A(u8), B(String) }
        }
        VariantAdded at "": { enum P { A } } => { enum P { A, B } }
        VariantAdded at "": { enum P { A { x: u8 } } } => { enum P { A { x: u8 }, B { y: u8 } } }
        VariantAdded at "": {
            #[serde(tag = "t")] enum P { A }
        } => {
            #[serde(tag = "t")] enum P { A, B { y: u8 } }
        }
        TypeWidened at "": {
            #[serde(untagged)] enum P { A(u8) }
        } => {
            #[serde(untagged)] enum P { A(u8), B(String) }
        }
        FieldRemoved at "A.y": { enum P { A { x: u8, y: u8 }, B } } => { enum P { A { x: u8 }, B } }
        RequiredFieldAdded at "y": {
            #[serde(tag = "t")] enum P { A { x: u8 }, B }
        } => {
            #[serde(tag = "t")] enum P { A { x: u8, y: u8 }, B }
        }
        TypeChanged at "c.x": {
            #[serde(tag = "t", content = "c")] enum P { A { x: u8 }, B }
        } => {
            #[serde(tag = "t", content = "c")] enum P { A { x: String }, B }
        }
        RangeNarrowed at "x": {
            struct P { y: u8, #[serde(flatten)] i: I } struct I { x: u16 }
        } => {
            struct P { y: u8, #[serde(flatten)] i: I } struct I { x: u8 }
        }
        VariantRemoved at "": {
            struct P { y: u8, #[serde(flatten)] i: I } #[serde(tag = "t")] enum I { A, B }
        } => {
            struct P { y: u8, #[serde(flatten)] i: I } #[serde(tag = "t")] enum I { A }
        }
    }
}

#[test]
fn each_rule_is_found_where_it_applies_and_alone() {
    for Case { rule, path, changes, decodes } in cases() {
        let found: Vec<(Rule, &str)> =
            changes.iter().map(|change| (change.rule, change.path.as_str())).collect();
        assert!(found.contains(&(rule, path)), "{rule:?} at `{path}`: {changes:#?}");
        let others = found.iter().filter(|found| **found != (rule, path)).collect::<Vec<_>>();
        assert!(
            others.iter().all(|(other, _)| other.verdict() == super::Verdict::Safe),
            "{rule:?} at `{path}`, and also {others:?}: {changes:#?}"
        );
        assert!(decodes || rule.verdict() == super::Verdict::Breaking, "{rule:?} at `{path}` is not safe");
    }
}

#[test]
fn every_rule_has_a_case() {
    let of_files = [Rule::VersionUnread, Rule::VersionLowered, Rule::NameUnread];
    let covered: Vec<Rule> = cases().into_iter().map(|case| case.rule).chain(of_files).collect();
    let missing: Vec<&Rule> = Rule::ALL.iter().filter(|rule| !covered.contains(rule)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
