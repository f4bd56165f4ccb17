//! Compares the `__device__` variables that a candidate writes with those of the baseline.
//!
//! The rule: a variable that the baseline wrote and that is compared holds what the baseline left,
//! as [`compare`] has it for buffers. Every other variable is as it was before the launch.

use super::compare::{Tolerance, compare};
use super::outcome::Reason;
use crate::cuda::{Element, Scalar};
use crate::workload::WrittenVariable;

/// The contents of a variable before and after a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observed {
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

impl Observed {
    fn is_written(&self) -> bool {
        self.before != self.after
    }
}

/// The contents of the baseline's variables before and after its launch.
pub(super) struct VariableResults {
    results: Vec<(WrittenVariable, Observed)>,
}

impl VariableResults {
    /// Keeps what was `observed` of each of `variables`; code that does not use a variable does
    /// not have it.
    pub fn new(variables: &[WrittenVariable], observed: Vec<Option<Observed>>) -> Self {
        let results = variables.iter().cloned().zip(observed);
        Self { results: results.filter_map(|(variable, observed)| Some((variable, observed?))).collect() }
    }

    /// Whether the baseline wrote a variable that is compared.
    pub fn has_compared_results(&self) -> bool {
        self.results.iter().any(|(variable, observed)| variable.check.is_some() && observed.is_written())
    }

    /// Why another launch, of which `observed` was seen of `variables`, is refused.
    pub fn refusal(&self, variables: &[WrittenVariable], observed: &[Option<Observed>]) -> Option<Reason> {
        let seen = |symbol: &str| {
            let mut seen = variables.iter().zip(observed).filter(|(variable, _)| variable.symbol == *symbol);
            seen.next().and_then(|(_, observed)| observed.as_ref())
        };
        let written = self.results.iter().filter(|(_, expected)| expected.is_written());
        let differs =
            written.clone().find_map(|(variable, expected)| difference(variable, expected, seen(&variable.symbol)));
        differs.or_else(|| {
            let is_written = |symbol: &str| written.clone().any(|(variable, _)| variable.symbol == *symbol);
            let mut others = variables.iter().zip(observed).filter(|(variable, _)| !is_written(&variable.symbol));
            let stray = others.find(|(_, observed)| observed.as_ref().is_some_and(Observed::is_written));
            stray.map(|(variable, _)| Reason::Stray { buffer: variable.name.clone() })
        })
    }
}

/// Why a variable does not hold what the baseline left in it.
fn difference(variable: &WrittenVariable, expected: &Observed, got: Option<&Observed>) -> Option<Reason> {
    let check = variable.check?;
    let (expected, Some(got)) =
        (&expected.after, got.map(|got| &got.after).filter(|got| got.len() == expected.after.len()))
    else {
        return Some(Reason::Incomparable { buffer: variable.name.clone() });
    };
    let tolerance = Tolerance { relative: check.relative, absolute: check.absolute };
    // Bytes have no tolerance.
    let (element, tolerance) = match expected.len().is_multiple_of(variable.element.size().max(1)) {
        true => (variable.element, tolerance),
        false => (Element { scalar: Scalar::U8, lanes: 1 }, Tolerance::for_scalar(Scalar::U8)),
    };
    compare(&variable.name, &element, tolerance, expected, got).map(Reason::Differs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::VariableCheck;

    fn variable(symbol: &str, scalar: Scalar, is_compared: bool) -> WrittenVariable {
        let check = VariableCheck { relative: Tolerance::for_scalar(scalar).relative, absolute: None };
        let element = Element { scalar, lanes: 1 };
        WrittenVariable {
            symbol: format!("_Z{symbol}"),
            name: symbol.to_owned(),
            element,
            check: is_compared.then_some(check),
        }
    }

    fn observed<const SIZE: usize>(before: [[u8; SIZE]; 2], after: [[u8; SIZE]; 2]) -> Option<Observed> {
        Some(Observed { before: before.concat(), after: after.concat() })
    }

    fn counted(count: u32) -> Option<Observed> {
        observed([0u32, 7].map(u32::to_le_bytes), [count, 7].map(u32::to_le_bytes))
    }

    /// What is said of a candidate that has one variable, as the baseline has it.
    fn said(variable: &WrittenVariable, baseline: Option<Observed>, candidate: Option<Observed>) -> String {
        let variables = [variable.clone()];
        let results = VariableResults::new(&variables, vec![baseline]);
        results.refusal(&variables, &[candidate]).map_or("agrees".to_owned(), |reason| reason.to_string())
    }

    #[test]
    fn integers_agree_exactly() {
        let total = variable("total", Scalar::U32, true);
        assert_eq!(said(&total, counted(1000), counted(1000)), "agrees");
        assert_eq!(
            said(&total, counted(1000), counted(1001)),
            "1 of 2 elements of `total` differ from the baseline's: total[0] is 1001, not 1000"
        );
    }

    #[test]
    fn floats_agree_within_the_tolerance() {
        let sums = variable("sums", Scalar::F32, true);
        let left = |value: f32| observed([0f32, 1.0].map(f32::to_le_bytes), [value, 1.0].map(f32::to_le_bytes));
        assert_eq!(said(&sums, left(2.0), left(2.0001)), "agrees");
        assert!(said(&sums, left(2.0), left(2.01)).contains("sums[0] is 2.01, not 2.0"));
    }

    #[test]
    fn bytes_of_unknown_type_agree_exactly() {
        let bytes = variable("bytes", Scalar::U8, true);
        let left = |value: f32| observed([0f32, 1.0].map(f32::to_le_bytes), [value, 1.0].map(f32::to_le_bytes));
        assert!(said(&bytes, left(2.0), left(2.0001)).contains("elements of `bytes` differ"));
    }

    #[test]
    fn size_that_is_no_multiple_of_the_element_is_compared_by_bytes() {
        let odd = variable("odd", Scalar::F64, true);
        let left = |last: u8| observed([[0; 6]; 2], [[0; 6], [1, 0, 0, 0, 0, last]]);
        assert_eq!(said(&odd, left(1), left(1)), "agrees");
        assert!(said(&odd, left(1), left(2)).contains("odd[11] is 2, not 1"));
    }

    #[test]
    fn variable_that_the_baseline_leaves_alone_must_stay() {
        let total = variable("total", Scalar::U32, true);
        let stray = "writes to `total` where the baseline leaves it alone (an index out of bounds?)";
        assert_eq!(said(&total, counted(0), counted(0)), "agrees");
        assert_eq!(said(&total, counted(0), counted(1)), stray);
        assert_eq!(said(&total, None, counted(1)), stray);
        assert_eq!(said(&variable("total", Scalar::U32, false), counted(0), counted(1)), stray);
    }

    #[test]
    fn variable_that_the_candidate_does_not_have_cannot_be_compared() {
        let total = variable("total", Scalar::U32, true);
        assert!(said(&total, counted(5), None).contains("cannot be compared"));
        assert_eq!(said(&total, counted(0), None), "agrees");
        let shorter = Some(Observed { before: vec![0; 4], after: vec![5, 0, 0, 0] });
        assert!(said(&total, counted(5), shorter).contains("cannot be compared"));
    }

    #[test]
    fn variable_that_is_not_compared_may_differ() {
        let total = variable("total", Scalar::U32, false);
        assert_eq!(said(&total, counted(5), counted(6)), "agrees");
    }

    #[test]
    fn only_written_and_compared_variables_prove_results() {
        for (is_compared, count, expected) in [(true, 5, true), (true, 0, false), (false, 5, false)] {
            let results = VariableResults::new(&[variable("total", Scalar::U32, is_compared)], vec![counted(count)]);
            assert_eq!(results.has_compared_results(), expected, "{is_compared} {count}");
        }
    }

    #[test]
    fn variables_are_matched_by_symbol() {
        let (first, second) = (variable("a", Scalar::U32, true), variable("b", Scalar::U32, true));
        let results = VariableResults::new(&[first.clone(), second.clone()], vec![counted(1), counted(2)]);
        assert_eq!(results.refusal(&[second, first], &[counted(2), counted(1)]), None);
    }
}
