//! What the test has to say.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::files;
use super::rules::{Change, Rule};

/// A change that stored events would not survive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The name under which they are stored.
    pub event_type: String,
    /// The version in which they are stored.
    pub version: u32,
    /// The change.
    pub change: Change,
    /// The version that could be raised.
    present: u32,
}

impl Finding {
    pub(super) fn new(event_type: &str, version: u32, change: Change, present: u32) -> Self {
        Self { event_type: event_type.to_owned(), version, change, present }
    }

    fn remedy(&self) -> String {
        let Self { event_type, version, present, .. } = self;
        match self.change.rule {
            Rule::NameUnread => {
                format!(
                    "keep its handler, or write `aliases(\"{event_type}\")` where the event has its new name"
                )
            }
            Rule::VersionLowered => format!("take the version up to {version} again"),
            _ if version < present => {
                format!(
                    "write `upcast({version} => from_v{version})`, a function that takes what version {version} was"
                )
            }
            _ => format!(
                "raise the version, and lead the old one there: `version = {}, upcast({version} => from_v{version})`",
                present + 1
            ),
        }
    }
}

/// Why the schemas do not stand.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Stored events would not survive what has changed.
    #[error("stored events would not survive what has changed:{}", listed(findings, folder))]
    Breaking {
        /// Each change.
        findings: Vec<Finding>,
        /// Where the stored schemas are.
        folder: PathBuf,
    },
    /// Files that are missing, or behind a safe change.
    #[error(
        "the stored schemas are behind the payloads; run this test where it may write (without CI, or with \
         OUTBOX_SCHEMAS=update), and commit: {}",
        paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Outdated {
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// The program has no handler, so nothing can be said.
    #[error(
        "no handler is linked into this test: if they are in a crate that it does not refer to otherwise, name it \
         once, `use that_crate as _;`"
    )]
    NoHandlers,
    /// An unknown word in the environment.
    #[error("OUTBOX_SCHEMAS is `{0}`, and can be `update` or `verify`")]
    Mode(String),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that holds no JSON.
    #[error("{} holds no JSON schema: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

crate::readable::readable!(SchemaError);

fn listed(findings: &[Finding], folder: &Path) -> String {
    let mut text = String::new();
    for group in findings.chunk_by(|a, b| (&a.event_type, a.version) == (&b.event_type, b.version)) {
        let Finding { event_type, version, .. } = &group[0];
        for finding in group {
            // Writing to a string does not fail.
            let _ = write!(text, "\n  {event_type} v{version}: {}", finding.change);
        }
        let file = folder.join(files::name(event_type, *version));
        let _ = write!(
            text,
            "\n    {}; or, if no such event is stored anywhere, delete {}",
            group[0].remedy(),
            file.display()
        );
    }
    text
}
