//! The test that what is stored can still be read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::error::{Finding, SchemaError};
use super::files::{self, Stored};
use super::rules::{Change, Rule};
use super::{compare, in_order, sample, shape};
use crate::registry::{HandlerDef, Registry};

/// A test that what is stored can still be read: compares the payloads of every linked handler with the schemas in this
/// folder, which belongs into the repository. One line in a test of the program, or of the crate, that has the handlers:
///
/// ```no_run
/// # mod handlers {}
/// use handlers as _; // where they are in a crate that the test does not refer to otherwise
///
/// #[test]
/// fn schemas() {
///     outbox::schema::check("schemas");
/// }
/// ```
///
/// The folder holds a file for each event type and version, `billing.invoice.v1.json`; a path that is not absolute begins
/// where the crate's `Cargo.toml` is. A file says what events of that version may look like in the table. Its reader is
/// the present payload; or, for an older version, what its `upcast` function takes. A reader that would not decode
/// everything that its file allows, or would drop something of it, fails the test, in the words of the [`Rule`] that it
/// breaks. The remedy is a new version with an `upcast`, for which a file of its own is begun. Where no such event is
/// stored anywhere, deleting the file will do.
///
/// What is new, or changed in a safe way, is written to the folder, to be committed. Where the environment has `CI` the
/// test fails instead, since nobody would commit it there; `OUTBOX_SCHEMAS=update` and `OUTBOX_SCHEMAS=verify` say which
/// of the two is wanted wherever it runs.
///
/// Schemas do not show `#[serde(alias)]`: whether a removed field is still read is tried, on a sample made up from the
/// file. So a field that was renamed may be read under its old name, but the test does not see a later removal of the
/// alias; and it reports a renamed variant of an enum whether it has an alias or not.
///
/// # Panics
/// When stored events would not survive, with every finding; when the folder is not as it should be and may not be
/// written; when no handler is linked.
#[track_caller]
pub fn check(folder: impl AsRef<Path>) {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let mode = Mode::from_environment();
    match mode.and_then(|mode| check_registry(&Registry::linked(), &root.join(folder), mode)) {
        Ok(written) => written.iter().for_each(|path| eprintln!("wrote {}: commit it", path.display())),
        Err(error) => panic!("{error}"),
    }
}

/// What becomes of schemas that are new, or have changed in a safe way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They are written.
    Update,
    /// They are an error.
    Verify,
}

impl Mode {
    /// Whether the file is to be written anew. What is only worded otherwise does not fail a test.
    fn is_behind(self, file: Option<&Value>, reader: &Value) -> bool {
        file.is_none_or(|file| match self {
            Self::Update => file != reader,
            Self::Verify => shape::without_annotations(file) != shape::without_annotations(reader),
        })
    }

    /// What `OUTBOX_SCHEMAS` says, `update` or `verify`; else `Verify` where `CI` is set, and `Update` elsewhere.
    ///
    /// # Errors
    /// [`SchemaError::Mode`] for another word.
    pub fn from_environment() -> Result<Self, SchemaError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        match variable("OUTBOX_SCHEMAS").as_deref() {
            Some("update") => Ok(Self::Update),
            Some("verify") => Ok(Self::Verify),
            Some(other) => Err(SchemaError::Mode(other.to_owned())),
            None if variable("CI").is_some_and(|value| value != "false") => Ok(Self::Verify),
            None => Ok(Self::Update),
        }
    }
}

/// As [`check`], of the handlers of this registry; the files that were written.
///
/// # Errors
/// [`SchemaError`]; then nothing was written, but for an error of writing itself.
pub fn check_registry(registry: &Registry, folder: &Path, mode: Mode) -> Result<Vec<PathBuf>, SchemaError> {
    if registry.handlers().is_empty() {
        return Err(SchemaError::NoHandlers);
    }
    let mut stored = files::read_all(folder)?;
    let (mut findings, mut behind) = (Vec::new(), Vec::new());
    for def in in_order(registry) {
        let readers = Readers::of(def);
        let present = stored.get(&(def.event_type.to_owned(), def.version));
        if mode.is_behind(present, &readers.present) {
            behind.push((folder.join(files::name(def.event_type, def.version)), readers.present.clone()));
        }
        findings.extend(readers.findings(&mut stored));
    }
    findings.extend(stored.into_keys().map(|(name, version)| left_over(registry, &name, version)));
    if !findings.is_empty() {
        return Err(SchemaError::Breaking { findings, folder: folder.to_owned() });
    }
    let (paths, schemas): (Vec<PathBuf>, Vec<Value>) = behind.into_iter().unzip();
    if mode == Mode::Verify && !paths.is_empty() {
        return Err(SchemaError::Outdated { paths });
    }
    for (path, schema) in paths.iter().zip(&schemas) {
        files::write(path, schema)?;
    }
    Ok(paths)
}

/// A file that no handler reads.
fn left_over(registry: &Registry, name: &str, version: u32) -> Finding {
    let handler = registry.handler_of(name);
    let change = match handler {
        Some(def) => unread(Rule::VersionLowered, &format!("the handler's version is {}", def.version)),
        None => unread(Rule::NameUnread, "no handler has this name, or once had it (`aliases(…)`)"),
    };
    Finding::new(name, version, change, handler.map_or(version, |def| def.version))
}

fn unread(rule: Rule, what: &str) -> Change {
    Change { rule, path: String::new(), what: what.to_owned() }
}

/// What reads each version of a handler's payload.
struct Readers<'d> {
    def: &'d HandlerDef,
    present: Value,
    older: BTreeMap<u32, Value>,
}

impl<'d> Readers<'d> {
    fn of(def: &'d HandlerDef) -> Self {
        let older = def.older_payload_schemas().into_iter();
        let older = older.map(|(version, schema)| (version, schema.to_value())).collect();
        Self { def, present: def.payload_schema().to_value(), older }
    }

    /// What is wrong with this handler's stored schemas, under all its names; takes them out.
    fn findings(&self, stored: &mut Stored) -> Vec<Finding> {
        let is_own = |(name, version): &(String, u32), _: &mut Value| {
            self.def.handles(name) && *version <= self.def.version
        };
        let own = stored.extract_if(.., is_own);
        own.flat_map(|((name, version), file)| {
            let breaking = self.changes(version, &file).into_iter().filter(Change::is_breaking);
            breaking.map(|change| Finding::new(&name, version, change, self.def.version)).collect::<Vec<_>>()
        })
        .collect()
    }

    fn changes(&self, version: u32, file: &Value) -> Vec<Change> {
        // Without upcasts every version is decoded as the present one, which alone can be tried.
        if version == self.def.version || self.older.is_empty() {
            return sample::renamed(file, compare::compare(file, &self.present), self.def.decodes);
        }
        match self.older.get(&version) {
            Some(reader) => sample::renamed(file, compare::compare(file, reader), |_| false),
            None => vec![unread(Rule::VersionUnread, "no upcast leads from this version")],
        }
    }
}
