//! `nvtune-eval record`: sources -> a file for each of their kernels, within a budget, going on where an earlier run ended.

use super::recorded::{Facts, Taken, Times, recorded};
use super::{facts, timed};
use nvtune::comment::{Annotation, has_alternatives};
use nvtune::diag::FATAL;
use nvtune::diag::MessageCode;
use nvtune::diag::console::Console;
use nvtune::driver::marked_source::MarkedSource;
use nvtune::gpu::Device;
use nvtune::launch::Configuration;
use nvtune::measure::{Measurer, Options};
use nvtune::nvcc::{Dryrun, Invocation, RealNvcc};
use nvtune::process::TemporaryFolder;
use nvtune::record::{RecordedSpace, SPACE_EXTENSION};
use nvtune::settings::{Mode, Settings};
use nvtune::tune::{Prepared, Tuner};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// What is to be timed, and how.
#[derive(Clone, Debug)]
pub struct Campaign {
    pub sources: Vec<PathBuf>,
    /// For nvcc; empty for `-O3` and the GPU's architecture.
    pub options: Vec<OsString>,
    /// Folder for the records, in a folder for each GPU.
    pub results: PathBuf,
    /// Seconds of GPU time for each kernel, and half as many again for the second run.
    pub budget_s: f64,
    /// Seconds after which no further kernel is begun.
    pub limit_s: Option<f64>,
    /// Of a space with more points than this a sample is timed.
    pub most: usize,
    /// Points that are timed a second time; 0 for none.
    pub repeat: usize,
    /// Time what is recorded already too.
    pub force: bool,
    /// For the record.
    pub command: Vec<String>,
}

/// Records every kernel of the sources. The exit code is 0 where each of them has a complete record now.
pub fn run(campaign: &Campaign) -> u8 {
    let (settings, problems) = Settings::new(|name| std::env::var_os(name));
    let settings = Settings { mode: Mode::Measure, ..settings };
    let console = Console::new(settings.strict);
    problems.iter().for_each(|problem| console.warning(MessageCode::InvalidSetting, problem));
    let nvcc = match RealNvcc::find(None, |name| std::env::var_os(name)) {
        Ok(nvcc) => nvcc,
        Err(error) => {
            console.fatal(MessageCode::NvccNotFound, error);
            return FATAL;
        }
    };
    let mut tuner = Tuner::new(&settings, &console);
    tuner.start();
    let Some(device) = tuner.device().cloned() else {
        console.fatal(MessageCode::NoGpu, "no GPU to time on");
        return FATAL;
    };
    let mut options = campaign.options.clone();
    if options.is_empty() {
        options = vec!["-O3".into(), format!("-arch=sm_{}", device.compute_capability).into()];
    }
    let run = Run {
        campaign,
        console: &console,
        settings: &settings,
        folder: campaign.results.join(facts::folder(&device)),
        toolkit: nvcc.release().unwrap_or_else(|| "unknown".to_owned()),
        nvcc,
        options,
        device,
        begin: Instant::now(),
    };
    if let Err(error) = std::fs::create_dir_all(&run.folder) {
        console.fatal(MessageCode::CommandFailed, format!("cannot make '{}': {error}", run.folder.display()));
        return FATAL;
    }
    let mut missing = 0;
    for (number, source) in campaign.sources.iter().enumerate() {
        let place = format!("[{}/{}]", number + 1, campaign.sources.len());
        match run.source(&mut tuner, &place, source) {
            Ok(incomplete) => missing += incomplete,
            Err(problem) => {
                console
                    .warning(MessageCode::JobFailed, format!("{place} {}: not recorded: {problem}", source.display()));
                missing += 1;
            }
        }
    }
    u8::from(missing > 0)
}

struct Run<'a> {
    campaign: &'a Campaign,
    console: &'a Console,
    settings: &'a Settings,
    nvcc: RealNvcc,
    toolkit: String,
    options: Vec<OsString>,
    device: Device,
    /// Of this GPU's records.
    folder: PathBuf,
    begin: Instant,
}

impl Run<'_> {
    /// Records the kernels of one source and gives the number of those whose record is not complete.
    fn source(&self, tuner: &mut Tuner<'_>, place: &str, path: &Path) -> Result<usize, String> {
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        let digest = format!("{:x}", Sha256::digest(text));
        let object = TemporaryFolder::new().map_err(|error| error.to_string())?;
        let mut arguments = self.options.clone();
        arguments.extend(["-c".into(), path.into(), "-o".into(), object.path().join("object.o").into()]);
        let invocation = Invocation::new(&arguments, None, None).map_err(|error| error.to_string())?;
        let marked = MarkedSource::of(&invocation).pop().ok_or("it has no tuning comment")?;
        self.console.compiling(&marked.name());
        let (annotations, problems) = marked.annotations(self.settings.files.as_deref());
        self.console.diagnostics(&problems);
        if !problems.is_empty() {
            return Err("its tuning comments cannot be read".to_owned());
        }
        if has_alternatives(&annotations) {
            return Err("`#if` chooses among its kernels: record them from files of their own".to_owned());
        }
        let earlier: HashMap<&str, RecordedSpace> = annotations
            .iter()
            .filter_map(|annotation| Some((annotation.name.as_str(), self.earlier(annotation, &digest)?)))
            .collect();
        let is_complete =
            |annotation: &Annotation| earlier.get(annotation.name.as_str()).is_some_and(RecordedSpace::is_complete);
        let open = annotations.iter().filter(|annotation| !is_complete(annotation)).count();
        if open == 0 {
            self.console.summary(&format!("{place} {}: recorded already", path.display()));
            return Ok(0);
        }
        if self.left() <= 0.0 {
            self.console.summary(&format!("{place} {}: no time left", path.display()));
            return Ok(open);
        }
        let dryrun = Dryrun::ask(&self.nvcc.path, &arguments).map_err(|error| error.to_string())?;
        let toolchain = marked.toolchain(&dryrun, &annotations, Some(self.device.compute_capability))?;
        let mut missing = open;
        tuner.each(&toolchain, &annotations, |tuner, prepared| {
            let annotation = prepared.info.annotation;
            if !is_complete(annotation) {
                let facts = Facts {
                    source: path.to_string_lossy().into_owned(),
                    source_digest: digest.clone(),
                    command: self.campaign.command.clone(),
                    options: self.words(),
                    toolkit: self.toolkit.clone(),
                    architecture: toolchain.architecture().to_owned(),
                    device: self.device.clone(),
                    plan: timed::plan(self.campaign.budget_s),
                };
                match self.kernel(tuner, place, prepared, facts, earlier.get(annotation.name.as_str())) {
                    Ok(true) => missing -= 1,
                    Ok(false) => {}
                    Err(problem) => {
                        self.console.warning(
                            MessageCode::JobFailed,
                            format!("{place} {}: not recorded: {problem}", annotation.name),
                        );
                    }
                }
            }
            Ok(())
        });
        Ok(missing)
    }

    /// Times one kernel and writes its record; false where the budget did not suffice for all of its points.
    fn kernel(
        &self,
        tuner: &mut Tuner<'_>,
        place: &str,
        prepared: &Prepared<'_>,
        facts: Facts,
        earlier: Option<&RecordedSpace>,
    ) -> Result<bool, String> {
        let (scored, name) = (&prepared.scored, &prepared.info.annotation.name);
        if !prepared.info.annotation.has_workload() {
            return Err("its comment has no `args` clause".to_owned());
        }
        let measurer = tuner.measurer().ok_or("the measuring process is gone")?;
        let (points, sample) = timed::points(scored, self.campaign.most);
        self.console.summary(&format!(
            "{place} {name}: {} configurations, {} points{}, {} machine codes; compiled in {:.1} s, scored in {:.1} s",
            scored.input.configurations.len(),
            points.len(),
            if sample.is_some() { " in a sample" } else { "" },
            scored.input.codes.len(),
            prepared.seconds.compile,
            prepared.seconds.model
        ));
        let known: HashMap<&Configuration, Taken> = earlier
            .iter()
            .flat_map(|space| &space.configurations)
            .filter_map(|found| {
                let taken = Taken { check: found.check.clone()?, refused: found.refused.clone(), time: found.time };
                Some((&found.configuration, taken))
            })
            .collect();
        let known = |index: &usize| Some((*index, known.get(&scored.input.configurations[*index])?.clone()));
        let mut times =
            Times { taken: points.iter().filter_map(known).collect(), sample: None, repeatability: None, seconds: 0.0 };
        let open: Vec<usize> = points.iter().copied().filter(|index| !times.taken.contains_key(index)).collect();
        let clock = Instant::now();
        let plan = timed::plan(self.campaign.budget_s.min(self.left()));
        let first = timed::time(scored, measurer, &open, &plan).map_err(|error| error.to_string())?;
        times.taken.extend(first);
        let complete = points.iter().all(|index| times.taken.contains_key(index));
        if complete && self.campaign.repeat > 0 {
            let plan = timed::plan(self.campaign.budget_s / 2.0);
            // The second process needs the GPU.
            measurer.release_gpu();
            let again = Options::new(self.settings)
                .and_then(|options| timed::again(scored, &mut times.taken, self.campaign.repeat, (&plan, options)));
            match again {
                Ok(repeatability) => times.repeatability = repeatability,
                Err(error) => self.console.warning(error.code(), format!("{name}: not timed again: {error}")),
            }
        }
        if complete {
            let plan = timed::plan(self.campaign.budget_s / 2.0);
            if let Err(error) = timed::scattering(scored, measurer, &mut times.taken, &plan) {
                self.console.warning(error.code(), format!("{name}: what scatters is not timed more often: {error}"));
            }
        }
        times.seconds = clock.elapsed().as_secs_f64() + earlier.map_or(0.0, |space| space.seconds.measure);
        times.sample = sample.map(|sample| (sample, points));
        let space = recorded(prepared, facts, &times)?;
        if let Some(problem) = space.problems().first() {
            return Err(problem.clone());
        }
        let bytes = space.write(&self.path(name))?;
        self.tell(place, &space, bytes);
        Ok(complete)
    }

    /// The record that an earlier run left, where it is of the same source, toolkit and GPU.
    fn earlier(&self, annotation: &Annotation, digest: &str) -> Option<RecordedSpace> {
        let path = self.path(&annotation.name);
        if self.campaign.force || !path.is_file() {
            return None;
        }
        let space = match RecordedSpace::read(&path) {
            Ok(space) => space,
            Err(error) => {
                self.console
                    .warning(MessageCode::RecordNotRead, format!("'{}' {error}; it is recorded anew", path.display()));
                return None;
            }
        };
        let same = space.source_digest == digest
            && space.toolkit == self.toolkit
            && space.device.name == self.device.name
            && space.options == self.words();
        same.then_some(space)
    }

    fn path(&self, kernel: &str) -> PathBuf {
        self.folder.join(format!("{kernel}{SPACE_EXTENSION}"))
    }

    fn words(&self) -> Vec<String> {
        self.options.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// Seconds until the limit.
    fn left(&self) -> f64 {
        self.campaign.limit_s.map_or(f64::MAX, |limit| limit - self.begin.elapsed().as_secs_f64())
    }

    fn tell(&self, place: &str, space: &RecordedSpace, bytes: usize) {
        let timed = || space.configurations.iter().filter_map(|found| Some((found, found.time?.us())));
        let refused = space.configurations.iter().filter(|found| found.check.is_some() && found.time.is_none()).count();
        let best = timed().min_by(|a, b| a.1.total_cmp(&b.1));
        let baseline = space.configurations.get(space.baseline).and_then(|found| found.time);
        let (Some((best, best_us)), Some(baseline)) = (best, baseline) else { return };
        let again = space.repeatability.map_or(String::new(), |found| {
            format!(", {} timed again within {:.2}% in the median", found.points, 100.0 * found.median)
        });
        let rest = if space.is_complete() { "" } else { ", the budget did not suffice for the rest" };
        self.console.summary(&format!(
            "{place} {}: best {best_us:.1} us ({}), {:.2}x over the baseline; {} timed, {refused} refused in {:.1} s{again}{rest}; {} KB",
            space.kernel,
            best.configuration,
            baseline.us() / best_us,
            timed().count(),
            space.seconds.measure,
            bytes.div_ceil(1000)
        ));
    }
}
