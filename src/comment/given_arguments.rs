//! The `args` and `check` clauses against the kernel's parameters: every parameter has a value
//! that its type can hold, and every name is one of the kernel's.

use super::annotation::{Clauses, Given, GivenField, GivenTable, GivenValue, Grid, MacroAxis};
use super::expression::{Expr, Located};
use super::parsed::RawGiven;
use super::symbol_clause::variable_element;
use super::value::{Fault, Value};
use crate::cuda::Kernel;
use crate::cuda::{Type, may_be_structure, points_to_arrays, takes_no_value, vector_fields};
use crate::diag::{Diagnostic, MessageCode, suggestion};
use crate::diag::{Source, Span};
use std::collections::BTreeSet;

/// The values of the `args` clause, each with its parameter.
pub(super) fn assign_arguments(
    source: &Source,
    comment: Span,
    (clauses, kernel): (&Clauses, &Kernel),
    given: Vec<RawGiven>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Given> {
    let place = clauses.place("args").unwrap_or(comment);
    // What a clause that was refused for being the second one gives is not missing.
    let whole = clauses.places.iter().filter(|(name, _)| name == "args").count() < 2;
    // What takes no value cannot be given, and then nothing can be timed: the rest tells the
    // launch.
    let cannot_time = kernel.declarations.iter().any(|declaration| takes_no_value(declaration));
    // A value that is wrong, or whose name is, may be that of the one that seems to have none.
    let is_parameter = |own: &RawGiven| kernel.parameters.iter().flatten().any(|known| *known == own.name);
    let is_sound = given.iter().all(|own| {
        own.value.is_some()
            && (is_parameter(own) || has_its_value_elsewhere(kernel, &clauses.macros, &own.name).is_some())
    });
    if whole && !cannot_time && !tells_the_launch_alone(kernel, &given) {
        problems.extend(
            without_value(kernel, &given, is_sound)
                .into_iter()
                .map(|message| source.error(MessageCode::ParameterMissing, place, message)),
        );
    }
    let of_launch = names_of_launch(clauses, &given);
    let of_launch = given.iter().filter(|own| of_launch.contains(own.name.as_str()));
    problems.extend(of_launch.filter_map(|own| beyond_its_type(source, kernel, own, &given)));
    let mut values = Vec::new();
    for RawGiven { name, span, element, value } in given {
        let Some(parameter) = kernel.parameters.iter().position(|known| known.as_deref() == Some(&name)) else {
            let why = has_its_value_elsewhere(kernel, &clauses.macros, &name)
                .map_or_else(|| suggestion(&name, parameter_names(kernel)), |why| format!(": {why}"));
            problems.push(source.error(
                MessageCode::UnknownParameter,
                span,
                format!("`{}` has no parameter `{name}`{why}", kernel.name),
            ));
            continue;
        };
        let Some(value) = value.map(|value| listed_fields(kernel, parameter, &name, value)) else { continue };
        if let GivenValue::Table(table) = &value
            && declares_scalar(kernel, parameter, &name)
        {
            problems.push(source.error(MessageCode::ArgsClause, table.span, format!("`{name}` {ONE_VALUE}")));
        }
        values.push(Given { name, span, parameter, element, value });
    }
    values
}

/// Collects the arguments that the launch, and what else is evaluated for it, follows from.
fn names_of_launch<'a>(clauses: &'a Clauses, given: &'a [RawGiven]) -> BTreeSet<&'a str> {
    let grid = clauses.grid.iter().flat_map(|grid| match &grid.value {
        Grid::Expressions(expressions) => expressions.as_slice(),
        Grid::Lists(_) => &[],
    });
    let threads = clauses.threads.iter().flat_map(|threads| &threads.value);
    let others = clauses.shared.iter().chain(&clauses.require).chain(&clauses.trips);
    let mut pending: Vec<&Expr> = threads.chain(grid).chain(others).collect();
    let mut names = BTreeSet::new();
    while let Some(expression) = pending.pop() {
        expression.names(&mut |name, _| {
            let given = given.iter().find(|given| given.name == *name);
            if names.insert(name.as_str())
                && let Some(GivenValue::Scalar(expression)) = given.and_then(|given| given.value.as_ref())
            {
                pending.push(expression);
            }
        });
    }
    names
}

/// Returns an error for a constant that an integer parameter cannot hold. The launch that
/// follows from it is not to blame.
fn beyond_its_type(source: &Source, kernel: &Kernel, own: &RawGiven, all: &[RawGiven]) -> Option<Diagnostic> {
    let Some(GivenValue::Scalar(expression)) = &own.value else { return None };
    let parameter = kernel.parameters.iter().position(|known| known.as_deref() == Some(&own.name))?;
    let kind = kernel.declarations.get(parameter)?.strip_suffix(own.name.as_str())?.trim();
    let Type::Scalar(scalar) = Type::parse_type(kind) else { return None };
    let (least, most) = scalar.integer_bounds()?;
    let value = constant_value(expression, all, 0).ok()?;
    let fits = value.as_integer().is_some_and(|integer| (least..=most).contains(&i128::from(integer)));
    let name = &own.name;
    let message = || match value.as_integer() {
        Some(_) => format!("`{name}` is of type `{kind}` and cannot be {value}: it holds {least} to {most}"),
        None => format!("`{name}` is of type `{kind}` and cannot be {value}: give a whole number"),
    };
    (!fits).then(|| source.error(MessageCode::WrongType, expression.span, message()))
}

/// How far arguments that follow from each other are looked through.
const MOST_STEPS: usize = 16;

/// The value of an expression over arguments that are constants.
fn constant_value(expression: &Expr, all: &[RawGiven], step: usize) -> Result<Value, Located> {
    expression.evaluate(&|name: &String| {
        let given = all.iter().find(|given| given.name == *name).filter(|_| step < MOST_STEPS);
        match given.and_then(|given| given.value.as_ref()) {
            Some(GivenValue::Scalar(expression)) => {
                constant_value(expression, all, step + 1).map_err(|error| error.fault)
            }
            _ => Err(Fault::NoValue(name.clone())),
        }
    })
}

/// Checks that what the `check` clause names is a buffer.
pub(super) fn checked_buffers(source: &Source, clauses: &Clauses, kernel: &Kernel, problems: &mut Vec<Diagnostic>) {
    for buffer in clauses.check.iter().flat_map(|check| &check.buffers) {
        let name = &buffer.value;
        let mut found = None;
        for given in clauses.args.iter().flatten() {
            given.value.visit(given.name.clone(), &mut |path, value| {
                if path == *name {
                    found = Some(value);
                }
            });
        }
        let message = match found {
            Some(
                GivenValue::Buffer { .. } | GivenValue::File(_) | GivenValue::Table(_) | GivenValue::Recorded { .. },
            ) => continue,
            Some(GivenValue::Scalar(_) | GivenValue::Null(_) | GivenValue::Struct { .. }) => {
                format!("`{name}` is no buffer and cannot be checked: name a buffer of args(...)")
            }
            None if parameter_names(kernel).any(|known| known == name) => continue,
            None if is_variable(source, clauses, name) => continue,
            None => format!("`{}` has no parameter `{name}`{}", kernel.name, suggestion(name, parameter_names(kernel))),
        };
        problems.push(source.error(MessageCode::CheckedBuffer, buffer.span, message));
    }
}

/// Returns whether a name is a `__device__` variable's: one of the `symbol` clause, or one that
/// the file declares.
fn is_variable(source: &Source, clauses: &Clauses, name: &str) -> bool {
    clauses.symbols.iter().any(|given| given.name == *name) || variable_element(source, name).is_some()
}

/// The names of the kernel's parameters.
fn parameter_names(kernel: &Kernel) -> impl Iterator<Item = &str> + Clone {
    kernel.parameters.iter().flatten().map(String::as_str)
}

/// Where a name that is no parameter of the kernel gets its value, if it is one that has one.
fn has_its_value_elsewhere(kernel: &Kernel, macros: &[MacroAxis], name: &str) -> Option<&'static str> {
    if kernel.template_parameters.iter().flatten().any(|parameter| parameter.name == name) {
        return Some("give template arguments as in template(float, 4), and remove it here");
    }
    let is_axis = macros.iter().any(|axis| axis.name == name);
    is_axis.then_some("it is a macro of `define`; give its baseline in `default`")
}

/// Whether nothing but numbers is given to a kernel that works on buffers: they say how it is
/// launched, and on what is left open.
fn tells_the_launch_alone(kernel: &Kernel, given: &[RawGiven]) -> bool {
    let is_given = |name: &String| given.iter().any(|given| given.name == *name);
    let declared = kernel.parameters.iter().zip(&kernel.declarations);
    let mut missing = declared.filter(|(name, _)| !name.as_ref().is_some_and(is_given));
    let mut numbers = true;
    for value in given.iter().flat_map(|given| &given.value) {
        value.visit(String::new(), &mut |_, value| {
            numbers &= matches!(value, GivenValue::Scalar(_) | GivenValue::Struct { .. });
        });
    }
    numbers && missing.any(|(_, declaration)| declaration.contains(['*', '[']))
}

/// What is wrong where parameters have no value. Unless the values are sound, only nameless
/// parameters are certainly without one.
fn without_value(kernel: &Kernel, given: &[RawGiven], is_sound: bool) -> Vec<String> {
    let is_given = |name: &String| given.iter().any(|given| given.name == *name);
    let named = || kernel.parameters.iter().enumerate().filter_map(|(at, name)| Some((at, name.as_ref()?)));
    let missing: Vec<&String> = named().map(|(_, name)| name).filter(|name| !is_given(name)).collect();
    let missing = match missing[..] {
        [] => None,
        [name] => {
            let at = named().find(|(_, other)| *other == name).map(|(at, _)| at);
            let declaration = at.and_then(|at| kernel.declarations.get(at));
            let how = match declaration {
                Some(text) if may_be_structure(text) => ", as in {x = 1}, or {} for all 0".to_owned(),
                Some(text) if points_to_arrays(text) => ", as in random[4 * 1024]".to_owned(),
                _ => String::new(),
            };
            Some(format!("parameter `{name}` of `{}` has no value: add `{name} = ...` to args(...){how}", kernel.name))
        }
        [ref first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            let names = format!("{} and `{last}`", first.join(", "));
            Some(format!("parameters {names} of `{}` have no value: add them to args(...)", kernel.name))
        }
    };
    let declared = kernel.parameters.iter().zip(&kernel.declarations);
    let nameless = (1..).zip(declared).filter(|(_, (name, _))| name.is_none()).map(|(number, (_, declaration))| {
        let remedy = match is_like_a_macro(declaration) {
            true => format!("where `{declaration}` is a macro, write out what it stands for"),
            false => "name it, so that args(...) can give it a value".to_owned(),
        };
        format!("parameter {number} of `{}` has no name: {remedy}", kernel.name)
    });
    missing.filter(|_| is_sound).into_iter().chain(nameless).collect()
}

/// Whether a declaration is one word, in capitals as macros are.
fn is_like_a_macro(declaration: &str) -> bool {
    let is_capital = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    declaration.len() > 1 && declaration.chars().all(is_capital)
}

/// Why a list is no value of a scalar.
pub const ONE_VALUE: &str = "takes one value, not a list: only macros, block, grid and register caps vary";

/// The value of a parameter, where that is one of CUDA's vectors by its declaration with its
/// fields by name: `{1, 2}` gives them in order.
fn listed_fields(kernel: &Kernel, parameter: usize, name: &str, value: GivenValue) -> GivenValue {
    let declaration = kernel.declarations.get(parameter).and_then(|declaration| declaration.strip_suffix(name));
    let fields = declaration.map(vector_fields).unwrap_or_default();
    match value {
        GivenValue::Table(GivenTable { span, values, count: None }) if values.len() <= fields.len() => {
            let field = |(name, value): (&&str, Expr)| GivenField {
                name: (*name).to_owned(),
                span: value.span,
                element: None,
                value: GivenValue::Scalar(value),
            };
            GivenValue::Struct { span, fields: fields.iter().zip(values).map(field).collect() }
        }
        value => value,
    }
}

/// Whether a parameter is a number by its declaration alone, whose types may have names that
/// only the compiler knows.
fn declares_scalar(kernel: &Kernel, parameter: usize, name: &str) -> bool {
    let declaration = kernel.declarations.get(parameter).and_then(|declaration| declaration.strip_suffix(name));
    declaration.is_some_and(|kind| matches!(Type::parse_type(kind), Type::Scalar(_)))
}
