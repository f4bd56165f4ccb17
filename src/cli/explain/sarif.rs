//! Findings -> SARIF 2.1.0, which code hosts and editors show next to the source.

use super::explanation::{Explanation, Finding, Rule};
use serde_json::{Value, json};
use std::path::Path;

/// Returns a log of one run. Paths below `folder` are relative to it.
pub fn sarif(explanations: &[Explanation], folder: &Path) -> Value {
    let rules = Rule::ALL.map(|rule| json!({"id": rule.name(), "shortDescription": {"text": rule.description()}}));
    let results: Vec<Value> = explanations
        .iter()
        .flat_map(|explanation| {
            explanation.findings.iter().map(move |finding| result(&explanation.kernel, finding, folder))
        })
        .collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "nvtune", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(kernel: &str, Finding { rule, message, place }: &Finding, folder: &Path) -> Value {
    let index = Rule::ALL.iter().position(|known| known == rule);
    let location = place.iter().map(|place| {
        let path = Path::new(&place.file);
        let uri = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
        json!({"physicalLocation": {
            "artifactLocation": {"uri": percent_encoded(&uri)},
            "region": {"startLine": place.line, "startColumn": place.column},
        }})
    });
    json!({
        "ruleId": rule.name(),
        "ruleIndex": index,
        "level": "warning",
        "message": {"text": format!("{kernel}: {message}")},
        "locations": location.collect::<Vec<Value>>(),
    })
}

/// A path as a URI reference.
fn percent_encoded(path: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/+".contains(&byte);
    path.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::percent_encoded;

    #[test]
    fn paths_are_uri_references() {
        assert_eq!(percent_encoded("src/a b#1.cu"), "src/a%20b%231.cu");
    }
}
