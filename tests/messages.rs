//! The codes of messages: the table in `src/diag/code.rs`, the code that issues them, and the chapter `docs/messages.md` agree.

use super::support::book::{blocks, page, root};
use nvtune::diag::MessageCode;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The headings of the entries in the chapter, in their order.
fn documented() -> Vec<String> {
    page("docs/messages.md").lines().filter_map(|line| line.strip_prefix("### ").map(str::to_owned)).collect()
}

/// The files of Rust below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// The text of the crate but for the table and the printing of messages.
fn issuing() -> Vec<(PathBuf, String)> {
    let files = sources(&root().join("src")).into_iter().filter(|path| !path.starts_with(root().join("src/diag")));
    files.map(|path| (path.clone(), std::fs::read_to_string(path).expect("text"))).collect()
}

#[test]
fn codes_are_unique_and_in_the_order_of_their_numbers() {
    let codes: Vec<String> = MessageCode::ALL.iter().map(ToString::to_string).collect();
    let sorted: Vec<String> = codes.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!(codes, sorted);
    let titles: BTreeSet<&str> = MessageCode::ALL.iter().map(|code| code.title()).collect();
    assert_eq!(titles.len(), codes.len(), "titles are unique");
}

#[test]
fn every_code_has_an_entry_and_every_entry_a_code() {
    let table: Vec<String> = MessageCode::ALL.iter().map(|code| format!("{code}: {}", code.title())).collect();
    assert_eq!(documented(), table);
}

#[test]
fn every_entry_shows_its_message() {
    let text = page("docs/messages.md");
    for heading in documented() {
        let (_, entry) = text.split_once(&format!("### {heading}\n\n```text\n")).unwrap_or_else(|| panic!("{heading}"));
        let (message, _) = entry.split_once("\n```\n").expect("the block is closed");
        let code = heading.split(':').next().unwrap_or_default();
        assert!(message.contains(&format!(" [{code}]")), "{heading}: {message}");
    }
}

#[test]
fn first_lines_have_at_most_120_columns() {
    let text = page("docs/messages.md");
    let shown = blocks(&text, "text").into_iter().flat_map(str::lines);
    // The line of a kernel has fields, whose widths are the user's.
    let shown = shown.filter(|line| !line.starts_with("nvtune: ")).map(str::to_owned);
    let snapshots = ["advice", "clauses", "refused"].map(|name| page(&format!("tests/comments/{name}.txt")));
    let is_message = |line: &&str| [": error: ", ": warning: "].iter().any(|severity| line.contains(severity));
    let given = snapshots.iter().flat_map(|text| text.lines()).filter(is_message).map(str::to_owned);
    let long: Vec<String> = shown.chain(given).filter(|line| line.chars().count() > 120).collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn every_code_is_issued() {
    let diag = ["console.rs", "print.rs"].map(|name| root().join("src/diag").join(name));
    let diag = diag.map(|path| std::fs::read_to_string(path).expect("text"));
    let all = issuing().into_iter().map(|(_, text)| text).chain(diag).collect::<String>();
    let is_unused = |code: &&MessageCode| {
        let name = format!("MessageCode::{}", code.name());
        !all.match_indices(&name).any(|(at, _)| !all[at + name.len()..].starts_with(|c: char| c.is_alphanumeric()))
    };
    let unused: Vec<&MessageCode> = MessageCode::ALL.iter().filter(is_unused).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn no_message_is_printed_without_the_functions_that_take_a_code() {
    let forms = ["nvtune warning :", "nvtune error   :", "nvtune fatal   :"];
    let by_hand = issuing().into_iter().filter(|(_, text)| forms.iter().any(|form| text.contains(form)));
    let by_hand: Vec<PathBuf> = by_hand.map(|(path, _)| path).collect();
    assert_eq!(by_hand, Vec::<PathBuf>::new());
}
