//! Writes the comment's expressions as C++: the functions of the header, and the launches and
//! conditions in the launch stub.

use super::argument_conditions;
use super::argument_conditions::{Division, Divisor};
use crate::comment::{Annotation, Expr, Grid, Spanned, TemplateArgument};
use crate::cuda::{Scalar, Type, array_element};
use crate::emit::cxx_expression::{EmittedFile, Types, Writer};
use crate::emit::{HeaderKernel, HostFunction, HostParameter, KernelParameter, LaunchText};
use crate::gpu::{Architecture, architecture_number, auto_caps};
use crate::launch::Configuration;
use crate::search::Provenance;
use crate::space::{Limits, Space};
use crate::workload::Entry;

/// What configurations may be at most on this architecture. `bounds` are the kernel's launch
/// bounds in threads.
pub fn limits(architecture: &Architecture, bounds: Option<u32>) -> Limits {
    Limits {
        auto_caps: auto_caps(architecture),
        max_threads: bounds,
        max_dynamic_shared: architecture.shared_per_block,
        ..Limits::default()
    }
}

/// The baseline of a comment, as far as it can be known without the compiler.
pub fn baseline(annotation: &Annotation, architecture: &str) -> Result<Configuration, super::failure::Problem> {
    Ok(space(annotation, architecture)?.baseline().clone())
}

/// The space of a comment, as far as it can be known without the compiler.
pub fn space(annotation: &Annotation, architecture: &str) -> Result<Space, super::failure::Problem> {
    // It depends on the architecture through its limits alone: any one's will do where none is
    // known.
    let architecture = Architecture::nearest(architecture_number(architecture).unwrap_or(0));
    Ok(Space::new(annotation, &limits(&architecture, None))?)
}

/// Headers of the baselines, for a source that includes its header before anything is decided.
/// A kernel whose grid only a recording can tell has none yet.
pub fn baseline_headers(annotations: &[Annotation], architecture: &str) -> Vec<HeaderKernel> {
    annotations
        .iter()
        .filter(|annotation| annotation.has_grid())
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
            // An array's type stands for that of its elements.
            let element = kind.split_once('[').map_or(kind.as_str(), |(element, _)| element);
            if let Type::Scalar(scalar) = Type::parse_type(element) {
                types.insert(name, c_type(scalar));
            }
        }
    }
    for given in annotation.clauses.args.iter().flatten() {
        let members = given.value.members();
        types.extend(members.map(|member| (format!("{}.{}", given.name, member.path), c_type(member.scalar))));
    }
    types
}

/// Returns a C type that holds the values of a scalar: host code has no 16-bit floats.
fn c_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::F16 | Scalar::Bf16 => Scalar::F32.name(),
        _ => scalar.name(),
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
    let functions = Functions {
        annotation,
        configuration,
        writer: Writer::new(EmittedFile::Header, annotation, types, configuration),
    };
    HeaderKernel {
        name: annotation.name.clone(),
        function: function_name(annotation),
        parameters: kernel_parameters(annotation),
        block: configuration.block,
        winner_block: None,
        cap: configuration.cap,
        macros: configuration.macros.clone(),
        math: configuration.math,
        unroll: configuration.unroll,
        source_macros: configuration.macros.clone(),
        is_in_place: true,
        provenance,
        speedup: 1.0,
        gpu: gpu.to_owned(),
        grid: functions.grid(),
        shared: functions.shared(),
        occupancy: None,
        capability: 0,
        others: Vec::new(),
        newer: None,
        cooperative: annotation.waits_for_grid(),
        carveout: annotation.clauses.carveout.as_ref().map(|_| configuration.carveout.map_or(-1, i32::from)),
    }
}

/// Returns the name of the kernel's function, with the arguments of a template's instance.
fn function_name(annotation: &Annotation) -> String {
    let name = &annotation.kernel.name;
    let Some(instance) = &annotation.instance else { return name.clone() };
    let arguments: Vec<&str> = instance.arguments.iter().map(TemplateArgument::text).collect();
    format!("{name}<{}>", arguments.join(", "))
}

fn kernel_parameters(annotation: &Annotation) -> Vec<KernelParameter> {
    let kernel = &annotation.kernel;
    let each = kernel.parameters.iter().zip(&kernel.declarations);
    each.map(|(name, declaration)| KernelParameter { name: name.clone(), declaration: declaration.clone() }).collect()
}

/// Writes the launch of a configuration as C++ within the kernel's launch stub.
pub fn stub_launch(annotation: &Annotation, types: &Types, configuration: &Configuration) -> LaunchText {
    let writer = Writer::new(EmittedFile::Stub, annotation, types, configuration);
    let value = |expression: &Expr| format!("static_cast<long long>({})", writer.value(expression));
    let blocks =
        |(expression, extent): (&Expr, u32)| format!("__nvtune_detail::ceildiv({}, {extent}LL)", value(expression));
    let clauses = &annotation.clauses;
    let mut grid: Vec<String> = match (configuration.grid, &clauses.grid, &clauses.threads) {
        (Some(grid), ..) => grid.iter().map(|blocks| format!("{blocks}LL")).collect(),
        (None, Some(Spanned { value: Grid::Expressions(expressions), .. }), _) => {
            expressions.iter().map(value).collect()
        }
        (None, _, Some(threads)) => threads.value.iter().zip(configuration.block).map(blocks).collect(),
        // No launch is this one.
        (None, ..) => vec!["0LL".to_owned()],
    };
    let shared = clauses.shared.as_ref().map_or_else(|| "0".to_owned(), value);
    grid.resize(3, "1LL".to_owned());
    let grid = std::array::from_fn(|at| std::mem::take(&mut grid[at]));
    LaunchText { block: configuration.block, grid, shared }
}

/// Writes what must hold of the arguments for a configuration to be used: the comment's
/// requirements, and that its grid divides the problem; as C++ within the launch stub.
pub fn stub_conditions(
    annotation: &Annotation,
    types: &Types,
    configuration: &Configuration,
    divisions: &[Division],
) -> Vec<String> {
    let writer = Writer::new(EmittedFile::Stub, annotation, types, configuration);
    let condition = |Division { dividend, divisor }: &Division| {
        let divisor = match divisor {
            Divisor::Expression(expression) => writer.value(expression),
            Divisor::Extent(at) => format!("{}LL", configuration.block[*at]),
            Divisor::Unknown => return "false".to_owned(),
        };
        format!(
            "__nvtune_detail::remainder(static_cast<long long>({}), static_cast<long long>({divisor})) == 0",
            writer.value(dividend)
        )
    };
    let required = |expression: &Expr| format!("({}) != 0", writer.value(expression));
    argument_conditions::requirements(annotation).map(required).chain(divisions.iter().map(condition)).collect()
}

/// The header's functions of one kernel under one configuration.
struct Functions<'a> {
    annotation: &'a Annotation,
    configuration: &'a Configuration,
    writer: Writer<'a>,
}

impl Functions<'_> {
    fn grid(&self) -> HostFunction {
        if let Some(grid) = self.configuration.grid {
            return constants(grid);
        }
        let block = self.configuration.block;
        match (&self.annotation.clauses.grid, &self.annotation.clauses.threads) {
            (Some(grid), _) => match &grid.value {
                Grid::Expressions(expressions) => {
                    let values = expressions.iter().map(|expression| self.writer.value(expression));
                    let words = expressions.iter().map(|expression| self.words(expression));
                    self.function(expressions, padded(values.collect()), padded(words.collect()))
                }
                Grid::Lists(_) => constants([1, 1, 1]),
            },
            (None, Some(threads)) => {
                let values = threads.value.iter().zip(block).map(|(expression, block)| {
                    let threads = self.writer.value(expression);
                    if block == 1 {
                        return threads;
                    }
                    format!("({threads} + {}LL) / {block}LL", block.saturating_sub(1))
                });
                let words = threads.value.iter().zip(block).map(|(expression, block)| match block {
                    1 => self.words(expression),
                    _ => format!("ceildiv({}, {block})", self.words(expression)),
                });
                self.function(&threads.value, padded(values.collect()), padded(words.collect()))
            }
            (None, None) => constants([1, 1, 1]),
        }
    }

    fn shared(&self) -> HostFunction {
        match &self.annotation.clauses.shared {
            Some(expression) => {
                let (value, words) = (self.writer.value(expression), self.words(expression));
                self.function(std::slice::from_ref(expression), vec![value], vec![words])
            }
            None => {
                let zero = vec!["0".to_owned()];
                HostFunction { parameters: Vec::new(), values: zero.clone(), words: zero }
            }
        }
    }

    /// Returns an expression as written, in one line.
    fn words(&self, expression: &Expr) -> String {
        let written = self.annotation.written(expression);
        let words = written.split_whitespace();
        words.filter(|word| !word.starts_with("//@")).collect::<Vec<_>>().join(" ")
    }

    /// A function over the scalar parameters that the expressions name, in the kernel's order.
    fn function(&self, expressions: &[Expr], values: Vec<String>, words: Vec<String>) -> HostFunction {
        let mut used: Vec<&String> = Vec::new();
        for expression in expressions {
            expression.names(&mut |name, _| used.push(name));
        }
        // Elements of an array in their order: 2 before 11.
        used.sort_by_key(|name| array_element(name).unwrap_or((name, 0)));
        used.dedup();
        let parameters = self.annotation.kernel.parameters.iter().enumerate();
        let named = parameters.flat_map(|(argument, parameter)| {
            let is_of = move |name: &&&String| name.split('.').next() == parameter.as_deref();
            used.iter().filter(is_of).map(move |name| (argument, *name))
        });
        let typed = named.map(|(argument, name)| HostParameter {
            kind: self.writer.type_of(name).to_owned(),
            name: self.writer.identifier(name),
            argument,
            field: name.find('.').map_or("", |dot| &name[dot..]).to_owned(),
        });
        HostFunction { parameters: typed.collect(), values, words }
    }
}

fn constants(values: [u32; 3]) -> HostFunction {
    let values: Vec<String> = values.iter().map(u32::to_string).collect();
    HostFunction { parameters: Vec::new(), words: values.clone(), values }
}

fn padded(mut values: Vec<String>) -> Vec<String> {
    values.resize(3, "1".to_owned());
    values
}
