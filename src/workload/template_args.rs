//! Template arguments that the comment names otherwise than the compiler: aliases, enumerators,
//! constants of the source.
//!
//! The question is a template kernel that is instantiated once for each argument. It is
//! appended to the source, in the namespace of the kernel; the stub file then spells the
//! arguments as it spells those of the kernel's own instances.

use super::entry::{Entry, entries};
use crate::comment::{Annotation, TemplateArgument};
use crate::cuda::macros::plain_macros;
use crate::cuda::template_instance;
use crate::cuda::template_instance::Spelled;
use crate::cuda::tokens::{CxxToken, cxx_tokens};
use crate::diag::Span;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

/// The name of the template kernel that asks.
const ASKER: &str = "nvtune_argument";

/// How deep macros are expanded.
const MAX_DEPTH: usize = 16;

/// C++ text that asks for the compiler's names of the arguments that the language of comments
/// cannot evaluate; `None` where there are none, or the kernel has no instance that says which
/// namespace it is in.
///
/// `definitions` is the preprocessed source with its `#define` lines: what is appended is not
/// preprocessed any more. `value_type` is the type of arguments that are values: `auto`, or an
/// integer type before C++17.
pub fn question(
    annotation: &Annotation,
    entries: &[Entry],
    macros: &BTreeMap<String, i64>,
    definitions: &str,
    value_type: &str,
) -> Option<String> {
    let kernel = entries.iter().find(|entry| entry.name() == annotation.kernel.name)?;
    let plain = kernel.qualified.split('<').next()?;
    let scopes: Vec<&str> = plain.split("::").map(str::trim).filter(|scope| !scope.is_empty()).collect();
    let (_, scopes) = scopes.split_last()?;
    let mut text = String::from("\n");
    for scope in scopes {
        let name = if template_instance::is_unnamed(scope) { "" } else { scope };
        // Writing to a String cannot fail.
        let _ = write!(text, "namespace {name} {{ ");
    }
    let global = "__attribute__((global)) void";
    let _ = write!(
        text,
        "\ntemplate <int nvtune_position, class nvtune_type> {global} {ASKER}(void *) {{}}\n\
         template <int nvtune_position, {value_type} nvtune_value> {global} {ASKER}(void *) {{}}\n"
    );
    let asked = text.len();
    for (position, argument) in annotation.instance.iter().flat_map(|instance| &instance.arguments).enumerate() {
        if let TemplateArgument::Text(argument) | TemplateArgument::Constant { text: argument, .. } = argument {
            let argument = expand_aliases(argument, macros, &function_bodies(definitions), &mut HashSet::new());
            let _ = writeln!(text, "template {global} {ASKER}<{position}, {argument}>(void *);");
        }
    }
    let has_question = text.len() > asked;
    text.push_str(&"}".repeat(scopes.len()));
    has_question.then_some(text)
}

/// The compiler's names, from the stub file of the source with the question.
pub fn answer(stub: &str) -> Spelled {
    let mut spelled = Spelled::new();
    for entry in entries(stub).iter().filter(|entry| entry.name() == ASKER) {
        if let Some([position, argument]) = template_instance::template_arguments(&entry.qualified).as_deref()
            && let Some(position) =
                template_instance::enumerator_value(position).and_then(|position| usize::try_from(position).ok())
        {
            spelled.insert(position, (*argument).to_owned());
        }
    }
    spelled
}

/// What macros without parameters stand for; the last definition of a name counts.
fn function_bodies(definitions: &str) -> BTreeMap<&str, &str> {
    let slice = |span: Span| definitions[span.start..span.end].trim();
    plain_macros(definitions).into_iter().map(|(name, body)| (slice(name), slice(body))).collect()
}

/// The text with macros replaced by what they stand for; those in `open` are being expanded
/// already.
fn expand_aliases<'a>(
    text: &'a str,
    macros: &BTreeMap<String, i64>,
    bodies: &BTreeMap<&'a str, &'a str>,
    open: &mut HashSet<&'a str>,
) -> String {
    let (mut shown, mut copied) = (String::new(), 0);
    for CxxToken { span, .. } in cxx_tokens(text) {
        shown.push_str(&text[copied..span.start]);
        copied = span.end;
        let word = &text[span.start..span.end];
        match (macros.get(word), bodies.get(word)) {
            (Some(value), _) => shown.push_str(&value.to_string()),
            (None, Some(body)) if open.len() < MAX_DEPTH && open.insert(word) => {
                shown.push_str(&expand_aliases(body, macros, bodies, open));
                open.remove(word);
            }
            _ => shown.push_str(word),
        }
    }
    shown + &text[copied..]
}

#[cfg(test)]
mod tests {
    use super::{expand_aliases, function_bodies};
    use std::collections::{BTreeMap, HashSet};

    #[test]
    fn macros_stand_for_what_they_are_defined_as() {
        let definitions = "#define REAL float\n#define PAIR(a) a\n# 1 \"a.cu\"\n#define SIZE (BASE << 1)\n#define BASE 8\n#define LOOP LOOP + 1\n#define REAL double\n";
        let macros = BTreeMap::from([("TILE".to_owned(), 4)]);
        for (text, shown) in [
            ("REAL", "double"),
            ("Tile<REAL, TILE>", "Tile<double, 4>"),
            ("SIZE * 2", "(8 << 1) * 2"),
            ("LOOP", "LOOP + 1"),
            ("REALLY PAIR", "REALLY PAIR"),
        ] {
            assert_eq!(expand_aliases(text, &macros, &function_bodies(definitions), &mut HashSet::new()), shown);
        }
    }
}
