//! Winners -> the text of `STEM.tune.h`: launch parameters as macros for C and C++, and functions for C++.
//!
//! The text depends on nothing but the values given, so equal results give equal bytes.

use crate::search::Provenance;
use crate::space::Dim3;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The header of one source file.
#[derive(Clone, Debug)]
pub struct Header {
    /// The source's file name, for the comment at the top.
    pub source: String,
    pub kernels: Vec<HeaderKernel>,
}

/// What the header says of one kernel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeaderKernel {
    /// The kernel's name, or that of its `name` clause.
    pub name: String,
    pub block: Dim3,
    /// Register cap; 0 is none.
    pub cap: u32,
    /// The macro axes with their chosen values.
    pub macros: BTreeMap<String, i64>,
    /// Refuse another value of these macros: block and grid are right for these alone.
    pub pins_macros: bool,
    pub provenance: Provenance,
    /// The GPU's name and architecture, `NVIDIA H200, sm_90`.
    pub gpu: String,
    /// Blocks of the grid in x, y and z.
    pub grid: HostFunction,
    /// Dynamic shared memory of a block in bytes.
    pub shared: HostFunction,
    /// The compute capability that this is for (`90`), and what is chosen on others; macros are the same on all.
    pub capability: u32,
    pub others: Vec<(u32, HeaderKernel)>,
    /// Preferred shared-memory carve-out in percent, -1 where the driver chooses; `None` where it is no axis, and not spoken of.
    pub carveout: Option<i32>,
}

/// A host function over the scalar arguments that its clause names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HostFunction {
    /// Types and names.
    pub parameters: Vec<(String, String)>,
    /// C++ expressions of a 64-bit integer type: three for a grid, one for a size.
    pub values: Vec<String>,
}

/// `name` as the start of a macro name: upper case, what cannot be in an identifier as `_`.
pub fn macro_name(name: &str) -> String {
    name.chars()
        .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
        .collect()
}

/// The guard of one kernel in the header of a stem. Not one of the whole header: two sources of one name in different folders may be used
/// side by side. Of one source an old header in another folder may be found, too: it has nothing new to say of its kernels.
fn guard(stem: &str, kernel: &str) -> String {
    // FNV-1a (Fowler, Noll, Vo), 32 bits, of what the names in upper case do not tell apart.
    let digest = |digest: u32, byte: u8| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let digest = stem.bytes().chain([0]).chain(kernel.bytes()).fold(0x811c_9dc5_u32, digest);
    format!("NVTUNE_{}_{}_{digest:08X}", macro_name(stem), macro_name(kernel))
}

/// Is defined once a header of this stem was read. One that is read after it may be old: it has no say in what macros must be.
fn was_read(stem: &str) -> String {
    format!("NVTUNE_{}_WAS_READ", macro_name(stem))
}

impl Header {
    /// The file name of the header of a source with this stem.
    pub fn file_name(stem: &str) -> String {
        format!("{stem}.tune.h")
    }

    /// The whole text.
    pub fn text(&self) -> String {
        let stem = self.source.rsplit_once('.').map_or(self.source.as_str(), |(stem, _)| stem);
        let mut text = String::new();
        let mut line = |arguments: std::fmt::Arguments<'_>| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{arguments}");
        };
        let version = env!("CARGO_PKG_VERSION");
        line(format_args!("/* made by nvtune {version} from {}: do not edit */", self.source));
        let is_fat = self.kernels.iter().any(|kernel| !kernel.others.is_empty());
        if self.uses_detail() || is_fat {
            line(format_args!("{IN_CUDA}"));
            if self.uses_detail() {
                line(format_args!("{DETAIL}"));
            }
            if is_fat {
                line(format_args!("{CAPABILITY}"));
                // Without the runtime's declarations there is no device to ask: the block of the GPU that was at hand.
                let own = self.kernels.iter().map(|kernel| kernel.capability).max().unwrap_or(0);
                line(format_args!("#ifndef NVTUNE_CAPABILITY\n#define NVTUNE_CAPABILITY {own}\n#endif"));
            }
            line(format_args!("#endif"));
        }
        for kernel in &self.kernels {
            let guard = guard(stem, &kernel.name);
            line(format_args!("\n#ifndef {guard}\n#define {guard}"));
            line(format_args!("{}\n{IN_CUDA}\n{}#endif\n#endif", kernel.macros_text(stem), kernel.functions_text()));
        }
        let was_read = was_read(stem);
        line(format_args!("\n#ifndef {was_read}\n#define {was_read}\n#endif"));
        text
    }

    fn uses_detail(&self) -> bool {
        let values = self.kernels.iter().flat_map(|kernel| kernel.grid.values.iter().chain(&kernel.shared.values));
        values.into_iter().any(|value| value.contains("detail::"))
    }
}

impl HeaderKernel {
    /// What C programs see, too.
    fn macros_text(&self, stem: &str) -> String {
        let name = macro_name(&self.name);
        let [x, y, z] = self.block;
        let mut lines = vec![
            format!("#define {name}_BLOCK_X {x}"),
            format!("#define {name}_BLOCK_Y {y}"),
            format!("#define {name}_BLOCK_Z {z}"),
            format!("#define {name}_BLOCK_SIZE {}", u64::from(x) * u64::from(y) * u64::from(z)),
            format!("#define {name}_REGS {}", self.cap),
            format!("#define {name}_PROVENANCE \"{}\"", self.provenance),
            format!("#define {name}_GPU \"{}\"", self.gpu.replace(['"', '\\'], "")),
        ];
        lines.extend(self.carveout.map(|carveout| format!("#define {name}_CARVEOUT {carveout}")));
        for (name, value) in &self.macros {
            // The tuned file itself is compiled with -D: the guard keeps the two from meeting.
            lines.push(format!("#ifndef {name}\n#define {name} {value}"));
            if self.pins_macros {
                let remedy = "build it with nvtune again, or remove this header";
                lines.push(format!(
                    "#elif ({name}) != {value} && !defined({})\n#error \"{name} is not the {value} that {} was tuned for: {remedy}\"",
                    was_read(stem),
                    self.name
                ));
            }
            lines.push("#endif".to_owned());
        }
        lines.join("\n")
    }

    /// `nvtune::KERNEL` of C++.
    fn functions_text(&self) -> String {
        let mut text = format!("namespace nvtune {{\nstruct {} {{\n", self.name);
        let mut function = |line: String| text.push_str(&format!("  static {line}\n"));
        function(format!("dim3 block() {{ {} }}", by_device(self, block)));
        function(format!("dim3 grid({}) {{ {} }}", parameters(&self.grid), by_device(self, grid)));
        function(format!("size_t shared({}) {{ {} }}", parameters(&self.shared), by_device(self, shared)));
        if let Some(carveout) = self.carveout {
            function(format!("int carveout() {{ return {carveout}; }}"));
        }
        text + "};\n}  // namespace nvtune\n"
    }
}

/// Where C++ knows `dim3`.
const IN_CUDA: &str = "#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__)";

/// The functions of the comment's language that C++ has not; several headers may be included side by side.
const DETAIL: &str = "\
#ifndef NVTUNE_DETAIL
#define NVTUNE_DETAIL
namespace nvtune {
namespace detail {
inline long long ceildiv(long long a, long long b) { return a / b + (a % b != 0 && (a < 0) == (b < 0)); }
template <class A, class B> auto min(A a, B b) -> decltype(a + b) { return b < a ? b : a; }
template <class A, class B> auto max(A a, B b) -> decltype(a + b) { return a < b ? b : a; }
}  // namespace detail
}  // namespace nvtune
#endif";

/// For a fat build: the compute capability of the current device. All devices are asked once, at the first launch.
const CAPABILITY: &str = "\
#if !defined(NVTUNE_CAPABILITY) && defined(__CUDA_RUNTIME_API_H__)
#define NVTUNE_CAPABILITY nvtune::detail::capability()
namespace nvtune {
namespace detail {
struct Capabilities {
  int of[64];
  Capabilities() : of() {
    int count = 0, major = 0, minor = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) return;
    for (int device = 0; device < count && device < 64; ++device) {
      if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
          cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess) {
        of[device] = major * 10 + minor;
      }
    }
  }
};
inline int capability() {
  static const Capabilities all;
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess && device >= 0 && device < 64 ? all.of[device] : 0;
}
}  // namespace detail
}  // namespace nvtune
#endif";

/// A function's body that gives a kernel's own value, in a fat build that of the newest architecture that the device can run.
fn by_device(kernel: &HeaderKernel, value: impl Fn(&HeaderKernel) -> String) -> String {
    let own = value(kernel);
    let mut others: Vec<(u32, String)> =
        kernel.others.iter().map(|(capability, other)| (*capability, value(other))).collect();
    if others.iter().all(|(_, other)| *other == own) {
        return format!("return {own};");
    }
    others.push((kernel.capability, own));
    others.sort_by_key(|(capability, _)| std::cmp::Reverse(*capability));
    let last = others.pop().map(|(_, value)| value).unwrap_or_default();
    let choices =
        others.iter().map(|(capability, value)| format!("if (NVTUNE_CAPABILITY >= {capability}) return {value}; "));
    format!("{}return {last};", choices.collect::<String>())
}

fn block(kernel: &HeaderKernel) -> String {
    let [x, y, z] = kernel.block;
    format!("dim3({x}, {y}, {z})")
}

fn grid(kernel: &HeaderKernel) -> String {
    let values = kernel.grid.values.iter().map(|value| format!("static_cast<unsigned int>({value})"));
    format!("dim3({})", values.collect::<Vec<_>>().join(", "))
}

fn shared(kernel: &HeaderKernel) -> String {
    format!("static_cast<size_t>({})", kernel.shared.values.first().map_or("0", String::as_str))
}

fn parameters(function: &HostFunction) -> String {
    function.parameters.iter().map(|(kind, name)| format!("{kind} {name}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn kernels_that_differ_have_guards_that_differ() {
        assert_eq!(guard("my-file", "saxpy"), "NVTUNE_MY_FILE_SAXPY_E8DAD587");
        let names = [
            ("my_kernel", "k"),
            ("my-kernel", "k"),
            ("My_Kernel", "k"),
            ("my kernel", "k"),
            ("my", "kernel_k"),
            ("my_kernel", "K"),
        ];
        let guards: std::collections::BTreeSet<String> = names.iter().map(|(stem, name)| guard(stem, name)).collect();
        assert_eq!(guards.len(), names.len(), "{guards:?}");
        let is_name =
            |guard: &String| guard.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        assert!(guards.iter().all(is_name), "{guards:?}");
    }

    #[test]
    fn a_fat_build_chooses_by_the_device() {
        let kernel = |capability, x: u32| HeaderKernel {
            name: "k".into(),
            block: [x, 1, 1],
            cap: 0,
            macros: BTreeMap::new(),
            pins_macros: true,
            provenance: Provenance::Predicted,
            gpu: String::new(),
            grid: HostFunction { parameters: vec![], values: vec!["1".into(); 3] },
            shared: HostFunction { parameters: vec![], values: vec!["0".into()] },
            capability,
            others: vec![],
            carveout: None,
        };
        let others = vec![(120, kernel(120, 32)), (80, kernel(80, 256))];
        let fat = HeaderKernel { others, ..kernel(90, 64) };
        let choice = "if (NVTUNE_CAPABILITY >= 120) return dim3(32, 1, 1); if (NVTUNE_CAPABILITY >= 90) return dim3(64, 1, 1); return dim3(256, 1, 1);";
        assert_eq!(by_device(&fat, block), choice);
        // What is the same everywhere needs no look-up.
        assert_eq!(by_device(&fat, shared), "return static_cast<size_t>(0);");
    }

    #[test]
    fn the_header_of_two_kernels() {
        let saxpy = HeaderKernel {
            name: "saxpy".into(),
            block: [192, 1, 1],
            cap: 0,
            macros: BTreeMap::new(),
            pins_macros: true,
            provenance: Provenance::Measured,
            gpu: "NVIDIA H200, sm_90".into(),
            grid: HostFunction {
                parameters: vec![("int".into(), "n".into())],
                values: vec!["(static_cast<long long>(n) + 191) / 192".into(), "1".into(), "1".into()],
            },
            shared: HostFunction { parameters: vec![], values: vec!["0".into()] },
            capability: 90,
            others: vec![],
            carveout: None,
        };
        let tiled = HeaderKernel {
            name: "tiled".into(),
            block: [16, 4, 1],
            cap: 64,
            macros: BTreeMap::from([("TILE".into(), 16), ("WORK".into(), 4)]),
            provenance: Provenance::Predicted,
            carveout: Some(50),
            ..saxpy.clone()
        };
        let text = Header { source: "my-file.cu".into(), kernels: vec![saxpy, tiled] }.text();
        expect![[r#"
            /* made by nvtune 0.1.0 from my-file.cu: do not edit */

            #ifndef NVTUNE_MY_FILE_SAXPY_E8DAD587
            #define NVTUNE_MY_FILE_SAXPY_E8DAD587
            #define SAXPY_BLOCK_X 192
            #define SAXPY_BLOCK_Y 1
            #define SAXPY_BLOCK_Z 1
            #define SAXPY_BLOCK_SIZE 192
            #define SAXPY_REGS 0
            #define SAXPY_PROVENANCE "measured"
            #define SAXPY_GPU "NVIDIA H200, sm_90"
            #if defined(__cplusplus) && defined(__VECTOR_TYPES_H__)
            namespace nvtune {
            struct saxpy {
              static dim3 block() { return dim3(192, 1, 1); }
              static dim3 grid(int n) { return dim3(static_cast<unsigned int>((static_cast<long long>(n) + 191) / 192), static_cast<unsigned int>(1), static_cast<unsigned int>(1)); }
              static size_t shared() { return static_cast<size_t>(0); }
            };
            }  // namespace nvtune
            #endif
            #endif

            #ifndef NVTUNE_MY_FILE_TILED_2FF97DCC
            #define NVTUNE_MY_FILE_TILED_2FF97DCC
            #define TILED_BLOCK_X 16
            #define TILED_BLOCK_Y 4
            #define TILED_BLOCK_Z 1
            #define TILED_BLOCK_SIZE 64
            #define TILED_REGS 64
            #define TILED_PROVENANCE "predicted"
            #define TILED_GPU "NVIDIA H200, sm_90"
            #define TILED_CARVEOUT 50
            #ifndef TILE
            #define TILE 16
            #elif (TILE) != 16 && !defined(NVTUNE_MY_FILE_WAS_READ)
            #error "TILE is not the 16 that tiled was tuned for: build it with nvtune again, or remove this header"
            #endif
            #ifndef WORK
            #define WORK 4
            #elif (WORK) != 4 && !defined(NVTUNE_MY_FILE_WAS_READ)
            #error "WORK is not the 4 that tiled was tuned for: build it with nvtune again, or remove this header"
            #endif
            #if defined(__cplusplus) && defined(__VECTOR_TYPES_H__)
            namespace nvtune {
            struct tiled {
              static dim3 block() { return dim3(16, 4, 1); }
              static dim3 grid(int n) { return dim3(static_cast<unsigned int>((static_cast<long long>(n) + 191) / 192), static_cast<unsigned int>(1), static_cast<unsigned int>(1)); }
              static size_t shared() { return static_cast<size_t>(0); }
              static int carveout() { return 50; }
            };
            }  // namespace nvtune
            #endif
            #endif

            #ifndef NVTUNE_MY_FILE_WAS_READ
            #define NVTUNE_MY_FILE_WAS_READ
            #endif
        "#]]
        .assert_eq(&text);
    }
}
