//! Clocks, temperature and throttling of a GPU, from NVIDIA's management library (NVML).
//!
//! In: a GPU's UUID. Out: its current [`Condition`]. Invariant: the library is loaded at run
//! time, and nothing fails without it: a condition of zeros says that nothing is known.

use super::condition::Condition;
use crate::process;
use crate::process::DetachedWork;
use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, TemperatureSensor};
use std::ffi::OsStr;

/// The library as drivers install it; the name without a version belongs to developers'
/// packages.
const LIBRARIES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// The reasons for lower clocks that come and go by themselves: a time that is taken meanwhile
/// says little about the kernel. An idle GPU and clocks that a user has set are not among them:
/// they are the same in all rounds.
const TRANSIENT_REASONS: [(ThrottleReasons, &str); 6] = [
    (ThrottleReasons::SW_POWER_CAP, "power cap"),
    (ThrottleReasons::HW_SLOWDOWN, "hardware slowdown"),
    (ThrottleReasons::SYNC_BOOST, "sync boost"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "software thermal slowdown"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "hardware thermal slowdown"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "power brake"),
];

/// Reads the condition of one GPU.
pub(crate) struct ConditionMonitor {
    uuid: String,
    /// The library takes a while to load: this is done in the background.
    starting: Option<DetachedWork<Option<Nvml>>>,
    nvml: Option<Nvml>,
}

impl ConditionMonitor {
    pub fn new(uuid: &str) -> ConditionMonitor {
        ConditionMonitor { uuid: uuid.to_owned(), starting: Some(process::start_thread(open_library)), nvml: None }
    }

    /// Reads the current condition of the GPU.
    pub fn read_condition(&mut self) -> Condition {
        if let Some(starting) = self.starting.take() {
            self.nvml = starting.join();
        }
        let device = self.nvml.as_ref().and_then(|nvml| nvml.device_by_uuid(self.uuid.as_str()).ok());
        let Some(device) = device else { return Condition::default() };
        let clock = |clock| device.clock_info(clock).unwrap_or(0);
        let reasons = device.current_throttle_reasons().unwrap_or(ThrottleReasons::NONE);
        Condition {
            sm_mhz: clock(Clock::SM),
            memory_mhz: clock(Clock::Memory),
            temperature_c: device.temperature(TemperatureSensor::Gpu).unwrap_or(0),
            throttled: reason_names(reasons),
        }
    }
}

fn open_library() -> Option<Nvml> {
    LIBRARIES.iter().find_map(|name| Nvml::builder().lib_path(OsStr::new(name)).init().ok())
}

fn reason_names(reasons: ThrottleReasons) -> Vec<String> {
    TRANSIENT_REASONS
        .iter()
        .filter(|(reason, _)| reasons.contains(*reason))
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

/// Bytes of free memory on a GPU or MIG instance, before there is a context on it; `None` if it
/// is not known.
pub(crate) fn free_bytes(uuid: &str) -> Option<u64> {
    let nvml = open_library()?;
    let memory = nvml.device_by_uuid(uuid).ok()?.memory_info().ok()?;
    Some(memory.free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_that_pass_count() {
        let set = ThrottleReasons::GPU_IDLE | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING;
        assert_eq!(reason_names(set), [""; 0]);
        assert_eq!(reason_names(set | ThrottleReasons::SW_POWER_CAP), ["power cap"]);
        let hot = ThrottleReasons::HW_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN;
        assert_eq!(reason_names(hot), ["hardware slowdown", "hardware thermal slowdown"]);
    }

    #[test]
    fn an_unknown_gpu_has_no_condition() {
        assert_eq!(ConditionMonitor::new("GPU-of-nobody").read_condition(), Condition::default());
        assert_eq!(free_bytes("GPU-of-nobody"), None);
    }
}
