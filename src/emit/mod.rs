//! Winner -> what the build gets: entries and launch stubs (through the build plan for the shims of
//! ptxas and cicc) and the header.

mod build_plan;
mod capture;
pub mod cxx_expression;
mod dispatch;
mod header;
mod header_kernel;
mod header_lines;
mod header_text;
mod insertion;
mod launch_by_address;
mod stub_file;

pub use build_plan::{BuildPlan, CiccOutput, Part, PlannedKernel, ShimOutcome};
pub use capture::{Capture, has_stream_per_thread};
pub use dispatch::{DETAIL_NAMESPACE, Dispatch, LaunchText, Winner};
pub use header::{HEADER_DETAIL_PREFIX, Header, without_macros};
pub use header_kernel::{HeaderKernel, HostFunction, HostParameter, KernelParameter, macro_name};
pub use launch_by_address::LaunchesByAddress;
pub use stub_file::{RewrittenStubs, StubChange, StubText, rewrite_stubs};
