//! The book and the pages next to it: no page is lost, no link is dead, and the commands print what the pages show.

mod commands;
mod examples;

use super::support::book::{blocks, chapters, markdown_below, page, root};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Pages outside of the book.
const OTHERS: [&str; 9] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "man/README.md",
    "tests/README.md",
    "tests/drop_in/README.md",
    "kernels/README.md",
    "kernels/results/README.md",
];

fn pages() -> Vec<String> {
    OTHERS.map(str::to_owned).into_iter().chain(markdown_below("docs")).collect()
}

/// The anchor that a heading has: in lower case, blanks as `-`, without other signs.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// The anchors of a text; one that is there again has a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let name = anchor(&heading.take().unwrap_or_default());
                *seen.entry(name).or_default() += 1;
            }
            Event::Text(part) | Event::Code(part) => heading.iter_mut().for_each(|heading| heading.push_str(&part)),
            _ => {}
        }
    }
    let numbered = |(name, count): (String, usize)| {
        (0..count).map(move |index| if index == 0 { name.clone() } else { format!("{name}-{index}") })
    };
    seen.into_iter().flat_map(numbered).collect()
}

fn links(text: &str) -> Vec<String> {
    Parser::new_ext(text, Options::ENABLE_TABLES)
        .filter_map(|event| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.into_string()),
            _ => None,
        })
        .collect()
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
        plain
    })
}

/// What is wrong with the links of a page: a place of another page that is not there, or an anchor that it does not have.
fn dead_links(path: &str) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let is_dead = |link: &String| {
        if link.contains("://") || link.starts_with("mailto:") {
            return false;
        }
        let (file, place) = link.split_once('#').map_or((link.as_str(), None), |(file, place)| (file, Some(place)));
        let target = if file.is_empty() { PathBuf::from(path) } else { plain(&folder.join(file)) };
        let is_there = root().join(&target).exists();
        let has_place = |place| anchors(&page(&target.to_string_lossy())).contains(place);
        !is_there || !place.is_none_or(has_place)
    };
    links(&page(path)).into_iter().filter(is_dead).map(|link| format!("{path}: {link}")).collect()
}

#[test]
fn links_and_anchors_lead_somewhere() {
    let dead: Vec<String> = pages().iter().flat_map(|path| dead_links(path)).collect();
    assert_eq!(dead, Vec::<String>::new());
}

#[test]
fn every_page_is_in_the_summary_once() {
    let mut listed = chapters();
    listed.sort();
    let there: Vec<String> = markdown_below("docs").into_iter().filter(|path| path != "docs/SUMMARY.md").collect();
    assert_eq!(listed, there);
}

#[test]
fn first_screen_fits_and_has_the_two_commands() {
    let readme = page("README.md");
    assert!(readme.lines().count() <= 120, "{}", readme.lines().count());
    for command in ["make demo", "make test"] {
        assert!(readme.contains(command), "{command}");
    }
}

#[test]
fn pages_use_the_usual_words() {
    let unusual = ["hangs on", "hang on", "what always holds", "so many", "how-manieth", "told", "beside"];
    let mut found = Vec::new();
    for path in pages().iter().filter(|path| !path.starts_with("kernels/")) {
        for (number, line) in page(path).lines().enumerate() {
            let line = format!(" {} ", line.to_lowercase());
            let has = |word: &&&str| {
                line.match_indices(**word).any(|(at, _)| {
                    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                    !is_letter(line[..at].chars().next_back()) && !is_letter(line[at + word.len()..].chars().next())
                })
            };
            found.extend(unusual.iter().filter(has).map(|word| format!("{path}:{}: {word}", number + 1)));
        }
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn clause_pages_have_an_example_and_an_error() {
    for path in chapters().iter().filter(|path| path.starts_with("docs/comments/")) {
        let text = page(path);
        if text.starts_with("# `") {
            assert!(!blocks(&text, "cuda").is_empty(), "{path}: no example");
            assert!(!blocks(&text, "tune-error").is_empty(), "{path}: no error");
        }
    }
}

#[test]
fn anchors_are_those_of_the_headings() {
    let text = "# The `cache`, in short\n\n## A\n\n## A\n\n```sh\n# none\n```\n";
    assert_eq!(anchors(text), BTreeSet::from(["a", "a-1", "the-cache-in-short"].map(str::to_owned)));
    assert_eq!(blocks("x\n```sh\na\nb\n```\n```c\n```\n\n```sh\nc\n```\n", "sh"), ["a\nb\n", "c\n"]);
}
