//! Types as host code names them -> types that a comment knows, and their sizes.

use super::declarations::without_arguments;
use super::element::Scalar;
use super::host_evaluation::{Evaluation, Scope};
use super::host_nodes::declared;
use super::host_program::{Declaration, FilePlace, HostProgram, Structure, StructureField};
use super::integer_literal::integer;
use super::tokens::is_word;
use super::types::Type;
use tree_sitter::Node;

/// Names of types in the system's and CUDA's headers.
const KNOWN: [(&str, &str); 10] = [
    ("clock_t", "long"),
    ("time_t", "long"),
    ("cuComplex", "float2"),
    ("cuFloatComplex", "float2"),
    ("cuDoubleComplex", "double2"),
    ("cufftComplex", "float2"),
    ("cufftDoubleComplex", "double2"),
    ("cufftReal", "float"),
    ("cufftDoubleReal", "double"),
    ("GLuint", "unsigned int"),
];

/// How often names of types stand for others.
const DEEPEST: usize = 8;

/// The most bytes of a type's text.
const LONGEST: usize = 400;

/// Bytes of a field in its structure, and its alignment.
pub(super) struct FieldPlace {
    pub start: i64,
    pub end: i64,
    align: i64,
}

impl HostProgram {
    /// A type without macros and names that stand for other types, in which a name of a template's
    /// parameters is replaced.
    pub(super) fn resolved_type(&self, file: usize, kind: &str, parameters: &[(String, String)]) -> String {
        let mut text = kind.to_owned();
        for _ in 0..DEEPEST {
            let replaced = words(&text, |word| {
                let of_parameter =
                    parameters.iter().find(|(name, _)| name == word).map(|(_, argument)| argument.clone());
                let of_macro = || {
                    let found = self.macro_of(file, word).filter(|found| found.parameters.is_none())?;
                    Some(found.body.clone())
                };
                let of_alias = || self.aliases.get(word).filter(|target| target.trim() != word).cloned();
                let of_header = || KNOWN.iter().find(|(name, _)| *name == word).map(|(_, kind)| (*kind).to_owned());
                of_parameter.or_else(of_macro).or_else(of_alias).or_else(of_header)
            });
            if replaced == text || replaced.len() > LONGEST {
                break;
            }
            text = replaced;
        }
        for word in ["struct ", "class ", "enum ", "typename "] {
            text = text.replace(word, "");
        }
        text
    }
}

impl Evaluation<'_> {
    /// The scalar that a name of a type stands for.
    pub(super) fn scalar_named(&self, kind: &str, file: usize) -> Option<Scalar> {
        match Type::parse_type(&self.program.resolved_type(file, kind, &[])) {
            Type::Scalar(scalar) => Some(scalar),
            Type::Pointer { .. } | Type::Other(_) => None,
        }
    }

    /// Bytes of a type.
    pub(super) fn size_of(&self, kind: &str, file: usize) -> Option<i64> {
        self.layout(kind, file, DEEPEST).map(|(size, _)| size)
    }

    /// Size and alignment of a type.
    pub(super) fn layout(&self, kind: &str, file: usize, depth: usize) -> Option<(i64, i64)> {
        self.step()?;
        let text = self.program.resolved_type(file, kind, &[]);
        let (stem, extents) = text.split_once('[').unwrap_or((&text, ""));
        if stem.contains('{') {
            return None;
        }
        if without_arguments(stem).contains('*') {
            return Some((8, 8));
        }
        let (size, align) = match Type::element(stem.trim()) {
            Some(element) => {
                let (size, scalar) = (element.size() as i64, element.scalar.size() as i64);
                (size, if element.lanes == 3 { scalar } else { size.min(16) })
            }
            None => {
                let name = stem.replace("const", "");
                if let Some(kept_in) = self.program.enumeration(&name) {
                    return self.layout(&format!("{kept_in}{}", &text[stem.len()..]), file, depth.checked_sub(1)?);
                }
                let structure = self.program.structure(file, &name).filter(|structure| structure.is_plain)?;
                let places = self.field_places(structure, file, depth.checked_sub(1)?)?;
                let end = places.iter().map(|place| place.end).max().unwrap_or(0);
                let most = places.iter().map(|place| place.align).max().unwrap_or(1);
                ((end + most - 1) / most * most, most)
            }
        };
        let mut count = 1_i64;
        for extent in extents.split('[').filter(|extent| !extent.is_empty()) {
            count = count.checked_mul(self.array_extent(extent, file)?)?;
        }
        Some((size.checked_mul(count)?, align))
    }

    /// Where the fields of a structure are.
    pub(super) fn field_places(&self, structure: &Structure, file: usize, depth: usize) -> Option<Vec<FieldPlace>> {
        let mut end = 0_i64;
        let place = |field: &StructureField| {
            let (size, align) = self.layout(&field.kind, file, depth)?;
            let start = if structure.is_union { 0 } else { end.checked_add(align - 1)? / align * align };
            end = start.checked_add(size)?;
            Some(FieldPlace { start, end, align })
        };
        structure.fields.iter().map(place).collect()
    }

    /// The number in `4]` or `N]`.
    pub(super) fn array_extent(&self, text: &str, file: usize) -> Option<i64> {
        let extent = text.trim().strip_suffix(']')?.trim();
        integer(extent).or_else(|| {
            let body = &self.program.macro_of(file, extent)?.body;
            integer(body.trim_matches(['(', ')', ' ']))
        })
    }

    /// The type that a variable or parameter is declared with at a place.
    pub(super) fn declared_type(&self, name: &str, scope: &Scope) -> Option<String> {
        let declarations = self.program.declarations.get(name)?;
        let mut known: Vec<_> = declarations
            .iter()
            .filter(|own| own.file == scope.file && own.scope.contains(&scope.at))
            .map(|own| (own.scope.len(), own))
            .collect();
        known.sort_by_key(|(length, _)| *length);
        let nearest = known.first().map(|(_, own)| *own);
        // Variables of other functions are others.
        let is_global = |own: &&Declaration| {
            let around = self.program.function_around(own.file, own.scope.start);
            around.is_none_or(|function| function.end_byte() < own.scope.end)
        };
        nearest.or_else(|| declarations.iter().find(is_global)).map(|own| own.kind.clone())
    }

    /// A type with the parameters of the template around a place replaced.
    pub(super) fn in_scope(&self, kind: &str, scope: &Scope) -> String {
        words(kind, |word| self.template_argument(word, scope).map(|(text, _)| text))
    }

    /// What a parameter of the template around a place stands for, by a call or an instance of it,
    /// and where that is.
    pub(super) fn template_argument(&self, name: &str, scope: &Scope) -> Option<(String, FilePlace)> {
        let function = self.program.function_around(scope.file, scope.at)?;
        let template = function.parent().filter(|node| node.kind() == "template_declaration")?;
        let text = &self.program.files.get(scope.file)?.text;
        let names = template_parameters(template, text);
        let number = names.iter().position(|own| own == name)?;
        self.costly_step()?;
        let function_name = function.child_by_field_name("declarator").map(|node| declared(node, text))?;
        let head = format!("{function_name}<");
        for (index, file) in self.program.files.iter().enumerate() {
            for (at, _) in file.text.match_indices(&head) {
                let is_word_before = file.text[..at].chars().next_back().is_some_and(is_word);
                if self.step().is_none() || is_word_before {
                    continue;
                }
                let open = at + head.len() - 1;
                let place = FilePlace { file: index, range: at..open };
                let Some(arguments) = angle_arguments(&file.text[open..]) else { continue };
                let Some(argument) = arguments.get(number).filter(|argument| !argument.is_empty()) else { continue };
                // A call from within another template leads further.
                let argument = self
                    .template_argument(argument, &scope.moved(&place)?)
                    .map_or((argument.clone(), place.clone()), |(text, place)| (text, place));
                if !names.contains(&argument.0) {
                    return Some(argument);
                }
            }
        }
        None
    }
}

impl Evaluation<'_> {
    /// Whether a text names a parameter of a template around a place.
    pub(super) fn is_open(&self, code: &str, scope: &Scope) -> bool {
        let place = FilePlace { file: scope.file, range: scope.at..scope.at };
        let Some((node, file)) = self.program.node(&place).zip(self.program.files.get(scope.file)) else {
            return false;
        };
        let around = std::iter::successors(Some(node), Node::parent);
        let templates = around.filter(|node| node.kind() == "template_declaration");
        let names: Vec<String> = templates.flat_map(|template| template_parameters(template, &file.text)).collect();
        code.split(|c| !is_word(c)).any(|word| names.iter().any(|name| name == word))
    }
}

/// The names of a template's parameters.
pub(super) fn template_parameters(template: Node<'_>, text: &str) -> Vec<String> {
    let Some(list) = template.child_by_field_name("parameters") else { return Vec::new() };
    let mut cursor = list.walk();
    let parameters = list.named_children(&mut cursor).filter(|node| node.kind() != "comment");
    let name = |node: Node<'_>| {
        let text = &text[node.byte_range()];
        let text = text.split('=').next().unwrap_or(text).trim_end();
        text.rsplit(|c: char| !is_word(c)).next().unwrap_or("").to_owned()
    };
    parameters.map(name).collect()
}

/// The arguments between `<` and its `>` at the start of a text; `None` if that is no list.
pub(super) fn angle_arguments(text: &str) -> Option<Vec<String>> {
    let mut depth = 0_i32;
    let mut arguments = vec![String::new()];
    for character in text.chars().take(LONGEST) {
        match character {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ';' | '{' | '}' => return None,
            ',' if depth == 1 => {
                arguments.push(String::new());
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            return Some(arguments.iter().map(|argument| argument.trim().to_owned()).collect());
        }
        if depth != 1 || character != '<' {
            arguments.last_mut()?.push(character);
        }
    }
    None
}

/// A text with some of its words replaced.
pub(super) fn words(text: &str, replace: impl Fn(&str) -> Option<String>) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match is_word(first) {
            true => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        match replace(word).filter(|_| is_word(first) && !first.is_ascii_digit()) {
            Some(other) => replaced.push_str(&other),
            None => replaced.push_str(word),
        }
        rest = after;
    }
    replaced
}
