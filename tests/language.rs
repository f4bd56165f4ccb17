//! The reference of the comment language (`docs/comments/`) says what is true: every example in it is put to the test.

use super::support::book::{assert_block, blocks, chapters, clause_names, page};
use super::support::toolkit::nvcc;
use nvtune::comment::annotations;
use nvtune::diag::{Source, render};
use nvtune::space::{Limits, Space};
use std::collections::BTreeSet;
use std::process::Command;

/// The chapters of the reference, each with its path and its text.
fn reference() -> Vec<(String, String)> {
    let paths = chapters().into_iter().filter(|path| path.starts_with("docs/comments/"));
    paths.map(|path| (path.clone(), page(&path))).collect()
}

/// The blocks of code of this kind in the whole reference.
fn examples(kind: &str) -> Vec<String> {
    reference().iter().flat_map(|(_, text)| blocks(text, kind)).map(str::to_owned).collect()
}

#[test]
fn documented_examples_have_spaces() {
    let examples = examples("cuda");
    assert!(examples.len() >= 20, "{}", examples.len());
    for text in &examples {
        let source = Source::new("a.cu", text.as_bytes());
        let found = annotations(&source).unwrap_or_else(|problems| panic!("{text}\n{}", render(&problems)));
        let [annotation] = &found[..] else { panic!("one kernel:\n{text}") };
        let space = Space::new(annotation, &Limits::default()).unwrap_or_else(|p| panic!("{}", render(&p)));
        // Without a workload the model goes by what the comment says of the loops.
        assert!(annotation.has_workload() || !annotation.clauses.trips.is_empty(), "{text}");
        assert!(space.len() > 1, "{text}");
        for configuration in space.iter() {
            space.launch(&configuration).unwrap_or_else(|problem| panic!("{problem}"));
        }
    }
}

#[test]
fn documented_examples_compile() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("examples.cu");
    std::fs::write(&path, examples("cuda").join("\n")).expect("written");
    let mut command = Command::new(nvcc());
    command
        .args(["-arch=sm_90", "-O3", "-Werror", "all-warnings", "-cubin", "-o"])
        .arg(folder.path().join("examples.cubin"));
    let output = command.arg(&path).output().expect("nvcc starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn documented_errors_are_reported() {
    assert!(examples("tune-error").len() >= 20, "{}", examples("tune-error").len());
    for (path, text) in reference() {
        for block in blocks(&text, "tune-error") {
            let (source, _) = block.split_once("\n\n").expect("a source, a blank line, and what is said of it");
            let code = Source::new("a.cu", format!("{source}\n").as_bytes());
            let said = match annotations(&code) {
                Err(problems) => render(&problems),
                Ok(found) => render(&Space::new(&found[0], &Limits::default()).expect_err(source)),
            };
            assert_block(&path, block, &format!("{source}\n\n{said}"));
        }
    }
}

#[test]
fn every_clause_is_documented() {
    let reference = reference();
    let title = |text: &str| Some(text.lines().next()?.strip_prefix("# `")?.strip_suffix('`')?.to_owned());
    let described: BTreeSet<String> = reference.iter().filter_map(|(_, text)| title(text)).collect();
    assert_eq!(described, clause_names());
    // The grammar has them all, too.
    let grammar = examples("ebnf");
    for clause in described {
        let rule = grammar[0].lines().any(|line| line.contains(&format!("\"{clause}\"")));
        assert!(rule, "the grammar lacks `{clause}`");
    }
}

#[test]
fn documented_lists_have_their_values() {
    let text = page("docs/comments/lists.md");
    let (_, table) = text.split_once("| form | values |\n| --- | --- |\n").expect("the table of lists");
    let rows: Vec<(&str, &str)> =
        table.lines().map_while(|line| line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ")).collect();
    assert!(rows.len() >= 5);
    for (list, meaning) in rows {
        let text = format!("//@tune block(256) threads(n) define(T = {list})\n__global__ void k(int n) {{}}\n");
        let found = annotations(&Source::new("a.cu", text.as_bytes())).unwrap_or_else(|p| panic!("{}", render(&p)));
        let values: Vec<String> = found[0].clauses.macros[0].values.iter().map(i64::to_string).collect();
        let spelt = meaning.split([':', ';']).next().unwrap_or_default();
        if spelt.starts_with(|c: char| c.is_ascii_digit()) {
            assert_eq!(values.join(", "), spelt, "{list}");
        }
    }
}
