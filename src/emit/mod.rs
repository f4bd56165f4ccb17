//! Winner -> what the build gets: PTX directives and launch stubs (through the ticket for the shims of ptxas and cicc) and the
//! header.

mod build_plan;
pub mod cxx_expression;
mod header;
mod stub;

pub use build_plan::{Part, Ticket, TicketKernel, TicketOutcome};
pub use header::{HEADER_DETAIL, Header, HeaderKernel, HostFunction, HostParameter, macro_name, without_macros};
pub use stub::{DETAIL_NAMESPACE, Remap, Reshaped, Scale, Shape, StubText, rewritten};
