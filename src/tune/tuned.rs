//! A decided kernel: what the header, the ticket and the summary line say of it.

use super::host;
use super::kernel::{Problem, Subject};
use super::scored::Scored;
use super::variants::Variants;
use crate::emit::{HeaderKernel, TicketKernel};
use crate::record::Decision;
use crate::search::Provenance;
use crate::space::Configuration;

/// One kernel with its winner.
#[derive(Clone, Debug)]
pub struct Tuned {
    pub decision: Decision,
    header: HeaderKernel,
    baseline_header: HeaderKernel,
    ticket: Option<TicketKernel>,
}

impl Tuned {
    /// Draws up what the build gets from a decision.
    pub fn new(
        subject: &Subject<'_>,
        variants: &Variants,
        scored: &Scored,
        mut decision: Decision,
    ) -> Result<Self, Problem> {
        if let Ok(variant) = &scored.laid.variants[decision.winner] {
            decision.symbol.clone_from(&variants.all[*variant].symbol);
        }
        let gpu = match &decision.device {
            Some(device) => format!("{}, {}", device.name, decision.architecture),
            None => decision.architecture.clone(),
        };
        let types = host::types(subject.annotation, &subject.entry);
        let header = |index: usize, provenance: Provenance| {
            host::header(subject.annotation, &types, &scored.laid.configurations[index], provenance, &gpu)
        };
        // A baseline that stays is compiled as nvcc compiles it: there is nothing to write, and nothing to compare.
        let ticket = match (decision.provenance, &scored.laid.variants[decision.winner]) {
            (Provenance::Baseline, _) | (_, Err(_)) => None,
            (_, Ok(variant)) => Some(TicketKernel {
                architecture: decision.architecture.clone(),
                symbol: variants.all[*variant].symbol.clone(),
                edits: scored.laid.configurations[decision.winner].edits(),
                digest: variants.all[*variant].digest.clone(),
            }),
        };
        Ok(Self {
            header: header(decision.winner, decision.provenance),
            baseline_header: header(decision.baseline, Provenance::Baseline),
            ticket,
            decision,
        })
    }

    /// What the header says.
    pub fn header(&self) -> HeaderKernel {
        self.header.clone()
    }

    /// Takes the winner back, for it could not be built or told of.
    pub fn fall_back(&mut self, problem: &str) {
        self.decision.provenance = Provenance::Baseline;
        self.decision.winner = self.decision.baseline;
        self.decision.speedup = 1.0;
        self.decision.notes.push(format!("the tuned result is not used: {problem}"));
        self.header = self.baseline_header.clone();
        self.ticket = None;
    }

    /// What the `ptxas` shim does for it.
    pub fn ticket(&self) -> Option<TicketKernel> {
        self.ticket.clone()
    }

    /// The winning configuration.
    pub fn winner(&self) -> &Configuration {
        &self.decision.configurations[self.decision.winner].configuration
    }

    /// The winner's macros.
    pub fn macros(&self) -> impl Iterator<Item = (&String, i64)> {
        self.winner().macros.iter().map(|(name, value)| (name, *value))
    }

    /// The one line for the user.
    pub fn summary(&self) -> String {
        let decision = &self.decision;
        let gain = match decision.provenance {
            Provenance::Baseline => "kept: nothing is surely faster".to_owned(),
            Provenance::Predicted => format!("{:.2}x over the baseline, predicted", decision.speedup),
            Provenance::Measured | Provenance::Locked => {
                format!("{:.2}x over the baseline, {}", decision.speedup, decision.provenance)
            }
        };
        format!(
            "{}: {} ({gain}); {} of {} points timed, {:.1} s",
            decision.name,
            self.winner(),
            decision.timed,
            decision.points,
            decision.seconds.total()
        )
    }
}
