//! JSON checked against a JSON schema.

use serde_json::Value;

/// Returns the first thing that is wrong with a value by a schema. `name` stands for the value in the answer.
pub fn violations(schema: &Value, value: &Value, name: &str) -> Option<String> {
    violation(schema, schema, value, name)
}

/// The first thing that is wrong with a value. Every keyword that the schema uses is checked; another one panics.
fn violation(root: &Value, schema: &Value, value: &Value, path: &str) -> Option<String> {
    let number = |limit: &Value| limit.as_f64().expect("a limit is a number");
    let count = value.as_array().map(Vec::len).or_else(|| value.as_object().map(|object| object.len()));
    for (keyword, expected) in schema.as_object().expect("a schema is an object") {
        let is_met = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let place = expected.as_str().and_then(|place| place.strip_prefix('#')).expect("a place in the schema");
                let target = root.pointer(place).unwrap_or_else(|| panic!("{place} is not there"));
                if let Some(problem) = violation(root, target, value, path) {
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
            "anyOf" => {
                expected.as_array().expect("a list").iter().any(|one| violation(root, one, value, path).is_none())
            }
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
                if let Some(problem) = items
                    .into_iter()
                    .find_map(|(index, item)| violation(root, expected, item, &format!("{path}[{index}]")))
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
                        (Some(own), "properties") => violation(root, own, member, &place),
                        (None, "additionalProperties") if expected == false => {
                            Some(format!("{place} is not described"))
                        }
                        (None, "additionalProperties") => violation(root, expected, member, &place),
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
