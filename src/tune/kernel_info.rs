//! A kernel once the front end has run: its annotation, what the compiler says of it, its space and its way to the launches.

use super::failure::Problem;
use super::kernel::{effort, machine, will_time};
use super::launch_path::Reach;
use super::variants::{FrontEnds, InForce, Macros, Made, merged};
use super::{Tuner, header_functions, launches};
use crate::analysis::{grid_sync, ptx_facts};
use crate::comment;
use crate::comment::{Annotation, NamedConstant};
use crate::cuda::Spelled;
use crate::diag::{Diagnostic, Source};
use crate::gpu::{Architecture, Machine, architecture_number};
use crate::launch::{Configuration, Launch};
use crate::nvcc::{FrontEnd, ToolError, Toolchain};
use crate::ptx;
use crate::record::Stale;
use crate::sass::CodeDigestError;
use crate::space::Facts;
use crate::space::Space;
use crate::workload;
use crate::workload::layout;
use crate::workload::layout::Asked;
use crate::workload::{Entry, Layout, Workload, template_args};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What is known of a kernel once the front end has run.
pub struct Subject<'a> {
    pub annotation: &'a Annotation,
    /// The kernel under the baseline's macros.
    pub entry: Entry,
    /// The kernel under each set of the axes' macros: they may be arguments of a template, and so change its name. `Err` is
    /// why there is none.
    entries: HashMap<Macros, Result<Entry, String>>,
    /// What the compiler says of the parameters' types.
    layouts: BTreeMap<usize, Layout>,
    pub space: Space,
    pub machine: Machine,
    /// How a winner gets to the kernel's launches.
    pub reach: Reach,
    /// Whether all blocks of a launch must be resident at once: it is launched cooperatively.
    pub waits_for_grid: bool,
    /// The values of the axes' macros that were decided on another architecture.
    pub kept: Option<Macros>,
    /// The sets of the axes' macros that may not be chosen whatever the compiler makes of them.
    pub barred: BTreeSet<Macros>,
    /// Why the lock file's entry for it is not used.
    pub stale: Option<Stale>,
}

impl Subject<'_> {
    /// What stays where nothing is surely faster: the baseline, or what comes nearest to it under macros that are decided.
    pub fn baseline(&self) -> Configuration {
        let baseline = self.space.baseline().clone();
        let Some(kept) = &self.kept else { return baseline };
        let wanted = Configuration { macros: kept.clone(), ..baseline };
        if self.space.contains(&wanted) {
            return wanted;
        }
        let mut fitting = self.space.iter().filter(|found| found.macros == wanted.macros && found.cap == 0);
        fitting.next().unwrap_or(wanted)
    }

    /// Looks again at what may not be chosen: a GPU may have been asked for since the kernel was learnt of.
    pub fn bar(&mut self, tuner: &Tuner<'_>, toolchain: &Toolchain) {
        if self.kept.is_none() {
            self.barred = barred(tuner, toolchain, self.annotation, &self.space);
        }
    }

    /// The sets of the axes' macros that can be chosen.
    pub fn macro_sets(&self) -> Vec<Macros> {
        if let Some(kept) = &self.kept {
            return vec![kept.clone()];
        }
        let mut sets = self.space.macro_sets();
        sets.retain(|set| !self.barred.contains(set));
        sets
    }

    /// The kernel under these values of the axes' macros.
    pub fn entry(&self, macros: &Macros) -> Result<&Entry, String> {
        match self.entries.get(macros) {
            Some(entry) => entry.as_ref().map_err(Clone::clone),
            None => Ok(&self.entry),
        }
    }

    /// Finds the kernel under these sets of the axes' macros. `in_force` are the macros of the file's other kernels.
    pub fn learn(&mut self, front_ends: &mut FrontEnds<'_>, toolchain: &Toolchain, sets: &[Macros], in_force: &Macros) {
        let is_new = |set: &&Macros| !matches!(self.entries.get(*set), Some(Ok(_)));
        let sets: Vec<Macros> = sets.iter().filter(is_new).cloned().collect();
        let full: Vec<Macros> = sets.iter().map(|set| merged(in_force, set)).collect();
        let found = sets.par_iter().zip(front_ends.get_in_time(&full)).map(|(set, made)| {
            let entry = made.map_err(|error| error.to_string()).and_then(|front_end| {
                let entries = workload::entries(&front_end.stub);
                let found = find(toolchain, self.annotation, &entries, set, &merged(in_force, set));
                // The kernel is, under other values.
                let found = found.map_err(|problem| problem.message.replace("; it is not tuned", ""))?;
                Ok(found.with_layouts(self.layouts.clone()))
            });
            (set.clone(), entry)
        });
        let found: Vec<_> = found.collect();
        self.entries.extend(found);
    }

    /// Why the model alone must not choose a configuration, which is launched so; with the remedy.
    pub fn refuses_predicted(&self, configuration: &Configuration, launch: &Launch) -> Option<String> {
        let refusal = self.reach.refuses_predicted(&self.space, configuration, launch);
        refusal.or_else(|| self.leaves_work_untold(configuration))
    }

    /// Without a workload the model takes each thread's loops for equally long. Where blocks or the grid divide what there is to do, the
    /// fewest threads would win by that alone.
    fn leaves_work_untold(&self, configuration: &Configuration) -> Option<String> {
        if self.annotation.has_workload() || !self.space.leaves_work_untold(configuration) {
            return None;
        }
        let (by, threads) = match configuration.grid {
            Some(_) => ("block and the grid", "block.x * grid.x"),
            None => ("block", "block.x"),
        };
        Some(format!(
            "a thread has more or less to do in them, and nothing says how much: give the iterations of its loops by the {by}, as in trips(ceildiv(n, {threads})) with a number for n"
        ))
    }

    /// The launch and the workload of a configuration; no workload where the comment has no `args`.
    pub fn launch(&self, configuration: &Configuration) -> Result<(Launch, Option<Workload>), Problem> {
        // What is wrong with a value is told at the value, and not where a launch is made of it.
        let workload = match self.annotation.has_workload() {
            true => {
                let entry = self.entry(&configuration.macros).unwrap_or(&self.entry);
                let prepared = self.reach.prepared(&self.space, configuration);
                Some(workload::bind(self.annotation, entry, &self.space, &prepared)?)
            }
            false => None,
        };
        let launch = self.reach.launch(&self.space, configuration)?;
        Ok((launch, workload))
    }
}

/// How much of a kernel is compiled at once, to learn of it.
#[derive(Clone, Copy, Debug)]
pub enum Ahead {
    /// The baseline: the winner may be known already.
    Baseline,
    /// What will be compiled in any case.
    FirstRound,
}

/// Runs the front end and learns what there is to know of one kernel before its space is compiled. `in_force` are the values of
/// the macro axes of the whole file.
pub fn learn<'a>(
    tuner: &Tuner<'_>,
    toolchain: &Toolchain,
    front_ends: &mut FrontEnds<'_>,
    annotation: &'a Annotation,
    in_force: &InForce<'_>,
    ahead: Ahead,
) -> Result<Subject<'a>, Problem> {
    let name = toolchain.architecture();
    let unknown = || Problem::Architecture(name.to_owned());
    let architecture = architecture_number(name).and_then(Architecture::find).ok_or_else(unknown)?;
    let machine = machine(tuner, architecture);
    let unbounded = Space::new(annotation, &header_functions::limits(&architecture, None))?;
    unbounded.check_size()?;
    let baseline = unbounded.baseline().clone();
    // All at once, for as long as there are cores: one after the other each would wait for the one before.
    let kept = tuner.kept.get(&annotation.name).cloned();
    let barred = |space: &Space| match &kept {
        None => barred(tuner, toolchain, annotation, space),
        Some(_) => BTreeSet::new(),
    };
    let planned = match (&kept, ahead) {
        (Some(kept), _) => vec![kept.clone()],
        (None, Ahead::Baseline) => vec![baseline.macros.clone()],
        (None, Ahead::FirstRound) => {
            let (mut sets, barred) = (unbounded.macro_sets(), barred(&unbounded));
            sets.retain(|set| !barred.contains(set));
            effort(tuner, toolchain, annotation).first_round(sets)
        }
    };
    let own = kept.as_ref().unwrap_or(&baseline.macros);
    let planned: Vec<Macros> = planned.iter().map(|set| merged(in_force.now, set)).collect();
    let (plain, _) = rayon::join(
        || (kept.is_none() && !baseline.macros.is_empty()).then(|| toolchain.source_digest(&Macros::new())),
        || front_ends.get_in_time(&planned),
    );
    let full = merged(in_force.now, own);
    let front_end = one(front_ends, &full)?;
    let entries = workload::entries(&front_end.stub);
    // A template that another file brings along need not be of use to each source.
    let may_be_absent = annotation.instance.is_none() || annotation.source.path != toolchain.source();
    if may_be_absent && !entries.iter().any(|entry| entry.name() == annotation.kernel.name) {
        return Err(Problem::Absent);
    }
    other_constant(toolchain, annotation, &full)?;
    let entry = find(toolchain, annotation, &entries, own, &full)?;
    let layouts = layouts(toolchain, annotation, &entry, &full)?;
    let entry = entry.with_layouts(layouts.clone());
    let module = ptx::Module::parse(&front_end.ptx)?;
    if plain.is_some_and(|plain| !is_plain(front_ends, plain.ok(), in_force.baselines, &entry.symbol)) {
        return Err(Problem::Default { configuration: baseline });
    }
    let bounded = Space::new(
        annotation,
        &header_functions::limits(&architecture, ptx_facts::most_threads(&module, &entry.symbol)),
    )?;
    // Launch bounds may hang on a macro axis. What is compiled under the other values tells whether a block can be launched.
    let hangs_on_macros = !annotation.clauses.macros.is_empty() && bounded.baseline() == unbounded.baseline();
    let space = if hangs_on_macros { unbounded } else { bounded };
    let reach = match tuner.surroundings() {
        Some(around) => Reach::new(annotation, &space, &module, &entry, around),
        None => Reach::header(),
    };
    let waits_for_grid = annotation.clauses.cooperative || grid_sync::waits_for_grid(&module, &entry.symbol);
    let entries = HashMap::from([(own.clone(), Ok(entry.clone()))]);
    let barred = barred(&space);
    let subject = Subject {
        annotation,
        entry,
        entries,
        layouts,
        space,
        machine,
        reach,
        waits_for_grid,
        kept,
        barred,
        stale: None,
    };
    if subject.kept.is_none() {
        advise(tuner, toolchain, front_ends, &subject, in_force.now)?;
    }
    Ok(subject)
}

/// The sets of the axes' macros that may not be chosen whatever the compiler makes of them.
fn barred(tuner: &Tuner<'_>, toolchain: &Toolchain, annotation: &Annotation, space: &Space) -> BTreeSet<Macros> {
    let by_model = !will_time(tuner, toolchain, annotation);
    let barred = tuner.surroundings().map(|around| Reach::barred(annotation, space, around, by_model));
    barred.unwrap_or_default()
}

/// Complains of a constant that is another number in this build than the text around the comment tells; `full` are the macros of the build.
fn other_constant(toolchain: &Toolchain, annotation: &Annotation, full: &Macros) -> Result<(), Problem> {
    if annotation.constants.is_empty() {
        return Ok(());
    }
    // A source that the preprocessor cannot read was refused before.
    let Ok(definitions) = toolchain.definitions(full) else { return Ok(()) };
    let preprocessed = Source::new(annotation.source.path.clone(), definitions.as_bytes());
    let warning = |NamedConstant { name, value, span }: &NamedConstant| {
        let message = format!(
            "`{name}` is another number in this build than {value}, which the source defines it as: write the number; `{}` is not tuned",
            annotation.kernel.name
        );
        annotation.source.warning(*span, message)
    };
    let differing = comment::differing(&preprocessed, &annotation.constants);
    let differing: Vec<Diagnostic> = differing.into_iter().map(warning).collect();
    if differing.is_empty() { Ok(()) } else { Err(differing.into()) }
}

/// The entry of an annotation. Template arguments that are not told by their text are asked of the compiler; `full` are the
/// macros that it is given.
fn find(
    toolchain: &Toolchain,
    annotation: &Annotation,
    entries: &[Entry],
    macros: &Macros,
    full: &Macros,
) -> Result<Entry, Box<Diagnostic>> {
    let problem = match workload::find(entries, annotation, macros, &Spelled::new()) {
        Ok(entry) => return Ok(entry.clone()),
        Err(problem) if annotation.instance.is_none() => return Err(problem),
        Err(problem) => problem,
    };
    // A source that the preprocessor cannot read has no entries.
    let definitions = toolchain.definitions(full).unwrap_or_default();
    // C++17's word for a value of any type; before it integers are all that can be asked for.
    for value_type in ["auto", "long long"] {
        let Some(question) = template_args::question(annotation, entries, full, &definitions, value_type) else {
            break;
        };
        if let Ok(stub) = toolchain.ask(full, &question) {
            return workload::find(entries, annotation, macros, &template_args::answer(&stub)).cloned();
        }
    }
    Err(problem)
}

/// Asks the compiler for the layouts of the structures that the comment gives values to.
fn layouts(
    toolchain: &Toolchain,
    annotation: &Annotation,
    entry: &Entry,
    macros: &Macros,
) -> Result<BTreeMap<usize, Layout>, Problem> {
    let ask = |asked| match layout::question(annotation, entry, asked) {
        Some(question) => toolchain.ask(macros, &question),
        None => Ok(String::new()),
    };
    let answered = match ask(Asked::All) {
        // What has no name in the source cannot be asked for, and takes no value.
        Err(ToolError::Failed { .. }) => ask(Asked::Fields),
        answered => answered,
    };
    match answered {
        Ok(stub) => Ok(layout::answer(annotation, &stub)),
        Err(ToolError::Failed { message, .. }) => {
            // The source alone was compiled before, so the question is at fault: a field that does not exist, or cannot be named.
            let said = message.lines().find_map(|line| line.split_once("error: ")).map_or("", |(_, said)| said);
            let place = layout::place(annotation, said);
            // What names a type of the compiler's own, mangled, is nvtune's words and no fault of the comment.
            Err(match said.contains("\"_Z") {
                true => {
                    let kernel = &annotation.kernel.name;
                    let message = format!(
                        "the type of this structure has no name that could be asked for (a lambda's has none: pass a structure with an operator() of \
                         its own in its place); `{kernel}` is not tuned"
                    );
                    annotation.source.warning(place, message).into()
                }
                false => annotation.source.error(place, said.to_owned()).into(),
            })
        }
        Err(error) => Err(Problem::Tool(Arc::new(error))),
    }
}

/// Whether nvcc alone makes the same kernel as under the baselines' macros. A source that nvcc alone cannot read needs nvtune.
/// `plain` is the digest of the source that nvcc alone sees.
fn is_plain(front_ends: &mut FrontEnds<'_>, plain: Option<String>, baselines: &Macros, symbol: &str) -> bool {
    if let [Ok(baseline)] = front_ends.get(std::slice::from_ref(baselines)).as_slice()
        && plain.is_some_and(|plain| plain == baseline.source_digest)
    {
        return true;
    }
    let made = front_ends.get(&[Macros::new(), baselines.clone()]);
    let canonical = |made: &Made| {
        let module = ptx::Module::parse(&made.as_ref().ok()?.ptx).ok()?;
        module.canonical(symbol)
    };
    match made.as_slice() {
        [plain @ Ok(_), baseline] => canonical(plain) == canonical(baseline),
        _ => true,
    }
}

/// Warns of what is legal in the comment but surely meant otherwise.
fn advise(
    tuner: &Tuner<'_>,
    toolchain: &Toolchain,
    front_ends: &mut FrontEnds<'_>,
    subject: &Subject<'_>,
    in_force: &Macros,
) -> Result<(), Problem> {
    let baseline = subject.space.baseline();
    let module = ptx::Module::parse(&one(front_ends, &merged(in_force, &baseline.macros))?.ptx)?;
    let (launch, workload) = subject.launch(baseline)?;
    let run = workload.as_ref().map(|workload| (&launch, workload));
    let facts = ptx_facts::facts(&module, &subject.entry.symbol, toolchain.register_cap(), run);
    let facts = Facts { floating: workload::floating(subject.annotation, &subject.entry), ..facts };
    let mut found = crate::space::advice(subject.annotation, &subject.space, &facts);
    found.extend(tuner.surroundings().and_then(|around| launches::beside_the_baseline(subject, around)));
    tuner.console.diagnostics(&found);
    Ok(())
}

fn one(front_ends: &mut FrontEnds<'_>, macros: &Macros) -> Result<Arc<FrontEnd>, Problem> {
    match front_ends.get(std::slice::from_ref(macros)).pop() {
        Some(made) => made.map_err(|error| match at_fault(front_ends, macros, &error) {
            Some(macros) => Problem::Macros { macros, error },
            None => Problem::Source(error),
        }),
        None => Err(Problem::Tool(Arc::new(ToolError::Code(CodeDigestError::NoKernel(String::new()))))),
    }
}

/// Of macros under which the front end fails those that make it fail alone, or all where none does; `None` where it fails without
/// any of them.
fn at_fault(front_ends: &mut FrontEnds<'_>, macros: &Macros, error: &ToolError) -> Option<Macros> {
    // What comes after cicc has seen a source that cicc took.
    let is_source =
        matches!(error, ToolError::Failed { program, .. } if ["gcc -E", "cicc"].contains(&program.as_str()));
    if !is_source || macros.is_empty() || front_ends.get(&[Macros::new()]).iter().any(Result::is_err) {
        return None;
    }
    let alone: Vec<Macros> = macros.iter().map(|(name, value)| Macros::from([(name.clone(), *value)])).collect();
    let failing = alone.iter().zip(front_ends.get(&alone)).filter(|(_, made)| made.is_err());
    let failing: Macros = failing.flat_map(|(set, _)| set.clone()).collect();
    Some(if failing.is_empty() { macros.clone() } else { failing })
}
