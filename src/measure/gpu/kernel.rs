//! A loaded kernel, and the check whether a job can be launched with it.
//!
//! In: a job and its workload. Out: nothing, or the reason why it cannot be launched. Invariant: a
//! job that passes gives one argument for each parameter, of its size, as far as the driver tells
//! them.

use super::driver::{Context, Function, Result, name};
use super::fault::faulted;
use crate::gpu::Device;
use crate::launch::Launch;
use crate::measure::bench::JobError;
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
    pub fn check_job(&self, device: &Device, job: &Job, workload: &Workload) -> std::result::Result<(), JobError> {
        self.check_resources(device, job)?;
        self.check_arguments(job.launch.is_coarsened(), workload)
    }

    /// Tells the driver which carve-out this launch prefers, where the one before preferred
    /// another: launches of one variant differ in it.
    pub fn set_carveout(&self, launch: &Launch) -> std::result::Result<(), JobError> {
        if self.carveout.get() != launch.carveout {
            self.function.prefer_carveout(launch.carveout).map_err(|error| launch_failed(name(&error)))?;
            self.carveout.set(launch.carveout);
        }
        Ok(())
    }

    fn check_resources(&self, device: &Device, job: &Job) -> std::result::Result<(), JobError> {
        let asked = |attribute| self.function.attribute(attribute).map_err(faulted);
        let too_many = |what: String| Err(JobError::Refused(Reason::TooManyResources { what }));
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

    fn check_arguments(&self, is_coarsened: bool, workload: &Workload) -> std::result::Result<(), JobError> {
        let Some(parameters) = &self.parameters else {
            return Ok(());
        };
        // The last one of coarsened code has no argument in the workload.
        let parameters = match parameters.split_last() {
            Some((&4, own)) if is_coarsened => own,
            _ => parameters,
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

pub(super) fn launch_failed(error: String) -> JobError {
    JobError::Refused(Reason::LaunchFailed { stage: "its launch".to_owned(), error })
}
