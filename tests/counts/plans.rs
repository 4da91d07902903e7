//! The plans that the server made for the library's own statements, as `EXPLAIN (ANALYZE, FORMAT JSON)` would show them:
//! the server's auto_explain sends each to the client whose statement it was.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sqlx::postgres::PgConnectOptions;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::prelude::*;

/// What the server said.
#[derive(Clone, Default)]
pub struct Plans(Arc<Mutex<Vec<u8>>>);

impl Plans {
    /// Listens to what every server says to this process.
    pub fn listen() -> Self {
        let plans = Self::default();
        let notices = Targets::new().with_target("sqlx::postgres::notice", tracing::Level::TRACE);
        let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(plans.clone());
        tracing_subscriber::registry().with(layer.with_filter(notices)).init();
        plans
    }

    /// Asks the server for the plans of all that these connections send.
    pub fn explained(options: PgConnectOptions) -> PgConnectOptions {
        options.options([
            ("session_preload_libraries", "auto_explain"),
            ("auto_explain.log_min_duration", "0"),
            ("auto_explain.log_analyze", "on"),
            ("auto_explain.log_format", "json"),
            ("client_min_messages", "log"),
        ])
    }

    /// The plans of the statements that begin so.
    pub fn of(&self, beginning: &str) -> Vec<Value> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&said);
        let plans = said.split("plan:").skip(1).filter_map(|text| {
            let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
            values.next()?.ok()
        });
        plans
            .filter(|plan| plan["Query Text"].as_str().is_some_and(|text| text.starts_with(beginning)))
            .collect()
    }
}

impl<'a> MakeWriter<'a> for Plans {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl io::Write for Plans {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The rows that all scans of a plan read, those that they threw away again among them.
pub fn rows_read(plan: &Value) -> f64 {
    let number = |name: &str| plan[name].as_f64().unwrap_or(0.0);
    let is_scan = plan["Relation Name"] == "outbox_event"
        && plan["Node Type"].as_str().is_some_and(|of| of.ends_with("Scan"));
    let loops = number("Actual Loops");
    let own = (number("Actual Rows") + number("Rows Removed by Filter")) * loops;
    let below: f64 = plan["Plans"].as_array().into_iter().flatten().map(rows_read).sum();
    below + if is_scan { own } else { 0.0 }
}
