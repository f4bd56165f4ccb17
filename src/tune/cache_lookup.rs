//! A kernel whose winner is known already: from the lock file, else from the cache, where all
//! that it depends on is as it was.

use super::fingerprint;
use super::kernel::Prepared;
use super::kernel_info::KernelInfo;
use super::launch_path::LAUNCHES_STAY;
use super::not_timed;
use super::outcome::Tuned;
use super::scoring_input;
use super::scoring_input::ScoringInput;
use super::search_journal;
use super::variants::FrontEnds;
use crate::comment::Annotation;
use crate::diag::MessageCode;
use crate::diag::console::Console;
use crate::gpu::Device;
use crate::launch::{Configuration, FrontEndOptions};
use crate::measure::GpuInventory;
use crate::nvcc::Toolchain;
use crate::record::result_store::{LockFile, Results};
use crate::record::{
    CacheEntry, Decision, ENGINE, Fingerprint, Kind, LOCK_FILE, LockEntry, RecordedConfiguration, Seconds, Stale,
    Untimed, WINNER_PTX,
};
use crate::search::Provenance;
use crate::settings::Strategy;
use crate::settings::{Mode, Settings, Trust};
use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

/// What the look-up of one kernel depends on.
pub struct Recall<'a> {
    pub settings: &'a Settings,
    pub console: &'a Console,
    pub results: &'a Results,
    pub toolchain: &'a Toolchain,
    pub annotation: &'a Annotation,
    /// Those of the comment, else of the settings.
    pub strategy: Strategy,
    pub budget: f64,
    /// On an architecture of a fat build that is not the one to be timed.
    pub is_beside: bool,
}

impl Recall<'_> {
    /// Whether anything can be found: without it nothing need be compiled to look.
    pub fn is_promising(&self) -> bool {
        if self.settings.trust == Trust::Nothing {
            return false;
        }
        let locked = self.lock().is_some_and(|file| file.lock.entries.contains_key(&self.key(&file)));
        locked || self.results.cache.as_ref().is_some_and(|cache| self.kind().is_decided(cache))
    }

    /// Whether an earlier build could not tune such a kernel: then the baseline is looked at
    /// before all else.
    pub fn was_refused(&self) -> bool {
        let is_asked = self.settings.trust != Trust::Nothing && self.settings.mode != Mode::Locked;
        is_asked && self.results.cache.as_ref().is_some_and(|cache| self.kind().is_refused(cache))
    }

    /// Notes that the kernel cannot be tuned as it is.
    pub fn note_refusal(&self) {
        self.results.write(self.console, |cache| self.kind().refuse(cache));
    }

    /// Whether this machine is to time the kernel where no result is known.
    pub fn can_time(&self) -> bool {
        let wants = self.settings.mode == Mode::Measure && !self.is_beside;
        wants && self.results.present.is_there() && self.annotation.has_workload()
    }

    /// The known winner of a kernel.
    pub fn find(&self, subject: &mut KernelInfo<'_>, front_ends: &mut FrontEnds<'_>, begin: Instant) -> Option<Tuned> {
        let basis = fingerprint::for_kernel(subject, front_ends, self.toolchain)?;
        self.locked(subject, front_ends, &basis, begin).or_else(|| self.kept(subject, front_ends, &basis))
    }

    /// The baseline of a kernel that nothing is known of, in a build that does not find out.
    pub fn nothing(&self, subject: &KernelInfo<'_>, front_ends: &FrontEnds<'_>, begin: Instant) -> Tuned {
        let pinned = LockEntry {
            basis: fingerprint::for_kernel(subject, front_ends, self.toolchain).unwrap_or_default(),
            winner: subject.baseline(),
            code: None,
            occupancy: None,
            surplus: false,
            winner_ptx: None,
            gpu: None,
            driver: None,
            provenance: Provenance::Baseline,
            speedup: 1.0,
            points: 0,
            timed: 0,
            nvtune: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let mut decision = self.decision(subject, &pinned, begin);
        decision.pinned = Some(pinned);
        decision.notes = Vec::new();
        decision.note(MessageCode::NothingKnown, "no result is known, and NVTUNE=locked looks for none");
        Tuned::unknown(self.toolchain, subject, decision)
    }

    /// Says that a build which takes nothing but what is known has nothing of this kernel. An
    /// entry that is stale was reported.
    pub fn warn_of_nothing(&self) {
        let (name, architecture) = (&self.annotation.name, self.toolchain.architecture());
        let lacking = match self.lock() {
            Some(file) if file.lock.entries.contains_key(&self.key(&file)) => return,
            Some(file) => format!("{name} is not in {} for {architecture}", file.name()),
            None => format!("{name} is not locked: there is no {LOCK_FILE} above '{}'", self.toolchain.source()),
        };
        self.console.warning(
            MessageCode::NotLocked,
            format!("{lacking}: nvcc builds it (NVTUNE=locked); run `nvtune lock --update`"),
        );
    }

    fn lock(&self) -> Option<std::rc::Rc<LockFile>> {
        self.results.lock(Path::new(self.toolchain.source()), self.console)
    }

    fn key(&self, file: &LockFile) -> String {
        file.key(Path::new(self.toolchain.source()), &self.annotation.name, self.toolchain.architecture())
    }

    pub fn kind(&self) -> Kind<'_> {
        Kind {
            comment: &self.annotation.text,
            kernel: &self.annotation.name,
            architecture: self.toolchain.architecture(),
        }
    }

    fn locked(
        &self,
        subject: &mut KernelInfo<'_>,
        front_ends: &mut FrontEnds<'_>,
        basis: &Fingerprint,
        begin: Instant,
    ) -> Option<Tuned> {
        let file = self.lock()?;
        let pinned = file.lock.entries.get(&self.key(&file))?;
        if self.settings.trust == Trust::Timed && !pinned.is_measured() && self.can_time() {
            return None;
        }
        let baseline = subject.baseline();
        let mut changes = pinned.basis.changes(basis);
        if changes.is_empty() && !subject.space.contains(&pinned.winner) {
            changes.push(format!("its space, which has no {}", pinned.winner));
        }
        if changes.is_empty() && pinned.code.is_none() && pinned.winner != baseline {
            changes.push("the entry itself, which has no `code`".to_owned());
        }
        let options = pinned.winner.front_end();
        if options != baseline.front_end() && changes.is_empty() {
            // They may be arguments of a template, and so change the names of kernel and launch stub.
            subject.learn(front_ends, self.toolchain, std::slice::from_ref(&options));
        }
        if let Some(expected) = pinned.winner_ptx.as_ref().filter(|_| changes.is_empty()) {
            let now = fingerprint::set_digests(subject, front_ends, [options]);
            if now.first().is_none_or(|(_, found)| found != expected) {
                changes.push(WINNER_PTX.to_owned());
            }
        }
        if changes.is_empty()
            && let Some(reason) = scoring_input::refusal(subject, front_ends, &pinned.winner)
        {
            changes.push(format!("what may be chosen, and {} is not: {reason}", pinned.winner));
        }
        subject.stale = Stale::new(pinned, changes);
        if let Some(stale) = &subject.stale {
            let (name, file, reason) = (&self.annotation.name, file.name(), stale.reason());
            self.console.warning(
                MessageCode::EntryStale,
                format!("{name}: its entry in {file} is stale and not used: {reason}; run `nvtune lock --update`"),
            );
            return None;
        }
        let decision = self.decision(subject, pinned, begin);
        let mut tuned = Tuned::recalled(self.toolchain, subject, front_ends, decision, pinned.code.as_deref());
        tuned.set_occupancy(pinned.occupancy);
        tuned.decision.pinned = Some(pinned.clone());
        // Nothing that is built depends on these.
        tuned.decision = self.with_times(tuned.decision, subject, pinned);
        Some(tuned)
    }

    /// Gives a locked decision the times and scores by which it was made, where the cache still
    /// has them: for reports alone.
    fn with_times(&self, decision: Decision, subject: &KernelInfo<'_>, pinned: &LockEntry) -> Decision {
        let cache = self.results.cache.iter().filter(|_| decision.provenance == Provenance::Locked);
        let kept = cache.flat_map(|cache| self.kind().kept(cache));
        let Some(CacheEntry { decision: known, .. }) =
            kept.into_iter().find(|kept| kept.pinned == *pinned && is_of_space(kept, subject))
        else {
            return decision;
        };
        let Decision { strategy, baseline, winner, timed, seconds, variants, configurations, .. } = known;
        Decision { strategy, baseline, winner, timed, seconds, variants, configurations, ..decision }
    }

    /// What a record says of a locked winner.
    fn decision(&self, subject: &KernelInfo<'_>, pinned: &LockEntry, begin: Instant) -> Decision {
        let baseline = subject.baseline();
        let mut configurations = vec![recorded(subject, &baseline)];
        if pinned.winner != baseline {
            configurations.push(recorded(subject, &pinned.winner));
        }
        let GpuInventory { models, .. } = &self.results.present;
        let elsewhere = pinned.gpu.as_ref().filter(|gpu| !models.is_empty() && !models.contains(*gpu));
        let note = elsewhere.map(|gpu| {
            let here = models.iter().cloned().collect::<Vec<_>>().join(", ");
            MessageCode::LockedElsewhere.tag(format!("timed on {gpu}; this machine has {here}"))
        });
        let device =
            |name: &String| Device { name: name.clone(), driver: pinned.driver.unwrap_or(0), ..Device::default() };
        Decision {
            name: self.annotation.name.clone(),
            symbol: subject.entry.symbol.clone(),
            architecture: self.toolchain.architecture().to_owned(),
            device: pinned.gpu.as_ref().map(device),
            strategy: self.strategy,
            provenance: Provenance::Locked,
            winner: configurations.len() - 1,
            speedup: pinned.speedup,
            surplus: pinned.surplus,
            points: pinned.points,
            timed: pinned.timed,
            seconds: Seconds { compile: begin.elapsed().as_secs_f64(), ..Seconds::default() },
            notes: note.into_iter().collect(),
            stale: subject.stale.clone(),
            configurations,
            ..Decision::default()
        }
    }

    fn kept(&self, subject: &mut KernelInfo<'_>, front_ends: &mut FrontEnds<'_>, basis: &Fingerprint) -> Option<Tuned> {
        let mut found = self.kind().kept(self.results.cache.as_ref()?);
        found.retain(|kept| self.serves(kept) && kept.pinned.basis == *basis && is_of_space(kept, subject));
        // What was timed comes before what was predicted, on this machine's GPU before on another, by
        // the newest engine.
        let models = &self.results.present.models;
        found.sort_by_key(|kept| {
            let gpu = kept.pinned.gpu.as_ref();
            std::cmp::Reverse((gpu.is_some(), gpu.is_some_and(|gpu| models.contains(gpu)), kept.engine))
        });
        let kept = found.into_iter().find(|kept| {
            let sets: Vec<FrontEndOptions> = kept.sets.iter().map(|(set, _)| set.clone()).collect();
            subject.learn(front_ends, self.toolchain, &sets);
            let is_refused = || scoring_input::refusal(subject, front_ends, &kept.pinned.winner).is_some();
            fingerprint::set_digests(subject, front_ends, sets) == kept.sets && (kept.engine == ENGINE || !is_refused())
        })?;
        if let Some(untimed) = &kept.decision.untimed {
            not_timed::say(untimed, self.console, self.annotation);
        }
        // That launches stay as they are is said by who looks at them.
        let is_timed = kept.pinned.is_measured() && kept.decision.untimed.is_none();
        let said = |note: &&String| is_timed && !note.starts_with(LAUNCHES_STAY);
        for note in kept.decision.notes.iter().filter(said) {
            self.console.warning_as_kept(&format!("{}: {note}", kept.decision.name));
        }
        let mut tuned =
            Tuned::recalled(self.toolchain, subject, front_ends, kept.decision, kept.pinned.code.as_deref());
        tuned.decision.pinned = Some(kept.pinned);
        tuned.decision.stale.clone_from(&subject.stale);
        tuned.mark_recalled();
        Some(tuned)
    }

    /// Whether a kept decision is one that this build may take.
    fn serves(&self, kept: &CacheEntry) -> bool {
        let asked = kept.strategy == self.strategy && (kept.budget - self.budget).abs() < 1e-6;
        let also = kept.candidates == self.settings.candidates && kept.sanitize == self.settings.sanitize;
        let same = asked && also && kept.engine == ENGINE;
        let same_machine =
            same && kept.present == self.results.present.identity && kept.images == self.toolchain.images();
        let is_own = kept.pinned.nvtune == env!("CARGO_PKG_VERSION");
        match (kept.pinned.is_measured(), self.can_time()) {
            // This machine would time for itself: only what it would time itself.
            (true, true) => same_machine,
            (true, false) => true,
            // It would find out once more that it cannot.
            (false, true) => same_machine && kept.decision.untimed.is_some() && is_own,
            // What the model chose is worth as much as what it would choose now.
            (false, false) => {
                let asks_model = self.settings.mode != Mode::Locked && kept.decision.untimed.is_none();
                same && asks_model && is_own
            }
        }
    }

    /// Where in the cache the search of a kernel is kept while it is timed on `device`.
    pub fn search(&self, laid: &ScoringInput, basis: &Fingerprint, device: &Device) -> Option<String> {
        let (images, present) = (self.toolchain.images(), &self.results.present.identity);
        let under = (self.toolchain.architecture(), present.as_str(), images.as_str());
        search_journal::place((&self.annotation.name, laid), basis, under, device)
    }

    /// Keeps a decision for later builds, unless it is only what was left when timing failed.
    /// It takes the place of what is kept of its search at `search`.
    pub fn keep(&self, tuned: &Tuned, pinned: &LockEntry, prepared: &Prepared<'_>, search: Option<&str>) {
        let untimed = tuned.decision.untimed.as_ref();
        if tuned.decision.provisional || self.can_time() && !pinned.is_measured() && untimed.is_none() {
            return;
        }
        // Where the baseline cannot run, nothing depends on what else could be compiled.
        let sets = if matches!(untimed, Some(Untimed::Baseline(_))) { Vec::new() } else { prepared.digests.clone() };
        let kept = CacheEntry {
            pinned: pinned.clone(),
            sets,
            present: self.results.present.identity.clone(),
            strategy: self.strategy,
            budget: self.budget,
            candidates: self.settings.candidates,
            sanitize: self.settings.sanitize,
            images: self.toolchain.images(),
            engine: ENGINE,
            decision: tuned.decision.clone(),
        };
        self.results.write(self.console, |cache| self.kind().keep(cache, &kept));
        if let (Some(cache), Some(search)) = (&self.results.cache, search) {
            cache.remove(search);
        }
    }
}

/// Tells whether a kept decision is in the comment's own space; a forged entry must not choose
/// anything else.
fn is_of_space(kept: &CacheEntry, subject: &KernelInfo<'_>) -> bool {
    let decision = &kept.decision;
    let configuration = |index: usize| decision.configurations.get(index).map(|found| &found.configuration);
    let sets: HashSet<FrontEndOptions> = subject.space.front_ends().into_iter().collect();
    configuration(decision.winner) == Some(&kept.pinned.winner)
        && configuration(decision.baseline) == Some(&subject.baseline())
        && subject.space.contains(&kept.pinned.winner)
        && kept.sets.iter().all(|(set, _)| sets.contains(set))
}

fn recorded(subject: &KernelInfo<'_>, configuration: &Configuration) -> RecordedConfiguration {
    let launch = subject.space.launch(configuration).ok();
    RecordedConfiguration {
        configuration: configuration.clone(),
        launch: launch.unwrap_or(crate::launch::Launch {
            grid: [1, 1, 1],
            block: configuration.block,
            shared: 0,
            carveout: configuration.carveout,
        }),
        variant: None,
        score: None,
        pareto: false,
        candidate: false,
        promised: None,
        timing: None,
        parts: None,
        refused: None,
    }
}
