//! When this process was started, which on a busy machine is some time before its first
//! instruction.

use std::time::{Duration, SystemTime};

/// Returns the start time of this process to a hundredth of a second, or the current time
/// if the system does not report it.
pub fn process_start() -> SystemTime {
    let now = SystemTime::now();
    process_age().and_then(|age| now.checked_sub(age)).unwrap_or(now)
}

/// How long ago that was.
fn process_age() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in parentheses may hold anything; the start is the 22nd field, in ticks since the
    // machine was started.
    let ticks: u64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let uptime = Duration::new(u64::try_from(uptime.tv_sec).ok()?, u32::try_from(uptime.tv_nsec).ok()?);
    let begin = ticks.checked_mul(1000)?.checked_div(rustix::param::clock_ticks_per_second())?;
    uptime.checked_sub(Duration::from_millis(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_began_before_it_asks() {
        let age = process_age().expect("the system tells");
        assert!(age < Duration::from_secs(3600), "{age:?}");
        std::thread::sleep(Duration::from_millis(50));
        let later = super::process_age().expect("the system tells");
        assert!(later > age, "{later:?} {age:?}");
    }
}
