//! The launches of a kernel in host code -> shape, values and sizes of buffers, as far as the
//! text tells, with what was assumed for the rest.

use super::host_evaluation::{Evaluation, Number, Scope};
use super::host_program::{HostProgram, Memory, MemoryBytes, Place, arguments, called_name, last_name};
use super::host_types::{angle_arguments, words};
use super::types::Type;
use std::collections::BTreeMap;
use tree_sitter::Node;

/// What a parameter takes.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterKind {
    Scalar {
        is_float: bool,
    },
    Pointer,
    /// A structure with its fields: names and types.
    Structure(Vec<(String, ParameterKind)>),
    /// A texture, a reference, a type that no text explains.
    Other,
}

/// Bytes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferBytes {
    pub bytes: i64,
    /// Whether it may be more or fewer.
    pub is_guess: bool,
}

/// What a launch gives one parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LaunchArgument {
    pub value: Option<Number>,
    pub buffer: Option<BufferBytes>,
    pub is_null: bool,
    /// Of a structure, in the order of its fields.
    pub fields: Vec<LaunchArgument>,
}

/// A launch in host code with its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvaluatedLaunch {
    pub path: String,
    pub line: u32,
    pub block: Option<[i64; 3]>,
    /// Whether an extent of the block is assumed.
    pub is_block_assumed: bool,
    pub grid: Option<[i64; 3]>,
    /// Whether the grid is not known at all, and is one of many blocks.
    pub is_grid_assumed: bool,
    /// Bytes of dynamic shared memory; `None` if they are not known.
    pub shared: Option<i64>,
    pub is_cooperative: bool,
    pub arguments: Vec<LaunchArgument>,
    /// Template arguments as text; `None` for one that is not known.
    pub template_arguments: Vec<Option<String>>,
    /// Names that have no value in the text, with what they are taken for.
    pub assumed: Vec<(String, i64)>,
    /// The launch with other numbers in the place of each literal that arguments come from: it
    /// tells equal numbers of one launch apart.
    pub variation: Option<Box<EvaluatedLaunch>>,
}

/// A block that is not known: threads in one dimension, and in several.
const ASSUMED_BLOCK: [i64; 2] = [256, 16];

/// The blocks of a grid that is not known.
const ASSUMED_GRID: i64 = 1024;

/// How far numbers of a variation are apart: whole tiles and blocks of usual sizes.
const VARIED_BY: i64 = 1024;

/// Threads of a block (all GPUs).
const MOST_THREADS: i64 = 1024;

/// The most bytes of the name of a kernel that a pointer is given.
const LONGEST_NAME: usize = 120;

/// The most launches of a kernel that are looked at.
const MOST_LAUNCHES: usize = 16;

/// Words in names of numbers that are sizes.
const SIZES: [&str; 14] = [
    "size", "width", "height", "num", "count", "len", "dim", "row", "col", "elem", "pitch", "stride", "total", "point",
];

/// The parts of a launch in the text.
struct LaunchParts<'t> {
    grid: Node<'t>,
    block: Node<'t>,
    shared: Option<Node<'t>>,
    arguments: Vec<Node<'t>>,
    template: Option<String>,
    is_cooperative: bool,
}

impl HostProgram {
    /// Whether device code launches a kernel.
    pub fn is_launched_by_device(&self, kernel: &str) -> bool {
        let places = self.launches.get(kernel).into_iter().flatten();
        places.into_iter().any(|place| self.is_in_device_code(place))
    }

    /// The launches of a kernel with these parameters. Numbers that the text does not tell are
    /// `assumption`.
    pub fn evaluated_launches(
        &self,
        kernel: &str,
        parameters: &[ParameterKind],
        assumption: i64,
    ) -> Vec<EvaluatedLaunch> {
        let places = self.host_launches(kernel);
        places.into_iter().filter_map(|place| self.evaluated(place, parameters, assumption)).collect()
    }

    /// The launches of a kernel in host code: by its name, or by a pointer that is given it.
    fn host_launches(&self, kernel: &str) -> Vec<&Place> {
        let is_given = |name: &String| {
            let mut definitions = self.definitions.get(name).into_iter().flatten();
            let is_it = |place: &Place| place.range.len() < LONGEST_NAME && last_name(self.slice(place)) == kernel;
            definitions.any(|definition| is_it(&definition.value))
        };
        let own = self.launches.get(kernel).into_iter().flatten();
        let mut pointers: Vec<(&String, &Vec<Place>)> =
            self.launches.iter().filter(|(name, _)| *name != kernel && is_given(name)).collect();
        pointers.sort_by_key(|(name, _)| name.as_str());
        let by_pointer = pointers.into_iter().flat_map(|(_, places)| places);
        own.chain(by_pointer).filter(|place| !self.is_in_device_code(place)).take(MOST_LAUNCHES).collect()
    }

    fn is_in_device_code(&self, place: &Place) -> bool {
        let Some(function) = self.function_around(place.file, place.range.start) else { return false };
        let Some(body) = function.child_by_field_name("body") else { return false };
        let head = self.slice(&Place { file: place.file, range: function.start_byte()..body.start_byte() });
        head.contains("__global__") || head.contains("__device__") && !head.contains("__host__")
    }

    fn evaluated(&self, place: &Place, parameters: &[ParameterKind], assumption: i64) -> Option<EvaluatedLaunch> {
        let parts = self.parts(place)?;
        let (mut launch, varied) = self.evaluated_with(place, &parts, parameters, assumption, BTreeMap::new())?;
        if !varied.is_empty() {
            let other = self.evaluated_with(place, &parts, parameters, assumption, varied).map(|(launch, _)| launch);
            launch.variation = other.map(Box::new);
        }
        Some(launch)
    }

    /// Evaluates a launch in which some names have other values; returns other values for the
    /// names that its arguments come from.
    fn evaluated_with(
        &self,
        place: &Place,
        parts: &LaunchParts<'_>,
        parameters: &[ParameterKind],
        assumption: i64,
        replaced: BTreeMap<String, i64>,
    ) -> Option<(EvaluatedLaunch, BTreeMap<String, i64>)> {
        let text = &self.files.get(place.file)?.text;
        let evaluation = Evaluation::with(self, replaced);
        let scope = Scope::new(place);
        let is_launched = |extents: &[i64; 3]| extents.iter().all(|extent| *extent > 0);
        let sure = evaluation.extents(parts.block, text, &scope).filter(is_launched);
        let is_block_assumed = sure.is_none();
        let block = sure.or_else(|| {
            ASSUMED_BLOCK.into_iter().find_map(|threads| {
                evaluation.assume(Some(threads));
                let block = evaluation.extents(parts.block, text, &scope);
                block.filter(is_launched).filter(|block| block.iter().product::<i64>() <= MOST_THREADS)
            })
        });
        let block = block.or(Some([ASSUMED_BLOCK[0], 1, 1]));
        let of_block = evaluation.take_leaves();
        evaluation.assume(None);
        let shared = match parts.shared {
            None => Some(0),
            Some(node) => evaluation.value(node, text, &scope).map(Number::as_integer),
        };
        evaluation.assume(Some(assumption));
        let grid = evaluation.extents(parts.grid, text, &scope).filter(is_launched);
        let is_grid_assumed = grid.is_none();
        let grid = grid.or(Some([ASSUMED_GRID, 1, 1]));
        let argument = |number: usize, kind: &ParameterKind| match parts.arguments.get(number) {
            Some(node) => evaluation.argument(*node, kind, &scope, assumption),
            None => LaunchArgument::default(),
        };
        // Sizes of buffers come first: a number among them is a size.
        let mut varied = BTreeMap::new();
        let mut given: Vec<LaunchArgument> = vec![LaunchArgument::default(); parameters.len()];
        for wants_pointers in [true, false] {
            for (number, kind) in parameters.iter().enumerate() {
                if (*kind == ParameterKind::Pointer) == wants_pointers {
                    evaluation.take_leaves();
                    given[number] = argument(number, kind);
                    let leaves = evaluation.take_leaves();
                    varied.extend(leaves.into_iter().filter(|_| matches!(kind, ParameterKind::Scalar { .. })));
                }
            }
        }
        evaluation.assume(None);
        let template = parts.template.as_deref().and_then(angle_arguments).unwrap_or_default();
        let template_arguments = template.iter().map(|argument| evaluation.template_text(argument, &scope)).collect();
        let (path, line) = self.source(place);
        varied.retain(|name, value| *value > 1 && !of_block.contains_key(name));
        let steps = (1..).map(|step| step * VARIED_BY);
        varied.values_mut().zip(steps).for_each(|(value, more)| *value = value.saturating_add(more));
        let launch = EvaluatedLaunch {
            path,
            line,
            block,
            is_block_assumed,
            grid,
            is_grid_assumed,
            shared,
            is_cooperative: parts.is_cooperative,
            arguments: given,
            template_arguments,
            assumed: evaluation.assumed(),
            variation: None,
        };
        Some((launch, varied))
    }

    /// Finds the parts of a launch: `k<<<grid, block>>>(...)`, or one by address with an array of
    /// arguments.
    fn parts(&self, place: &Place) -> Option<LaunchParts<'_>> {
        let text = &self.files.get(place.file)?.text;
        let node = self.node(place).filter(|node| node.kind() == "call_expression")?;
        let mut cursor = node.walk();
        let shape = node.children(&mut cursor).find(|child| child.kind() == "kernel_call_syntax");
        let given = arguments(node);
        if let Some(shape) = shape {
            let function = &text[node.child_by_field_name("function")?.byte_range()];
            return Some(LaunchParts {
                grid: shape.named_child(0)?,
                block: shape.named_child(1)?,
                shared: shape.named_child(2),
                arguments: given,
                template: function.find('<').map(|at| function[at..].to_owned()),
                is_cooperative: false,
            });
        }
        let function = called_name(node.child_by_field_name("function")?, text);
        if !matches!(function, "cudaLaunchKernel" | "cudaLaunchCooperativeKernel") {
            return None;
        }
        let kernel = &text[given.first()?.byte_range()];
        let kernel = kernel.rsplit(')').next().filter(|rest| !rest.is_empty()).unwrap_or(kernel);
        let scope = Scope::new(&Place { file: place.file, range: node.byte_range() });
        let array = last_name(&text[given.get(3)?.byte_range()]);
        let evaluation = Evaluation::new(self);
        let definition = evaluation.nearest(array, array, &scope).into_iter();
        let mut lists = definition.filter_map(|definition| self.node(&definition.value));
        let list = lists.find(|node| node.kind() == "initializer_list");
        let mut cursor = node.walk();
        let elements: Vec<Node<'_>> = match list {
            Some(list) => list.named_children(&mut cursor).filter(|node| node.kind() != "comment").collect(),
            None => Vec::new(),
        };
        Some(LaunchParts {
            grid: *given.get(1)?,
            block: *given.get(2)?,
            shared: given.get(4).copied(),
            arguments: elements.into_iter().map(|element| without_address(element, text)).collect(),
            template: kernel.find('<').map(|at| kernel[at..].to_owned()),
            is_cooperative: function.contains("Cooperative"),
        })
    }
}

/// The variable whose address an element of an array of arguments is: `n` of `(void *)&n`.
fn without_address<'t>(element: Node<'t>, text: &str) -> Node<'t> {
    let mut node = element;
    loop {
        let is_address = node.kind() == "pointer_expression" && text[node.byte_range()].starts_with('&');
        let inner = match node.kind() {
            "cast_expression" => node.child_by_field_name("value"),
            "pointer_expression" if is_address => node.child_by_field_name("argument"),
            "parenthesized_expression" => node.named_child(0),
            "call_expression" => arguments(node).first().copied(),
            _ => None,
        };
        match inner {
            Some(inner) => node = inner,
            None => return node,
        }
    }
}

impl Evaluation<'_> {
    /// What a launch gives a parameter.
    fn argument(&self, node: Node<'_>, kind: &ParameterKind, scope: &Scope, assumption: i64) -> LaunchArgument {
        let Some(file) = self.program.files.get(scope.file) else { return LaunchArgument::default() };
        let text = &file.text;
        let code = &text[node.byte_range()];
        match kind {
            ParameterKind::Scalar { is_float } => {
                self.assume(Some(assumption_for(code, *is_float, assumption)));
                LaunchArgument { value: self.value(node, text, scope), ..LaunchArgument::default() }
            }
            ParameterKind::Pointer => {
                let is_null = matches!(code.trim(), "NULL" | "nullptr" | "0");
                let buffer = if is_null { None } else { self.bytes_of(node, text, scope) };
                LaunchArgument { buffer: buffer.filter(|of| of.bytes > 0), is_null, ..LaunchArgument::default() }
            }
            ParameterKind::Structure(fields) => {
                let values = self.structure(node, text, fields, scope, assumption);
                LaunchArgument { fields: values, ..LaunchArgument::default() }
            }
            ParameterKind::Other => LaunchArgument::default(),
        }
    }

    /// The fields of a structure: by the arguments of a constructor, a list, or assignments.
    fn structure(
        &self,
        node: Node<'_>,
        text: &str,
        fields: &[(String, ParameterKind)],
        scope: &Scope,
        assumption: i64,
    ) -> Vec<LaunchArgument> {
        let code: String = text[node.byte_range()].split_whitespace().collect();
        let listed: Vec<Node<'_>> = match node.kind() {
            "call_expression" => arguments(node),
            _ => Vec::new(),
        };
        let field = |(number, (name, kind)): (usize, &(String, ParameterKind))| {
            if let Some(given) = listed.get(number).filter(|_| listed.len() == fields.len()) {
                return self.argument(*given, kind, scope, assumption);
            }
            let whole = format!("{code}.{name}");
            let definition = self.nearest(&whole, name, scope).into_iter().find(|of| of.target == whole);
            let given = definition.and_then(|definition| {
                let place = &definition.value;
                let moved = scope.moved(place)?;
                Some(self.argument(self.program.node(place)?, kind, &moved, assumption))
            });
            given.unwrap_or_else(|| match kind {
                ParameterKind::Pointer => {
                    let found = self.bytes_named(&whole, name, scope);
                    LaunchArgument { buffer: found, ..LaunchArgument::default() }
                }
                _ => LaunchArgument::default(),
            })
        };
        fields.iter().enumerate().map(field).collect()
    }

    /// Bytes behind a pointer.
    fn bytes_of(&self, node: Node<'_>, text: &str, scope: &Scope) -> Option<BufferBytes> {
        self.step()?;
        let scope = &scope.deeper()?;
        let guess = |found: BufferBytes| BufferBytes { is_guess: true, ..found };
        match node.kind() {
            "cast_expression" => self.bytes_of(node.child_by_field_name("value")?, text, scope),
            "parenthesized_expression" => self.bytes_of(node.named_child(0)?, text, scope),
            "binary_expression" => self.bytes_of(node.child_by_field_name("left")?, text, scope).map(guess),
            "pointer_expression" => self.bytes_of(node.child_by_field_name("argument")?, text, scope),
            "subscript_expression" => {
                let name: String = text[node.byte_range()].split_whitespace().collect();
                self.bytes_named(&name, last_name(&name), scope)
            }
            "call_expression" => {
                let function = node.child_by_field_name("function")?;
                // `x.data()`, `x.begin()`
                let object = function.child_by_field_name("argument").filter(|_| arguments(node).is_empty());
                self.bytes_of(object.or_else(|| arguments(node).first().copied())?, text, scope)
            }
            "identifier" | "field_expression" | "qualified_identifier" => {
                let name: String = text[node.byte_range()].split_whitespace().collect();
                self.bytes_named(&name, last_name(&name), scope)
            }
            _ => None,
        }
    }

    /// Bytes of the memory that a variable is given.
    fn bytes_named(&self, whole: &str, name: &str, scope: &Scope) -> Option<BufferBytes> {
        self.step()?;
        let scope = &scope.deeper()?;
        let function = self.program.function_around(scope.file, scope.at).map(|node| node.start_byte());
        let own: Vec<&Memory> = self.program.memory.get(name).into_iter().flatten().collect();
        let is_here = |memory: &&&Memory| memory.call.file == scope.file && memory.function == function;
        let is_copy = |memory: &&&Memory| matches!(memory.bytes, MemoryBytes::Copied(_));
        let bytes = |memory: &&Memory| self.bytes_of_memory(memory, scope);
        let here = own.iter().filter(is_here).filter(|memory| !is_copy(memory)).find_map(bytes);
        let from_definition = || {
            self.nearest(whole, name, scope).into_iter().find_map(|definition| {
                let place = &definition.value;
                let moved = scope.moved(place)?;
                self.bytes_of(self.program.node(place)?, &self.program.files.get(place.file)?.text, &moved)
            })
        };
        let from_caller = || {
            self.of_parameter(whole, scope, &|place, scope| {
                self.bytes_of(self.program.node(place)?, &self.program.files.get(place.file)?.text, scope)
            })
        };
        let anywhere = || own.iter().filter(|memory| !is_copy(memory)).find_map(bytes);
        let copied = || own.iter().filter(is_here).chain(own.iter()).filter(is_copy).find_map(bytes);
        here.or_else(from_definition).or_else(from_caller).or_else(anywhere).or_else(copied)
    }

    fn bytes_of_memory(&self, memory: &Memory, scope: &Scope) -> Option<BufferBytes> {
        let moved = scope.moved(&memory.call)?;
        let text = &self.program.files.get(memory.call.file)?.text;
        let argument = |number: usize| {
            let node = *arguments(self.program.node(&memory.call)?).get(number)?;
            self.value(node, text, &moved).map(Number::as_integer)
        };
        let (bytes, is_guess) = match &memory.bytes {
            MemoryBytes::Arguments(numbers) => {
                let factors: Option<Vec<i64>> = numbers.iter().map(|number| argument(*number)).collect();
                (factors?.into_iter().try_fold(1_i64, i64::checked_mul)?, false)
            }
            MemoryBytes::Elements { count, element } => {
                let place = Place { file: memory.call.file, range: count.clone() };
                let size = self.size_of(&self.in_scope(element, &moved), memory.call.file)?;
                (self.value_of_text(self.program.slice(&place), &moved)?.as_integer().checked_mul(size)?, false)
            }
            MemoryBytes::Of(name) => {
                let found = self.bytes_named(name, name, &moved)?;
                (found.bytes, found.is_guess)
            }
            MemoryBytes::Copied(number) => (argument(*number)?, true),
        };
        (bytes > 0).then_some(BufferBytes { bytes, is_guess })
    }

    /// A template argument as a comment has it: a type, or a number.
    fn template_text(&self, argument: &str, scope: &Scope) -> Option<String> {
        let replaced = self.in_scope(argument, scope);
        let resolved = self.program.resolved_type(scope.file, &replaced, &[]);
        let is_type = !matches!(Type::parse_type(&resolved), Type::Other(_)) || Type::element(&resolved).is_some();
        if is_type || matches!(resolved.as_str(), "true" | "false") {
            return Some(resolved.trim().to_owned());
        }
        let name = replaced.trim();
        if self.program.structures.contains_key(name) || name.contains("::") {
            return Some(name.to_owned());
        }
        self.value_of_text(&replaced, scope).map(|value| value.as_integer().to_string())
    }

    /// The type of a variable that is an argument, for a template whose arguments follow from it.
    pub(super) fn type_of_argument(&self, node: Node<'_>, text: &str, scope: &Scope) -> Option<String> {
        let code = text[node.byte_range()].trim();
        let name = last_name(code);
        let kind = self.declared_type(name, scope)?;
        let kind = words(&kind, |word| (word == "const").then(String::new));
        Some(self.program.resolved_type(scope.file, &self.in_scope(&kind, scope), &[]))
    }
}

impl HostProgram {
    /// The declared type of each argument of a kernel's first launch in host code.
    pub fn argument_types(&self, kernel: &str) -> Vec<Option<String>> {
        let Some(place) = self.host_launches(kernel).into_iter().next() else { return Vec::new() };
        let (Some(parts), Some(file)) = (self.parts(place), self.files.get(place.file)) else { return Vec::new() };
        let (evaluation, scope) = (Evaluation::new(self), Scope::new(place));
        parts.arguments.iter().map(|node| evaluation.type_of_argument(*node, &file.text, &scope)).collect()
    }

    /// What a parameter of this type takes; names of types are resolved in a file.
    pub fn parameter_kind(&self, path: &str, kind: &str) -> ParameterKind {
        self.kind_of(path, kind, 3)
    }

    fn kind_of(&self, path: &str, kind: &str, depth: usize) -> ParameterKind {
        let text = self.parameter_type(path, kind);
        match Type::parse_type(&text) {
            Type::Scalar(scalar) => return ParameterKind::Scalar { is_float: scalar.is_float() },
            Type::Pointer { .. } => return ParameterKind::Pointer,
            Type::Other(_) if text.contains(['&', '(', '[']) => return ParameterKind::Other,
            Type::Other(_) => {}
        }
        let stem = text.replace("const", "");
        if stem.contains('*') {
            return if stem.matches('*').count() == 1 { ParameterKind::Pointer } else { ParameterKind::Other };
        }
        let fields: Vec<(String, String)> = match Type::element(&stem) {
            Some(element) => {
                let names = ["x", "y", "z", "w"].into_iter().take(element.lanes.into());
                names.map(|name| (name.to_owned(), element.scalar.name().to_owned())).collect()
            }
            None if stem.trim() == "dim3" => {
                ["x", "y", "z"].map(|name| (name.to_owned(), "unsigned int".to_owned())).into()
            }
            None => match self.structures.get(stem.trim()) {
                Some(fields) if depth > 0 && !fields.is_empty() => fields.clone(),
                _ => return ParameterKind::Other,
            },
        };
        let kinds = fields.into_iter().map(|(name, kind)| {
            let kind = self.kind_of(path, &kind, depth.saturating_sub(1));
            (name, kind)
        });
        ParameterKind::Structure(kinds.collect())
    }

    /// A type without names that stand for others, as seen from a file.
    pub fn parameter_type(&self, path: &str, kind: &str) -> String {
        let file = self.files.iter().position(|file| file.path == path).unwrap_or(0);
        self.resolved_type(file, kind, &[])
    }

    /// The numbers that a structure is made of, if they are all of one type: it, and their number.
    pub fn structure_element(&self, path: &str, kind: &str) -> Option<(String, i64)> {
        let file = self.files.iter().position(|file| file.path == path)?;
        let evaluation = Evaluation::new(self);
        let kind = self.resolved_type(file, kind, &[]).replace("const", "");
        let size = evaluation.size_of(&kind, file)?;
        let fields = self.structures.get(kind.trim())?;
        let mut scalars = fields.iter().map(|(_, kind)| {
            let text = self.resolved_type(file, kind, &[]);
            let stem = text.split('[').next().unwrap_or("").trim().to_owned();
            Type::element(&stem).map(|element| element.scalar)
        });
        let first = scalars.next()??;
        scalars.all(|other| other == Some(first)).then(|| (first.name().to_owned(), size / first.size() as i64))
    }

    /// The type of a structure's field, as seen from a file.
    pub fn field_type(&self, path: &str, kind: &str, field: &str) -> Option<String> {
        let kind = self.parameter_type(path, kind).replace("const", "");
        let fields = self.structures.get(kind.trim())?;
        let (_, own) = fields.iter().find(|(name, _)| name == field)?;
        Some(self.parameter_type(path, own))
    }

    /// Bytes of a type, as seen from a file.
    pub fn size_of_type(&self, path: &str, kind: &str) -> Option<i64> {
        let file = self.files.iter().position(|file| file.path == path)?;
        Evaluation::new(self).size_of(kind, file)
    }
}

/// What a number without a value is taken for: a size if its name says so.
fn assumption_for(code: &str, is_float: bool, assumption: i64) -> i64 {
    let name = last_name(code).to_ascii_lowercase();
    let is_size = SIZES.iter().any(|word| name.contains(word)) || matches!(name.as_str(), "n" | "m" | "w" | "h");
    if is_size && !is_float { assumption } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::{EvaluatedLaunch, HostProgram, ParameterKind};
    use crate::cuda::Number;

    /// The first launch of `k(int n, float *x)`.
    fn launch(files: &[(&str, &str)]) -> EvaluatedLaunch {
        let files: Vec<(String, String)> =
            files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        let kinds = [ParameterKind::Scalar { is_float: false }, ParameterKind::Pointer];
        HostProgram::new(&files).evaluated_launches("k", &kinds, 1024).swap_remove(0)
    }

    /// Grid, block, `n`, bytes of `x`.
    fn values(text: &str) -> (Option<[i64; 3]>, Option<[i64; 3]>, Option<Number>, Option<i64>) {
        let launch = launch(&[("a.cu", text)]);
        let [n, x] = &launch.arguments[..] else { panic!("two arguments") };
        (launch.grid, launch.block, n.value, x.buffer.map(|buffer| buffer.bytes))
    }

    #[test]
    fn values_come_from_what_stands_around_a_launch() {
        for text in [
            "int main() { int n = 1000; float *x; cudaMalloc(&x, n * sizeof(float)); k<<<(n + 255) / 256, 256>>>(n, x); }",
            "#define N 1000\n#define UP(a, b) (((a) + (b) - 1) / (b))\nint main() { float *x; CHECK(cudaMalloc((void **)&x, sizeof(float) * N));\n\
             dim3 g(UP(N, 256)), b(256); k<<<g, b>>>(N, x); }",
            "static int up(int a, int b) { return a % b != 0 ? a / b + 1 : a / b; }\n\
             void run(float *data, int m) { dim3 b = dim3(256, 1); dim3 g; g.x = up(m, b.x); k<<<g, b>>>(m, data); }\n\
             int main() { float *d; cudaMalloc(&d, 4000); run(d, 1000); }",
            "const int SIZE = 1000; float *x;\nvoid make() { x = (float *)malloc(SIZE * sizeof *x); }\n\
             int main() { k<<<ceil(SIZE / 256.0f), 256>>>(SIZE, x + 0); }",
            "template <typename T, int B> void run(int n) { T *x; cudaMallocManaged(&x, n * sizeof(T)); k<<<(n + B - 1) / B, B>>>(n, x); }\n\
             int main() { run<float, 256>(1000); }",
            "struct P { int n; float *x; };\nint main() { P p; p.n = 1000; cudaMalloc(&p.x, sizeof(float) * p.n); k<<<4, 256>>>(p.n, p.x); }",
            "#if defined(SMALL)\n#define N 8\n#else\n#define N 1000\n#endif\nint main() { thrust::device_vector<float> v(N); k<<<N / 256 + 1, 256>>>(N, thrust::raw_pointer_cast(v.data())); }",
            "int main() { int n = 1000; float *x; cudaMalloc(&x, 4 * n); void *args[] = {&n, (void *)&x}; cudaLaunchKernel((void *)k, dim3(4), dim3(256), args, 0, 0); }",
            "int main() { float *x = new float[1000]; void (*kernel)(int, float *) = &k; kernel<<<4, 256>>>(1000, x); }",
        ] {
            let expected = (Some([4, 1, 1]), Some([256, 1, 1]), Some(Number::Int(1000)), Some(4000));
            assert_eq!(values(text), expected, "{text}");
        }
    }

    #[test]
    fn headers_and_other_sources_count() {
        let launch = launch(&[
            ("d/main.cpp", "#include \"sizes.h\"\nvoid run(int n);\nint main() { run(ROWS); }"),
            (
                "d/k.cu",
                "#define THREADS 64\nvoid run(int n) { float *x; cudaMalloc(&x, n); k<<<n / THREADS, THREADS>>>(n, x); }",
            ),
            ("d/sizes.h", "#pragma once\n#define ROWS 640"),
        ]);
        assert_eq!((launch.grid, launch.arguments[0].value), (Some([10, 1, 1]), Some(Number::Int(640))));
    }

    #[test]
    fn names_without_a_value_are_assumed_and_listed() {
        let text = "int main(int c, char **v) { int n = atoi(v[1]); float *x; cudaMalloc(&x, 4 * n); k<<<n / 64, 64>>>(n, x); }";
        let launch = launch(&[("a.cu", text)]);
        assert_eq!(launch.assumed, [("atoi(...)".to_owned(), 1024)]);
        assert_eq!((launch.grid, launch.is_block_assumed), (Some([16, 1, 1]), false));
    }

    #[test]
    fn variation_tells_equal_numbers_apart() {
        let text = "#define W 512\n#define H 512\nint main() { float *x; cudaMalloc(&x, 4 * W * W); k<<<H / 64, 64>>>(H, x); }";
        let launch = launch(&[("a.cu", text)]);
        let other = launch.variation.expect("another launch");
        assert_eq!((other.grid, other.arguments[0].value), (Some([24, 1, 1]), Some(Number::Int(1536))));
        assert_eq!(other.arguments[1].buffer.map(|buffer| buffer.bytes), Some(4 * 512 * 512));
    }

    #[test]
    fn unknown_shapes_are_marked() {
        let launch = launch(&[("a.cu", "void run(dim3 g, dim3 b) { k<<<g, b>>>(1, nullptr); }")]);
        assert_eq!((launch.is_block_assumed, launch.is_grid_assumed, launch.arguments[1].is_null), (true, false, true));
    }
}
