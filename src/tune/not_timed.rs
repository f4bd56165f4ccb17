//! Why a kernel is not timed on the GPU at hand: as it is found out, and as it is said, also by
//! builds that find it in the cache.

use crate::comment::Annotation;
use crate::diag::MessageCode;
use crate::diag::console::Console;
use crate::gpu::Device;
use crate::measure::Error;
use crate::record::{Decision, Untimed};
use crate::workload::Workload;

/// What keeps a kernel from being timed, and whether it will be the same next time.
pub struct UntimedFinding {
    untimed: Untimed,
    is_lasting: bool,
}

/// A GPU that runs nothing of the code of this call.
pub fn without_code(gpu: &str) -> UntimedFinding {
    let untimed = Untimed::Code(format!("the {gpu} runs no machine code of this call"));
    UntimedFinding { untimed, is_lasting: true }
}

/// A GPU that has no room for the baseline's buffers: now, or whoever else uses it.
pub fn beyond_memory(name: &str, workload: &Workload, device: &Device) -> Option<UntimedFinding> {
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

/// A baseline that cannot be measured; `None` where timing failed for something else, of which
/// it is not known when it will be over.
pub fn by_baseline(error: &Error) -> Option<UntimedFinding> {
    let Error::Baseline(reason) = error else { return None };
    Some(UntimedFinding { untimed: Untimed::Baseline(error.to_string()), is_lasting: reason.is_lasting() })
}

impl UntimedFinding {
    /// Says it to the user and to the decision.
    pub fn tell(self, console: &Console, annotation: &Annotation, decision: &mut Decision) {
        let Self { untimed, is_lasting } = self;
        say(&untimed, console, annotation);
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

/// Says to the user why a kernel is not timed.
pub fn say(untimed: &Untimed, console: &Console, annotation: &Annotation) {
    let (name, code) = (&annotation.name, code(untimed));
    match untimed {
        Untimed::Baseline(message) => console.warning(code, format!("{name}: not timed: {message}")),
        Untimed::Code(message) => console.warning(code, format!("{name}: not timed, the model chooses: {message}")),
        Untimed::Memory(message) => {
            console.diagnostics(&[annotation.source.warning(code, annotation.place("args"), message.clone())]);
        }
    }
}
