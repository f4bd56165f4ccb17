//! What the host side is told of a kernel: the header's functions from the comment's expressions.

use crate::comment::{Annotation, Binary, Expr, Grid, Node};
use crate::emit::{DETAIL_NAMESPACE, HeaderKernel, HostFunction};
use crate::model::{Architecture, auto_caps};
use crate::search::Provenance;
use crate::space::{Configuration, Limits, Space};
use crate::workload::{Entry, Scalar, Type};
use std::collections::{BTreeMap, BTreeSet};

/// C++ types of the scalar parameters by name.
pub type Types = BTreeMap<String, &'static str>;

/// The type of a parameter of the header's functions where the compiler has not been asked yet.
const UNKNOWN_TYPE: &str = "long long";

/// What configurations may be at most on this architecture. `bounds` are the kernel's launch bounds in threads.
pub fn limits(architecture: &Architecture, bounds: Option<u32>) -> Limits {
    Limits {
        auto_caps: auto_caps(architecture),
        max_threads: bounds,
        max_dynamic_shared: architecture.shared_per_block,
        ..Limits::default()
    }
}

/// The baseline of a comment, as far as it can be known without the compiler.
pub fn baseline(annotation: &Annotation, architecture: &str) -> Result<Configuration, super::problem::Problem> {
    // A baseline hangs on the architecture through its limits alone: any one's will do where none is known.
    let architecture = Architecture::nearest(super::architecture_number(architecture).unwrap_or(0));
    Ok(Space::new(annotation, &limits(&architecture, None))?.baseline().clone())
}

/// Headers of the baselines, for a source that includes its header before anything is decided.
pub fn baseline_headers(annotations: &[Annotation], architecture: &str) -> Vec<HeaderKernel> {
    annotations
        .iter()
        .filter_map(|annotation| {
            let configuration = baseline(annotation, architecture).ok()?;
            Some(header(annotation, &Types::new(), &configuration, Provenance::Baseline, architecture))
        })
        .collect()
}

/// The C++ types of the kernel's scalar parameters, as the compiler has them.
pub fn types(annotation: &Annotation, entry: &Entry) -> Types {
    let mut types = Types::new();
    for (index, (name, kind)) in annotation.kernel.parameters.iter().zip(&entry.parameters).enumerate() {
        let Some(name) = name else { continue };
        let fields = entry.layouts.get(&index).into_iter().flat_map(|layout| &layout.fields);
        let fields = fields.map(|(path, field)| (format!("{name}.{path}"), &field.kind));
        for (name, kind) in fields.chain([(name.clone(), kind)]) {
            if let Type::Scalar(scalar) = Type::of(kind) {
                types.insert(name, c_type(scalar));
            }
        }
    }
    types
}

/// What a function of the header calls a parameter, or a field of one.
fn identifier(name: &str) -> String {
    name.replace('.', "_")
}

fn c_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::I8 => "signed char",
        Scalar::U8 => "unsigned char",
        Scalar::I16 => "short",
        Scalar::U16 => "unsigned short",
        Scalar::I32 => "int",
        Scalar::U32 => "unsigned int",
        Scalar::I64 => "long long",
        Scalar::U64 => "unsigned long long",
        Scalar::F16 | Scalar::Bf16 | Scalar::F32 => "float",
        Scalar::F64 => "double",
    }
}

/// What the header says of a kernel under one configuration.
pub fn header(
    annotation: &Annotation,
    types: &Types,
    configuration: &Configuration,
    provenance: Provenance,
    gpu: &str,
) -> HeaderKernel {
    let writer = Writer { annotation, types, configuration, place: Place::Header };
    HeaderKernel {
        name: annotation.name.clone(),
        block: configuration.block,
        cap: configuration.cap,
        macros: configuration.macros.clone(),
        pins_macros: provenance != Provenance::Baseline,
        provenance,
        gpu: gpu.to_owned(),
        grid: writer.grid(),
        shared: writer.shared(),
        capability: 0,
        others: Vec::new(),
        carveout: annotation.carveout.as_ref().map(|_| configuration.carveout.map_or(-1, i32::from)),
    }
}

/// The dynamic shared memory of a block under a configuration, as C++ within the kernel's launch stub.
pub fn stub_shared(annotation: &Annotation, types: &Types, configuration: &Configuration) -> String {
    let writer = Writer { annotation, types, configuration, place: Place::Stub };
    annotation.shared.as_ref().map_or_else(|| "0".to_owned(), |expression| writer.cpp(expression))
}

/// Where C++ is written for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A function of the header over the scalar parameters that it needs.
    Header,
    /// A launch stub, whose parameters are the kernel's, under names of the compiler's.
    Stub,
}

struct Writer<'a> {
    place: Place,
    annotation: &'a Annotation,
    types: &'a Types,
    configuration: &'a Configuration,
}

impl Writer<'_> {
    fn grid(&self) -> HostFunction {
        if let Some(grid) = self.configuration.grid {
            return constants(grid);
        }
        let block = self.configuration.block;
        match (&self.annotation.grid, &self.annotation.threads) {
            (Some(grid), _) => match &grid.value {
                Grid::Expressions(expressions) => {
                    let values = expressions.iter().map(|expression| self.cpp(expression));
                    self.function(expressions, padded(values.collect()))
                }
                Grid::Lists(_) => constants([1, 1, 1]),
            },
            (None, Some(threads)) => {
                let values = threads.value.iter().zip(block).map(|(expression, block)| {
                    format!("({} + {}) / {block}", self.cpp(expression), block.saturating_sub(1))
                });
                self.function(&threads.value, padded(values.collect()))
            }
            (None, None) => constants([1, 1, 1]),
        }
    }

    fn shared(&self) -> HostFunction {
        match &self.annotation.shared {
            Some(expression) => self.function(std::slice::from_ref(expression), vec![self.cpp(expression)]),
            None => HostFunction { parameters: Vec::new(), values: vec!["0".to_owned()] },
        }
    }

    /// A function over the scalar parameters that the expressions name, in the kernel's order.
    fn function(&self, expressions: &[Expr], values: Vec<String>) -> HostFunction {
        let mut used = BTreeSet::new();
        for expression in expressions {
            expression.names(&mut |name, _| {
                used.insert(name.clone());
            });
        }
        let parameters = self.annotation.kernel.parameters.iter().flatten();
        let named = parameters.flat_map(|parameter| {
            let is_of = move |name: &&String| name.split('.').next() == Some(parameter.as_str());
            used.iter().filter(is_of)
        });
        let typed = named.map(|name| (self.type_of(name).to_owned(), identifier(name)));
        HostFunction { parameters: typed.collect(), values }
    }

    fn type_of(&self, name: &str) -> &'static str {
        self.types.get(name).copied().unwrap_or(UNKNOWN_TYPE)
    }

    /// The expression in C++, in 64-bit arithmetic as the comment's language has it.
    fn cpp(&self, expression: &Expr) -> String {
        match &expression.node {
            Node::Value(value) => value.to_string(),
            Node::Name(name) => self.name(name),
            Node::Unary(operator, a) => format!("({}{})", operator.symbol(), self.cpp(a)),
            Node::Binary(operator @ (Binary::Divide | Binary::Remainder), _, a, b) if self.place == Place::Stub => {
                let function = if *operator == Binary::Divide { "quotient" } else { "remainder" };
                format!("{DETAIL_NAMESPACE}{function}({}, {})", self.cpp(a), self.cpp(b))
            }
            Node::Binary(operator, _, a, b) => format!("({} {} {})", self.cpp(a), operator.symbol(), self.cpp(b)),
            Node::Choice(condition, a, b) => {
                format!("({} ? {} : {})", self.cpp(condition), self.cpp(a), self.cpp(b))
            }
            Node::Call(function, arguments) => {
                let detail = if self.place == Place::Stub { DETAIL_NAMESPACE } else { "detail::" };
                let arguments: Vec<String> = arguments.iter().map(|argument| self.cpp(argument)).collect();
                arguments
                    .into_iter()
                    .reduce(|left, right| format!("{detail}{}({left}, {right})", function.name()))
                    .unwrap_or_default()
            }
        }
    }

    fn name(&self, name: &str) -> String {
        let [x, y, z] = self.configuration.block;
        let grid = self.configuration.grid.unwrap_or([1, 1, 1]);
        match name {
            "grid.x" | "grid.y" | "grid.z" if self.place == Place::Stub => {
                format!("static_cast<long long>(__nvtune_{name})")
            }
            "block.x" => x.to_string(),
            "block.y" => y.to_string(),
            "block.z" => z.to_string(),
            "block.size" => (u64::from(x) * u64::from(y) * u64::from(z)).to_string(),
            "grid.x" => grid[0].to_string(),
            "grid.y" => grid[1].to_string(),
            "grid.z" => grid[2].to_string(),
            _ => match self.configuration.macros.get(name) {
                Some(value) => value.to_string(),
                None if matches!(self.type_of(name), "float" | "double") => {
                    format!("static_cast<double>({})", self.parameter(name))
                }
                None => format!("static_cast<long long>({})", self.parameter(name)),
            },
        }
    }

    /// What a parameter of the kernel, or a field of one, is called.
    fn parameter(&self, name: &str) -> String {
        if self.place == Place::Header {
            return identifier(name);
        }
        let (parameter, fields) =
            name.split_once('.').map_or((name, ""), |(parameter, _)| (parameter, &name[parameter.len()..]));
        let mut parameters = self.annotation.kernel.parameters.iter();
        let index = parameters.position(|known| known.as_deref() == Some(parameter)).unwrap_or(0);
        format!("__par{index}{fields}")
    }
}

fn constants(values: [u32; 3]) -> HostFunction {
    HostFunction { parameters: Vec::new(), values: values.iter().map(u32::to_string).collect() }
}

fn padded(mut values: Vec<String>) -> Vec<String> {
    values.resize(3, "1".to_owned());
    values
}
