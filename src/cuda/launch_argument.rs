//! An argument of a launch in host code -> its value, or the bytes behind it.

use super::host_evaluation::{Evaluation, Scope};
use super::host_nodes::{arguments, base_name, called_name, last_name};
use super::host_number::Number;
use super::host_program::{FilePlace, Memory, MemoryBytes};
use super::host_types::words;
use super::parameter_kind::ParameterKind;
use super::types::Type;
use tree_sitter::Node;

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
    /// Whether this is a field that has the value of a name of which the grid comes.
    pub gives_grid: bool,
    /// Of a structure, in the order of its fields.
    pub fields: Vec<LaunchArgument>,
}

/// Words in names of numbers that are sizes.
const SIZES: [&str; 14] = [
    "size", "width", "height", "num", "count", "len", "dim", "row", "col", "elem", "pitch", "stride", "total", "point",
];

impl Evaluation<'_> {
    /// What a launch gives a parameter.
    pub(super) fn argument(
        &self,
        node: Node<'_>,
        kind: &ParameterKind,
        scope: &Scope,
        assumption: i64,
    ) -> LaunchArgument {
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
            ParameterKind::Array | ParameterKind::Other | ParameterKind::Unknown => LaunchArgument::default(),
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
            let of_field = || match listed.get(number).filter(|_| listed.len() == fields.len()) {
                Some(given) => self.argument(*given, kind, scope, assumption),
                None => self.member(&format!("{code}.{name}"), kind, scope, assumption),
            };
            self.noted_field(kind, of_field)
        };
        fields.iter().enumerate().map(field).collect()
    }

    /// A field of a structure; of a number, with whether the grid comes from the same names.
    fn noted_field(&self, kind: &ParameterKind, read: impl FnOnce() -> LaunchArgument) -> LaunchArgument {
        let before = self.take_leaves();
        let mut field = read();
        let own = self.take_leaves();
        self.add_leaves(before);
        match kind {
            // The size of a buffer is no number of the launch.
            ParameterKind::Pointer => return field,
            ParameterKind::Scalar { .. } => field.gives_grid = self.is_of_grid(&own),
            _ => {}
        }
        self.add_leaves(own);
        field
    }

    /// What a member of a variable has: as it is assigned, or as the launch took it for.
    fn member(&self, whole: &str, kind: &ParameterKind, scope: &Scope, assumption: i64) -> LaunchArgument {
        let name = last_name(whole);
        let definition = self.nearest(whole, name, scope).into_iter().find(|of| of.target == whole);
        match (kind, definition) {
            (ParameterKind::Scalar { is_float }, definition) => {
                let value = || self.named(whole, name, scope);
                let value = if definition.is_some() {
                    self.assume(Some(assumption_for(name, *is_float, assumption)));
                    value()
                } else {
                    self.sure(value)
                };
                LaunchArgument { value, ..LaunchArgument::default() }
            }
            (_, Some(definition)) => {
                let place = &definition.value;
                let given = scope.moved(place).zip(self.program.node(place));
                given
                    .map_or_else(LaunchArgument::default, |(moved, node)| self.argument(node, kind, &moved, assumption))
            }
            (ParameterKind::Pointer, None) => {
                LaunchArgument { buffer: self.bytes_named(whole, name, scope), ..LaunchArgument::default() }
            }
            (ParameterKind::Structure(fields), None) => {
                let of_field = |(name, kind): &(String, ParameterKind)| {
                    self.noted_field(kind, || self.member(&format!("{whole}.{name}"), kind, scope, assumption))
                };
                LaunchArgument { fields: fields.iter().map(of_field).collect(), ..LaunchArgument::default() }
            }
            (ParameterKind::Array | ParameterKind::Other | ParameterKind::Unknown, None) => LaunchArgument::default(),
        }
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
        self.bytes_once(whole, scope, || self.bytes_searched(whole, name, scope))
    }

    fn bytes_searched(&self, whole: &str, name: &str, scope: &Scope) -> Option<BufferBytes> {
        let function = self.program.function_around(scope.file, scope.at).map(|node| node.start_byte());
        let is_here = |memory: &&&Memory| memory.call.file == scope.file && memory.function == function;
        let is_copy = |memory: &&&Memory| matches!(memory.bytes, MemoryBytes::Copied(_));
        let bytes = |memory: &&Memory| self.bytes_of_memory(memory, scope);
        let is_local = self.is_local(whole, scope);
        let may_be_meant = |memory: &&Memory| match (is_local, is_here(&memory)) {
            (true, is_here) => is_here && base_name(&memory.target) == base_name(whole),
            (false, true) => true,
            // Members of a variable of another function may be those of the object that is meant.
            (false, false) => memory.target != name || !self.is_local(name, &Scope::new(&memory.call)),
        };
        let all = self.program.memory.get(name).into_iter().flatten();
        let mut own: Vec<&Memory> = all.filter(may_be_meant).collect();
        own.sort_by_key(|memory| memory.target != whole);
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
            .or_else(|| {
                self.of_member(whole, scope, &|member, scope| self.bytes_named(member, last_name(member), scope))
            })
        };
        let is_near = |memory: &&&Memory| memory.call.file == scope.file;
        let near = || own.iter().filter(is_near).chain(own.iter());
        let anywhere = || near().filter(|memory| !is_copy(memory)).find_map(bytes);
        let copied = || own.iter().filter(is_here).chain(near()).filter(is_copy).find_map(bytes);
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
                let place = FilePlace { file: memory.call.file, range: count.clone() };
                let size = self.size_of(&self.in_scope(element, &moved), memory.call.file)?;
                (self.value_of_text(self.program.slice(&place), &moved)?.as_integer().checked_mul(size)?, false)
            }
            MemoryBytes::Of(name) => {
                let found = self.bytes_named(name, last_name(name), &moved)?;
                (found.bytes, found.is_guess)
            }
            MemoryBytes::Copied(number) => (argument(*number)?, true),
        };
        (bytes > 0).then_some(BufferBytes { bytes, is_guess })
    }

    /// A template argument as a comment has it: a type, or a number.
    pub(super) fn template_text(&self, argument: &str, scope: &Scope) -> Option<String> {
        let replaced = self.in_scope(argument, scope);
        if self.is_open(&replaced, scope) {
            return None;
        }
        let resolved = self.program.resolved_type(scope.file, &replaced, &[]);
        let is_type = !matches!(Type::parse_type(&resolved), Type::Other(_)) || Type::element(&resolved).is_some();
        if is_type || matches!(resolved.as_str(), "true" | "false") {
            return Some(resolved.trim().to_owned());
        }
        let name = replaced.trim();
        if self.program.structure(scope.file, name).is_some() || name.contains("::") {
            return Some(name.to_owned());
        }
        self.value_of_text(&replaced, scope).map(|value| value.as_integer().to_string())
    }

    /// The type of an argument that is a variable or a cast, for a template whose arguments follow
    /// from it.
    pub(super) fn type_of_argument(&self, node: Node<'_>, text: &str, scope: &Scope) -> Option<String> {
        self.step()?;
        let field = |name: &str| node.child_by_field_name(name);
        match node.kind() {
            "cast_expression" => self.closed_type(&text[field("type")?.byte_range()], scope),
            "call_expression" if called_name(field("function")?, text).ends_with("_cast") => {
                let (_, kind) = text[field("function")?.byte_range()].split_once('<')?;
                self.closed_type(kind.trim_end().strip_suffix('>')?, scope)
            }
            "parenthesized_expression" => self.type_of_argument(node.named_child(0)?, text, scope),
            // `x + offset`
            "binary_expression" => {
                let of_side = |name: &str| self.type_of_argument(field(name)?, text, scope);
                of_side("left").filter(|kind| kind.contains('*')).or_else(|| of_side("right"))
            }
            _ => self.type_of_variable(last_name(text[node.byte_range()].trim()), scope),
        }
    }

    fn type_of_variable(&self, name: &str, scope: &Scope) -> Option<String> {
        let kind = self.declared_type(name, scope)?;
        self.closed_type(&kind, scope).or_else(|| {
            // The template around it is called with the type.
            self.of_parameter(name, scope, &|place, scope| {
                let text = &self.program.files.get(place.file)?.text;
                self.type_of_argument(self.program.node(place)?, text, scope)
            })
        })
    }

    /// A type without `const` and names that stand for others; `None` if it depends on a parameter
    /// of the template around it that no text tells.
    fn closed_type(&self, kind: &str, scope: &Scope) -> Option<String> {
        let kind = self.in_scope(kind, scope);
        if self.is_open(&kind, scope) {
            return None;
        }
        let kind = words(&kind, |word| (word == "const").then(String::new));
        Some(self.program.resolved_type(scope.file, &kind, &[]))
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
    use crate::cuda::{ANY_COUNT, HostProgram, ParameterKind};

    /// Bytes of the buffer that a program launches `k(float *x)` with.
    fn bytes(text: &str) -> Option<i64> {
        let program = HostProgram::new(&[("a.cu".to_owned(), text.to_owned())], &[], &[]);
        let launch = program.evaluated_launches("k", &ANY_COUNT, &[ParameterKind::Pointer], 1024).swap_remove(0);
        launch.arguments[0].buffer.map(|buffer| buffer.bytes)
    }

    #[test]
    fn memory_of_variables_of_other_functions_does_not_count() {
        for text in [
            "void run(float *x) { k<<<4, 256>>>(x); }\nvoid other() { float *x; cudaMalloc(&x, 4000); }",
            "float *x; void run() { k<<<4, 256>>>(x); }\nvoid other() { float *x; cudaMalloc(&x, 4000); }",
            "struct T { float *d; }; void run(T *t) { k<<<4, 256>>>(t->d); }\n\
             void other(T *t) { cudaMalloc(&t->d, 4000); }",
            "struct T { float *d; }; void run(T *t) { k<<<4, 256>>>((float *)t->d); }\n\
             void other(T *t, void *to, size_t size) { cudaMemcpy(to, t->d, size, cudaMemcpyDeviceToDevice); }",
        ] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn memory_that_counts_is_that_of_the_object() {
        for text in [
            "float *x; void make() { cudaMalloc(&x, 4000); }\nvoid run() { k<<<4, 256>>>(x); }",
            "struct T { float *d; }; int main() { T a, b; cudaMalloc(&a.d, 64); cudaMalloc((void **)&b.d, 4000); k<<<4, 256>>>(b.d); }",
            "struct T { float *d; void make() { cudaMalloc(&d, 4000); } void run() { k<<<4, 256>>>(d); } };",
            "struct T { float *d; void run() { k<<<4, 256>>>(this->d); } };\nint main() { T t; cudaMalloc(&t.d, 4000); t.run(); }",
            "struct T { float *d; }; void run(T *t) { k<<<4, 256>>>(t->d); }\n\
             int main() { T a, t; cudaMalloc(&t.d, 64); cudaMalloc(&a.d, 4000); run(&a); }",
        ] {
            assert_eq!(bytes(text), Some(4000), "{text}");
        }
    }
}
