//! Comments of templates without a `template` clause, and instances by name, as a compiler, a
//! recording or a lock file has them -> a comment for each of these instances.
//!
//! Invariant: an instance has the same name in every build, whichever others are known.

use super::annotation::Annotation;
use super::template_clause::instance_of;
use super::template_parameters;
use crate::cuda::template_instance::{argument_lists_agree, template_arguments};
use crate::cuda::{Kernel, kernels_of};
use crate::diag::Diagnostic;
use std::collections::BTreeSet;

/// Tuned instances of templates: the name of the tuned kernel, and the instance as a source has
/// it (`k<float, 4>`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateInstances(BTreeSet<(String, String)>);

impl TemplateInstances {
    /// Adds one; a kernel that is no instance adds nothing.
    pub fn add(&mut self, kernel: &str, instance: &str) {
        if instance.ends_with('>') {
            self.0.insert((kernel.to_owned(), instance.to_owned()));
        }
    }

    /// Returns the comments of a template's known instances in the order of their names, with
    /// warnings of those that the comment does not fit. Of templates of one name each has
    /// instances under names of its own.
    pub fn comments_of(&self, template: &Annotation) -> (Vec<Annotation>, Vec<Diagnostic>) {
        let (mut found, mut problems) = (Vec::new(), Vec::new());
        for (kernel, instance) in &self.0 {
            match template.for_instance(instance) {
                Some((annotation, misfits)) if annotation.name == *kernel => match misfits.is_empty() {
                    true => found.push(annotation),
                    false => problems.extend(misfits.into_iter().map(Diagnostic::as_warning)),
                },
                _ => {}
            }
        }
        (found, problems)
    }
}

impl Annotation {
    /// Tells whether the comment is a template's and names no instance: it stands for all that
    /// are recorded.
    pub fn is_for_all_instances(&self) -> bool {
        self.kernel.template.is_some() && self.instance.is_none()
    }

    /// Tells whether a tuned kernel of this name may come from the comment.
    pub fn may_be_named(&self, name: &str) -> bool {
        match name.strip_prefix(self.name.as_str()) {
            Some(suffix) => suffix.is_empty() || self.is_for_all_instances() && suffix.starts_with('_'),
            None => false,
        }
    }

    /// Returns the comment of one instance of the template, and what is wrong with it there;
    /// `None` for an instance of another template.
    pub fn for_instance(&self, instance: &str) -> Option<(Annotation, Vec<Diagnostic>)> {
        let arguments = instance.strip_prefix(self.kernel.name.as_str())?;
        let instance = instance_of(arguments.strip_prefix('<')?.strip_suffix('>')?, self.kernel.span)?;
        let (mut annotation, mut problems) = (self.clone(), Vec::new());
        template_parameters::give(&mut annotation, Some(&instance), &mut problems);
        annotation.name.push_str(&instance.suffix());
        annotation.kernel.expand_pack(instance.arguments.len());
        annotation.instance = Some(instance);
        Some((annotation, problems))
    }

    /// Returns the other kernels of this name in the file.
    pub fn namesakes(&self) -> Namesakes {
        let kernels = kernels_of(&self.source).into_iter().map(|listed| listed.kernel);
        let others = kernels.filter(|kernel| kernel.name == self.kernel.name && kernel.span != self.kernel.span);
        let (specialized, others): (Vec<Kernel>, Vec<Kernel>) = others.partition(|kernel| kernel.arguments.is_some());
        let arguments = specialized.iter().filter_map(|kernel| kernel.arguments);
        let templates = others.into_iter().filter(|kernel| kernel.template.is_some());
        Namesakes {
            specialized: arguments.map(|arguments| self.source.slice(arguments).to_owned()).collect(),
            templates: templates.map(|kernel| Annotation { kernel, ..self.clone() }).collect(),
        }
    }
}

/// Kernels of the name of a template.
pub struct Namesakes {
    /// The arguments of its specializations.
    specialized: Vec<String>,
    /// The same comment above each other template.
    pub templates: Vec<Annotation>,
}

impl Namesakes {
    /// Tells whether an instance is a specialization, which may have a comment of its own.
    pub fn has_specialized(&self, instance: &str) -> bool {
        self.specialized.iter().any(|arguments| are_same(arguments, instance))
    }
}

/// Tells whether a source's template arguments and an instance are the same, however they are
/// spelled.
fn are_same(arguments: &str, instance: &str) -> bool {
    let written = format!("k<{arguments}>");
    match (template_arguments(&written), template_arguments(instance)) {
        (Some(written), Some(compiled)) => argument_lists_agree(&written, &compiled),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::TemplateInstances;
    use crate::comment::annotations;
    use crate::diag::Source;

    const TEXT: &str = "\
        //@tune threads(n * N) block(64)\n\
        template <class T, int N> __global__ void k(int n, T *x) {}\n\
        //@tune name(k_2)\n\
        template <int N> __global__ void k(int n, float *x, float *y) {}\n\
        template <> __global__ void k<double, 4>(int n, double *x) {}\n";

    /// Names of the tuned instances, and their threads.
    fn instances(known: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut instances = TemplateInstances::default();
        known.iter().for_each(|(kernel, instance)| instances.add(kernel, instance));
        let open = annotations(&Source::new("a.cu", TEXT.as_bytes())).expect("comments");
        assert!(open.iter().all(super::Annotation::is_for_all_instances));
        let found = open.iter().flat_map(|template| instances.comments_of(template).0);
        let threads = |of: &super::Annotation| {
            of.clauses.threads.iter().flat_map(|threads| &threads.value).next().map(|threads| threads.to_string())
        };
        found.map(|annotation| (annotation.name.clone(), threads(&annotation).unwrap_or_default())).collect()
    }

    #[test]
    fn each_template_has_the_instances_that_bear_its_name() {
        let known = [
            ("k_float_4", "k<float, 4>"),
            ("k_ns_Pair_int_ptr_minus_2", "k<ns::Pair<int> *, -2>"),
            ("k_2_8", "k<8>"),
            ("other_8", "other<8>"),
            ("k", "k"),
        ];
        let named = |name: &str, threads: &str| (name.to_owned(), threads.to_owned());
        assert_eq!(
            instances(&known),
            [named("k_float_4", "(n * 4)"), named("k_ns_Pair_int_ptr_minus_2", "(n * -2)"), named("k_2_8", "")]
        );
        assert_eq!(instances(&[]), []);
    }

    #[test]
    fn instance_that_the_comment_does_not_fit_is_warned_of() {
        let text = "//@tune threads(n * sizeof(T)) block(64)\ntemplate <class T> __global__ void k(int n, T *x) {}\n";
        let template = annotations(&Source::new("a.cu", text.as_bytes())).expect("a comment").remove(0);
        let mut known = TemplateInstances::default();
        ["k_float", "k_Gone"].iter().for_each(|name| known.add(name, &format!("k<{}>", &name[2..])));
        let (found, problems) = known.comments_of(&template);
        assert_eq!(found.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), ["k_float"]);
        let [problem] = &problems[..] else { panic!("{problems:?}") };
        let said = crate::diag::render(std::slice::from_ref(problem));
        assert!(said.contains("warning: only the compiler knows the size of `Gone`"), "{said}");
    }

    #[test]
    fn parameter_pack_has_the_parameters_of_the_instance() {
        let text = "//@tune\ntemplate <class F, class... In> __global__ void k(F f, const In *...in, int n) {}\n";
        let open = annotations(&Source::new("a.cu", text.as_bytes())).expect("a comment").remove(0);
        for (instance, declarations) in
            [("k<Sum>", vec!["F f", "int n"]), ("k<Sum, float, int>", vec!["F f", "const In *", "const In *", "int n"])]
        {
            let found = open.for_instance(instance).expect("its instance").0;
            assert_eq!(found.kernel.declarations, declarations);
            assert_eq!(found.kernel.parameters.len(), declarations.len());
        }
    }

    #[test]
    fn specialized_instances_and_names_of_instances_are_known() {
        let open = annotations(&Source::new("a.cu", TEXT.as_bytes())).expect("comments");
        let namesakes = open[0].namesakes();
        for (instance, is_specialized) in [("k<double, 4u>", true), ("k<double, 8>", false), ("k<4>", false)] {
            assert_eq!(namesakes.has_specialized(instance), is_specialized, "{instance}");
        }
        for (kernel, is_of) in [("k", true), ("k_float_4", true), ("kernel", false), ("j", false)] {
            assert_eq!(open[0].may_be_named(kernel), is_of, "{kernel}");
        }
    }
}
