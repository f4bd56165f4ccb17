//! What the text of a parameter's type says of the values that it takes.

use super::element::Element;
use super::texture::OpaqueHandle;
use super::types::{Type, vector_fields};

/// Explains why a parameter of this type cannot be given a value.
pub(crate) fn explain_refusal(name: &str, text: &str) -> String {
    if text.ends_with('&') {
        return format!("`{name}` is a reference (`{text}`): what it refers to lives in the host's program");
    }
    if text.contains('(') {
        return format!("`{name}` points to a function (`{text}`), whose address only the host's program knows");
    }
    if text.ends_with(']') {
        let remedy = match array_of_numbers(text) {
            Some(_) => "an array in a structure takes a list, as in {1, 2, 3}",
            None => "only an array of numbers takes a list: leave the field out, or record the launch",
        };
        return format!("`{name}` is of type `{text}`: {remedy}");
    }
    match text.strip_suffix('*') {
        Some(target) if target.contains('*') => {
            let is_field = name.contains('.');
            let remedy = if is_field { ": leave the field out, or record the launch" } else { "" };
            format!("`{name}` is of type `{text}`: buffers hold numbers, not pointers{remedy}")
        }
        Some(_) => {
            format!("`{name}` is of type `{text}`: say what numbers it is made of, as in float {name} = random[2 * n]")
        }
        None => {
            let fields = match vector_fields(text) {
                [] => "x = 1, y = zeros[n]".to_owned(),
                fields => fields.iter().map(|field| format!("{field} = 1")).collect::<Vec<_>>().join(", "),
            };
            format!("`{name}` is of type `{text}`: give its fields, as in {name} = {{{fields}}}")
        }
    }
}

/// The type of a buffer whose element the comment tells (`float points = random[2 * n]`): the
/// parameter must be a pointer to something that holds numbers.
pub(crate) fn type_with_element(name: &str, text: &str, element: Option<&str>) -> Result<Option<String>, String> {
    let Some(element) = element else { return Ok(None) };
    let target = text.trim_end().strip_suffix('*').map(without_qualifiers);
    if target.is_none_or(|target| target.contains('*') || target.ends_with(')')) {
        return Err(format!(
            "`{name}` is of type `{text}`: only a pointer to numbers or structures takes a type, `{element}`"
        ));
    }
    let pointer = format!("{element} *");
    match Type::parse_type(&pointer) {
        Type::Pointer { .. } => Ok(Some(pointer)),
        Type::Scalar(_) | Type::Other(_) => Err(format!(
            "`{element}` is no type that a buffer is filled with: write float, double, int, float4 or the like"
        )),
    }
}

/// A type without the qualifiers that it ends with (`float *const`).
fn without_qualifiers(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some(rest) =
        ["const", "volatile", "__restrict__", "__restrict"].iter().find_map(|word| text.strip_suffix(word))
        && rest.ends_with([' ', '*'])
    {
        text = rest.trim_end();
    }
    text
}

/// Returns the element of an array of numbers (`float[4]`, `int[2][3]`) and its length.
/// Extents are in brackets.
pub(crate) fn array_of_numbers(text: &str) -> Option<(Element, u64)> {
    let (element, extents) = text.split_once('[')?;
    let extents = extents.trim_end().strip_suffix(']')?.split(']');
    let extents = extents.map(|extent| extent.trim_start_matches(['[', ' ']).trim().parse::<u64>().ok());
    Some((Type::element(element)?, extents.product::<Option<u64>>()?))
}

/// Returns the kind of opaque handle that a declaration names. Its value has a meaning
/// only in the process that created it.
pub(crate) fn opaque_handle(declaration: &str) -> Option<OpaqueHandle> {
    declaration.split(' ').find_map(|word| match word {
        "cudaTextureObject_t" | "CUtexObject" => Some(OpaqueHandle::Texture),
        "cudaSurfaceObject_t" | "CUsurfObject" => Some(OpaqueHandle::Surface),
        _ => None,
    })
}

/// Returns the kind of handle that a parameter is itself: no pointer to one, no array.
pub(crate) fn handle_by_value(declaration: &str) -> Option<OpaqueHandle> {
    opaque_handle(declaration).filter(|_| !declaration.contains(['*', '&', '[']))
}

/// Whether a parameter takes no value by its declaration alone: a texture or surface, a
/// reference, a pointer to a function or to pointers. Types may have other names, of which only
/// the compiler knows what they are.
pub fn takes_no_value(declaration: &str) -> bool {
    let outer = without_arguments(declaration);
    // `float (*rows)[4]` is `float rows[][4]`: numbers side by side.
    let is_array = outer.split_once(')').is_some_and(|(_, behind)| behind.trim_start().starts_with('['));
    let pointers = outer.matches('*').count() + usize::from(outer.contains('[') && !is_array);
    opaque_handle(declaration).is_some() || pointers > 1 || outer.contains('&') || outer.contains('(') && !is_array
}

/// Whether a parameter points to arrays by its declaration: `float (*rows)[4]`, `float
/// rows[][4]`.
pub fn points_to_arrays(declaration: &str) -> bool {
    let outer = without_arguments(declaration);
    outer.matches('[').count() > usize::from(!outer.contains('(')) && !takes_no_value(declaration)
}

/// Whether a parameter may be a structure that is passed by value, as far as its declaration
/// tells: neither a pointer nor the like, nor a number by its type's own name.
pub fn may_be_structure(declaration: &str) -> bool {
    const NUMBERS: [&str; 11] =
        ["bool", "_Bool", "char", "short", "int", "long", "signed", "unsigned", "float", "double", "half"];
    let outer = without_arguments(declaration);
    let is_number = |word: &str| NUMBERS.contains(&word) || word.ends_with("_t") || word.starts_with("__nv_bfloat");
    !outer.contains(['*', '[', '&', '(']) && !outer.split([' ', ':']).any(is_number)
}

/// A declaration without template arguments, which are no part of what it is.
pub(super) fn without_arguments(declaration: &str) -> String {
    let mut depth = 0_usize;
    let is_outer = |&character: &char| {
        depth += usize::from(character == '<');
        let is_outer = depth == 0;
        depth = depth.saturating_sub(usize::from(character == '>'));
        is_outer
    };
    declaration.chars().filter(is_outer).collect()
}

/// Whether numbers of this type are 0 or 1.
pub(crate) fn is_bool(text: &str) -> bool {
    text.split([' ', '*']).any(|word| word == "bool" || word == "_Bool")
}

#[cfg(test)]
mod tests {
    use super::{explain_refusal, may_be_structure, points_to_arrays, takes_no_value, type_with_element};

    #[test]
    fn a_declaration_tells_what_may_be_a_structure() {
        for (declaration, expected) in [
            ("Pack<int, char> p", true),
            ("const ns::Params params", true),
            ("F f", true),
            ("float4 v", true),
            ("const float a", false),
            ("unsigned n", false),
            ("std::size_t n", false),
            ("uint32_t n", false),
            ("const Params *params", false),
            ("Params &params", false),
            ("Image<float> images[2]", false),
        ] {
            assert_eq!(may_be_structure(declaration), expected, "{declaration}");
        }
    }

    #[test]
    fn a_declaration_tells_what_points_to_arrays() {
        for (declaration, expected) in [
            ("float rows[][4]", true),
            ("const float ( * rows ) [ 4 ]", true),
            ("float (*rows)[4][2]", true),
            ("float rows[4]", false),
            ("float *row", false),
            ("float *rows[4]", false),
            ("float (&rows)[4]", false),
            ("int n", false),
        ] {
            assert_eq!(points_to_arrays(declaration), expected, "{declaration}");
        }
    }

    #[test]
    fn a_declaration_tells_what_takes_no_value() {
        for (declaration, expected) in [
            ("cudaTextureObject_t image", true),
            ("const cudaSurfaceObject_t out", true),
            ("float **rows", true),
            ("const float *const *rows", true),
            ("float *rows[]", true),
            ("float rows[][4]", false),
            ("const float ( * rows ) [ 4 ]", false),
            ("float *(*rows)[4]", true),
            ("float (&rows)[4]", true),
            ("const Params &params", true),
            ("float (*f)(float)", true),
            ("float *row", false),
            ("const float row[]", false),
            ("int n", false),
            ("Image<float **> image", false),
            ("Tuple<void (*)(int), int &> *tuple", false),
        ] {
            assert_eq!(takes_no_value(declaration), expected, "{declaration}");
        }
    }

    #[test]
    fn only_an_array_of_numbers_is_asked_for_a_list() {
        for (text, takes_list) in
            [("int[2][2]", true), ("float2[3]", true), ("float *[8]", false), ("Cell[4]", false), ("int (*)[2]", false)]
        {
            assert_eq!(explain_refusal("p.field", text).contains("takes a list, as in"), takes_list, "{text}");
        }
        assert!(explain_refusal("p.rows", "float *[8]").ends_with(": leave the field out, or record the launch"));
    }

    #[test]
    fn what_a_pointer_to_pointers_holds_is_not_asked_for() {
        for text in [
            "float **",
            "const float *const *",
            "Cell *const *",
            "float *__restrict__ *",
            "float (*)[4]",
            "float *[2] *",
        ] {
            assert!(!explain_refusal("p", text).contains("say what numbers"), "{text}");
            assert!(type_with_element("p", text, Some("float")).is_err(), "{text}");
        }
        for text in ["Cell *", "const Cell *", "Cell const *", "const Myconst *", "Cell[4] *"] {
            assert!(explain_refusal("p", text).contains("say what numbers"), "{text}");
            assert_eq!(type_with_element("p", text, Some("float")), Ok(Some("float *".to_owned())), "{text}");
        }
    }
}
