//! Source files, macros of a command line -> the lines of them that are compiled, and the
//! macros that they define: a preprocessor that knows directives and expands nothing.
//!
//! What a condition says of the architecture, of the host's compiler or of anything that is no
//! number is not known, and then all its branches count.

use super::integer_literal::integer;
use super::tokens::{directive_end, is_word, split_directive};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// A macro as it is defined last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Macro {
    /// `None` for a macro without parameters.
    pub parameters: Option<Vec<String>>,
    pub body: String,
}

pub(super) type Macros = BTreeMap<String, Macro>;

/// Macros whose values are not known, or not the same in all passes of a compile.
const UNKNOWN: [&str; 7] = [
    "__CUDA_ARCH__",
    "__CUDACC__",
    "__NVCC__",
    "__cplusplus",
    "CUDART_VERSION",
    "CUDA_VERSION",
    "__CUDACC_VER_MAJOR__",
];

/// How deep files include each other, and how deep conditions are nested.
const DEEPEST: usize = 64;

/// The most operands of a condition, with those of its macros.
const MOST_STEPS: u32 = 10_000;

/// The files of one compile.
pub(super) struct ActiveCode<'a> {
    /// All files by path.
    files: &'a [(String, String)],
    /// Searched for includes with angle brackets.
    folders: &'a [String],
    pub macros: Macros,
    /// Indices of the files that were read, each with its text. What is not compiled is blank.
    pub texts: Vec<(usize, String)>,
    /// Files that are included with quotes and are not there.
    pub missing: BTreeSet<String>,
    pub left_out: Vec<LeftOut>,
    begun: BTreeSet<usize>,
    /// Operands that the condition may still have.
    steps: Cell<u32>,
}

/// A launch that is not compiled.
pub(super) struct LeftOut {
    pub file: usize,
    /// The first byte of its `<<<`.
    pub at: usize,
    /// What leaves it out: `#ifdef X`.
    pub directive: String,
}

/// A conditional directive that is open.
struct Branch {
    directive: String,
    /// Whether the lines of this branch count.
    is_active: bool,
    /// Whether a branch before it surely counted.
    is_decided: bool,
}

impl<'a> ActiveCode<'a> {
    /// Reads a file and what it includes of these files, with angle brackets from these folders;
    /// `macros` are defined before it.
    pub fn new(files: &'a [(String, String)], root: usize, folders: &'a [String], macros: &[(String, String)]) -> Self {
        let mut code = Self {
            files,
            folders,
            macros: Macros::new(),
            texts: Vec::new(),
            missing: BTreeSet::new(),
            left_out: Vec::new(),
            begun: BTreeSet::new(),
            steps: Cell::new(0),
        };
        macros.iter().for_each(|(name, value)| code.define(&format!("{name} {value}")));
        code.read(root, 0);
        code
    }

    fn read(&mut self, index: usize, depth: usize) {
        let Some((_, text)) = self.files.get(index) else { return };
        if depth > DEEPEST || !self.begun.insert(index) {
            return;
        }
        let mut kept = text.clone().into_bytes();
        let mut branches: Vec<Branch> = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let line_end = text[at..].find('\n').map_or(text.len(), |length| at + length);
            let is_active = branches.iter().all(|branch| branch.is_active);
            let Some((word, _)) = split_directive(&text[at..line_end]) else {
                if let Some(branch) = branches.iter().find(|branch| !branch.is_active) {
                    if let Some(place) = text[at..line_end].find("<<<") {
                        let directive = branch.directive.clone();
                        self.left_out.push(LeftOut { file: index, at: at + place, directive });
                    }
                    blank_line(&mut kept[at..line_end]);
                }
                at = line_end + 1;
                continue;
            };
            let end = directive_end(text.as_bytes(), at + text[at..].find('#').unwrap_or(0)).max(line_end);
            let whole = without_comments(&text[at..end].replace("\\\r\n", " ").replace("\\\n", " "));
            let rest = split_directive(&whole).map_or("", |(_, rest)| rest).trim();
            self.directive(word, rest, is_active, &mut branches, (index, depth));
            if word != "define" || !is_active {
                blank_line(&mut kept[at..end]);
            }
            at = end + 1;
        }
        self.texts.push((index, String::from_utf8(kept).unwrap_or_default()));
    }

    /// Applies one directive of a file that is so deep in others.
    fn directive(
        &mut self,
        word: &str,
        rest: &str,
        is_active: bool,
        branches: &mut Vec<Branch>,
        (index, depth): (usize, usize),
    ) {
        match word {
            "if" | "ifdef" | "ifndef" => {
                let value = match word {
                    "if" => self.condition(rest),
                    _ => self.is_defined(first_word(rest)).map(|is_defined| is_defined == (word == "ifdef")),
                };
                let directive = format!("#{word} {rest}");
                branches.push(Branch { directive, is_active: value != Some(false), is_decided: value == Some(true) });
            }
            "elif" | "else" => {
                let value = if word == "elif" { self.condition(rest) } else { Some(true) };
                if let Some(branch) = branches.last_mut() {
                    branch.directive = match word {
                        "elif" => format!("#elif {rest}"),
                        _ => format!("#else of {}", branch.directive),
                    };
                    branch.is_active = !branch.is_decided && value != Some(false);
                    branch.is_decided |= value == Some(true) && branch.is_active;
                }
            }
            "endif" => drop(branches.pop()),
            "define" if is_active => self.define(rest),
            "undef" if is_active => drop(self.macros.remove(first_word(rest))),
            "include" if is_active => {
                let quoted = rest.strip_prefix('"').and_then(|rest| rest.split('"').next());
                let angled = rest.strip_prefix('<').and_then(|rest| rest.split('>').next());
                match (self.included(quoted, angled, index), quoted) {
                    (Some(index), _) => self.read(index, depth + 1),
                    (None, Some(name)) => drop(self.missing.insert(name.to_owned())),
                    (None, None) => {}
                }
            }
            _ => {}
        }
    }

    /// Finds what an `#include` of a file names: in the folders if in angle brackets, else the
    /// file next to it or one whose path ends like this.
    fn included(&self, quoted: Option<&str>, angled: Option<&str>, index: usize) -> Option<usize> {
        let find = |is_it: &dyn Fn(&str) -> bool| self.files.iter().position(|(path, _)| is_it(path));
        let is_in = |path: &str, folder: &str, name: &str| {
            path.strip_suffix(name).is_some_and(|rest| rest.trim_end_matches('/') == folder.trim_end_matches('/'))
        };
        let Some(name) = quoted else {
            let name = angled?;
            return self.folders.iter().find_map(|folder| find(&|path| is_in(path, folder, name)));
        };
        let by_end = |name: &str| {
            let end = format!("/{name}");
            find(&|path| path == name || path.ends_with(&end))
        };
        let folder = self.files[index].0.rsplit_once('/').map_or("", |(folder, _)| folder);
        let next = find(&|path| is_in(path, folder, name));
        next.or_else(|| by_end(name)).or_else(|| by_end(name.rsplit('/').next()?))
    }

    fn define(&mut self, rest: &str) {
        let name = first_word(rest);
        let after = &rest[name.len()..];
        let (parameters, body) = match after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            Some((list, body)) => {
                let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
                (Some(names.map(str::to_owned).collect()), body)
            }
            None => (None, after),
        };
        if !name.is_empty() {
            self.macros.insert(name.to_owned(), Macro { parameters, body: body.trim().to_owned() });
        }
    }

    fn is_defined(&self, name: &str) -> Option<bool> {
        (!UNKNOWN.contains(&name)).then(|| self.macros.contains_key(name))
    }

    /// Evaluates the condition of an `#if`; `None` if it is not known.
    fn condition(&self, text: &str) -> Option<bool> {
        let mut words = condition_words(text).into_iter().peekable();
        self.steps.set(MOST_STEPS);
        let value = self.any_of(&mut words, 0)?;
        words.next().is_none().then_some(value != 0)
    }

    fn any_of(&self, words: &mut Words<'_>, depth: usize) -> Option<i64> {
        let mut value = self.all_of(words, depth);
        while words.next_if_eq(&"||").is_some() {
            let right = self.all_of(words, depth);
            value = match (value, right) {
                (Some(left), _) | (_, Some(left)) if left != 0 => Some(1),
                (Some(_), Some(_)) => Some(0),
                _ => None,
            };
        }
        value
    }

    fn all_of(&self, words: &mut Words<'_>, depth: usize) -> Option<i64> {
        let mut value = self.comparison(words, depth);
        while words.next_if_eq(&"&&").is_some() {
            let right = self.comparison(words, depth);
            value = match (value, right) {
                (Some(0), _) | (_, Some(0)) => Some(0),
                (Some(_), Some(_)) => Some(1),
                _ => None,
            };
        }
        value
    }

    fn comparison(&self, words: &mut Words<'_>, depth: usize) -> Option<i64> {
        let left = self.operand(words, depth);
        let is_comparison = |word: &&str| ["==", "!=", "<", ">", "<=", ">="].contains(word);
        let Some(operator) = words.next_if(is_comparison) else { return left };
        let (left, right) = (left, self.operand(words, depth));
        let (left, right) = (left?, right?);
        Some(i64::from(match operator {
            "==" => left == right,
            "!=" => left != right,
            "<" => left < right,
            ">" => left > right,
            "<=" => left <= right,
            _ => left >= right,
        }))
    }

    fn operand(&self, words: &mut Words<'_>, depth: usize) -> Option<i64> {
        let word = words.next()?;
        self.steps.set(self.steps.get().checked_sub(1)?);
        if depth > DEEPEST {
            return None;
        }
        match word {
            "!" => self.operand(words, depth + 1).map(|value| i64::from(value == 0)),
            "(" => {
                let value = self.any_of(words, depth + 1);
                words.next_if_eq(&")");
                value
            }
            "defined" => {
                let is_open = words.next_if_eq(&"(").is_some();
                let name = words.next()?;
                if is_open {
                    words.next_if_eq(&")");
                }
                self.is_defined(name).map(i64::from)
            }
            name if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => self.macro_number(name, depth),
            number => integer(number),
        }
    }

    /// The number that a macro stands for; 0 for a name that is not defined, as in C.
    fn macro_number(&self, name: &str, depth: usize) -> Option<i64> {
        if UNKNOWN.contains(&name) {
            return None;
        }
        match self.macros.get(name) {
            None => Some(0),
            Some(Macro { parameters: None, body }) => {
                let mut words = condition_words(body).into_iter().peekable();
                let value = self.operand(&mut words, depth + 1)?;
                words.next().is_none().then_some(value)
            }
            Some(_) => None,
        }
    }
}

type Words<'w> = std::iter::Peekable<std::vec::IntoIter<&'w str>>;

/// Splits a condition into names, numbers and operators.
fn condition_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if ["&&", "||", "==", "!=", "<=", ">="].iter().any(|operator| rest.starts_with(operator)) => 2,
            _ => first.len_utf8(),
        };
        let (word, after) = rest.split_at(length);
        words.push(word);
        rest = after.trim_start();
    }
    words
}

fn first_word(text: &str) -> &str {
    &text[..text.find(|c| !is_word(c)).unwrap_or(text.len())]
}

/// A directive without comments.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, comment) = rest.split_at(at);
        kept.push_str(before);
        if comment.starts_with("//") {
            return kept;
        }
        match comment.strip_prefix("/*") {
            Some(inner) => {
                kept.push(' ');
                rest = inner.split_once("*/").map_or("", |(_, after)| after);
            }
            None => {
                kept.push('/');
                rest = &comment[1..];
            }
        }
    }
    kept + rest
}

fn blank_line(line: &mut [u8]) {
    line.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}

#[cfg(test)]
mod tests {
    use super::ActiveCode;

    fn active(files: &[(&str, &str)]) -> (String, Vec<(String, String)>) {
        let files: Vec<(String, String)> =
            files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        let folders = ["d".to_owned()];
        let code = ActiveCode::new(&files, 0, &folders, &[]);
        let text = code.texts.iter().find(|(index, _)| *index == 0).map(|(_, text)| text.clone());
        let lines: Vec<String> = text
            .unwrap_or_default()
            .lines()
            .map(|line| line.trim().to_owned())
            .filter(|line| !line.is_empty())
            .collect();
        (lines.join("|"), code.macros.into_iter().map(|(name, of)| (name, of.body)).collect())
    }

    #[test]
    fn branches_follow_the_macros_that_the_files_define() {
        for (text, expected) in [
            ("#if 0\na\n#else\nb\n#endif", "b"),
            ("#ifndef X\na\n#endif\n#ifdef X\nb\n#elif !defined(X) && 1\nc\n#else\nd\n#endif", "a|c"),
            ("#define N 4 // four\n#if N > 3 /* x */ \\\n && defined N\na\n#endif", "#define N 4 // four|a"),
            ("#if __CUDA_ARCH__ >= 600\na\n#else\nb\n#endif", "a|b"),
            ("#if defined(__CUDACC__) || 1\na\n#else\nb\n#endif", "a"),
            ("#if 1\n#if 0\na\n#endif\nb\n#else\n#if 1\nc\n#endif\n#endif", "b"),
            ("#if FOO(3)\na\n#endif\nb", "a|b"),
            ("#endif\na\n#else\nb", "a|b"),
            ("#define A (A == A)\n#if A\na\n#endif", "#define A (A == A)|a"),
        ] {
            assert_eq!(active(&[("a.cu", text)]).0, expected, "{text}");
        }
    }

    #[test]
    fn macros_of_included_files_count() {
        let (text, macros) = active(&[
            ("d/a.cu", "#include \"x/b.cuh\"\n#include <c.h>\n#include <string.h>\n#if SIZE == 8\nyes\n#endif\n"),
            (
                "d/x/b.cuh",
                "#ifndef B\n#define B\n#define SIZE 8\n#define UP(a, b) (((a) + (b) - 1) / \\\n (b))\n#endif\n",
            ),
            ("d/c.h", "#define OTHER 1\n"),
            // It is in none of the folders.
            ("other/string.h", "#define WRONG 1\n"),
        ]);
        assert_eq!(text, "yes");
        let expected = [("B", ""), ("OTHER", "1"), ("SIZE", "8"), ("UP", "(((a) + (b) - 1) /   (b))")];
        assert_eq!(macros, expected.map(|(name, body)| (name.to_owned(), body.to_owned())));
    }

    #[test]
    fn macros_of_the_command_line_come_first_and_paths_tell_files_apart() {
        let own = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let files = [
            own(
                "d/a.cu",
                "#include \"b.h\"\n#include \"x/b.h\"\n#include <y/b.h>\n#include \"no.h\"\n#include <vector>\n",
            ),
            own("x/b.h", "#ifdef GIVEN\n#define X GIVEN\n#endif"),
            own("d/b.h", "#define HERE"),
            own("z/y/b.h", "#define Y"),
        ];
        let folders = ["z/".to_owned()];
        let code = ActiveCode::new(&files, 0, &folders, &[own("GIVEN", "2")]);
        let macros: Vec<(&str, &str)> =
            code.macros.iter().map(|(name, of)| (name.as_str(), of.body.as_str())).collect();
        assert_eq!(macros, [("GIVEN", "2"), ("HERE", ""), ("X", "GIVEN"), ("Y", "")]);
        assert_eq!(Vec::from_iter(&code.missing), ["no.h"]);
    }

    #[test]
    fn files_that_include_each_other_end() {
        let (text, _) = active(&[("a.h", "#include \"b.h\"\na"), ("b.h", "#include \"a.h\"\nb")]);
        assert_eq!(text, "a");
    }
}
