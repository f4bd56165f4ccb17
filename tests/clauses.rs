//! The comment language, clause by clause: what is accepted, and what is refused with which message.
//!
//! `clauses/table.rs` has the cases, `tests/comments/clauses.txt` the messages. `UPDATE_EXPECT=1` writes it anew.

mod mutations;
mod table;

use super::support::book::clause_names;
use expect_test::expect_file;
use nvtune::comment::{Annotation, annotations};
use nvtune::diag::{Source, render};
use nvtune::space::{Limits, Space};
use std::collections::BTreeSet;
use table::*;

/// A source with this comment: what it needs besides and does not have is put before it. `<a>` stands for [`ARGS`].
fn source(clauses: &str) -> Source {
    let mut text = String::from("//@tune");
    let clauses = clauses.replace("<a>", ARGS);
    if !clauses.contains("block(") && !clauses.contains("default(block") {
        text.push_str(" block(256)");
    }
    if !clauses.contains("threads(") && !clauses.contains("grid(") {
        text.push_str(" threads(n)");
    }
    let kernel = match () {
        () if clauses.contains("template") => TEMPLATE,
        () if clauses.contains("p = {") => STRUCTURE,
        () => KERNEL,
    };
    Source::new("a.cu", format!("{text} {clauses}\n{kernel}").as_bytes())
}

fn read(source: &Source) -> Result<Vec<(Annotation, Space)>, String> {
    let found = annotations(source).map_err(|problems| render(&problems))?;
    let spaces = found.into_iter().map(|annotation| match Space::new(&annotation, &Limits::default()) {
        Ok(space) => Ok((annotation, space)),
        Err(problems) => Err(render(&problems)),
    });
    spaces.collect()
}

#[test]
fn every_clause_has_cases() {
    assert_eq!(clause_names(), CLAUSES.iter().map(|clause| clause.name.to_owned()).collect::<BTreeSet<_>>());
}

#[test]
fn accepted_clauses_are_read() {
    for clause in CLAUSES {
        for case in clause.accepted {
            let source = source(case);
            let spaces = read(&source).unwrap_or_else(|problems| panic!("{case}\n{problems}"));
            assert_eq!(spaces.len(), case.matches("template(").count().max(1), "{case}");
            for (annotation, space) in spaces {
                assert!(annotation.clauses.places.iter().any(|(name, _)| name == clause.name), "{case}");
                assert!(space.contains(space.baseline()), "{case}");
            }
        }
    }
}

#[test]
fn refused_clauses_have_place_and_reason() {
    let mut shown = String::new();
    let mut refused = 0;
    for clause in CLAUSES {
        shown.push_str(&format!("######## {}\n", clause.name));
        for case in clause.refused {
            let problems = read(&source(case)).err().unwrap_or_else(|| panic!("accepted: {case}"));
            refused += 1;
            shown.push_str(&format!("======== {case}\n"));
            // The place is below the line: the line that nvcc ends with adds nothing here.
            shown.extend(
                problems
                    .lines()
                    .filter(|line| !line.contains("detected in the compilation"))
                    .map(|line| if line.is_empty() { String::new() } else { format!("{line}\n") }),
            );
        }
    }
    assert!(refused >= 120, "{refused}");
    expect_file!["comments/clauses.txt"].assert_eq(&shown);
}
