//! A decided kernel: what the header, the ticket and the summary line say of it.

use super::failure::Problem;
use super::header_functions;
use super::kernel_info::Subject;
use super::launch_path::Way;
use super::scoring::Scored;
use super::variants::Variants;
use crate::emit::{HeaderKernel, Remap, Reshaped, Scale, StubText, TicketKernel};
use crate::gpu::architecture_number;
use crate::launch::Configuration;
use crate::nvcc::Toolchain;
use crate::ptx::Edits;
use crate::record::Decision;
use crate::search::Provenance;
use serde::{Deserialize, Serialize};

/// One kernel with its winner.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tuned {
    pub decision: Decision,
    header: HeaderKernel,
    baseline_header: HeaderKernel,
    ticket: Option<TicketKernel>,
    stub: Option<Stub>,
    /// The same kernel on the other architectures of a fat build.
    beside: Vec<Tuned>,
    /// The compute capabilities for which nothing was decided: there the kernel is as nvcc builds it.
    #[serde(default)]
    untuned: Vec<u32>,
    /// From the cache, not decided by this build.
    is_recalled: bool,
}

/// A launch stub that is to be rewritten.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stub {
    source: String,
    name: String,
    remap: Remap,
}

impl Tuned {
    /// Draws up what the build gets from a decision.
    pub fn new(
        toolchain: &Toolchain,
        subject: &Subject<'_>,
        variants: &Variants,
        scored: &Scored,
        mut decision: Decision,
    ) -> Result<Self, Problem> {
        if let Ok(variant) = &scored.laid.variants[decision.winner] {
            decision.symbol.clone_from(&variants.all[*variant].symbol);
        }
        // A baseline that stays is compiled as nvcc compiles it: there is nothing to write, and nothing to compare.
        let code = match (decision.provenance, &scored.laid.variants[decision.winner]) {
            (Provenance::Baseline, _) | (_, Err(_)) => None,
            (_, Ok(variant)) => Some(variants.all[*variant].digest.clone()),
        };
        Ok(Self::drawn(toolchain, subject, decision, code))
    }

    /// The same from a decision of an earlier build. `code` is the digest of the winner's machine code.
    pub fn recalled(toolchain: &Toolchain, subject: &Subject<'_>, mut decision: Decision, code: Option<&str>) -> Self {
        let macros = &decision.configurations[decision.winner].configuration.macros;
        // Names may have changed since.
        decision.symbol = subject.entry(macros).unwrap_or(&subject.entry).symbol.clone();
        Self::drawn(toolchain, subject, decision, code.map(str::to_owned))
    }

    fn drawn(toolchain: &Toolchain, subject: &Subject<'_>, decision: Decision, code: Option<String>) -> Self {
        let gpu = match &decision.device {
            Some(device) => format!("{}, {}", device.name, decision.architecture),
            None => decision.architecture.clone(),
        };
        let types = header_functions::types(subject.annotation, &subject.entry);
        let configuration = |index: usize| &decision.configurations[index].configuration;
        let header = |index: usize, provenance: Provenance| {
            let occupancy = decision.configurations[index].score.map(|score| (score.occupancy * 100.0).round() as u32);
            let header = header_functions::header(subject.annotation, &types, configuration(index), provenance, &gpu);
            HeaderKernel { occupancy, cooperative: subject.waits_for_grid, ..header }
        };
        let ticket = code.map(|digest| TicketKernel {
            source: None,
            architecture: decision.architecture.clone(),
            symbol: decision.symbol.clone(),
            edits: Edits::from(configuration(decision.winner)),
            digest,
        });
        Self {
            header: header(decision.winner, decision.provenance),
            baseline_header: header(decision.baseline, Provenance::Baseline),
            ticket,
            stub: stub(toolchain, subject, &types, &decision),
            beside: Vec::new(),
            untuned: Vec::new(),
            is_recalled: false,
            decision,
        }
    }

    /// The same without the configurations that are neither baseline nor winner, as a build takes it from the cache.
    pub fn essence(&self) -> Self {
        let mut essence = self.clone();
        let decision = &mut essence.decision;
        decision.retain(|_| false);
        decision.variants.clear();
        decision.configurations.iter_mut().for_each(|found| found.variant = None);
        essence.is_recalled = true;
        essence.beside = self.beside.iter().map(Self::essence).collect();
        essence
    }

    /// Says that it is from the cache.
    pub fn mark_recalled(&mut self) {
        self.is_recalled = true;
    }

    /// A kernel of which nothing is known, in a build that is not to find out: its baseline, with what a lock file would ask for.
    pub fn unknown(toolchain: &Toolchain, subject: &Subject<'_>, mut decision: Decision) -> Self {
        decision.winner = decision.baseline;
        decision.provenance = Provenance::Baseline;
        Self::drawn(toolchain, subject, decision, None)
    }

    /// Takes what was decided for other architectures of the same source; `untuned` are those that nothing was decided for.
    pub fn stand_beside(&mut self, others: &[Tuned], untuned: &[u32]) {
        let own = others.iter().filter(|other| other.decision.name == self.decision.name);
        self.beside.extend(own.cloned());
        self.untuned.extend_from_slice(untuned);
        if let Some(stub) = &mut self.stub {
            let stays = Reshaped { shape: stub.remap.baseline.clone(), scale: [Scale::NONE; 3], surplus: false };
            stub.remap.winners.extend(untuned.iter().map(|&capability| (capability, stays.clone())));
        }
    }

    /// This and the same kernel on other architectures.
    fn everywhere(&self) -> impl Iterator<Item = &Tuned> {
        std::iter::once(self).chain(&self.beside)
    }

    /// The decisions for every architecture.
    pub fn decisions(&self) -> impl Iterator<Item = &Decision> {
        self.everywhere().map(|tuned| &tuned.decision)
    }

    /// What the header says.
    pub fn header(&self) -> HeaderKernel {
        let others = self
            .beside
            .iter()
            .filter_map(|other| Some((architecture_number(&other.decision.architecture)?, other.header.clone())));
        // The macros are the winner's everywhere: what the baseline's grid is under these is not known.
        let has_same_macros = self.header.macros == self.baseline_header.macros;
        let stays = |&capability: &u32| Some((capability, self.baseline_header.clone())).filter(|_| has_same_macros);
        let others = others.chain(self.untuned.iter().filter_map(stays));
        let own = architecture_number(&self.decision.architecture);
        HeaderKernel { others: others.collect(), capability: own.unwrap_or(0), ..self.header.clone() }
    }

    /// Whether this is the symbol of its code, on any architecture, or of its launch stub.
    pub fn is_built_as(&self, symbol: &str) -> bool {
        let stub = self.stub.as_ref().is_some_and(|stub| stub.name == symbol);
        stub || self.everywhere().any(|tuned| tuned.decision.symbol == symbol)
    }

    /// Takes the winner back, for it could not be built or told of.
    pub fn fall_back(&mut self, problem: &str) {
        self.decision.provenance = Provenance::Baseline;
        self.decision.winner = self.decision.baseline;
        self.decision.speedup = 1.0;
        self.decision.notes.push(format!("the tuned result is not used: {problem}"));
        self.header = self.baseline_header.clone();
        self.ticket = None;
        self.stub = None;
        self.beside.clear();
    }

    /// What the `ptxas` shim does for it.
    pub fn tickets(&self) -> impl Iterator<Item = TicketKernel> {
        self.everywhere().filter_map(|tuned| tuned.ticket.clone())
    }

    /// What the `cicc` shim does for it.
    pub fn stub(&self) -> Option<StubText> {
        let Stub { source, name, remap } = self.stub.as_ref()?;
        let mut remap = remap.clone();
        let others = self.beside.iter().filter_map(|other| other.stub.as_ref());
        remap.winners.extend(others.flat_map(|other| other.remap.winners.iter().cloned()));
        remap.winners.sort_by_key(|(capability, _)| *capability);
        (!remap.is_nothing()).then(|| StubText { source: source.clone(), stub: name.clone(), text: remap.text() })
    }

    /// Resident warps of the winner in percent of the most that an SM holds, where that is known.
    pub fn occupancy(&self) -> Option<u32> {
        self.header.occupancy
    }

    /// Takes the winner's occupancy from where its code was looked at.
    pub fn set_occupancy(&mut self, percent: Option<u32>) {
        self.header.occupancy = percent;
    }

    /// The digest of the winner's machine code; none for a baseline that nvcc builds by itself.
    pub fn code(&self) -> Option<&str> {
        self.ticket.as_ref().map(|ticket| ticket.digest.as_str())
    }

    /// The winning configuration.
    pub fn winner(&self) -> &Configuration {
        &self.decision.configurations[self.decision.winner].configuration
    }

    /// The winner's macros.
    pub fn macros(&self) -> impl Iterator<Item = (&String, i64)> {
        self.winner().macros.iter().map(|(name, value)| (name, *value))
    }

    /// A line for the user for each architecture.
    pub fn summaries(&self) -> Vec<String> {
        let several = !self.beside.is_empty();
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

    fn summary(&self, several: bool) -> String {
        let decision = &self.decision;
        let gain = match decision.provenance {
            Provenance::Baseline if decision.points == 0 => "kept: nothing is known of it as it is".to_owned(),
            Provenance::Baseline if decision.held_back().next().is_some() => {
                "kept: no point that may be chosen is surely faster".to_owned()
            }
            Provenance::Baseline => "kept: nothing is surely faster".to_owned(),
            Provenance::Predicted => format!("{:.2}x over the baseline, predicted", decision.speedup),
            Provenance::Measured | Provenance::Locked => {
                format!("{:.2}x over the baseline, {}", decision.speedup, decision.provenance)
            }
        };
        let place = self.place(several);
        if decision.provenance == Provenance::Locked {
            let note = decision.notes.first().map(|note| format!("; {note}")).unwrap_or_default();
            return format!("{}{place}: {} ({gain}{note})", decision.name, self.winner());
        }
        if self.is_recalled {
            return format!("{}{place}: {} ({gain}); from the cache", decision.name, self.winner());
        }
        // Nobody looked.
        if decision.points == 0 {
            return format!("{}{place}: {} ({gain})", decision.name, self.winner());
        }
        let resumed = match decision.resumed {
            0 => String::new(),
            resumed => format!(" ({resumed} before an interruption)"),
        };
        format!(
            "{}{place}: {} ({gain}); {} of {} points timed{resumed}, {:.1} s",
            decision.name,
            self.winner(),
            decision.timed,
            decision.points,
            decision.seconds.total()
        )
    }
}

/// The launch stub, where launches are to be reshaped.
fn stub(
    toolchain: &Toolchain,
    subject: &Subject<'_>,
    types: &crate::emit::cxx_expression::Types,
    decision: &Decision,
) -> Option<Stub> {
    if !matches!(subject.reach.way, Way::Remap { .. }) {
        return None;
    }
    let winner = &decision.configurations[decision.winner].configuration;
    let before = subject.reach.prepared(&subject.space, winner);
    let shared =
        |configuration: &Configuration| header_functions::stub_shared(subject.annotation, types, configuration);
    let capability = architecture_number(&decision.architecture)?;
    let remap = Remap {
        baseline: subject.reach.shape(&before, shared(&before)),
        winners: vec![(capability, subject.reach.reshaped(&subject.space, winner, shared(winner), decision.surplus))],
    };
    let name = subject.entry(&winner.macros).ok()?.mangled.clone()?;
    Some(Stub { source: toolchain.source().to_owned(), name, remap })
}
