//! A launch's arguments and a kernel's parameters -> the `args` clause, with what of it is a
//! guess.

use crate::cuda::tokens::{CxxKind, CxxToken, cxx_tokens};
use crate::cuda::{EvaluatedLaunch, HostProgram, LaunchArgument, ListedKernel, Number, ParameterKind, Type};
use crate::diag::Source;

/// A parameter with its type as the sources spell it out.
#[derive(Clone, Debug)]
pub(super) struct LaunchedParameter {
    pub name: String,
    /// Without names that stand for other types.
    pub kind_text: String,
    pub kind: ParameterKind,
    /// Of a structure, by their paths: `p.n`.
    pub fields: Vec<LaunchedParameter>,
}

impl LaunchedParameter {
    /// Resolves a type as seen from a file, with its fields.
    pub fn new(program: &HostProgram, path: &str, name: String, kind: &str) -> Self {
        Self::of_kind(program, path, name, program.parameter_type(path, kind), program.parameter_kind(path, kind))
    }

    fn of_kind(program: &HostProgram, path: &str, name: String, kind_text: String, kind: ParameterKind) -> Self {
        let own = if let ParameterKind::Structure(fields) = &kind { fields.as_slice() } else { &[] };
        let of_field = |(field, kind): &(String, ParameterKind)| {
            let text = field_type(program, path, &kind_text, field);
            Self::of_kind(program, path, format!("{name}.{field}"), text, kind.clone())
        };
        let fields = own.iter().map(of_field).collect();
        Self { name, kind_text, kind, fields }
    }
}

/// The type of a structure's field.
fn field_type(program: &HostProgram, path: &str, kind_text: &str, field: &str) -> String {
    let whole = program.field_type(path, kind_text, field);
    whole.unwrap_or_else(|| Type::element(kind_text).map_or("unsigned int", |of| of.scalar.name()).to_owned())
}

/// The text of an `args` clause.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments {
    /// `n = 16`, `x = random[n]`
    pub values: Vec<String>,
    /// Values that no text tells.
    pub guesses: Vec<String>,
}

/// Names and values of whole numbers, for counts and the grid.
pub(super) type Numbers = Vec<(String, i64)>;

/// The whole numbers among the parameters, and among their fields those that give the grid:
/// structures have many numbers, of which some have its value by chance.
pub(super) fn numbers(parameters: &[LaunchedParameter], launch: &EvaluatedLaunch) -> Numbers {
    let mut found = Numbers::new();
    for (parameter, argument) in parameters.iter().zip(&launch.arguments) {
        found.extend(integer(parameter, argument).map(|value| (parameter.name.clone(), value)));
        add_fields(parameter, argument, &mut found);
    }
    found
}

fn add_fields(parameter: &LaunchedParameter, argument: &LaunchArgument, found: &mut Numbers) {
    for (field, argument) in parameter.fields.iter().zip(&argument.fields) {
        let value = integer(field, argument).filter(|_| argument.gives_grid);
        found.extend(value.map(|value| (field.name.clone(), value)));
        add_fields(field, argument, found);
    }
}

/// The value of an integer parameter, as its type holds it.
fn integer(parameter: &LaunchedParameter, argument: &LaunchArgument) -> Option<i64> {
    let Type::Scalar(scalar) = Type::parse_type(&parameter.kind_text) else { return None };
    let (least, most) = scalar.integer_bounds()?;
    let value = argument.value?.as_integer();
    (least..=most).contains(&i128::from(value)).then_some(value)
}

/// Writes the values of all parameters.
///
/// # Errors
/// The first parameter that takes no value that the text tells, with the reason.
pub(super) fn arguments(
    source: &Source,
    program: &HostProgram,
    listed: &ListedKernel,
    parameters: &[LaunchedParameter],
    launch: &EvaluatedLaunch,
) -> Result<Arguments, String> {
    let numbers = numbers(parameters, launch);
    let variation = launch.variation.as_deref();
    let varied = variation.map(|other| self::numbers(parameters, other)).filter(|varied| varied.len() == numbers.len());
    let mut written = Arguments::default();
    let nothing = LaunchArgument::default();
    for (index, parameter) in parameters.iter().enumerate() {
        let argument = launch.arguments.get(index).unwrap_or(&nothing);
        let other = variation.and_then(|other| other.arguments.get(index)?.buffer);
        let varied = varied.as_ref().zip(other).map(|(numbers, buffer)| (numbers, buffer.bytes));
        let writer = ArgumentWriter { source, program, listed, numbers: &numbers, varied, threads: threads(launch) };
        let value = writer.value(parameter, argument, &mut written.guesses)?;
        written.values.push(value);
    }
    Ok(written)
}

/// Threads of a launch.
pub(super) fn threads(launch: &EvaluatedLaunch) -> i64 {
    let extents = launch.grid.unwrap_or([1; 3]).into_iter().chain(launch.block.unwrap_or([1; 3]));
    extents.fold(1_i64, i64::saturating_mul)
}

/// What the value of a parameter is written from.
struct ArgumentWriter<'a> {
    source: &'a Source,
    program: &'a HostProgram,
    listed: &'a ListedKernel,
    numbers: &'a Numbers,
    /// The numbers of another launch, and the buffer's bytes there.
    varied: Option<(&'a Numbers, i64)>,
    threads: i64,
}

impl ArgumentWriter<'_> {
    /// Writes `name = value`, with the element before it if the type does not tell it.
    fn value(
        &self,
        parameter: &LaunchedParameter,
        argument: &LaunchArgument,
        guesses: &mut Vec<String>,
    ) -> Result<String, String> {
        let LaunchedParameter { name, kind_text, kind, fields } = parameter;
        match kind {
            ParameterKind::Scalar { .. } => {
                let value = argument.value.unwrap_or_else(|| {
                    guesses.push(name.to_owned());
                    Number::Int(1)
                });
                Ok(format!("{name} = {}", scalar_text(kind_text, value)))
            }
            ParameterKind::Pointer if argument.is_null => Ok(format!("{name} = nullptr")),
            ParameterKind::Pointer => self.buffer(name, kind_text, argument, guesses),
            ParameterKind::Structure(_) => self.structure(name, fields, argument, guesses),
            ParameterKind::Array | ParameterKind::Other => Err(format!("`{name}` is of a type that takes no value")),
            ParameterKind::Unknown => Err(format!("the type of `{name}` is not found")),
        }
    }

    /// Writes `name = {field = value, ...}`.
    fn structure(
        &self,
        name: &str,
        fields: &[LaunchedParameter],
        argument: &LaunchArgument,
        guesses: &mut Vec<String>,
    ) -> Result<String, String> {
        let mut written = Vec::new();
        for (index, parameter) in fields.iter().enumerate() {
            let path = &parameter.name;
            if parameter.kind == ParameterKind::Array {
                // What is not given is 0.
                guesses.push(format!("{path} = 0"));
                continue;
            }
            let given = argument.fields.get(index).cloned().unwrap_or_default();
            let value = self.value(parameter, &given, guesses)?;
            let field = path.rsplit('.').next().unwrap_or(path);
            written.push(value.replacen(path, field, 1));
        }
        if written.is_empty() {
            return Err(format!("no value is found for `{name}`"));
        }
        Ok(format!("{name} = {{{}}}", written.join(", ")))
    }

    /// Writes a buffer: its contents and its number of elements.
    fn buffer(
        &self,
        name: &str,
        kind_text: &str,
        argument: &LaunchArgument,
        guesses: &mut Vec<String>,
    ) -> Result<String, String> {
        let pointed = Type::parse_type(kind_text);
        let path = &self.source.path;
        let target = kind_text.trim_end().trim_end_matches("const").trim_end().strip_suffix('*').unwrap_or(kind_text);
        let target = target.replace("const", "").replace("__restrict__", "");
        // The element in the comment, and the bytes of one.
        let (element, size, is_mixed) = match &pointed {
            Type::Pointer { element, .. } => (None, element.size() as i64, false),
            Type::Scalar(_) | Type::Other(_) => match self.program.structure_element(path, &target) {
                Some((scalar, numbers)) => {
                    let bytes = self.program.size_of_type(path, &target).unwrap_or(1);
                    (Some(scalar), (bytes / numbers.max(1)).max(1), false)
                }
                None => (Some("unsigned char".to_owned()), 1, true),
            },
        };
        let of_threads = || {
            let whole = match &pointed {
                Type::Pointer { .. } => Some(size),
                Type::Scalar(_) | Type::Other(_) => self.program.size_of_type(path, &target),
            };
            whole.map(|whole| self.threads.saturating_mul(whole))
        };
        let bytes = match argument.buffer {
            Some(buffer) => {
                if buffer.is_guess {
                    guesses.push(format!("size of {name}"));
                }
                buffer.bytes
            }
            None => {
                guesses.push(format!("size of {name}"));
                of_threads().ok_or_else(|| format!("`{name}` points to what no text explains"))?
            }
        };
        let count = (bytes / size).max(1);
        let contents = match (is_mixed, self.is_only_written(name)) {
            (true, _) => "zeros",
            (false, true) => "out",
            (false, false) => "random",
        };
        let element = element.map(|element| format!("{element} ")).unwrap_or_default();
        Ok(format!("{element}{name} = {contents}[{}]", self.count_text(count, size)))
    }

    /// A count by the names of numbers that give it, in all launches, else the number.
    fn count_text(&self, count: i64, size: i64) -> String {
        let is_large = |(_, (_, value)): &(usize, &(String, i64))| *value > 1;
        let large = || self.numbers.iter().enumerate().filter(is_large);
        let gives_other = |factors: &[usize]| {
            let Some((varied, bytes)) = self.varied else { return true };
            let product = factors.iter().filter_map(|at| varied.get(*at)).map(|(_, value)| *value);
            product.fold(1_i64, i64::saturating_mul) == bytes / size
        };
        if let Some((_, (name, _))) = large().find(|(at, (_, value))| *value == count && gives_other(&[*at])) {
            return name.clone();
        }
        for (at, (one, a)) in large() {
            for (other_at, (other, b)) in large().filter(|(other_at, _)| *other_at >= at) {
                if a.checked_mul(*b) == Some(count) && gives_other(&[at, other_at]) {
                    return format!("{one} * {other}");
                }
            }
        }
        integer_text(count)
    }

    /// Whether the kernel assigns elements of a parameter and does nothing else with it.
    fn is_only_written(&self, name: &str) -> bool {
        let Some(body) = self.source.text.get(self.listed.body.clone()) else { return false };
        let tokens: Vec<CxxToken> =
            cxx_tokens(body).into_iter().filter(|token| !matches!(token.kind, CxxKind::Comment { .. })).collect();
        let text = |at: usize| tokens.get(at).map_or("", |token| &body[token.span.start..token.span.end]);
        let mut places = (0..tokens.len()).filter(|&at| text(at) == name).peekable();
        let is_assigned = |at: usize| {
            let mut depth = 0_usize;
            let mut close = at + 1;
            while close < tokens.len() {
                match text(close) {
                    "[" => depth += 1,
                    "]" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
                close += 1;
            }
            text(at + 1) == "[" && text(close + 1) == "=" && text(close + 2) != "="
        };
        places.peek().is_some() && places.all(is_assigned)
    }
}

/// A scalar as a comment has it.
fn scalar_text(kind_text: &str, value: Number) -> String {
    match Type::parse_type(kind_text) {
        Type::Scalar(scalar) if scalar.is_float() => float_text(value.as_f64()),
        Type::Scalar(scalar) => {
            let bounds = scalar.integer_bounds().unwrap_or((i64::MIN.into(), i64::MAX.into()));
            let held = i128::from(value.as_integer()).clamp(bounds.0, bounds.1);
            integer_text(i64::try_from(held).unwrap_or(i64::MAX))
        }
        Type::Pointer { .. } | Type::Other(_) => integer_text(value.as_integer()),
    }
}

fn float_text(value: f64) -> String {
    if value.is_finite() { format!("{value:?}") } else { "0.0".to_owned() }
}

/// A number; large powers of two are shifts.
pub(super) fn integer_text(value: i64) -> String {
    match u64::try_from(value) {
        Ok(power) if power >= 1 << 16 && power.is_power_of_two() => format!("1 << {}", power.trailing_zeros()),
        _ => value.to_string(),
    }
}
