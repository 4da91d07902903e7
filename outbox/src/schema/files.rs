//! The stored schemas: a file for each event type and version.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::SchemaError;

/// By event type and version.
pub(super) type Stored = BTreeMap<(String, u32), Value>;

/// `billing.invoice.v2.json`
pub(super) fn name(event_type: &str, version: u32) -> String {
    format!("{event_type}.v{version}.json")
}

fn parse_name(name: &str) -> Option<(String, u32)> {
    let (event_type, version) = name.strip_suffix(".json")?.rsplit_once(".v")?;
    Some((event_type.to_owned(), version.parse().ok()?))
}

/// Every stored schema. No folder: none. Files of other names are somebody else's.
pub(super) fn read_all(folder: &Path) -> Result<Stored, SchemaError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| SchemaError::Io { path, source }
    };
    let mut stored = Stored::new();
    if !folder.exists() {
        return Ok(stored);
    }
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        let Some(of) = path.file_name().and_then(|name| parse_name(name.to_str()?)) else { continue };
        let text = fs::read_to_string(&path).map_err(at(&path))?;
        let schema =
            serde_json::from_str(&text).map_err(|source| SchemaError::Json { path: path.clone(), source })?;
        stored.insert(of, schema);
    }
    Ok(stored)
}

pub(super) fn write(path: &PathBuf, schema: &Value) -> Result<(), SchemaError> {
    let failed = |source| SchemaError::Io { path: path.clone(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    // The keys' order, which another crate may have made that of insertion, must not show.
    let mut sorted = schema.clone();
    sorted.sort_all_objects();
    fs::write(path, format!("{sorted:#}\n")).map_err(failed)
}
