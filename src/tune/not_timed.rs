//! The reasons why a kernel is not timed on the GPU at hand, and their messages. Later builds
//! repeat the message from the cache.

use crate::comment::Annotation;
use crate::diag::MessageCode;
use crate::diag::console::Console;
use crate::gpu::Device;
use crate::measure::Error;
use crate::record::{Decision, Untimed};
use crate::workload::Workload;

/// Why a kernel cannot be timed, and whether the next build will find the same.
pub struct UntimedFinding {
    untimed: Untimed,
    is_lasting: bool,
}

/// Reports a GPU that runs none of the code of this call.
pub fn without_code(gpu: &str) -> UntimedFinding {
    let untimed = Untimed::Code(format!("the {gpu} runs no machine code of this call"));
    UntimedFinding { untimed, is_lasting: true }
}

/// Reports buffers of the baseline that exceed the GPU's free memory. This is lasting if they
/// exceed its total memory.
pub fn exceeds_memory(name: &str, workload: &Workload, device: &Device) -> Option<UntimedFinding> {
    let wanted = workload.bytes();
    if device.free_bytes == 0 || wanted <= device.free_bytes {
        return None;
    }
    let is_lasting = device.memory_bytes > 0 && wanted > device.memory_bytes;
    let there = match is_lasting {
        true => format!("{} MiB", device.memory_bytes >> 20),
        false => format!("{} free MiB", device.free_bytes >> 20),
    };
    let message = format!(
        "buffers of {} MiB exceed the {there} of {}: use smaller ones; `{name}` is not timed",
        wanted >> 20,
        device.name,
    );
    Some(UntimedFinding { untimed: Untimed::Memory(message), is_lasting })
}

/// Reports a baseline that cannot be measured; `None` if timing failed for another reason, which
/// may be temporary.
pub fn by_baseline(error: &Error) -> Option<UntimedFinding> {
    let Error::Baseline(reason) = error else { return None };
    Some(UntimedFinding { untimed: Untimed::Baseline(error.to_string()), is_lasting: reason.is_lasting() })
}

impl UntimedFinding {
    /// Warns the user and records the reason in the decision.
    pub fn report(self, console: &Console, annotation: &Annotation, decision: &mut Decision) {
        let Self { untimed, is_lasting } = self;
        print(&untimed, console, annotation);
        let (Untimed::Baseline(note) | Untimed::Code(note) | Untimed::Memory(note)) = &untimed;
        decision.note(code(&untimed), note);
        decision.provisional |= !is_lasting;
        decision.untimed = is_lasting.then_some(untimed);
    }
}

/// Returns the code of the message that says so.
fn code(untimed: &Untimed) -> MessageCode {
    match untimed {
        Untimed::Baseline(_) => MessageCode::BaselineFails,
        Untimed::Code(_) => MessageCode::GpuRunsNoCode,
        Untimed::Memory(_) => MessageCode::BuffersTooLarge,
    }
}

/// Warns the user that a kernel is not timed.
pub fn print(untimed: &Untimed, console: &Console, annotation: &Annotation) {
    let (name, code) = (&annotation.name, code(untimed));
    match untimed {
        Untimed::Baseline(message) => console.warning(code, format!("{name}: not timed: {message}")),
        Untimed::Code(message) => console.warning(code, format!("{name}: not timed, the model chooses: {message}")),
        Untimed::Memory(message) => {
            console.diagnostics(&[annotation.source.warning(code, annotation.place("args"), message.clone())]);
        }
    }
}
