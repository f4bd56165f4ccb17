//! A kernel of a cubin: its machine code, and what a launch of it takes.

use super::line_info::Lines;

/// A kernel (`__global__` function) of a cubin.
#[derive(Clone, Debug)]
pub struct CubinKernel<'data> {
    /// The mangled name.
    pub name: &'data str,
    /// Compute capability as two digits: 90 is 9.0.
    pub architecture: u32,
    pub resources: Resources,
    /// The machine code of its section: the kernel and the device functions that it calls
    /// there.
    pub code: &'data [u8],
    /// Device functions in the same section.
    pub functions: Vec<DeviceFunction<'data>>,
    /// PTX lines, where the cubin was made with `-lineinfo`.
    pub lines: Lines,
    /// Targets of indirect branches, in bytes from the section's start.
    pub indirect: Vec<IndirectBranch>,
}

/// A device function that ptxas left as a function of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFunction<'data> {
    /// As ptxas names it: `$kernel$callee`, or `$__internal_0_$__cuda_...` for its own
    /// subroutines.
    pub name: &'data str,
    /// First instruction, in bytes from the section's start.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// A branch through a jump table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndirectBranch {
    /// The branch, in bytes from the section's start.
    pub offset: u32,
    /// Where it may go, in bytes from the section's start.
    pub targets: Vec<u32>,
}

/// What a kernel takes of an SM, and the limits that it was compiled for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block in bytes, without the driver's reserve.
    pub static_shared: u32,
    /// Stack of a thread in bytes: local arrays and spilled registers, over the call graph.
    pub stack_frame: u32,
    /// Named barriers of a block.
    pub barriers: u32,
    /// `.maxntid` (`__launch_bounds__`): no larger block may be launched.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`: the only block shape that may be launched.
    pub required_threads: Option<[u32; 3]>,
    /// The register cap that ptxas obeyed (`-maxrregcount`, `.maxnreg`, or from launch bounds).
    pub register_cap: Option<u32>,
    /// Blocks of a cluster, where the kernel fixes them (`__cluster_dims__`).
    pub cluster: Option<[u32; 3]>,
    /// The most blocks that a cluster may have, where the kernel says (third launch bound).
    pub max_cluster: Option<u32>,
    /// Virtual resources of a block (compute capability 10 and later; an SM has 128).
    pub virtual_resources: u32,
    /// By ordinal.
    pub parameters: Vec<Parameter>,
    /// Bytes of all parameters.
    pub parameter_bytes: u32,
}

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Position in the parameter list, from 0.
    pub ordinal: u32,
    /// Offset in the parameter block in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}
