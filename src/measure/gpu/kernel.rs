//! A loaded kernel and whether a job fits it.
//!
//! In: a job and its workload. Out: nothing, or the reason that the driver need not be asked to
//! launch it. Invariant: a job that is admitted gives one argument for each parameter,
//! of its size, as far as the driver tells them.

use super::driver::{Context, Function, Result, name};
use super::fault::faulted;
use crate::gpu::Device;
use crate::launch::Launch;
use crate::measure::bench::Halt;
use crate::measure::outcome::Reason;
use crate::measure::protocol::Job;
use crate::workload::Workload;
use cudarc::driver::sys::CUfunction_attribute_enum as Attribute;
use std::cell::Cell;
use std::rc::Rc;

/// A kernel that is ready to launch.
#[derive(Clone)]
pub(super) struct Kernel {
    pub function: Function,
    /// Sizes of its parameters in bytes, where the driver can tell.
    parameters: Option<Vec<usize>>,
    /// The carve-out that it was set to prefer; one for all copies, for it is the
    /// function's.
    carveout: Rc<Cell<Option<u8>>>,
}

impl Kernel {
    pub fn new(context: &Context, function: Function) -> Result<Kernel> {
        Ok(Kernel { function, parameters: function.parameters(context)?, carveout: Rc::default() })
    }

    /// Refuses a job that this kernel cannot be launched with; asks for its shared memory.
    pub fn admit(&self, device: &Device, job: &Job, workload: &Workload) -> std::result::Result<(), Halt> {
        self.fits(device, job)?;
        self.agrees(workload)
    }

    /// Tells the driver which carve-out this launch prefers, where the one before preferred
    /// another: launches of one variant differ in it.
    pub fn prefer(&self, launch: &Launch) -> std::result::Result<(), Halt> {
        if self.carveout.get() != launch.carveout {
            self.function.prefer_carveout(launch.carveout).map_err(|error| launch_failed(name(&error)))?;
            self.carveout.set(launch.carveout);
        }
        Ok(())
    }

    fn fits(&self, device: &Device, job: &Job) -> std::result::Result<(), Halt> {
        let asked = |attribute| self.function.attribute(attribute).map_err(faulted);
        let too_many = |what: String| Err(Halt::Refused(Reason::TooManyResources { what }));
        let threads: u64 = job.launch.block.iter().map(|n| u64::from(*n)).product();
        let most = asked(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        if threads > most.into() {
            return too_many(format!("a block of {threads} threads is more than the {most} that its code allows"));
        }
        let fixed = asked(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let shared = u64::from(fixed) + u64::from(job.launch.shared);
        let most = device.shared_per_block_optin.max(device.shared_per_block);
        if shared > most.into() {
            return too_many(format!("{shared} bytes of shared memory are more than the {most} of the GPU"));
        }
        if shared > device.shared_per_block.into() {
            self.function.allow_shared(job.launch.shared).map_err(|error| launch_failed(name(&error)))?;
        }
        Ok(())
    }

    fn agrees(&self, workload: &Workload) -> std::result::Result<(), Halt> {
        let Some(parameters) = &self.parameters else {
            return Ok(());
        };
        if parameters.len() != workload.arguments.len() {
            return Err(launch_failed(format!(
                "the kernel takes {} arguments, the workload gives {}",
                parameters.len(),
                workload.arguments.len()
            )));
        }
        for (i, (size, argument)) in parameters.iter().zip(&workload.arguments).enumerate() {
            let given = argument.size();
            if given != *size {
                return Err(launch_failed(format!("argument {i} has {given} bytes, the kernel takes {size}")));
            }
        }
        Ok(())
    }
}

pub(super) fn launch_failed(error: String) -> Halt {
    Halt::Refused(Reason::LaunchFailed { stage: "its launch".to_owned(), error })
}
