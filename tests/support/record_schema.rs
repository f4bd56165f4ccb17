//! The JSON schema of the record, and records checked against it.

use super::book::root;
use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;

static SCHEMA: LazyLock<(Schemas, SchemaIndex)> = LazyLock::new(|| {
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    let path = root().join("docs/results/record.schema.json");
    let index = compiler.compile(&path.to_string_lossy(), &mut schemas).expect("the schema is one");
    (schemas, index)
});

/// Returns what is wrong with a record by the schema.
pub fn violations(record: &Value) -> Option<String> {
    let (schemas, index) = &*SCHEMA;
    schemas.validate(record, *index).err().map(|error| format!("{error:#}"))
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
