//! The option table against `nvcc --help`: of the toolkit in use, and of the releases whose option names are kept here.
//!
//! A release with options that the table lacks shows here as a list of them, before a build meets one.

use super::{lines, sandbox};
use std::collections::{BTreeMap, BTreeSet};

/// Names and values of `nvcc --help` by release; made by `NVTUNE_LIST_OPTIONS=1 cargo test --test main options::`.
const RELEASES: [(&str, &str); 2] = [("13.0", include_str!("help/13.0.tsv")), ("13.5", include_str!("help/13.5.tsv"))];

/// Options whose help names no value though they take one.
const VALUE_NOT_SHOWN: [&str; 2] = ["--dependency-output", "--qpp-config"];

/// `(long, short, arity)` of each option that a help text lists: `--define-macro <def>,...   (-D)`.
fn listed(help: &str) -> BTreeMap<String, (String, &'static str)> {
    let mut options = BTreeMap::new();
    for line in help.lines().filter(|line| line.starts_with("--")) {
        let mut words = line.split_whitespace();
        let long = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let (short, value) = match rest.split_last() {
            Some((last, value)) if last.starts_with("(-") && last.ends_with(')') => {
                (last.trim_matches(['(', ')']), value)
            }
            Some((last, value)) if last.starts_with("--") => (*last, value),
            _ => (long, &rest[..]),
        };
        let value = value.join(" ");
        let arity = match value.as_str() {
            _ if VALUE_NOT_SHOWN.contains(&long) => "value",
            "" => "flag",
            list if list.ends_with(",...") => "list",
            _ => "value",
        };
        options.insert(long.to_owned(), (short.to_owned(), arity));
    }
    options
}

fn written(options: &BTreeMap<String, (String, &'static str)>) -> String {
    options.iter().map(|(long, (short, arity))| format!("{long}\t{short}\t{arity}\n")).collect()
}

/// What is wrong between the table and the options of a release.
fn compared(release: &str, rows: &BTreeSet<(String, String, String)>) -> Vec<String> {
    let mut problems = Vec::new();
    let number = |text: &str| -> Vec<u32> { text.split('.').filter_map(|part| part.parse().ok()).collect() };
    for row in rows {
        let known = lines::table().find(|option| option.long == row.0);
        match known {
            None => problems.push(format!("{release} has {} ({}, {}), the table has not", row.0, row.1, row.2)),
            Some(option) if (option.short, option.arity) != (row.1.as_str(), row.2.as_str()) => {
                problems.push(format!(
                    "{release} has {} as {}, {}; the table as {}, {}",
                    row.0, row.1, row.2, option.short, option.arity
                ));
            }
            Some(_) => {}
        }
    }
    for option in lines::table() {
        let (from, to) = match option.releases.split_once('-') {
            Some((from, to)) => (from, to),
            None => ("", ""),
        };
        let has = option.releases != "hidden"
            && (from.is_empty() || number(release) >= number(from))
            && (to.is_empty() || number(release) <= number(to));
        if has && !rows.iter().any(|row| row.0 == option.long) {
            problems.push(format!("the table has {}, {release} has not", option.long));
        }
    }
    problems
}

#[test]
fn option_table_has_every_option_of_recorded_releases() {
    for (release, text) in RELEASES {
        let row = |line: &str| {
            let mut columns = line.split('\t').map(str::to_owned);
            let mut next = || columns.next().expect("three columns");
            (next(), next(), next())
        };
        let rows = text.lines().map(row).collect();
        assert_eq!(compared(release, &rows), [""; 0]);
    }
}

#[test]
fn option_table_has_every_option_of_the_toolkit_in_use() {
    let ask = |option: &str| {
        let output = std::process::Command::new(sandbox::nvcc()).arg(option).output().expect("nvcc starts");
        String::from_utf8(output.stdout).expect("text")
    };
    let (help, version) = (ask("--help"), ask("--version"));
    let release = version.split("release ").nth(1).and_then(|text| text.split(',').next()).expect("a release");
    let options = listed(&help);
    assert!(options.len() > 100, "its help is not read: {help}");
    if std::env::var_os("NVTUNE_LIST_OPTIONS").is_some() {
        let path = format!("{}/tests/drop_in/help/{release}.tsv", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, written(&options)).expect("written");
    }
    let rows = options.into_iter().map(|(long, (short, arity))| (long, short, arity.to_owned())).collect();
    assert_eq!(compared(release, &rows), [""; 0]);
}
