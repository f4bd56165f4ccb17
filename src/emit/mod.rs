//! Winner -> what the build gets: PTX directives and launch stubs (through the ticket for the shims of ptxas and cicc) and the
//! header.

mod header;
mod stub;
mod ticket;

pub use header::{Header, HeaderKernel, HostFunction, macro_name};
pub use stub::{DETAIL_NAMESPACE, Remap, Reshaped, Shape, StubText, rewritten};
pub use ticket::{Part, Ticket, TicketKernel, TicketOutcome};
