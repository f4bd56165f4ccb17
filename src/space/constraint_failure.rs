//! A constraint that does not hold -> the message that says why, and where its numbers are given.

use super::walk::{Constraint, Quantity, Test, TestFailure};
use crate::comment::{Annotation, Clauses, Fault, Given, GivenValue, Grid};
use crate::diag::{Diagnostic, MessageCode, Span};
use std::collections::BTreeSet;

/// Why a constraint does not hold for `subject`.
pub fn describe_failure(
    annotation: &Annotation,
    constraint: &Constraint,
    failure: &TestFailure,
    subject: &str,
) -> Diagnostic {
    let source = &annotation.source;
    let threads = annotation.clauses.threads.is_some();
    let (code, message) = match (failure, constraint.test) {
        (TestFailure::Fault(located), Test::Within { of: Quantity::Grid(_), .. })
            if threads && located.span == constraint.span() =>
        {
            let message = match located.fault {
                Fault::NotInteger("ceildiv") => {
                    "the number of threads is not an integer: write integers, as in ceildiv(n, 3)".to_string()
                }
                Fault::NegativeCeildiv => "the number of threads is negative: it must be 1 or more".to_string(),
                ref fault => describe_fault(fault),
            };
            (MessageCode::NoValue, message)
        }
        (TestFailure::Fault(located), _) => {
            return source.error(MessageCode::NoValue, located.span, describe_fault(&located.fault));
        }
        (TestFailure::False, _) | (_, Test::Truth) => (
            MessageCode::Excluded,
            format!("this constraint excludes {subject}: loosen it, or add values that it allows"),
        ),
        (TestFailure::Outside(value), Test::Within { lo, hi, of }) => match of {
            Quantity::Grid(dimension) => {
                let axis = ["x", "y", "z"].get(dimension).unwrap_or(&"x");
                let message = format!("the grid of {subject} has {value} blocks in {axis}; allowed are {lo} to {hi}");
                (MessageCode::GridTooLarge, message)
            }
            Quantity::Shared => {
                let message = format!("{subject} has {value} bytes of dynamic shared memory; allowed are {lo} to {hi}");
                (MessageCode::SharedTooLarge, message)
            }
        },
    };
    let problem = source.error(code, constraint.span(), message);
    match constraint.test {
        Test::Within { of: Quantity::Grid(_), .. } => where_given(annotation, constraint.span(), problem),
        _ => problem,
    }
}

/// A problem of a launch with the places of the numbers that the expression there is made
/// of.
fn where_given(annotation: &Annotation, span: Span, mut problem: Diagnostic) -> Diagnostic {
    let Annotation { source, clauses: Clauses { threads, grid, args, .. }, .. } = annotation;
    let grid = grid.iter().flat_map(|grid| match &grid.value {
        Grid::Expressions(expressions) => expressions.as_slice(),
        Grid::Lists(_) => &[],
    });
    let mut names = BTreeSet::new();
    for expression in threads.iter().flat_map(|threads| &threads.value).chain(grid).filter(|own| own.span == span) {
        expression.names(&mut |name, _| {
            names.insert(name);
        });
    }
    let is_one = |given: &&Given| matches!(given.value, GivenValue::Scalar(_)) && names.contains(&given.name);
    for given in args.iter().flatten().filter(is_one) {
        problem = problem.with(source.note(given.span, format!("`{}` is given here", given.name)));
    }
    problem
}

pub fn describe_fault(fault: &Fault) -> String {
    match fault {
        // Passed on from a value that has a fault of its own.
        Fault::NoValue(name) if name.is_empty() => "this name has no value under this configuration".to_string(),
        fault => fault.to_string(),
    }
}
