//! Winners -> the text of `STEM.tune.h`: launch parameters as macros and functions for C and C++.
//!
//! The text depends on nothing but the values given, so equal results give equal bytes. It has two parts, each with a guard: what
//! any C or C++ file can use, and what takes the types of CUDA's headers, for which it may be included once more after those.

use crate::gpu;
use crate::launch::Dim3;
use crate::search::Provenance;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
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
    /// How many parameters the kernel has.
    pub arguments: usize,
    pub block: Dim3,
    /// Register cap; 0 is none.
    pub cap: u32,
    /// The macro axes with their chosen values.
    pub macros: BTreeMap<String, i64>,
    /// The values that the source itself gives them.
    pub source_macros: BTreeMap<String, i64>,
    /// Whether the winner stands in the place of nvcc's kernel, so that launches by the kernel's address run it too.
    pub is_in_place: bool,
    pub provenance: Provenance,
    /// The GPU's name and architecture, `NVIDIA H200, sm_90`.
    pub gpu: String,
    /// Resident warps in percent of the most that an SM holds, rounded; `None` where the machine code was not looked at.
    pub occupancy: Option<u32>,
    /// Blocks of the grid in x, y and z.
    pub grid: HostFunction,
    /// Dynamic shared memory of a block in bytes.
    pub shared: HostFunction,
    /// The compute capability that this is for (`90`), and what is chosen on others.
    pub capability: u32,
    pub others: Vec<(u32, HeaderKernel)>,
    /// Whether its blocks wait for each other, so that it must be launched cooperatively.
    pub cooperative: bool,
    /// Preferred shared-memory carve-out in percent, -1 where the driver chooses; `None` where it is no axis, and not spoken of.
    pub carveout: Option<i32>,
}

/// A host function over the scalar arguments that its clause names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFunction {
    pub parameters: Vec<HostParameter>,
    /// C expressions of the type `long long` or `double`: three for a grid, one for a size.
    pub values: Vec<String>,
}

/// A parameter of a host function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostParameter {
    /// The type in C.
    pub kind: String,
    pub name: String,
    /// Which of the kernel's parameters it is, from 0, and which field of it (`.n`); empty for the parameter itself.
    pub argument: usize,
    pub field: String,
}

/// How the names of the functions begin that expressions of the header call.
pub const HEADER_DETAIL: &str = "nvtune_detail_";

/// What a structure in the namespace `nvtune` cannot be called: its own functions, and words of C++ that `name(...)` allows.
const RESERVED: &str = " block grid shared carveout launch \
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await co_return \
    co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else \
    enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr \
    operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static static_assert \
    static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void \
    volatile wchar_t while xor xor_eq ";

/// `name` as the start of a macro name: upper case, what cannot be in an identifier as `_`.
pub fn macro_name(name: &str) -> String {
    name.chars()
        .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
        .collect()
}

/// The names among these whose macros would be called as those of another: neither of them gets macros, for no reader could tell
/// whose they are.
pub fn without_macros<'a>(names: &[&'a str]) -> BTreeSet<&'a str> {
    let shares = |name: &&&str| names.iter().any(|other| other != *name && macro_name(other) == macro_name(name));
    names.iter().filter(shares).copied().collect()
}

/// The guard of one kernel in the header of a stem. Not one of the whole header: two sources of one name in different folders may be used
/// side by side. Of one source an old header in another folder may be found, too: it has nothing new to say of its kernels.
fn guard(stem: &str, kernel: &str) -> String {
    // FNV-1a (Fowler, Noll, Vo), 32 bits, of what the names in upper case do not tell apart.
    let digest = |digest: u32, byte: u8| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let digest = stem.bytes().chain([0]).chain(kernel.bytes()).fold(0x811c_9dc5_u32, digest);
    format!("NVTUNE_{}_{}_{digest:08X}", macro_name(stem), macro_name(kernel))
}

impl HeaderKernel {
    /// Says what another configuration's launch is, in place of its own.
    pub fn launches_as(&mut self, other: &Self) {
        self.block = other.block;
        self.grid.clone_from(&other.grid);
        self.shared.clone_from(&other.shared);
        self.carveout = other.carveout;
    }
}

impl Header {
    /// The macro that leaves nothing of a header, for builds without nvtune's doing.
    pub const OFF: &str = "NVTUNE_OFF";

    /// Whether this is the text of a header.
    pub fn is_one(text: &[u8]) -> bool {
        text.starts_with(b"/* made by nvtune ")
    }

    /// Names the macro that nvtune's builds define where the object has the winners that the header speaks of.
    pub fn tuned_macro(stem: &str) -> String {
        format!("NVTUNE_{}_TUNED", macro_name(stem))
    }

    /// The file name of the header of a source with this stem.
    pub fn file_name(stem: &str) -> String {
        format!("{stem}.tune.h")
    }

    /// The whole text.
    pub fn text(&self) -> String {
        let stem = self.source.rsplit_once('.').map_or(self.source.as_str(), |(stem, _)| stem);
        let version = env!("CARGO_PKG_VERSION");
        let mut text = Text::default();
        text.line(format_args!("/* made by nvtune {version} from {}: do not edit */", self.source));
        text.line(format_args!("#ifndef {}\n#include <stddef.h>\n\n{QUIET}\n{DETAIL}", Self::OFF));
        let is_fat = self.kernels.iter().any(|kernel| Choice::of(kernel).is_needed());
        if is_fat {
            text.line(format_args!("\n{CAPABILITY}"));
        }
        let names: Vec<&str> = self.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let without_macros = without_macros(&names);
        let axes: BTreeSet<&str> =
            self.kernels.iter().flat_map(|kernel| kernel.macros.keys().map(String::as_str)).collect();
        let tuned = Self::tuned_macro(stem);
        for kernel in &self.kernels {
            let guard = guard(stem, &kernel.name);
            text.line(format_args!("\n#ifndef {guard}\n#define {guard}"));
            text.once(&kernel.name);
            let is_without = without_macros.contains(kernel.name.as_str());
            if is_without {
                let prefix = macro_name(&kernel.name);
                let remedy = "add name(...) to the tuning comment of one of them";
                text.line(format_args!(
                    "/* no {prefix}_BLOCK_X and so on: another kernel's are called so too; {remedy} */"
                ));
            }
            if !is_without {
                text.values(kernel, &axes);
            }
            text.functions(kernel);
            text.axes(kernel, &tuned);
            text.line(format_args!("#endif"));
        }
        text.line(format_args!(""));
        text.line(format_args!("#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__)\n{LAUNCH}"));
        for (kernel, name) in self.kernels.iter().zip(type_names(&names)) {
            let guard = guard(stem, &kernel.name);
            text.line(format_args!("#ifndef {guard}_CXX\n#define {guard}_CXX"));
            // Each translation unit has its own: two sources may have kernels of one name.
            text.line(format_args!("namespace nvtune {{\nnamespace {{"));
            text.structure(kernel, &name);
            text.line(format_args!("}}  // namespace\n}}  // namespace nvtune\n#endif"));
        }
        text.line(format_args!("#endif\n{QUIET_END}\n#endif"));
        text.0
    }
}

/// A name in the namespace `nvtune` for each kernel: its own, with `_` behind it where that cannot be.
fn type_names(names: &[&str]) -> Vec<String> {
    let is_reserved = |name: &str| RESERVED.split_whitespace().any(|word| word == name);
    let of = |name: &&str| {
        let mut free = (*name).to_owned();
        if is_reserved(name) {
            free.push('_');
            while names.contains(&free.as_str()) {
                free.push('_');
            }
        }
        free
    };
    names.iter().map(of).collect()
}

/// No warning of a user's (`-Werror=aggregate-return`) is to speak of functions that return structures, which a header is for.
const QUIET: &str = "\
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \"-Waggregate-return\"
#endif";
const QUIET_END: &str = "\
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif";

/// The functions of the comment's language that C has not, with division that no launch of a user's program can die of; a number of
/// blocks that no grid can have stays one that no grid can have. Several headers may be included side by side.
const DETAIL: &str = "\
#ifndef NVTUNE_DETAIL
#define NVTUNE_DETAIL
#ifdef __cplusplus
#define NVTUNE_AS(type, value) static_cast<type>(value)
#else
#define NVTUNE_AS(type, value) ((type)(value))
#endif
typedef struct nvtune_dim3 { unsigned int x, y, z; } nvtune_dim3;
static inline unsigned int nvtune_detail_extent(long long n) {
  return n < 0 ? 0u : n > 4294967295LL ? 4294967295u : NVTUNE_AS(unsigned int, n);
}
static inline nvtune_dim3 nvtune_detail_dim3(long long x, long long y, long long z) {
  nvtune_dim3 made;
  made.x = nvtune_detail_extent(x);
  made.y = nvtune_detail_extent(y);
  made.z = nvtune_detail_extent(z);
  return made;
}
static inline long long nvtune_detail_quotient(long long a, long long b) { return b == 0 ? 0 : a / b; }
static inline long long nvtune_detail_remainder(long long a, long long b) { return b == 0 ? 0 : a % b; }
static inline long long nvtune_detail_ceildiv(long long a, long long b) {
  return b == 0 ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0));
}
static inline long long nvtune_detail_min(long long a, long long b) { return b < a ? b : a; }
static inline long long nvtune_detail_max(long long a, long long b) { return a < b ? b : a; }
static inline double nvtune_detail_fmin(double a, double b) { return b < a ? b : a; }
static inline double nvtune_detail_fmax(double a, double b) { return a < b ? b : a; }
#endif";

/// For a fat build: the compute capability of the current device; each is asked once, and a race of two threads stores the same value
/// twice. Without the runtime's declarations there is no device to ask: what is for the GPU that was at hand is taken. A program that
/// knows better defines `NVTUNE_CAPABILITY`.
const CAPABILITY: &str = "\
#if !defined(NVTUNE_CAPABILITY) && defined(__CUDA_RUNTIME_API_H__)
#define NVTUNE_CAPABILITY nvtune_detail_capability()
static inline int nvtune_detail_capability(void) {
  static int known[64];
  int device = 0, major = 0, minor = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device < 0) return 0;
  if (device < 64) major = __atomic_load_n(&known[device], __ATOMIC_RELAXED);
  if (major != 0) return major;
  if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess) return 0;
  if (cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) return 0;
  if (device < 64) __atomic_store_n(&known[device], major * 10 + minor, __ATOMIC_RELAXED);
  return major * 10 + minor;
}
#endif
#undef NVTUNE_CAPABILITY_OR
#ifdef NVTUNE_CAPABILITY
#define NVTUNE_CAPABILITY_OR(own) (NVTUNE_CAPABILITY)
#else
#define NVTUNE_CAPABILITY_OR(own) (own)
#endif";

/// What `launch` takes besides the runtime's own declarations. A kernel's parameters come as it declares them, so that arguments are
/// converted as in any call.
const LAUNCH: &str = include_str!("header_launch.h").trim_ascii_end();

/// The text as it grows.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{arguments}");
    }

    /// Says what is wrong where two headers speak of kernels of one name.
    fn once(&mut self, name: &str) {
        self.line(format_args!("#ifdef NVTUNE_KERNEL_{name}"));
        let remedy = "add name(...) to the tuning comment of one of them";
        self.line(format_args!("#error \"two headers of nvtune have a kernel {name}: {remedy}\""));
        self.line(format_args!("#endif\n#define NVTUNE_KERNEL_{name}"));
    }

    /// The macros that are called after the kernel. One that is called as a macro axis is left to that.
    fn values(&mut self, kernel: &HeaderKernel, axes: &BTreeSet<&str>) {
        let [x, y, z] = kernel.block;
        let number = |value: u64| Some(value.to_string());
        let values = [
            ("BLOCK_X", number(x.into())),
            ("BLOCK_Y", number(y.into())),
            ("BLOCK_Z", number(z.into())),
            ("BLOCK_SIZE", number(u64::from(x) * u64::from(y) * u64::from(z))),
            ("REGS", number(kernel.cap.into())),
            ("OCCUPANCY", kernel.occupancy.map(|percent| percent.to_string())),
            ("PROVENANCE", Some(format!("\"{}\"", kernel.provenance))),
            ("GPU", Some(format!("\"{}\"", gpu::sanitized_name(&kernel.gpu)))),
            ("CARVEOUT", kernel.carveout.map(|percent| percent.to_string())),
        ];
        let values = values.map(|(suffix, value)| (suffix.to_owned(), value));
        // A macro axis with the name of one of these is not offered twice.
        let chosen = kernel.macros.iter().map(|(name, value)| (name.clone(), Some(value.to_string())));
        let chosen = chosen.filter(|(name, _)| values.iter().all(|(suffix, _)| suffix != name));
        let prefix = macro_name(&kernel.name);
        for (suffix, value) in values.iter().cloned().chain(chosen) {
            let name = format!("{prefix}_{suffix}");
            if let Some(value) = value.filter(|_| !axes.contains(name.as_str())) {
                self.line(format_args!("#define {name} {value}"));
            }
        }
    }

    /// The macro axes under their own names: the source's values. Where the winner stands in the kernel's place, code that is compiled
    /// without nvtune has the winner's, which goes with the launches. Another value is an error there.
    fn axes(&mut self, kernel: &HeaderKernel, tuned: &str) {
        let elsewhere = if kernel.is_in_place { &kernel.macros } else { &kernel.source_macros };
        for (name, source) in &kernel.source_macros {
            let value = elsewhere.get(name).unwrap_or(source);
            if value != source {
                self.line(format_args!("#if !defined({name}) && defined({tuned})\n#define {name} {source}\n#endif"));
            }
            self.line(format_args!("#ifndef {name}\n#define {name} {value}"));
            if kernel.provenance != Provenance::Baseline {
                let remedy = "build it with nvtune again, or remove this header";
                self.line(format_args!(
                    "#elif (({name}) != {value}) && !defined({tuned})\n#error \"{name} is not the {value} that {} was tuned for: {remedy}\"",
                    kernel.name
                ));
            }
            self.line(format_args!("#endif"));
        }
    }

    /// The functions for C and C++.
    fn functions(&mut self, kernel: &HeaderKernel) {
        let choice = Choice::of(kernel);
        for function in Function::ALL {
            let (kind, value) = (function.c_type(), |kernel: &HeaderKernel| function.body(kernel));
            let name = format!("{}_{}", kernel.name, function.name());
            let parameters = function.of(kernel).map_or(&[][..], |function| &function.parameters);
            if !choice.is_needed() {
                let own = value(kernel);
                self.line(format_args!(
                    "static inline {kind} nvtune_{name}({}) {{ {own} }}",
                    or_void(declared(parameters))
                ));
                continue;
            }
            let with =
                |first: &str, rest: String| if rest.is_empty() { first.to_owned() } else { format!("{first}, {rest}") };
            self.line(format_args!(
                "static inline {kind} nvtune_detail_{name}({}) {{",
                with("int capability", declared(parameters))
            ));
            self.line(format_args!("{}}}", choice.by_device(value)));
            self.line(format_args!(
                "static inline {kind} nvtune_{name}({}) {{ return nvtune_detail_{name}({}); }}",
                or_void(declared(parameters)),
                with(&format!("NVTUNE_CAPABILITY_OR({})", kernel.capability), named(parameters))
            ));
        }
    }

    /// The structure for C++.
    fn structure(&mut self, kernel: &HeaderKernel, type_name: &str) {
        let choice = Choice::of(kernel);
        let call = |function: Function, parameters: &[HostParameter]| {
            let (name, arguments) = (function.name(), named(parameters));
            if !choice.is_needed() {
                return format!("nvtune_{}_{name}({arguments})", kernel.name);
            }
            let comma = if arguments.is_empty() { "" } else { ", " };
            format!(
                "nvtune_detail_{}_{name}(NVTUNE_CAPABILITY_OR({}){comma}{arguments})",
                kernel.name, kernel.capability
            )
        };
        self.line(format_args!("struct {type_name} {{"));
        for function in [Function::Block, Function::Grid] {
            let parameters = function.of(kernel).map_or(&[][..], |function| &function.parameters);
            self.line(format_args!("  static dim3 {}({}) {{", function.name(), declared(parameters)));
            self.line(format_args!("    const nvtune_dim3 nvtune_made = {};", call(function, parameters)));
            self.line(format_args!("    return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);\n  }}"));
        }
        let parameters = &kernel.shared.parameters;
        self.line(format_args!(
            "  static size_t shared({}) {{ return {}; }}",
            declared(parameters),
            call(Function::Shared, parameters)
        ));
        if let Some(carveout) = kernel.carveout {
            self.line(format_args!("  static int carveout() {{ return {carveout}; }}"));
        }
        self.launch(kernel);
        self.line(format_args!("}};"));
    }

    /// `launch(kernel, stream, arguments...)`.
    fn launch(&mut self, kernel: &HeaderKernel) {
        let each = |text: &dyn Fn(usize) -> String| (0..kernel.arguments).map(text).collect::<Vec<_>>().join(", ");
        let from = |function: &HostFunction| {
            let arguments = function
                .parameters
                .iter()
                .map(|parameter| format!("NVTUNE_AS({}, p{}{})", parameter.kind, parameter.argument, parameter.field));
            arguments.collect::<Vec<_>>().join(", ")
        };
        let comma = if kernel.arguments == 0 { "" } else { ", " };
        // Launches by address run nvcc's own kernel; those by <<<>>> reach the launch stub.
        let compiler = if kernel.is_in_place { "" } else { " && defined(__CUDACC__)" };
        self.line(format_args!("#if defined(NVTUNE_LAUNCH){compiler}"));
        if kernel.arguments > 0 {
            self.line(format_args!("  template <{}>", each(&|index| format!("class T{index}"))));
        }
        self.line(format_args!(
            "  static cudaError_t launch(void (*nvtune_kernel)({}), cudaStream_t stream{comma}{}) {{",
            each(&|index| format!("T{index}")),
            each(&|index| format!("typename nvtune_detail::as_declared<T{index}>::type p{index}"))
        ));
        let (grid, shared) = (from(&kernel.grid), from(&kernel.shared));
        let carveout = kernel.carveout.unwrap_or(-1);
        let is_cooperative = kernel.cooperative || kernel.others.iter().any(|(_, other)| other.cooperative);
        if kernel.is_in_place || is_cooperative {
            let addresses = each(&|index| format!("nvtune_detail::address(p{index})"));
            self.line(format_args!(
                "    void *arguments[] = {{{}}};",
                if kernel.arguments == 0 { "NULL".to_owned() } else { addresses }
            ));
            self.line(format_args!(
                "    return nvtune_detail::launch(reinterpret_cast<const void *>(nvtune_kernel), grid({grid}), block(), shared({shared}), {carveout}, {is_cooperative}, stream, arguments);"
            ));
        } else {
            self.line(format_args!(
                "    const cudaError_t error = nvtune_detail::prepare(reinterpret_cast<const void *>(nvtune_kernel), shared({shared}), {carveout});"
            ));
            self.line(format_args!("    if (error != cudaSuccess) return error;"));
            self.line(format_args!(
                "    nvtune_kernel<<<grid({grid}), block(), shared({shared}), stream>>>({});",
                each(&|index| format!("p{index}"))
            ));
            self.line(format_args!("    return cudaPeekAtLastError();"));
        }
        self.line(format_args!("  }}\n#endif"));
    }
}

/// What the header tells as a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Block,
    Grid,
    Shared,
}

impl Function {
    const ALL: [Function; 3] = [Function::Block, Function::Grid, Function::Shared];

    fn name(self) -> &'static str {
        match self {
            Function::Block => "block",
            Function::Grid => "grid",
            Function::Shared => "shared",
        }
    }

    fn c_type(self) -> &'static str {
        if self == Function::Shared { "size_t" } else { "nvtune_dim3" }
    }

    /// Its parameters and expressions; a block has none.
    fn of(self, kernel: &HeaderKernel) -> Option<&HostFunction> {
        match self {
            Function::Block => None,
            Function::Grid => Some(&kernel.grid),
            Function::Shared => Some(&kernel.shared),
        }
    }

    /// Statements that return the value for one architecture.
    fn body(self, kernel: &HeaderKernel) -> String {
        match self {
            Function::Block => {
                let [x, y, z] = kernel.block;
                format!("return nvtune_detail_dim3({x}, {y}, {z});")
            }
            Function::Grid => format!("return nvtune_detail_dim3({});", kernel.grid.values.join(", ")),
            Function::Shared => {
                let value = kernel.shared.values.first().map_or("0", String::as_str);
                format!("return NVTUNE_AS(size_t, {value});")
            }
        }
    }
}

/// The values of a fat build by compute capability, the newest first.
struct Choice<'a>(Vec<(u32, &'a HeaderKernel)>);

impl<'a> Choice<'a> {
    fn of(kernel: &'a HeaderKernel) -> Self {
        let mut all: Vec<(u32, &HeaderKernel)> =
            kernel.others.iter().map(|(capability, other)| (*capability, other)).collect();
        all.push((kernel.capability, kernel));
        all.sort_by_key(|(capability, _)| std::cmp::Reverse(*capability));
        Self(all)
    }

    /// Whether anything hangs on the device.
    fn is_needed(&self) -> bool {
        let told = |kernel: &HeaderKernel| (kernel.block, kernel.grid.clone(), kernel.shared.clone());
        self.0.iter().any(|(_, kernel)| told(kernel) != told(self.0[0].1))
    }

    /// Statements that give the value of the newest architecture that the device can run.
    fn by_device(&self, value: impl Fn(&HeaderKernel) -> String) -> String {
        let mut text = String::new();
        let last = self.0.len().saturating_sub(1);
        for (index, (capability, kernel)) in self.0.iter().enumerate() {
            let value = value(kernel);
            // Writing to a String cannot fail.
            let _ = match index == last {
                true => writeln!(text, "  {value}"),
                false => writeln!(text, "  if (capability >= {capability}) {{ {value} }}"),
            };
        }
        text
    }
}

fn declared(parameters: &[HostParameter]) -> String {
    let each = parameters.iter().map(|HostParameter { kind, name, .. }| format!("{kind} {name}"));
    each.collect::<Vec<_>>().join(", ")
}

fn named(parameters: &[HostParameter]) -> String {
    parameters.iter().map(|parameter| parameter.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// C takes an empty list of parameters for any.
fn or_void(parameters: String) -> String {
    if parameters.is_empty() { "void".to_owned() } else { parameters }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let guards: BTreeSet<String> = names.iter().map(|(stem, name)| guard(stem, name)).collect();
        assert_eq!(guards.len(), names.len(), "{guards:?}");
        let is_name =
            |guard: &String| guard.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        assert!(guards.iter().all(is_name), "{guards:?}");
    }

    #[test]
    fn kernels_whose_macros_would_be_called_alike_have_none() {
        assert_eq!(without_macros(&["saxpy", "Saxpy", "scale"]), BTreeSet::from(["saxpy", "Saxpy"]));
        assert_eq!(without_macros(&["a_b", "a_c"]), BTreeSet::new());
    }

    #[test]
    fn structures_are_called_what_they_can_be_called() {
        assert_eq!(type_names(&["grid", "grid_", "int", "saxpy"]), ["grid__", "grid_", "int_", "saxpy"]);
    }
}
