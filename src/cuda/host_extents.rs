//! The grid or the block of a launch in host code -> its extents.

use super::host_evaluation::{Evaluation, Scope};
use super::host_nodes::last_name;
use super::host_number::Number;
use super::host_syntax::braced_extents;
use tree_sitter::{Node, Parser};

impl Evaluation<'_> {
    /// The extents of a grid or a block: a `dim3` or a number.
    pub(super) fn extents(&self, node: Node<'_>, text: &str, scope: &Scope) -> Option<[i64; 3]> {
        self.step()?;
        let scope = &scope.deeper()?;
        let all = |given: &[Node<'_>]| {
            let mut extents = [1; 3];
            if let [only] = given {
                return self.extents(*only, text, scope);
            }
            for (extent, argument) in extents.iter_mut().zip(given) {
                *extent = self.value(*argument, text, scope)?.as_integer();
            }
            (given.len() <= 3).then_some(extents)
        };
        if let Some(given) = braced_extents(text, node) {
            return all(&given);
        }
        let listed = |list: Node<'_>| {
            let mut cursor = list.walk();
            let given = list.named_children(&mut cursor).filter(|node| node.kind() != "comment");
            all(&given.collect::<Vec<_>>())
        };
        match node.kind() {
            "call_expression"
                if node
                    .child_by_field_name("function")
                    .is_some_and(|name| text[name.byte_range()].trim_start_matches("::") == "dim3") =>
            {
                listed(node.child_by_field_name("arguments")?)
            }
            "compound_literal_expression" => listed(node.child_by_field_name("value")?),
            "argument_list" | "initializer_list" => listed(node),
            "parenthesized_expression" => self.extents(node.named_child(0)?, text, scope),
            "identifier" | "field_expression" => {
                let name: String = text[node.byte_range()].split_whitespace().collect();
                match self.extents_named(&name, scope) {
                    Some(extents) => Some(extents),
                    None if self.is_vector(&name, scope) => None,
                    None => Some([self.value(node, text, scope)?.as_integer(), 1, 1]),
                }
            }
            _ => Some([self.value(node, text, scope)?.as_integer(), 1, 1]),
        }
    }

    /// Whether a variable has several extents.
    fn is_vector(&self, name: &str, scope: &Scope) -> bool {
        let kind = self.declared_type(name, scope).unwrap_or_default();
        is_of_configuration(name)
            || ["dim3", "uint3", "int3", "uint2", "int2"].contains(&kind.trim().trim_start_matches("const "))
    }

    /// The extents of a variable that is a `dim3`.
    pub(super) fn extents_named(&self, name: &str, scope: &Scope) -> Option<[i64; 3]> {
        self.step()?;
        let scope = &scope.deeper()?;
        let last = last_name(name);
        let kind = self.declared_type(name, scope).unwrap_or_default();
        let is_vector = self.is_vector(name, scope);
        let of_macro = || {
            let found = self.program.macro_of(scope.file, name).filter(|found| found.parameters.is_none())?;
            let body = found.body.trim_start_matches('(');
            body.starts_with("dim3").then(|| self.extents_of_text(&found.body, scope))?
        };
        if !is_vector && !kind.trim().starts_with("auto") && !name.contains(['.', '>']) {
            return of_macro();
        }
        let definitions = self.nearest(name, last, scope);
        let is_plain = definitions.is_empty() && self.parameter(name, scope).is_none();
        let from_definition = definitions.into_iter().find_map(|definition| {
            let place = &definition.value;
            let node = self.program.node(place)?;
            let moved = scope.moved(place)?;
            if node.kind() == "parameter_list" {
                let code = format!("dim3{}", self.program.slice(place));
                return self.extents_of_text(&code, &moved);
            }
            if !is_vector && !self.program.slice(place).contains("dim3") {
                return None;
            }
            self.extents(node, &self.program.files.get(place.file)?.text, &moved)
        });
        let from_caller = || {
            self.of_parameter(name, scope, &|place, scope| {
                self.extents(self.program.node(place)?, &self.program.files.get(place.file)?.text, scope)
            })
        };
        let of_member = || self.of_member(name, scope, &|whole, scope| self.extents_named(whole, scope));
        let of_list = || {
            let place = self.listed_member(name, scope)?;
            let text = &self.program.files.get(place.file)?.text;
            self.extents(self.program.node(&place)?, text, &scope.moved(&place)?)
        };
        let mut extents = from_definition.or_else(from_caller).or_else(of_list).or_else(of_member).or_else(|| {
            let is_declared = is_vector && is_plain && !is_of_configuration(name);
            is_declared.then_some([1; 3])
        });
        // `grid.x = n;` after it.
        for (at, extent) in ["x", "y", "z"].into_iter().enumerate() {
            let whole = format!("{name}.{extent}");
            if self.nearest(&whole, extent, scope).iter().any(|definition| definition.target == whole) {
                let before = extents.map(|extents| Number::Int(extents[at]));
                let value = self.assigned(&whole, extent, scope, &|| before)?;
                extents.get_or_insert([1; 3])[at] = value.as_integer();
            }
        }
        extents
    }

    pub(super) fn extents_of_text(&self, code: &str, scope: &Scope) -> Option<[i64; 3]> {
        self.costly_step()?;
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).ok()?;
        let text = format!("auto value = ({code});");
        let tree = parser.parse(text.as_bytes(), None)?;
        let node = tree.root_node().descendant_for_byte_range(text.find('(')?, text.len() - 1)?;
        self.extents(node, &text, scope)
    }
}

/// Whether a name is that of a field of a `cudaLaunchConfig_t`.
fn is_of_configuration(name: &str) -> bool {
    name.rsplit_once(['.', '>']).is_some_and(|(_, field)| matches!(field, "gridDim" | "blockDim"))
}
