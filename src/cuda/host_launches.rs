//! Source texts -> the launches that they write, by tree-sitter's CUDA grammar.
//!
//! Text in, facts for advice out; no launch depends on them. What the grammar does not
//! understand, and what may be another value in another build, is unknown.

use super::host_nodes::launch_shape;
use super::host_syntax::{braced_extents, parse_host_code};
use super::integer_literal::integer;
use crate::diag::{Source, Span};
use crate::launch::Dim3;
use std::sync::Arc;
use tree_sitter::{Node, Tree};

/// How deep names may refer to other names in the value of an extent.
const DEEPEST: u32 = 8;

/// Functions of the runtime that launch a kernel without its launch stub, also where nvtune wrote
/// that.
const WITHOUT_STUB: [&str; 6] = [
    "cudaLaunchCooperativeKernel",
    "cudaLaunchCooperativeKernelMultiDevice",
    "cudaGraphAddKernelNode",
    "cudaGraphAddNode",
    "cudaGraphKernelNodeSetParams",
    "cudaGraphExecKernelNodeSetParams",
];

/// The code of a source and of what it includes with quotes.
#[derive(Clone, Debug, Default)]
pub struct HostCode {
    files: Vec<(Arc<Source>, Tree)>,
}

/// One of the texts and the root of its syntax tree.
#[derive(Clone, Copy)]
struct Parsed<'t> {
    source: &'t Source,
    root: Node<'t>,
}

/// A launch in host code.
#[derive(Clone, Debug)]
pub struct HostLaunch {
    pub source: Arc<Source>,
    /// The kernel's name in it.
    pub span: Span,
    /// `None` where the text does not tell.
    pub block: Option<Dim3>,
}

impl HostCode {
    /// Parses the texts.
    pub fn new(sources: impl IntoIterator<Item = Arc<Source>>) -> Self {
        let parse = |source: Arc<Source>| {
            let tree = parse_host_code(&source.text)?;
            Some((source, tree))
        };
        Self { files: sources.into_iter().filter_map(parse).collect() }
    }

    /// Finds the `<<<>>>` launches of a kernel in host code, in the order of the text.
    pub fn launches_of(&self, kernel: &str) -> Vec<HostLaunch> {
        let mut launches = Vec::new();
        for (source, tree) in &self.files {
            let root = tree.root_node();
            visit_nodes(root, &mut |node| {
                let Some((name, block)) = launch_parts(node) else { return };
                if node_text(source, name) != kernel || ancestors(root, node).any(is_device_function(source)) {
                    return;
                }
                let block = if ancestors(root, node).any(|outer| outer.is_error()) {
                    None
                } else {
                    self.block_of(Parsed { source, root }, block, DEEPEST)
                };
                launches.push(HostLaunch { source: Arc::clone(source), span: node_span(name), block });
            });
        }
        launches
    }

    /// Finds a place where a kernel is launched, or made a node of a graph, without its stub.
    pub fn without_stub(&self, kernel: &str) -> Option<(Arc<Source>, Span)> {
        let mut place = None;
        for (source, tree) in &self.files {
            visit_nodes(tree.root_node(), &mut |node| {
                let Some(function) = node.child_by_field_name("function").filter(|_| node.kind() == "call_expression")
                else {
                    return;
                };
                if place.is_none()
                    && WITHOUT_STUB.contains(&node_text(source, function))
                    && mentions_name(source, node, kernel)
                {
                    place = Some((Arc::clone(source), node_span(function)));
                }
            });
        }
        place
    }

    /// Tells whether code or a directive has this name, outside comments.
    pub fn has_name(&self, name: &str) -> bool {
        self.files.iter().any(|(source, tree)| mentions_name(source, tree.root_node(), name))
    }

    /// Returns the extents of a block given as a number or a `dim3`.
    fn block_of(&self, code: Parsed<'_>, node: Node<'_>, depth: u32) -> Option<Dim3> {
        if let Some(given) = braced_extents(&code.source.text, node) {
            return self.extents_of(code, &given);
        }
        let arguments = match node.kind() {
            "call_expression"
                if node.child_by_field_name("function").is_some_and(|name| node_text(code.source, name) == "dim3") =>
            {
                node.child_by_field_name("arguments")?
            }
            "compound_literal_expression" if node_text(code.source, node).starts_with("dim3") => {
                node.child_by_field_name("value")?
            }
            "argument_list" | "initializer_list" => node,
            "identifier" if depth > 0 && self.definition_of(code, node).is_some() => {
                let value = self.definition_of(code, node)?;
                return self.block_of(code, value, depth - 1);
            }
            _ => return Some([self.constant_value(code, node, DEEPEST)?, 1, 1]),
        };
        let mut cursor = arguments.walk();
        let given: Vec<Node<'_>> = arguments.named_children(&mut cursor).collect();
        self.extents_of(code, &given)
    }

    /// Returns the extents that are given one by one.
    fn extents_of(&self, code: Parsed<'_>, given: &[Node<'_>]) -> Option<Dim3> {
        if given.is_empty() || given.len() > 3 {
            return None;
        }
        let mut extents = [1; 3];
        for (extent, argument) in extents.iter_mut().zip(given) {
            *extent = self.constant_value(code, *argument, DEEPEST)?;
        }
        Some(extents)
    }

    /// Returns the value of a constant expression.
    fn constant_value(&self, code: Parsed<'_>, node: Node<'_>, depth: u32) -> Option<u32> {
        let part = |field: &str| self.constant_value(code, node.child_by_field_name(field)?, depth.checked_sub(1)?);
        match node.kind() {
            "number_literal" => extent(node_text(code.source, node)),
            "parenthesized_expression" | "initializer_list" if node.named_child_count() == 1 => {
                self.constant_value(code, node.named_child(0)?, depth.checked_sub(1)?)
            }
            "binary_expression" => match node_text(code.source, node.child_by_field_name("operator")?) {
                "*" => part("left")?.checked_mul(part("right")?),
                "+" => part("left")?.checked_add(part("right")?),
                "-" => part("left")?.checked_sub(part("right")?),
                "/" => part("left")?.checked_div(part("right")?),
                _ => None,
            },
            "identifier" => match self.definition_of(code, node) {
                Some(value) => self.constant_value(code, value, depth.checked_sub(1)?),
                None => self.macro_value(node_text(code.source, node)),
            },
            _ => None,
        }
    }

    /// Returns the one initial value of a name that is in scope at `place` and that nothing
    /// changes.
    fn definition_of<'t>(&self, Parsed { source, root }: Parsed<'t>, place: Node<'t>) -> Option<Node<'t>> {
        let name = node_text(source, place);
        let (mut values, mut is_changed) = (Vec::new(), false);
        visit_nodes(root, &mut |node| match node.kind() {
            "init_declarator"
                if node.child_by_field_name("declarator").is_some_and(|of| node_text(source, of) == name) =>
            {
                values.extend(node.child_by_field_name("value").map(|value| (node, value)));
            }
            "parameter_declaration" | "declaration" => {
                is_changed |= node.child_by_field_name("declarator").is_some_and(|of| node_text(source, of) == name);
            }
            "assignment_expression" => {
                is_changed |= node.child_by_field_name("left").is_some_and(|left| mentions_name(source, left, name));
            }
            "update_expression" | "pointer_expression" => {
                is_changed |= node.child_by_field_name("argument").is_some_and(|of| node_text(source, of) == name);
            }
            _ => {}
        });
        let [(declarator, value)] = values.as_slice() else { return None };
        let is_scope = |outer: &Node<'_>| {
            matches!(outer.kind(), "compound_statement" | "translation_unit" | "namespace_definition")
        };
        let scope = ancestors(root, *declarator).filter(is_scope).last()?;
        let is_in_scope = scope.start_byte() <= place.start_byte() && place.end_byte() <= scope.end_byte();
        let is_of_itself = declarator.start_byte() <= place.start_byte() && place.end_byte() <= declarator.end_byte();
        (is_in_scope && !is_changed && !is_of_itself).then_some(*value)
    }

    /// Returns the number that a macro stands for, where it is defined once and no option may
    /// define it otherwise.
    fn macro_value(&self, name: &str) -> Option<u32> {
        let mut values = Vec::new();
        for (source, tree) in &self.files {
            let root = tree.root_node();
            visit_nodes(root, &mut |node| {
                if node.kind() == "preproc_def"
                    && node.child_by_field_name("name").is_some_and(|of| node_text(source, of) == name)
                {
                    let is_conditional = ancestors(root, node).any(|outer| outer.kind().starts_with("preproc_if"));
                    let value = node.child_by_field_name("value").map(|value| node_text(source, value));
                    let value = value.map(|value| value.split("//").next().unwrap_or(value).trim());
                    let value = value.map(|value| value.trim_start_matches('(').trim_end_matches(')'));
                    values.push(value.filter(|_| !is_conditional).and_then(extent));
                }
            });
        }
        match values.as_slice() {
            [value] => *value,
            _ => None,
        }
    }
}

/// Returns the kernel's name and the block of a `<<<>>>` launch.
fn launch_parts(node: Node<'_>) -> Option<(Node<'_>, Node<'_>)> {
    let shape = launch_shape(node)?;
    let mut name = node.child_by_field_name("function")?;
    while let Some(inner) = name.child_by_field_name("name").or_else(|| name.child_by_field_name("field")) {
        name = inner;
    }
    Some((name, shape.named_child(1)?))
}

/// Visits a node and all below it, in the order of the text.
fn visit_nodes<'t>(root: Node<'t>, action: &mut impl FnMut(Node<'t>)) {
    let mut cursor = root.walk();
    loop {
        action(cursor.node());
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

/// Returns the nodes around one, from the root inwards: each step outwards, by
/// [`Node::parent`], would begin at the root.
fn ancestors<'t>(root: Node<'t>, node: Node<'t>) -> impl Iterator<Item = Node<'t>> {
    let inner = move |outer: &Node<'t>| outer.child_with_descendant(node);
    std::iter::successors(Some(root), inner).take_while(move |outer| outer.id() != node.id())
}

/// Tells of a node whether it defines a function that runs on the device alone.
fn is_device_function(source: &Source) -> impl Fn(Node<'_>) -> bool + '_ {
    |node| {
        let body = node.child_by_field_name("body").filter(|_| node.kind() == "function_definition");
        body.is_some_and(|body| {
            let head = &source.text[node.start_byte()..body.start_byte()];
            head.contains("__global__") || head.contains("__device__") && !head.contains("__host__")
        })
    }
}

/// Tells whether a name stands in a node, outside comments.
fn mentions_name(source: &Source, root: Node<'_>, name: &str) -> bool {
    let mut found = false;
    visit_nodes(root, &mut |node| {
        if !found && node.child_count() == 0 && node.kind() != "comment" {
            let mut words = node_text(source, node).split(|c: char| !(c.is_alphanumeric() || c == '_'));
            found = words.any(|word| word == name);
        }
    });
    found
}

fn node_text<'s>(source: &'s Source, node: Node<'_>) -> &'s str {
    &source.text[node.byte_range()]
}

fn node_span(node: Node<'_>) -> Span {
    Span { start: node.start_byte(), end: node.end_byte() }
}

/// Reads a literal that is an extent.
fn extent(text: &str) -> Option<u32> {
    u32::try_from(integer(text)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> HostCode {
        let text = format!("__global__ void k(float *x) {{ x[0] = 1; }}\n{text}\n");
        HostCode::new([Arc::new(Source::new("a.cu", text.as_bytes()))])
    }

    fn blocks(text: &str) -> Vec<Option<Dim3>> {
        code(text).launches_of("k").into_iter().map(|launch| launch.block).collect()
    }

    #[test]
    fn block_is_known_where_the_text_leaves_no_doubt() {
        for (text, expected) in [
            ("void f() { k<<<(n + 255) / 256, 256>>>(x); }", [256, 1, 1]),
            ("void f() { k<float, 2><<<dim3(n / 16, n / 16), dim3(16, 16), 0, s>>>(x); }", [16, 16, 1]),
            ("void f() { ns::k<<<grid(n, 3), dim3{8u, 4, 2}>>>(x); }", [8, 4, 2]),
            ("void f() { k<<<{n, 3}, {8u, 4, 2}>>>(x); }", [8, 4, 2]),
            ("void f() { const dim3 b(16, 4, 4); k<<<dim3(n / b.x), b>>>(x); }", [16, 4, 4]),
            ("void f() { dim3 b = dim3(32, 8); k<<<g, b>>>(x); }", [32, 8, 1]),
            ("constexpr int W = 4;\nvoid f() { int b = W * 32; k<<<g, b>>>(x); }", [128, 1, 1]),
            ("#define BLOCK (192) // threads\nvoid f() { k<<<g, BLOCK>>>(x); }", [192, 1, 1]),
            ("#define S 8\nvoid f() { k<<<g, dim3(S, S)>>>(x); }", [8, 8, 1]),
        ] {
            assert_eq!(blocks(text), [Some(expected)], "{text}");
        }
    }

    #[test]
    fn block_that_may_be_another_is_unknown() {
        for text in [
            "void f(dim3 g, dim3 b) { k<<<g, b>>>(x); }",
            "void f(const dim3 &b, int n) { k<<<n, b>>>(x); }",
            "#ifndef BLOCK\n#define BLOCK 192\n#endif\nvoid f() { k<<<g, BLOCK>>>(x); }",
            "void f() { dim3 b(16, 16); b.y = 4; k<<<g, b>>>(x); }",
            "void f() { for (int b = 64; b <= 1024; b *= 2) k<<<g, b>>>(x); }",
            "void f() { int b = 0; occupancy(&b); k<<<g, b>>>(x); }",
            "void f() { int b = n > 3 ? 64 : 128; k<<<g, b>>>(x); }",
            "void f() { int b = b; k<<<g, b>>>(x); }",
            "void f() { int b = 2 * b; k<<<g, dim3(b)>>>(x); }",
            "void h() { dim3 b(16, 16); }\nvoid f() { k<<<g, b>>>(x); }",
            "void f() { k<<<g, nvtune::k::block()>>>(x); }",
            "void f() { k<<<g, n / 4>>>(x); }",
        ] {
            assert_eq!(blocks(text), [None], "{text}");
        }
    }

    #[test]
    fn launches_of_other_kernels_and_of_device_code_do_not_count() {
        assert_eq!(blocks("void f() { k<<<1, 2>>>(x); j<<<1, 3>>>(x); k<<<1, 4>>>(x); }").len(), 2);
        assert_eq!(blocks("__global__ void parent() { k<<<1, 2>>>(x); }"), []);
    }

    #[test]
    fn launch_without_a_stub_is_found() {
        for (text, expected) in [
            ("void f() { cudaLaunchKernel((void *)k, g, b, args, 0, 0); }", None),
            ("void f() { cudaLaunchCooperativeKernel(k<3>, g, b, args, 0, 0); }", Some("cudaLaunchCooperativeKernel")),
            ("void f() { cudaLaunchCooperativeKernel((void *)j, g, b, args, 0, 0); }", None),
            ("void f() { k<<<1, 2>>>(x); }", None),
        ] {
            let found = code(text).without_stub("k").map(|(source, span)| source.slice(span).to_owned());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn names_count_outside_comments() {
        let code = code("#define A B\nint c = D; // E\n/* F */");
        assert_eq!(["A", "B", "D", "E", "F"].map(|name| code.has_name(name)), [true, true, true, false, false]);
    }
}
