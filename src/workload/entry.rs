//! cicc's stub file -> the kernels of a compilation with the types of their parameters.
//!
//! The file (`--stub_file_name`, kept as `NAME.cudafe1.stub.c`) registers each kernel with
//! `__cudaRegisterEntry(__T0, ((void ( *)(int, float *))ns::name), SYMBOL, (-1))`, defines a
//! function `__device_stub_MANGLED(...)` for it, and gives its line in a `# 7 "a.cu"` above the
//! host-side definition. A typedef keeps its name in the C text; the types come from the
//! mangled name wherever that can be read. A file of another form gives no entries, never a
//! panic.

use super::demangle::parameter_types;
use super::structure::Layout;
use super::variable::{Variable, variables};
use crate::comment::{Annotation, Fault, Instance, TemplateArgument, Value};
use crate::cuda::Spelled;
use crate::cuda::TemplateParameter;
use crate::cuda::Type;
use crate::cuda::brackets::{split_at_commas, text_in_parentheses};
use crate::cuda::line_markers::LineMarker;
use crate::cuda::template_instance;
use crate::cuda::tokens::is_word;
use crate::diag::{Diagnostic, MessageCode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A kernel that the compiler registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The symbol in PTX and cubin.
    pub symbol: String,
    /// The mangled name, after which the launch stub is called; it differs from the symbol for
    /// `extern "C"`.
    pub mangled: Option<String>,
    /// The name with namespaces (`_NV_ANON_NAMESPACE` for one without a name) and template
    /// arguments.
    pub qualified: String,
    /// The types of the parameters, without typedefs where the mangled name could be read.
    pub parameters: Vec<String>,
    /// The 1-based line of the name and the file, as the compiler was given it; not known for
    /// instances of templates.
    pub line: Option<u32>,
    pub file: Option<String>,
    /// Threads of a block in `__launch_bounds__`.
    pub max_threads: Option<u32>,
    /// The variables of its module, which a workload can give contents.
    pub variables: Arc<[Variable]>,
    /// Structures among the parameters, by position, once the compiler has been asked (see
    /// [`layout`](super::layout)).
    pub layouts: BTreeMap<usize, Layout>,
}

impl Entry {
    /// The name without namespaces and template arguments.
    pub fn name(&self) -> &str {
        let plain = self.qualified.split('<').next().unwrap_or("").trim_end();
        plain.rsplit("::").next().unwrap_or(plain)
    }

    /// Returns the namespaces around it, from the outermost, without those that have no name.
    fn scope(&self) -> Vec<&str> {
        let plain = self.qualified.split('<').next().unwrap_or("").trim_end();
        let mut scopes: Vec<&str> = plain.split("::").map(str::trim).filter(|scope| !scope.is_empty()).collect();
        scopes.pop();
        scopes.retain(|scope| !template_instance::is_unnamed(scope));
        scopes
    }

    /// The template arguments as a source has them, in angle brackets; `None` without any.
    fn written_arguments(&self) -> Option<String> {
        let arguments = template_instance::template_arguments(&self.qualified)?;
        let arguments: Vec<String> = arguments.into_iter().map(template_instance::as_written).collect();
        Some(format!("<{}>", arguments.join(", ")))
    }

    /// The name with its template arguments, as in `k<float, 4>`; `None` where it is no template.
    pub fn instance_name(&self) -> Option<String> {
        Some(format!("{}{}", self.name(), self.written_arguments()?))
    }

    /// The same with what the compiler says of its parameters' types: what an enumeration is
    /// kept in, or a typedef stands for, takes its place.
    pub fn with_layouts(mut self, mut layouts: BTreeMap<usize, Layout>) -> Self {
        layouts.retain(|&index, layout| {
            let (Some(own), Some(kept)) = (self.parameters.get_mut(index), layout.fields.get("")) else { return true };
            let is_structure = matches!(Type::parse_type(&kept.kind), Type::Other(_)) && !kept.kind.ends_with('*');
            if !is_structure {
                own.clone_from(&kept.kind);
            }
            is_structure
        });
        self.layouts = layouts;
        self
    }
}

/// All kernels of a stub file, in the order of their registration.
pub fn entries(stub: &str) -> Vec<Entry> {
    let stubs = launch_stubs(stub);
    let places = places(stub);
    let variables: Arc<[Variable]> = variables(stub).into();
    let mut found = Vec::new();
    for (at, _) in stub.match_indices("__cudaRegisterEntry(") {
        let Some(arguments) = text_in_parentheses(&stub[at + "__cudaRegisterEntry".len()..]) else {
            continue;
        };
        let [_, function, symbol, bound] = split_at_commas(arguments)[..] else {
            continue;
        };
        let Some((types, name)) = cast_type(function) else {
            continue;
        };
        let mangled = stubs.get(&instance_key(types, name)).copied();
        let written: Vec<String> = match split_at_commas(types)[..] {
            ["void"] | [""] => Vec::new(),
            ref types => types.iter().map(|text| normalized(text)).collect(),
        };
        let canonical = mangled.and_then(parameter_types).filter(|types| are_of(types, &written));
        let place = mangled.and_then(|mangled| places.get(mangled));
        found.push(Entry {
            symbol: symbol.to_string(),
            mangled: mangled.map(str::to_owned),
            qualified: normalized(name),
            parameters: canonical.unwrap_or(written),
            line: place.map(|(line, _)| *line),
            file: place.map(|(_, file)| file.clone()),
            max_threads: bound.parse().ok(),
            variables: Arc::clone(&variables),
            layouts: BTreeMap::new(),
        });
    }
    found
}

/// Whether these can be the types that are written so: each `float *` is a pointer.
fn are_of(types: &[String], written: &[String]) -> bool {
    let is_marked = |text: &String| text.ends_with(['*', '&']);
    types.len() == written.len()
        && types.iter().zip(written).all(|(own, written)| is_marked(own) || !is_marked(written))
}

/// The entry of an annotation: the same name and number of parameters, the template arguments
/// of its instance under these values of the macro axes and, among overloads, the same line.
/// `spelled` is what the compiler calls arguments that it was asked about.
///
/// # Errors
/// A warning at the kernel's name where none or more than one fits: a kernel that is compiled
/// out (`#ifdef`) is no mistake.
pub fn find<'a>(
    entries: &'a [Entry],
    annotation: &Annotation,
    macros: &BTreeMap<String, i64>,
    spelled: &Spelled,
) -> Result<&'a Entry, Box<Diagnostic>> {
    let kernel = &annotation.kernel;
    let warning =
        |message: String| Box::new(annotation.source.warning(MessageCode::KernelNotCompiled, kernel.span, message));
    let mut named: Vec<&Entry> = entries.iter().filter(|entry| entry.name() == kernel.name).collect();
    if let Some(instance) = &annotation.instance {
        named = instances(&named, annotation, instance, macros, spelled)?;
    }
    let as_many: Vec<&Entry> =
        named.iter().copied().filter(|entry| entry.parameters.len() == kernel.parameters.len()).collect();
    let fitting: Vec<&Entry> = as_many.iter().copied().filter(|entry| !takes_others(annotation, entry)).collect();
    let listed = |entries: &[&Entry]| {
        let lists: Vec<String> = entries.iter().map(|entry| format!("({})", entry.parameters.join(", "))).collect();
        lists.join(", ")
    };
    let found = match (named.len(), &fitting[..]) {
        (_, [only]) => Ok(*only),
        (0, _) => Err(warning(format!("the compilation has no kernel `{}`; nvcc builds it as it is", kernel.name))),
        (_, []) if !as_many.is_empty() => Err(warning(format!(
            "the compilation has no kernel `{}` with parameters of these types, but with {}; nvcc builds it as it is",
            kernel.name,
            listed(&as_many)
        ))),
        (_, []) => {
            let count = kernel.parameters.len();
            let hint = match !kernel.alternatives.is_empty() {
                true => ": of those under #if the ones count that args(...) gives a value",
                false if kernel.has_pack() => {
                    ": a parameter pack counts as one; leave out template(...) and args(...), and record the launches"
                }
                false => "",
            };
            Err(warning(format!(
                "the compilation has no kernel `{}` with {count} parameters; nvcc builds it as it is{hint}",
                kernel.name
            )))
        }
        (_, several) => {
            let file_name = |path: &str| path.rsplit(['/', '\\']).next().map(str::to_string);
            let here = |entry: &&&Entry| {
                let same_file = entry.file.as_deref().and_then(file_name) == file_name(&annotation.source.path);
                entry.line == Some(kernel.line) && same_file
            };
            // An instance of a template has no place.
            let one = |is_it: &dyn Fn(&&&Entry) -> bool| {
                let mut found = several.iter().filter(is_it);
                found.next().copied().filter(|_| found.next().is_none())
            };
            match one(&here).or_else(|| one(&|entry| is_declared_so(annotation, entry))) {
                Some(only) => Ok(only),
                _ if several_instances(several).len() > 1 && annotation.instance.is_some() => {
                    let fitting = several_instances(several).into_iter().collect::<Vec<_>>().join(", ");
                    let message = format!(
                        "these arguments fit several instances, {fitting}: write all arguments of one; nvcc builds it as it is"
                    );
                    let span = annotation.instance.as_ref().map_or(annotation.comment, |instance| instance.span);
                    Err(Box::new(annotation.source.warning(MessageCode::KernelNotCompiled, span, message)))
                }
                _ => Err(warning(format!(
                    "several kernels are called `{}` and none is surely this one: they take {}; give the one to tune a name of its own; it is \
                         not tuned",
                    kernel.name,
                    listed(several)
                ))),
            }
        }
    }?;
    match other_constant(annotation, found) {
        Some(problem) => Err(problem),
        None => Ok(found),
    }
}

/// The template arguments of entries, in angle brackets.
fn several_instances(entries: &[&Entry]) -> BTreeSet<String> {
    entries.iter().filter_map(|entry| entry.written_arguments()).collect()
}

/// Tells whether the instance that a comment is about is among the entries, with these very
/// arguments; true of what is no instance.
pub fn has_instance(entries: &[Entry], annotation: &Annotation) -> bool {
    let Some(instance) = &annotation.instance else { return true };
    let written: Vec<&str> = instance.arguments.iter().map(TemplateArgument::text).collect();
    let is_it = |entry: &Entry| {
        let compiled = template_instance::template_arguments(&entry.qualified).unwrap_or_default();
        let compiled: Vec<&str> = compiled.into_iter().filter(|argument| !argument.trim().is_empty()).collect();
        entry.name() == annotation.kernel.name && template_instance::argument_lists_agree(&written, &compiled)
    };
    entries.iter().any(is_it)
}

/// How surely an entry is an instance of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateFit {
    No,
    /// Nothing is known against it.
    Possible,
    /// The template declares the very types of its parameters.
    Declared,
}

/// Tells how surely an entry, one of `entries`, is the instance of this name of a template.
pub fn template_fit(template: &Annotation, instance: &str, entry: &Entry, entries: &[Entry]) -> TemplateFit {
    let Some((annotation, _)) = template.for_instance(instance) else { return TemplateFit::No };
    let is_number = |argument: &TemplateArgument| matches!(argument, TemplateArgument::Value { .. });
    let is_scalar = |argument: &TemplateArgument| matches!(Type::parse_type(argument.text()), Type::Scalar(_));
    let arguments = annotation.instance.iter().flat_map(|instance| &instance.arguments);
    let mut pairs = template.kernel.template_parameters.iter().zip(arguments);
    let is_other_kind = pairs.any(|(parameter, argument)| {
        let is_type = parameter.as_ref().map(|parameter| parameter.is_type);
        is_type == Some(true) && is_number(argument) || is_type == Some(false) && is_scalar(argument)
    });
    let is_other = is_other_kind
        || annotation.kernel.parameters.len() != entry.parameters.len()
        || !is_in_scope(&template.kernel.namespaces, entry, entries)
        || takes_others(&annotation, entry);
    match is_other {
        true => TemplateFit::No,
        false if is_declared_so(&annotation, entry) => TemplateFit::Declared,
        false => TemplateFit::Possible,
    }
}

/// Tells whether an entry is of the scope that the text gives a kernel of its name. A macro may open
/// further namespaces, if all kernels of the name are in them.
fn is_in_scope(namespaces: &[String], entry: &Entry, entries: &[Entry]) -> bool {
    let own = entry.scope();
    let mut namesakes = entries.iter().filter(|other| other.name() == entry.name());
    own == *namespaces
        || own.len() > namespaces.len()
            && own[own.len() - namespaces.len()..] == *namespaces
            && namesakes.all(|other| other.scope() == own)
}

/// Whether an entry is surely an overload of the annotation's kernel: where both types of a
/// parameter are known, by the declaration and by the compiler, and are not the same.
fn takes_others(annotation: &Annotation, entry: &Entry) -> bool {
    let kernel = &annotation.kernel;
    let declared = kernel.parameters.iter().zip(&kernel.declarations).map(|(name, declaration)| {
        let text = declaration.strip_suffix(name.as_deref()?)?;
        Some(Type::parse_type(&with_arguments(annotation, text)))
    });
    let differ = |(declared, compiled): (Option<Type>, &String)| match (declared, Type::parse_type(compiled)) {
        (None | Some(Type::Other(_)), _) | (_, Type::Other(_)) => false,
        (Some(Type::Scalar(one)), Type::Scalar(other)) => one != other,
        (Some(Type::Pointer { element: one, .. }), Type::Pointer { element: other, .. }) => one != other,
        (Some(Type::Scalar(_)), Type::Pointer { .. }) | (Some(Type::Pointer { .. }), Type::Scalar(_)) => true,
    };
    // Under `#if` the types may be those of a branch that is not compiled.
    kernel.alternatives.is_empty() && declared.zip(&entry.parameters).any(differ)
}

/// Whether an entry's parameters have the very types of the annotation's kernel.
fn is_declared_so(annotation: &Annotation, entry: &Entry) -> bool {
    let kernel = &annotation.kernel;
    let declared = kernel.parameters.iter().zip(&kernel.declarations).map(|(name, declaration)| {
        let text = declaration.strip_suffix(name.as_deref().unwrap_or_default()).unwrap_or(declaration);
        let words = text.split(' ').filter(|word| !word.contains("__restrict"));
        with_arguments(annotation, words.collect::<Vec<_>>().join(" ").trim_start_matches("const "))
    });
    let mut pairs = declared.zip(&entry.parameters);
    pairs.all(|(declared, compiled)| {
        template_instance::arguments_agree(&declared, compiled.trim_start_matches("const "))
    })
}

/// A type of the kernel's declaration with the arguments of its instance that are numbers'
/// types in place of their names.
fn with_arguments(annotation: &Annotation, text: &str) -> String {
    let arguments = annotation.instance.iter().flat_map(|instance| &instance.arguments);
    let parameters = annotation.kernel.template_parameters.iter().zip(arguments);
    let argument = |word: &str| {
        let is_it =
            |(parameter, _): &(&Option<_>, _)| parameter.as_ref().is_some_and(|of: &TemplateParameter| of.name == word);
        let (_, argument) = parameters.clone().find(is_it)?;
        matches!(Type::parse_type(argument.text()), Type::Scalar(_)).then(|| argument.text().to_owned())
    };
    let words = text.split(' ').map(|word| argument(word).unwrap_or_else(|| word.to_owned()));
    words.collect::<Vec<_>>().join(" ")
}

/// What there is to say where an argument is another number than the source seems to define:
/// the comment's expressions took it for that.
fn other_constant(annotation: &Annotation, entry: &Entry) -> Option<Box<Diagnostic>> {
    let instance = annotation.instance.as_ref()?;
    let compiled = template_instance::template_arguments(&entry.qualified)?;
    instance.arguments.iter().zip(compiled).find_map(|(argument, compiled)| match argument {
        TemplateArgument::Constant { text, value } if !template_instance::arguments_agree(&value.to_string(), compiled) => {
            let message = format!(
                "`{text}` is {} in this build, and {value} in the source: write the number in `template`; nvcc builds `{}` as it is",
                template_instance::as_written(compiled),
                annotation.kernel.name
            );
            Some(Box::new(annotation.source.warning(MessageCode::ConstantDiffers, instance.span, message)))
        }
        _ => None,
    })
}

/// Of the entries of this name those that are the instance: with all of its arguments or, where
/// none has exactly these, with these first (the rest were deduced, or are defaults).
fn instances<'a>(
    named: &[&'a Entry],
    annotation: &Annotation,
    instance: &Instance,
    macros: &BTreeMap<String, i64>,
    spelled: &Spelled,
) -> Result<Vec<&'a Entry>, Box<Diagnostic>> {
    let source = &annotation.source;
    let mut texts = Vec::new();
    for argument in &instance.arguments {
        texts.push(match argument {
            TemplateArgument::Text(text) | TemplateArgument::Constant { text, .. } => text.clone(),
            TemplateArgument::Value { expression, .. } => {
                let value = expression
                    .evaluate(&|name: &String| {
                        let value = macros.get(name).copied().map(Value::Int);
                        value.ok_or_else(|| Fault::NoValue(name.clone()))
                    })
                    .map_err(|located| {
                        Box::new(source.error(MessageCode::NoValue, located.span, located.fault.to_string()))
                    })?;
                let integer = value.as_integer().ok_or_else(|| {
                    Box::new(source.error(
                        MessageCode::TemplateClause,
                        expression.span,
                        "a template argument is a type or an integer",
                    ))
                })?;
                integer.to_string()
            }
        });
    }
    let begins = |entry: &&Entry| {
        let compiled = template_instance::template_arguments(&entry.qualified).unwrap_or_default();
        let fits = compiled.len() >= texts.len()
            && texts.iter().zip(&compiled).enumerate().all(|(position, (written, compiled))| {
                template_instance::arguments_agree(spelled.get(&position).unwrap_or(written), compiled)
            });
        fits.then_some(compiled.len() == texts.len())
    };
    let fitting: Vec<(&Entry, bool)> = named.iter().filter_map(|entry| Some((*entry, begins(entry)?))).collect();
    let whole: Vec<&Entry> = fitting.iter().filter(|(_, whole)| *whole).map(|(entry, _)| *entry).collect();
    if !whole.is_empty() {
        return Ok(whole);
    }
    if !fitting.is_empty() {
        return Ok(fitting.into_iter().map(|(entry, _)| entry).collect());
    }
    let spelled = |(argument, value): (&TemplateArgument, &String)| {
        let mut depends_on_macros = false;
        match argument {
            TemplateArgument::Text(text) | TemplateArgument::Constant { text, .. } => {
                template_instance::as_written(text)
            }
            TemplateArgument::Value { text, expression } => {
                expression.names(&mut |_, _| depends_on_macros = true);
                if depends_on_macros { value.clone() } else { template_instance::as_written(text) }
            }
        }
    };
    let wanted = instance.arguments.iter().zip(&texts).map(spelled).collect::<Vec<_>>().join(", ");
    let mut made: Vec<String> = named
        .iter()
        .filter_map(|entry| template_instance::template_arguments(&entry.qualified))
        .map(|arguments| arguments.into_iter().map(template_instance::as_written).collect::<Vec<_>>())
        .map(|arguments| format!("<{}>", arguments.join(", ")))
        .collect();
    made.sort();
    made.dedup();
    let made = match made.as_slice() {
        [] => "this file makes none of it".to_owned(),
        made => format!("this file makes {}", made.join(", ")),
    };
    // What the compiler makes of a lambda for the device, which no comment can name.
    let lambda = match made.contains("__nv_dl_wrapper_t<") || made.contains("__nv_hdl_wrapper_t<") {
        true => " (a lambda has no name: pass a structure with an operator() instead)",
        false => "",
    };
    let message =
        format!("`{}` has no instance <{wanted}>: {made}{lambda}; nvcc builds it as it is", annotation.kernel.name);
    Err(Box::new(source.warning(MessageCode::KernelNotCompiled, instance.span, message)))
}

/// Mangled names by what their stubs launch.
fn launch_stubs(stub: &str) -> BTreeMap<String, &str> {
    // The name of a stub is this and the mangled name.
    const PREFIX: &str = "__device_stub_";
    let mut found = BTreeMap::new();
    for (at, _) in stub.match_indices(PREFIX) {
        let rest = &stub[at + PREFIX.len()..];
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (symbol, rest) = rest.split_at(length);
        let Some(parameters) = text_in_parentheses(rest) else {
            continue;
        };
        // A definition, not a declaration or a call.
        let Some(body) = rest.get(parameters.len() + 2..).map(str::trim_start).filter(|body| body.starts_with('{'))
        else {
            continue;
        };
        let end = body.find(PREFIX).unwrap_or(body.len());
        let Some(launch) = body[..end].find("__cudaLaunch(") else {
            continue;
        };
        let Some(arguments) = text_in_parentheses(&body[launch + "__cudaLaunch".len()..]) else {
            continue;
        };
        let Some(&function) = split_at_commas(arguments).first() else {
            continue;
        };
        // `((char *)((void ( *)(...))name))`
        let launched = function.find("((void").map(|at| &function[at..]);
        if let Some((types, name)) = launched.and_then(cast_type) {
            found.insert(instance_key(types, name), symbol);
        }
    }
    found
}

/// Line and file of host-side definitions by mangled name.
fn places(stub: &str) -> BTreeMap<&str, (u32, String)> {
    let mut found = BTreeMap::new();
    let mut markers: [Option<LineMarker>; 2] = [None, None];
    for line in stub.lines() {
        if let Some(marker) = LineMarker::parse(line.as_bytes()) {
            markers = [markers[1].take(), Some(marker)];
        } else if let Some(rest) = line.strip_prefix("{__device_stub_") {
            // The marker right above is the body's; the one before it is the declarator's.
            if let Some((symbol, marker)) = rest.split('(').next().zip(markers[0].as_ref()) {
                found.insert(symbol, (marker.line, marker.file.to_string()));
            }
        }
    }
    found
}

/// Types and name of `((void ( *)(TYPES))NAME)`.
fn cast_type(function: &str) -> Option<(&str, &str)> {
    let inner = text_in_parentheses(function.trim())?;
    let kind = text_in_parentheses(inner.trim_start())?;
    let name = inner.trim_start().get(kind.len() + 2..)?.trim();
    // `void ( *)(TYPES)`: the second group.
    let first = kind.find('(')?;
    let rest = kind.get(first + text_in_parentheses(&kind[first..])?.len() + 2..)?;
    Some((text_in_parentheses(rest.trim_start())?.trim(), name))
}

fn instance_key(types: &str, name: &str) -> String {
    format!("{}({})", normalized(name), normalized(types))
}

/// The text with single blanks.
fn normalized(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
