//! Which values of a comment are kept in a floating type.

use super::entry::Entry;
use crate::comment::Annotation;
use crate::cuda::Type;
use crate::cuda::declarations::array_of_numbers;
use std::collections::BTreeSet;

/// The parameters, fields (`p.scale`) and variables that are floating numbers or buffers of
/// such.
pub fn floating(annotation: &Annotation, entry: &Entry) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for given in annotation.clauses.args.iter().flatten() {
        let Some(text) = entry.parameters.get(given.parameter) else { continue };
        let layout = entry.layouts.get(&given.parameter);
        let explicit_element = given.element.as_deref().map(Type::element);
        given.value.visit(given.name.clone(), &mut |path, _| {
            let field = path.strip_prefix(&given.name).and_then(|rest| rest.strip_prefix('.'));
            let is_float = match (field, explicit_element) {
                (Some(field), _) => {
                    layout.and_then(|layout| layout.fields.get(field)).is_some_and(|field| is_float(&field.kind))
                }
                (None, Some(explicit_element)) => explicit_element.is_some_and(|element| element.scalar.is_float()),
                (None, None) => is_float(text),
            };
            if is_float {
                found.insert(path);
            }
        });
    }
    let variables = annotation.clauses.symbols.iter().filter(|given| {
        given.element.as_deref().and_then(Type::element).is_some_and(|element| element.scalar.is_float())
    });
    found.extend(variables.map(|given| given.name.clone()));
    found
}

fn is_float(text: &str) -> bool {
    match Type::parse_type(text) {
        Type::Scalar(scalar) => scalar.is_float(),
        Type::Pointer { element, .. } => element.scalar.is_float(),
        Type::Other(_) => array_of_numbers(text).is_some_and(|(element, _)| element.scalar.is_float()),
    }
}
