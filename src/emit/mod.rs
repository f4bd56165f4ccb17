//! Winner -> what the build gets: PTX directives (through the ticket for the `ptxas` shim) and the header.

mod header;
mod ticket;

pub use header::{Header, HeaderKernel, HostFunction, macro_name};
pub use ticket::{Ticket, TicketKernel, TicketOutcome};
