//! Source texts -> where their host code defines names, allocates memory, calls functions and
//! launches kernels, by name.
//!
//! A reader of text that stands for a compiler: it takes the first or nearest of several
//! possible meanings. What comes of it is a proposal to the user and nothing else.

use super::active_code::{ActiveCode, Macro, Macros};
use super::host_index::Indexer;
use super::host_nodes::{LONGEST, last_name};
use super::host_syntax::parse_host_code;
use crate::diag::Source;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use tree_sitter::{Node, Tree};

/// Host code of several files.
pub struct HostProgram {
    pub(super) files: Vec<HostFile>,
    units: Vec<Unit>,
    pub(super) definitions: HashMap<String, Vec<Definition>>,
    pub(super) declarations: HashMap<String, Vec<Declaration>>,
    pub(super) memory: HashMap<String, Vec<Memory>>,
    pub(super) functions: HashMap<String, Vec<FilePlace>>,
    /// The bytes of the functions of each file, in order.
    pub(super) function_bytes: Vec<Vec<Range<usize>>>,
    pub(super) calls: HashMap<String, Vec<FilePlace>>,
    /// `typedef` and `using`.
    pub(super) aliases: HashMap<String, String>,
    /// The types that enumerations are kept in.
    pub(super) enumerations: HashMap<String, String>,
    pub(super) structures: HashMap<String, Vec<Structure>>,
    pub(super) launches: HashMap<String, Vec<FilePlace>>,
    /// The launches by a parameter, found when they are asked for.
    pub(super) parameter_launches: OnceCell<Vec<ParameterLaunch>>,
    /// The first launch of each kernel that is not compiled, as messages name it.
    left_out: HashMap<String, String>,
}

/// A source with what it includes.
struct Unit {
    macros: Macros,
    /// Numbers of its files.
    files: BTreeSet<usize>,
    /// Files that it includes with quotes and that are not there.
    missing: BTreeSet<String>,
}

/// A structure where it is defined.
pub(super) struct Structure {
    pub file: usize,
    /// With the names of the classes around it: `Force::Sizes`.
    pub name: String,
    pub fields: Vec<StructureField>,
    /// Whether a function defines it for itself.
    pub is_local: bool,
    /// Whether the fields share their memory.
    pub is_union: bool,
    /// Whether the types of the fields alone tell where each is.
    pub is_plain: bool,
}

/// A field of a structure.
#[derive(Clone)]
pub(super) struct StructureField {
    pub name: String,
    pub kind: String,
    pub is_public: bool,
}

pub(super) struct HostFile {
    pub path: String,
    /// What is not compiled is blank.
    pub text: String,
    pub tree: Tree,
    unit: usize,
}

/// A node: its file and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilePlace {
    pub file: usize,
    pub range: Range<usize>,
}

/// A launch of the kernel that a parameter of the function around it names.
pub(super) struct ParameterLaunch {
    pub place: FilePlace,
    /// The function's name.
    pub function: String,
    /// The number of the parameter.
    pub parameter: usize,
    /// Whether it is `kernel<<<...>>>`, not a launch by address.
    pub is_by_name: bool,
}

/// A value that a variable is given.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    /// The value, or the arguments of a constructor.
    pub value: FilePlace,
    /// Whether `value` is all of it: not for `n += 2`, `++n` and `scanf("%d", &n)`.
    pub is_whole: bool,
    /// Where it takes effect: what a `for` does between its turns follows its body.
    pub at: usize,
    /// The branch or the body of a loop around it.
    pub branch: Option<Range<usize>>,
    /// What is assigned, as written: `n`, `grid.x`, `params->n`.
    pub target: String,
    /// Where a declared name is in scope; empty for an assignment.
    pub scope: Option<Range<usize>>,
    /// The first byte of the function around it.
    pub function: Option<usize>,
}

/// A variable or a parameter with its type.
#[derive(Clone, Debug)]
pub(super) struct Declaration {
    pub file: usize,
    pub scope: Range<usize>,
    /// With `*` for each level of pointers.
    pub kind: String,
}

/// A call that gives a variable memory, or copies from it or to it.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    pub call: FilePlace,
    /// The variable as written: `x`, `p->data`.
    pub target: String,
    pub bytes: MemoryBytes,
    pub function: Option<usize>,
}

/// What says how much memory a call means.
#[derive(Clone, Debug)]
pub(super) enum MemoryBytes {
    /// The arguments with these numbers, multiplied.
    Arguments(Vec<usize>),
    /// Elements of a type.
    Elements { count: Range<usize>, element: String },
    /// As much as another variable has, as written.
    Of(String),
    /// At least this: an argument of a copy.
    Copied(usize),
}

impl HostProgram {
    /// Reads files; each is a source of its own unless one before it includes it. The command line
    /// gives the folders of includes with angle brackets, and macros.
    pub fn new(files: &[(String, String)], folders: &[String], macros: &[(String, String)]) -> Self {
        let mut program = Self {
            files: Vec::new(),
            units: Vec::new(),
            definitions: HashMap::new(),
            declarations: HashMap::new(),
            memory: HashMap::new(),
            functions: HashMap::new(),
            function_bytes: Vec::new(),
            calls: HashMap::new(),
            aliases: HashMap::new(),
            enumerations: HashMap::new(),
            structures: HashMap::new(),
            launches: HashMap::new(),
            parameter_launches: OnceCell::new(),
            left_out: HashMap::new(),
        };
        // The number that each text has as a file, if it can be parsed.
        let mut numbers: BTreeMap<usize, Option<usize>> = BTreeMap::new();
        for root in 0..files.len() {
            if numbers.contains_key(&root) {
                continue;
            }
            let code = ActiveCode::new(files, root, folders, macros);
            for launch in &code.left_out {
                let (path, text) = &files[launch.file];
                let line = text[..launch.at].matches('\n').count() + 1;
                let place = format!("in line {line} of '{path}' is left out by `{}`", launch.directive);
                program.left_out.entry(launched_name(&text[..launch.at]).to_owned()).or_insert(place);
            }
            let mut own = BTreeSet::new();
            for (index, text) in code.texts.into_iter().rev() {
                let number = numbers.entry(index).or_insert_with(|| program.add_file(&files[index].0, text));
                own.extend(*number);
            }
            program.units.push(Unit { macros: code.macros, files: own, missing: code.missing });
        }
        for file in 0..program.files.len() {
            program.function_bytes.push(Vec::new());
            Indexer::new(&mut program, file).index();
        }
        program
    }

    /// Parses a file; returns its number.
    fn add_file(&mut self, path: &str, text: String) -> Option<usize> {
        let tree = parse_host_code(&text)?;
        self.files.push(HostFile { path: path.to_owned(), text, tree, unit: self.units.len() });
        Some(self.files.len() - 1)
    }

    /// The text of a file; what is not compiled is blank.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    fn unit(&self, file: usize) -> Option<&Unit> {
        self.units.get(self.files.get(file)?.unit)
    }

    /// A macro, by the file's own compile first.
    pub(super) fn macro_of(&self, file: usize, name: &str) -> Option<&Macro> {
        self.unit(file).into_iter().chain(&self.units).find_map(|unit| unit.macros.get(name))
    }

    /// A structure, by the file's own compile first.
    pub(super) fn structure(&self, file: usize, name: &str) -> Option<&Structure> {
        let own = self.unit(file);
        let name: String = name.split_whitespace().collect();
        let rank = |of: &&Structure| {
            let is_named =
                of.name.strip_suffix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with(':'));
            (!own.is_some_and(|unit| unit.files.contains(&of.file)), !is_named)
        };
        let all = self.structures.get(name.rsplit("::").next()?)?;
        all.iter().min_by_key(rank)
    }

    /// The type that an enumeration of this name is kept in.
    pub(super) fn enumeration(&self, name: &str) -> Option<&str> {
        self.enumerations.get(name.rsplit("::").next()?.trim()).map(String::as_str)
    }

    /// Where a launch of a kernel is left out, and by what.
    pub fn left_out(&self, kernel: &str) -> Option<&str> {
        self.left_out.get(kernel).map(String::as_str)
    }

    /// The files that a file's compile includes with quotes and that are not there.
    pub fn missing_files(&self, path: &str) -> Vec<&str> {
        let file = self.files.iter().position(|file| file.path == path);
        let unit = file.and_then(|file| self.unit(file));
        unit.into_iter().flat_map(|unit| &unit.missing).map(String::as_str).collect()
    }

    /// The smallest node with these bytes.
    pub(super) fn node(&self, place: &FilePlace) -> Option<Node<'_>> {
        let tree = &self.files.get(place.file)?.tree;
        tree.root_node().descendant_for_byte_range(place.range.start, place.range.end)
    }

    pub(super) fn slice(&self, place: &FilePlace) -> &str {
        self.files.get(place.file).and_then(|file| file.text.get(place.range.clone())).unwrap_or("")
    }

    /// The line and the file of a place, as messages have it.
    pub(super) fn source(&self, place: &FilePlace) -> (String, u32) {
        let Some(file) = self.files.get(place.file) else { return (String::new(), 0) };
        let source = Source::new(file.path.clone(), file.text.as_bytes());
        (file.path.clone(), source.line(place.range.start))
    }

    /// The definition of the function around a place.
    pub(super) fn function_around(&self, file: usize, at: usize) -> Option<Node<'_>> {
        let functions = self.function_bytes.get(file)?;
        let after = functions.partition_point(|bytes| bytes.start <= at);
        let innermost = functions[..after].iter().rev().take(NESTED_FUNCTIONS).find(|bytes| at <= bytes.end)?;
        let node = self.node(&FilePlace { file, range: innermost.clone() })?;
        (node.kind() == "function_definition").then_some(node)
    }
}

/// How many functions are within others, as methods of local structures are.
const NESTED_FUNCTIONS: usize = 16;

/// The name that a text ends with before template arguments: `k` of `k<float, (1 > 0)>`.
pub(super) fn launched_name(text: &str) -> &str {
    let mut head = text.trim_end();
    if head.ends_with('>') {
        let (mut depth, mut parentheses) = (0, 0);
        let open = head.char_indices().rev().take(LONGEST).find(|&(_, c)| {
            parentheses += i32::from(c == ')') - i32::from(c == '(');
            if parentheses == 0 {
                depth += i32::from(c == '>') - i32::from(c == '<');
            }
            depth == 0
        });
        head = open.map_or("", |(at, _)| head[..at].trim_end());
    }
    last_name(head)
}
