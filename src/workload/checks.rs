//! The `check` clause -> the buffers and variables that are compared with the baseline's, each
//! with what it may differ by.

use super::buffer::{Buffer, Check, VariableCheck};
use super::entry::Entry;
use crate::comment::Annotation;
use crate::cuda::Scalar;
use crate::diag::{Diagnostic, MessageCode};

/// The default relative tolerance of floating-point results, without a `check` clause; a few units
/// in the last place for 16-bit types.
pub fn default_relative_tolerance(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F32 | Scalar::F64 => 1e-4,
        Scalar::F16 => 4e-3,
        Scalar::Bf16 => 3e-2,
        _ => 0.0,
    }
}

/// The checks of a comment; `None` without a `check` clause.
pub(super) fn bind_checks(
    annotation: &Annotation,
    entry: &Entry,
    buffers: &[Buffer],
    problems: &mut Vec<Diagnostic>,
) -> Option<Vec<Check>> {
    let clause = annotation.clauses.check.as_ref()?;
    let given = clause.relative.is_some() || clause.absolute.is_some();
    let mut checks = Vec::new();
    for named in &clause.buffers {
        let Some(index) = buffers.iter().position(|buffer| buffer.name == named.value) else {
            if entry.variables.iter().any(|variable| !variable.constant && variable.is_called(&named.value)) {
                continue;
            }
            let message = format!("`{}` is no buffer and cannot be checked", named.value);
            problems.push(annotation.source.error(MessageCode::CheckedBuffer, named.span, message));
            continue;
        };
        let scalar = buffers[index].element.scalar;
        if given && clause.buffers.len() == 1 && !scalar.is_float() {
            let message = format!("`{}` has integers, which are compared exactly: remove rtol and atol", named.value);
            problems.push(annotation.source.error(MessageCode::CheckedBuffer, named.span, message));
            continue;
        }
        let (relative, absolute) = match scalar.is_float() {
            true => (clause.relative.unwrap_or(default_relative_tolerance(scalar)), clause.absolute),
            false => (0.0, None),
        };
        checks.push(Check { buffer: index, relative, absolute });
    }
    Some(checks)
}

/// How closely a variable that the kernel writes must agree with the baseline's; `None` if the
/// comment has a `check` clause that does not name it.
pub fn variable_check(annotation: &Annotation, name: &str, scalar: Scalar) -> Option<VariableCheck> {
    let own = VariableCheck { relative: default_relative_tolerance(scalar), absolute: None };
    let Some(clause) = &annotation.clauses.check else { return Some(own) };
    let plain_name = name.rsplit("::").next().unwrap_or(name);
    clause.buffers.iter().find(|named| named.value == plain_name)?;
    Some(match scalar.is_float() {
        true => VariableCheck { relative: clause.relative.unwrap_or(own.relative), absolute: clause.absolute },
        false => own,
    })
}
