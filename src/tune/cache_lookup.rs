//! Looks up the winner of a kernel in the lock file, then in the cache. An entry counts only if
//! everything that it depends on (its fingerprint) is unchanged.

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

/// Looks up the earlier results of one kernel.
pub struct ResultLookup<'a> {
    pub settings: &'a Settings,
    pub console: &'a Console,
    pub results: &'a Results,
    pub toolchain: &'a Toolchain,
    pub annotation: &'a Annotation,
    /// Those of the comment, else of the settings.
    pub strategy: Strategy,
    pub budget: f64,
    /// Whether this is for an architecture of a fat build that is not timed here.
    pub is_other_architecture: bool,
}

impl ResultLookup<'_> {
    /// Tells whether the lock file or the cache has an entry for this kernel. If not, nothing
    /// needs to be compiled for the look-up.
    pub fn is_promising(&self) -> bool {
        if self.settings.trust == Trust::Nothing {
            return false;
        }
        let locked = self.lock().is_some_and(|file| file.lock.entries.contains_key(&self.key(&file)));
        locked || self.results.cache.as_ref().is_some_and(|cache| self.kind().is_decided(cache))
    }

    /// Tells whether an earlier build could not tune this kernel. Its baseline is then compiled
    /// alone first.
    pub fn was_refused(&self) -> bool {
        let is_asked = self.settings.trust != Trust::Nothing && self.settings.mode != Mode::Locked;
        is_asked && self.results.cache.as_ref().is_some_and(|cache| self.kind().is_refused(cache))
    }

    /// Records in the cache that the kernel cannot be tuned in its present form.
    pub fn note_refusal(&self) {
        self.results.write(self.console, |cache| self.kind().refuse(cache));
    }

    /// Tells whether this build times the kernel if no earlier result is found.
    pub fn can_time(&self) -> bool {
        let wants = self.settings.mode == Mode::Measure && !self.is_other_architecture;
        wants && self.results.present.has_gpu() && self.annotation.has_workload()
    }

    /// Returns the winner of a kernel from the lock file, else from the cache.
    pub fn find(&self, info: &mut KernelInfo<'_>, front_ends: &mut FrontEnds<'_>, begin: Instant) -> Option<Tuned> {
        let basis = fingerprint::for_kernel(info, front_ends, self.toolchain)?;
        self.locked(info, front_ends, &basis, begin).or_else(|| self.kept(info, front_ends, &basis))
    }

    /// Decides for the baseline of a kernel without an earlier result, in a build that does not
    /// search (`NVTUNE=locked`).
    pub fn baseline_without_result(&self, info: &KernelInfo<'_>, front_ends: &FrontEnds<'_>, begin: Instant) -> Tuned {
        let pinned = LockEntry {
            basis: fingerprint::for_kernel(info, front_ends, self.toolchain).unwrap_or_default(),
            winner: info.baseline(),
            code: None,
            occupancy: None,
            surplus: false,
            grid_limit: None,
            winner_ptx: None,
            gpu: None,
            driver: None,
            provenance: Provenance::Baseline,
            speedup: 1.0,
            points: 0,
            timed: 0,
            nvtune: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let mut decision = self.decision(info, &pinned, begin);
        decision.pinned = Some(pinned);
        decision.notes = Vec::new();
        decision.note(MessageCode::NothingKnown, "no result is known, and NVTUNE=locked looks for none");
        Tuned::unknown(self.toolchain, info, decision)
    }

    /// Warns that the lock file has no entry for this kernel (`NVTUNE=locked`). Stale entries
    /// are reported by [`Self::find`].
    pub fn warn_not_locked(&self) {
        let (name, architecture) = (&self.annotation.name, self.toolchain.architecture());
        let lacking = match self.lock() {
            Some(file) if file.lock.entries.contains_key(&self.key(&file)) => return,
            Some(file) => format!("{name} is not in {} for {architecture}", file.name()),
            None => format!("{name} is not locked: there is no {LOCK_FILE} above '{}'", self.toolchain.source()),
        };
        self.console
            .warning(MessageCode::NotLocked, format!("{lacking}: nvcc builds it (NVTUNE=locked); run `nvtune tune`"));
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
        info: &mut KernelInfo<'_>,
        front_ends: &mut FrontEnds<'_>,
        basis: &Fingerprint,
        begin: Instant,
    ) -> Option<Tuned> {
        let file = self.lock()?;
        let pinned = file.lock.entries.get(&self.key(&file))?;
        if self.settings.trust == Trust::Timed && !pinned.is_measured() && self.can_time() {
            return None;
        }
        let baseline = info.baseline();
        let mut changes = pinned.basis.changes(basis);
        if changes.is_empty() && !info.space.contains(&pinned.winner) {
            changes.push(format!("its space, which has no {}", pinned.winner));
        }
        if changes.is_empty() && pinned.code.is_none() && pinned.winner != baseline {
            changes.push("the entry itself, which has no `code`".to_owned());
        }
        let options = pinned.winner.front_end();
        if options != baseline.front_end() && changes.is_empty() {
            // They may be arguments of a template, and so change the names of kernel and launch
            // stub.
            info.learn(front_ends, self.toolchain, std::slice::from_ref(&options));
        }
        if let Some(expected) = pinned.winner_ptx.as_ref().filter(|_| changes.is_empty()) {
            let now = fingerprint::set_digests(info, front_ends, [options]);
            if now.first().is_none_or(|(_, found)| found != expected) {
                changes.push(WINNER_PTX.to_owned());
            }
        }
        if changes.is_empty()
            && let Some(reason) = scoring_input::refusal(info, front_ends, &pinned.winner)
        {
            changes.push(format!("what may be chosen, and {} is not: {reason}", pinned.winner));
        }
        info.stale = Stale::new(pinned, changes);
        if let Some(stale) = &info.stale {
            let (name, file, reason) = (&self.annotation.name, file.name(), stale.reason());
            self.console.warning(
                MessageCode::EntryStale,
                format!("{name}: its entry in {file} is stale and not used: {reason}; run `nvtune lock --update`"),
            );
            return None;
        }
        let decision = self.decision(info, pinned, begin);
        let mut tuned = Tuned::recalled(self.toolchain, info, front_ends, decision, pinned.code.as_deref());
        tuned.set_occupancy(pinned.occupancy);
        tuned.decision.pinned = Some(pinned.clone());
        // Nothing that is built depends on these.
        tuned.decision = self.with_times(tuned.decision, info, pinned);
        Some(tuned)
    }

    /// Adds the times and scores by which a locked decision was made, if the cache still has
    /// them. Only reports use them.
    fn with_times(&self, decision: Decision, info: &KernelInfo<'_>, pinned: &LockEntry) -> Decision {
        let cache = self.results.cache.iter().filter(|_| decision.provenance == Provenance::Locked);
        let kept = cache.flat_map(|cache| self.kind().kept(cache));
        let Some(CacheEntry { decision: known, .. }) =
            kept.into_iter().find(|kept| kept.pinned == *pinned && is_of_space(kept, info))
        else {
            return decision;
        };
        let Decision { strategy, baseline, winner, timed, seconds, variants, configurations, .. } = known;
        Decision { strategy, baseline, winner, timed, seconds, variants, configurations, ..decision }
    }

    /// Makes a decision from an entry of the lock file.
    fn decision(&self, info: &KernelInfo<'_>, pinned: &LockEntry, begin: Instant) -> Decision {
        let baseline = info.baseline();
        let mut configurations = vec![recorded(info, &baseline)];
        if pinned.winner != baseline {
            configurations.push(recorded(info, &pinned.winner));
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
            symbol: info.entry.symbol.clone(),
            architecture: self.toolchain.architecture().to_owned(),
            device: pinned.gpu.as_ref().map(device),
            strategy: self.strategy,
            provenance: Provenance::Locked,
            winner: configurations.len() - 1,
            speedup: pinned.speedup,
            surplus: pinned.surplus,
            grid_limit: pinned.grid_limit,
            points: pinned.points,
            timed: pinned.timed,
            seconds: Seconds { compile: begin.elapsed().as_secs_f64(), ..Seconds::default() },
            notes: note.into_iter().collect(),
            stale: info.stale.clone(),
            configurations,
            ..Decision::default()
        }
    }

    fn kept(&self, info: &mut KernelInfo<'_>, front_ends: &mut FrontEnds<'_>, basis: &Fingerprint) -> Option<Tuned> {
        let mut found = self.kind().kept(self.results.cache.as_ref()?);
        found.retain(|kept| self.serves(kept) && kept.pinned.basis == *basis && is_of_space(kept, info));
        // What was timed comes before what was predicted, on this machine's GPU before on another,
        // by the newest engine.
        let models = &self.results.present.models;
        found.sort_by_key(|kept| {
            let gpu = kept.pinned.gpu.as_ref();
            std::cmp::Reverse((gpu.is_some(), gpu.is_some_and(|gpu| models.contains(gpu)), kept.engine))
        });
        let kept = found.into_iter().find(|kept| {
            let sets: Vec<FrontEndOptions> = kept.sets.iter().map(|(set, _)| set.clone()).collect();
            info.learn(front_ends, self.toolchain, &sets);
            let is_refused = || scoring_input::refusal(info, front_ends, &kept.pinned.winner).is_some();
            fingerprint::set_digests(info, front_ends, sets) == kept.sets && (kept.engine == ENGINE || !is_refused())
        })?;
        if let Some(untimed) = &kept.decision.untimed {
            not_timed::print(untimed, self.console, self.annotation);
        }
        // That launches stay as they are is said by who looks at them.
        let is_timed = kept.pinned.is_measured() && kept.decision.untimed.is_none();
        let said = |note: &&String| is_timed && !note.starts_with(LAUNCHES_STAY);
        for note in kept.decision.notes.iter().filter(said) {
            self.console.warning_as_kept(&format!("{}: {note}", kept.decision.name));
        }
        let mut tuned = Tuned::recalled(self.toolchain, info, front_ends, kept.decision, kept.pinned.code.as_deref());
        tuned.decision.pinned = Some(kept.pinned);
        tuned.decision.stale.clone_from(&info.stale);
        tuned.mark_recalled();
        Some(tuned)
    }

    /// Tells whether this build may use a decision of the cache.
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

    /// Returns the cache key of the journal of a kernel's search on `device`.
    pub fn search(&self, input: &ScoringInput, basis: &Fingerprint, device: &Device) -> Option<String> {
        let (images, present) = (self.toolchain.images(), &self.results.present.identity);
        let under = (self.toolchain.architecture(), present.as_str(), images.as_str());
        search_journal::place((&self.annotation.name, input), basis, under, device)
    }

    /// Stores a decision in the cache, unless it was made only because timing failed. Removes
    /// the journal of its search, whose key is `search`.
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
fn is_of_space(kept: &CacheEntry, info: &KernelInfo<'_>) -> bool {
    let decision = &kept.decision;
    let configuration = |index: usize| decision.configurations.get(index).map(|found| &found.configuration);
    let sets: HashSet<FrontEndOptions> = info.space.front_ends().into_iter().collect();
    configuration(decision.winner) == Some(&kept.pinned.winner)
        && configuration(decision.baseline) == Some(&info.baseline())
        && info.space.contains(&kept.pinned.winner)
        && kept.sets.iter().all(|(set, _)| sets.contains(set))
}

fn recorded(info: &KernelInfo<'_>, configuration: &Configuration) -> RecordedConfiguration {
    let launch = info.space.launch(configuration).ok();
    RecordedConfiguration {
        configuration: configuration.clone(),
        launch: launch.unwrap_or(crate::launch::Launch {
            grid: [1, 1, 1],
            block: configuration.block,
            shared: 0,
            carveout: configuration.carveout,
            coarsening: configuration.coarsening,
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
