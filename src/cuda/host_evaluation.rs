//! An expression of host code and where it stands -> its value, as far as the text tells.
//!
//! Of several callers of a function the first whose argument has a value counts. What no text
//! tells may be assumed: each name then has one value throughout, and is listed. So is a name that
//! another run of the program may give another value.

use super::host_callers::parameter_names;
use super::host_nodes::{arguments, called_name, last_name};
use super::host_number::{Number, apply_binary, parse_literal};
use super::host_program::{FilePlace, HostProgram};
use super::launch_argument::BufferBytes;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use tree_sitter::{Node, Parser};

/// Where an expression stands, and what its function's parameters are.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub file: usize,
    pub at: usize,
    bindings: Vec<(String, Number)>,
    depth: u32,
}

/// How deep names, calls and callers lead to others.
const DEEPEST: u32 = 24;

/// The most expressions that are looked at for the shape, the buffers and the numbers of a launch.
const MOST_STEPS: u32 = 50_000;

/// What text that is parsed, or searched for in all files, counts as.
const COSTLY: u32 = 50;

/// The most bytes of an assumed name.
const LONGEST_NAME: usize = 40;

/// File, first byte of the function, name and assumption.
type ParameterKey = (usize, Option<usize>, String, Option<i64>);

/// What is known of one launch, and what was assumed for it.
pub struct Evaluation<'p> {
    pub(super) program: &'p HostProgram,
    /// What names without a value are taken for; `None` if nothing is assumed.
    assumption: Cell<Option<i64>>,
    assumed: RefCell<BTreeMap<String, i64>>,
    /// Names that a branch may give another value: listed, and no value of a namesake elsewhere.
    guessed: RefCell<BTreeMap<String, i64>>,
    /// Names that have other values than the text gives them.
    replaced: BTreeMap<String, i64>,
    /// Names that the text gives a number, and those that were assumed.
    leaves: RefCell<BTreeMap<String, i64>>,
    /// Those of the grid.
    of_grid: RefCell<BTreeMap<String, i64>>,
    /// Names whose definitions elsewhere are looked at.
    active: RefCell<BTreeSet<String>>,
    /// Names without known bytes, by file, place and name, with the depth that did not suffice.
    without_bytes: RefCell<HashMap<(usize, usize, String), u32>>,
    /// Names to which callers give no value, with the depth that did not suffice.
    without_value: RefCell<HashMap<ParameterKey, u32>>,
    /// Whether a value was taken that another run may not have.
    is_choice: Cell<bool>,
    /// Names whose values are looked for: they are listed in the place of a choice.
    names_noted: Cell<u32>,
    steps: Cell<u32>,
    /// The call of a function that a launch is of: other callers of that function do not count.
    caller: Option<&'p FilePlace>,
}

/// What `search` finds for a key, unless it found nothing before with as many steps left.
fn once<K: Eq + Hash, T>(
    without: &RefCell<HashMap<K, u32>>,
    key: K,
    depth: u32,
    search: impl FnOnce() -> Option<T>,
) -> Option<T> {
    if without.borrow().get(&key).is_some_and(|known| *known >= depth) {
        return None;
    }
    let found = search();
    if found.is_none() {
        without.borrow_mut().insert(key, depth);
    }
    found
}

impl Scope {
    pub fn new(place: &FilePlace) -> Self {
        Self { file: place.file, at: place.range.start, bindings: Vec::new(), depth: DEEPEST }
    }

    /// The same, one step further away; `None` if that is too far.
    pub fn deeper(&self) -> Option<Self> {
        Some(Self { depth: self.depth.checked_sub(1)?, ..self.clone() })
    }

    /// Another place, one step further away.
    pub fn moved(&self, place: &FilePlace) -> Option<Self> {
        Some(Self { file: place.file, at: place.range.start, bindings: Vec::new(), depth: self.depth.checked_sub(1)? })
    }
}

impl<'p> Evaluation<'p> {
    pub fn new(program: &'p HostProgram) -> Self {
        Self::with(program, BTreeMap::new())
    }

    /// Evaluates as if these names had these values.
    pub fn with(program: &'p HostProgram, replaced: BTreeMap<String, i64>) -> Self {
        let (assumption, assumed, leaves) = (Cell::new(None), RefCell::default(), RefCell::default());
        let (of_grid, active, is_choice, steps) =
            (RefCell::default(), RefCell::default(), Cell::new(false), Cell::new(MOST_STEPS));
        let (guessed, names_noted) = (RefCell::default(), Cell::new(0));
        let (without_bytes, without_value) = (RefCell::default(), RefCell::default());
        Self {
            program,
            assumption,
            assumed,
            guessed,
            replaced,
            leaves,
            of_grid,
            active,
            without_bytes,
            without_value,
            is_choice,
            names_noted,
            steps,
            caller: None,
        }
    }

    /// Has only one call of a function count: the one that the launch comes from.
    pub(super) fn called_from(self, caller: Option<&'p FilePlace>) -> Self {
        Self { caller, ..self }
    }

    pub(super) fn caller(&self) -> Option<&'p FilePlace> {
        self.caller
    }

    /// Returns the names that values came from since the last call of it.
    pub fn take_leaves(&self) -> BTreeMap<String, i64> {
        self.leaves.take()
    }

    /// From now on names without a value have this one, unless they have another already.
    pub fn assume(&self, value: Option<i64>) {
        if self.assumption.replace(value) != value {
            self.without_bytes.take();
        }
    }

    /// The names that have assumed values.
    pub fn assumed(&self) -> Vec<(String, i64)> {
        let mut all = self.guessed.borrow().clone();
        all.extend(self.assumed.borrow().clone());
        all.into_iter().collect()
    }

    /// Forgets names that were assumed, but for these.
    pub(super) fn keep_assumed(&self, names: &[(String, i64)]) {
        for map in [&self.assumed, &self.guessed] {
            map.borrow_mut().retain(|name, _| names.iter().any(|(kept, _)| kept == name));
        }
    }

    /// What follows without further assumptions.
    pub(super) fn sure<T>(&self, value: impl FnOnce() -> T) -> T {
        let assumption = self.assumption.replace(None);
        let found = value();
        self.assumption.set(assumption);
        found
    }

    /// Notes names again that were taken.
    pub(super) fn add_leaves(&self, names: BTreeMap<String, i64>) {
        self.leaves.borrow_mut().extend(names);
    }

    /// Takes the names that values came from for those of the grid.
    pub(super) fn keep_grid_leaves(&self) {
        self.of_grid.replace(self.leaves.take());
    }

    /// Whether the grid comes from one of these names.
    pub(super) fn is_of_grid(&self, names: &BTreeMap<String, i64>) -> bool {
        names.keys().any(|name| self.of_grid.borrow().contains_key(name))
    }

    /// Allows as many steps as at first.
    pub(super) fn renew_steps(&self) {
        self.steps.set(MOST_STEPS);
        self.without_bytes.take();
        self.without_value.take();
    }

    /// The bytes that `search` finds for a name, unless it found none there before. Callers that
    /// call each other lead to the same place over and over.
    pub(super) fn bytes_once(
        &self,
        name: &str,
        scope: &Scope,
        search: impl FnOnce() -> Option<BufferBytes>,
    ) -> Option<BufferBytes> {
        once(&self.without_bytes, (scope.file, scope.at, name.to_owned()), scope.depth, search)
    }

    /// The value that `search` finds with callers for a name, unless it found none there before with
    /// the same assumption.
    fn value_once(&self, name: &str, scope: &Scope, search: impl FnOnce() -> Option<Number>) -> Option<Number> {
        // A name whose definitions are being looked at has no value in here, but may have one elsewhere.
        if !self.active.borrow().is_empty() {
            return search();
        }
        let function = self.program.function_around(scope.file, scope.at).map(|function| function.start_byte());
        let key = (scope.file, function, name.to_owned(), self.assumption.get());
        once(&self.without_value, key, scope.depth, search)
    }

    pub(super) fn step(&self) -> Option<()> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        Some(())
    }

    /// A step that takes as long as many others.
    pub(super) fn costly_step(&self) -> Option<()> {
        self.steps.set(self.steps.get().checked_sub(COSTLY)?);
        Some(())
    }

    /// The value of a node of a file.
    pub(super) fn value_at(&self, place: &FilePlace, scope: &Scope) -> Option<Number> {
        let text = &self.program.files.get(place.file)?.text;
        self.value(self.program.node(place)?, text, scope)
    }

    /// The value of an expression; `text` is what the node is of.
    pub(super) fn value(&self, node: Node<'_>, text: &str, scope: &Scope) -> Option<Number> {
        self.step()?;
        let scope = &scope.deeper()?;
        let slice = |node: Node<'_>| &text[node.byte_range()];
        let field = |name: &str| node.child_by_field_name(name);
        match node.kind() {
            "number_literal" => parse_literal(slice(node)),
            "true" => Some(Number::Int(1)),
            "false" => Some(Number::Int(0)),
            "char_literal" => {
                let inner = slice(node).strip_prefix('\'')?.strip_suffix('\'')?;
                let mut characters = inner.chars();
                let first = characters.next().filter(|&c| c != '\\')?;
                characters.next().is_none().then_some(Number::Int(i64::from(u32::from(first))))
            }
            "parenthesized_expression" | "argument_list" | "initializer_list" if node.named_child_count() == 1 => {
                self.value(node.named_child(0)?, text, scope)
            }
            "cast_expression" => {
                let value = self.value(field("value")?, text, scope)?;
                Some(self.converted(value, slice(field("type")?), scope.file))
            }
            "unary_expression" => {
                let value = self.value(field("argument")?, text, scope)?;
                match (slice(field("operator")?), value) {
                    ("-", Number::Int(value)) => Some(Number::Int(value.checked_neg()?)),
                    ("-", Number::Float(value)) => Some(Number::Float(-value)),
                    ("+", value) => Some(value),
                    ("!", value) => Some(Number::Int(i64::from(value.as_f64() == 0.0))),
                    ("~", Number::Int(value)) => Some(Number::Int(!value)),
                    _ => None,
                }
            }
            "binary_expression" => {
                let (left, right) =
                    (self.value(field("left")?, text, scope)?, self.value(field("right")?, text, scope)?);
                apply_binary(slice(field("operator")?), left, right)
            }
            "conditional_expression" => {
                let (condition, yes, no) = (field("condition")?, field("consequence")?, field("alternative")?);
                match self.sure(|| self.value(condition, text, scope)) {
                    Some(condition) if condition.as_f64() == 0.0 => self.value(no, text, scope),
                    Some(_) => self.value(yes, text, scope),
                    None => {
                        let sure = [yes, no].map(|part| self.sure(|| self.value(part, text, scope)));
                        self.is_choice.set(self.is_choice.get() || sure[0] != sure[1]);
                        let [yes_value, no_value] = sure.map(|value| value.filter(|value| value.as_f64() > 0.0));
                        let value = yes_value.or(no_value).or_else(|| self.value(yes, text, scope))?;
                        // One that stands in the launch itself is listed as it is written.
                        if let (Number::Int(value), 0) = (value, self.names_noted.get())
                            && sure[0] != sure[1]
                        {
                            let whole: String = slice(node).split_whitespace().collect();
                            let is_short = whole.len() <= LONGEST_NAME;
                            let name = if is_short { whole } else { "a choice by ?:".to_owned() };
                            self.guessed.borrow_mut().insert(name, value);
                        }
                        Some(value)
                    }
                }
            }
            "sizeof_expression" => {
                let kind = field("type").or_else(|| field("value"))?;
                let kind = slice(kind).trim_start_matches('(').trim_end_matches(')');
                let declared = self.declared_type(kind.trim(), scope);
                let pointed = kind.trim().strip_prefix('*').and_then(|name| self.declared_type(name.trim(), scope));
                let pointed = pointed.and_then(|kind| kind.trim_end().strip_suffix('*').map(str::to_owned));
                let kind = pointed.or(declared).unwrap_or_else(|| kind.to_owned());
                Some(Number::Int(self.size_of(&self.in_scope(&kind, scope), scope.file)?))
            }
            "call_expression" => self.call(node, text, scope),
            "identifier" => self.named(slice(node), slice(node), scope),
            "qualified_identifier" | "field_expression" => {
                let whole: String = slice(node).split_whitespace().collect();
                self.named(&whole, last_name(&whole), scope)
            }
            "subscript_expression" => {
                let whole: String = slice(node).split_whitespace().collect();
                self.take_assumed(&whole)
            }
            _ => None,
        }
    }

    /// The value of an expression that is text.
    pub(super) fn value_of_text(&self, code: &str, scope: &Scope) -> Option<Number> {
        self.costly_step()?;
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).ok()?;
        let text = format!("auto value = ({code});");
        let tree = parser.parse(text.as_bytes(), None)?;
        let start = text.find('(')?;
        let node = tree.root_node().descendant_for_byte_range(start, text.len() - 1)?;
        self.value(node, &text, scope)
    }

    /// The value of a call: a cast, a function of C, a macro or one of the program's functions.
    fn call(&self, node: Node<'_>, text: &str, scope: &Scope) -> Option<Number> {
        let function = node.child_by_field_name("function")?;
        let name = called_name(function, text);
        let given = arguments(node);
        let value = |at: usize| self.value(*given.get(at)?, text, scope);
        if name.ends_with("_cast") || self.scalar_named(name, scope.file).is_some() {
            let whole = &text[function.byte_range()];
            let kind = whole.split_once('<').and_then(|(_, kind)| kind.strip_suffix('>')).unwrap_or(name);
            return Some(self.converted(value(0)?, kind, scope.file));
        }
        if let Some(found) = self.program.macro_of(scope.file, name)
            && let Some(parameters) = &found.parameters
        {
            let values: Option<Vec<Number>> = (0..given.len()).map(value).collect();
            let bindings = parameters.iter().cloned().zip(values?).chain(scope.bindings.iter().cloned());
            return self.value_of_text(&found.body, &Scope { bindings: bindings.collect(), ..scope.clone() });
        }
        match (name, given.len()) {
            ("ceil" | "ceilf", 1) => Some(Number::Float(value(0)?.as_f64().ceil())),
            ("floor" | "floorf", 1) => Some(Number::Float(value(0)?.as_f64().floor())),
            ("round" | "roundf" | "rint" | "rintf", 1) => Some(Number::Float(value(0)?.as_f64().round())),
            ("fabs" | "fabsf", 1) => Some(Number::Float(value(0)?.as_f64().abs())),
            ("abs", 1) => match value(0)? {
                Number::Int(value) => value.checked_abs().map(Number::Int),
                Number::Float(value) => Some(Number::Float(value.abs())),
            },
            ("sqrt" | "sqrtf", 1) => Some(Number::Float(value(0)?.as_f64().sqrt())),
            ("log2" | "log2f", 1) => Some(Number::Float(value(0)?.as_f64().log2())),
            ("pow" | "powf", 2) => Some(Number::Float(value(0)?.as_f64().powf(value(1)?.as_f64()))),
            ("min" | "fmin" | "fminf" | "MIN", 2) => {
                let (a, b) = (value(0)?, value(1)?);
                Some(if b.as_f64() < a.as_f64() { b } else { a })
            }
            ("max" | "fmax" | "fmaxf" | "MAX", 2) => {
                let (a, b) = (value(0)?, value(1)?);
                Some(if b.as_f64() > a.as_f64() { b } else { a })
            }
            _ => self.returned(name, &given, text, scope).or_else(|| {
                // With what tells it from other calls, if that is short.
                let whole: String = text[node.byte_range()].split_whitespace().collect();
                let is_short = whole.len() <= LONGEST_NAME && !whole.contains(['"', '\'']);
                self.take_assumed(&if is_short { whole } else { format!("{name}(...)") })
            }),
        }
    }

    /// What a function of the program returns that is one `return`.
    fn returned(&self, name: &str, given: &[Node<'_>], text: &str, scope: &Scope) -> Option<Number> {
        let places = self.program.functions.get(name)?;
        let place = places.iter().find(|place| place.file == scope.file).or(places.first())?;
        let node = self.program.node(place)?;
        let own = &self.program.files.get(place.file)?.text;
        let mut cursor = node.walk();
        let body = node.child_by_field_name("body")?;
        let last = body.named_children(&mut cursor).filter(|node| node.kind() != "comment").last()?;
        let result = last.named_child(0).filter(|_| last.kind() == "return_statement")?;
        let names = parameter_names(node, own);
        let values: Option<Vec<Number>> = given.iter().map(|argument| self.value(*argument, text, scope)).collect();
        let bindings: Vec<(String, Number)> = names.into_iter().zip(values?).collect();
        let inside = FilePlace { file: place.file, range: result.byte_range() };
        self.value(result, own, &Scope { bindings, ..scope.moved(&inside)? })
    }

    /// The value of a name, or of a field as it is written.
    pub(super) fn named(&self, whole: &str, name: &str, scope: &Scope) -> Option<Number> {
        if let Some((_, value)) = scope.bindings.iter().find(|(bound, _)| bound == whole) {
            return Some(*value);
        }
        if let Some(value) = self.replaced.get(whole) {
            return Some(Number::Int(*value));
        }
        if self.assumed.borrow().contains_key(whole) {
            return self.take_assumed(whole);
        }
        // `block.x`
        if let Some((base, extent)) = whole.rsplit_once('.').filter(|(_, extent)| ["x", "y", "z"].contains(extent))
            && let Some(extents) = self.extents_named(base, scope)
        {
            return Some(Number::Int(extents[usize::from(extent.as_bytes()[0] - b'x')]));
        }
        let elsewhere = || {
            let of_macro = || {
                let found = self.program.macro_of(scope.file, name).filter(|found| found.parameters.is_none())?;
                let value = self.value_of_text(&found.body, &scope.deeper()?)?;
                self.note_leaf(whole, &found.body, value);
                Some(value)
            };
            of_macro()
                .or_else(|| {
                    self.value_once(whole, scope, || {
                        let of_parameter =
                            || self.of_parameter(whole, scope, &|place, scope| self.value_at(place, scope));
                        let of_member =
                            || self.of_member(whole, scope, &|of, scope| self.named(of, last_name(of), scope));
                        let of_list = || {
                            let place = self.listed_member(whole, scope)?;
                            self.value_at(&place, &scope.moved(&place)?)
                        };
                        let found = self.noted(whole, of_parameter).or_else(|| self.noted(whole, of_member));
                        found.or_else(|| self.noted(whole, of_list))
                    })
                })
                .or_else(|| self.of_template_parameter(whole, scope))
        };
        self.assigned(whole, name, scope, &elsewhere)
    }

    /// What `search` finds for a name, unless it is under way: values of fields go round in
    /// circles, as `a.n = n` after `n = a.n`.
    pub(super) fn unless_active<T>(&self, name: &str, search: impl FnOnce() -> T) -> Option<T> {
        if !self.active.borrow_mut().insert(name.to_owned()) {
            return None;
        }
        let found = search();
        self.active.borrow_mut().remove(name);
        Some(found)
    }

    /// The value of a name, which is listed if another run may have another one.
    pub(super) fn noted(&self, name: &str, value: impl FnOnce() -> Option<Number>) -> Option<Number> {
        let before = self.is_choice.replace(false);
        self.names_noted.set(self.names_noted.get() + 1);
        let value = value();
        self.names_noted.set(self.names_noted.get() - 1);
        if self.is_choice.replace(before)
            && let Some(value) = value
        {
            self.note_guess(name, value);
        }
        value
    }

    /// Lists a name among those with assumed values.
    pub(super) fn note_guess(&self, name: &str, value: Number) {
        if let Number::Int(value) = value
            && name.len() <= LONGEST_NAME
        {
            self.guessed.borrow_mut().insert(name.to_owned(), value);
            self.leaves.borrow_mut().insert(name.to_owned(), value);
        }
    }

    /// Notes that a name has the value of a literal.
    pub(super) fn note_leaf(&self, name: &str, code: &str, value: Number) {
        if let (Number::Int(value), Some(_)) = (value, parse_literal(code.trim_matches(['(', ')', ' ']))) {
            self.leaves.borrow_mut().insert(name.to_owned(), value);
        }
    }

    /// The value of a parameter of the template around a place, by those who name it.
    fn of_template_parameter(&self, name: &str, scope: &Scope) -> Option<Number> {
        let (text, place) = self.template_argument(name, scope)?;
        self.value_of_text(&text, &scope.moved(&place)?)
    }

    pub(super) fn take_assumed(&self, name: &str) -> Option<Number> {
        let is_name = name.len() <= LONGEST_NAME && !name.is_empty() && !name.contains(['"', '\'']);
        let known = self.assumed.borrow().get(name).copied();
        let value = known.or(self.assumption.get().filter(|_| is_name))?;
        let value = self.replaced.get(name).copied().unwrap_or(value);
        if self.assumed.borrow_mut().insert(name.to_owned(), value).is_none() {
            self.without_value.take();
        }
        self.leaves.borrow_mut().insert(name.to_owned(), value);
        Some(Number::Int(value))
    }

    fn converted(&self, value: Number, kind: &str, file: usize) -> Number {
        match self.scalar_named(kind, file) {
            Some(scalar) if scalar.is_float() => Number::Float(value.as_f64()),
            Some(_) => Number::Int(value.as_integer()),
            None => value,
        }
    }
}
