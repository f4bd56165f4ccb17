//! The text of the project: the book in `docs/` and the pages next to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns the repository's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the text of a page, by its path in the repository.
pub fn page(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the names of the clauses that the parser knows, by the table in its source.
pub fn clause_names() -> BTreeSet<String> {
    let code = page("src/comment/clause.rs");
    let (_, table) = code.split_once("\nconst CLAUSES: ").expect("the table of the clauses");
    let (table, _) = table.split_once("\n];").expect("its end");
    table.lines().filter_map(|row| row.split('"').nth(1)).map(str::to_owned).collect()
}

/// Returns the pages of the book in the order of its summary, by their paths in the repository.
pub fn chapters() -> Vec<String> {
    let summary = page("docs/SUMMARY.md");
    let paths = summary.lines().filter_map(|line| line.split_once("](")?.1.strip_suffix(')'));
    paths.map(|path| format!("docs/{path}")).collect()
}

/// Returns every Markdown file below a folder of the repository, by its path there.
pub fn markdown_below(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path: PathBuf = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path.strip_prefix(root()).expect("below").to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// Returns the blocks of code of a text whose first line (```` ```cuda ````) has this word, without it and the last one.
pub fn blocks<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (word, body) = after.split_once('\n').expect("a block has a first line");
        let (block, after) = match body.strip_prefix("```\n") {
            Some(after) => ("", after),
            None => {
                let (_, after) = body.split_once("\n```\n").expect("a block is closed");
                (&body[..body.len() - after.len() - "```\n".len()], after)
            }
        };
        if word == kind {
            found.push(block);
        }
        // Begins with a line end, which the next block's fence needs before it.
        rest = &text[text.len() - after.len() - 1..];
    }
    found
}

/// Compares a block of a page with what it should be. With UPDATE_EXPECT=1 the page is changed instead.
pub fn assert_block(path: &str, block: &str, expected: &str) {
    if block == expected {
        return;
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let text = page(path);
        assert_eq!(text.matches(block).count(), 1, "{path}: the block is not unique");
        std::fs::write(root().join(path), text.replacen(block, expected, 1)).expect("written");
        return;
    }
    assert_eq!(block, expected, "{path}: UPDATE_EXPECT=1 changes the page");
}
