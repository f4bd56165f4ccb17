//! Whether what variables hold hangs on the macro: by what they are declared as, what is assigned to them, and what calls give parameters.

use super::Verdict::{Follows, Not, Open};
use super::{Callee, Flow, Key, Place, TOLD, Variable, Verdict, all, any};
use crate::cuda::launch_text::{Assignment, Called, Parameter, Tokens};
use std::rc::Rc;

/// How a variable is lent to be written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lent {
    /// `int &r = grid;`
    Bound,
    /// As the argument at a place.
    Given(usize),
}

/// Functions of the C++ library that write to what they are given.
const WRITES: [&str; 3] = ["swap", "tie", "exchange"];

impl<'a> Flow<'a> {
    /// Whether the value of the name used at `at`, or of a part of it, hangs on it; `None` where nothing tells.
    pub(super) fn value(&mut self, place: Place, at: usize, part: Option<&'a str>) -> Option<Verdict> {
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
            let verdict = flow.settled(reaching, part, base).or_else(|| flow.set_by_calls(place, name, scope))?;
            let lent = if flow.divides { flow.by_lending(place, &variable) } else { Vec::new() };
            Some(all(&[&[verdict], &lent[..]].concat()))
        })
    }

    /// Whether what else a variable is given hangs on it where it is lent to be written: `shape(n, grid)` by a reference, `int &r = grid;`.
    fn by_lending(&mut self, place: Place, variable: &Variable<'a>) -> Vec<Verdict> {
        let key = (place.file, variable.scope.0, variable.name);
        let lent = self.lent.get(&key).map(Rc::clone).unwrap_or_else(|| {
            let found: Rc<[Lent]> = self.lendings(place, variable).into();
            self.lent.insert(key, Rc::clone(&found));
            found
        });
        let of = |lent: &Lent| match *lent {
            Lent::Bound => Not,
            Lent::Given(at) => self.set_by_call(place, at),
        };
        lent.iter().map(of).collect()
    }

    /// Where a variable is lent.
    fn lendings(&mut self, place: Place, variable: &Variable<'a>) -> Vec<Lent> {
        let (file, scope) = (self.file(place), variable.scope);
        let declared = variable.parameter.is_none().then_some(scope);
        let mut found = Vec::new();
        for &at in file.places_within(variable.name, (scope.0 + 1, scope.1)) {
            let before = |count: usize| at.checked_sub(count).map_or("", |at| file.text(at));
            let is_bound = before(1) == "=" && file.text(at + 1) == ";" && before(3) == "&" && before(4) != "&";
            let is_argument = matches!(before(1), "(" | ",") && matches!(file.text(at + 1), "," | ")");
            if !(is_bound || is_argument) || self.declaration(place.file, at) != declared {
                continue;
            }
            if is_argument {
                let call = file.calls_around(at).first().copied();
                found.extend(call.filter(|call| self.is_written_by(place, call, at)).map(|_| Lent::Given(at)));
            } else if !file.statement_before(at).iter().any(|&before| file.text(before) == "const") {
                found.push(Lent::Bound);
            }
        }
        found
    }

    /// Whether a call writes to the variable that it is given at `at`, by a reference.
    fn is_written_by(&mut self, place: Place, call: &Called, at: usize) -> bool {
        let file = self.file(place);
        if WRITES.contains(&file.text(call.name)) {
            return true;
        }
        let own = file.given_to(call).0;
        let Some(number) = own.iter().position(|range| range.0 <= at && at < range.1) else { return false };
        self.callees(place, call, own.len()).iter().any(|callee| {
            let file = &self.code.files[callee.file];
            let Some(&range) = callee.parameters.get(number) else { return false };
            let has = |word: &str| (range.0..range.1).any(|at| file.text(at) == word);
            let is_assigned = |name: &str| !file.assignments(name, (callee.body.0 + 1, callee.body.1), &[]).is_empty();
            has("&") && !has("const") && file.name_of_parameter(range).is_some_and(is_assigned)
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
        let (file, (from, to)) = (self.file(place), assignment.value);
        // `int blocks[] = {n / per, 4};`: which of them is used is not looked at.
        if self.divides && assignment.part == Some("[]") && file.text(from) == "{" {
            return self.each_of(place, &file.parts((from + 1, to - 1)));
        }
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
    pub(super) fn outside(&mut self, name: &'a str, part: Option<&'a str>) -> Option<Verdict> {
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
