//! Host code -> what stands around a name in it: the function and the scope that it is used in, the calls that it is an argument of, and
//! what is assigned to it.
//!
//! Places are those of tokens. No types are known: what looks like a declaration, a call or an assignment is taken for one.

use super::brackets::{Depth, closes, matching, parts};
use super::host_code::{CONTROL, File, SPECIFIERS};
use super::tokens::CxxKind;

/// Tokens from one to before another.
pub(crate) type Tokens = (usize, usize);

/// A call, by the places of its name and of its brackets; those of its template's arguments where it has some.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called {
    pub name: usize,
    pub template: Option<Tokens>,
    pub open: usize,
    pub close: usize,
}

/// A parameter by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Parameter {
    Own(usize),
    OfTemplate(usize),
}

/// What a variable is given at a place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Assignment<'a> {
    /// The place of the variable's name.
    pub at: usize,
    pub value: Tokens,
    /// The member that is assigned, or `[]`; none for the variable as a whole.
    pub part: Option<&'a str>,
    /// `per *= 2;`
    pub is_compound: bool,
    /// `size(&per);`
    pub is_address: bool,
    /// Whether all that runs on in the variable's own scope comes by here.
    pub is_certain: bool,
}

/// Words of statements that run in some cases only.
const PARTIAL: [&str; 9] = ["if", "else", "for", "while", "do", "switch", "case", "default", "catch"];

impl File {
    /// The end of a launch's arguments that begin at `start`, at its `>>>`.
    pub fn end_of_launch(&self, start: usize) -> Option<usize> {
        (start..self.tokens.len()).find(|&at| (at..at + 3).all(|at| self.text(at) == ">"))
    }

    pub fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == CxxKind::Name)
    }

    /// The places of a name from one token to before another.
    pub fn places_within(&self, name: &str, (from, to): Tokens) -> &[usize] {
        let all = self.places(name);
        &all[all.partition_point(|&at| at < from)..all.partition_point(|&at| at < to)]
    }

    /// The ranges between the commas of what stands in brackets; none that are empty.
    pub fn parts(&self, (from, to): Tokens) -> Vec<Tokens> {
        let (mut found, mut begin, mut at) = (Vec::new(), from, from);
        while at < to {
            match self.text(at) {
                "," => {
                    found.push((begin, at));
                    begin = at + 1;
                }
                _ => at = self.closed_by(at).filter(|&close| close < to).unwrap_or(at),
            }
            at += 1;
        }
        found.push((begin, to));
        found.retain(|(from, to)| from < to);
        found
    }

    /// What closes the bracket at `open`, which is none of a template.
    fn closed_by(&self, open: usize) -> Option<usize> {
        match self.text(open) {
            "(" | "{" => self.closing(open),
            "[" => self.square(open),
            _ => None,
        }
    }

    /// The ranges between commas of the template arguments or parameters from `open` to `close`.
    fn of_template(&self, (open, close): Tokens) -> Vec<Tokens> {
        parts(open + 1, close, |at| self.text(at), Depth::pass_template)
    }

    /// The name before the template arguments that end at `close`.
    fn template_of(&self, close: usize) -> Option<usize> {
        self.opening(close, "<", ">")?.checked_sub(1)
    }

    /// The tokens before `at` that its statement begins with, from the nearest to the farthest; those in brackets that are closed before
    /// it are left out.
    pub fn statement_before(&self, at: usize) -> Vec<usize> {
        let (mut found, mut depth) = (Vec::new(), 0usize);
        for place in (0..at).rev() {
            let word = self.text(place);
            let is_closed = depth > 0;
            match word {
                ")" | "]" => depth += 1,
                "(" | "[" => depth = depth.saturating_sub(1),
                ";" | "}" if depth == 0 => break,
                "{" if depth == 0 => {
                    let before = place.checked_sub(1).map_or("", |before| self.text(before));
                    // The body of a function, a lambda or a statement; else it is a list.
                    if matches!(before, ")" | "]" | ";" | "{" | "}" | "else" | "do" | "try" | "")
                        || SPECIFIERS.contains(&before)
                    {
                        break;
                    }
                }
                _ => {}
            }
            if !is_closed && depth == 0 {
                found.push(place);
            }
        }
        found
    }

    /// The call of what is named at `name`.
    pub fn called(&self, name: usize) -> Option<Called> {
        let template =
            if self.text(name + 1) == "<" { self.closing(name + 1).map(|close| (name + 1, close)) } else { None };
        let open = template.map_or(name, |(_, close)| close) + 1;
        let close = (self.text(open) == "(").then(|| self.closing(open)).flatten()?;
        Some(Called { name, template, open, close })
    }

    /// The arguments of a call, and those of its template.
    pub fn given_to(&self, call: &Called) -> (Vec<Tokens>, Vec<Tokens>) {
        let of_template = call.template.map_or_else(Vec::new, |brackets| self.of_template(brackets));
        (self.parts((call.open + 1, call.close)), of_template)
    }

    /// The calls that the token at `at` is an argument of, from the innermost to the outermost; none of casts and the like.
    pub fn calls_around(&self, at: usize) -> Vec<Called> {
        let opens = self.statement_before(at).into_iter().filter(|&open| self.text(open) == "(");
        let calls = opens.filter_map(|open| {
            let last = open.checked_sub(1)?;
            let is_template = self.text(last) == ">";
            let name = if is_template { self.template_of(last)? } else { last };
            let word = self.text(name);
            let passes_on = word.ends_with("_cast") || matches!(word, "forward" | "move");
            let template = is_template.then_some((name + 1, last));
            let call = Called { name, template, open, close: self.closing(open)? };
            (self.is_name(name) && !passes_on && !CONTROL.contains(&word)).then_some(call)
        });
        calls.collect()
    }

    /// The call among whose template's arguments the token at `at` is: `run<k>(n)`.
    pub fn call_of_template_around(&self, at: usize) -> Option<Called> {
        let opens = self.statement_before(at).into_iter().filter(|&open| self.text(open) == "<");
        let mut calls = opens.filter_map(|open| self.called(open.checked_sub(1)?));
        calls.find(|call| self.is_name(call.name) && call.template.is_some_and(|(_, close)| at < close))
    }

    /// The calls of a function in host code, and those of a constructor.
    pub fn calls(&self, name: &str) -> Vec<Called> {
        let is_own = |at: usize| self.function(at).is_some_and(|(begin, _)| begin == at);
        let named = self.places(name).iter().copied();
        let named = named.filter(|&at| !self.device[at] && !is_own(at) && !self.is_prototype(at));
        let call = |at: usize| {
            self.called(at).or_else(|| {
                let open = self.variable(at).map(|variable| variable + 1).or_else(|| self.given(at))?;
                Some(Called { name: at, template: None, open, close: self.closing(open)? })
            })
        };
        named.filter_map(call).collect()
    }

    /// Whether the function named at `at` is declared there: nothing but a type stands before it in its statement.
    fn is_prototype(&self, at: usize) -> bool {
        let before = self.statement_before(at);
        let is_of_type = |&place: &usize| {
            self.is_name(place) && !matches!(self.text(place), "return" | "else" | "do" | "new" | "throw" | "co_return")
                || matches!(self.text(place), "*" | "&" | "::" | "<" | ">" | ",")
        };
        // `ns::go(n);`
        let has_type = before.iter().enumerate().any(|(number, &place)| {
            self.is_name(place) && (number == 0 || self.text(place + 1) != "::" && self.text(place) != "std")
        });
        has_type && before.iter().all(is_of_type)
    }

    /// Whether the name at `at` is handed on, or kept, as a value of its own.
    pub fn is_kept(&self, at: usize) -> bool {
        let behind =
            if self.text(at + 1) == "<" { self.closing(at + 1).map_or(at + 1, |close| close + 1) } else { at + 1 };
        let before = self.statement_before(at);
        let keeps = |&place: &usize| matches!(self.text(place), "=" | "{" | "(" | "return");
        matches!(self.text(behind), "," | ")" | "}" | ";" | ":") && before.iter().any(keeps)
    }

    /// The function that a token is in, from its name to the end of its body.
    pub fn function(&self, at: usize) -> Option<Tokens> {
        let last = self.functions.partition_point(|&(begin, _)| begin <= at).checked_sub(1)?;
        self.functions.get(last).copied().filter(|&(_, end)| at <= end)
    }

    /// Whether the function whose name is at `begin` is a kernel.
    pub fn is_kernel(&self, begin: usize) -> bool {
        if !self.device[begin] {
            return false;
        }
        let mut words = (0..begin).rev().map(|at| self.text(at)).take_while(|word| !matches!(*word, ";" | "}" | "{"));
        words.any(|word| self.declares_kernel(word))
    }

    /// The functions with a body, each from its name to the end of that; none within another.
    pub fn functions(&self) -> Vec<Tokens> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < self.tokens.len() {
            let function = (self.text(at) == "{").then(|| Some((self.defined(at)?, self.closing(at)?))).flatten();
            if let Some((name, end)) = function {
                found.push((name, end));
                at = end;
            }
            at += 1;
        }
        found
    }

    /// The bracket that opens the parameters of the function whose name is at `begin`.
    pub fn parameters(&self, begin: usize) -> Option<usize> {
        (begin..self.tokens.len()).find(|&at| self.text(at) == "(")
    }

    /// Where the body begins of the function whose name is at `begin`.
    pub fn body(&self, begin: usize) -> usize {
        let close = self.parameters(begin).and_then(|open| self.closing(open)).unwrap_or(begin);
        (close..self.tokens.len()).find(|&at| self.text(at) == "{").unwrap_or(close)
    }

    /// The parameters that begin at `open`, each as its tokens.
    pub fn parameters_of(&self, open: usize) -> Vec<Tokens> {
        self.closing(open).map_or_else(Vec::new, |close| self.parts((open + 1, close)))
    }

    /// The parameters of the template of the function whose name is at `begin`.
    pub fn template_parameters(&self, begin: usize) -> Vec<Tokens> {
        let mut before = (0..begin).rev().take_while(|&at| !matches!(self.text(at), ";" | "}" | "{"));
        let brackets = before.find(|&at| self.text(at) == "template").filter(|&at| self.text(at + 1) == "<");
        let brackets = brackets.and_then(|at| Some((at + 1, self.closing(at + 1)?)));
        brackets.map_or_else(Vec::new, |brackets| self.of_template(brackets))
    }

    /// The name of a parameter: `F &&f`, `int n = 3`, `void (*f)(int)`.
    pub fn name_of_parameter(&self, (from, to): Tokens) -> Option<&str> {
        let to = (from..to).find(|&at| self.text(at) == "=").unwrap_or(to);
        let pointer = (from..to).find(|&at| self.is_pointer(at));
        let name = pointer.or_else(|| to.checked_sub(1).filter(|&last| last >= from))?;
        self.is_name(name).then(|| self.text(name))
    }

    /// What a parameter is where a call does not give it.
    pub fn default_of(&self, (from, to): Tokens) -> Option<Tokens> {
        (from..to).find(|&at| self.text(at) == "=").map(|equals| (equals + 1, to))
    }

    /// Which parameter of the function whose name is at `begin` has this name, or of its template.
    pub fn parameter(&self, begin: usize, name: &str) -> Option<Parameter> {
        let is_it = |&range: &Tokens| self.name_of_parameter(range) == Some(name);
        let own = self.parameters_of(self.parameters(begin)?).iter().position(is_it);
        own.map(Parameter::Own)
            .or_else(|| self.template_parameters(begin).iter().position(is_it).map(Parameter::OfTemplate))
    }

    /// The declarations of a name within a function, each with the end of the scope that it is for.
    pub fn declarations(&self, (begin, end): Tokens, name: &str) -> Vec<Tokens> {
        let places = self.places_within(name, (self.body(begin), end)).iter().copied();
        places.filter(|&at| self.declares(at)).map(|at| (at, self.end_of_scope(at))).collect()
    }

    /// Whether the name at `at` is declared there: `int n`, `int a = 1, n = 2`, `auto [n, m] =`.
    fn declares(&self, at: usize) -> bool {
        let before = |at: usize| at.checked_sub(1).map_or("", |before| self.text(before));
        if self.is_declaration(at) && !matches!(before(at), "do" | "and" | "or" | "not") {
            return true;
        }
        // `void (*run)(int)`
        let is_pointer = self.is_pointer(at) && at.checked_sub(3).is_some_and(|before| self.is_name(before));
        if is_pointer || !matches!(before(at), "," | "[") {
            return is_pointer;
        }
        let statement = self.statement_before(at);
        let binds = |&place: &usize| self.text(place) == "[" && matches!(before(place), "auto" | "&");
        let is_bound = statement.iter().find(|&&place| self.text(place) == "[").is_some_and(binds);
        let is_inside = |&place: &usize| self.text(place) == "(" && before(place) != "for";
        is_bound || !statement.iter().any(is_inside) && statement.iter().any(|&place| self.is_declaration(place))
    }

    /// Whether the name at `at` is a function pointer's where that is declared.
    fn is_pointer(&self, at: usize) -> bool {
        let before = |count: usize| at.checked_sub(count).map_or("", |at| self.text(at));
        before(2) == "(" && matches!(before(1), "*" | "&") && self.text(at + 1) == ")" && self.text(at + 2) == "("
    }

    /// The end of the scope of what is declared at `at`: of the block, or of what follows a parenthesis that it is in.
    fn end_of_scope(&self, at: usize) -> usize {
        let mut next = if self.is_pointer(at) { at + 2 } else { at };
        while next < self.tokens.len() {
            match self.text(next) {
                "(" | "{" => next = self.closing(next).unwrap_or(next),
                "}" => return next,
                ")" => {
                    let body = (next..self.tokens.len()).find(|&at| matches!(self.text(at), "{" | ";"));
                    let body = body.unwrap_or(next);
                    return self.closing(body).unwrap_or(body);
                }
                _ => {}
            }
            next += 1;
        }
        next
    }

    /// The lambda that begins at `at`: where its parameters open, if it has some, and its body with its brackets.
    pub fn lambda_at(&self, at: usize) -> Option<(Option<usize>, Tokens)> {
        let is_index = at.checked_sub(1).is_some_and(|last| {
            self.is_name(last) && self.text(last) != "return" || matches!(self.text(last), "]" | ")")
        });
        if self.text(at) != "[" || is_index {
            return None;
        }
        let behind = self.square(at)? + 1;
        let (parameters, behind) = match self.text(behind) {
            "(" => (Some(behind), self.closing(behind)? + 1),
            _ => (None, behind),
        };
        let body = (behind..self.tokens.len()).find(|&at| matches!(self.text(at), "{" | ";" | ")" | ","))?;
        let close = (self.text(body) == "{").then(|| self.closing(body)).flatten()?;
        Some((parameters, (body, close)))
    }

    /// The lambda among whose parameters `at` is: where it begins and where they open.
    pub fn lambda_of_parameter(&self, at: usize) -> Option<(usize, usize)> {
        let open = self.statement_before(at).into_iter().find(|&place| self.text(place) == "(")?;
        let begin = self.opening(open.checked_sub(1)?, "[", "]")?;
        let (parameters, _) = self.lambda_at(begin)?;
        (parameters == Some(open)).then_some((begin, open))
    }

    /// The values that the function or lambda with this body returns; none of the lambdas within.
    pub fn returns(&self, (open, close): Tokens) -> Vec<Tokens> {
        let (mut found, mut at) = (Vec::new(), open + 1);
        while at < close {
            if let Some((_, (_, end))) = self.lambda_at(at) {
                at = end;
            } else if self.text(at) == "return" {
                let end = self.end_of_statement(at);
                found.push((at + 1, end));
                at = at.max(end.saturating_sub(1));
            }
            at += 1;
        }
        found.retain(|(from, to)| from < to);
        found
    }

    fn end_of_statement(&self, mut at: usize) -> usize {
        while at < self.tokens.len() && self.text(at) != ";" {
            at = self.closed_by(at).unwrap_or(at) + 1;
        }
        at.min(self.tokens.len())
    }

    /// What the name at `at` is assigned to or made with, or a part of it: `per = 2 * w;`, `dim3 grid(a, b);`, `c.gridDim = g;`, `: per(w)`.
    pub fn assigned(&self, at: usize) -> Option<Assignment<'_>> {
        let (mut next, mut part) = (at + 1, None);
        loop {
            let (member, behind) = match self.text(next) {
                "." => (self.text(next + 1), next + 2),
                "-" if self.text(next + 1) == ">" => (self.text(next + 2), next + 3),
                "[" => ("[]", self.square(next)? + 1),
                _ => break,
            };
            part = part.or(Some(member));
            next = behind;
        }
        let made =
            |value: Tokens| Assignment { at, value, part, is_compound: false, is_address: false, is_certain: false };
        let before = |count: usize| at.checked_sub(count).map_or("", |at| self.text(at));
        // `f(&blocks, per)`
        if before(1) == "&" && matches!(before(2), "(" | ",") {
            let call = self.calls_around(at).first().copied()?;
            return Some(Assignment { is_address: true, ..made((call.name, call.close + 1)) });
        }
        // `auto [grid, block] = shape(n);`
        if matches!(self.text(next), "," | "]") && part.is_none() {
            let is_listed = |&at: &usize| self.text(at) == "," || self.is_name(at);
            let close = (next..self.tokens.len()).find(|at| !is_listed(at)).filter(|&close| self.text(close) == "]")?;
            return (self.text(close + 1) == "=").then(|| made((close + 2, self.end_of_value(close + 1))));
        }
        match self.text(next) {
            "=" if self.text(next + 1) != "=" => Some(made((next + 1, self.end_of_value(next)))),
            // `for (int blocks : all)`
            ":" if self.declares(at) && before(1) != "case" => Some(made((next + 1, self.end_of_value(next)))),
            "(" | "{" if self.declares(at) || self.is_initialized(at) => Some(made((next, self.end_of_value(next)))),
            "+" | "-" | "*" | "/" | "%" | "|" if self.text(next + 1) == "=" => {
                Some(Assignment { is_compound: true, ..made((next + 2, self.end_of_value(next))) })
            }
            _ => None,
        }
    }

    /// Whether the name at `at` is a member that a constructor makes.
    fn is_initialized(&self, at: usize) -> bool {
        let is_behind = at.checked_sub(1).is_some_and(|before| matches!(self.text(before), ":" | ","));
        is_behind && !self.statement_before(at).iter().any(|&place| matches!(self.text(place), "(" | "?" | "="))
    }

    /// All that a variable is given in its scope, which `others` hide it in: those of its name that are declared there.
    pub fn assignments(&self, name: &str, scope: Tokens, others: &[Tokens]) -> Vec<Assignment<'_>> {
        let within = |at: usize| others.partition_point(|&(begin, _)| begin <= at);
        let others = &others[within(scope.0)..within(scope.1)];
        let mut found = Vec::new();
        for &at in self.places_within(name, (scope.0, scope.1 + 1)) {
            let is_hidden = others.iter().any(|&(from, to)| from <= at && at <= to);
            if let Some(assignment) = self.assigned(at).filter(|_| !is_hidden && !self.is_member(at)) {
                let is_partial = |&place: &usize| PARTIAL.contains(&self.text(place));
                let is_of_scope = self.block(at) == self.block(scope.0);
                let is_certain = at == scope.0 || is_of_scope && !self.statement_before(at).iter().any(is_partial);
                found.push(Assignment { is_certain, ..assignment });
            }
        }
        found
    }

    /// The end of the outermost block after `from` that `at` is in; `None` where it is in none, and where that is a lambda's, which may
    /// run later, the end of all.
    pub fn block_around(&self, from: usize, at: usize) -> Option<usize> {
        let (mut outermost, mut inner) = (None, self.block(at));
        while let Some(open) = inner.filter(|&open| open >= from) {
            if self.is_of_lambda(open) {
                return Some(self.tokens.len());
            }
            outermost = Some(open);
            inner = self.block(open);
        }
        outermost.and_then(|open| self.closing(open))
    }

    /// Whether the body that opens at `open` is a lambda's.
    fn is_of_lambda(&self, open: usize) -> bool {
        let begins = (0..open).rev().take_while(|&at| !matches!(self.text(at), ";" | "{" | "}"));
        begins.filter(|&at| self.text(at) == "[").any(|at| self.lambda_at(at).is_some_and(|(_, body)| body.0 == open))
    }

    /// Whether an assignment of `1` at `at` is only for what is less: `if (blocks < 1) blocks = 1;`.
    pub fn is_least(&self, assignment: &Assignment) -> bool {
        let (at, (from, to)) = (assignment.at, assignment.value);
        let close = if at > 0 && self.text(at - 1) == "{" { at.checked_sub(2) } else { at.checked_sub(1) };
        let Some(close) = close.filter(|&close| self.text(close) == ")" && to == from + 1 && self.text(from) == "1")
        else {
            return false;
        };
        let condition: Vec<&str> =
            (0..close).rev().map(|place| self.text(place)).take_while(|&word| word != "(").collect();
        let word = self.text(at);
        [&["1", "<", word][..], &["0", "=", "=", word], &["0", "=", "<", word], &[word, "!"]].contains(&&condition[..])
    }

    /// The first member of what is named at `at` that is used there, where it is not called.
    pub fn part(&self, at: usize) -> Option<usize> {
        let member = match self.text(at + 1) {
            "." => at + 2,
            "-" if self.text(at + 2) == ">" => at + 3,
            _ => return None,
        };
        (self.is_name(member) && self.called(member).is_none()).then_some(member)
    }

    /// The marks of the condition `c ? a : b` that these tokens are.
    pub fn conditional(&self, (from, to): Tokens) -> Option<(usize, usize)> {
        let (mut question, mut nested, mut at) = (None, 0usize, from);
        while at < to {
            match (self.text(at), question) {
                ("?", None) => question = Some(at),
                ("?", _) => nested += 1,
                (":", Some(question)) if nested == 0 => return Some((question, at)),
                (":", _) => nested = nested.saturating_sub(1),
                _ => at = self.closed_by(at).filter(|&close| close < to).unwrap_or(at),
            }
            at += 1;
        }
        None
    }

    /// Where a value ends that begins at `from`: at the comma or semicolon behind it, or the bracket around it.
    fn end_of_value(&self, from: usize) -> usize {
        let mut depth = Depth::default();
        let mut ends = |at: usize| {
            let text = self.text(at);
            let is_over = depth.is_outside() && (matches!(text, ";" | ",") || closes(text));
            depth.pass(text);
            is_over
        };
        (from..self.tokens.len()).find(|&at| ends(at)).unwrap_or(self.tokens.len())
    }

    /// The bracket that closes the square one at `open`.
    pub fn square(&self, open: usize) -> Option<usize> {
        matching(open..self.tokens.len(), |at| self.text(at), "[", "]")
    }

    /// Whether the name at `at` is a member's or a namespace's, or is called as a function that is no kernel.
    pub fn is_other(&self, at: usize) -> bool {
        let behind =
            if self.text(at + 1) == "<" { self.closing(at + 1).map_or(at + 1, |close| close + 1) } else { at + 1 };
        self.is_member(at) || matches!(self.text(behind), "(" | "::")
    }

    /// Where what the kernel named at `at` is called besides stands, if it is assigned to something: `auto run = k;`, `void (*run)(int) = k;`.
    pub fn alias(&self, at: usize) -> Option<usize> {
        let before = self.statement_before(at);
        let sign = before.iter().copied().find(|&place| matches!(self.text(place), "=" | "{"))?;
        let last = sign.checked_sub(1).filter(|_| self.text(sign) == "=")?;
        let pointer = |&place: &usize| place > 0 && self.text(place) == "*" && self.text(place - 1) == "(";
        let name = match self.text(last) {
            ")" => (0..last).rev().take_while(|&place| !matches!(self.text(place), ";" | "}")).find(pointer)? + 1,
            _ => last,
        };
        (self.is_name(name) && !self.is_member(name)).then_some(name)
    }

    /// Whether a function with these parameters takes so many arguments.
    pub fn takes(&self, parameters: &[Tokens], given: usize) -> bool {
        let is_none = |&(from, to): &Tokens| to == from + 1 && self.text(from) == "void";
        let of = |is: fn(&Self, Tokens) -> bool| parameters.iter().filter(|&&range| is(self, range)).count();
        let most = parameters.iter().filter(|range| !is_none(range)).count();
        let optional = of(|file, range| file.default_of(range).is_some() || file.is_pack(range));
        given + optional >= most && (given <= most || of(Self::is_pack) > 0)
    }

    /// `A... a`
    pub fn is_pack(&self, (from, to): Tokens) -> bool {
        (from..to).any(|at| self.text(at) == ".")
    }

    /// Whether these tokens are of numbers up to one alone, as what a variable is made with before it has its value.
    pub fn is_trivial(&self, (from, to): Tokens) -> bool {
        (from..to).all(|at| matches!(self.text(at), "(" | ")" | "{" | "}" | "," | "0" | "1" | "dim3"))
    }
}
