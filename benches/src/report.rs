//! What the benchmark says: a table for people, JSON for programs, and whether every target was met.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::measure::{median, spread};

/// One figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Line {
    part: &'static str,
    name: String,
    value: f64,
    unit: &'static str,
    /// By the same figure of the bare statements, or of what it must stay close to.
    limit_ratio: Option<f64>,
    /// By the same figure of the fastest peer.
    peer_ratio: Option<f64>,
    peer: Option<String>,
    target: Option<String>,
    met: Option<bool>,
    #[serde(skip)]
    spread: Option<f64>,
    #[serde(skip)]
    note: String,
}

impl Line {
    pub(crate) fn new(part: &'static str, name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            part,
            name: name.into(),
            value,
            unit,
            limit_ratio: None,
            peer_ratio: None,
            peer: None,
            target: None,
            met: None,
            spread: None,
            note: String::new(),
        }
    }

    /// The median of several rounds.
    pub(crate) fn of_rounds(
        part: &'static str,
        name: impl Into<String>,
        rounds: &[f64],
        unit: &'static str,
    ) -> Self {
        Self { spread: Some(spread(rounds)), ..Self::new(part, name, median(rounds), unit) }
    }

    pub(crate) fn limit_ratio(mut self, ratio: f64) -> Self {
        self.limit_ratio = Some(ratio);
        self
    }

    pub(crate) fn peer_ratio(mut self, ratio: f64, peer: &str) -> Self {
        self.peer_ratio = Some(ratio);
        self.peer = Some(peer.to_owned());
        self
    }

    /// What it has to be, and whether it is.
    pub(crate) fn target(mut self, target: impl Into<String>, met: bool) -> Self {
        self.target = Some(target.into());
        // A part that is missing something has met nothing.
        self.met = Some(met && self.met != Some(false));
        self
    }

    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// Prints a part's figures as it ends.
pub(crate) fn print(lines: &[Line]) {
    let mut text = String::new();
    for line in lines {
        let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let spread = line.spread.map_or(String::new(), |spread| format!("±{:.0} %", spread * 50.0));
        let met = line.met.map_or("", |met| if met { "met" } else { "NOT MET" });
        let _ = writeln!(
            text,
            "{:<11} {:<52} {:>12} {:<12} {:>6} {:>7} {:>7} {:<18} {:<26} {met} {}",
            line.part,
            line.name,
            number(line.value),
            line.unit,
            spread,
            ratio(line.limit_ratio),
            ratio(line.peer_ratio),
            line.peer.as_deref().unwrap_or_default(),
            line.target.as_deref().unwrap_or_default(),
            line.note,
        );
    }
    print!("{text}");
}

pub(crate) fn heading() {
    println!(
        "{:<11} {:<52} {:>12} {:<12} {:>6} {:>7} {:>7} {:<18} {:<26}",
        "part", "name", "value", "unit", "", "× limit", "× peer", "peer", "target"
    );
}

fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.4}"),
    }
}

/// Writes the figures for programs.
pub(crate) fn write(path: &Path, lines: &[Line]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, serde_json::to_string_pretty(lines)? + "\n")
}

/// Whether every target was met.
pub(crate) fn all_met(lines: &[Line]) -> bool {
    lines.iter().all(|line| line.met != Some(false))
}
