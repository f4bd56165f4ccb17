//! Source files and the name of a template -> whether code outside of unused templates has the
//! name.
//!
//! Invariant: a template is unused only if that is certain. A use that is not understood
//! counts.

use super::joined_names::JoinedNames;
use super::tokens::{CxxKind, CxxToken, cxx_tokens, split_directive};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// What stands before a parenthesis and is no function.
const ATTRIBUTES: [&str; 12] = [
    "__launch_bounds__",
    "__attribute__",
    "__align__",
    "__maxnreg__",
    "__cluster_dims__",
    "__block_size__",
    "__declspec",
    "alignas",
    "decltype",
    "explicit",
    "noexcept",
    "typeof",
];

/// Functions that the language calls without their names.
const IMPLICIT: [&str; 5] = ["operator", "begin", "end", "get", "swap"];

/// A template with its head: the tokens, and its name.
struct Template<'a> {
    tokens: Range<usize>,
    name: &'a str,
}

/// The names in a file, each with the name of the template that it stands in.
type NameUses<'a> = Vec<(&'a str, Option<&'a str>)>;

/// Returns whether a template may be used: its name stands in these files elsewhere than in
/// itself, its declarations, and templates of which the same is not true, or is made of pieces.
pub fn may_be_used(name: &str, texts: &[&str], joined: &JoinedNames<'_>) -> bool {
    let mut names: HashMap<usize, NameUses<'_>> = HashMap::new();
    let (mut asked, mut open) = (HashSet::from([name]), vec![name]);
    while let Some(name) = open.pop() {
        if joined.may_make(name) {
            return true;
        }
        for (index, text) in texts.iter().enumerate() {
            if !text.contains(name) {
                continue;
            }
            let places = names.entry(index).or_insert_with(|| names_of(text)).iter();
            for (_, owner) in places.filter(|(word, _)| *word == name) {
                let Some(owner) = *owner else { return true };
                if asked.insert(owner) {
                    open.push(owner);
                }
            }
        }
    }
    false
}

fn names_of(text: &str) -> NameUses<'_> {
    let is_code = |token: &CxxToken| !matches!(token.kind, CxxKind::Comment { .. });
    let all = cxx_tokens(text);
    let mut names = NameUses::new();
    let mut directives = Vec::new();
    let mut end = 0;
    for token in &all {
        directives.extend(directives_between(text, end..token.span.start));
        end = token.span.end;
    }
    directives.extend(directives_between(text, end..text.len()));
    let tokens: Vec<CxxToken> = all.into_iter().filter(is_code).collect();
    let file = ParsedFile { text, tokens: &tokens };
    let mut at = 0;
    while at < tokens.len() {
        let template = file.template(at).filter(|found| !has_conditions(&file, found, &directives));
        let (end, owner) = template.map_or((at + 1, None), |found| (found.tokens.end, Some(found.name)));
        let own = tokens[at..end].iter().filter(|token| token.kind == CxxKind::Name);
        names.extend(own.map(|token| (&text[token.span.start..token.span.end], owner)));
        at = end;
    }
    for (_, line) in directives {
        let is_file = split_directive(line).is_some_and(|(word, _)| matches!(word, "include" | "import"));
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty() && !is_file);
        names.extend(words.map(|word| (word, None)));
    }
    names
}

/// The preprocessor lines of a place without tokens, each with where it begins.
fn directives_between(text: &str, place: Range<usize>) -> Vec<(usize, &str)> {
    let gap = &text[place.clone()];
    // Blanks and escaped line ends are no directive.
    gap.find('#').map(|at| (place.start + at, &gap[at..])).into_iter().collect()
}

/// Whether a template has preprocessor lines that may leave out a part of it.
fn has_conditions(file: &ParsedFile<'_, '_>, template: &Template<'_>, directives: &[(usize, &str)]) -> bool {
    let start = file.tokens[template.tokens.start].span.start;
    let end = file.tokens[template.tokens.end - 1].span.end;
    let is_pragma = |text: &str| {
        text.lines()
            .all(|line| line.trim().is_empty() || split_directive(line).is_some_and(|(word, _)| word == "pragma"))
    };
    directives.iter().any(|(at, text)| (start..end).contains(at) && !is_pragma(text))
}

/// A file without comments and preprocessor lines.
struct ParsedFile<'a, 't> {
    text: &'a str,
    tokens: &'t [CxxToken],
}

impl<'a> ParsedFile<'a, '_> {
    fn word(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| &self.text[token.span.start..token.span.end])
    }

    fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == CxxKind::Name)
    }

    /// Returns whether a template's head begins here: no specialization, and no call.
    fn is_head(&self, at: usize) -> bool {
        let is_call = at > 0 && matches!(self.word(at - 1), "." | "::" | ">");
        self.word(at) == "template" && self.word(at + 1) == "<" && self.word(at + 2) != ">" && !is_call
    }

    /// Returns the token behind the bracket that closes the one at `at`.
    fn behind(&self, at: usize) -> Option<usize> {
        let open = self.word(at);
        let close = match open {
            "(" => ")",
            "[" => "]",
            "{" => "}",
            "<" => ">",
            _ => return None,
        };
        let mut at = at + 1;
        loop {
            match self.word(at) {
                "" => return None,
                word if word == close && !(open == "<" && self.word(at - 1) == "-") => return Some(at + 1),
                "(" | "[" | "{" => at = self.behind(at)?,
                "<" if open == "<" => at = self.behind(at)?,
                ")" | "]" | "}" => return None,
                _ => at += 1,
            }
        }
    }

    /// Reads the template whose head begins at `at`; `None` if there is none, or it is not
    /// understood.
    fn template(&self, at: usize) -> Option<Template<'a>> {
        let mut next = at;
        while self.is_head(next) {
            next = self.behind(next + 1)?;
        }
        if next == at || self.word(next) == "requires" {
            return None;
        }
        let is_class = matches!(self.word(next), "class" | "struct" | "union");
        let mut name = None;
        loop {
            match self.word(next) {
                "" | "=" | "friend" | "}" | ")" => return None,
                ";" => break,
                "{" => {
                    let end = self.behind(next)?;
                    // A function has no templates in it: its end is not where it seems.
                    if !is_class && (next..end).any(|at| self.is_head(at)) {
                        return None;
                    }
                    next = end - 1;
                    break;
                }
                "(" | "[" => {
                    let before = self.word(next - 1);
                    if !is_class && name.is_none() && self.is_name(next - 1) && !ATTRIBUTES.contains(&before) {
                        name = Some(before);
                    }
                    next = self.behind(next)?;
                }
                word => {
                    let is_attribute = self.word(next + 1) == "(" || matches!(word, "class" | "struct" | "union");
                    if is_class && name.is_none() && self.is_name(next) && !is_attribute {
                        name = Some(word);
                    }
                    next += 1;
                }
            }
        }
        let name = name.filter(|name| !IMPLICIT.contains(name))?;
        Some(Template { tokens: at..next + 1, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "template <typename T>\n__global__ void __launch_bounds__(256) k(int n, T *x) {\n#pragma unroll\n    for (int i = 0; i < 4; ++i) x[i] = 0;\n}\n";
    const RUN: &str = "template <typename T, int N = (3 > 2)>\ninline auto run(int n, T *x) -> void {\n    k<T><<<n / 256, 256>>>(n, x);\n}\n";

    fn is_used(rest: &str) -> bool {
        let header = format!("{KERNEL}{RUN}");
        let texts = [header.as_str(), rest];
        may_be_used("k", &texts, &JoinedNames::new(&texts, &[]))
    }

    #[test]
    fn template_that_only_unused_templates_have_is_unused() {
        for rest in [
            "",
            "int other() { return 1; }\n",
            "// run(n, x) is in k.cuh\n#include \"run/k.cuh\"\n",
            "template <class T> __global__ void k(int, T *);\n",
            "template <class T> struct Runner {\n    template <class U> void go(int n, U *x) { run<U>(n, x); }\n};\n",
            "template <class T> void again(T *x) { run(1, x); }\ntemplate <class T> void first(T *x) { again(x); }\n",
            "#define JOIN(a, b) a##b\nint JOIN(oth, er)() { return 1; }\n",
        ] {
            assert!(!is_used(rest), "{rest}");
        }
    }

    #[test]
    fn use_outside_of_templates_counts_also_through_templates() {
        for rest in [
            "void f(float *x) { run(1, x); }\n",
            "void f(float *x) { k<float><<<1, 256>>>(1, x); }\n",
            "template __global__ void k<float>(int, float *);\n",
            "template <> void other<float>() { run(1, (float *)0); }\n",
            "template <class T> void again(T *x) { run(1, x); }\nvoid f(float *x) { again(x); }\n",
            "template <class T> struct Runner {\n    ~Runner() { run<T>(1, 0); }\n};\nRunner<float> runner;\n",
            "#define RUN run<float>\n",
            "#define JOIN(a, b) a##b\nvoid f(float *x) { JOIN(ru, n)(1, x); }\n",
            "template <class T> void operator+(T x, int) { run(1, x); }\n",
            "template <class T> auto begin(T x) { run(1, x); return x; }\n",
            "template <class T> auto kept = &run<T>;\n",
            "template <class T> void again(T *x) {\n#if 1\n    run(1, x);\n#endif\n}\n",
            "template <class T> void open(T *x) {\n",
            "template <class T> requires true void again(T *x) { run(1, x); }\n",
        ] {
            let is_open = rest.contains("open");
            let rest = if is_open { format!("{rest}void f(float *x) {{ run(1, x); }}\n") } else { rest.to_owned() };
            assert!(is_used(&rest), "{rest}");
        }
    }
}
