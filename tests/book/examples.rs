//! Every example of a page that is not run as a whole names commands, options, variables and make targets that there are.
//!
//! Examples that need what a test has not (a cluster, an installation, a registry) are held to this alone.

use super::super::support::book::{blocks, markdown_below, page};
use nvtune::settings::VARIABLES;
use regex::Regex;
use std::collections::BTreeSet;
use std::process::Command;

/// Returns each block of shell commands, with the page that it is on.
fn shell_blocks() -> Vec<(String, String)> {
    let mut pages = markdown_below("docs");
    pages.extend(["README.md", "CONTRIBUTING.md", "kernels/README.md"].map(str::to_owned));
    let on_page = |path: &String| {
        let text = page(path);
        let found = blocks(&text, "sh").into_iter().map(|block| (path.clone(), block.to_owned()));
        found.collect::<Vec<_>>()
    };
    pages.iter().flat_map(on_page).collect()
}

/// Returns the words behind each `program` of a shell line, up to the end of its command.
fn words_of(line: &str, program: &str) -> Vec<Vec<String>> {
    let word = Regex::new(r#"'[^']*'|"[^"]*"|&&|\|\|?|;|\s#.*|[^\s;|]+"#).expect("an expression");
    let words: Vec<&str> = word.find_iter(line).map(|found| found.as_str()).collect();
    let is_end = |word: &&&str| matches!(**word, "&&" | "|" | "||" | ";" | ">") || word.trim_start().starts_with('#');
    let mut found = Vec::new();
    let mut rest = words.as_slice();
    while let Some(first) = rest.iter().position(|word| *word == program) {
        rest = &rest[first + 1..];
        let count = rest.iter().position(|word| is_end(&word)).unwrap_or(rest.len());
        let unquoted = |word: &&str| word.trim_matches(['\'', '"']).to_owned();
        found.push(rest[..count].iter().map(unquoted).collect());
        rest = &rest[count..];
    }
    found
}

#[test]
fn words_of_a_command_end_with_it() {
    let line = "export A=1 && nvtune tune --runner 'srun -n 1' -- x.cu; make check # nvtune lock";
    assert_eq!(words_of(line, "nvtune"), [["tune", "--runner", "srun -n 1", "--", "x.cu"]]);
    assert_eq!(words_of(line, "make"), [["check"]]);
}

#[test]
fn shell_examples_are_shell_code() {
    for (path, block) in shell_blocks() {
        let parsed = Command::new("bash").args(["-n", "-c", &block]).output().expect("bash starts");
        assert!(parsed.status.success(), "{path}: {block}{}", String::from_utf8_lossy(&parsed.stderr));
    }
}

#[test]
fn commands_of_examples_take_their_options() {
    let mut count = 0;
    for (path, block) in shell_blocks() {
        for mut words in words_of(&block.replace("\\\n", " ").replace('\n', " ; "), "nvtune") {
            if matches!(words.first().map(String::as_str), None | Some("nvcc" | "$@" | "--version")) {
                continue;
            }
            // The help is printed once all that is in front of it was understood.
            let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
            words.insert(end, "--help".to_owned());
            let ran = Command::new(env!("CARGO_BIN_EXE_nvtune")).args(&words).output().expect("it starts");
            assert!(ran.status.success(), "{path}: {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
            count += 1;
        }
    }
    assert!(count > 5, "{count} commands were found");
}

#[test]
fn variables_of_examples_are_read_by_nvtune() {
    let name = Regex::new(r"\bNVTUNE_[A-Z_]+\b").expect("an expression");
    let known: BTreeSet<&str> = VARIABLES.iter().map(|variable| variable.name).collect();
    let mut found = BTreeSet::new();
    for (path, block) in shell_blocks() {
        for variable in name.find_iter(&block).map(|found| found.as_str()) {
            assert!(known.contains(variable), "{path}: {variable}");
            found.insert(variable.to_owned());
        }
    }
    assert!(found.len() >= 5, "{found:?}");
}

#[test]
fn make_targets_of_examples_are_in_the_makefile() {
    let makefile = page("Makefile");
    let target = Regex::new(r"^[a-z][a-z-]*$").expect("an expression");
    let mut count = 0;
    for path in ["README.md", "CONTRIBUTING.md", "docs/quick-start.md", "docs/recipes/packages.md"] {
        for block in blocks(&page(path), "sh") {
            for words in words_of(&block.replace('\n', " ; "), "make") {
                // Of a user's own project it is called with a compiler.
                if words.iter().any(|word| word.starts_with("NVCC")) {
                    continue;
                }
                for word in words.iter().filter(|word| target.is_match(word)) {
                    assert!(makefile.contains(&format!("\n{word}:")), "{path}: make {word}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 3, "{count} targets were found");
}
