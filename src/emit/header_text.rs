//! Writes the lines of a header, in the order of the file: sections of the kernels, definitions.

use super::header_kernel::{HeaderKernel, HostFunction, HostParameter, Section, macro_name};
use super::header_lines::{fold_code, fold_comment};
use crate::gpu;
use crate::launch::Dim3;
use crate::search::Provenance;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Columns of a label in the comment of a kernel.
const LABEL_COLUMNS: usize = 11;

/// Declared before `launch`, whose parameters have the types of the kernel's, so that arguments
/// are converted as in any call.
const LAUNCH_DECLARATIONS: &str = "\
#include <stddef.h>
#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__) && defined(__CUDA_RUNTIME_API_H__) && !defined(NVTUNE_LAUNCH)
#if __cplusplus >= 201103L && CUDART_VERSION >= 11080
#define NVTUNE_LAUNCH
namespace nvtune_detail { template <class T> struct as_declared { typedef T type; }; }
#endif
#endif";

/// Begins the definitions, which a person need not read. The user's warnings
/// (`-Werror=aggregate-return`) are turned off for functions that return structures, which are
/// the purpose of a header.
const DEFINITIONS: &str = "
/*
 * The rest defines the functions that are declared above.
 */
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \"-Waggregate-return\"
#endif";

/// The last lines of a header.
pub(super) const HEADER_END: &str = "\
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
#endif";

/// The functions of the comment's language that C does not have. No division stops a user's
/// program, and a number of blocks that no grid can have is passed on as one. Several headers
/// may be included together.
const HELPERS: &str = include_str!("header_helpers.h").trim_ascii_end();

/// For a fat build: a function for the compute capability of the current device, which asks once
/// for each device; a race of two threads stores the same value twice. Without the runtime's
/// declarations it is the capability of the GPU of the build. A program may define
/// `NVTUNE_CAPABILITY` itself.
const CAPABILITY: &str = include_str!("header_capability.h").trim_ascii_end();

/// The functions that `launch` calls.
const LAUNCH: &str = include_str!("header_launch.h").trim_ascii_end();

/// The text as it grows.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    /// Adds lines, each broken if it is too long.
    pub fn line(&mut self, arguments: std::fmt::Arguments<'_>) {
        let lines = arguments.to_string();
        for line in lines.split('\n') {
            self.0 += &fold_code(line);
            self.0.push('\n');
        }
    }

    pub fn into_string(self) -> String {
        self.0
    }

    /// Adds the first lines of the file: what it is, and what all sections need. `off` is the
    /// macro that leaves it empty.
    pub fn begin(&mut self, source: &str, off: &str) {
        let version = env!("CARGO_PKG_VERSION");
        self.line(format_args!(
            "/* made by nvtune {version} from {source}: do not edit
 *
 * How to launch its tuned kernels, for C and C++: a section for each kernel, then definitions. Include it after
 * <cuda_runtime.h>, or once more after that, for what is in the namespace nvtune. {off} leaves it empty.
 */
#ifndef {off}
{LAUNCH_DECLARATIONS}"
        ));
    }

    /// Adds the section of a kernel: the comment with its numbers, its macros, and declarations
    /// of its functions.
    pub fn section(&mut self, section: &Section<'_>, axes: &BTreeSet<&str>, tuned: &str) {
        let Section { kernel, type_name, guard, has_macros } = section;
        self.describe(section);
        self.line(format_args!("#ifndef {guard}\n#define {guard}"));
        if *has_macros {
            self.values(kernel, axes);
        }
        for function in HeaderFunction::ALL {
            let parameters = or_void(declared(function.parameters(kernel)));
            let (kind, name) = (function.c_type(), function.name());
            self.line(format_args!("static inline {kind} nvtune_{}_{name}({parameters});", kernel.name));
        }
        self.axes(kernel, tuned);
        self.line(format_args!("#endif"));

        // Each translation unit has its own: two sources may have kernels of one name.
        self.line(format_args!(
            "#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__) && !defined({guard}_CXX)\n#define {guard}_CXX"
        ));
        self.line(format_args!("namespace nvtune {{\nnamespace {{\nstruct {type_name} {{"));
        for function in HeaderFunction::ALL {
            let parameters = declared(function.parameters(kernel));
            self.line(format_args!("  static {} {}({parameters});", function.cxx_type(), function.name()));
        }
        if let Some(carveout) = kernel.carveout {
            self.line(format_args!("  static int carveout() {{ return {carveout}; }}"));
        }
        let launch = Launch::new(section);
        self.line(format_args!("{}", launch.condition()));
        if let Some(template) = launch.template() {
            self.line(format_args!("  {template}"));
        }
        self.line(format_args!("  static cudaError_t launch({});\n#endif", launch.parameters()));
        self.line(format_args!("}};\n}}  // namespace\n}}  // namespace nvtune\n#endif"));
    }

    /// Adds the comment with a kernel's numbers.
    fn describe(&mut self, section: &Section<'_>) {
        let kernel = section.kernel;
        let declarations: Vec<String> = kernel
            .parameters
            .iter()
            .map(|parameter| parameter.declaration.replace("* ", "*").replace("& ", "&"))
            .collect();
        self.line(format_args!("\n/*"));
        self.comment(" * ", " *     ", &format!("{}({})", kernel.function, declarations.join(", ")));
        self.line(format_args!(" *"));
        if kernel.function != kernel.name {
            self.row("name", &kernel.name);
        }
        self.row("block", &block_words(kernel.block));
        if let Some(block) = kernel.winner_block {
            self.row("", &format!("the source's; the object then starts the winner, {}", block_words(block)));
        }
        self.row("grid", &kernel.grid.words.join(" x "));
        if kernel.shared.values.iter().any(|value| value != "0") {
            self.row("shared", &format!("{} bytes", kernel.shared.words.join(" ")));
        }
        self.row("registers", &cap_words(kernel.cap));
        if !kernel.macros.is_empty() {
            let macros: Vec<String> = kernel.macros.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            self.row("macros", &macros.join(", "));
        }
        if !kernel.math.is_none() {
            self.row("math", &format!("{} besides the build's options", kernel.math));
        }
        if let Some(factor) = kernel.unroll {
            self.row("unroll", &format!("innermost loops by {factor}"));
        }
        if let Some(percent) = kernel.occupancy {
            self.row("occupancy", &format!("{percent}%"));
        }
        let gain = match kernel.provenance {
            Provenance::Baseline => "none: this is the baseline".to_owned(),
            chosen => format!("{:.2}x over the baseline, {chosen}", kernel.speedup),
        };
        self.row("gain", &gain);
        self.row("GPU", &gpu::sanitized_name(&kernel.gpu));
        for (capability, other) in &kernel.others {
            let grid = other.grid.words.join(" x ");
            self.row(
                &format!("on sm_{capability}"),
                &format!("block {}, grid {grid}, {}", block_words(other.block), cap_words(other.cap)),
            );
        }
        if let Some(newer) = &kernel.newer {
            self.row(
                "newer GPUs",
                &format!("block {}, grid {}", block_words(newer.block), newer.grid.words.join(" x ")),
            );
        }
        if !section.has_macros {
            let prefix = macro_name(&kernel.name);
            self.row(
                "note",
                &format!(
                    "no {prefix}_BLOCK_X and so on, for another kernel's macros would have the same names: {SAME_NAME_ADVICE}"
                ),
            );
        }
        self.line(format_args!(" */"));
    }

    /// Adds a row of a kernel's comment.
    fn row(&mut self, label: &str, words: &str) {
        let rest = format!(" * {:LABEL_COLUMNS$}   ", "");
        self.comment(&format!(" *   {label:LABEL_COLUMNS$} "), &rest, words);
    }

    /// Adds words of a comment in lines that are not too long.
    fn comment(&mut self, first: &str, rest: &str, words: &str) {
        self.0 += &fold_comment(first, rest, words);
    }

    /// Adds the definitions of all functions, and the helpers that they call.
    pub fn definitions(&mut self, sections: &[Section<'_>]) {
        self.line(format_args!("{DEFINITIONS}\n{HELPERS}"));
        if sections.iter().any(|section| Choice::new(section.kernel).is_needed()) {
            self.line(format_args!("{CAPABILITY}"));
        }
        for Section { kernel, guard, .. } in sections {
            self.line(format_args!("\n#ifndef {guard}_C\n#define {guard}_C"));
            self.refuse_another(&kernel.name);
            self.functions(kernel);
            self.line(format_args!("#endif"));
        }
        self.line(format_args!("\n#if defined(__cplusplus) && defined(__VECTOR_TYPES_H__)\n{LAUNCH}"));
        for section in sections {
            let guard = &section.guard;
            self.line(format_args!("#ifndef {guard}_CXX_DEFINED\n#define {guard}_CXX_DEFINED"));
            self.line(format_args!("namespace nvtune {{\nnamespace {{"));
            self.members(section);
            self.launch(section);
            self.line(format_args!("}}  // namespace\n}}  // namespace nvtune\n#endif"));
        }
        self.line(format_args!("#endif"));
    }

    /// Adds an error for two headers that have kernels of one name.
    fn refuse_another(&mut self, name: &str) {
        self.line(format_args!("#ifdef NVTUNE_KERNEL_{name}"));
        self.line(format_args!("#error \"two headers of nvtune have a kernel {name}: {SAME_NAME_ADVICE}\""));
        self.line(format_args!("#endif\n#define NVTUNE_KERNEL_{name}"));
    }

    /// Adds the macros that begin with the kernel's name, except those with the name of a macro
    /// axis.
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

    /// Adds the macro axes under their own names: the source's values. If the winner replaces
    /// the kernel, code that is compiled without nvtune gets the winner's values, which its
    /// launches need. Another value is an error there.
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

    /// Adds the functions for C and C++.
    fn functions(&mut self, kernel: &HeaderKernel) {
        let choice = Choice::new(kernel);
        for function in HeaderFunction::ALL {
            let (kind, value) = (function.c_type(), |kernel: &HeaderKernel| function.body(kernel));
            let name = format!("{}_{}", kernel.name, function.name());
            let parameters = function.parameters(kernel);
            let own = or_void(declared(parameters));
            if !choice.is_needed() {
                let body = value(kernel);
                self.line(format_args!("static inline {kind} nvtune_{name}({own}) {{\n  {body}\n}}"));
                continue;
            }
            let with_first_round =
                |first: &str, rest: String| if rest.is_empty() { first.to_owned() } else { format!("{first}, {rest}") };
            self.line(format_args!(
                "static inline {kind} nvtune_detail_{name}({}) {{",
                with_first_round("int capability", declared(parameters))
            ));
            self.line(format_args!("{}}}", choice.by_device(value)));
            self.line(format_args!(
                "static inline {kind} nvtune_{name}({own}) {{\n  return nvtune_detail_{name}({});\n}}",
                with_first_round(&format!("NVTUNE_CAPABILITY_OR({})", kernel.capability), named(parameters))
            ));
        }
    }

    /// Adds the functions of the structure for C++.
    fn members(&mut self, Section { kernel, type_name, .. }: &Section<'_>) {
        let is_chosen = Choice::new(kernel).is_needed();
        for function in HeaderFunction::ALL {
            let (name, parameters) = (function.name(), function.parameters(kernel));
            let arguments = named(parameters);
            let call = if is_chosen {
                let comma = if arguments.is_empty() { "" } else { ", " };
                let capability = format!("NVTUNE_CAPABILITY_OR({})", kernel.capability);
                format!("nvtune_detail_{}_{name}({capability}{comma}{arguments})", kernel.name)
            } else {
                format!("nvtune_{}_{name}({arguments})", kernel.name)
            };
            let kind = function.cxx_type();
            self.line(format_args!("inline {kind} {type_name}::{name}({}) {{", declared(parameters)));
            if function == HeaderFunction::Shared {
                self.line(format_args!("  return {call};"));
            } else {
                self.line(format_args!("  const nvtune_dim3 nvtune_made = {call};"));
                self.line(format_args!("  return dim3(nvtune_made.x, nvtune_made.y, nvtune_made.z);"));
            }
            self.line(format_args!("}}"));
        }
    }

    /// Adds `launch(kernel, stream, arguments...)`.
    fn launch(&mut self, section: &Section<'_>) {
        let (kernel, type_name) = (section.kernel, &section.type_name);
        let launch = Launch::new(section);
        self.line(format_args!("{}", launch.condition()));
        if let Some(template) = launch.template() {
            self.line(format_args!("{template}"));
        }
        self.line(format_args!("inline cudaError_t {type_name}::launch({}) {{", launch.parameters()));
        // Parameters of the kernel may be called `grid` or `shared`.
        let grid = format!("{type_name}::grid({})", launch.arguments(&kernel.grid));
        let block = format!("{type_name}::block()");
        let shared = format!("{type_name}::shared({})", launch.arguments(&kernel.shared));
        let address = "reinterpret_cast<const void *>(nvtune_kernel)";
        let carveout = kernel.carveout.unwrap_or(-1);
        let is_cooperative = kernel.cooperative || kernel.others.iter().any(|(_, other)| other.cooperative);
        if kernel.is_in_place || is_cooperative {
            let addresses: Vec<String> =
                launch.names.iter().map(|name| format!("nvtune_detail::address({name})")).collect();
            let addresses = if addresses.is_empty() { "NULL".to_owned() } else { addresses.join(", ") };
            self.line(format_args!("  void *nvtune_arguments[] = {{{addresses}}};"));
            self.line(format_args!(
                "  return nvtune_detail::launch({address}, {grid}, {block}, {shared}, {carveout}, {is_cooperative}, stream, nvtune_arguments);"
            ));
        } else {
            self.line(format_args!(
                "  const cudaError_t nvtune_error = nvtune_detail::prepare({address}, {shared}, {carveout});"
            ));
            self.line(format_args!("  if (nvtune_error != cudaSuccess) return nvtune_error;"));
            let names = launch.names.join(", ");
            self.line(format_args!("  nvtune_kernel<<<{grid}, {block}, {shared}, stream>>>({names});"));
            self.line(format_args!("  return cudaPeekAtLastError();"));
        }
        self.line(format_args!("}}\n#endif"));
    }
}

/// The advice in the error about kernels that the header cannot tell apart.
const SAME_NAME_ADVICE: &str = "add name(...) to the tuning comment of one of them";

/// The function `launch` of one kernel.
struct Launch<'a> {
    kernel: &'a HeaderKernel,
    /// Names of the kernel's parameters as `launch` has them.
    names: Vec<String>,
}

impl<'a> Launch<'a> {
    fn new(section: &Section<'a>) -> Self {
        let kernel = section.kernel;
        let mut taken = BTreeSet::from(["stream".to_owned(), section.type_name.clone()]);
        let mut names = Vec::new();
        for (index, parameter) in kernel.parameters.iter().enumerate() {
            let mut name = parameter.name.clone().unwrap_or_else(|| format!("nvtune_{index}"));
            // Names in capitals alone are likely to be macros somewhere.
            if !name.contains(|character: char| character.is_lowercase()) {
                name.push('_');
            }
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            names.push(name);
        }
        Self { kernel, names }
    }

    /// Launches by address in C++ sources run nvcc's own kernel; those by `<<<>>>` reach the launch
    /// stub.
    fn condition(&self) -> &'static str {
        if self.kernel.is_in_place {
            "#if defined(NVTUNE_LAUNCH)"
        } else {
            "#if defined(NVTUNE_LAUNCH) && defined(__CUDACC__)"
        }
    }

    /// Returns the text for each parameter of the kernel, by its index and name.
    fn each(&self, text: impl Fn(usize, &str) -> String) -> String {
        let each = self.names.iter().enumerate().map(|(index, name)| text(index, name));
        each.collect::<Vec<_>>().join(", ")
    }

    fn template(&self) -> Option<String> {
        let types = self.each(|index, _| format!("class T{index}"));
        (!self.names.is_empty()).then(|| format!("template <{types}>"))
    }

    fn parameters(&self) -> String {
        let types = self.each(|index, _| format!("T{index}"));
        let declared = self.each(|index, name| format!("typename nvtune_detail::as_declared<T{index}>::type {name}"));
        let comma = if self.names.is_empty() { "" } else { ", " };
        format!("void (*nvtune_kernel)({types}), cudaStream_t stream{comma}{declared}")
    }

    /// Returns the arguments of a host function, from those of the kernel.
    fn arguments(&self, function: &HostFunction) -> String {
        let of_kernel = |HostParameter { kind, argument, field, .. }: &HostParameter| {
            let name = self.names.get(*argument).map_or("", String::as_str);
            format!("NVTUNE_AS({kind}, {name}{field})")
        };
        function.parameters.iter().map(of_kernel).collect::<Vec<_>>().join(", ")
    }
}

/// A function of the header about a kernel's launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderFunction {
    Block,
    Grid,
    Shared,
}

impl HeaderFunction {
    const ALL: [HeaderFunction; 3] = [HeaderFunction::Block, HeaderFunction::Grid, HeaderFunction::Shared];

    fn name(self) -> &'static str {
        match self {
            HeaderFunction::Block => "block",
            HeaderFunction::Grid => "grid",
            HeaderFunction::Shared => "shared",
        }
    }

    fn c_type(self) -> &'static str {
        if self == HeaderFunction::Shared { "size_t" } else { "struct nvtune_dim3" }
    }

    fn cxx_type(self) -> &'static str {
        if self == HeaderFunction::Shared { "size_t" } else { "dim3" }
    }

    fn parameters(self, kernel: &HeaderKernel) -> &[HostParameter] {
        match self {
            HeaderFunction::Block => &[],
            HeaderFunction::Grid => &kernel.grid.parameters,
            HeaderFunction::Shared => &kernel.shared.parameters,
        }
    }

    /// Returns statements that return the value for one architecture.
    fn body(self, kernel: &HeaderKernel) -> String {
        match self {
            HeaderFunction::Block => {
                let [x, y, z] = kernel.block;
                format!("return nvtune_detail_dim3({x}, {y}, {z});")
            }
            HeaderFunction::Grid => format!("return nvtune_detail_dim3({});", kernel.grid.values.join(", ")),
            HeaderFunction::Shared => {
                let value = kernel.shared.values.first().map_or("0", String::as_str);
                format!("return NVTUNE_AS(size_t, {value});")
            }
        }
    }
}

/// The values of a fat build by compute capability, the newest first.
struct Choice<'a>(Vec<(u32, &'a HeaderKernel)>);

impl<'a> Choice<'a> {
    fn new(kernel: &'a HeaderKernel) -> Self {
        let mut all: Vec<(u32, &HeaderKernel)> =
            kernel.others.iter().map(|(capability, other)| (*capability, other)).collect();
        all.push((kernel.capability, kernel));
        let known: BTreeSet<u32> = all.iter().map(|(capability, _)| *capability).collect();
        let newer = all
            .clone()
            .into_iter()
            .filter_map(|(capability, kernel)| Some((capability + 1, &**kernel.newer.as_ref()?)));
        all.extend(newer.filter(|(capability, _)| !known.contains(capability)));
        all.sort_by_key(|(capability, _)| std::cmp::Reverse(*capability));
        Self(all)
    }

    /// Whether the values depend on the device.
    fn is_needed(&self) -> bool {
        let launch = |kernel: &HeaderKernel| {
            (
                kernel.block,
                HeaderFunction::ALL.map(|function| (function.body(kernel), named(function.parameters(kernel)))),
            )
        };
        self.0.iter().any(|(_, kernel)| launch(kernel) != launch(self.0[0].1))
    }

    /// Returns statements that return the value of the newest architecture that the device can
    /// run.
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

fn block_words([x, y, z]: Dim3) -> String {
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    format!("{x} x {y} x {z} ({threads} threads)")
}

fn cap_words(cap: u32) -> String {
    if cap == 0 { "no cap".to_owned() } else { format!("at most {cap} a thread") }
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
