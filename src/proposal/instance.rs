//! The launches of a template in the text -> the arguments of the instance that they launch, which
//! tell launches of a template from those of its explicit specializations.

use super::subject::{Subject, no_launch};
use crate::cuda::template_instance::argument_lists_agree;
use crate::cuda::{EvaluatedLaunch, Kernel, ListedKernel, TemplateParameter, instance_arguments};

/// The `template` clause of a template.
///
/// # Errors
/// Why its arguments are not known.
pub(super) fn instance(subject: &Subject<'_>) -> Result<Option<String>, String> {
    Ok(template_arguments(subject)?.map(|arguments| format!("template({})", arguments.join(", "))))
}

/// The template arguments of a kernel's first launch that writes them out, otherwise of the first
/// that tells them; `None` if it is no template.
///
/// # Errors
/// Why they are not known.
pub(super) fn template_arguments(subject: &Subject<'_>) -> Result<Option<Vec<String>>, String> {
    let kernel = &subject.listed.kernel;
    if kernel.template.is_none() || kernel.arguments.is_some() {
        return Ok(None);
    }
    let mut launches = subject.program.evaluated_launches(&kernel.name, &subject.counts, &[], 1);
    launches.retain(|launch| is_of_instance(subject, launch));
    if launches.is_empty() {
        return Err(no_launch(subject));
    }
    let missing = || {
        let name = |parameter: &Option<TemplateParameter>| match parameter {
            Some(parameter) => format!("`{}`", parameter.name),
            None => "of a pack or without a name".to_owned(),
        };
        let names: Vec<String> = kernel.template_parameters.iter().map(name).collect();
        let names = names.join(", ");
        format!("its launches do not tell its template arguments {names}: write //@tune, and build with NVTUNE=capture")
    };
    let written = launches.iter().find_map(written);
    written.or_else(|| launches.iter().find_map(|launch| deduced(kernel, launch))).map(Some).ok_or_else(missing)
}

/// Whether a launch may be one of this kernel, and not of another specialization of its template.
pub(super) fn is_of_instance(subject: &Subject<'_>, launch: &EvaluatedLaunch) -> bool {
    let own = &subject.listed.kernel;
    let namesakes = || subject.all.iter().filter(|other| other.kernel.name == own.name);
    let is_template = |other: &&ListedKernel| other.kernel.arguments.is_none() && other.kernel.template.is_some();
    let template = namesakes().find(is_template).map_or(own, |listed| &listed.kernel);
    let Some(launched) = written(launch).or_else(|| deduced(template, launch)) else { return true };
    let is_launched = |kernel: &Kernel| {
        let arguments = kernel.arguments.map(|span| format!("<{}>", subject.source.slice(span)));
        let arguments = arguments.as_deref().and_then(instance_arguments).unwrap_or_default();
        let resolved = arguments.iter().map(|text| subject.program.parameter_type(&subject.source.path, text));
        let resolved: Vec<String> = resolved.collect();
        argument_lists_agree(&launched, &resolved)
    };
    match own.arguments {
        Some(_) => is_launched(own),
        None => !namesakes().any(|other| other.kernel.arguments.is_some() && is_launched(&other.kernel)),
    }
}

/// The template arguments that a launch writes out.
fn written(launch: &EvaluatedLaunch) -> Option<Vec<String>> {
    let arguments: Option<Vec<String>> = launch.template_arguments.iter().cloned().collect();
    arguments.filter(|arguments| !arguments.is_empty())
}

/// The template arguments that follow from the types of a launch's arguments.
fn deduced(kernel: &Kernel, launch: &EvaluatedLaunch) -> Option<Vec<String>> {
    let of = |parameter: &Option<TemplateParameter>| {
        let name = parameter.as_ref().filter(|parameter| parameter.is_type)?.name.as_str();
        let declared = kernel.declarations.iter().zip(&launch.argument_types);
        declared.into_iter().find_map(|(declaration, kind)| deduced_type(name, declaration, kind.as_deref()?))
    };
    let all: Option<Vec<String>> = kernel.template_parameters.iter().map(of).collect();
    all.filter(|all| !all.is_empty())
}

/// What a type parameter is, by a parameter `T *x` and the type of its argument.
fn deduced_type(name: &str, declaration: &str, argument: &str) -> Option<String> {
    let words: Vec<&str> = declaration.split_whitespace().collect();
    let is_plain = words.contains(&name) && !declaration.contains(['<', '(', '&']);
    let stars = declaration.matches('*').count() + usize::from(declaration.contains('['));
    let stem = argument.trim().trim_end_matches(['*', ' ']);
    let pointed = argument.matches('*').count();
    (is_plain && stars == pointed && !stem.is_empty() && !stem.contains("auto")).then(|| stem.trim().to_owned())
}
