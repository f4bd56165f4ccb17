//! A kernel after the front end has run: its annotation, its symbol and types, its space, and how
//! launches select its winner.

use super::failure::Problem;
use super::kernel::{compile_scope, machine};
use super::launch_path::LaunchPath;
use super::variants::{FrontEnds, Macros, options_for};
use super::{Tuner, grid_axis, header_functions, launches, written_variables};
use crate::analysis::{grid_sync, ptx_facts, written_only};
use crate::comment;
use crate::comment::{Annotation, NamedConstant, RecordedMemory};
use crate::cuda::{Spelled, StructureMember, Type, array_element};
use crate::diag::{Diagnostic, MessageCode, Source};
use crate::gpu::{Architecture, Machine, architecture_number};
use crate::launch::{Configuration, FrontEndOptions, Launch};
use crate::nvcc::{FrontEnd, ToolError, Toolchain};
use crate::ptx;
use crate::record::Stale;
use crate::sass::CodeDigestError;
use crate::space::Facts;
use crate::space::{Limits, Space};
use crate::workload;
use crate::workload::layout;
use crate::workload::layout::LayoutQuery;
use crate::workload::{Entry, Field, Layout, Workload, WrittenVariable, template_args};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What is known of a kernel once the front end has run.
pub struct KernelInfo<'a> {
    /// The comment as it is read; that of the space may have the grid as an axis besides.
    pub annotation: &'a Annotation,
    /// The kernel under the baseline's macros.
    pub entry: Entry,
    /// Bytes of the kernel's PTX.
    pub ptx_bytes: usize,
    /// The kernel's entry for each set of front-end options: macros may be arguments of a
    /// template, and so change its name. `Err` is why there is none.
    entries: HashMap<FrontEndOptions, Result<Entry, String>>,
    /// What the compiler says of the parameters' types.
    layouts: BTreeMap<usize, Layout>,
    pub space: Space,
    pub machine: Machine,
    /// How launches select the kernel's winner.
    pub launch_path: LaunchPath,
    /// The variables that the kernel may write under the baseline's macros.
    pub written: Vec<WrittenVariable>,
    /// For each parameter, whether the kernel only writes the memory that it points at.
    only_written: Vec<bool>,
    /// Whether all blocks of a launch must be resident at once: it is launched cooperatively.
    pub waits_for_grid: bool,
    /// Why the lock file's entry for it is not used.
    pub stale: Option<Stale>,
}

impl KernelInfo<'_> {
    /// The configuration that is kept if no other is faster.
    pub fn baseline(&self) -> Configuration {
        self.space.baseline().clone()
    }

    /// The sets of the axes' options that can be chosen, the baseline's first.
    pub fn front_ends(&self) -> Vec<FrontEndOptions> {
        match self.launch_path.pinned() {
            Some(_) => vec![self.space.baseline().front_end()],
            None => self.space.front_ends(),
        }
    }

    /// What the front end is given for a set of the axes' options: of the baseline's macros
    /// none, which the source has itself.
    pub fn options(&self, set: &FrontEndOptions) -> FrontEndOptions {
        options_for(&self.space.baseline().macros, set)
    }

    /// Whether the comment says how much shared memory a launch has.
    pub fn has_shared_clause(&self) -> bool {
        self.annotation.clauses.shared.is_some()
    }

    /// The kernel under these values of the axes.
    pub fn entry(&self, options: &FrontEndOptions) -> Result<&Entry, String> {
        match self.entries.get(options) {
            Some(entry) => entry.as_ref().map_err(Clone::clone),
            None => Ok(&self.entry),
        }
    }

    /// Runs the front end for these sets of options and finds the kernel's entry in each.
    pub fn learn(&mut self, front_ends: &mut FrontEnds<'_>, toolchain: &Toolchain, sets: &[FrontEndOptions]) {
        let is_new = |set: &&FrontEndOptions| !matches!(self.entries.get(*set), Some(Ok(_)));
        let sets: Vec<FrontEndOptions> = sets.iter().filter(is_new).cloned().collect();
        let full: Vec<FrontEndOptions> = sets.iter().map(|set| self.options(set)).collect();
        let found = sets.par_iter().zip(front_ends.get_in_time(&full)).map(|(set, made)| {
            let entry = made.map_err(|error| error.to_string()).and_then(|front_end| {
                let entries = workload::entries(&front_end.stub);
                let found = find(toolchain, self.annotation, &entries, &set.macros, &self.options(set).macros);
                // The kernel is, under other values.
                let found = found.map_err(|problem| problem.message.replace("; nvcc builds it as it is", ""))?;
                Ok(found.with_layouts(self.layouts.clone()))
            });
            (set.clone(), entry)
        });
        let found: Vec<_> = found.collect();
        self.entries.extend(found);
    }

    /// Why the model alone must not choose a configuration, which is launched so; with the
    /// remedy.
    pub fn refuses_predicted(&self, configuration: &Configuration, launch: &Launch) -> Option<String> {
        let refusal = self.launch_path.refuses_predicted(&self.space, configuration, launch);
        refusal.or_else(|| self.leaves_work_untold(configuration)).or_else(|| uncompared_math(configuration))
    }

    /// Returns why the model must not choose a configuration without a workload. The model then
    /// assumes loops of equal length in every launch. If the work is divided among the threads,
    /// the launch with the fewest threads would win for that reason alone.
    fn leaves_work_untold(&self, configuration: &Configuration) -> Option<String> {
        if self.annotation.has_workload() || !self.space.leaves_work_untold(configuration) {
            return None;
        }
        let threads = if configuration.grid.is_some() { "block.x * grid.x" } else { "block.x" };
        Some(format!("the work of a thread is unknown: give trips(ceildiv(n, {threads})), n a number"))
    }

    /// The launch and the workload of a configuration; no workload where the comment has no
    /// `args`.
    pub fn launch(&self, configuration: &Configuration) -> Result<(Launch, Option<Workload>), Problem> {
        self.launch_in(&self.space, configuration)
    }

    /// The same for another problem, which `space` is the space of.
    pub fn launch_in(
        &self,
        space: &Space,
        configuration: &Configuration,
    ) -> Result<(Launch, Option<Workload>), Problem> {
        // What is wrong with a value is reported at the value, and not where a launch is made of
        // it.
        let workload = match self.annotation.has_workload() {
            true => {
                let entry = self.entry(&configuration.front_end()).unwrap_or(&self.entry);
                let prepared = self.launch_path.prepared(space, configuration);
                let mut workload = workload::bind(space.annotation(), entry, space, &prepared)?;
                if space.annotation().clauses.recorded.is_some() {
                    workload.overwrite_outputs(&self.only_written);
                }
                Some(Workload { written: self.written.clone(), ..workload })
            }
            false => None,
        };
        match space.name_without_value() {
            Some(name) if self.annotation.clauses.args.is_none() => Err(Problem::NotRecorded { name: name.to_owned() }),
            _ => Ok((space.launch(configuration)?, workload)),
        }
    }
}

/// Why math options are not chosen by the model alone.
pub const UNCOMPARED_MATH: &str = "math options are only chosen if a GPU times them and compares the results";

/// Returns why the model alone must not choose a configuration with math options: its results
/// were not compared.
fn uncompared_math(configuration: &Configuration) -> Option<String> {
    let is_other = !configuration.math.is_none();
    is_other.then(|| UNCOMPARED_MATH.to_owned())
}

/// How much of a kernel is compiled before its space is known.
#[derive(Clone, Copy, Debug)]
pub enum InitialCompile {
    /// The baseline alone: lock file or cache may have the winner.
    Baseline,
    /// All that will be compiled in any case.
    FirstRound,
}

/// Runs the front end and collects what is known of one kernel before its space is compiled.
pub fn inspect_kernel<'a>(
    tuner: &Tuner<'_>,
    toolchain: &Toolchain,
    front_ends: &mut FrontEnds<'_>,
    annotation: &'a Annotation,
    ahead: InitialCompile,
) -> Result<KernelInfo<'a>, Problem> {
    let name = toolchain.architecture();
    let unknown = || Problem::Architecture(name.to_owned());
    let architecture = architecture_number(name).and_then(Architecture::find).ok_or_else(unknown)?;
    let machine = machine(tuner, architecture);
    let has_loops = annotation.clauses.unroll.is_none() || toolchain.has_loops(&annotation.kernel.name);
    let build_math = toolchain.math();
    let limits = |bounds| Limits { build_math, has_loops, ..header_functions::limits(&architecture, bounds) };
    let unbounded = Space::new(annotation, &limits(None))?;
    unbounded.check_size()?;
    let baseline = unbounded.baseline().clone();
    // All at once, for as long as there are cores: one after the other each would wait for the one
    // before.
    let planned = match ahead {
        InitialCompile::Baseline => vec![baseline.front_end()],
        InitialCompile::FirstRound => compile_scope(tuner, toolchain, annotation).first_round(unbounded.front_ends()),
    };
    let own = &baseline.macros;
    let planned: Vec<FrontEndOptions> = planned.iter().map(|set| options_for(own, set)).collect();
    let (under_default, _) =
        rayon::join(|| (!own.is_empty()).then(|| toolchain.source_digest(own)), || front_ends.get_in_time(&planned));
    let front_end = baseline_front_end(front_ends)?;
    let entries = workload::entries(&front_end.stub);
    // A template that another file brings along need not be of use to each source.
    let may_be_absent = annotation.instance.is_none() || annotation.source.path != toolchain.source();
    if may_be_absent && !entries.iter().any(|entry| entry.name() == annotation.kernel.name) {
        return Err(Problem::Absent);
    }
    // Nor need the source still have what was recorded once.
    let is_recorded = annotation.instance.as_ref().is_some_and(|instance| instance.is_recorded);
    if is_recorded && !workload::has_instance(&entries, annotation) {
        return Err(Problem::Absent);
    }
    check_constants(toolchain, annotation)?;
    let entry = find(toolchain, annotation, &entries, own, &Macros::new())?;
    let layouts = layouts(toolchain, annotation, &entry)?;
    let entry = entry.with_layouts(layouts.clone());
    let module = ptx::Module::parse(&front_end.ptx)?;
    let lacks_textures = |memory: &Arc<RecordedMemory>| memory.textures.is_empty();
    if annotation.clauses.recorded.as_ref().is_some_and(lacks_textures)
        && ptx_facts::accesses_textures(&module, &entry.symbol)
    {
        return Err(Problem::TexturesNotRecorded);
    }
    if let Some(digest) = under_default {
        check_default(front_ends, digest.ok(), &baseline, &entry.symbol)?;
    }
    let limits = limits(ptx_facts::most_threads(&module, &entry.symbol));
    // What does not compile so proves nothing, and the grid stays as it is.
    let not_unrolled = || {
        let options = FrontEndOptions { unroll: Some(1), ..FrontEndOptions::default() };
        let made = front_ends.get(&[options]).pop()?.ok()?;
        ptx::Module::parse(&made.ptx).ok()
    };
    let wider = grid_axis::with_grid_axis(annotation, &entry, &module, not_unrolled);
    let wider = wider.and_then(|annotation| Space::new(&annotation, &limits).ok());
    let bounded = wider.map_or_else(|| Space::new(annotation, &limits), Ok)?;
    // Launch bounds may depend on a macro axis. What is compiled under the other values tells
    // whether a block can be launched.
    let depends_on_macros = !annotation.clauses.macros.is_empty() && bounded.baseline() == unbounded.baseline();
    let space = if depends_on_macros { unbounded } else { bounded };
    let written = written_variables::written(annotation, &entry, &module);
    let only_written = written_only::parameters(&module, &entry.symbol);
    let launch_path = match tuner.surroundings() {
        Some(around) => LaunchPath::new(&space, &module, &entry, around.build()).with_written(&written),
        None => LaunchPath::in_place(&space),
    };
    let waits_for_grid = annotation.clauses.cooperative || grid_sync::waits_for_grid(&module, &entry.symbol);
    let entries = HashMap::from([(baseline.front_end(), Ok(entry.clone()))]);
    let ptx_bytes = module.entry(&entry.symbol).map_or(0, |function| function.span.len());
    let info = KernelInfo {
        annotation,
        entry,
        ptx_bytes,
        entries,
        layouts,
        space,
        machine,
        launch_path,
        written,
        only_written,
        waits_for_grid,
        stale: None,
    };
    if !tuner.is_other_architecture {
        advise(tuner, toolchain, &module, &info)?;
    }
    Ok(info)
}

/// Checks that the constants that the comment names have the same values in this build as in the
/// text of the source.
fn check_constants(toolchain: &Toolchain, annotation: &Annotation) -> Result<(), Problem> {
    if annotation.constants.is_empty() {
        return Ok(());
    }
    // A source that the preprocessor cannot read was refused before.
    let Ok(definitions) = toolchain.definitions(&Macros::new()) else { return Ok(()) };
    let preprocessed = Source::new(annotation.source.path.clone(), definitions.as_bytes());
    let warning = |NamedConstant { name, value, span }: &NamedConstant| {
        let message = format!(
            "`{name}` differs in this build from {value} in the source: write the number; nvcc builds `{}` as it is",
            annotation.kernel.name
        );
        annotation.source.warning(MessageCode::ConstantDiffers, *span, message)
    };
    let differing = comment::differing(&preprocessed, &annotation.constants);
    let differing: Vec<Diagnostic> = differing.into_iter().map(warning).collect();
    if differing.is_empty() { Ok(()) } else { Err(differing.into()) }
}

/// The entry of an annotation. Template arguments that their text does not give are asked of
/// the compiler; `full` are the macros that it is given.
pub fn find(
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
fn layouts(toolchain: &Toolchain, annotation: &Annotation, entry: &Entry) -> Result<BTreeMap<usize, Layout>, Problem> {
    let ask = |asked| match layout::question(annotation, entry, asked) {
        Some(question) => toolchain.ask(&Macros::new(), &question),
        None => Ok(String::new()),
    };
    let answered = match ask(LayoutQuery::All) {
        // What has no name in the source cannot be asked for, and takes no value.
        Err(ToolError::Failed { .. }) => ask(LayoutQuery::Fields),
        answered => answered,
    };
    match answered {
        Ok(stub) => {
            let layouts = layout::answer(annotation, &stub);
            check_fields(annotation, &layouts).map(|()| layouts)
        }
        Err(ToolError::Failed { message, .. }) => {
            // The source alone was compiled before, so the question is at fault: a field that does
            // not exist, or cannot be named.
            let said = message.lines().find_map(|line| line.split_once("error: ")).map_or("", |(_, said)| said);
            let place = layout::place(annotation, said);
            if annotation.clauses.recorded.is_some() {
                let name = &annotation.kernel.name;
                let message = format!(
                    "`{name}` is not tuned: its grid follows a structure that is another one for the compiler ({said}): give `threads` or `grid`"
                );
                return Err(annotation.source.error(MessageCode::WrongFields, place, message).into());
            }
            // What names a type of the compiler's own, mangled, is nvtune's words and no fault of
            // the comment.
            Err(match said.contains("\"_Z") {
                true => {
                    let kernel = &annotation.kernel.name;
                    let message = format!(
                        "this type has no name, as a lambda's: pass a structure with an operator(); nvcc builds `{kernel}` as it is"
                    );
                    annotation.source.warning(MessageCode::UnknownType, place, message).into()
                }
                false => annotation.source.error(MessageCode::WrongFields, place, said.to_owned()).into(),
            })
        }
        Err(error) => Err(Problem::Tool(Arc::new(error))),
    }
}

/// Checks the fields that the launch expressions name by the compiler's layouts: numbers of a
/// recording were read where the compiler has them, and elements are of arrays of numbers, for host
/// code cannot read what a pointer points at.
fn check_fields(annotation: &Annotation, layouts: &BTreeMap<usize, Layout>) -> Result<(), Problem> {
    let kernel = &annotation.kernel;
    let mut problems = Vec::new();
    for expression in annotation.clauses.launch_expressions() {
        expression.names(&mut |name, span| {
            let Some((parameter, path)) = name.split_once('.') else { return };
            let Some(index) = kernel.parameters.iter().position(|known| known.as_deref() == Some(parameter)) else {
                return;
            };
            let field = array_element(path).map_or(path, |(array, _)| array);
            let Some(Field { offset, kind }) = layouts.get(&index).and_then(|layout| layout.fields.get(field)) else {
                return;
            };
            let message = if recorded_member(annotation, index, path).is_some_and(|member| !member.is_at(*offset, kind))
            {
                format!(
                    "`{}` is not tuned: `{name}` is not where the text of the source has it: give `threads` or `grid`",
                    kernel.name
                )
            } else if field != path && !is_array_of_numbers(kind) {
                format!("`{parameter}.{field}` is of type `{kind}`: only elements of an array of numbers have a value")
            } else {
                return;
            };
            problems.push(annotation.source.error(MessageCode::NameWithoutValue, span, message));
        });
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.into()) }
}

/// The number that a recording has in a parameter under a path.
fn recorded_member<'a>(annotation: &'a Annotation, parameter: usize, path: &str) -> Option<&'a StructureMember> {
    let given = annotation.clauses.args.iter().flatten().filter(|given| given.parameter == parameter);
    given.flat_map(|given| given.value.members()).find(|member| member.path == path)
}

/// Whether a type is an array of one dimension of numbers.
fn is_array_of_numbers(kind: &str) -> bool {
    kind.split_once('[').is_some_and(|(element, extents)| {
        !extents.contains('[') && matches!(Type::parse_type(element), Type::Scalar(_))
    })
}

/// Checks that the baseline's macros are the values that the source has itself. `under_default`
/// is the digest of the source as the front end sees it with them set.
fn check_default(
    front_ends: &mut FrontEnds<'_>,
    under_default: Option<String>,
    baseline: &Configuration,
    symbol: &str,
) -> Result<(), Problem> {
    let made = front_ends.get(&[FrontEndOptions::default()]);
    let [Ok(plain)] = made.as_slice() else { return Ok(()) };
    if under_default.is_some_and(|digest| digest == plain.source_digest) {
        return Ok(());
    }
    let canonical = |made: &FrontEnd| {
        let module = ptx::Module::parse(&made.ptx).ok()?;
        module.canonical_text(symbol)
    };
    match front_ends.get(&[baseline.front_end()]).as_slice() {
        [Ok(set)] if canonical(set) == canonical(plain) => Ok(()),
        [Err(error)] => {
            Err(Problem::Macros { macros: failing_macros(front_ends, &baseline.macros), error: Arc::clone(error) })
        }
        _ => Err(Problem::Default { configuration: baseline.clone() }),
    }
}

/// Returns those macros under which alone the front end fails, or all where none does.
fn failing_macros(front_ends: &mut FrontEnds<'_>, macros: &Macros) -> Macros {
    let alone = macros.iter().map(|(name, value)| Macros::from([(name.clone(), *value)]));
    let alone: Vec<FrontEndOptions> = alone.map(FrontEndOptions::from).collect();
    let failing = alone.iter().zip(front_ends.get(&alone)).filter(|(_, made)| made.is_err());
    let failing: Macros = failing.flat_map(|(set, _)| set.macros.clone()).collect();
    if failing.is_empty() { macros.clone() } else { failing }
}

/// Warns of likely mistakes in a legal comment. `module` is the PTX of the baseline.
fn advise(
    tuner: &Tuner<'_>,
    toolchain: &Toolchain,
    module: &ptx::Module,
    info: &KernelInfo<'_>,
) -> Result<(), Problem> {
    let (launch, workload) = info.launch(info.space.baseline())?;
    let run = workload.as_ref().map(|workload| (&launch, workload));
    let facts = ptx_facts::collect_facts(module, &info.entry.symbol, toolchain.register_cap(), run);
    let facts = Facts { floating: workload::floating(info.annotation, &info.entry), ..facts };
    let mut found = crate::space::give_advice(info.space.annotation(), &info.space, &facts);
    if let Some(around) = tuner.surroundings() {
        found.extend(launches::warn_other_block(info, around));
        found.extend(launches::without_stub(info, around));
    }
    tuner.console.diagnostics(&found);
    Ok(())
}

/// Runs the front end on the source with nvcc's own options.
pub fn baseline_front_end(front_ends: &mut FrontEnds<'_>) -> Result<Arc<FrontEnd>, Problem> {
    match front_ends.get(&[FrontEndOptions::default()]).pop() {
        Some(made) => made.map_err(Problem::Source),
        None => Err(Problem::Tool(Arc::new(ToolError::Code(CodeDigestError::NoKernel(String::new()))))),
    }
}
