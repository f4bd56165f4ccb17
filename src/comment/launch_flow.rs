//! Host code -> whether the launches of a kernel hang on a macro.
//!
//! What a launch hangs on is followed from its arguments: names to what is assigned to them in their scope, or to what a file defines
//! them as; functions to what they return; parameters to the calls of their function; the kernel into the functions that it is handed to.
//!
//! Where a macro divides the work, a wrong yes leaves work undone, and a wrong no only a faster kernel unfound: so all that may make a
//! grid must follow, and a grid that is cut off at something else does not. Without a preprocessor or types that is a guess still: it
//! errs where a name has two meanings, where a grid hangs on the macro in another way than it should, and where a function whose body is
//! not seen, or a macro, is given the macro's value for something else.

use super::cxx::CxxKind;
use super::host_code::{File, HostCode};
use super::launch_text::{Assignment, Called, Parameter, Tokens};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// How many names deep, and how many in all, are looked at before none is said to follow.
pub(super) const DEEPEST: usize = 64;
pub(super) const MOST: usize = 50_000;

/// How many brackets, and names, deep into each other.
const NESTED: usize = 500;

/// Whether something depends on the macro. `Open`: the answer depends on itself (a cycle).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
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
pub(super) fn all(found: &[Verdict]) -> Verdict {
    if found.contains(&Not) { Not } else { any(found) }
}

/// The body that is run, by the brace that opens it, and which of its parameters follow: its own, then those of its template.
pub(super) type Frame = Option<(usize, u64)>;

/// How many parameters of each kind a frame tells.
const TOLD: usize = 32;

/// What tokens are read in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
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
pub(super) struct Callee {
    pub file: usize,
    pub parameters: Vec<Tokens>,
    pub of_template: Vec<Tokens>,
    pub body: Tokens,
}

/// The arguments of a call, and of its template.
pub(super) type Arguments = (Vec<Tokens>, Vec<Tokens>);

/// A variable in its scope.
#[derive(Clone, Copy)]
struct Variable<'a> {
    name: &'a str,
    part: Option<&'a str>,
    scope: Tokens,
    parameter: Option<Parameter>,
}

impl HostCode {
    /// The macros of whose definitions one, or `each`, has a name, itself or by further macros; none that have one of `quoting`, which may
    /// make a string of it.
    pub(super) fn macros_with<'a>(&'a self, name: &'a str, each: bool, quoting: &HashSet<&str>) -> HashSet<&'a str> {
        let mut by_word: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
        let mut left: HashMap<&str, usize> = HashMap::new();
        let definitions = self.files.iter().flat_map(|file| file.macros.iter().map(move |found| (file, found)));
        for (number, (file, found)) in definitions.enumerate() {
            let defined = file.source.slice(found.name);
            *left.entry(defined).or_default() += 1;
            let is_quoted = found.words.iter().any(|word| quoting.contains(word.as_str()));
            for word in found.words.iter().filter(|_| !is_quoted) {
                by_word.entry(word).or_default().push((number, defined));
            }
        }
        let (mut found, mut seen, mut pending) = (HashSet::new(), HashSet::new(), vec![name]);
        while let Some(word) = pending.pop() {
            for (number, defined) in by_word.remove(word).unwrap_or_default() {
                let count = left.entry(defined).or_default();
                *count = count.saturating_sub(usize::from(seen.insert(number)));
                if (*count == 0 || !each) && found.insert(defined) {
                    pending.push(defined);
                }
            }
        }
        found
    }

    /// The macros that make nothing but strings, or nothing at all, of their parameters.
    fn quoting_macros(&self) -> HashSet<&str> {
        let mut found: HashSet<&str> = HashSet::new();
        loop {
            let count = found.len();
            for file in &self.files {
                let quoting = file.macros.iter().filter(|of| {
                    let is_quoting = |word: &String| found.contains(word.as_str());
                    let has_quoting = of.words.iter().any(is_quoting);
                    let is_known = |word: &String| is_quoting(word) || has_quoting && of.parameters.contains(word);
                    !of.parameters.is_empty() && of.words.iter().all(is_known)
                });
                let names: Vec<&str> = quoting.map(|of| file.source.slice(of.name)).collect();
                found.extend(names);
            }
            if found.len() == count {
                return found;
            }
        }
    }

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
pub(super) struct Flow<'a> {
    pub code: &'a HostCode,
    name: &'a str,
    pub divides: bool,
    /// The macros that hang on it.
    pub following: HashSet<&'a str>,
    quoting: HashSet<&'a str>,
    /// Host code's own, each with its file.
    functions: HashMap<&'a str, Vec<(usize, Tokens)>>,
    /// The declarations of a name in a function, and what a variable is given, by file and beginning.
    declared: HashMap<(usize, usize, &'a str), Rc<[Tokens]>>,
    assigned: HashMap<(usize, usize, &'a str), Rc<[Assignment<'a>]>>,
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

    /// Whether the value of the name used at `at`, or of a part of it, hangs on it; `None` where nothing tells.
    fn value(&mut self, place: Place, at: usize, part: Option<&'a str>) -> Option<Verdict> {
        let file = self.file(place);
        let name = file.text(at);
        if let Some(scope) = self.declaration(place.file, at) {
            return self.variable(place, at, Variable { name, part, scope, parameter: None });
        }
        let parameter = file.function(at).and_then(|(begin, end)| {
            Some(((file.body(begin) + 1, end), file.parameter(begin, name).filter(|_| begin < at)?))
        });
        match parameter {
            Some((scope, parameter)) => {
                self.variable(place, at, Variable { name, part, scope, parameter: Some(parameter) })
            }
            None => self.outside(name, part),
        }
    }

    /// Whether a variable of a function's own hangs on it where it is used at `at`.
    fn variable(&mut self, place: Place, at: usize, variable: Variable<'a>) -> Option<Verdict> {
        let file = self.file(place);
        let Variable { name, part, scope, .. } = variable;
        let declared = self.declarations(place.file, scope.0, name);
        let of_variable = self.assigned.entry((place.file, scope.0, name));
        let assigned = Rc::clone(of_variable.or_insert_with(|| file.assignments(name, scope, &declared).into()));
        let before = assigned.iter().take_while(|found| found.value.1 <= at).count();
        // What is assigned behind comes there in a loop alone.
        let end = if before < assigned.len() { file.block_around(scope.0 + 1, at) } else { None };
        let reaching = end.map_or(before, |end| assigned.iter().take_while(|found| found.at < end).count()).max(before);
        self.ask(Key::Variable(place, scope.0, name, part, (before, reaching)), |flow| {
            let last = (0..before).rev().find(|&number| flow.replaces(place, &assigned[number]));
            let base = if last.is_none() { flow.base(place, &variable) } else { None };
            let reaching = assigned[last.unwrap_or(0)..reaching].iter().map(|found| (place, *found)).collect();
            flow.settled(reaching, part, base).or_else(|| flow.set_by_calls(place, name, scope))
        })
    }

    /// Whether nothing that a variable had before an assignment counts behind it.
    fn replaces(&mut self, place: Place, found: &Assignment) -> bool {
        let is_whole = self.divides && found.is_certain && found.part.is_none() && !found.is_address;
        is_whole && (!found.is_compound || self.judge(place, found.value) == Follows)
    }

    /// Whether what a parameter comes with hangs on it, a function's or a lambda's.
    fn base(&mut self, place: Place, variable: &Variable<'a>) -> Option<Verdict> {
        let file = self.file(place);
        let (callee, parameter, name) = match variable.parameter {
            Some(parameter) => {
                let function = file.function(variable.scope.0)?;
                (self.callee(place.file, function), parameter, Some(function.0))
            }
            None => {
                let (begin, open) = file.lambda_of_parameter(variable.scope.0)?;
                let ((_, body), parameters) = (file.lambda_at(begin)?, file.parameters_of(open));
                let is_it = |&range: &Tokens| range.0 <= variable.scope.0 && variable.scope.0 < range.1;
                let number = parameters.iter().position(is_it)?;
                let named = begin.checked_sub(2).filter(|&name| file.text(name + 1) == "=" && file.is_name(name));
                let callee = Callee { file: place.file, parameters, of_template: Vec::new(), body };
                (callee, Parameter::Own(number), named)
            }
        };
        match (place.frame, name) {
            (Some((body, bits)), _) if body == callee.body.0 => {
                let bit = match parameter {
                    Parameter::Own(number) => number,
                    Parameter::OfTemplate(number) => TOLD + number,
                };
                let is_told = bit < 2 * TOLD && bits >> bit & 1 == 1;
                Some(if is_told { Follows } else { Not })
            }
            (_, Some(name)) => self.by_calls(place.file, name, &callee, parameter),
            // `each(n / per, [&](int blocks) { ... });`
            (_, None) => self.by_taker(place, &callee),
        }
    }

    /// Whether what all calls of the function or lambda named at `name` give for a parameter hangs on it.
    fn by_calls(&mut self, number: usize, name: usize, callee: &Callee, parameter: Parameter) -> Option<Verdict> {
        let file = &self.code.files[number];
        let word = file.text(name);
        // A lambda is called where it is.
        let only = self.declaration(number, name).map(|_| (number, file.function(name)));
        self.ask(Key::Parameter(number, callee.body.0, parameter), |flow| {
            let mut found = Vec::new();
            for (number, file) in flow.code.files.iter().enumerate() {
                let is_seen = |call: &Called| only.is_none_or(|only| only == (number, file.function(call.name)));
                for call in file.calls(word).into_iter().filter(is_seen) {
                    let given = file.given_to(&call);
                    if file.takes(&callee.parameters, given.0.len()) {
                        found.push(flow.argument(Place { file: number, frame: None }, &given, callee, parameter));
                    }
                }
                let is_handed =
                    |at: usize| only.is_none() && !file.device[at] && file.called(at).is_none() && file.is_kept(at);
                let mut handed = file.places(word).iter().filter(|&&at| is_handed(at));
                found.extend(handed.any(|&at| !flow.is_hidden(number, at)).then_some(Not));
            }
            Some(flow.together(&found))
        })
    }

    /// The same for a lambda without a name: what it is called with where it stands, or what the call is given besides that it is handed to.
    fn by_taker(&mut self, place: Place, callee: &Callee) -> Option<Verdict> {
        let file = self.file(place);
        // `[&](int blocks) { ... }(n / per);`
        let behind = callee.body.1 + 1;
        if file.text(behind) == "(" {
            return Some(self.judge(place, (behind + 1, file.closing(behind)?)));
        }
        let call = file.calls_around(callee.parameters.first()?.0).first().copied()?;
        let (own, of_template) = file.given_to(&call);
        let others: Vec<Tokens> =
            own.into_iter().filter(|range| range.1 <= callee.body.0 || callee.body.1 < range.0).collect();
        Some(self.one_of(place, &others).max(self.one_of(place, &of_template)))
    }

    /// Whether what a variable has from these assignments, and from what it comes with, hangs on it; `None` where nothing tells.
    fn settled(
        &mut self,
        found: Vec<(Place, Assignment<'a>)>,
        part: Option<&'a str>,
        base: Option<Verdict>,
    ) -> Option<Verdict> {
        // Of what a launcher of the runtime is given, the grid alone counts.
        let has_grid = found.iter().any(|(_, found)| found.part == Some("gridDim"));
        let wanted = part.or(has_grid.then_some("gridDim")).filter(|_| self.divides);
        let (mut whole, mut parts, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        for (place, assignment) in &found {
            let file = self.file(*place);
            let is_trivial = self.divides
                && found.len() > 1
                && (file.is_trivial(assignment.value) && *place == found[0].0 && assignment.at == found[0].1.at
                    || file.is_least(assignment));
            let of = match assignment.part {
                _ if is_trivial => continue,
                Some(member) if wanted.is_none_or(|wanted| member == wanted || member == "[]") => &mut parts,
                Some(_) => continue,
                None if assignment.is_compound => &mut changed,
                None => &mut whole,
            };
            let verdict = self.given(*place, assignment);
            of.push(verdict);
        }
        if whole.is_empty() && base.is_none() {
            whole.append(&mut changed);
        }
        whole.extend(base);
        let of_parts = (!parts.is_empty()).then(|| if wanted.is_some() { self.together(&parts) } else { any(&parts) });
        // What is called so of any other variable may be this one's.
        let is_extent = part.is_none_or(|part| matches!(part, "x" | "y" | "z"));
        let of_others = part.filter(|_| of_parts.is_none() && !is_extent).and_then(|part| self.outside(part, None));
        let of_whole = (!whole.is_empty()).then(|| self.together(&whole));
        let told: Vec<Verdict> = [of_parts, of_whole, of_others].into_iter().flatten().collect();
        (!told.is_empty()).then(|| self.together(&told))
    }

    /// Whether what an assignment gives hangs on it.
    fn given(&mut self, place: Place, assignment: &Assignment) -> Verdict {
        if assignment.is_address { self.set_by_call(place, assignment.at) } else { self.judge(place, assignment.value) }
    }

    /// Whether what a call sets the variable to hangs on it that is an argument of it at `at`: by what the function assigns, where that
    /// is seen, else by any other argument.
    fn set_by_call(&mut self, place: Place, at: usize) -> Verdict {
        let file = self.file(place);
        let Some(call) = file.calls_around(at).first().copied() else { return Not };
        let given = file.given_to(&call);
        let is_it = |range: &Tokens| range.0 <= at && at < range.1;
        let Some(number) = given.0.iter().position(is_it) else { return Not };
        let callees = if self.divides { self.callees(place, &call, given.0.len()) } else { Vec::new() };
        let mut found = Vec::new();
        for callee in &callees {
            let file = &self.code.files[callee.file];
            let Some(name) = callee.parameters.get(number).and_then(|&range| file.name_of_parameter(range)) else {
                continue;
            };
            let inner = Place { file: callee.file, frame: self.frame(place, &given, callee) };
            let assigned = file.assignments(name, (callee.body.0 + 1, callee.body.1), &[]);
            let assigned = assigned.into_iter().map(|found| (inner, found)).collect();
            found.push(self.settled(assigned, None, None).unwrap_or(Open));
        }
        if !found.is_empty() {
            return all(&found);
        }
        let others: Vec<Tokens> = given.0.into_iter().filter(|range| !is_it(range)).collect();
        self.one_of(place, &others).max(self.one_of(place, &given.1))
    }

    /// What calls set a variable to that nothing is assigned to: `dim3 grid; shape(grid, n);`
    fn set_by_calls(&mut self, place: Place, name: &str, scope: Tokens) -> Option<Verdict> {
        let file = self.file(place);
        let is_argument = |&at: &usize| {
            let before = at.checked_sub(1).map_or("", |before| file.text(before));
            matches!(before, "(" | ",") && matches!(file.text(at + 1), "," | ")") && !file.calls_around(at).is_empty()
        };
        let places = file.places_within(name, (scope.0 + 1, scope.1)).iter().copied().filter(is_argument);
        let found: Vec<Verdict> = places.map(|at| self.set_by_call(place, at)).collect();
        // Most calls only read it.
        (!found.is_empty()).then(|| any(&found))
    }

    /// Whether the value of a name hangs on it that no function tells: of the file, or of another, or a member of a class. Functions by
    /// what they return, and what is assigned anywhere but to a variable of a function's own.
    fn outside(&mut self, name: &'a str, part: Option<&'a str>) -> Option<Verdict> {
        self.ask(Key::Outside(name, part), |flow| {
            let (mut assigned, mut found) = (Vec::new(), Vec::new());
            for (number, file) in flow.code.files.iter().enumerate() {
                let place = Place { file: number, frame: None };
                for &at in file.places(name).iter().filter(|&&at| !file.device[at]) {
                    match file.function(at) {
                        Some((begin, end)) if begin == at => {
                            found.extend(flow.result(place, (file.body(begin), end)));
                        }
                        Some(_) if !file.is_member(at) && flow.is_hidden(number, at) => {}
                        // `void go(int blocks = 4);`
                        None if file.statement_before(at).iter().any(|&before| file.text(before) == "(") => {}
                        _ => assigned.extend(file.assigned(at).map(|found| (place, found))),
                    }
                }
            }
            found.extend(flow.settled(assigned, part, None));
            (!found.is_empty()).then(|| flow.together(&found))
        })
    }
}
