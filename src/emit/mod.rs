//! Winner -> what the build gets: entries and launch stubs (through the ticket for the shims of
//! ptxas and cicc) and the header.

mod build_plan;
pub mod cxx_expression;
mod dispatch;
mod header;
mod header_text;
mod stub_file;

pub use build_plan::{Part, Ticket, TicketKernel, TicketOutcome};
pub use dispatch::{DETAIL_NAMESPACE, Dispatch, LaunchText, Winner};
pub use header::{
    HEADER_DETAIL, Header, HeaderKernel, HostFunction, HostParameter, KernelParameter, macro_name, without_macros,
};
pub use stub_file::{RewrittenStubs, StubText, rewrite_stubs};
