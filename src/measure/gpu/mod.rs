//! The [`Bench`] that runs jobs on a GPU: the one place that launches kernels.
//!
//! Invariants: when a job is checked, all buffers have their initial contents; when it is sampled,
//! those that the kernel reads have them; likewise the variables that it may write. A candidate
//! that writes where the baseline does not is refused, and the buffers are restored before the
//! next.

mod buffer_sets;
mod device_code;
mod driver;
mod fault;
mod kernel;
mod loaded;
mod pool;
mod reference;
mod texture;

use super::bench::{Bench, CheckedRun, JobError, Sampling};
use super::candidate::Caches;
use super::outcome::Reason;
use super::outcome::quantile;
use super::protocol::Job;
use super::variables::{Observed, VariableResults};
use crate::gpu::nvml;
use crate::gpu::nvml::ConditionMonitor;
use crate::gpu::{Condition, Device};
use crate::launch::Launch;
use crate::workload::Workload;
use driver::{Context, DriverFault, Event, Global, Graph, Memory, Stream, name};
use fault::faulted;
use kernel::{Kernel, launch_failed};
use loaded::{InitialContents, LoadedModule};
use pool::{BufferPool, Slab};
use reference::{Comparison, Reference};
use std::collections::HashMap;

/// Launches of a short kernel that are timed together.
const LAUNCHES_PER_GRAPH: usize = 8;

/// The GPUs that the driver shows, in its order. The error says why there is none.
pub(super) fn visible() -> Result<Vec<Device>, String> {
    let mut devices = driver::devices()?;
    if let Some(first) = devices.first_mut() {
        let uuid = driver::instance(0).unwrap_or_else(|| first.uuid.clone());
        first.free_bytes = nvml::free_bytes(&uuid).unwrap_or(0);
    }
    Ok(devices)
}

/// A GPU with a context.
pub(super) struct Gpu {
    // In the order in which they are to be dropped: what was made in the context before the
    // context.
    /// By slot of a job, and buffer set.
    graphs: HashMap<(u32, u32), (GraphKey, Graph)>,
    functions: HashMap<(usize, String), Kernel>,
    modules: HashMap<usize, LoadedModule>,
    initial: InitialContents,
    reference: Option<Reference>,
    /// By number of a workload: which of its buffers kernels write, once that is known.
    written: HashMap<usize, Vec<bool>>,
    pool: BufferPool,
    /// Whether there was no room for another buffer set.
    lacks_room: bool,
    /// Twice the L2 cache; writing it leaves nothing else there.
    flush: Memory,
    start: Event,
    stop: Event,
    context: Context,
    monitor: ConditionMonitor,
    variants: Vec<Vec<u8>>,
    workloads: Vec<Workload>,
}

/// Everything that a captured launch depends on: a graph can be reused while this is equal.
#[derive(PartialEq)]
struct GraphKey {
    variant: usize,
    kernel: String,
    launch: Launch,
    cooperative: bool,
    arguments: Vec<Vec<u8>>,
    places: Vec<usize>,
    caches: Caches,
}

impl Gpu {
    /// Opens the visible device of this number, with buffers that are `guarded` or not. The
    /// error says why that cannot be.
    pub fn open(ordinal: usize, guarded: bool) -> Result<Gpu, String> {
        let context = Context::open(ordinal)?;
        let failed = |error| format!("preparing the GPU failed: {}", name(&error));
        let flush = (2 * context.device.l2_bytes as usize).max(32 << 20);
        Ok(Gpu {
            graphs: HashMap::new(),
            monitor: ConditionMonitor::new(&context.device.uuid),
            functions: HashMap::new(),
            modules: HashMap::new(),
            initial: InitialContents::default(),
            reference: None,
            written: HashMap::new(),
            pool: BufferPool::new(&context, guarded).map_err(failed)?,
            lacks_room: false,
            flush: Memory::allocate(&context, flush).map_err(failed)?,
            start: Event::new(&context).map_err(failed)?,
            stop: Event::new(&context).map_err(failed)?,
            context,
            variants: Vec::new(),
            workloads: Vec::new(),
        })
    }

    pub fn device(&self) -> &Device {
        &self.context.device
    }

    fn workload(&self, job: &Job) -> Result<Workload, JobError> {
        let missing = || JobError::Failed(format!("there is no workload {}", job.workload));
        self.workloads.get(job.workload).cloned().ok_or_else(missing)
    }

    /// Allocates device memory for a job of this workload with `make`. If it does not fit, frees
    /// the buffers of earlier candidates, then moves the baseline's results to the host.
    fn allocate_for_job<T>(
        &mut self,
        workload: &Workload,
        heartbeat: &mut dyn FnMut(),
        mut make: impl FnMut(&mut BufferPool, &Context, &mut dyn FnMut()) -> Result<T, DriverFault>,
    ) -> Result<T, JobError> {
        let mut made = make(&mut self.pool, &self.context, heartbeat);
        if matches!(made, Err(DriverFault::OutOfMemory(_))) {
            // Memory that is freed may come back as another buffer's.
            self.graphs.clear();
            self.pool.keep_only(workload.all_buffers());
            made = make(&mut self.pool, &self.context, heartbeat);
        }
        if let (Err(DriverFault::OutOfMemory(_)), Some(reference)) = (&made, &mut self.reference) {
            reference.move_to_host(heartbeat)?;
            made = make(&mut self.pool, &self.context, heartbeat);
        }
        made.map_err(preparing)
    }

    /// Returns the indices in the pool of a workload's buffers, then of its variables' contents.
    /// Allocates those that are missing, and copies of those that kernels are known to write.
    fn places(
        &mut self,
        number: usize,
        workload: &Workload,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Vec<usize>, JobError> {
        let written = self.written.get(&number).cloned().unwrap_or_default();
        let places = self.allocate_for_job(workload, heartbeat, |pool, context, heartbeat| {
            pool.place_workload(context, workload, (&written, 0), heartbeat)
        });
        places?.map_err(|error| {
            let stage = "making its textures".to_owned();
            JobError::Refused(Reason::LaunchFailed { stage, error: name(&error) })
        })
    }

    /// Returns the variables that the workload gives contents, with the pool indices of these.
    fn globals(&self, job: &Job, workload: &Workload, places: &[usize]) -> Result<Vec<(Global, usize)>, JobError> {
        let Some(module) = self.modules.get(&job.variant) else {
            return Ok(Vec::new());
        };
        let mut globals = Vec::new();
        for (symbol, place) in workload.symbols.iter().zip(places.get(workload.buffers.len()..).unwrap_or_default()) {
            if let Some(global) = module.module.global(&symbol.symbol).map_err(faulted)? {
                globals.push((global, *place));
            }
        }
        Ok(globals)
    }

    /// Resets the variables of a job's code, which an earlier kernel may have changed.
    fn initialize_variables(&self, job: &Job, workload: &Workload, places: &[usize]) -> Result<(), JobError> {
        if let Some(module) = self.modules.get(&job.variant) {
            for variable in module.variables(&workload.written).flatten() {
                variable.restore(Stream::DEFAULT).map_err(faulted)?;
            }
        }
        for (global, place) in self.globals(job, workload, places)? {
            if let Some(slab) = self.pool.slabs.get(place) {
                global.copy_from(&slab.live, slab.used(), Stream::DEFAULT).map_err(faulted)?;
            }
        }
        Ok(())
    }

    /// Reads the variables that a job's code may write; `None` for those that it does not have.
    fn read_variables(
        &self,
        job: &Job,
        workload: &Workload,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<u8>>>, JobError> {
        let Some(module) = self.modules.get(&job.variant) else {
            return Ok(vec![None; workload.written.len()]);
        };
        let mut contents = Vec::with_capacity(workload.written.len());
        for variable in module.variables(&workload.written) {
            contents.push(variable.map(|variable| variable.global.read(heartbeat)).transpose().map_err(faulted)?);
        }
        Ok(contents)
    }

    /// Restores every buffer that a stray write may have changed.
    fn repair(&mut self, heartbeat: &mut dyn FnMut()) -> Result<(), JobError> {
        let all: Vec<usize> = (0..self.pool.slabs.len()).collect();
        self.pool.repair(&all, heartbeat).map_err(preparing)
    }

    /// Records which buffers a run of a job wrote, and keeps copies of their initial contents.
    fn record_written(
        &mut self,
        job: &Job,
        first_run: &mut FirstRun,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<(), JobError> {
        let written = first_run.changed.iter().map(Option::is_some).collect();
        self.written.insert(job.workload, written);
        first_run.places = self.places(job.workload, &first_run.workload, heartbeat)?;
        Ok(())
    }

    /// Returns the loaded kernel of a job, permitted to use the shared memory that it asks for.
    fn kernel(&mut self, job: &Job, workload: &Workload, heartbeat: &mut dyn FnMut()) -> Result<Kernel, JobError> {
        // Kernels of it have run, so that what its variables held at first is lost.
        if self.modules.get(&job.variant).is_some_and(|module| !module.keeps(&workload.written)) {
            self.graphs.clear();
            self.functions.retain(|(variant, _), _| *variant != job.variant);
            self.modules.remove(&job.variant);
        }
        let key = (job.variant, job.kernel.clone());
        let kernel = match self.functions.get(&key) {
            Some(kernel) => kernel.clone(),
            None => {
                let kernel = self.load_kernel(job, workload, heartbeat)?;
                self.functions.insert(key, kernel.clone());
                kernel
            }
        };
        kernel.check_job(&self.context.device, job, workload)?;
        Ok(kernel)
    }

    fn load_kernel(&mut self, job: &Job, workload: &Workload, heartbeat: &mut dyn FnMut()) -> Result<Kernel, JobError> {
        let refused = |stage: &str| {
            let stage = stage.to_owned();
            move |error| JobError::Refused(Reason::LaunchFailed { stage, error: name(&error) })
        };
        if !self.modules.contains_key(&job.variant) {
            let image = self
                .variants
                .get(job.variant)
                .ok_or_else(|| JobError::Failed(format!("there is no variant {}", job.variant)))?;
            let mut module = LoadedModule::load(&self.context, image).map_err(refused("loading its code"))?;
            let mut initial = std::mem::take(&mut self.initial);
            let kept = self.allocate_for_job(workload, heartbeat, |_, context, heartbeat| {
                module.keep(context, &mut initial, &workload.written, heartbeat)
            });
            self.initial = initial;
            kept?;
            self.modules.insert(job.variant, module);
        }
        let missing = || JobError::Failed("a module was lost".to_owned());
        let module = self.modules.get(&job.variant).ok_or_else(missing)?;
        let finding = format!("finding the kernel `{}`", job.kernel);
        let function = module.module.function(&job.kernel).map_err(refused(&finding))?;
        Kernel::new(&self.context, function).map_err(refused("asking for its parameters"))
    }

    /// The arguments of a launch.
    fn arguments(&self, workload: &Workload, places: &[usize]) -> Result<Vec<Vec<u8>>, JobError> {
        let mut arguments = Vec::with_capacity(workload.arguments.len());
        for argument in &workload.arguments {
            let address = |index: usize| {
                let place = places.get(index).filter(|_| index < workload.buffers.len())?;
                Some(self.pool.slabs.get(*place)?.live.address())
            };
            let missing = |index| JobError::Failed(format!("the workload has no buffer {index}"));
            arguments.push(argument.bytes(address).map_err(missing)?);
        }
        self.pool.textures(workload, places).inspect(|textures| textures.put_handles(&mut arguments));
        Ok(arguments)
    }

    /// One launch, timed; waits for its end.
    fn launch(&self, kernel: &Kernel, job: &Job, workload: &Workload, places: &[usize]) -> Result<f64, JobError> {
        self.start.record().map_err(faulted)?;
        self.queue(kernel, job, workload, places)?;
        self.stop.record().map_err(faulted)?;
        self.stop.since(&self.start).map_err(faulted)
    }

    /// Queues one launch on the default stream.
    fn queue(&self, kernel: &Kernel, job: &Job, workload: &Workload, places: &[usize]) -> Result<(), JobError> {
        let mut arguments = self.arguments(workload, places)?;
        let launch = &job.launch;
        kernel.set_carveout(launch)?;
        // SAFETY: number and sizes of the arguments were compared with the kernel's own parameters in
        // `Kernel::check_job`, as far as the driver tells them.
        let launched = unsafe { kernel.function.launch(launch, job.cooperative, &mut arguments, Stream::DEFAULT) };
        let too_many = |what: String| JobError::Refused(Reason::TooManyResources { what });
        launched.map_err(|error| match DriverFault::from(error) {
            DriverFault::Resources => too_many(format!(
                "a block of {} threads takes more registers or shared memory than there are",
                launch.block_threads()
            )),
            DriverFault::TooManyBlocks => too_many(format!(
                "its blocks wait for each other, and {} of {} threads are more than the GPU holds at once",
                launch.blocks(),
                launch.block_threads()
            )),
            DriverFault::Context(error) => JobError::Faulted(Reason::Faulted { error: name(&error) }),
            DriverFault::OutOfMemory(_) => launch_failed("CUDA_ERROR_OUT_OF_MEMORY".to_owned()),
            DriverFault::Other(error) => launch_failed(name(&error)),
        })
    }

    /// Runs several launches, each timed by itself as in [`Self::launch`], but queued as one graph,
    /// so that the launch overhead of the host is not timed. Returns their median; `None` if the
    /// driver cannot make a graph.
    fn launch_together(
        &mut self,
        kernel: &Kernel,
        job: &Job,
        workload: &Workload,
        places: &[usize],
        Sampling { caches, buffer_set, .. }: Sampling,
    ) -> Result<Option<f64>, JobError> {
        if !Graph::can(&self.context) {
            return Ok(None);
        }
        let step = GraphKey {
            variant: job.variant,
            kernel: job.kernel.clone(),
            launch: job.launch,
            cooperative: job.cooperative,
            arguments: self.arguments(workload, places)?,
            places: places.to_vec(),
            caches,
        };
        kernel.set_carveout(&job.launch)?;
        let key = (job.slot, buffer_set);
        if self.graphs.get(&key).is_none_or(|(known, _)| *known != step) {
            let globals = self.globals(job, workload, places)?;
            let (pool, flush) = (&self.pool, &self.flush);
            let module = self.modules.get(&job.variant);
            let variables = || module.into_iter().flat_map(|module| module.variables(&workload.written)).flatten();
            let reset_contents = |stream| {
                pool.restore(workload, places, Slab::is_read, stream)?;
                for variable in variables() {
                    variable.restore(stream)?;
                }
                for (global, slab) in
                    globals.iter().filter_map(|(global, place)| Some((global, pool.slabs.get(*place)?)))
                {
                    global.copy_from(&slab.live, slab.used(), stream)?;
                }
                Ok(())
            };
            let timed = |stream| {
                let mut arguments = step.arguments.clone();
                // SAFETY: as in `queue`; the captured launch keeps a copy of the arguments, and
                // what they point at lives as long as the graph, which goes where buffers go.
                unsafe { kernel.function.launch(&job.launch, job.cooperative, &mut arguments, stream) }
            };
            let before = |stream| match caches {
                Caches::Cold => reset_contents(stream).and_then(|()| flush.set(0, stream)),
                Caches::Warm => {
                    reset_contents(stream).and_then(|()| timed(stream)).and_then(|()| reset_contents(stream))
                }
            };
            match Graph::capture(&self.context, LAUNCHES_PER_GRAPH, before, timed) {
                Ok(graph) => self.graphs.insert(key, (step, graph)),
                Err(error) => {
                    return match DriverFault::from(error) {
                        DriverFault::Context(error) => Err(JobError::Faulted(Reason::Faulted { error: name(&error) })),
                        _ => Ok(None),
                    };
                }
            };
        }
        let Some((_, graph)) = self.graphs.get(&key) else { return Ok(None) };
        let mut times = graph.run().map_err(faulted)?;
        times.sort_by(f64::total_cmp);
        Ok(quantile(&times, 0.5))
    }

    /// Runs one timed launch on initial buffers and variables; returns microseconds, and the
    /// variables before and after it.
    fn run(
        &self,
        kernel: &Kernel,
        job: &Job,
        workload: &Workload,
        places: &[usize],
        heartbeat: &mut dyn FnMut(),
    ) -> Result<(f64, Vec<Option<Observed>>), JobError> {
        self.pool.restore(workload, places, |_| true, Stream::DEFAULT).map_err(faulted)?;
        self.initialize_variables(job, workload, places)?;
        self.context.synchronize().map_err(faulted)?;
        let before = self.read_variables(job, workload, heartbeat)?;
        let us = self.launch(kernel, job, workload, places)?;
        self.pool.read_arrays(workload, places).map_err(faulted)?;
        heartbeat();
        let after = self.read_variables(job, workload, heartbeat)?;
        let pairs = before.into_iter().zip(after);
        let observed = pairs.map(|(before, after)| before.zip(after).map(|(before, after)| Observed { before, after }));
        Ok((us, observed.collect()))
    }

    /// Runs a job to find which of its buffers it writes; does not restore them.
    fn find_written(&mut self, job: &Job, heartbeat: &mut dyn FnMut()) -> Result<FirstRun, JobError> {
        let workload = self.workload(job)?;
        let kernel = self.kernel(job, &workload, heartbeat)?;
        let places = self.places(job.workload, &workload, heartbeat)?;
        let (us, observed) = self.run(&kernel, job, &workload, &places, heartbeat)?;
        let digests = self.pool.digests(&places).map_err(faulted)?;
        let mut changed = Vec::with_capacity(places.len());
        for (place, digest) in places.iter().zip(digests) {
            let before = self.pool.slabs.get(*place).map(|slab| slab.digest);
            changed.push((before != Some(digest)).then_some(digest));
        }
        Ok(FirstRun { us, workload, kernel, places, changed, observed })
    }

    /// Runs the baseline and keeps its results; returns microseconds of the launch. `None` if
    /// another run overwrites them.
    fn keep_results(
        &mut self,
        job: &Job,
        on_device: bool,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Option<f64>, JobError> {
        self.reference = None;
        let mut first_run = self.find_written(job, heartbeat)?;
        // Results are kept on the device in what the copies leave.
        self.record_written(job, &mut first_run, heartbeat)?;
        let variables = VariableResults::new(&first_run.workload.written, std::mem::take(&mut first_run.observed));
        let FirstRun { us, workload, kernel, places, changed, .. } = &first_run;
        let gpu = (&self.context, &self.pool);
        let reference = Reference::new(gpu, job, workload, (places, changed), variables, on_device, heartbeat)?;
        // Once more: results that change from run to run cannot tell a wrong candidate from a right
        // one.
        let (_, observed) = self.run(kernel, job, workload, places, heartbeat)?;
        match reference.compare(&self.pool, workload, places, &observed, heartbeat)? {
            Comparison::Agrees(_) => {
                self.reference = Some(reference);
                Ok(Some(*us))
            }
            Comparison::Differs(Reason::Differs(difference)) => Err(JobError::Refused(Reason::Unsteady(difference))),
            Comparison::Differs(reason) => Err(JobError::Refused(reason)),
            Comparison::ReferenceOverwritten(_) => Ok(None),
        }
    }
}

/// The result of the first run of a job.
struct FirstRun {
    us: f64,
    workload: Workload,
    kernel: Kernel,
    places: Vec<usize>,
    /// The digest of each buffer that the kernel wrote.
    changed: Vec<Option<u64>>,
    /// What it did to each variable.
    observed: Vec<Option<Observed>>,
}

impl Bench for Gpu {
    fn load(&mut self, variants: Vec<Vec<u8>>, workloads: Vec<Workload>) {
        self.variants.extend(variants);
        self.workloads.extend(workloads);
    }

    fn clear(&mut self) {
        self.graphs.clear();
        self.functions.clear();
        self.modules.clear();
        self.initial.clear();
        self.reference = None;
        self.written.clear();
        self.pool.clear();
        self.lacks_room = false;
        self.variants.clear();
        self.workloads.clear();
    }

    fn has_reference(&self, job: &Job) -> bool {
        self.reference.as_ref().is_some_and(|reference| reference.is_of(job))
    }

    fn condition(&mut self) -> Condition {
        self.monitor.read_condition()
    }

    fn reference(&mut self, job: &Job, heartbeat: &mut dyn FnMut()) -> Result<f64, JobError> {
        // A baseline that itself writes beyond its buffers may write over results that lie on the
        // device.
        for on_device in [true, false] {
            if let Some(us) = self.keep_results(job, on_device, heartbeat)? {
                return Ok(us);
            }
            self.repair(heartbeat)?;
        }
        Err(JobError::Failed("the baseline's results were lost".to_owned()))
    }

    fn check(&mut self, job: &Job, heartbeat: &mut dyn FnMut()) -> Result<CheckedRun, JobError> {
        let workload = self.workload(job)?;
        let lost = || JobError::Failed("there is no baseline to compare with".to_owned());
        let reference = self.reference.as_ref().ok_or_else(lost)?;
        let baseline = self.workloads.get(reference.workload()).ok_or_else(lost)?;
        if let Some(buffer) = reference.first_incomparable(baseline, &workload) {
            return Err(JobError::Refused(Reason::Incomparable { buffer: buffer.name.clone() }));
        }
        if job.needs_comparison && !reference.has_compared_results() {
            return Err(JobError::Refused(Reason::Uncompared));
        }
        // Its buffers are taken to be written where the baseline writes its own.
        let written = reference.written();
        let kernel = self.kernel(job, &workload, heartbeat)?;
        self.written.entry(job.workload).or_insert(written);
        let places = self.places(job.workload, &workload, heartbeat)?;
        let (us, observed) = self.run(&kernel, job, &workload, &places, heartbeat)?;
        let reference = self.reference.as_ref().ok_or_else(lost)?;
        match reference.compare(&self.pool, &workload, &places, &observed, heartbeat)? {
            Comparison::Agrees(tolerance_used) => Ok(CheckedRun { us, tolerance_used: Some(tolerance_used) }),
            Comparison::Differs(reason) => {
                self.repair(heartbeat)?;
                Err(JobError::Refused(reason))
            }
            // There is nothing to compare others with any more.
            Comparison::ReferenceOverwritten(reason) => Err(JobError::Faulted(reason)),
        }
    }

    fn warm(&mut self, job: &Job, heartbeat: &mut dyn FnMut()) -> Result<(), JobError> {
        let workload = self.workload(job)?;
        if self.written.contains_key(&job.workload) {
            self.kernel(job, &workload, heartbeat)?;
            return self.places(job.workload, &workload, heartbeat).map(drop);
        }
        let mut first_run = self.find_written(job, heartbeat)?;
        self.record_written(job, &mut first_run, heartbeat)?;
        let FirstRun { workload, places, .. } = &first_run;
        self.pool.restore(workload, places, |_| true, Stream::DEFAULT).map_err(faulted)
    }

    fn sample(&mut self, job: &Job, sampling: Sampling) -> Result<f64, JobError> {
        let workload = self.workload(job)?;
        let kernel = self.kernel(job, &workload, &mut || {})?;
        if sampling.caches == Caches::Cold {
            self.free_other_sets();
        }
        let (places, buffer_set) = self.places_in_set(job.workload, &workload, sampling.buffer_set)?;
        let sampling = Sampling { buffer_set, ..sampling };
        if sampling.short
            && let Some(us) = self.launch_together(&kernel, job, &workload, &places, sampling)?
        {
            return Ok(us);
        }
        let restore = || self.pool.restore(&workload, &places, Slab::is_read, Stream::DEFAULT).map_err(faulted);
        restore()?;
        self.initialize_variables(job, &workload, &places)?;
        // What goes before the launch is not waited for: while the device is at it, the launch is
        // queued behind it, so that the time between the events holds no wait for the host.
        match sampling.caches {
            Caches::Cold => self.flush.set(0, Stream::DEFAULT).map_err(faulted)?,
            Caches::Warm => {
                self.queue(&kernel, job, &workload, &places)?;
                restore()?;
                self.initialize_variables(job, &workload, &places)?;
            }
        }
        self.launch(&kernel, job, &workload, &places)
    }
}

/// An error while buffers are made.
fn preparing(fault: DriverFault) -> JobError {
    match fault {
        DriverFault::OutOfMemory(bytes) => JobError::Refused(Reason::OutOfMemory { bytes }),
        DriverFault::Resources => launch_failed("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES".to_owned()),
        DriverFault::TooManyBlocks => launch_failed("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE".to_owned()),
        DriverFault::Context(error) | DriverFault::Other(error) => faulted(error),
    }
}
