//! The syntax tree of a file -> what it defines, declares, allocates, calls and launches, in the
//! tables of a [`HostProgram`].

use super::host_nodes::{LONGEST, arguments, called_name, declared, is_scope, last_name, type_text, without_address};
use super::host_program::{
    Declaration, Definition, FilePlace, HostProgram, Memory, MemoryBytes, Structure, StructureField, launched_name,
};
use std::collections::HashMap;
use std::ops::Range;
use tree_sitter::Node;

/// Functions that allocate: which argument is given the address, and which are multiplied.
const ALLOCATIONS: [(&str, usize, &[usize]); 10] = [
    ("cudaMalloc", 0, &[1]),
    ("cudaMallocManaged", 0, &[1]),
    ("cudaMallocAsync", 0, &[1]),
    ("cudaMallocFromPoolAsync", 0, &[1]),
    ("cudaMallocHost", 0, &[1]),
    ("cudaHostAlloc", 0, &[1]),
    ("cudaHostRegister", 0, &[1]),
    ("cudaMallocPitch", 0, &[2, 3]),
    ("cuMemAlloc", 0, &[1]),
    ("cudaMallocArray", 0, &[2, 3]),
];

/// Functions that return memory: which arguments are multiplied.
const ALLOCATORS: [(&str, &[usize]); 2] = [("malloc", &[0]), ("calloc", &[0, 1])];

/// Copies: the arguments that are addresses, and the size.
const COPIES: [(&str, [usize; 2], usize); 4] = [
    ("cudaMemcpy", [0, 1], 2),
    ("cudaMemcpyAsync", [0, 1], 2),
    ("cudaMemset", [0, 0], 2),
    ("cudaMemsetAsync", [0, 0], 2),
];

/// Collects what one file has.
pub(super) struct Indexer<'p> {
    program: &'p mut HostProgram,
    file: usize,
    /// What is around the node that is visited, outermost first: bytes in which declared names are
    /// known, and functions.
    scopes: Vec<Range<usize>>,
    functions: Vec<Range<usize>>,
    branches: Vec<Range<usize>>,
    /// What `for` does between its turns, with the end of the statement.
    updates: Vec<(Range<usize>, usize)>,
}

/// Names of the nodes that run or do not, or several times.
const BRANCHES: [&str; 3] = ["consequence", "alternative", "body"];

/// Functions of the runtime that write numbers where an address points.
const WRITERS: [&str; 4] = ["cudaOccupancy", "cudaGet", "cudaDeviceGet", "cuDeviceGet"];

impl<'p> Indexer<'p> {
    pub fn new(program: &'p mut HostProgram, file: usize) -> Self {
        let (scopes, functions, branches, updates) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { program, file, scopes, functions, branches, updates }
    }

    /// Visits all nodes of the file.
    pub fn index(&mut self) {
        let tree = self.program.files[self.file].tree.clone();
        let text = std::mem::take(&mut self.program.files[self.file].text);
        let mut cursor = tree.walk();
        'visit: loop {
            let node = cursor.node();
            let start = node.start_byte();
            let is_over = |bytes: &mut Range<usize>| bytes.end <= start;
            while self.scopes.pop_if(is_over).is_some() {}
            while self.functions.pop_if(is_over).is_some() {}
            while self.branches.pop_if(is_over).is_some() {}
            while self.updates.pop_if(|(bytes, _)| bytes.end <= start).is_some() {}
            match cursor.field_name() {
                Some(name) if BRANCHES.contains(&name) => self.branches.push(node.byte_range()),
                Some("update") => {
                    self.updates.extend(node.parent().map(|around| (node.byte_range(), around.end_byte())));
                }
                _ if node.kind() == "case_statement" => self.branches.push(node.byte_range()),
                _ => {}
            }
            self.visit(&text, node);
            if is_scope(node) {
                self.scopes.push(node.byte_range());
            }
            if node.kind() == "function_definition" {
                self.functions.push(node.byte_range());
                self.program.function_bytes[self.file].push(node.byte_range());
            }
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    break 'visit;
                }
            }
        }
        self.program.files[self.file].text = text;
    }

    fn visit(&mut self, text: &str, node: Node<'_>) {
        let slice = |node: Node<'_>| &text[node.byte_range()];
        match node.kind() {
            "init_declarator" => {
                let parts = node.child_by_field_name("declarator").zip(node.child_by_field_name("value"));
                if let Some((declarator, value)) = parts {
                    let name = declared(declarator, text);
                    self.define(name, name, value, Some(self.scope()));
                    self.memory_of_value(text, name, value, node);
                }
            }
            "assignment_expression" => {
                let parts = node.child_by_field_name("left").zip(node.child_by_field_name("right"));
                let is_plain = node.child_by_field_name("operator").is_none_or(|operator| slice(operator) == "=");
                match parts {
                    Some((left, right)) if is_plain => {
                        self.define(last_name(slice(left)), slice(left), right, None);
                        self.memory_of_value(text, slice(left), right, node);
                    }
                    Some((left, _)) => self.change(slice(left), node),
                    None => {}
                }
            }
            "update_expression" => {
                if let Some(target) = node.child_by_field_name("argument") {
                    self.change(slice(target), node);
                }
            }
            "binary_expression" => {
                let parts = node.child_by_field_name("left").zip(node.child_by_field_name("right"));
                if let Some((_, target)) = parts.filter(|(left, _)| is_input(*left, text)) {
                    self.change(slice(target), node);
                }
            }
            "field_initializer" => {
                let mut cursor = node.walk();
                let parts: Vec<Node<'_>> = node.named_children(&mut cursor).collect();
                if let [name, value] = parts[..] {
                    self.define(slice(name), slice(name), value, None);
                }
            }
            "enum_specifier" => {
                if let Some(name) = node.child_by_field_name("name").filter(|_| is_defined_here(node)) {
                    let kept_in = node.child_by_field_name("base").map_or("int", slice);
                    self.program.enumerations.insert(slice(name).to_owned(), kept_in.to_owned());
                }
            }
            "enumerator" => {
                let parts = node.child_by_field_name("name").zip(node.child_by_field_name("value"));
                if let Some((name, value)) = parts {
                    self.define(slice(name), slice(name), value, Some(self.scope()));
                }
            }
            "declaration" | "parameter_declaration" | "optional_parameter_declaration" | "field_declaration" => {
                self.declare(text, node);
            }
            "function_definition" => {
                let name = node.child_by_field_name("declarator").map(|declarator| declared(declarator, text));
                self.insert(name.unwrap_or(""), node, |program| &mut program.functions);
            }
            "type_definition" => self.type_definition(text, node),
            "alias_declaration" => self.alias_declaration(text, node),
            kind if is_structure(kind) => {
                let name = node.child_by_field_name("name").map_or("", slice);
                self.structure(text, node, name);
            }
            "call_expression" => self.call(text, node),
            _ => {}
        }
    }

    fn insert(
        &mut self,
        name: &str,
        node: Node<'_>,
        table: impl Fn(&mut HostProgram) -> &mut HashMap<String, Vec<FilePlace>>,
    ) {
        let place = self.place(node);
        table(self.program).entry(name.to_owned()).or_default().push(place);
    }

    fn place(&self, node: Node<'_>) -> FilePlace {
        FilePlace { file: self.file, range: node.byte_range() }
    }

    /// The bytes in which what is declared here is known.
    fn scope(&self) -> Range<usize> {
        self.scopes.last().cloned().unwrap_or(0..0)
    }

    fn function(&self) -> Option<usize> {
        self.functions.last().map(|bytes| bytes.start)
    }

    fn define(&mut self, name: &str, target: &str, value: Node<'_>, scope: Option<Range<usize>>) {
        if target.len() > LONGEST {
            return;
        }
        let definition = Definition {
            value: self.place(value),
            is_whole: true,
            at: self.updates.last().map_or(value.start_byte(), |(_, end)| *end),
            branch: self.branches.last().cloned(),
            target: target.split_whitespace().collect(),
            scope,
            function: self.function(),
        };
        self.program.definitions.entry(name.to_owned()).or_default().push(definition);
    }

    /// Notes that a variable gets a value that its text does not tell.
    fn change(&mut self, target: &str, node: Node<'_>) {
        let name = last_name(target);
        self.define(name, target, node, None);
        let last = self.program.definitions.get_mut(name).and_then(|definitions| definitions.last_mut());
        if let Some(definition) = last.filter(|definition| definition.value.range == node.byte_range()) {
            definition.is_whole = false;
        }
    }

    /// Notes the names that a declaration declares with their types.
    fn declare(&mut self, text: &str, node: Node<'_>) {
        let Some(kind) = node.child_by_field_name("type") else { return };
        let mut cursor = node.walk();
        let declarators: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut cursor).collect();
        for declarator in declarators {
            let name = declared(declarator, text).to_owned();
            let head = &text[declarator.start_byte()..];
            let name_at = head.find(name.as_str()).unwrap_or(0);
            let stars = "*".repeat(head[..name_at].matches('*').count());
            let own = Declaration {
                file: self.file,
                scope: self.scope(),
                kind: format!("{} {stars}", type_text(kind, text)),
            };
            self.program.declarations.entry(name.clone()).or_default().push(own);
            // `dim3 grid(w, h)` is a function by the grammar.
            if declarator.kind() == "function_declarator"
                && node.kind() == "declaration"
                && let Some(parameters) = declarator.child_by_field_name("parameters")
            {
                self.define(&name, &name, parameters, Some(self.scope()));
            }
            // `thrust::device_vector<float> x(n)`
            let kind = type_text(kind, text).trim();
            if let Some(element) = kind.split_once("_vector<").and_then(|(_, rest)| rest.strip_suffix('>')) {
                let value = declarator.child_by_field_name("value").or(declarator.child_by_field_name("parameters"));
                let count = value.and_then(|value| value.named_child(0)).map(|count| count.byte_range());
                self.allocate(&name, node, count.map(|count| elements(count, element)));
            }
        }
    }

    /// Notes the names that a `typedef` declares. The first that stands for the type itself is the
    /// name of a structure without one.
    fn type_definition(&mut self, text: &str, node: Node<'_>) {
        let Some(kind) = node.child_by_field_name("type") else { return };
        let mut cursor = node.walk();
        let declarators: Vec<Node<'_>> = node.children_by_field_name("declarator", &mut cursor).collect();
        let plain = declarators.iter().find(|declarator| declarator.kind() == "type_identifier");
        let plain = plain.map(|declarator| &text[declarator.byte_range()]);
        let named = kind.child_by_field_name("name").map(|name| &text[name.byte_range()]);
        let unnamed = if is_defined_here(kind) { plain } else { Some(type_text(kind, text)) };
        if let Some(target) = named.or(unnamed) {
            for declarator in declarators {
                let name = declared(declarator, text);
                if name != target {
                    self.program.aliases.insert(name.to_owned(), declared_kind(target, declarator, text));
                }
            }
        }
        self.structure(text, kind, plain.unwrap_or(""));
    }

    /// Notes the name that a `using` declares.
    fn alias_declaration(&mut self, text: &str, node: Node<'_>) {
        let Some((name, kind)) = node.child_by_field_name("name").zip(node.child_by_field_name("type")) else {
            return;
        };
        let name = &text[name.byte_range()];
        let whole = text[kind.byte_range()].to_owned();
        let defined = kind.child_by_field_name("type").filter(|kind| is_defined_here(*kind));
        let target = match defined {
            None => Some(whole),
            // `struct Tag {...} *`
            Some(defined) => defined
                .child_by_field_name("name")
                .map(|tag| format!("{} {}", &text[tag.byte_range()], &text[defined.end_byte()..kind.end_byte()])),
        };
        if let Some(target) = target {
            self.program.aliases.insert(name.to_owned(), target);
        }
        if let Some(defined) = defined.filter(|_| kind.child_by_field_name("declarator").is_none()) {
            self.structure(text, defined, name);
        }
    }

    /// Notes the fields of a structure.
    fn structure(&mut self, text: &str, node: Node<'_>, name: &str) {
        let Some(body) = node.child_by_field_name("body").filter(|_| !name.is_empty() && is_structure(node.kind()))
        else {
            return;
        };
        let mut fields = Vec::new();
        let mut cursor = body.walk();
        let mut is_public = node.kind() != "class_specifier";
        let mut is_plain = !has_child(node, &MOVES_FIELDS);
        for field in body.named_children(&mut cursor) {
            is_plain &= !has_child(field, &MOVES_FIELDS);
            match field.kind() {
                "access_specifier" => is_public = text[field.byte_range()].starts_with("public"),
                "field_declaration" => {}
                // Directives, and what the parser does not understand.
                kind => {
                    is_plain &= !kind.starts_with("preproc") && !field.is_error();
                    continue;
                }
            }
            let Some(kind) = field.child_by_field_name("type") else { continue };
            let mut inner = field.walk();
            let declarators: Vec<_> = field.children_by_field_name("declarator", &mut inner).collect();
            // Fields of a structure or a union without a name are this one's own.
            is_plain &= !declarators.is_empty() || !is_structure(kind.kind());
            for declarator in
                declarators.into_iter().filter(|declarator| !is_function(*declarator) && !is_static(field))
            {
                is_plain &= declarator.kind() != "reference_declarator";
                let own = declared(declarator, text);
                let kind = declared_kind(type_text(kind, text), declarator, text);
                fields.push(StructureField { name: own.to_owned(), kind, is_public });
            }
        }
        let around = std::iter::successors(node.parent(), Node::parent);
        let classes = around.filter(|outer| is_structure(outer.kind()));
        let names = classes.filter_map(|class| class.child_by_field_name("name")).map(|name| &text[name.byte_range()]);
        let mut names: Vec<&str> = std::iter::once(name).chain(names).collect();
        names.reverse();
        let is_union = node.kind() == "union_specifier";
        let (file, name_in_classes, is_local) = (self.file, names.join("::"), self.function().is_some());
        let structure = Structure { file, name: name_in_classes, fields, is_local, is_union, is_plain };
        self.program.structures.entry(name.to_owned()).or_default().push(structure);
    }

    fn allocate(&mut self, target: &str, call: Node<'_>, bytes: Option<MemoryBytes>) {
        let name = last_name(target);
        let Some(bytes) = bytes.filter(|_| !name.is_empty() && target.len() <= LONGEST) else { return };
        let target = target.split_whitespace().collect();
        let memory = Memory { call: self.place(call), target, bytes, function: self.function() };
        self.program.memory.entry(name.to_owned()).or_default().push(memory);
    }

    /// Notes the memory that a value brings: `malloc(n)`, `new float[n]`.
    fn memory_of_value(&mut self, text: &str, target: &str, value: Node<'_>, around: Node<'_>) {
        let mut value = value;
        while let Some(inner) = value.child_by_field_name("value").filter(|_| value.kind() == "cast_expression") {
            value = inner;
        }
        if value.kind() == "new_expression"
            && let Some((kind, length)) = value.child_by_field_name("type").zip(value.child_by_field_name("declarator"))
            && let Some(count) = length.child_by_field_name("length")
        {
            self.allocate(target, around, Some(elements(count.byte_range(), &text[kind.byte_range()])));
        }
        let function = value.child_by_field_name("function").map(|function| &text[function.byte_range()]);
        if let Some((_, sizes)) = ALLOCATORS.iter().find(|(known, _)| Some(*known) == function) {
            self.allocate(target, value, Some(MemoryBytes::Arguments(sizes.to_vec())));
        }
    }

    /// Notes a call: a launch, an allocation, a copy, or one of the program's own functions.
    fn call(&mut self, text: &str, node: Node<'_>) {
        let Some(function) = node.child_by_field_name("function") else { return };
        let name = called_name(function, text);
        let mut cursor = node.walk();
        if node.children(&mut cursor).any(|child| child.kind() == "kernel_call_syntax") {
            return self.insert(name, node, |program| &mut program.launches);
        }
        self.insert(name, node, |program| &mut program.calls);
        let arguments: Vec<Node<'_>> = arguments(node);
        let slice = |at: usize| arguments.get(at).map_or("", |node: &Node<'_>| &text[node.byte_range()]);
        let variable =
            |at: usize| arguments.get(at).map_or("", |node| &text[without_address(*node, text).byte_range()]);
        if !is_of_runtime(name) || WRITERS.iter().any(|known| name.starts_with(known)) {
            for argument in &arguments {
                let target =
                    argument.child_by_field_name("argument").filter(|_| argument.kind() == "pointer_expression");
                if let Some(target) = target.filter(|_| text[argument.byte_range()].starts_with('&')) {
                    self.change(&text[target.byte_range()], node);
                }
            }
        }
        if let Some((_, address, sizes)) = ALLOCATIONS.iter().find(|(known, _, _)| *known == name) {
            self.allocate(variable(*address), node, Some(MemoryBytes::Arguments(sizes.to_vec())));
        }
        if let Some((_, addresses, size)) = COPIES.iter().find(|(known, _, _)| *known == name) {
            for address in addresses {
                self.allocate(variable(*address), node, Some(MemoryBytes::Copied(*size)));
            }
        }
        if matches!(name, "cudaHostGetDevicePointer" | "cudaGetSymbolAddress") {
            let other = variable(1).split_whitespace().collect();
            self.allocate(variable(0), node, Some(MemoryBytes::Of(other)));
        }
        if name.starts_with("cudaLaunch") {
            // A configuration stands before the kernel.
            let kernel = slice(usize::from(name.starts_with("cudaLaunchKernelEx")));
            self.insert(launched_name(kernel), node, |program| &mut program.launches);
        }
    }
}

/// Whether nodes of this kind are structures or unions.
fn is_structure(kind: &str) -> bool {
    matches!(kind, "struct_specifier" | "class_specifier" | "union_specifier")
}

/// Syntax that changes the offsets of fields.
const MOVES_FIELDS: [&str; 5] =
    ["base_class_clause", "virtual", "bitfield_clause", "alignas_qualifier", "attribute_specifier"];

/// Whether a declarator declares a function, which may return a pointer or a reference.
fn is_function(declarator: Node<'_>) -> bool {
    match declarator.kind() {
        "function_declarator" | "operator_cast" => true,
        "pointer_declarator" | "reference_declarator" => {
            declarator.named_children(&mut declarator.walk()).any(is_function)
        }
        _ => false,
    }
}

/// Whether a node has a child of one of these kinds.
fn has_child(node: Node<'_>, kinds: &[&str]) -> bool {
    node.children(&mut node.walk()).any(|child| kinds.contains(&child.kind()))
}

/// Whether a type is defined where it is named.
fn is_defined_here(kind: Node<'_>) -> bool {
    kind.child_by_field_name("body").is_some()
}

/// The type that a declarator gives its name: `float *[4]` for `*rows[4]`. That of functions is not
/// spelled out, but is no pointer to numbers.
fn declared_kind(kind: &str, declarator: Node<'_>, text: &str) -> String {
    let whole = &text[declarator.byte_range()];
    if whole.contains('(') {
        return format!("{kind} (*)()");
    }
    let extents = whole.find('[').map_or("", |at| &whole[at..]);
    let stars = "*".repeat(whole.matches('*').count());
    format!("{kind} {stars}{extents}")
}

/// Whether a function is one of the runtime or the driver, by its name.
fn is_of_runtime(name: &str) -> bool {
    name.starts_with("cuda")
        || name.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// Whether an operand is the standard input, or what `std::cin >> m` returns.
fn is_input(operand: Node<'_>, text: &str) -> bool {
    let mut first = operand;
    while let Some(left) = first.child_by_field_name("left").filter(|_| first.kind() == "binary_expression") {
        first = left;
    }
    matches!(&text[first.byte_range()], "cin" | "std::cin")
}

/// Whether a field belongs to no object.
fn is_static(field: Node<'_>) -> bool {
    let mut cursor = field.walk();
    field.children(&mut cursor).any(|child| child.kind() == "storage_class_specifier")
}

fn elements(count: Range<usize>, element: &str) -> MemoryBytes {
    MemoryBytes::Elements { count, element: element.to_owned() }
}
