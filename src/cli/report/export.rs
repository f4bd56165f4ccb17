//! The rows as data for other programs: JSON and CSV.

use super::rows::Row;

/// Returns the rows as a JSON array of objects, one for each kernel.
pub fn json(rows: &[Row]) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(rows).map(|text| text + "\n")
}

/// Returns the rows as CSV (RFC 4180) with the names of the JSON's fields in the first line.
pub fn csv(rows: &[Row]) -> Result<String, serde_json::Error> {
    let columns = [
        "kernel",
        "source",
        "record",
        "architecture",
        "gpu",
        "provenance",
        "speedup",
        "winner",
        "baseline",
        "winner_us",
        "baseline_us",
        "bottleneck",
        "points",
        "timed",
        "gpu_us",
        "gpu_share",
    ];
    let mut text = format!("{}\r\n", columns.join(","));
    for row in rows {
        let object = serde_json::to_value(row)?;
        let cells = columns.map(|column| field(&object[column]));
        text.push_str(&format!("{}\r\n", cells.join(",")));
    }
    Ok(text)
}

/// A value as a field: quoted if it has a character that ends a field.
fn field(value: &serde_json::Value) -> String {
    let text = match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        // An execution unit: {"pipe": "fma"}.
        serde_json::Value::Object(object) => {
            object.iter().map(|(name, value)| format!("{name}:{}", field(value))).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_and_quotes_are_quoted() {
        for (value, expected) in [
            (serde_json::json!("a,b"), "\"a,b\""),
            (serde_json::json!("say \"a\""), "\"say \"\"a\"\"\""),
            (serde_json::json!(null), ""),
            (serde_json::json!(1.5), "1.5"),
            (serde_json::json!({"pipe": "fma"}), "pipe:fma"),
        ] {
            assert_eq!(field(&value), expected);
        }
    }
}
