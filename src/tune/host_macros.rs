//! The macros of a kernel's space and the code around it -> which the program's launches follow, which keep their values, and which the
//! source does not have.

use super::surroundings::Surroundings;
use crate::comment::{Annotation, TemplateArgument};
use crate::launch::{Configuration, Dim3};
use crate::space::Space;
use std::collections::{BTreeMap, BTreeSet};

/// What the code around a kernel makes of its macros.
#[derive(Clone, Debug, Default)]
pub struct HostMacros {
    /// Those that the program's launches follow.
    pub followed: BTreeSet<String>,
    /// The blocks that host code launches under each set of macros, where it has them of macros that are tied to the block.
    launched: BTreeMap<BTreeMap<String, i64>, Dim3>,
    /// Those macros.
    of_block: BTreeSet<String>,
    /// Those that must keep the baseline's value, for other code than the kernel's hangs on them; with the reason and the remedy.
    pub kept: BTreeMap<String, String>,
    /// Those that are nowhere in the source.
    unnamed: BTreeSet<String>,
}

impl HostMacros {
    /// Looks at the macros of a kernel that is launched by its header, or by what host code has.
    pub fn new(annotation: &Annotation, space: &Space, around: &Surroundings, by_header: bool) -> Self {
        let is_unnamed = |name: &&String| around.has_stubs && !around.host.names(name);
        let unnamed = annotation.clauses.macros.iter().map(|axis| &axis.name).filter(is_unnamed).cloned().collect();
        let mut macros = Self { unnamed, ..Self::default() };
        let dividing = space.dividing_macros();
        for name in space.baseline().macros.keys() {
            if !by_header {
                macros.look_at(annotation, space, around, name, dividing.contains(name));
                macros.look_at_left_alone(annotation, around, name);
            } else if annotation.clauses.launch.is_none() {
                macros.look_at_shared(around, name);
            }
        }
        let kernel = annotation.kernel.name.as_str();
        for name in dividing {
            let others = around.host.others_with(kernel, &name);
            if !others.is_empty() {
                let reason = format!(
                    "{name} divides the work of `{}` too, whose launches know nothing of it: give the macro of `{kernel}` a name that no other kernel uses, or launch by it",
                    others.join("` and `")
                );
                macros.kept.entry(name).or_insert(reason);
            }
        }
        macros
    }

    /// What host code makes of one, by which the comment `divides` the work, or not.
    fn look_at(&mut self, annotation: &Annotation, space: &Space, around: &Surroundings, name: &str, divides: bool) {
        let host = &around.host;
        if is_in_instance(annotation, name) && around.has_stubs && !host.launches_somewhere(&annotation.kernel.name) {
            let reason = format!(
                "{name} is an argument of the instance that this source makes, and another one may launch that of the baseline: include the header there and write launch(header), or launch `{}` in this source",
                annotation.kernel.name
            );
            self.kept.insert(name.to_owned(), reason);
            return;
        }
        let Some(place) = host.use_of(name) else { return };
        let remedy = format!("include the header and launch by it, or keep {name} out of host code");
        if self.look_at_shared(around, name) {
            return;
        }
        if host.launches_follow(&annotation.kernel.name, name, divides) {
            self.followed.insert(name.to_owned());
            // Host code may launch blocks of the macro's size, which are no baseline's then.
            if is_tied_to_block(annotation, name) {
                if self.launched.is_empty() {
                    self.launched = launched(annotation, space, around);
                }
                if !self.launched.is_empty() {
                    self.of_block.insert(name.to_owned());
                    return;
                }
                let reason = format!("host code uses {name}, to which the block is tied, too ({place}): {remedy}");
                self.kept.insert(name.to_owned(), reason);
            }
        }
    }

    /// Keeps a macro that other sources may take for the baseline's where host code uses it; tells whether it does.
    fn look_at_shared(&mut self, around: &Surroundings, name: &str) -> bool {
        let uses = around.host.use_of(name).zip(around.host.shared_use_of(name));
        let reason = uses.map(|(place, shared)| {
            let also = if shared == place { String::new() } else { format!(" ({shared})") };
            format!(
                "host code uses {name} ({place}), which other sources may include, too{also}, and take for the baseline's: keep {name} out of host code, or write launch(header) if all of them include the header and launch by it"
            )
        });
        let is_kept = reason.is_some();
        self.kept.extend(reason.map(|reason| (name.to_owned(), reason)));
        is_kept
    }

    /// Keeps a macro to which the block is tied where a launch keeps its block whatever is chosen.
    fn look_at_left_alone(&mut self, annotation: &Annotation, around: &Surroundings, name: &str) {
        let (host, kernel) = (&around.host, annotation.kernel.name.as_str());
        if self.kept.contains_key(name) || !is_tied_to_block(annotation, name) || self.of_block.contains(name) {
            return;
        }
        let unshaped = host.unreached(kernel).into_iter().next();
        let reason = match (unshaped, host.launch_with_shared(kernel).filter(|_| annotation.clauses.shared.is_none())) {
            (Some(launch), _) => format!(
                "the block is tied to {name}, and a launch keeps its own ({}({})), for it goes by no launch stub: include the header and launch by it",
                launch.path, launch.line
            ),
            (None, Some(place)) => format!(
                "the block is tied to {name}, and a launch with dynamic shared memory keeps its own ({place}): say how much it has in shared(...), or include the header and launch by it"
            ),
            (None, None) => return,
        };
        self.kept.insert(name.to_owned(), reason);
    }

    /// Why the macros of a configuration must not be used; with the remedy.
    pub fn refusal(&self, space: &Space, configuration: &Configuration) -> Option<String> {
        let differs = |name: &String| configuration.macros.get(name) != space.baseline().macros.get(name);
        self.kept.iter().find(|(name, _)| differs(name)).map(|(_, reason)| reason.clone())
    }

    /// The block that host code launches under the macros of a configuration, where they tell.
    pub fn launched(&self, configuration: &Configuration) -> Option<Dim3> {
        self.launched.get(&configuration.macros).copied()
    }

    /// Whether the source has a macro, as far as it is seen.
    pub fn is_named(&self, name: &str) -> bool {
        !self.unnamed.contains(name)
    }

    /// All that launches hang on of it, as words to compare.
    pub fn words(&self) -> String {
        let followed = self.followed.iter().map(|name| format!(" host:{name}"));
        let of_block = self.of_block.iter().map(|name| format!(" block:{name}"));
        followed.chain(of_block).chain(self.kept.keys().map(|name| format!(" kept:{name}"))).collect()
    }
}

/// The blocks of the launches in host code by the macros of a space; none where not all are known, or one is another than a configuration
/// has whose block is tied to its macros.
fn launched(annotation: &Annotation, space: &Space, around: &Surroundings) -> BTreeMap<BTreeMap<String, i64>, Dim3> {
    let sets: BTreeSet<BTreeMap<String, i64>> = space.iter().map(|configuration| configuration.macros).collect();
    let block = |macros: BTreeMap<String, i64>| {
        let block = around.host.launched_block(&annotation.kernel.name, &macros)?;
        Some((macros, block))
    };
    let blocks: Option<BTreeMap<_, _>> = sets.into_iter().map(block).collect();
    let (baseline, tied) = (space.baseline(), space.tied_macros());
    let is_tied =
        |of: &Configuration| of == baseline || tied.iter().any(|name| of.macros.get(name) != baseline.macros.get(name));
    let fits = |blocks: &BTreeMap<BTreeMap<String, i64>, Dim3>| {
        space.iter().filter(is_tied).all(|of| blocks.get(&of.macros) == Some(&of.block))
    };
    blocks.filter(fits).unwrap_or_default()
}

/// Whether the template's arguments hang on a macro.
fn is_in_instance(annotation: &Annotation, name: &str) -> bool {
    annotation.instance.iter().flat_map(|instance| &instance.arguments).any(|argument| match argument {
        TemplateArgument::Value { expression, .. } => {
            let mut is_used = false;
            expression.names(&mut |used, _| is_used |= used == name);
            is_used
        }
        // A type may hang on it, too: `Tile<N>`.
        TemplateArgument::Text(text) => text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name),
        TemplateArgument::Constant { .. } => false,
    })
}

/// Whether the comment ties the block to a macro.
fn is_tied_to_block(annotation: &Annotation, name: &str) -> bool {
    annotation.clauses.require.iter().any(|constraint| {
        let (mut of_macro, mut of_block) = (false, false);
        constraint.names(&mut |used, _| {
            of_macro |= used == name;
            of_block |= used.starts_with("block.");
        });
        of_macro && of_block
    })
}
