//! Instances of templates by name, as a compiler, a recording or a lock file has them -> the
//! `template` clauses that name them.

use crate::cuda::template_instance::{arguments_agree, template_arguments};
use std::collections::{BTreeMap, BTreeSet};

/// Instances of templates: the arguments of each, as a source has them, by the template's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateInstances(BTreeMap<String, BTreeSet<String>>);

impl TemplateInstances {
    /// Adds one by its name with arguments, as in `k<float, 4>`; a name without any adds nothing.
    pub fn add(&mut self, name: &str) {
        if let Some((template, arguments)) = name.split_once('<')
            && let Some(arguments) = arguments.strip_suffix('>')
        {
            self.0.entry(template.to_owned()).or_default().insert(arguments.to_owned());
        }
    }

    /// The clauses that name a template's instances, without those of these arguments, as the source
    /// spells them; `None` where none is known.
    pub(super) fn clauses(&self, template: &str, without: &[&str]) -> Option<String> {
        let is_other = |arguments: &&String| !without.iter().any(|written| are_same(written, arguments));
        let others = self.0.get(template)?.iter().filter(is_other);
        let clauses: Vec<String> = others.map(|arguments| format!("template({arguments})")).collect();
        Some(clauses.join(" "))
    }
}

/// Whether two lists of template arguments are of one instance, however they are spelled.
fn are_same(written: &str, compiled: &str) -> bool {
    let (written, compiled) = (format!("k<{written}>"), format!("k<{compiled}>"));
    match (template_arguments(&written), template_arguments(&compiled)) {
        (Some(written), Some(compiled)) => {
            let mut pairs = written.iter().zip(&compiled);
            written.len() == compiled.len() && pairs.all(|(written, compiled)| arguments_agree(written, compiled))
        }
        _ => false,
    }
}
