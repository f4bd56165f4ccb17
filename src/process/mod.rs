//! What nvtune is among other processes: how it ends, what it starts, what it leaves behind.
//!
//! Invariant: a call that is handed to nvcc ([`hand_over`]) inherits nvtune's signals, files and
//! environment untouched; what only one build may use at a time has a [`NamedLock`]; after a
//! signal no child goes on and no temporary folder stays; no more tools run at once than make
//! allows; every tool that nvtune runs for its own purposes has a time limit; if nvtune itself
//! fails, plain nvcc builds ([`use_fallback`]).

mod broken_pipes;
mod exec;
mod fallback;
mod job_slots;
mod named_lock;
mod process_tree;
mod signals;
mod start_time;
mod temp_dir;
mod threads;
mod timeout;
mod tool;
mod work_queue;

pub use broken_pipes::ignore_broken_pipes;
pub use exec::hand_over;
pub use fallback::{Fallback, set_fallback, use_fallback};
pub use job_slots::{
    Permit, additional_permit, free_permit, own_permits, prepare_jobserver as prepare_jobs, wait_for_permit,
};
pub use named_lock::NamedLock;
pub use process_tree::{Tree, is_running};
pub use signals::{
    run_tool, run_worker, set_finish, set_last_words, set_undo, spawn_child, start_builder, uninterrupted,
    wait_for_builder, wait_for_status, wait_where_interrupted, watch_signals,
};
pub use start_time::process_start;
pub use temp_dir::TemporaryFolder;
pub use threads::{
    DetachedWork, ScopedWork, has_faulted, is_short_of_processes, note_fault, spawn_or_return, spawn_or_run,
    start_pool, start_thread,
};
pub use timeout::{output_within, parse_seconds, tool_patience};
pub use tool::{LAUNCHER, Tool, become_tool, set_own_program};
pub use work_queue::run_jobs;

/// Asks until it is so, for some seconds. In a test, a lock outlives its file for as long as a
/// child that another test starts at that time is between fork and exec.
#[cfg(test)]
pub(crate) fn comes_true(is_so: impl Fn() -> bool) -> bool {
    (0..500).any(|turn| {
        if turn > 0 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        is_so()
    })
}
