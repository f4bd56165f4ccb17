//! [`Bench`] by a GPU: the one place that runs kernels.
//!
//! Invariant: the buffers have their contents of before a launch when a job is checked,
//! and those that the kernel reads have them when it is sampled; so have the variables that it
//! may write; a candidate that wrote where the baseline does not is refused, and what it spoiled is made good before the next.

mod device_code;
mod driver;
mod fault;
mod kernel;
mod loaded;
mod pool;
mod reference;

use super::bench::{Bench, Halt, Sampling};
use super::candidate::Caches;
use super::outcome::Reason;
use super::outcome::quantile;
use super::protocol::Job;
use super::variables::{Observed, VariableResults};
use crate::gpu::nvml;
use crate::gpu::nvml::Watch;
use crate::gpu::{Condition, Device};
use crate::launch::Launch;
use crate::workload::Workload;
use driver::{Context, DriverFault, Event, Global, Graph, Memory, Stream, name};
use fault::faulted;
use kernel::{Kernel, launch_failed};
use loaded::{InitialContents, LoadedModule};
use pool::{Pool, Slab};
use reference::{Reference, Verdict};
use std::collections::HashMap;

/// Launches of a short kernel that are timed together.
const TOGETHER: usize = 8;

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
    // In the order in which they are to be dropped: what was made in the context before the context.
    /// By slot of a job.
    graphs: HashMap<u32, (LaunchStep, Graph)>,
    functions: HashMap<(usize, String), Kernel>,
    modules: HashMap<usize, LoadedModule>,
    initial: InitialContents,
    reference: Option<Reference>,
    /// By number of a workload: which of its buffers kernels write, once that is known.
    written: HashMap<usize, Vec<bool>>,
    pool: Pool,
    /// Twice the L2 cache; writing it leaves nothing else there.
    flush: Memory,
    start: Event,
    stop: Event,
    context: Context,
    watch: Watch,
    variants: Vec<Vec<u8>>,
    workloads: Vec<Workload>,
}

/// One launch with all that it depends on: a graph of it serves as long as nothing of this
/// changes.
#[derive(PartialEq)]
struct LaunchStep {
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
            watch: Watch::new(&context.device.uuid),
            functions: HashMap::new(),
            modules: HashMap::new(),
            initial: InitialContents::default(),
            reference: None,
            written: HashMap::new(),
            pool: Pool::new(&context, guarded).map_err(failed)?,
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

    fn workload(&self, job: &Job) -> Result<Workload, Halt> {
        let missing = || Halt::Failed(format!("there is no workload {}", job.workload));
        self.workloads.get(job.workload).cloned().ok_or_else(missing)
    }

    /// Makes something in device memory for a job of this workload. Where it does not fit, the
    /// buffers of candidates before go, and after them the baseline's results, to the host.
    fn make_room<T>(
        &mut self,
        workload: &Workload,
        alive: &mut dyn FnMut(),
        mut make: impl FnMut(&mut Pool, &Context, &mut dyn FnMut()) -> Result<T, DriverFault>,
    ) -> Result<T, Halt> {
        let mut made = make(&mut self.pool, &self.context, alive);
        if matches!(made, Err(DriverFault::OutOfMemory(_))) {
            // Memory that is freed may come back as another buffer's.
            self.graphs.clear();
            self.pool.keep_only(workload.all_buffers());
            made = make(&mut self.pool, &self.context, alive);
        }
        if let (Err(DriverFault::OutOfMemory(_)), Some(reference)) = (&made, &mut self.reference) {
            reference.leave_device(alive)?;
            made = make(&mut self.pool, &self.context, alive);
        }
        made.map_err(preparing)
    }

    /// The places of a workload's buffers, and after them of its variables' contents, made
    /// where they are missing, with copies of those that kernels are known to write.
    fn places(&mut self, number: usize, workload: &Workload, alive: &mut dyn FnMut()) -> Result<Vec<usize>, Halt> {
        let written = self.written.get(&number).cloned().unwrap_or_default();
        self.make_room(workload, alive, |pool, context, alive| {
            let places = pool.take(context, workload.all_buffers(), alive)?;
            for (place, _) in places.iter().zip(&written).filter(|(_, written)| **written) {
                pool.keep_copy(context, *place, alive)?;
            }
            Ok(places)
        })
    }

    /// Puts back the contents before a launch, of what kernels write.
    fn restore(&self, places: &[usize], wanted: impl Fn(&Slab) -> bool) -> Result<(), Halt> {
        for slab in places.iter().filter_map(|place| self.pool.slabs.get(*place)) {
            if wanted(slab) {
                slab.restore(Stream::DEFAULT).map_err(faulted)?;
            }
        }
        Ok(())
    }

    /// The variables of a job's code that have contents, with the places of these.
    fn globals(&self, job: &Job, workload: &Workload, places: &[usize]) -> Result<Vec<(Global, usize)>, Halt> {
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

    /// Gives the variables of a job's code their contents, which a kernel before may have
    /// changed.
    fn give(&self, job: &Job, workload: &Workload, places: &[usize]) -> Result<(), Halt> {
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
        alive: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<u8>>>, Halt> {
        let Some(module) = self.modules.get(&job.variant) else {
            return Ok(vec![None; workload.written.len()]);
        };
        let mut contents = Vec::with_capacity(workload.written.len());
        for variable in module.variables(&workload.written) {
            contents.push(variable.map(|variable| variable.global.read(alive)).transpose().map_err(faulted)?);
        }
        Ok(contents)
    }

    /// Makes good what a kernel may have spoiled.
    fn repair(&mut self, alive: &mut dyn FnMut()) -> Result<(), Halt> {
        let all: Vec<usize> = (0..self.pool.slabs.len()).collect();
        self.pool.repair(&all, alive).map_err(preparing)
    }

    /// Remembers which buffers a run of a job wrote, and makes copies of them as they were
    /// before.
    fn remember(&mut self, job: &Job, learned: &mut Learned, alive: &mut dyn FnMut()) -> Result<(), Halt> {
        let written = learned.changed.iter().map(Option::is_some).collect();
        self.written.insert(job.workload, written);
        learned.places = self.places(job.workload, &learned.workload, alive)?;
        Ok(())
    }

    /// The kernel of a job, loaded, with as much shared memory as it asks for.
    fn kernel(&mut self, job: &Job, workload: &Workload, alive: &mut dyn FnMut()) -> Result<Kernel, Halt> {
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
                let kernel = self.load_kernel(job, workload, alive)?;
                self.functions.insert(key, kernel.clone());
                kernel
            }
        };
        kernel.admit(&self.context.device, job, workload)?;
        Ok(kernel)
    }

    fn load_kernel(&mut self, job: &Job, workload: &Workload, alive: &mut dyn FnMut()) -> Result<Kernel, Halt> {
        let refused = |stage: &str| {
            let stage = stage.to_owned();
            move |error| Halt::Refused(Reason::LaunchFailed { stage, error: name(&error) })
        };
        if !self.modules.contains_key(&job.variant) {
            let image = self
                .variants
                .get(job.variant)
                .ok_or_else(|| Halt::Failed(format!("there is no variant {}", job.variant)))?;
            let mut module = LoadedModule::load(&self.context, image).map_err(refused("loading its code"))?;
            let mut initial = std::mem::take(&mut self.initial);
            let kept = self.make_room(workload, alive, |_, context, alive| {
                module.keep(context, &mut initial, &workload.written, alive)
            });
            self.initial = initial;
            kept?;
            self.modules.insert(job.variant, module);
        }
        let missing = || Halt::Failed("a module was lost".to_owned());
        let module = self.modules.get(&job.variant).ok_or_else(missing)?;
        let finding = format!("finding the kernel `{}`", job.kernel);
        let function = module.module.function(&job.kernel).map_err(refused(&finding))?;
        Kernel::new(&self.context, function).map_err(refused("asking for its parameters"))
    }

    /// The arguments of a launch.
    fn arguments(&self, workload: &Workload, places: &[usize]) -> Result<Vec<Vec<u8>>, Halt> {
        let mut arguments = Vec::with_capacity(workload.arguments.len());
        for argument in &workload.arguments {
            let address = |index: usize| {
                let place = places.get(index).filter(|_| index < workload.buffers.len())?;
                Some(self.pool.slabs.get(*place)?.live.address())
            };
            let missing = |index| Halt::Failed(format!("the workload has no buffer {index}"));
            arguments.push(argument.bytes(address).map_err(missing)?);
        }
        Ok(arguments)
    }

    /// One launch, timed; waits for its end.
    fn launch(&self, kernel: &Kernel, job: &Job, workload: &Workload, places: &[usize]) -> Result<f64, Halt> {
        self.start.record().map_err(faulted)?;
        self.queue(kernel, job, workload, places)?;
        self.stop.record().map_err(faulted)?;
        self.stop.since(&self.start).map_err(faulted)
    }

    /// Queues one launch on the default stream.
    fn queue(&self, kernel: &Kernel, job: &Job, workload: &Workload, places: &[usize]) -> Result<(), Halt> {
        let mut arguments = self.arguments(workload, places)?;
        let launch = &job.launch;
        kernel.prefer(launch)?;
        // SAFETY: number and sizes of the arguments were compared with the kernel's own parameters in
        // `Kernel::admit`, as far as the driver tells them.
        let launched = unsafe { kernel.function.launch(launch, job.cooperative, &mut arguments, Stream::DEFAULT) };
        let too_many = |what: String| Halt::Refused(Reason::TooManyResources { what });
        launched.map_err(|error| match DriverFault::from(error) {
            DriverFault::Resources => too_many(format!(
                "a block of {} threads takes more registers or shared memory than there are",
                launch.block_threads()
            )),
            DriverFault::Crowded => too_many(format!(
                "its blocks wait for each other, and {} of {} threads are more than the GPU holds at once",
                launch.blocks(),
                launch.block_threads()
            )),
            DriverFault::Context(error) => Halt::Faulted(Reason::Faulted { error: name(&error) }),
            DriverFault::OutOfMemory(_) => launch_failed("CUDA_ERROR_OUT_OF_MEMORY".to_owned()),
            DriverFault::Other(error) => launch_failed(name(&error)),
        })
    }

    /// Several launches, each timed by itself as [`Self::launch`] does, but queued as one
    /// graph: what the host takes for a launch is not in the time. The median of them;
    /// `None` where the driver cannot make a graph of it.
    fn launch_together(
        &mut self,
        kernel: &Kernel,
        job: &Job,
        workload: &Workload,
        places: &[usize],
        caches: Caches,
    ) -> Result<Option<f64>, Halt> {
        if !Graph::can(&self.context) {
            return Ok(None);
        }
        let step = LaunchStep {
            variant: job.variant,
            kernel: job.kernel.clone(),
            launch: job.launch,
            cooperative: job.cooperative,
            arguments: self.arguments(workload, places)?,
            places: places.to_vec(),
            caches,
        };
        kernel.prefer(&job.launch)?;
        if self.graphs.get(&job.slot).is_none_or(|(known, _)| *known != step) {
            let globals = self.globals(job, workload, places)?;
            let (pool, flush) = (&self.pool, &self.flush);
            let module = self.modules.get(&job.variant);
            let variables = || module.into_iter().flat_map(|module| module.variables(&workload.written)).flatten();
            let give = |stream| {
                for slab in places.iter().filter_map(|place| pool.slabs.get(*place)).filter(|slab| slab.read()) {
                    slab.restore(stream)?;
                }
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
                // SAFETY: as in `queue`; the captured launch keeps a copy of the arguments, and what they point
                // at lives as long as the graph, which goes where buffers go.
                unsafe { kernel.function.launch(&job.launch, job.cooperative, &mut arguments, stream) }
            };
            let before = |stream| match caches {
                Caches::Cold => give(stream).and_then(|()| flush.set(0, stream)),
                Caches::Warm => give(stream).and_then(|()| timed(stream)).and_then(|()| give(stream)),
            };
            match Graph::capture(&self.context, TOGETHER, before, timed) {
                Ok(graph) => self.graphs.insert(job.slot, (step, graph)),
                Err(error) => {
                    return match DriverFault::from(error) {
                        DriverFault::Context(error) => Err(Halt::Faulted(Reason::Faulted { error: name(&error) })),
                        _ => Ok(None),
                    };
                }
            };
        }
        let Some((_, graph)) = self.graphs.get(&job.slot) else { return Ok(None) };
        let mut times = graph.run().map_err(faulted)?;
        times.sort_by(f64::total_cmp);
        Ok(quantile(&times, 0.5))
    }

    /// One launch on buffers and variables as they were before, timed; what it did to the
    /// variables.
    fn run(
        &self,
        kernel: &Kernel,
        job: &Job,
        workload: &Workload,
        places: &[usize],
        alive: &mut dyn FnMut(),
    ) -> Result<(f64, Vec<Option<Observed>>), Halt> {
        self.restore(places, |_| true)?;
        self.give(job, workload, places)?;
        self.context.synchronize().map_err(faulted)?;
        let before = self.read_variables(job, workload, alive)?;
        let us = self.launch(kernel, job, workload, places)?;
        alive();
        let after = self.read_variables(job, workload, alive)?;
        let pairs = before.into_iter().zip(after);
        let observed = pairs.map(|(before, after)| before.zip(after).map(|(before, after)| Observed { before, after }));
        Ok((us, observed.collect()))
    }

    /// Runs a job to find which of its buffers it writes. They are left as the kernel left
    /// them.
    fn learn(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<Learned, Halt> {
        let workload = self.workload(job)?;
        let kernel = self.kernel(job, &workload, alive)?;
        let places = self.places(job.workload, &workload, alive)?;
        let (us, observed) = self.run(&kernel, job, &workload, &places, alive)?;
        let digests = self.pool.digests(&places).map_err(faulted)?;
        let mut changed = Vec::with_capacity(places.len());
        for (place, digest) in places.iter().zip(digests) {
            let before = self.pool.slabs.get(*place).map(|slab| slab.digest);
            changed.push((before != Some(digest)).then_some(digest));
        }
        Ok(Learned { us, workload, kernel, places, changed, observed })
    }

    /// Runs the baseline and keeps its results; microseconds of the launch. `None` where
    /// another run of it writes over them.
    fn keep_results(&mut self, job: &Job, on_device: bool, alive: &mut dyn FnMut()) -> Result<Option<f64>, Halt> {
        self.reference = None;
        let mut learned = self.learn(job, alive)?;
        // Results are kept on the device in what the copies leave.
        self.remember(job, &mut learned, alive)?;
        let variables = VariableResults::new(&learned.workload.written, std::mem::take(&mut learned.observed));
        let Learned { us, workload, kernel, places, changed, .. } = &learned;
        let gpu = (&self.context, &self.pool);
        let reference = Reference::of(gpu, job, workload, (places, changed), variables, on_device, alive)?;
        // Once more: results that change from run to run cannot tell a wrong candidate from a right
        // one.
        let (_, observed) = self.run(kernel, job, workload, places, alive)?;
        match reference.compare(&self.pool, workload, places, &observed, alive)? {
            Verdict::Agrees => {
                self.reference = Some(reference);
                Ok(Some(*us))
            }
            Verdict::Differs(Reason::Differs(difference)) => Err(Halt::Refused(Reason::Unsteady(difference))),
            Verdict::Differs(reason) => Err(Halt::Refused(reason)),
            Verdict::Spoiled(_) => Ok(None),
        }
    }
}

/// What one run of a job showed.
struct Learned {
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
        self.pool.slabs.clear();
        self.variants.clear();
        self.workloads.clear();
    }

    fn has_reference(&self, job: &Job) -> bool {
        self.reference.as_ref().is_some_and(|reference| reference.is_of(job))
    }

    fn condition(&mut self) -> Condition {
        self.watch.read_condition()
    }

    fn reference(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<f64, Halt> {
        // A baseline that itself writes beyond its buffers may write over results that lie on the
        // device.
        for on_device in [true, false] {
            if let Some(us) = self.keep_results(job, on_device, alive)? {
                return Ok(us);
            }
            self.repair(alive)?;
        }
        Err(Halt::Failed("the baseline's results were lost".to_owned()))
    }

    fn check(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<f64, Halt> {
        let workload = self.workload(job)?;
        let lost = || Halt::Failed("there is no baseline to compare with".to_owned());
        let reference = self.reference.as_ref().ok_or_else(lost)?;
        let baseline = self.workloads.get(reference.workload()).ok_or_else(lost)?;
        if let Some(buffer) = reference.incomparable(baseline, &workload) {
            return Err(Halt::Refused(Reason::Incomparable { buffer: buffer.name.clone() }));
        }
        if job.needs_comparison && !reference.compares() {
            return Err(Halt::Refused(Reason::Uncompared));
        }
        // Its buffers are taken to be written where the baseline writes its own.
        let written = reference.written();
        let kernel = self.kernel(job, &workload, alive)?;
        self.written.entry(job.workload).or_insert(written);
        let places = self.places(job.workload, &workload, alive)?;
        let (us, observed) = self.run(&kernel, job, &workload, &places, alive)?;
        let reference = self.reference.as_ref().ok_or_else(lost)?;
        match reference.compare(&self.pool, &workload, &places, &observed, alive)? {
            Verdict::Agrees => Ok(us),
            Verdict::Differs(reason) => {
                self.repair(alive)?;
                Err(Halt::Refused(reason))
            }
            // There is nothing to compare others with any more.
            Verdict::Spoiled(reason) => Err(Halt::Faulted(reason)),
        }
    }

    fn warm(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<(), Halt> {
        let workload = self.workload(job)?;
        if self.written.contains_key(&job.workload) {
            self.kernel(job, &workload, alive)?;
            return self.places(job.workload, &workload, alive).map(drop);
        }
        let mut learned = self.learn(job, alive)?;
        self.remember(job, &mut learned, alive)?;
        self.restore(&learned.places, |_| true)
    }

    fn sample(&mut self, job: &Job, Sampling { short, caches }: Sampling) -> Result<f64, Halt> {
        let workload = self.workload(job)?;
        let kernel = self.kernel(job, &workload, &mut || {})?;
        let places = self.places(job.workload, &workload, &mut || {})?;
        if short && let Some(us) = self.launch_together(&kernel, job, &workload, &places, caches)? {
            return Ok(us);
        }
        self.restore(&places, Slab::read)?;
        self.give(job, &workload, &places)?;
        // What goes before the launch is not waited for: while the device is at it, the launch is
        // queued behind it, so that the time between the events holds no wait for the host.
        match caches {
            Caches::Cold => self.flush.set(0, Stream::DEFAULT).map_err(faulted)?,
            Caches::Warm => {
                self.queue(&kernel, job, &workload, &places)?;
                self.restore(&places, Slab::read)?;
                self.give(job, &workload, &places)?;
            }
        }
        self.launch(&kernel, job, &workload, &places)
    }
}

/// An error while buffers are made.
fn preparing(fault: DriverFault) -> Halt {
    match fault {
        DriverFault::OutOfMemory(bytes) => Halt::Refused(Reason::OutOfMemory { bytes }),
        DriverFault::Resources => launch_failed("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES".to_owned()),
        DriverFault::Crowded => launch_failed("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE".to_owned()),
        DriverFault::Context(error) | DriverFault::Other(error) => faulted(error),
    }
}
