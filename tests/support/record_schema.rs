//! The JSON schema of the record, and records checked against it.

use super::book::page;
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(&page("docs/results/record.schema.json")).expect("the schema is JSON"));

/// Returns what is wrong with a record by the schema.
pub fn violations(record: &Value) -> Option<String> {
    violation(&SCHEMA, record, "record")
}

/// The first thing that is wrong with a value. Every keyword that the schema uses is checked; another one panics.
fn violation(schema: &Value, value: &Value, path: &str) -> Option<String> {
    let number = |limit: &Value| limit.as_f64().expect("a limit is a number");
    let count = value.as_array().map(Vec::len).or_else(|| value.as_object().map(|object| object.len()));
    for (keyword, expected) in schema.as_object().expect("a schema is an object") {
        let is_met = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let place = expected.as_str().and_then(|place| place.strip_prefix('#')).expect("a place in the schema");
                let target = SCHEMA.pointer(place).unwrap_or_else(|| panic!("{place} is not there"));
                if let Some(problem) = violation(target, value, path) {
                    return Some(problem);
                }
                true
            }
            "type" => match expected {
                Value::Array(kinds) => kinds.iter().any(|kind| is_of(value, kind)),
                kind => is_of(value, kind),
            },
            "const" => value == expected,
            "enum" => expected.as_array().expect("a list").contains(value),
            "anyOf" => expected.as_array().expect("a list").iter().any(|one| violation(one, value, path).is_none()),
            "minimum" => value.as_f64().is_none_or(|value| value >= number(expected)),
            "minItems" | "minProperties" => count.is_none_or(|count| count as f64 >= number(expected)),
            "maxItems" | "maxProperties" => count.is_none_or(|count| count as f64 <= number(expected)),
            "required" => {
                let missing = expected
                    .as_array()
                    .expect("a list")
                    .iter()
                    .find(|name| value.get(name.as_str().expect("a name")).is_none());
                if let Some(name) = missing.filter(|_| value.is_object()) {
                    return Some(format!("{path} lacks {name}"));
                }
                true
            }
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                if let Some(problem) =
                    items.into_iter().find_map(|(index, item)| violation(expected, item, &format!("{path}[{index}]")))
                {
                    return Some(problem);
                }
                true
            }
            "properties" | "additionalProperties" => {
                let known = schema.get("properties");
                for (name, member) in value.as_object().into_iter().flatten() {
                    let place = format!("{path}.{name}");
                    let problem = match (known.and_then(|known| known.get(name)), keyword.as_str()) {
                        (Some(own), "properties") => violation(own, member, &place),
                        (None, "additionalProperties") if expected == false => {
                            Some(format!("{place} is not described"))
                        }
                        (None, "additionalProperties") => violation(expected, member, &place),
                        _ => None,
                    };
                    if problem.is_some() {
                        return problem;
                    }
                }
                true
            }
            other => panic!("the schema uses {other}, which is not checked"),
        };
        if !is_met {
            return Some(format!("{path} is {value}, against {keyword} {expected}"));
        }
    }
    None
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str().expect("a type is a word") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other} is no type of JSON"),
    }
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
