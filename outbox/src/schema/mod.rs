//! The JSON Schemas of all payloads, and a test that stored events can still be read.
//!
//! An event outlives the program that enqueued it. [`check`] is a test of one line that fails when a payload changes in a
//! way that events stored before would not survive; [`document`] is everything in one JSON document, for people and
//! for other languages.
//!
//! ```standalone_crate
//! # use outbox::{HandlerResult, outbox_handler};
//! # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
//! # struct Invoice { cents: i64 }
//! # #[outbox_handler("doc.schema")]
//! # async fn push_invoice(invoice: Invoice) -> HandlerResult { let _ = invoice.cents; Ok(()) }
//! let document = outbox::schema::document();
//! assert_eq!(document["events"][0]["event_type"], "doc.schema");
//! assert_eq!(document["events"][0]["payload"]["properties"]["cents"]["format"], "int64");
//! ```

mod check;
mod compare;
mod error;
mod files;
mod leaf;
mod path;
mod rules;
mod sample;
mod shape;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::registry::{HandlerDef, Registry};
pub use check::{Mode, check, check_registry};
pub use error::{Finding, SchemaError};
pub use rules::{Change, Rule, Verdict};

/// The payloads of every linked handler, as one JSON document.
///
/// `{"events": [{"event_type", "version", "aliases", "max_attempts", "handler": {"function", "file", "line"}, "payload",
/// "older_payloads": [{"version", "payload"}]}]}`, by event type; `payload` is the JSON Schema (2020-12) of what is
/// decoded.
pub fn document() -> Value {
    document_of(&Registry::linked())
}

/// As [`document`], of the handlers of this registry.
pub fn document_of(registry: &Registry) -> Value {
    let events: Vec<Value> = in_order(registry).into_iter().map(event).collect();
    let mut document = json!({ "events": events });
    document.sort_all_objects();
    document
}

fn in_order(registry: &Registry) -> Vec<&HandlerDef> {
    let mut handlers: Vec<&HandlerDef> = registry.handlers().iter().collect();
    handlers.sort_by_key(|def| def.order());
    handlers
}

fn event(def: &HandlerDef) -> Value {
    let older = def.older_payload_schemas().into_iter();
    let older: Vec<Value> =
        older.map(|(version, schema)| json!({ "version": version, "payload": schema })).collect();
    json!({
        "event_type": def.event_type,
        "version": def.version,
        "aliases": def.aliases,
        "max_attempts": def.max_attempts,
        "handler": { "function": def.name, "file": def.file, "line": def.line },
        "payload": def.payload_schema(),
        "older_payloads": older,
    })
}
