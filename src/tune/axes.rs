//! Checks of macro axes. A macro cannot be an axis if the source defines it unconditionally: its
//! `#define` overrides the `-D` that nvtune sets the macro with.

use super::Tuner;
use super::failure::Problem;
use super::variants::Macros;
use crate::comment::Annotation;
use crate::cuda::line_markers::LineMarker;
use crate::cuda::macros;
use crate::diag::MessageCode;
use crate::nvcc::Toolchain;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Where a macro is defined besides nvtune's own `-D`: place by name, in nvcc's form `a.cu(3)`.
pub type Definitions = BTreeMap<String, String>;

/// Asks the preprocessor where else `macros` are defined. Returns nothing if it fails: the front
/// end will report that error.
pub fn defined_elsewhere(toolchain: &Toolchain, macros: &Macros) -> Definitions {
    if macros.is_empty() {
        return Definitions::new();
    }
    toolchain.definitions(macros).map(|text| definitions(&text, macros)).unwrap_or_default()
}

/// Reads what `gcc -E -dD` prints: line markers, and `#define` lines, the first of each of
/// `axes` being nvtune's own or one of the command line before it.
fn definitions(text: &str, axes: &Macros) -> Definitions {
    let (mut file, mut number) = (Cow::Borrowed(""), 0_u32);
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found = Definitions::new();
    for line in text.lines() {
        if let Some(marker) = LineMarker::parse(line.as_bytes()) {
            (file, number) = (marker.file, marker.line);
            continue;
        }
        let name = macros::defined_name(line).map(|name| &line[name]);
        if let Some(name) = name.filter(|&name| axes.contains_key(name)) {
            let count = seen.entry(name).or_default();
            *count += 1;
            if *count > 1 {
                found.entry(name.to_owned()).or_insert_with(|| match &*file {
                    "<command-line>" => "the command line".to_owned(),
                    file => format!("{file}({number})"),
                });
            }
        }
        number += 1;
    }
    found
}

/// Returns the problem of the first macro axis of a kernel that is also defined elsewhere.
pub fn problem(own: &Macros, elsewhere: &Definitions) -> Option<Problem> {
    own.keys().find_map(|name| {
        let place = elsewhere.get(name)?;
        Some(Problem::Defined { name: name.clone(), place: place.clone() })
    })
}

/// Warns of each macro in `unused` whose name the source does not contain. The values of an
/// unused macro change neither the code nor, except for a tied block, the launch.
pub fn warn_unused_macros(tuner: &Tuner<'_>, annotation: &Annotation, unused: &[String]) {
    let is_named = |name: &str| tuner.surroundings().is_none_or(|around| around.names(name));
    for axis in annotation.clauses.macros.iter().filter(|axis| unused.contains(&axis.name) && !is_named(&axis.name)) {
        let message = format!(
            "macro `{}` changes no code of `{}`, and the source does not name it: correct the name",
            axis.name, annotation.kernel.name
        );
        tuner.console.diagnostics(&[annotation.source.warning(MessageCode::MacroUnused, axis.span, message)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_definition_that_the_option_does_not_silence_counts() {
        let macros = Macros::from([("WORK".to_owned(), 8), ("TILE".to_owned(), 4)]);
        let own = "# 0 \"<command-line>\"\n#define WORK 8\n# 0 \"<command-line>\"\n#define TILE 4\n# 1 \"a.cu\"\n#define WORKER 1\n";
        assert_eq!(definitions(own, &macros), Definitions::new());
        let defined = format!("{own}#undef WORK\n# 3 \"b.h\" 1\n\n#define WORK(x) x\n");
        assert_eq!(definitions(&defined, &macros), Definitions::from([("WORK".to_owned(), "b.h(4)".to_owned())]));
        let given = format!("# 0 \"<command-line>\"\n#define TILE 2\n{own}");
        assert_eq!(
            definitions(&given, &macros),
            Definitions::from([("TILE".to_owned(), "the command line".to_owned())])
        );
    }
}
