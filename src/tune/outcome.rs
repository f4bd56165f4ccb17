//! A decided kernel, and what the build makes of it: the header, the build plan for the shims,
//! the launch stub and the summary line.

use super::argument_conditions;
use super::header_functions;
use super::kernel_info::KernelInfo;
use super::launch_path::WinnerPlacement;
use super::scoring::Scored;
use super::variants::FrontEnds;
use crate::comment::Annotation;
use crate::diag::MessageCode;
use crate::emit::cxx_expression::Types;
use crate::emit::{Dispatch, HeaderKernel, PlannedKernel, StubChange, StubText, Winner};
use crate::gpu::architecture_number;
use crate::launch::{Configuration, FrontEndOptions};
use crate::nvcc::Toolchain;
use crate::ptx::{Destination, Edits, Transplant};
use crate::record::Decision;
use crate::search::Provenance;
use serde::{Deserialize, Serialize};

/// One kernel with its winner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tuned {
    pub decision: Decision,
    header: HeaderKernel,
    baseline_header: HeaderKernel,
    /// What the ptxas shim does for the winner.
    planned: Option<PlannedKernel>,
    stub: Option<Stub>,
    /// The same kernel on the other architectures of a fat build.
    other_architectures: Vec<Tuned>,
    /// The compute capabilities for which nothing was decided: there the kernel is as nvcc
    /// builds it.
    #[serde(default)]
    untuned: Vec<u32>,
    /// What must hold of a launch's arguments for the winner to run, in the comment's words;
    /// `None` where nothing must.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    applies: Option<String>,
    /// From the cache, not decided by this build.
    is_recalled: bool,
}

/// A launch stub that is to be rewritten.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stub {
    source: String,
    stub: String,
    symbol: String,
    dispatch: Dispatch,
}

impl Tuned {
    /// Makes what the build needs from a decision of this build.
    pub fn new(toolchain: &Toolchain, info: &KernelInfo<'_>, scored: &Scored, mut decision: Decision) -> Self {
        let input = &scored.input;
        let ptx = |of: &Configuration| {
            let is_of_set = |found: &Configuration| found.has_front_end_of(of);
            let index = input.configurations.iter().position(is_of_set)?;
            input.sources[input.source_of[index]].whole_ptx.as_deref()
        };
        let digest = |row: usize| {
            let variant = decision.configurations[row].variant?;
            Some(decision.variants.get(variant)?.digest.clone())
        };
        let winner = &decision.configurations[decision.winner].configuration;
        let symbol = info.entry(&winner.front_end()).unwrap_or(&info.entry).symbol.clone();
        let made = ptx(info.space.baseline()).zip(ptx(winner)).zip(digest(decision.winner));
        let entry = made.map(|((host, donor), digest)| (host, donor, (symbol, digest)));
        // nvcc compiles its own kernel without the register cap of `default`.
        let uncapped = Configuration { cap: 0, ..info.space.baseline().clone() };
        let row_of_nvcc = decision.configurations.iter().position(|row| row.configuration == uncapped);
        let nvcc_digest = row_of_nvcc.and_then(digest);
        let is_clustered = mention_clusters(entry.as_ref());
        let planned = planned_kernel(info, &mut decision, entry, nvcc_digest);
        Self::from_parts(toolchain, info, decision, planned, is_clustered)
    }

    /// Makes what the build needs from a decision of an earlier build. `code` is the digest of
    /// the winner's machine code.
    pub fn recalled(
        toolchain: &Toolchain,
        info: &KernelInfo<'_>,
        front_ends: &FrontEnds<'_>,
        mut decision: Decision,
        code: Option<&str>,
    ) -> Self {
        // Names may have changed since.
        decision.symbol.clone_from(&info.entry.symbol);
        let options = decision.configurations[decision.winner].configuration.front_end();
        let made = |options: &FrontEndOptions| front_ends.made(options).map(|made| &*made.ptx);
        let symbol = info.entry(&options).unwrap_or(&info.entry).symbol.clone();
        let entry = made(&FrontEndOptions::default()).zip(made(&info.options(&options))).zip(code);
        let entry = entry.map(|((host, donor), code)| (host, donor, (symbol, code.to_owned())));
        let is_clustered = mention_clusters(entry.as_ref());
        let planned = planned_kernel(info, &mut decision, entry, None);
        Self::from_parts(toolchain, info, decision, planned, is_clustered)
    }

    fn from_parts(
        toolchain: &Toolchain,
        info: &KernelInfo<'_>,
        mut decision: Decision,
        planned: Option<PlannedKernel>,
        is_clustered: bool,
    ) -> Self {
        let gpu = match &decision.device {
            Some(device) => format!("{}, {}", device.name, decision.architecture),
            None => decision.architecture.clone(),
        };
        decision.tolerance = tolerance(info.annotation, &decision.configurations[decision.winner].configuration);
        let types = header_functions::types(info.annotation, &info.entry);
        let configuration = |index: usize| &decision.configurations[index].configuration;
        let baseline = configuration(decision.baseline);
        let header = |index: usize, provenance: Provenance| {
            let occupancy = decision.configurations[index].score.map(|score| (score.occupancy * 100.0).round() as u32);
            let header = header_functions::header(info.annotation, &types, configuration(index), provenance, &gpu);
            HeaderKernel {
                occupancy,
                speedup: decision.speedup,
                cooperative: info.waits_for_grid,
                source_macros: baseline.macros.clone(),
                is_in_place: info.launch_path.placement == WinnerPlacement::InPlace,
                ..header
            }
        };
        let baseline_header = header(decision.baseline, Provenance::Baseline);
        let mut winner_header = header(decision.winner, decision.provenance);
        let (launch_path, winner) = (&info.launch_path, configuration(decision.winner));
        if !launch_path.is_own_in_header(winner, baseline) {
            winner_header.launch_as(&baseline_header);
        } else if !launch_path.kernel_takes_launch(winner, baseline) {
            winner_header.newer = Some(Box::new(baseline_header.clone()));
        }
        let has_stub = planned.is_some() && info.launch_path.reshapes();
        let divisions = (!decision.surplus)
            .then(|| argument_conditions::conditions_text(&info.space, configuration(decision.winner)))
            .filter(|conditions| !conditions.is_empty());
        let annotation = info.space.annotation();
        let required = argument_conditions::requirements(annotation).map(|required| annotation.written(required));
        let limit = decision.grid_limit.map(|limit| limit.to_string());
        let conditions: Vec<String> = divisions.into_iter().chain(required).chain(limit).collect();
        let applies = (has_stub && !conditions.is_empty()).then(|| conditions.join(" and "));
        Self {
            applies,
            header: winner_header,
            baseline_header,
            stub: stub(toolchain, info, &types, &decision, planned.as_ref(), is_clustered),
            planned,
            other_architectures: Vec::new(),
            untuned: Vec::new(),
            is_recalled: false,
            decision,
        }
    }

    /// Returns a copy for the cache, without the configurations that are neither baseline nor
    /// winner.
    pub fn condensed(&self) -> Self {
        let mut condensed = self.clone();
        let decision = &mut condensed.decision;
        decision.retain(|_| false);
        decision.variants.clear();
        decision.configurations.iter_mut().for_each(|found| found.variant = None);
        condensed.is_recalled = true;
        condensed.other_architectures = self.other_architectures.iter().map(Self::condensed).collect();
        condensed
    }

    /// Marks the result as taken from the cache.
    pub fn mark_recalled(&mut self) {
        self.is_recalled = true;
    }

    /// Returns the baseline of a kernel without a known result, for a build that does not search.
    pub fn unknown(toolchain: &Toolchain, info: &KernelInfo<'_>, mut decision: Decision) -> Self {
        decision.winner = decision.baseline;
        decision.provenance = Provenance::Baseline;
        Self::from_parts(toolchain, info, decision, None, false)
    }

    /// Adds the decisions for other architectures of the same source. For `untuned` ones nothing
    /// was decided.
    pub fn add_architectures(&mut self, others: &[Tuned], untuned: &[u32]) {
        let own = others.iter().filter(|other| other.decision.name == self.decision.name);
        self.other_architectures.extend(own.cloned());
        self.untuned.extend_from_slice(untuned);
    }

    /// This and the same kernel on other architectures.
    fn everywhere(&self) -> impl Iterator<Item = &Tuned> {
        std::iter::once(self).chain(&self.other_architectures)
    }

    /// The decisions for every architecture.
    pub fn decisions(&self) -> impl Iterator<Item = &Decision> {
        self.everywhere().map(|tuned| &tuned.decision)
    }

    /// What the header says.
    pub fn header(&self) -> HeaderKernel {
        let others = self
            .other_architectures
            .iter()
            .filter_map(|other| Some((architecture_number(&other.decision.architecture)?, other.header.clone())));
        let stays = |&capability: &u32| (capability, self.baseline_header.clone());
        let others = others.chain(self.untuned.iter().map(stays));
        let own = architecture_number(&self.decision.architecture);
        HeaderKernel { others: others.collect(), capability: own.unwrap_or(0), ..self.header.clone() }
    }

    /// Whether this is the symbol of its code, on any architecture, or of its launch stub.
    pub fn is_built_as(&self, symbol: &str) -> bool {
        let stub = self.stub.as_ref().is_some_and(|stub| stub.stub == symbol);
        stub || self.everywhere().any(|tuned| tuned.decision.symbol == symbol)
    }

    /// Falls back to the baseline because the winner could not be built or announced.
    pub fn fall_back(&mut self, code: MessageCode, problem: &str) {
        self.decision.keep_baseline();
        self.decision.tolerance = None;
        self.decision.note(code, format!("the tuned result is not used: {problem}"));
        self.header = self.baseline_header.clone();
        self.planned = None;
        self.stub = None;
        self.applies = None;
        self.other_architectures.clear();
    }

    /// What the `ptxas` shim does for it.
    pub fn planned_kernels(&self) -> impl Iterator<Item = PlannedKernel> {
        self.everywhere().filter_map(|tuned| tuned.planned.clone())
    }

    /// What the `cicc` shim does for it.
    pub fn stub(&self) -> Option<StubText> {
        let mut stubs = self.everywhere().filter_map(|tuned| tuned.stub.clone());
        let Stub { source, stub, symbol, mut dispatch } = stubs.next()?;
        dispatch.winners.extend(stubs.flat_map(|other| other.dispatch.winners));
        Some(StubText { source, stub, symbol, change: StubChange::Dispatch(dispatch) })
    }

    /// Resident warps of the winner in percent of the most that an SM holds, where that is
    /// known.
    pub fn occupancy(&self) -> Option<u32> {
        self.header.occupancy
    }

    /// Sets the winner's occupancy.
    pub fn set_occupancy(&mut self, percent: Option<u32>) {
        self.header.occupancy = percent;
    }

    /// The digest of the winner's machine code; none for a baseline that nvcc builds by itself.
    pub fn code(&self) -> Option<&str> {
        self.planned.as_ref().map(|planned| planned.digest.as_str())
    }

    /// The winning configuration.
    pub fn winner(&self) -> &Configuration {
        &self.decision.configurations[self.decision.winner].configuration
    }

    /// A line for the user for each architecture.
    pub fn summaries(&self) -> Vec<String> {
        let several = !self.other_architectures.is_empty();
        let lines = |tuned: &Tuned| {
            let held = tuned.decision.held_back();
            let notes = held.map(|note| format!("{}{}: note: {note}", tuned.decision.name, tuned.place(several)));
            std::iter::once(tuned.summary(several)).chain(notes).collect::<Vec<_>>()
        };
        self.everywhere().flat_map(lines).collect()
    }

    /// ` on sm_90` where there are several architectures.
    fn place(&self, several: bool) -> String {
        if several { format!(" on {}", self.decision.architecture) } else { String::new() }
    }

    /// Why a baseline is kept.
    fn why_kept(&self) -> (MessageCode, &'static str) {
        let decision = &self.decision;
        if decision.has_note(MessageCode::NotTransplanted) {
            (MessageCode::NotTransplanted, "the fastest configuration does not fit into this object")
        } else if decision.points == 0 {
            (MessageCode::NothingKnown, "no result is known")
        } else if decision.held_back().next().is_some() {
            (MessageCode::KeptAmongAllowed, "no configuration that may be chosen is faster")
        } else if decision.device.is_none() {
            (MessageCode::KeptByModel, "no configuration is predicted to be faster")
        } else if decision.timed == 0 {
            (MessageCode::BaselineFails, "it cannot be timed")
        } else {
            (MessageCode::Kept, "no configuration is faster at 99% confidence")
        }
    }

    /// Returns the line of a kernel; one that keeps the baseline ends in the code of its
    /// reason.
    fn summary(&self, several: bool) -> String {
        let line = self.decision_line(several);
        match self.decision.provenance {
            Provenance::Baseline => self.why_kept().0.tag(line),
            Provenance::Predicted | Provenance::Measured | Provenance::Locked => line,
        }
    }

    fn decision_line(&self, several: bool) -> String {
        let decision = &self.decision;
        let gain = match decision.provenance {
            Provenance::Baseline => format!("kept: {}", self.why_kept().1),
            Provenance::Predicted | Provenance::Measured | Provenance::Locked => {
                let applies = self.applies.as_ref().map(|applies| format!(", for {applies}")).unwrap_or_default();
                let within = decision.tolerance.as_ref().map(|tolerance| format!(", results within {tolerance}"));
                let within = within.unwrap_or_default();
                format!("{:.2}x over the baseline, {}{within}{applies}", decision.speedup, decision.provenance)
            }
        };
        let place = self.place(several);
        if decision.provenance == Provenance::Locked {
            let note = decision.notes.first().map(|note| format!("; {note}")).unwrap_or_default();
            return format!("{}{place}: {} ({gain}{note})", decision.name, self.winner());
        }
        if self.is_recalled {
            let lacks = decision.lacks.as_ref().map(|lacks| format!(", {lacks}")).unwrap_or_default();
            return format!("{}{place}: {} ({gain}); from the cache{lacks}", decision.name, self.winner());
        }
        // Nobody looked.
        if decision.points == 0 {
            return format!("{}{place}: {} ({gain})", decision.name, self.winner());
        }
        let resumed = match decision.resumed {
            0 => String::new(),
            resumed => format!(" ({resumed} before an interruption)"),
        };
        let lacks = decision.lacks.as_ref().map(|lacks| format!("{lacks}, ")).unwrap_or_default();
        format!(
            "{}{place}: {} ({gain}); {lacks}{} of {} points timed{resumed}, {:.1} s",
            decision.name,
            self.winner(),
            decision.timed,
            decision.points,
            decision.seconds.total()
        )
    }
}

/// Tells how closely the results of a configuration with math options were compared with the
/// baseline's: `rtol = 0.0001`.
fn tolerance(annotation: &Annotation, configuration: &Configuration) -> Option<String> {
    if configuration.math.is_none() {
        return None;
    }
    let check = annotation.clauses.check.as_ref();
    let given = [("rtol", check.and_then(|check| check.relative)), ("atol", check.and_then(|check| check.absolute))];
    let given: Vec<String> =
        given.into_iter().filter_map(|(name, value)| Some(format!("{name} = {}", value?))).collect();
    Some(if given.is_empty() { "the default tolerance".to_owned() } else { given.join(", ") })
}

/// The PTX of the baseline's module and of the winner's, and the winner's symbol and digest.
type EntrySources<'p> = (&'p str, &'p str, (String, String));

/// Returns whether the PTX of one of two modules may be launched in clusters: it has a directive
/// or a register of clusters.
fn mention_clusters(entry: Option<&EntrySources<'_>>) -> bool {
    entry.is_some_and(|(host, donor, _)| [host, donor].iter().any(|ptx| ptx.contains("cluster")))
}

/// Plans what the ptxas shim does for a winner; `None` for a baseline, which nvcc compiles by
/// itself. `entry` has the PTX of the baseline's module and of the winner's, the winner's
/// symbol there, and the digest of its machine code. If the winner cannot be put into the
/// module, the decision falls back to the baseline.
fn planned_kernel(
    info: &KernelInfo<'_>,
    decision: &mut Decision,
    entry: Option<EntrySources<'_>>,
    baseline_digest: Option<String>,
) -> Option<PlannedKernel> {
    if decision.provenance == Provenance::Baseline || decision.winner == decision.baseline {
        return None;
    }
    let edits = Edits::from(&decision.configurations[decision.winner].configuration);
    let destination = info.launch_path.destination();
    let (host, donor, (symbol, digest)) = entry?;
    match Transplant::new((host, &info.entry.symbol), (donor, &symbol), edits, destination) {
        Ok(entry) => Some(PlannedKernel {
            source: None,
            architecture: decision.architecture.clone(),
            symbol: info.entry.symbol.clone(),
            baseline_digest: baseline_digest.filter(|_| destination == Destination::Added),
            entry,
            digest,
        }),
        Err(error) => {
            decision.note(MessageCode::NotTransplanted, format!("the tuned result is not used: {error}"));
            decision.keep_baseline();
            None
        }
    }
}

/// The launch stub, where it selects the winner.
fn stub(
    toolchain: &Toolchain,
    info: &KernelInfo<'_>,
    types: &Types,
    decision: &Decision,
    planned: Option<&PlannedKernel>,
    is_clustered: bool,
) -> Option<Stub> {
    let WinnerPlacement::Entries { reshapes, accepts } = info.launch_path.placement else { return None };
    let (annotation, space) = (info.space.annotation(), &info.space);
    let launch = |configuration: &Configuration| header_functions::stub_launch(annotation, types, configuration);
    let configuration = &decision.configurations[decision.winner].configuration;
    let divisions = if decision.surplus { Vec::new() } else { argument_conditions::divisions(space, configuration) };
    let baseline = launch(space.baseline());
    let mut conditions = header_functions::stub_conditions(annotation, types, configuration, &divisions);
    conditions.extend(decision.grid_limit.map(|limit| baseline.condition(limit)));
    let winner = Winner {
        capability: architecture_number(&decision.architecture)?,
        entry: planned?.entry.name.clone(),
        launch: launch(configuration),
        conditions,
        carveout: configuration.carveout.map(u32::from),
        coarsening: configuration.coarsening.unwrap_or(1),
        is_clustered,
    };
    // The header gives launches in the winner's shape only where nvcc's kernel is right in it, too.
    let accepts = accepts && configuration.macros == space.baseline().macros;
    // What was not timed is not proved to be right in the place of a launch that does not ask for
    // it.
    let reshapes = reshapes && !(accepts && decision.device.is_none());
    let dispatch = Dispatch { baseline, winners: vec![winner], accepts_winner_launches: accepts, reshapes };
    let stub = info.entry.mangled.clone()?;
    let symbol = info.entry.symbol.clone();
    Some(Stub { source: toolchain.source().to_owned(), stub, symbol, dispatch })
}
