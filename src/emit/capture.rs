//! Writes the C++ by which the launch stub of a kernel records launches: the arguments and
//! contents of the first and fourth launch of each kind, how long these took, and how often each
//! kind came.
//!
//! In: a [`Capture`] and the stub's arguments. Out: C++ statements for the stub. They count and
//! record, and push the launch configuration again for the toolkit's own code after them, so
//! that the program runs as plain nvcc's does. [`recording`](crate::recording) reads what they
//! write.

use crate::analysis::MemoryProbe;
use crate::cuda::{HandlePlace, OpaqueHandle};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The functions that the statements call, for the head of a stub file.
const RUNTIME: &str = concat!(include_str!("capture_runtime.h"), include_str!("capture_textures.h"));

/// Those of them that a source has as `NAME_ptsz` alone if each thread has a default stream of its
/// own (cuda_runtime_api.h, `__CUDART_API_PTSZ`).
const OF_STREAMS: [&str; 6] = [
    "cudaEventRecord",
    "cudaGetDriverEntryPoint",
    "cudaGetDriverEntryPointByVersion",
    "cudaMemcpyAsync",
    "cudaStreamIsCapturing",
    "cudaStreamSynchronize",
];

/// Tells by its preprocessed text whether a source has a default stream for each thread
/// (`--default-stream per-thread`). Device code has some of the names in any case, but not this one.
pub fn has_stream_per_thread(preprocessed: &[u8]) -> bool {
    memchr::memmem::find(preprocessed, b"cudaStreamSynchronize_ptsz(").is_some()
}

/// Declares [`variables_text`]'s functions.
const VARIABLES_DECLARATIONS: &str =
    "static const __nvtune_capture::Variable *__nvtune_variables(void);\nstatic int __nvtune_variable_count(void);\n";

/// Where the launches of one kernel are recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The folder of the source's recordings. Only its last component is used if the program is
    /// run with `NVTUNE_CAPTURE_DIR`.
    pub folder: Vec<u8>,
    /// The kernel's folder in it.
    pub kernel: String,
    /// The kernel with its template arguments, as in `k<float, 4>`; empty where it is no template.
    pub instance: String,
    /// The toolkit's `CUDART_VERSION`: 12050 for 12.5.
    pub toolkit: u32,
    /// As [`has_stream_per_thread`] says.
    pub has_stream_per_thread: bool,
    /// What finds out which memory a launch accesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<MemoryProbe>,
    /// Where the arguments have handles of texture and surface objects, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handles: Vec<HandlePlace>,
    /// Whether the kernel may load addresses from memory. If not, what looks like one there is none.
    pub loads_addresses: bool,
}

/// An argument of a launch in its stub.
pub(super) struct StubArgument<'a> {
    pub expression: &'a str,
}

impl Capture {
    /// Returns the text for the head of the stub file.
    pub(super) fn head(&self) -> String {
        let renamed = OF_STREAMS.iter().filter(|_| self.has_stream_per_thread);
        let define: String = renamed.clone().map(|name| format!("#define {name} {name}_ptsz\n")).collect();
        let undefine: String = renamed.map(|name| format!("#undef {name}\n")).collect();
        format!("#define __NVTUNE_TOOLKIT {}\n{define}{RUNTIME}{undefine}{VARIABLES_DECLARATIONS}", self.toolkit)
    }

    /// Returns the statements to insert before the stub's `__cudaLaunch`, whose first argument is
    /// `function`. The launch is timed until the stub's end.
    pub(super) fn text(&self, function: &str, arguments: &[StubArgument<'_>]) -> String {
        let probe = self.probe.as_ref().filter(|probe| probe.parameters == arguments.len());
        let mut text = format!(
            "\n__nvtune_capture::Timing __nvtune_timing;\n{{ /* made by nvtune: records launches */\n{}{}static __nvtune_capture::Kernel __nvtune_kernel = {{{}, {}, {}, {}, {}, {}, {}, 0, 0, {{0}}, {{0}}, 0, {{0}}, 0, 0}};\nconst __nvtune_capture::Argument __nvtune_arguments[] = {{\n",
            probe.map(probe_text).unwrap_or_default(),
            handles_text(&self.handles),
            literal(&self.folder),
            literal(self.kernel.as_bytes()),
            literal(self.instance.as_bytes()),
            if probe.is_some() { "&__nvtune_probe" } else { "0" },
            if self.handles.is_empty() { "0" } else { "__nvtune_handles" },
            self.handles.len(),
            self.loads_addresses
        );
        for (index, StubArgument { expression }) in arguments.iter().enumerate() {
            let known = self.handles.iter().find(|place| (place.argument, place.offset) == (index, 0));
            let kind = match known.map(|place| place.kind) {
                Some(OpaqueHandle::Texture) => format!("sizeof({expression}) == 8 ? 't' : "),
                Some(OpaqueHandle::Surface) => format!("sizeof({expression}) == 8 ? 'o' : "),
                None => String::new(),
            };
            let _ = writeln!(
                text,
                "{{__args_arr[{index}], sizeof({expression}), {kind}__nvtune_capture::type_of(__cudaAddressOf({expression}))}},"
            );
        }
        let _ = write!(
            text,
            "{{0, 0, 0}}}};\n__nvtune_capture::launch(__nvtune_kernel, __nvtune_arguments, {}, __nvtune_variables(), __nvtune_variable_count(), {function}, __nvtune_timing);\n}}\n",
            arguments.len()
        );
        text
    }
}

/// Returns the probe of a kernel as a static variable of its stub.
fn probe_text(probe: &MemoryProbe) -> String {
    let pointers = probe.rows.iter().enumerate().flat_map(|(row, of)| {
        of.pointers.iter().map(move |pointer| format!("{{{row}, {}, {}}}", pointer.parameter, pointer.offset))
    });
    let pointers: Vec<String> = pointers.collect();
    let rows = probe.rows.iter().map(|row| format!("{{{}, {}}}", row.is_watched, row.is_written));
    let lines = probe.ptx.split_inclusive('\n').map(|line| literal(line.as_bytes()));
    format!(
        "static const __nvtune_capture::ProbeRow __nvtune_rows[] = {{{}}};\nstatic const __nvtune_capture::ProbePointer __nvtune_pointers[] = {{{}}};\nstatic const __nvtune_capture::Probe __nvtune_probe = {{\n{},\n{}, {}, {}, __nvtune_rows, __nvtune_pointers}};\n",
        rows.collect::<Vec<_>>().join(", "),
        pointers.join(", "),
        lines.collect::<Vec<_>>().join("\n"),
        probe.architecture,
        probe.rows.len(),
        pointers.len()
    )
}

/// Returns the handles among the arguments as a static variable of the stub.
fn handles_text(handles: &[HandlePlace]) -> String {
    if handles.is_empty() {
        return String::new();
    }
    let row = |place: &HandlePlace| {
        format!("{{{}, {}, {}}}", place.argument, place.offset, place.kind == OpaqueHandle::Texture)
    };
    let rows: Vec<String> = handles.iter().map(row).collect();
    format!("static const __nvtune_capture::Handle __nvtune_handles[] = {{{}}};\n", rows.join(", "))
}

/// Returns the functions that list the variables of a module: symbol, name and bytes of each.
pub(super) fn variables_text(variables: &[[&str; 3]]) -> String {
    let rows = variables.iter().map(|[symbol, name, bytes]| {
        format!("{{\"{symbol}\", (const void *)(const volatile char *)&{name}, {bytes}}},\n")
    });
    format!(
        "\nstatic const __nvtune_capture::Variable *__nvtune_variables(void) {{\nstatic const __nvtune_capture::Variable all[] = {{\n{}{{0, 0, 0}}}};\nreturn all;\n}}\nstatic int __nvtune_variable_count(void) {{ return {}; }}\n",
        rows.collect::<String>(),
        variables.len()
    )
}

/// Returns a string literal of C.
fn literal(bytes: &[u8]) -> String {
    let letter = |byte: &u8| match byte {
        b'\n' => "\\n".to_owned(),
        // A trigraph begins with two question marks.
        b'"' | b'\'' | b'\\' | b'?' | 0..32 | 127.. => format!("\\{byte:03o}"),
        byte => char::from(*byte).to_string(),
    };
    format!("\"{}\"", bytes.iter().map(letter).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn paths_of_any_bytes_are_literals() {
        assert_eq!(literal(b"/a b/it's\"\\\xff"), r#""/a b/it\047s\042\134\377""#);
    }
}
