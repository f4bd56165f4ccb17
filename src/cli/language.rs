//! `nvtune help comments`: the language of tuning comments, from the book.

use super::manual::chapter;
use super::wrap::{columns, wrapped};
use crate::put_on;
use std::ffi::OsString;

/// The chapters that are printed, in their order.
const CHAPTERS: [&str; 5] =
    ["comments/README.md", "comments/form.md", "comments/clauses.md", "comments/lists.md", "comments/grammar.md"];

/// Tells whether these words ask for the language.
pub fn is_asked(words: &[OsString]) -> bool {
    matches!(words, [help, topic] if help == "help" && topic == "comments")
}

/// Prints the chapters.
pub fn run() -> u8 {
    let text: Vec<String> = CHAPTERS.iter().map(|path| plain(chapter(path))).collect();
    let text = text.join("\n") + "\n`nvtune man DIR` writes every clause in detail: nvtune-comments(7).\n";
    put_on!("{}", wrapped(&text, 0, columns()));
    0
}

/// Markdown as text for a terminal: without links, fences and the borders of tables.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut is_code = false;
    for line in markdown.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            text.push_str(&format!("    {line}\n"));
        } else if let Some(title) = line.strip_prefix('#') {
            text.push_str(&format!("{}\n", title.trim_start_matches(['#', ' ']).to_uppercase()));
        } else if let Some(row) = line.strip_prefix("| ") {
            let mut cells = row.trim_end_matches(" |").splitn(2, " | ");
            let (name, rest) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
            if !name.starts_with("---") {
                text.push_str(&format!("  {:14}  {}\n", without_links(name), without_links(rest)));
            }
        } else {
            text.push_str(&format!("{}\n", without_links(line)));
        }
    }
    text
}

/// `[regs](regs.md)` becomes `regs`.
fn without_links(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('[') {
        text.push_str(before);
        let link = after.split_once("](").and_then(|(name, target)| Some((name, target.split_once(')')?.1)));
        match link.filter(|(name, _)| !name.contains('[')) {
            Some((name, after)) => {
                text.push_str(name);
                rest = after;
            }
            None => {
                text.push('[');
                rest = after;
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn markdown_becomes_text() {
        let markdown = "# A `b`\n\nSee [regs](regs.md) and x[n].\n\n```cuda\nx[i] = [a](b);\n```\n\n| c | says |\n| --- | --- |\n| [block](block.md) | shapes |\n";
        assert_eq!(
            plain(markdown),
            "A `B`\n\nSee regs and x[n].\n\n    x[i] = [a](b);\n\n  c               says\n  block           shapes\n"
        );
    }
}
