//! The JSON schema of the record, and records checked against it.

use super::book::page;
use super::json_schema;
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&page("docs/results/record.schema.json")).expect("the schema is JSON"));

/// Returns what is wrong with a record by the schema.
pub fn violations(record: &Value) -> Option<String> {
    json_schema::violations(&SCHEMA, record, "record")
}

/// Checks every record (`STEM.tune.json`) in a folder. What is no file, no JSON or of another format was made so by its test.
pub fn assert_records_in(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            assert_records_in(&path);
        } else if path.is_file() && path.to_string_lossy().ends_with(".tune.json") {
            let record = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
            let problem = record.filter(|record| record["format"] == 1).and_then(|record| violations(&record));
            assert_eq!(problem, None, "{}", path.display());
        }
    }
}
