//! A name of host code and where it stands -> the value that its definitions give it.
//!
//! Of several definitions in a function the last one above counts, unless a branch or a loop may
//! pass it by: then a value that may follow it is as good, and the name is listed as a guess.

use super::host_evaluation::{Evaluation, Scope};
use super::host_nodes::base_name;
use super::host_number::{Number, apply_binary};
use super::host_program::Definition;
use std::cell::LazyCell;
use std::ops::Range;
use tree_sitter::Node;

/// The least rank of assignments in other functions.
const ELSEWHERE: usize = 3;

/// The most definitions of a name that are looked at.
const MOST_DEFINITIONS: usize = 16;

/// What definitions say of a name.
enum Defined {
    Value(Number),
    /// Something else than what a parameter or a macro of the name is.
    Unknown,
    Nothing,
}

impl<'p> Evaluation<'p> {
    /// The value that a name is given, or has elsewhere, or is assumed to have.
    pub(super) fn assigned(
        &self,
        whole: &str,
        name: &str,
        scope: &Scope,
        elsewhere: &dyn Fn() -> Option<Number>,
    ) -> Option<Number> {
        let value = match self.defined(whole, name, scope, elsewhere) {
            Defined::Value(value) => Some(value),
            Defined::Unknown => None,
            Defined::Nothing => elsewhere(),
        };
        value.or_else(|| self.take_assumed(whole))
    }

    /// The value that definitions above give a name; `elsewhere` is what it has without those.
    fn defined(&self, whole: &str, name: &str, scope: &Scope, elsewhere: &dyn Fn() -> Option<Number>) -> Defined {
        let found = self.ranked(whole, name, scope);
        let Some((best, _)) = found.first() else { return Defined::Nothing };
        if *best < ELSEWHERE {
            return self.chosen(&found, whole, scope, elsewhere);
        }
        self.unless_active(whole, || self.chosen(&found, whole, scope, elsewhere)).unwrap_or(Defined::Unknown)
    }

    /// The value that ranked definitions give a name.
    fn chosen(
        &self,
        found: &[(usize, &Definition)],
        whole: &str,
        scope: &Scope,
        elsewhere: &dyn Fn() -> Option<Number>,
    ) -> Defined {
        let Some((best, _)) = found.first() else { return Defined::Nothing };
        // The last definition that is reached in any case, and those that may follow it.
        let is_reached = |definition: &Definition| match best {
            0 => definition.branch.as_ref().is_none_or(|branch| branch.contains(&scope.at)),
            _ => definition.scope.is_some(),
        };
        let of_this = found.iter().filter(|(rank, _)| (*rank == 0) == (*best == 0)).map(|(_, of)| *of);
        let (mut certain, mut possible) = (None, Vec::new());
        for definition in of_this.take(MOST_DEFINITIONS) {
            if is_reached(definition) {
                certain = certain.or(Some(definition));
                if *best == 0 {
                    break;
                }
            } else {
                possible.push(definition);
            }
        }
        if certain.is_none() && *best > 0 && possible.len() == 1 {
            certain = possible.pop();
        }
        if possible.is_empty() {
            let value = self.noted(whole, || certain.and_then(|definition| self.value_of(definition, whole, scope)));
            return value.map_or(Defined::Unknown, Defined::Value);
        }
        // What is summed up has neither its first value nor one that a summand tells.
        if possible.iter().any(|definition| self.is_summed(definition)) {
            return Defined::Unknown;
        }
        let of = |definition: &Definition| self.sure(|| self.value_of(definition, whole, scope));
        let mut values = vec![match certain {
            Some(definition) => of(definition),
            None if *best == 0 => self.sure(elsewhere),
            None => possible.pop().and_then(of),
        }];
        values.extend(possible.into_iter().map(|definition| Some(definition).filter(|of| of.is_whole).and_then(of)));
        let is_one = values.iter().all(|value| value.is_some() && *value == values[0]);
        let likely = values.into_iter().flatten().find(|value| is_one || value.as_f64() > 0.0);
        let assumed = || certain.and_then(|definition| self.value_of(definition, whole, scope));
        match likely.or_else(|| assumed().filter(|value| value.as_f64() > 0.0)) {
            Some(value) => {
                if !is_one {
                    self.note_guess(whole, value);
                }
                Defined::Value(value)
            }
            None => Defined::Unknown,
        }
    }

    /// The value of a definition of a name.
    fn value_of(&self, definition: &Definition, whole: &str, scope: &Scope) -> Option<Number> {
        let place = &definition.value;
        let node = self.program.node(place)?;
        if !definition.is_whole {
            return self.changed(node, &scope.moved(place)?);
        }
        // `dim3 grid(w, h)` as the grammar has it.
        if node.kind() == "parameter_list" {
            return self.value_of_text(self.program.slice(place), &scope.moved(place)?);
        }
        let value = self.value_at(place, &scope.moved(place)?)?;
        self.note_leaf(whole, self.program.slice(place), value);
        Some(value)
    }

    /// Whether a definition is `n += 2` or `++n`.
    fn is_summed(&self, definition: &Definition) -> bool {
        let kind = self.program.node(&definition.value).map_or("", |node| node.kind());
        !definition.is_whole && matches!(kind, "assignment_expression" | "update_expression")
    }

    /// The value that `n += 2` or `++n` gives its variable.
    fn changed(&self, node: Node<'_>, scope: &Scope) -> Option<Number> {
        let text = &self.program.files.get(scope.file)?.text;
        let field = |name: &str| node.child_by_field_name(name);
        let (before, operator, by) = match node.kind() {
            "assignment_expression" => (field("left")?, field("operator")?, self.value(field("right")?, text, scope)?),
            "update_expression" => (field("argument")?, field("operator")?, Number::Int(1)),
            _ => return None,
        };
        let operator = text[operator.byte_range()].trim_end_matches('=');
        let operator = operator.strip_suffix(['+', '-']).filter(|rest| !rest.is_empty()).unwrap_or(operator);
        apply_binary(operator, self.value(before, text, scope)?, by)
    }

    /// The definitions of a name that may count at a place, the likeliest first.
    pub(super) fn nearest(&self, whole: &str, name: &str, scope: &Scope) -> Vec<&'p Definition> {
        let found = self.ranked(whole, name, scope);
        found.into_iter().map(|(_, definition)| definition).filter(|definition| definition.is_whole).collect()
    }

    /// All that gives a name a value, the likeliest first: 0 is the rank of those in the same
    /// function, 3 and more that of assignments elsewhere.
    fn ranked(&self, whole: &str, name: &str, scope: &Scope) -> Vec<(usize, &'p Definition)> {
        let function = self.program.function_around(scope.file, scope.at).map(|node| node.start_byte());
        let mut found: Vec<(usize, &Definition)> = Vec::new();
        let is_local = LazyCell::new(|| self.is_local(whole, scope));
        let field = |target: &str| target.rsplit(['.', '>', ':']).next().unwrap_or("").to_owned();
        for definition in self.program.definitions.get(name).into_iter().flatten() {
            if self.step().is_none() {
                break;
            }
            let file = &definition.value.file;
            let is_here = *file == scope.file && definition.at < scope.at;
            let is_known = |around: &Range<usize>| around.contains(&scope.at);
            let is_same = definition.target == whole;
            let rank = match &definition.scope {
                // The value of a variable itself is no value of a field of that name.
                Some(around) if is_same && is_here && is_known(around) && definition.function == function => 0,
                None if is_same && is_here && definition.function == function => 0,
                Some(_) if is_same && definition.function.is_none() && !*is_local => {
                    1 + usize::from(*file != scope.file)
                }
                None if is_same && !*is_local && !self.is_local(whole, &Scope::new(&definition.value)) => 3,
                None if !is_same && field(&definition.target) == field(whole) && !*is_local => 4,
                Some(_) | None => continue,
            };
            found.push((rank, definition));
        }
        // Of those in the same function the last.
        found.sort_by_key(|(rank, definition)| {
            (*rank, if *rank == 0 { usize::MAX - definition.at } else { definition.at })
        });
        found
    }

    /// Whether an expression is a variable of the function at a place, or a part of one: what other
    /// functions do to theirs of that name does not count.
    pub(super) fn is_local(&self, whole: &str, scope: &Scope) -> bool {
        let Some(function) = self.program.function_around(scope.file, scope.at) else { return false };
        let name = base_name(whole);
        let declarations = self.program.declarations.get(name).into_iter().flatten();
        let bytes = function.byte_range();
        let is_inside = |own: &Range<usize>| own.start >= bytes.start && own.end <= bytes.end;
        declarations
            .into_iter()
            .any(|own| own.file == scope.file && is_inside(&own.scope) && own.scope.contains(&scope.at))
            || self.parameter(name, scope).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::host_evaluation::{Evaluation, Scope};
    use super::super::host_number::Number;
    use crate::cuda::{ANY_COUNT, EvaluatedLaunch, HostProgram, ParameterKind};

    /// The launches of `k(int n)`.
    fn launches(files: &[(&str, &str)]) -> Vec<EvaluatedLaunch> {
        let files: Vec<(String, String)> =
            files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        let kinds = [ParameterKind::Scalar { is_float: false }];
        HostProgram::new(&files, &[], &[]).evaluated_launches("k", &ANY_COUNT, &kinds, 1024)
    }

    #[test]
    fn value_is_found_behind_many_callers_that_know_none() {
        // Each function of a layer is called by each of the next. Only the last caller of f0_0 gives a value.
        let called = |layer: usize| (0..if layer == 0 { 1 } else { 15 }).map(move |at| format!("f{layer}_{at}"));
        let calls =
            |layer: usize, value: &str| called(layer).map(|name| format!("{name}({value}); ")).collect::<String>();
        let mut text = String::from("void f0_0(int n) { k<<<n / 64, 64>>>(n); }\n");
        for layer in 1..5 {
            text.extend(called(layer).map(|name| format!("void {name}(int n) {{ {}}}\n", calls(layer - 1, "n"))));
        }
        text.push_str(&format!("int main() {{ {}f0_0(640); }}\n", calls(4, "read()")));
        let program = HostProgram::new(&[("a.cu".to_owned(), text)], &[], &[]);
        let launch = &program.launches["k"][0];
        let value = Evaluation::new(&program).named("n", "n", &Scope::new(launch));
        assert_eq!(value.map(Number::as_integer), Some(640));
    }

    #[test]
    fn name_has_the_meaning_of_the_function_of_its_launch() {
        let run = "void run(int n) { k<<<n / 64, 64>>>(n); }";
        let member = "struct S { int n; };\nvoid run(S *s) { k<<<s->n / 64, 64>>>(s->n); }";
        let vector = "void run(int n) { const dim3 blocks(n, 1, 1); k<<<blocks, 64>>>(n); }";
        for (launch, elsewhere, grid) in [
            // 1024 is assumed.
            (run, "void other() { int n; n = 640; }", [16, 1, 1]),
            (run, "int n = 640;", [16, 1, 1]),
            (run, "int n; void other() { n = 640; }", [16, 1, 1]),
            (run, "int main() { int n = 128; run(640); }", [10, 1, 1]),
            (vector, "void other(int a) { dim3 blocks; blocks.x = 7; blocks.y = 3; }", [1024, 1, 1]),
            (member, "void other() { S s; s.n = 640; }", [16, 1, 1]),
            (member, "void other() { S t; t.n = 640; }", [16, 1, 1]),
            (member, "int main() { S s, t; s.n = 128; t.n = 640; run(&t); }", [10, 1, 1]),
            ("void run() { k<<<n / 64, 64>>>(n); }", "int n; void other() { n = 640; }", [10, 1, 1]),
            ("struct S { int n; S() { n = 640; } void run() { k<<<n / 64, 64>>>(n); } };", "", [10, 1, 1]),
        ] {
            for files in [
                vec![("a.cu", format!("{launch}\n{elsewhere}"))],
                vec![("a.cu", launch.into()), ("b.cu", elsewhere.into())],
            ] {
                let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
                assert_eq!(launches(&files)[0].grid, Some(grid), "{files:?}");
            }
        }
    }

    #[test]
    fn pointer_to_a_kernel_is_that_of_the_function_of_its_launch() {
        let text = "void run() { auto kernel = &k; kernel<<<10, 64>>>(640); }\n\
                    void other() { auto kernel = &j; kernel<<<20, 64>>>(640); }";
        let grids: Vec<_> = launches(&[("a.cu", text)]).into_iter().map(|launch| launch.grid).collect();
        assert_eq!(grids, [Some([10, 1, 1])]);
    }
}
