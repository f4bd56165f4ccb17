//! The parameters of a template in its tuning comment -> what an instance gives them.
//!
//! With `template(4)` above `template <int N>`, `N` is 4 in every expression of the comment, as it is in the kernel. Arguments that only the
//! compiler can evaluate leave the name as it is; the space says so where it looks names up.

use super::annotation::{Annotation, GivenFill, GivenValue, Grid, Instance, TemplateArgument};
use super::expression::Expr;

/// The variable of `each`, which comes before a parameter of this name.
const INDEX: &str = "index";

/// Puts the arguments of an instance in place of the names of its template's parameters.
pub(super) fn give(annotation: &mut Annotation, instance: &Instance) {
    let Annotation { kernel, threads, grid, shared, require, trips, args, symbols, .. } = annotation;
    let value = |name: &String| {
        let at = kernel.template_parameters.iter().position(|parameter| parameter.as_ref() == Some(name))?;
        match instance.arguments.get(at)? {
            TemplateArgument::Value { expression, .. } => Some(expression),
            TemplateArgument::Text(_) => None,
        }
    };
    let clauses = threads.iter_mut().flat_map(|threads| &mut threads.value);
    for expression in clauses.chain(shared).chain(require).chain(trips) {
        expression.replace(&value);
    }
    if let Some(Grid::Expressions(expressions)) = grid.as_mut().map(|grid| &mut grid.value) {
        expressions.iter_mut().for_each(|expression| expression.replace(&value));
    }
    args.iter_mut().flatten().for_each(|given| give_value(&mut given.value, &value));
    symbols.iter_mut().for_each(|given| give_value(&mut given.value, &value));
}

fn give_value<'a>(given: &mut GivenValue, value: &impl Fn(&String) -> Option<&'a Expr>) {
    match given {
        GivenValue::Scalar(expression) => expression.replace(value),
        GivenValue::Struct { fields, .. } => fields.iter_mut().for_each(|field| give_value(&mut field.value, value)),
        GivenValue::File(file) => file.count.iter_mut().for_each(|count| count.replace(value)),
        GivenValue::Table(table) => {
            table.values.iter_mut().chain(&mut table.count).for_each(|expression| expression.replace(value));
        }
        GivenValue::Null(_) => {}
        GivenValue::Buffer { fill, count, .. } => {
            count.replace(value);
            match fill {
                GivenFill::Range(lo, hi) => [lo, hi].into_iter().for_each(|bound| bound.replace(value)),
                GivenFill::Constant(expression) => expression.replace(value),
                GivenFill::Each(expression) => {
                    expression.replace(&|name: &String| value(name).filter(|_| name != INDEX));
                }
                GivenFill::Random | GivenFill::Fill(_) => {}
            }
        }
    }
}
