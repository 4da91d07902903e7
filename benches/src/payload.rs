//! What is enqueued: about 65 bytes of JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Its name, which the bare statements use too.
pub(crate) const EVENT_TYPE: &str = "bench.invoice";

/// An invoice.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub(crate) struct Invoice {
    invoice: u64,
    customer: String,
    cents: i64,
    currency: String,
}

impl Invoice {
    pub(crate) fn new(number: u64) -> Self {
        Self {
            invoice: number,
            customer: format!("cus_{number:08}"),
            cents: 1999,
            currency: "EUR".to_owned(),
        }
    }
}
