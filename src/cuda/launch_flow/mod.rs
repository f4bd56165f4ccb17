//! Host code -> whether the launches of a kernel hang on a macro.
//!
//! What a launch hangs on is followed from its arguments: names to what is assigned to them in their scope, or to what a file defines
//! them as; functions to what they return; parameters to the calls of their function; the kernel into the functions that it is handed to.
//!
//! Where a macro divides the work, a wrong yes leaves work undone, and a wrong no only a faster kernel unfound: so all that may make a
//! grid must follow, and a grid that is cut off at something else does not. Without a preprocessor or types that is a guess still: it
//! errs where a name has two meanings, where a grid hangs on the macro in another way than it should, and where a function whose body is
//! not seen, or a macro, is given the macro's value for something else.

mod variables;

use super::host_code::{File, HostCode};
use super::launch_text::{Assignment, Called, Parameter, Tokens};
use super::tokens::CxxKind;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use variables::Lent;

/// How many names deep, and how many in all, are looked at before none is said to follow.
pub(crate) const DEEPEST: usize = 64;
pub(crate) const MOST: usize = 50_000;

/// How many brackets, and names, deep into each other.
const NESTED: usize = 500;

/// Whether something depends on the macro. `Open`: the answer depends on itself (a cycle).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Not,
    Open,
    Follows,
}

use Verdict::{Follows, Not, Open};

/// Where one must follow.
fn any(found: &[Verdict]) -> Verdict {
    found.iter().copied().max().unwrap_or(Not)
}

/// Where each must follow, but for those that are made of themselves.
pub(crate) fn all(found: &[Verdict]) -> Verdict {
    if found.contains(&Not) { Not } else { any(found) }
}

/// The body that is run, by the brace that opens it, and which of its parameters follow: its own, then those of its template.
pub(crate) type Frame = Option<(usize, u64)>;

/// How many parameters of each kind a frame tells.
const TOLD: usize = 32;

/// What tokens are read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub file: usize,
    pub frame: Frame,
}

/// What is asked once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key<'a> {
    /// A variable by the begin of its scope, and which of its assignments reach a use.
    Variable(Place, usize, &'a str, Option<&'a str>, (usize, usize)),
    /// By all calls of the function with that body.
    Parameter(usize, usize, Parameter),
    Outside(&'a str, Option<&'a str>),
    Result(Place, usize),
}

/// A function or a lambda.
#[derive(Clone, Debug)]
pub(crate) struct Callee {
    pub file: usize,
    pub parameters: Vec<Tokens>,
    pub of_template: Vec<Tokens>,
    pub body: Tokens,
}

/// The arguments of a call, and of its template.
pub(crate) type Arguments = (Vec<Tokens>, Vec<Tokens>);

/// A variable in its scope.
#[derive(Clone, Copy)]
struct Variable<'a> {
    name: &'a str,
    part: Option<&'a str>,
    scope: Tokens,
    parameter: Option<Parameter>,
}

impl HostCode {
    /// The functions of host code by their names, each with its file.
    fn functions_by_name(&self) -> HashMap<&str, Vec<(usize, Tokens)>> {
        let mut found: HashMap<&str, Vec<(usize, Tokens)>> = HashMap::new();
        for (number, file) in self.files.iter().enumerate() {
            for &function in file.functions.iter().filter(|&&(begin, _)| !file.device[begin]) {
                found.entry(file.text(function.0)).or_default().push((number, function));
            }
        }
        found
    }
}

/// Whether a function gives the least of its arguments.
fn gives_least(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("min") || name == "fminf" || name == "minimum"
}

/// What is known of a macro's part in host code.
pub(crate) struct Flow<'a> {
    pub code: &'a HostCode,
    name: &'a str,
    pub divides: bool,
    /// The macros that hang on it.
    pub following: HashSet<&'a str>,
    quoting: HashSet<&'a str>,
    /// Host code's own, each with its file.
    functions: HashMap<&'a str, Vec<(usize, Tokens)>>,
    /// The declarations of a name in a function, what a variable is given and where it is lent, by file and beginning.
    declared: HashMap<(usize, usize, &'a str), Rc<[Tokens]>>,
    assigned: HashMap<(usize, usize, &'a str), Rc<[Assignment<'a>]>>,
    lent: HashMap<(usize, usize, &'a str), Rc<[Lent]>>,
    known: HashMap<Key<'a>, Option<Verdict>>,
    /// What is being asked, each with how deep that is; and the least deep that has been met again meanwhile.
    asked: HashMap<Key<'a>, usize>,
    met: usize,
    pub count: usize,
    /// How many functions deep a kernel is followed.
    pub handed: usize,
    /// How deep what is judged is nested.
    nested: usize,
}

impl<'a> Flow<'a> {
    pub fn new(code: &'a HostCode, name: &'a str, divides: bool) -> Self {
        let quoting = code.quoting_macros();
        Self {
            code,
            name,
            divides,
            following: code.macros_with(name, divides, &quoting),
            quoting,
            functions: code.functions_by_name(),
            declared: HashMap::new(),
            assigned: HashMap::new(),
            lent: HashMap::new(),
            known: HashMap::new(),
            asked: HashMap::new(),
            met: usize::MAX,
            count: 0,
            handed: 0,
            nested: 0,
        }
    }

    pub fn file(&self, place: Place) -> &'a File {
        &self.code.files[place.file]
    }

    /// Where all that a value may be of must follow; any of it, where the macro divides nothing.
    fn together(&self, found: &[Verdict]) -> Verdict {
        if self.divides { all(found) } else { any(found) }
    }

    /// Whether one of these follows.
    pub fn one_of(&mut self, place: Place, ranges: &[Tokens]) -> Verdict {
        let found: Vec<Verdict> = ranges.iter().map(|&range| self.judge(place, range)).collect();
        any(&found)
    }

    fn each_of(&mut self, place: Place, ranges: &[Tokens]) -> Verdict {
        let found: Vec<Verdict> = ranges.iter().map(|&range| self.judge(place, range)).collect();
        self.together(&found)
    }

    /// Asks once; what has been met again further out is asked anew there.
    fn ask(&mut self, key: Key<'a>, answer: impl FnOnce(&mut Self) -> Option<Verdict>) -> Option<Verdict> {
        if let Some(verdict) = self.known.get(&key) {
            return *verdict;
        }
        if let Some(&depth) = self.asked.get(&key) {
            self.met = self.met.min(depth);
            return Some(Open);
        }
        let depth = self.asked.len();
        self.count += 1;
        if depth >= DEEPEST || self.count > MOST {
            return Some(Not);
        }
        let outer = std::mem::replace(&mut self.met, usize::MAX);
        self.asked.insert(key, depth);
        let mut verdict = answer(self);
        self.asked.remove(&key);
        let is_closed = self.met >= depth;
        if is_closed && verdict == Some(Open) {
            verdict = Some(Not);
        }
        if is_closed || verdict == Some(Not) {
            self.known.insert(key, verdict);
        }
        self.met = if is_closed { outer } else { self.met.min(outer) };
        verdict
    }

    /// Whether these tokens hang on the macro.
    pub fn judge(&mut self, place: Place, range: Tokens) -> Verdict {
        if self.nested == NESTED {
            return Not;
        }
        self.nested += 1;
        let verdict = self.judge_parts(place, range);
        self.nested -= 1;
        verdict
    }

    fn judge_parts(&mut self, place: Place, (from, to): Tokens) -> Verdict {
        let file = self.file(place);
        let parts = file.parts((from, to));
        if self.divides && parts.len() > 1 {
            return self.one_of(place, &parts);
        }
        if let Some((question, colon)) = file.conditional((from, to)).filter(|_| self.divides) {
            let arms = [(question + 1, colon), (colon + 1, to)];
            // `blocks < 1 ? 1 : blocks` is one block at least.
            return match arms.map(|arm| file.is_trivial(arm)) {
                [true, false] => self.judge(place, arms[1]),
                [false, true] => self.judge(place, arms[0]),
                _ => self.each_of(place, &arms),
            };
        }
        let (mut found, mut at) = (Not, from);
        while at < to && found != Follows {
            let (verdict, behind) = self.judge_at(place, at);
            found = found.max(verdict);
            at = behind.max(at + 1);
        }
        found
    }

    /// Whether what begins at `at` hangs on it, with the token behind that.
    fn judge_at(&mut self, place: Place, at: usize) -> (Verdict, usize) {
        let file = self.file(place);
        if file.tokens.get(at).is_some_and(|token| token.kind == CxxKind::Name) {
            return self.judge_name(place, at);
        }
        if let Some((_, body)) = file.lambda_at(at) {
            return (self.result(place, body).unwrap_or(Not), body.1 + 1);
        }
        let close = match file.text(at) {
            "(" | "{" => file.closing(at),
            "[" => file.square(at),
            _ => None,
        };
        close.map_or((Not, at + 1), |close| (self.judge(place, (at + 1, close)), close + 1))
    }

    fn judge_name(&mut self, place: Place, at: usize) -> (Verdict, usize) {
        let file = self.file(place);
        let (word, call) = (file.text(at), file.called(at));
        let behind = call.map_or(at, |call| call.close) + 1;
        if word == self.name || self.following.contains(word) {
            return (Follows, behind);
        }
        if let Some(call) = call {
            return (self.call(place, &call), behind);
        }
        if file.is_member(at) {
            return (Not, behind);
        }
        let member = file.part(at);
        let part = member.map(|member| file.text(member));
        let verdict = match part {
            Some(member) if word == "this" => self.outside(member, None),
            _ => self.value(place, at, part),
        };
        (verdict.unwrap_or(Not), member.map_or(behind, |member| member + 1))
    }

    /// Whether what a call gives hangs on it: by what the function returns under these arguments, where that is seen, else by any of them.
    pub fn call(&mut self, place: Place, call: &Called) -> Verdict {
        let file = self.file(place);
        let word = file.text(call.name);
        if self.quoting.contains(word) {
            return Not;
        }
        let given = file.given_to(call);
        let own = &given.0;
        if self.divides {
            match *own.as_slice() {
                [(from, to)] if gives_least(word) && file.text(from) == "{" => {
                    return self.each_of(place, &file.parts((from + 1, to - 1)));
                }
                _ if gives_least(word) => return self.each_of(place, own),
                [value, _, most] if word == "clamp" => return self.each_of(place, &[value, most]),
                _ => {}
            }
        }
        let mut found = Vec::new();
        for callee in self.callees(place, call, own.len()) {
            let frame = self.frame(place, &given, &callee);
            found.extend(self.result(Place { file: callee.file, frame }, callee.body));
        }
        if self.divides && !found.is_empty() {
            return all(&found);
        }
        found.push(self.one_of(place, own));
        found.push(self.one_of(place, &given.1));
        any(&found)
    }

    /// What a call may run: a lambda with that name in its scope, or functions.
    pub fn callees(&mut self, place: Place, call: &Called, given: usize) -> Vec<Callee> {
        let file = self.file(place);
        let declared = if file.is_member(call.name) { None } else { self.declaration(place.file, call.name) };
        let Some((at, _)) = declared else {
            let named = self.functions.get(file.text(call.name)).map_or(&[][..], Vec::as_slice);
            let callees = named.iter().map(|&(number, function)| self.callee(number, function));
            return callees.filter(|callee| self.code.files[callee.file].takes(&callee.parameters, given)).collect();
        };
        let lambda = if file.text(at + 1) == "=" { file.lambda_at(at + 2) } else { None };
        let callee = lambda.map(|(open, body)| Callee {
            file: place.file,
            parameters: open.map_or_else(Vec::new, |open| file.parameters_of(open)),
            of_template: Vec::new(),
            body,
        });
        callee.into_iter().collect()
    }

    /// The function from its name to its end.
    fn callee(&self, number: usize, (begin, end): Tokens) -> Callee {
        let file = &self.code.files[number];
        let parameters = file.parameters(begin).map_or_else(Vec::new, |open| file.parameters_of(open));
        let (of_template, body) = (file.template_parameters(begin), (file.body(begin), end));
        Callee { file: number, parameters, of_template, body }
    }

    /// Which parameters follow where a function is called so.
    pub fn frame(&mut self, place: Place, given: &Arguments, callee: &Callee) -> Frame {
        let mut bits = 0u64;
        for number in 0..callee.parameters.len().min(TOLD) {
            bits |= u64::from(self.argument(place, given, callee, Parameter::Own(number)) != Not) << number;
        }
        for number in 0..callee.of_template.len().min(TOLD) {
            let follows = self.argument(place, given, callee, Parameter::OfTemplate(number)) != Not;
            bits |= u64::from(follows) << (TOLD + number);
        }
        Some((callee.body.0, bits))
    }

    /// Whether what a call gives for a parameter hangs on it: the argument at its place, its default, or any that it may be told from.
    fn argument(&mut self, place: Place, given: &Arguments, callee: &Callee, parameter: Parameter) -> Verdict {
        let (own, of_template) = given;
        let (listed, range, number) = match parameter {
            Parameter::Own(number) => (own, callee.parameters.get(number), number),
            Parameter::OfTemplate(number) => (of_template, callee.of_template.get(number), number),
        };
        let Some(&range) = range else { return Not };
        let file = &self.code.files[callee.file];
        if file.is_pack(range) {
            return self.one_of(place, listed.get(number..).unwrap_or_default());
        }
        if let Some(&argument) = listed.get(number) {
            return self.judge(place, argument);
        }
        if let Some(default) = file.default_of(range) {
            return self.judge(Place { file: callee.file, frame: None }, default);
        }
        // A type is none of the arguments.
        if matches!(file.text(range.0), "typename" | "class") { Not } else { self.one_of(place, own) }
    }

    /// Whether what a function or lambda returns hangs on it; `None` where that is nothing.
    fn result(&mut self, place: Place, body: Tokens) -> Option<Verdict> {
        if !self.divides {
            return self.ask(Key::Result(place, body.0), |flow| Some(flow.judge(place, (body.0 + 1, body.1))));
        }
        self.ask(Key::Result(place, body.0), |flow| {
            let returned = flow.file(place).returns(body);
            (!returned.is_empty()).then(|| flow.each_of(place, &returned))
        })
    }

    /// The declarations of a name in the function that a token is in.
    fn declarations(&mut self, number: usize, at: usize, name: &'a str) -> Rc<[Tokens]> {
        let file = &self.code.files[number];
        let Some(function) = file.function(at) else { return Rc::default() };
        let of_function = self.declared.entry((number, function.0, name));
        Rc::clone(of_function.or_insert_with(|| file.declarations(function, name).into()))
    }

    /// The declaration of the name at `at`, within the function around it, that it is used by there, with the end of its scope.
    pub fn declaration(&mut self, number: usize, at: usize) -> Option<Tokens> {
        let declared = self.declarations(number, at, self.code.files[number].text(at));
        let before = declared.partition_point(|&(begin, _)| begin <= at);
        declared[..before].iter().copied().rfind(|&(_, end)| at <= end)
    }

    /// Whether the name at `at` is that of a variable there.
    pub fn is_hidden(&mut self, number: usize, at: usize) -> bool {
        let file = &self.code.files[number];
        let is_outer = at > 0 && file.text(at - 1) == "::" || file.is_member(at);
        if is_outer || file.launch_mark(at).is_some() {
            return false;
        }
        let is_parameter = |begin: usize| begin < at && file.parameter(begin, file.text(at)).is_some();
        self.declaration(number, at).is_some() || file.function(at).is_some_and(|(begin, _)| is_parameter(begin))
    }
}
