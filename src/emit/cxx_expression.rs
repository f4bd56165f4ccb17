//! An expression of a comment -> C for the header, C++ for a launch stub.
//!
//! All integers are `long long` and every comparison gives 1 or 0, as in the comment's language,
//! so that nothing wraps in 32 bits and no compiler warns.

use super::dispatch::DETAIL_NAMESPACE;
use super::header::HEADER_DETAIL_PREFIX;
use crate::comment::{Annotation, Binary, Expr, Function, Node, Unary, Value};
use crate::cuda::array_element;
use crate::launch::Configuration;
use std::collections::{BTreeMap, BTreeSet};

/// C++ types of the scalar parameters by name.
pub type Types = BTreeMap<String, &'static str>;

/// The type of a parameter of the header's functions, before it is known from the compiler.
const UNKNOWN_TYPE: &str = "long long";

/// The file that the text is written into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmittedFile {
    /// In a function of the header, whose parameters are the scalar ones that it needs.
    Header,
    /// In a launch stub, whose parameters are the kernel's, under names that cicc gives them.
    Stub,
}

/// Writes the expressions of one comment under one configuration.
pub struct Writer<'a> {
    file: EmittedFile,
    annotation: &'a Annotation,
    types: &'a Types,
    configuration: &'a Configuration,
    /// The names that the header's functions give to the parameters, and their fields, that
    /// expressions use.
    identifiers: BTreeMap<&'a str, String>,
}

impl<'a> Writer<'a> {
    pub fn new(
        file: EmittedFile,
        annotation: &'a Annotation,
        types: &'a Types,
        configuration: &'a Configuration,
    ) -> Writer<'a> {
        Self { file, annotation, types, configuration, identifiers: identifiers(annotation) }
    }

    /// The C++ type of a parameter or of a field of one.
    pub fn type_of(&self, name: &str) -> &'static str {
        let known = self.types.get(name).or_else(|| self.types.get(array_element(name)?.0));
        known.copied().unwrap_or(UNKNOWN_TYPE)
    }

    /// The name that the header's functions give to a parameter or a field of one.
    pub fn identifier(&self, name: &str) -> String {
        self.identifiers.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// The value of an expression: a `long long` or a `double`.
    pub fn value(&self, expression: &Expr) -> String {
        match &expression.node {
            Node::Value(Value::Int(value)) => integer(*value),
            Node::Value(value) => value.to_string(),
            Node::Name(name) => self.name(name),
            Node::Unary(Unary::Not, _) => format!("({} ? 1LL : 0LL)", self.truth(expression)),
            Node::Unary(operator, a) => format!("({}{})", operator.symbol(), self.value(a)),
            Node::Binary(operator, _, a, b) => match operator {
                _ if is_truth(*operator) => format!("({} ? 1LL : 0LL)", self.truth(expression)),
                Binary::Divide | Binary::Remainder if !self.is_double(expression) && !is_never_zero(b) => {
                    let function = if *operator == Binary::Divide { "quotient" } else { "remainder" };
                    self.call(function, &self.value(a), &self.value(b))
                }
                _ => format!("({} {} {})", self.value(a), operator.symbol(), self.value(b)),
            },
            Node::Choice(condition, a, b) => {
                format!("({} ? {} : {})", self.truth(condition), self.value(a), self.value(b))
            }
            Node::Call(function, arguments) => {
                let name = match (function, self.file) {
                    (Function::Min, EmittedFile::Header) if self.is_double(expression) => "fmin",
                    (Function::Max, EmittedFile::Header) if self.is_double(expression) => "fmax",
                    _ => function.name(),
                };
                let arguments = arguments.iter().map(|argument| self.value(argument));
                arguments.reduce(|left, right| self.call(name, &left, &right)).unwrap_or_default()
            }
        }
    }

    /// The expression as a condition of C: whether it is not 0.
    fn truth(&self, expression: &Expr) -> String {
        match &expression.node {
            Node::Unary(Unary::Not, a) => format!("!{}", self.truth(a)),
            Node::Binary(operator @ (Binary::And | Binary::Or), _, a, b) => {
                format!("({} {} {})", self.truth(a), operator.symbol(), self.truth(b))
            }
            Node::Binary(operator, _, a, b) if is_truth(*operator) => {
                format!("({} {} {})", self.value(a), operator.symbol(), self.value(b))
            }
            _ => format!("({} != 0)", self.value(expression)),
        }
    }

    fn call(&self, function: &str, a: &str, b: &str) -> String {
        let detail = if self.file == EmittedFile::Stub { DETAIL_NAMESPACE } else { HEADER_DETAIL_PREFIX };
        format!("{detail}{function}({a}, {b})")
    }

    fn is_double(&self, expression: &Expr) -> bool {
        match &expression.node {
            Node::Value(value) => matches!(value, Value::Float(_)),
            Node::Name(name) => {
                !self.configuration.macros.contains_key(name) && matches!(self.type_of(name), "float" | "double")
            }
            Node::Unary(operator, a) => {
                matches!(operator, Unary::Math(_)) || *operator == Unary::Negate && self.is_double(a)
            }
            Node::Binary(operator, _, a, b) => !is_truth(*operator) && (self.is_double(a) || self.is_double(b)),
            Node::Choice(_, a, b) => self.is_double(a) || self.is_double(b),
            Node::Call(_, arguments) => arguments.iter().any(|argument| self.is_double(argument)),
        }
    }

    fn name(&self, name: &str) -> String {
        let [x, y, z] = self.configuration.block;
        let grid = self.configuration.grid.unwrap_or([1, 1, 1]);
        match name {
            "grid.x" | "grid.y" | "grid.z" if self.file == EmittedFile::Stub => {
                format!("static_cast<long long>(__nvtune_{name})")
            }
            "block.x" => integer(x),
            "block.y" => integer(y),
            "block.z" => integer(z),
            "block.size" => integer(i64::from(x) * i64::from(y) * i64::from(z)),
            "grid.x" => integer(grid[0]),
            "grid.y" => integer(grid[1]),
            "grid.z" => integer(grid[2]),
            _ => match self.configuration.macros.get(name) {
                Some(value) => integer(*value),
                None => {
                    let kind = if matches!(self.type_of(name), "float" | "double") { "double" } else { "long long" };
                    match self.file {
                        EmittedFile::Header => format!("NVTUNE_AS({kind}, {})", self.identifier(name)),
                        EmittedFile::Stub => format!("static_cast<{kind}>({})", self.stub_parameter(name)),
                    }
                }
            },
        }
    }

    /// The name of a parameter of the kernel, or a field of one, in its launch stub.
    fn stub_parameter(&self, name: &str) -> String {
        let (parameter, fields) =
            name.split_once('.').map_or((name, ""), |(parameter, _)| (parameter, &name[parameter.len()..]));
        let mut parameters = self.annotation.kernel.parameters.iter();
        let index = parameters.position(|known| known.as_deref() == Some(parameter)).unwrap_or(0);
        format!("__par{index}{fields}")
    }
}

/// An integer of 64 bits in C.
fn integer(value: impl Into<i64>) -> String {
    match value.into() {
        // C has no negative literals, and the magnitude of the least number is not a `long long`.
        i64::MIN => "(-9223372036854775807LL - 1LL)".to_owned(),
        value if value < 0 => format!("({value}LL)"),
        value => format!("{value}LL"),
    }
}

/// Whether the operator gives 1 or 0.
fn is_truth(operator: Binary) -> bool {
    use crate::comment::Binary::{And, Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual, Or};
    matches!(operator, And | Or | Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
}

/// Whether a divisor cannot be 0, whatever the program's arguments are.
fn is_never_zero(divisor: &Expr) -> bool {
    match &divisor.node {
        Node::Value(value) => value.is_true(),
        Node::Name(name) => name.starts_with("block."),
        _ => false,
    }
}

/// A distinct name for each parameter, and each field of one, that the header's functions may
/// take. Names without lower-case letters get a `_`, for they are likely to be macros somewhere.
fn identifiers(annotation: &Annotation) -> BTreeMap<&str, String> {
    // Parameters first, so that they keep their own names.
    let names = annotation.clauses.launch_names();
    let (fields, parameters): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| name.contains('.'));
    let mut identifiers = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for name in parameters.into_iter().chain(fields) {
        let mut identifier = name.replace(']', "").replace(['.', '['], "_");
        if !identifier.contains(|c: char| c.is_lowercase()) {
            identifier.push('_');
        }
        while !taken.insert(identifier.clone()) {
            identifier.push('_');
        }
        identifiers.insert(name, identifier);
    }
    identifiers
}
