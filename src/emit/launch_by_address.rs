//! Has launches by address (`cudaLaunchKernel`, `cudaLaunchKernelEx`) reach the launch stubs that
//! nvtune wrote.
//!
//! In: the host code of a source, as cudafe++ writes it. Out: the host code in which calls of the
//! runtime's functions are calls of nvtune's, and the text that defines these in the stub file,
//! which the host code includes at its end. Sources that call none of them stay as they are.

use super::insertion::with_insertions;
use memchr::memmem;
use std::fmt::Write;

const RUNTIME: &str = include_str!("launch_by_address.h");

/// A function of the runtime that launches a kernel by its address.
struct LaunchFunction {
    name: &'static str,
    parameters: &'static str,
    /// What the function in its place does, with `NAME` for the function's name.
    body: &'static str,
}

const FUNCTIONS: [LaunchFunction; 2] = [
    LaunchFunction {
        name: "cudaLaunchKernel",
        parameters: "const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream",
        body: "  __nvtune_detail::Call call = {grid, block, shared, stream, 0, cudaSuccess};\n  \
               if (__nvtune_detail::launch_by_stub(kernel, arguments, &call)) return call.error;\n  \
               return NAME(kernel, grid, block, arguments, shared, stream);\n",
    },
    LaunchFunction {
        name: CONFIGURED,
        parameters: "const cudaLaunchConfig_t *configuration, const void *kernel, void **arguments",
        body: "  if (configuration && __nvtune_detail::is_free_of_shape(configuration)) {\n    \
               __nvtune_detail::Call call = {configuration->gridDim, configuration->blockDim, configuration->dynamicSmemBytes,\n                                  \
               configuration->stream, configuration, cudaSuccess};\n    \
               if (__nvtune_detail::launch_by_stub(kernel, arguments, &call)) return call.error;\n  }\n  \
               return NAME(configuration, kernel, arguments);\n",
    },
];

/// What `cudaLaunchKernelEx` calls.
const CONFIGURED: &str = "cudaLaunchKernelExC";

/// The template of the toolkit that calls [`CONFIGURED`].
const TEMPLATE: &[u8] = b"cudaLaunchKernelEx";

/// The prefix of all these names.
const NAME_PREFIX: &str = "cudaLaunchKernel";

/// The call in the body of each kernel template's wrapper. cudafe++ writes it, and nothing makes it.
const WRAPPER_CALL: &[u8] = b"cudaLaunchKernel(0, 0, 0, 0, 0, 0);}";

/// The functions have this behind their names if each thread has a default stream of its own
/// (cuda_runtime_api.h, `__CUDART_API_PTSZ`).
const STREAM_PER_THREAD: &str = "_ptsz";

/// Host code whose launches by address reach the launch stubs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchesByAddress {
    /// The host code with the calls renamed.
    pub host_code: Vec<u8>,
    /// The renamed functions: index in [`FUNCTIONS`] and previous name.
    renamed: Vec<(usize, String)>,
}

impl LaunchesByAddress {
    /// Renames the calls in host code. `None` if no file outside the toolkit has one.
    pub fn new(host_code: &[u8]) -> Option<Self> {
        let mut renamed = Vec::new();
        let mut insertions = Vec::new();
        let mut headers = None;
        for (index, function) in FUNCTIONS.iter().enumerate() {
            for suffix in ["", STREAM_PER_THREAD] {
                let name = format!("{}{suffix}", function.name);
                let Some(end) = declaration_end(host_code, &name) else { continue };
                headers = headers.or_else(|| folder_of_line(&host_code[..end]));
                let replacement = replacement(&name);
                insertions.push((
                    end,
                    format!(
                        "\nstatic cudaError_t {replacement}({}) __attribute__((unused));\n#define {name} {replacement}\n",
                        function.parameters
                    ),
                ));
                renamed.push((index, name));
            }
        }
        if !is_called_outside(host_code, &headers?) {
            return None;
        }
        Some(Self { host_code: with_insertions(host_code, insertions), renamed })
    }

    /// Returns the first lines of the stub file, which give the functions the runtime's names
    /// again. `cudaLaunchKernel` of a source with a stream per thread would
    /// otherwise be an inline function of the host code, whose call is renamed.
    pub(super) fn names(&self) -> String {
        let mut text = String::new();
        for (index, name) in &self.renamed {
            let _ = writeln!(text, "#undef {name}");
            if *name != FUNCTIONS[*index].name {
                let _ = writeln!(text, "#define {} {name}", FUNCTIONS[*index].name);
            }
        }
        text
    }

    /// Returns the functions that stubs call, for the head of the stub file.
    pub(super) fn runtime(&self) -> String {
        let is_configured = self.renamed.iter().any(|(index, _)| FUNCTIONS[*index].name == CONFIGURED);
        let configured = if is_configured { "#define __NVTUNE_CONFIGURED\n" } else { "" };
        format!("#define __NVTUNE_BY_ADDRESS\n{configured}{RUNTIME}")
    }

    /// Returns the functions that the host code calls, which find these stubs: name of the stub's
    /// function, and the kernel's address.
    pub(super) fn functions(&self, stubs: &[(String, &str)]) -> String {
        let mut text = "\n#if __cplusplus >= 201103L\n".to_owned();
        for (number, (stub, _)) in stubs.iter().enumerate() {
            let _ = writeln!(
                text,
                "static bool __nvtune_run_{number}(void **arguments, __nvtune_detail::Call *call) {{\n\
                 __nvtune_call = call;\nconst bool is_run = __nvtune_detail::call_stub({stub}, arguments);\n\
                 __nvtune_call = 0;\nreturn is_run;\n}}"
            );
        }
        text += "__attribute__((constructor)) static void __nvtune_list_stubs() {\n\
                 static const __nvtune_detail::Stub stubs[] = {\n";
        for (number, (_, kernel)) in stubs.iter().enumerate() {
            let _ = writeln!(text, "{{{kernel}, __nvtune_run_{number}}},");
        }
        let _ = write!(
            text,
            "}};\nstatic __nvtune_detail::StubList list = {{stubs, {}, 0}};\nlist.next = __nvtune_stubs_1;\n\
             __atomic_store_n(&__nvtune_stubs_1, &list, __ATOMIC_RELEASE);\n}}\n#endif\n",
            stubs.len()
        );
        text += "extern \"C\" {\n";
        for (index, name) in &self.renamed {
            let function = &FUNCTIONS[*index];
            let _ = writeln!(
                text,
                "static cudaError_t {}({}) {{\n{}}}",
                replacement(name),
                function.parameters,
                function.body.replace("NAME", name)
            );
        }
        text + "}\n"
    }
}

/// Returns the name of the function that host code calls in place of one of the runtime's.
fn replacement(name: &str) -> String {
    format!("__nvtune_{name}")
}

/// Returns the offset behind the declaration of one of the runtime's functions.
fn declaration_end(text: &[u8], name: &str) -> Option<usize> {
    let declaration = format!("cudaError_t {name}(");
    let start = memmem::find(text, declaration.as_bytes())?;
    if text[..start].last().copied().is_some_and(is_of_name) {
        return None;
    }
    let length = text[start..].iter().position(|byte| matches!(byte, b';' | b'{'))?;
    (text[start + length] == b';').then_some(start + length + 1)
}

/// Returns the file that a line says that the next lines are of: `# 1 "a.cu"`.
fn named_file(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix(b"# ")?;
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let name = line[digits..].strip_prefix(b" \"")?;
    Some(&name[..memchr::memchr(b'"', name)?])
}

/// Returns the folder of the file that the end of a text is of.
fn folder_of_line(text: &[u8]) -> Option<Vec<u8>> {
    let file = text.rsplit(|&byte| byte == b'\n').find_map(named_file)?;
    Some(file[..=memchr::memrchr(b'/', file)?].to_vec())
}

/// Returns whether files outside a folder call a function that launches by address. Returns `false`
/// if they have a function or a member of such a name, because that must keep its name.
fn is_called_outside(text: &[u8], folder: &[u8]) -> bool {
    let (mut is_inside, mut is_called) = (false, false);
    let mut looked_at = 0;
    for place in memmem::find_iter(text, NAME_PREFIX) {
        if let Some(file) = text[looked_at..place].rsplit(|&byte| byte == b'\n').find_map(named_file) {
            is_inside = file.starts_with(folder);
        }
        looked_at = place;
        let length = text[place..].iter().take_while(|byte| is_of_name(**byte)).count();
        let name = &text[place..place + length];
        let is_part = text[..place].last().copied().is_some_and(is_of_name);
        if is_inside || is_part || text[place..].starts_with(WRAPPER_CALL) {
            continue;
        }
        let plain = name.strip_suffix(STREAM_PER_THREAD.as_bytes()).unwrap_or(name);
        if FUNCTIONS.iter().any(|function| function.name.as_bytes() == plain) {
            if !is_plain_use(&text[..place]) {
                return false;
            }
            is_called = true;
        }
        is_called |= name == TEMPLATE;
    }
    is_called
}

/// Returns whether the name after this text is used, not declared, and is no member of a class or
/// a namespace.
fn is_plain_use(text: &[u8]) -> bool {
    let mut before = text.trim_ascii_end();
    // Lines that say where the next ones are from.
    while let Some(line) = before.rsplit(|&byte| byte == b'\n').next().filter(|line| line.starts_with(b"#")) {
        before = before[..before.len() - line.len()].trim_ascii_end();
    }
    if let Some(scope) = before.strip_suffix(b"::") {
        return !scope.last().copied().is_some_and(|byte| is_of_name(byte) || byte == b'>');
    }
    let word = before.iter().rev().take_while(|byte| is_of_name(**byte)).count();
    match &before[before.len() - word..] {
        b"" => {
            !before.ends_with(b".") && !before.ends_with(b"->") && !before.ends_with(b"*") && !before.ends_with(b"&")
        }
        word => matches!(word, b"return" | b"else" | b"do"),
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::LaunchesByAddress;
    use expect_test::expect;

    /// Host code of a source with these lines, by cudafe++ of CUDA 13.0 but for its length.
    fn host_code(source: &str) -> String {
        format!(
            "# 3766 \"/cuda/include/cuda_runtime_api.h\"\n\
             extern cudaError_t cudaLaunchKernel(const void * func, dim3 gridDim, dim3 blockDim, void ** args, size_t sharedMem, cudaStream_t stream);\n\
             # 3829\n\
             extern cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t * config, const void * func, void ** args);\n\
             # 217 \"/cuda/include/cccl/cub/launch.h\"\n\
             cudaLaunchKernelEx(a, b);\n\
             # 1 \"a.cu\"\n{source}"
        )
    }

    #[test]
    fn calls_behind_the_declarations_have_other_names() {
        let launches = LaunchesByAddress::new(host_code("cudaLaunchKernelEx(&c, k, 1);\n").as_bytes());
        let launches = launches.expect("the source launches by address");
        expect![[r##"
            # 3766 "/cuda/include/cuda_runtime_api.h"
            extern cudaError_t cudaLaunchKernel(const void * func, dim3 gridDim, dim3 blockDim, void ** args, size_t sharedMem, cudaStream_t stream);
            static cudaError_t __nvtune_cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) __attribute__((unused));
            #define cudaLaunchKernel __nvtune_cudaLaunchKernel
 
            # 3829
            extern cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t * config, const void * func, void ** args);
            static cudaError_t __nvtune_cudaLaunchKernelExC(const cudaLaunchConfig_t *configuration, const void *kernel, void **arguments) __attribute__((unused));
            #define cudaLaunchKernelExC __nvtune_cudaLaunchKernelExC
 
            # 217 "/cuda/include/cccl/cub/launch.h"
            cudaLaunchKernelEx(a, b);
            # 1 "a.cu"
            cudaLaunchKernelEx(&c, k, 1);
        "##]]
        .assert_eq(&String::from_utf8_lossy(&launches.host_code));
        assert_eq!(launches.names(), "#undef cudaLaunchKernel\n#undef cudaLaunchKernelExC\n");
    }

    #[test]
    fn source_without_launches_by_address_stays_as_it_is() {
        for text in [
            "k<<<1, 2>>>(x);\n",
            "my_cudaLaunchKernel(k);\n",
            "__wrapper__device_stub_k(int &n) { ::cudaLaunchKernel(0, 0, 0, 0, 0, 0);}\n",
            "extern \"C\" cudaError_t cudaLaunchKernel(const void *k) { return cudaLaunchKernelEx(k); }\n",
            "void cudaLaunchKernel(int k) { cudaLaunchKernelEx(k); }\n",
            "tracer->cudaLaunchKernel(k);\n",
            "prof::cudaLaunchKernel(k);\n",
            "cudaLaunchKernelChecked(k);\n",
            "",
        ] {
            assert_eq!(LaunchesByAddress::new(host_code(text).as_bytes()), None, "{text}");
        }
        for text in [&b"cudaLaunchKernel(k);"[..], b"\xff", b"cudaError_t cudaLaunchKernel(", b""] {
            assert_eq!(LaunchesByAddress::new(text), None, "{text:?}");
        }
    }

    #[test]
    fn source_with_launches_by_address_is_changed() {
        for text in [
            "::cudaLaunchKernel(k);\n",
            "if (x) return cudaLaunchKernel(k);\n",
            "# 7\ncudaLaunchKernelExC(c, k);\n",
            "int e = cudaLaunchKernelEx(c, k);\n",
            "cudaError_t cudaLaunchKernelChecked(int k) { return(cudaLaunchKernel(k)); }\n",
        ] {
            assert!(LaunchesByAddress::new(host_code(text).as_bytes()).is_some(), "{text}");
        }
    }

    #[test]
    fn launches_in_streams_of_the_thread_keep_their_streams() {
        let text = host_code("cudaLaunchKernel(k);\n").replace("cudaLaunchKernel(const", "cudaLaunchKernel_ptsz(const");
        let text = text.replace("cudaLaunchKernelExC", "cudaLaunchKernelExC_ptsz").into_bytes();
        let launches = LaunchesByAddress::new(&text).expect("the source launches by address");
        expect![[r#"
            #undef cudaLaunchKernel_ptsz
            #define cudaLaunchKernel cudaLaunchKernel_ptsz
            #undef cudaLaunchKernelExC_ptsz
            #define cudaLaunchKernelExC cudaLaunchKernelExC_ptsz
        "#]]
        .assert_eq(&launches.names());
    }
}
