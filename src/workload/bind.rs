//! Annotation, types and configuration -> the workload: every parameter with its bytes or its
//! buffer.

use super::buffer::{Argument, Buffer, FileBytes, Fill, Symbol, Workload};
use super::checks::bind_checks;
use super::contents::{encode, fill_bytes};
use super::entry::Entry;
use super::formula::Formula;
use super::npy;
use super::recorded_memory::bind_memory;
use super::structure::Layout;
use crate::comment::{
    Annotation, Expr, Given, GivenField, GivenFile, GivenFill, GivenSymbol, GivenTable, GivenValue, Located, ONE_VALUE,
    Value,
};
use crate::cuda::Type;
use crate::cuda::declarations::{array_of_numbers, explain_refusal, is_bool, opaque_handle, type_with_element};
use crate::cuda::takes_no_value;
use crate::cuda::template_instance;
use crate::cuda::{Element, Scalar};
use crate::diag::{Diagnostic, MessageCode, Span};
use crate::launch::Configuration;
use crate::space::Space;
use std::sync::Arc;

/// The most bytes that the buffers of a workload may have together: more than any GPU has.
const MAX_BYTES: u64 = 1 << 40;

/// The workload of a kernel under a configuration.
///
/// # Errors
/// All that is wrong: no `args` clause, a parameter of a type that takes no value, a value that
/// the type cannot hold, a buffer without elements, a tolerance for integers.
pub fn bind(
    annotation: &Annotation,
    entry: &Entry,
    space: &Space,
    configuration: &Configuration,
) -> Result<Workload, Vec<Diagnostic>> {
    let kernel = &annotation.kernel;
    let source = &annotation.source;
    let Some(args) = &annotation.clauses.args else {
        let message = format!("`{}` cannot be measured: it has no args(...)", kernel.name);
        return Err(vec![source.error(MessageCode::ParameterMissing, annotation.comment, message)]);
    };
    let mut problems = Vec::new();
    let recorded = annotation.clauses.recorded.as_deref();
    let mut workload = recorded.map(bind_memory).unwrap_or_default();
    for (index, text) in entry.parameters.iter().enumerate() {
        let Some(given) = args.iter().find(|given| given.parameter == index) else {
            let message = format!("parameter {} of `{}` has no value: add it to args(...)", index + 1, kernel.name);
            problems.push(source.error(MessageCode::ParameterMissing, kernel.span, message));
            continue;
        };
        let handle = kernel.declarations.get(index).and_then(|declaration| opaque_handle(declaration));
        if let Some(handle) = handle.filter(|_| recorded.is_none()) {
            let message = format!("`{}` is a {}, which a comment cannot describe", given.name, handle.name());
            let note = left_out(annotation, given, "; or remove args(...) and record a launch");
            problems.push(source.error(MessageCode::UnknownType, given.span, message).with(note));
            continue;
        }
        let layout = entry.layouts.get(&index);
        let name = given.name.as_str();
        let explicit_type = match type_with_element(name, text, given.element.as_deref()) {
            Ok(explicit_type) => explicit_type,
            Err(message) => {
                problems.push(source.error(MessageCode::UnknownType, given.span, message));
                continue;
            }
        };
        let text = explicit_type.as_deref().unwrap_or(text);
        let binding = Binding { annotation, space, configuration, name, span: given.span, text, layout };
        match binding.argument(&given.value, &mut workload.buffers) {
            Ok(argument) => workload.arguments.push(argument),
            Err(problem) if kernel.declarations.get(index).is_some_and(|declaration| takes_no_value(declaration)) => {
                problems.push(problem.with(left_out(annotation, given, "")));
            }
            Err(problem) => problems.push(*problem),
        }
    }
    for given in &annotation.clauses.symbols {
        match bind_symbol(annotation, entry, space, configuration, given) {
            Ok(symbol) => workload.symbols.push(symbol),
            Err(problem) => problems.push(*problem),
        }
    }
    workload.reseed(0);
    if workload.bytes() > MAX_BYTES {
        let message = format!(
            "the buffers of `{}` have {} bytes together; at most {MAX_BYTES} are allowed",
            kernel.name,
            workload.bytes()
        );
        problems.push(source.error(MessageCode::BufferSize, annotation.comment, message));
    }
    if problems.is_empty() {
        workload.checks = bind_checks(annotation, entry, &workload.buffers, &mut problems);
    }
    if problems.is_empty() { Ok(workload) } else { Err(problems) }
}

/// What to do with a parameter that takes no value.
fn left_out(annotation: &Annotation, given: &Given, otherwise: &str) -> Diagnostic {
    let kernel = &annotation.kernel.name;
    let message = format!("leave it out of args(...): then the model alone tunes `{kernel}`{otherwise}");
    annotation.source.note(given.span, message)
}

/// The contents of a variable.
fn bind_symbol(
    annotation: &Annotation,
    entry: &Entry,
    space: &Space,
    configuration: &Configuration,
    given: &GivenSymbol,
) -> Result<Symbol, Box<Diagnostic>> {
    let GivenSymbol { name, span, .. } = given;
    let source = &annotation.source;
    let mut called = entry.variables.iter().filter(|variable| variable.is_called(name));
    let variable = match (called.next(), called.next()) {
        (Some(variable), None) => variable,
        (None, _) => {
            let instances = entry.variables.iter().filter(|variable| variable.is_instance_of(name));
            let instances: Vec<String> =
                instances.map(|variable| format!("`{}`", template_instance::as_written(&variable.qualified))).collect();
            let kernel = &annotation.kernel.name;
            let problem = match instances.as_slice() {
                // It may be compiled out, as a kernel may.
                [] => source.warning(
                    MessageCode::SymbolUnknown,
                    *span,
                    format!("the compilation has no variable `{name}`; nvcc builds `{kernel}` as it is"),
                ),
                made if name.contains('<') => source.warning(
                    MessageCode::SymbolUnknown,
                    *span,
                    format!(
                        "the compilation has no variable `{name}`, only {}; nvcc builds `{kernel}` as it is",
                        made.join(", ")
                    ),
                ),
                made => source.error(
                    MessageCode::SymbolUnknown,
                    *span,
                    format!(
                        "`{name}` is a template: say which instance is given, of those that this file makes: {}",
                        made.join(", ")
                    ),
                ),
            };
            return Err(Box::new(problem));
        }
        (Some(_), Some(_)) => {
            let message = format!("several variables are called `{name}`: put the namespace before it");
            return Err(Box::new(source.error(MessageCode::SymbolUnknown, *span, message)));
        }
    };
    let Some(text) = &given.element else {
        let message = format!("the type of `{name}` is not declared here: write it, as in symbol(float {name} = ...)");
        return Err(Box::new(source.error(MessageCode::SymbolClause, *span, message)));
    };
    let Some(element) = Type::element(text) else {
        let message = format!(
            "`{name}` has elements of type `{text}`: say what numbers it is made of, as in symbol(float {name} = random[4])"
        );
        return Err(Box::new(source.error(MessageCode::SymbolClause, *span, message)));
    };
    let binding = Binding { annotation, space, configuration, name, span: *span, text, layout: None };
    let contents = match &given.value {
        GivenValue::Buffer { fill, fill_span, count } => binding.buffer(element, fill.clone(), *fill_span, count)?,
        GivenValue::File(file) => binding.file(element, file)?,
        GivenValue::Table(table) => binding.table(element, table)?,
        GivenValue::Null(span) => {
            let message = format!("`{name}` takes a number or a buffer such as random[n], not a null pointer");
            return Err(Box::new(source.error(MessageCode::WrongType, *span, message)));
        }
        GivenValue::Struct { span, .. } => {
            let message = format!("`{name}` takes a number or a buffer such as random[n], not a structure");
            return Err(Box::new(source.error(MessageCode::WrongType, *span, message)));
        }
        GivenValue::Recorded { .. } => {
            let message = format!("`{name}` takes a number or a buffer such as random[n]");
            return Err(Box::new(source.error(MessageCode::WrongType, *span, message)));
        }
        GivenValue::Scalar(expression) => {
            let fill = Fill::Constant(binding.number(element, expression)?);
            Buffer { name: name.clone(), element, count: 1, fill, seed: 0 }
        }
    };
    if contents.bytes() > variable.bytes {
        let message = format!("variable `{name}` has {} bytes, and is given {}", variable.bytes, contents.bytes());
        return Err(Box::new(source.error(MessageCode::BufferSize, *span, message)));
    }
    Ok(Symbol { symbol: variable.symbol.clone(), contents })
}

/// One parameter or variable.
struct Binding<'a> {
    annotation: &'a Annotation,
    space: &'a Space,
    configuration: &'a Configuration,
    name: &'a str,
    span: Span,
    /// Its type as text.
    text: &'a str,
    /// Of a structure.
    layout: Option<&'a Layout>,
}

impl Binding<'_> {
    fn error(&self, code: MessageCode, span: Span, message: String) -> Box<Diagnostic> {
        Box::new(self.annotation.source.error(code, span, message))
    }

    fn argument(&self, value: &GivenValue, buffers: &mut Vec<Buffer>) -> Result<Argument, Box<Diagnostic>> {
        let (name, text) = (self.name, self.text);
        match (Type::parse_type(text), value) {
            (_, GivenValue::Recorded { bytes, buffers, .. }) => {
                Ok(Argument::Struct { bytes: bytes.clone(), buffers: buffers.clone() })
            }
            (Type::Other(_), GivenValue::Struct { span, fields }) => self.structure(*span, fields, buffers),
            (Type::Other(_), value) if text.trim_end().ends_with('*') && self.is_null(value) => {
                Ok(Argument::Scalar(vec![0; 8]))
            }
            (Type::Other(_), _) => match array_of_numbers(text) {
                Some((element, count)) if self.layout.is_none() => self.array(element, count, value),
                _ => Err(self.error(MessageCode::WrongType, self.span, explain_refusal(name, text))),
            },
            (_, GivenValue::Struct { span, .. }) => Err(self.error(
                MessageCode::WrongFields,
                *span,
                format!("`{name}` is of type `{text}`, which has no fields"),
            )),
            (Type::Scalar(scalar), GivenValue::Scalar(expression)) => {
                let value = self.space.evaluate(self.configuration, expression).map_err(Box::new)?;
                self.scalar(scalar, value, expression.span).map(Argument::Scalar)
            }
            (
                Type::Scalar(_),
                GivenValue::Buffer { fill_span: span, .. } | GivenValue::File(GivenFile { span, .. }),
            ) => Err(self.error(
                MessageCode::WrongType,
                *span,
                format!("`{name}` is of type `{text}` and takes a value, not a buffer"),
            )),
            (Type::Scalar(_), GivenValue::Table(table)) => Err(self.error(
                MessageCode::WrongType,
                table.span,
                format!("`{name}` is of type `{text}` and {ONE_VALUE}"),
            )),
            (Type::Scalar(_), GivenValue::Null(span)) => Err(self.error(
                MessageCode::WrongType,
                *span,
                format!("`{name}` is of type `{text}` and takes a value, not a null pointer"),
            )),
            (Type::Pointer { .. }, GivenValue::Null(_)) => Ok(Argument::Scalar(vec![0; 8])),
            (Type::Pointer { .. }, GivenValue::Scalar(_)) if self.is_null(value) => Ok(Argument::Scalar(vec![0; 8])),
            (Type::Pointer { element, .. }, GivenValue::Buffer { fill, fill_span, count }) => {
                buffers.push(self.buffer(element, fill.clone(), *fill_span, count)?);
                Ok(Argument::Buffer(buffers.len() - 1))
            }
            (Type::Pointer { element, .. }, GivenValue::File(file)) => {
                buffers.push(self.file(element, file)?);
                Ok(Argument::Buffer(buffers.len() - 1))
            }
            (Type::Pointer { element, .. }, GivenValue::Table(table)) => {
                buffers.push(self.table(element, table)?);
                Ok(Argument::Buffer(buffers.len() - 1))
            }
            (Type::Pointer { .. }, GivenValue::Scalar(expression)) => {
                self.space.evaluate(self.configuration, expression).map_err(Box::new)?;
                let message =
                    format!("`{name}` is of type `{text}` and takes a buffer, such as random[n], zeros[n] or out[n]");
                Err(self.error(MessageCode::WrongType, expression.span, message))
            }
        }
    }

    /// Whether a value is the null pointer; as in C, 0 is.
    fn is_null(&self, value: &GivenValue) -> bool {
        match value {
            GivenValue::Null(_) => true,
            GivenValue::Scalar(expression) => {
                matches!(self.space.evaluate(self.configuration, expression), Ok(Value::Int(0)))
            }
            _ => false,
        }
    }

    /// The bytes of a structure.
    fn structure(
        &self,
        span: Span,
        fields: &[GivenField],
        buffers: &mut Vec<Buffer>,
    ) -> Result<Argument, Box<Diagnostic>> {
        let Some(layout) = self.layout else {
            return Err(self.error(
                MessageCode::WrongFields,
                span,
                format!("`{}` is of type `{}`, which has no fields", self.name, self.text),
            ));
        };
        let mut structure = (vec![0; usize::try_from(layout.bytes).unwrap_or(0)], Vec::new());
        self.fields(layout, "", fields, &mut structure, buffers)?;
        let (bytes, pointers) = structure;
        Ok(Argument::Struct { bytes, buffers: pointers })
    }

    fn fields(
        &self,
        layout: &Layout,
        prefix: &str,
        fields: &[GivenField],
        structure: &mut (Vec<u8>, Vec<(usize, usize)>),
        buffers: &mut Vec<Buffer>,
    ) -> Result<(), Box<Diagnostic>> {
        for given in fields {
            let path = format!("{prefix}{}", given.name);
            if let GivenValue::Struct { fields, .. } = &given.value {
                self.fields(layout, &format!("{path}."), fields, structure, buffers)?;
                continue;
            }
            let Some(field) = layout.fields.get(&path) else {
                return Err(self.error(
                    MessageCode::WrongFields,
                    given.span,
                    format!("the compiler says nothing of a field `{path}`"),
                ));
            };
            let name = format!("{}.{path}", self.name);
            let explicit_type = type_with_element(&name, &field.kind, given.element.as_deref());
            let explicit_type =
                explicit_type.map_err(|message| self.error(MessageCode::UnknownType, given.span, message))?;
            let text = explicit_type.as_deref().unwrap_or(&field.kind);
            let binding = Binding { name: &name, span: given.span, text, layout: None, ..*self };
            let at = usize::try_from(field.offset).unwrap_or(usize::MAX);
            match binding.argument(&given.value, buffers)? {
                Argument::Buffer(index) => structure.1.push((at, index)),
                Argument::Scalar(value) => {
                    if let Some(place) = structure.0.get_mut(at..at.saturating_add(value.len())) {
                        place.copy_from_slice(&value);
                    }
                }
                Argument::Struct { .. } => {}
            }
        }
        Ok(())
    }

    fn buffer(
        &self,
        element: Element,
        fill: GivenFill,
        fill_span: Span,
        count: &Expr,
    ) -> Result<Buffer, Box<Diagnostic>> {
        let count = self.element_count(count)?;
        self.check_size(element, count, fill_span)?;
        let fill = match fill {
            GivenFill::Each(expression) => {
                let scalars = count.saturating_mul(u64::from(element.lanes));
                let given = |name: &Expr| self.space.evaluate(self.configuration, name);
                let faulty = |index, located: Located| {
                    let message = format!("element {index} of buffer `{}` has no value: {}", self.name, located.fault);
                    *self.error(MessageCode::NoValue, located.span, message)
                };
                Fill::Each(Formula::new(&expression, scalars, given, faulty)?)
            }
            GivenFill::Random => default_random(element.scalar, is_bool(self.text)),
            GivenFill::Range(lo, hi) => {
                let (lo, hi) = (self.number(element, &lo)?, self.number(element, &hi)?);
                if lo > hi {
                    let message = format!("this range is empty: {lo} is above {hi}; write random({hi}, {lo})");
                    return Err(self.error(MessageCode::ListForm, fill_span, message));
                }
                Fill::Random { lo, hi }
            }
            GivenFill::Constant(value) => Fill::Constant(self.number(element, &value)?),
            GivenFill::Zeros => Fill::Zeros,
            GivenFill::Iota => Fill::Iota,
            GivenFill::Out => Fill::Poison,
        };
        Ok(Buffer { name: self.name.to_owned(), element, count, fill, seed: 0 })
    }

    /// A buffer that is listed.
    fn table(&self, element: Element, table: &GivenTable) -> Result<Buffer, Box<Diagnostic>> {
        let lanes = u64::from(element.lanes);
        let takes = (table.values.len() as u64).div_ceil(lanes);
        let count = table.count.as_ref().map_or(Ok(takes), |count| self.element_count(count))?;
        if takes > count {
            let message = format!(
                "{} values are listed for `{}`, which has {} of them: take some out, or make it longer",
                table.values.len(),
                self.name,
                count * lanes
            );
            return Err(self.error(MessageCode::BufferSize, table.span, message));
        }
        let text = if is_bool(self.text) { "bool" } else { element.scalar.name() };
        let bits = |(index, value): (usize, &Expr)| {
            let number = self.space.evaluate(self.configuration, value).map_err(Box::new)?;
            let name = format!("{}[{index}]", self.name);
            let bytes = Binding { name: &name, text, ..*self }.scalar(element.scalar, number, value.span)?;
            Ok(bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
        };
        let fill = Fill::Table(table.values.iter().enumerate().map(bits).collect::<Result<_, Box<Diagnostic>>>()?);
        self.check_size(element, count, table.span)?;
        Ok(Buffer { name: self.name.to_owned(), element, count, fill, seed: 0 })
    }

    /// The bytes of an array in a structure; what a shorter list leaves is 0, as in C.
    fn array(&self, element: Element, count: u64, value: &GivenValue) -> Result<Argument, Box<Diagnostic>> {
        let (contents, span) = match value {
            GivenValue::Table(table) => (self.table(element, table)?, table.span),
            GivenValue::Buffer { fill, fill_span, count } if *fill != GivenFill::Out => {
                (self.buffer(element, fill.clone(), *fill_span, count)?, *fill_span)
            }
            _ => return Err(self.error(MessageCode::WrongType, self.span, explain_refusal(self.name, self.text))),
        };
        if contents.count > count {
            let message =
                format!("`{}` is of type `{}`, and is given {} elements", self.name, self.text, contents.count);
            return Err(self.error(MessageCode::BufferSize, span, message));
        }
        let mut bytes = vec![0; usize::try_from(contents.bytes()).unwrap_or(0)];
        fill_bytes(&contents, 0..contents.count, &mut bytes);
        Ok(Argument::Scalar(bytes))
    }

    /// An error for a buffer that is too long.
    fn check_size(&self, element: Element, count: u64, span: Span) -> Result<(), Box<Diagnostic>> {
        match count.checked_mul(element.size() as u64) {
            Some(..=MAX_BYTES) => Ok(()),
            _ => {
                let message = format!(
                    "buffer `{}` has {count} elements of {} bytes: more than any GPU holds",
                    self.name,
                    element.size()
                );
                Err(self.error(MessageCode::BufferSize, span, message))
            }
        }
    }

    /// A buffer from a file. A file that is not as the comment says is no error of the comment:
    /// the kernel is not tuned.
    fn file(&self, element: Element, file: &GivenFile) -> Result<Buffer, Box<Diagnostic>> {
        let unusable = |reason: String| {
            let kernel = &self.annotation.kernel.name;
            let message = format!("'{}' {reason}; nvcc builds `{kernel}` as it is", file.path);
            Box::new(self.annotation.source.warning(MessageCode::FileUnusable, file.span, message))
        };
        let bytes = match &file.bytes {
            Some(Ok(bytes)) => bytes,
            Some(Err(reason)) => return Err(unusable(reason.clone())),
            None => return Err(unusable("was not read".to_owned())),
        };
        let mut start = 0;
        if bytes.starts_with(npy::MAGIC) {
            let array = npy::Array::parse(bytes).map_err(unusable)?;
            if !array.holds(element.scalar) {
                let message =
                    format!("has elements of type {}, `{}` is of type `{}`", array.kind, self.name, self.text);
                return Err(unusable(message));
            }
            if array.count.checked_mul(element.scalar.size() as u64) != Some(array.data.len() as u64) {
                let message =
                    format!("should have {} numbers, and has {} bytes of them", array.count, array.data.len());
                return Err(unusable(message));
            }
            start = array.data.start;
        }
        let data = FileBytes::new(Arc::clone(bytes), start);
        let (length, size) = (data.bytes().len() as u64, element.size() as u64);
        if length == 0 || length % size != 0 {
            return Err(unusable(format!("has {length} bytes of data, which are no elements of {size} bytes")));
        }
        let has = length / size;
        let count = file.count.as_ref().map_or(Ok(has), |count| self.element_count(count))?;
        if count != has {
            return Err(unusable(format!("has {has} elements of {size} bytes, and not {count}")));
        }
        Ok(Buffer { name: self.name.to_owned(), element, count, fill: Fill::File(data), seed: 0 })
    }

    /// The bytes of a scalar argument.
    fn scalar(&self, scalar: Scalar, value: Value, span: Span) -> Result<Vec<u8>, Box<Diagnostic>> {
        let name = self.name;
        let bits = match self.integer_bounds(scalar) {
            Some((least, most)) => {
                let Some(integer) = value.as_integer() else {
                    return Err(self.error(
                        MessageCode::WrongType,
                        span,
                        format!("`{name}` is of type `{}` and cannot be {value}", self.text),
                    ));
                };
                if !(least..=most).contains(&i128::from(integer)) {
                    let message = format!(
                        "`{name}` is of type `{}` and cannot be {value}: it holds {least} to {most}",
                        self.text
                    );
                    return Err(self.error(MessageCode::WrongType, span, message));
                }
                integer as u64
            }
            None => self.float_bits(scalar, value.as_f64(), span)?,
        };
        Ok(bits.to_le_bytes()[..scalar.size()].to_vec())
    }

    /// The least and the greatest integer that it holds; `None` for floats.
    fn integer_bounds(&self, scalar: Scalar) -> Option<(i128, i128)> {
        scalar.integer_bounds().map(|bounds| if is_bool(self.text) { (0, 1) } else { bounds })
    }

    /// The bits of a float, unless a finite value becomes infinite in its type.
    fn float_bits(&self, scalar: Scalar, value: f64, span: Span) -> Result<u64, Box<Diagnostic>> {
        let bits = encode(scalar, value);
        if value.is_finite() && !super::contents::decode(scalar, bits).is_finite() {
            return Err(self.error(
                MessageCode::WrongType,
                span,
                format!("{value:?} is too large for `{}`, which is of type `{}`", self.name, self.text),
            ));
        }
        Ok(bits)
    }

    fn element_count(&self, expression: &Expr) -> Result<u64, Box<Diagnostic>> {
        let value = self.space.evaluate(self.configuration, expression).map_err(Box::new)?;
        match value.as_integer().and_then(|count| u64::try_from(count).ok()) {
            Some(count) if count > 0 => Ok(count),
            _ => {
                let message = format!("buffer `{}` needs 1 element or more, not {value}", self.name);
                Err(self.error(MessageCode::BufferSize, expression.span, message))
            }
        }
    }

    /// A number that is written into scalars, checked against what their type holds.
    fn number(&self, element: Element, expression: &Expr) -> Result<f64, Box<Diagnostic>> {
        let value = self.space.evaluate(self.configuration, expression).map_err(Box::new)?.as_f64();
        match self.integer_bounds(element.scalar) {
            Some((least, most)) => {
                if value.fract() != 0.0 || !(least as f64..=most as f64).contains(&value) {
                    // No type holds what is beyond, and a truth is no number that wraps.
                    let wraps = least == 0 && most > 1 && value < 0.0 && value.fract() == 0.0;
                    let wrapped = wraps.then(|| value as i128 + most + 1);
                    // A comment has no larger numbers.
                    let remedy = match wrapped.filter(|wrapped| (0..1 << 32).contains(wrapped)) {
                        Some(wrapped) => format!("; C makes {wrapped} of it"),
                        None => String::new(),
                    };
                    // Integers as they were written, and what is far beyond without all of its digits.
                    let said = if value.abs() < 1e18 { value.to_string() } else { format!("{value:?}") };
                    let message = format!(
                        "buffer `{}` is of type `{}`, which does not hold {said}{remedy}",
                        self.name, self.text
                    );
                    return Err(self.error(MessageCode::WrongType, expression.span, message));
                }
            }
            None => {
                self.float_bits(element.scalar, value, expression.span)?;
            }
        }
        Ok(value)
    }
}

/// The range of `random[n]`.
fn default_random(scalar: Scalar, is_bool: bool) -> Fill {
    let hi = match scalar {
        _ if scalar.is_float() || is_bool => 1.0,
        Scalar::I8 => 127.0,
        _ => 255.0,
    };
    Fill::Random { lo: 0.0, hi }
}
