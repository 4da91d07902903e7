//! The stored schemas of a program that changes from release to release.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

use std::fs;
use std::path::{Path, PathBuf};

use outbox::schema::{Mode, Rule, SchemaError, check_registry, document_of};
use outbox::{HandlerDef, Registry, handler};

/// A release: a module of its own, with the handler `push` of an event that others have as well.
macro_rules! release {
    ($release:ident: $arguments:tt $($items:tt)*) => {
        mod $release {
            use outbox::outbox_handler;
            use schemars::JsonSchema;
            use serde::{Deserialize, Serialize};

            $($items)*
            release!(@push $arguments);
        }
    };
    (@push ($($arguments:tt)*)) => {
        #[outbox_handler($($arguments)*, register = false)]
        pub(super) async fn push(_invoice: Invoice) {}
    };
}

release! { first: ("billing.invoice")
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Invoice { cents: i64 }
}

release! { reworded: ("billing.invoice")
    /// An invoice.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Invoice {
        /// In cents.
        cents: i64,
    }
}

release! { with_a_note: ("billing.invoice")
    /// Now with docs.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Invoice { cents: i64, note: Option<String> }
}

release! { broken: ("billing.invoice")
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Invoice { cents: String, currency: String }
}

release! { raised_only: ("billing.invoice", version = 2)
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Invoice { cents: String, currency: String }
}

release! { raised: ("billing.invoice", version = 2, upcast(1 => from_v1))
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct InvoiceV1 { cents: i64 }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Invoice { cents: String, currency: String }

    fn from_v1(old: InvoiceV1) -> Invoice {
        Invoice { cents: old.cents.to_string(), currency: "EUR".to_owned() }
    }
}

release! { touched_the_past: ("billing.invoice", version = 2, upcast(1 => from_v1))
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct InvoiceV1 { cents: u32 }

    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Invoice { cents: String, currency: String }

    fn from_v1(old: InvoiceV1) -> Invoice {
        Invoice { cents: old.cents.to_string(), currency: "EUR".to_owned() }
    }
}

release! { forgot_the_first: ("billing.invoice", version = 3, upcast(2 => from_v2))
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Invoice { cents: String, currency: String }

    fn from_v2(old: Invoice) -> Invoice {
        old
    }
}

release! { renamed: ("billing.bill", aliases("billing.invoice"))
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Invoice { #[serde(alias = "cents")] amount: i64 }
}

release! { renamed_only: ("billing.bill")
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Invoice { cents: i64 }
}

struct Folder(tempfile::TempDir);

impl Folder {
    /// What a program of these handlers leaves.
    fn after(handler: HandlerDef) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.check(handler, Mode::Update).unwrap();
        folder
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("schemas")
    }

    fn check(&self, handler: HandlerDef, mode: Mode) -> Result<Vec<String>, SchemaError> {
        let written = check_registry(&Registry::empty().with(handler), &self.path(), mode)?;
        Ok(written.iter().map(|path| file_name(path)).collect())
    }

    /// The rules that are broken, and the whole message; nothing was written.
    fn refuses(&self, handler: HandlerDef) -> (Vec<Rule>, String) {
        let before = self.files();
        let error = self.check(handler, Mode::Update).unwrap_err();
        assert_eq!(self.files(), before);
        let message = error.to_string();
        match error {
            SchemaError::Breaking { findings, .. } => {
                (findings.into_iter().map(|finding| finding.change.rule).collect(), message)
            }
            other => panic!("{other}"),
        }
    }

    fn files(&self) -> Vec<(String, String)> {
        let read = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.unwrap().path();
            (file_name(&path), fs::read_to_string(&path).unwrap())
        };
        let mut files: Vec<_> = fs::read_dir(self.path()).unwrap().map(read).collect();
        files.sort();
        files
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_new_event_type_is_written_once_and_demanded_where_nobody_commits() {
    let folder = Folder(tempfile::tempdir().unwrap());
    let missing = folder.check(handler!(first::push), Mode::Verify).unwrap_err();
    assert!(
        matches!(&missing, SchemaError::Outdated { paths } if file_name(&paths[0]) == "billing.invoice.v1.json")
    );
    assert!(missing.to_string().contains("OUTBOX_SCHEMAS=update"), "{missing}");
    assert!(!folder.path().exists());
    assert_eq!(folder.check(handler!(first::push), Mode::Update).unwrap(), ["billing.invoice.v1.json"]);
    for mode in [Mode::Update, Mode::Verify] {
        assert!(folder.check(handler!(first::push), mode).unwrap().is_empty());
    }
    let schema: serde_json::Value = serde_json::from_str(&folder.files()[0].1).unwrap();
    assert_eq!(schema["properties"]["cents"]["format"], "int64", "the file is a JSON Schema");
}

#[test]
fn a_safe_change_is_written_and_cannot_be_taken_back() {
    let folder = Folder::after(handler!(first::push));
    let behind = folder.check(handler!(with_a_note::push), Mode::Verify);
    assert!(matches!(behind, Err(SchemaError::Outdated { .. })));
    assert_eq!(folder.check(handler!(with_a_note::push), Mode::Update).unwrap(), ["billing.invoice.v1.json"]);
    assert_eq!(folder.refuses(handler!(first::push)).0, [Rule::FieldRemoved]);
}

#[test]
fn rewording_the_docs_fails_no_test() {
    let folder = Folder::after(handler!(first::push));
    assert!(folder.check(handler!(reworded::push), Mode::Verify).unwrap().is_empty());
    assert_eq!(folder.check(handler!(reworded::push), Mode::Update).unwrap(), ["billing.invoice.v1.json"]);
    assert!(folder.files()[0].1.contains("In cents."));
}

#[test]
fn a_breaking_change_says_what_broke_and_what_to_do() {
    let folder = Folder::after(handler!(first::push));
    let (rules, message) = folder.refuses(handler!(broken::push));
    assert_eq!(rules, [Rule::TypeChanged, Rule::RequiredFieldAdded]);
    let expected = format!(
        "stored events would not survive what has changed:\n  \
         billing.invoice v1: `cents`: type changed from integer to string; what is stored would not decode\n  \
         billing.invoice v1: `currency`: a new field without a default; events stored before do not have it\n    \
         raise the version, and lead the old one there: `version = 2, upcast(1 => from_v1)`; or, if no such event is \
         stored anywhere, delete {}",
        folder.path().join("billing.invoice.v1.json").display()
    );
    assert_eq!(message, expected);
}

#[test]
fn a_new_version_needs_a_way_there() {
    let folder = Folder::after(handler!(first::push));
    let (rules, message) = folder.refuses(handler!(raised_only::push));
    assert_eq!(rules, [Rule::TypeChanged, Rule::RequiredFieldAdded], "it would read the first version, too");
    assert!(message.contains("write `upcast(1 => from_v1)`"), "{message}");
    assert_eq!(folder.check(handler!(raised::push), Mode::Update).unwrap(), ["billing.invoice.v2.json"]);
    assert!(folder.check(handler!(raised::push), Mode::Verify).unwrap().is_empty());
    // Both versions are looked after from here on.
    assert_eq!(folder.refuses(handler!(touched_the_past::push)).0, [Rule::RangeNarrowed]);
    assert_eq!(folder.refuses(handler!(forgot_the_first::push)).0, [Rule::VersionUnread]);
    let (rules, message) = folder.refuses(handler!(first::push));
    assert_eq!(rules, [Rule::VersionLowered]);
    assert!(message.contains("take the version up to 2 again"), "{message}");
}

#[test]
fn a_new_name_has_to_remember_the_old_one() {
    let folder = Folder::after(handler!(first::push));
    let (rules, message) = folder.refuses(handler!(renamed_only::push));
    assert_eq!(rules, [Rule::NameUnread]);
    assert!(message.contains("aliases(\"billing.invoice\")"), "{message}");
    // The field has another name as well; serde's alias is seen by trying.
    assert_eq!(folder.check(handler!(renamed::push), Mode::Update).unwrap(), ["billing.bill.v1.json"]);
    assert!(folder.check(handler!(renamed::push), Mode::Verify).unwrap().is_empty());
}

#[test]
fn what_is_no_schema_is_said() {
    let folder = Folder::after(handler!(first::push));
    fs::write(folder.path().join("README.md"), "not ours").unwrap();
    assert!(folder.check(handler!(first::push), Mode::Verify).unwrap().is_empty());
    fs::write(folder.path().join("billing.invoice.v1.json"), "<<<<<<< a conflict").unwrap();
    let error = folder.check(handler!(first::push), Mode::Update).unwrap_err();
    assert!(matches!(error, SchemaError::Json { .. }), "{error}");
    let nothing = check_registry(&Registry::empty(), &folder.path(), Mode::Update);
    assert!(matches!(nothing, Err(SchemaError::NoHandlers)));
}

#[test]
fn the_document_holds_every_handler_in_order() {
    let registry = Registry::empty().with(handler!(raised::push)).with(handler!(renamed::push));
    let document = document_of(&registry);
    assert_eq!(
        document,
        document_of(&Registry::empty().with(handler!(renamed::push)).with(handler!(raised::push)))
    );
    let [bill, invoice] = document["events"].as_array().unwrap().as_slice() else { panic!("{document}") };
    assert_eq!(
        (&bill["event_type"], &bill["aliases"][0]),
        (&"billing.bill".into(), &"billing.invoice".into())
    );
    assert_eq!((&invoice["version"], &invoice["max_attempts"]), (&2.into(), &10.into()));
    assert_eq!(invoice["handler"]["function"], "schemas::raised::push");
    assert!(invoice["handler"]["file"].as_str().unwrap().ends_with("schemas/main.rs"));
    assert_eq!(invoice["payload"]["properties"]["currency"]["type"], "string");
    assert_eq!(invoice["older_payloads"][0]["version"], 1);
    assert_eq!(invoice["older_payloads"][0]["payload"]["properties"]["cents"]["format"], "int64");
}
