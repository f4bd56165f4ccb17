//! GPUs: what each architecture can do, which GPU of this machine is meant, and how it is.

pub mod architecture;
mod condition;
mod device;
pub mod lock;
pub mod nvml;

pub use architecture::{
    Architecture, MAX_REGISTERS, Machine, REGISTER_UNIT, REGISTERS, SUB_CORES, WARP, architecture_number, auto_caps,
};
pub use condition::{Condition, Conditions};
pub use device::{Device, deserialize_optional_name, sanitized_name};
