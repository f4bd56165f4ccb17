//! Winners of a remapped kernel -> C++ for its launch stub, and a stub file -> the same with it.
//!
//! Every `<<<>>>` launch of a kernel, from any translation unit, calls one stub, which pops the launch configuration that was
//! pushed before. The text pops it first, reshapes it where it is the baseline's, and pushes it again for the toolkit's own code
//! behind it. A launch that is not the baseline's goes on as it was pushed. The text needs no library but the CUDA runtime.

use crate::cuda::brackets::parenthesized;
use crate::cuda::tokens::is_word;
use crate::launch::Dim3;
use crate::space::MAX_GRID;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// What the stub of one kernel does, for every architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remap {
    /// What a launch must be to be reshaped.
    pub baseline: Shape,
    /// By compute capability (`90`), ascending: each holds up to the next.
    pub winners: Vec<(u32, Reshaped)>,
}

/// A launch as the comment has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    pub block: Dim3,
    /// The grid, where it is an axis.
    pub grid: Option<Dim3>,
    /// Dynamic shared memory in bytes: a C++ expression over the stub's parameters.
    pub shared: String,
}

/// What a launch becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reshaped {
    pub shape: Shape,
    /// By dimension: how many blocks of the baseline become how many.
    pub scale: [Scale; 3],
    /// Whether threads beyond the baseline's are known to do no harm; else a launch whose threads the new block does not divide
    /// stays as it is.
    pub surplus: bool,
}

/// The threads of a block, or of a part of it, that the grid's blocks in one dimension are counted by: `before` those of the
/// baseline, `after` those of the winner. 1 and 1 where the grid does not hang on the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    pub before: u32,
    pub after: u32,
}

impl Scale {
    /// Where the grid stays as the program has it.
    pub const NONE: Self = Self { before: 1, after: 1 };

    /// The blocks that cover at least what `blocks` of the baseline's do.
    pub fn covering(self, blocks: u32) -> u32 {
        let threads = u64::from(blocks) * u64::from(self.before);
        u32::try_from(threads.div_ceil(u64::from(self.after.max(1)))).unwrap_or(u32::MAX)
    }

    /// Whether any number of the baseline's blocks is covered without a rest.
    pub fn is_exact(self) -> bool {
        self.before.is_multiple_of(self.after.max(1))
    }
}

/// Text for one stub of one source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StubText {
    /// The source as nvcc names it.
    pub source: String,
    /// The stub is `__device_stub_` and this: the mangled name.
    pub stub: String,
    /// C++ statements.
    pub text: String,
}

/// The namespace of the functions that expressions of a stub call.
pub const DETAIL_NAMESPACE: &str = "__nvtune_detail::";

/// The functions of the comment's language that C++ has not, and division that no launch of a user's program can die of.
const DETAIL: &str = "\
namespace __nvtune_detail {
template <class A, class B> inline auto quotient(A a, B b) -> decltype(a / b) { return b == 0 ? 0 : a / b; }
template <class A, class B> inline auto remainder(A a, B b) -> decltype(a % b) { return b == 0 ? 0 : a % b; }
inline long long ceildiv(long long a, long long b) {
  return b == 0 ? 0 : a / b + (a % b != 0 && (a < 0) == (b < 0));
}
template <class A, class B> inline auto min(A a, B b) -> decltype(a + b) { return b < a ? b : a; }
template <class A, class B> inline auto max(A a, B b) -> decltype(a + b) { return a < b ? b : a; }
}
";

impl Remap {
    /// True where no launch would change.
    pub fn is_nothing(&self) -> bool {
        self.winners.iter().all(|(_, winner)| winner.shape == self.baseline)
    }

    /// The statements to begin the stub's body with.
    pub fn text(&self) -> String {
        let mut text = String::from(
            "\n{ /* made by nvtune: launches of the baseline's shape get the winner's */\n\
             ::dim3 __nvtune_grid(1), __nvtune_block(1);\n\
             ::size_t __nvtune_shared = 0;\n\
             void *__nvtune_stream = 0;\n\
             if (__cudaPopCallConfiguration(&__nvtune_grid, &__nvtune_block, &__nvtune_shared, &__nvtune_stream) != cudaSuccess) return;\n",
        );
        let mut line = |arguments: std::fmt::Arguments<'_>| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{arguments}");
        };
        line(format_args!("if ({}) {{", self.condition()));
        match self.winners.as_slice() {
            [(_, only)] => line(format_args!("{}", self.reshape(only))),
            several => {
                line(format_args!("{CAPABILITY}"));
                for (index, (capability, winner)) in several.iter().rev().enumerate() {
                    let otherwise = if index == 0 { "" } else { "else " };
                    line(format_args!(
                        "{otherwise}if (__nvtune_capability >= {capability}) {{\n{}\n}}",
                        self.reshape(winner)
                    ));
                }
            }
        }
        line(format_args!("}}"));
        line(format_args!(
            "if (__cudaPushCallConfiguration(__nvtune_grid, __nvtune_block, __nvtune_shared, static_cast<struct CUstream_st *>(__nvtune_stream)) != 0) return;\n}}"
        ));
        text
    }

    fn condition(&self) -> String {
        let is = |name: &str, values: Dim3| {
            let parts = ["x", "y", "z"].iter().zip(values);
            parts.map(|(dimension, value)| format!("__nvtune_{name}.{dimension} == {value}u")).collect::<Vec<_>>()
        };
        let mut parts = is("block", self.baseline.block);
        parts.extend(self.baseline.grid.iter().flat_map(|grid| is("grid", *grid)));
        parts.push(format!("__nvtune_shared == static_cast< ::size_t>({})", self.baseline.shared));
        parts.join(" && ")
    }

    fn reshape(&self, winner: &Reshaped) -> String {
        let Reshaped { shape, scale, surplus } = winner;
        if *shape == self.baseline {
            return String::new();
        }
        let block = shape.block;
        let set_block = format!("__nvtune_block = ::dim3({}u, {}u, {}u);", block[0], block[1], block[2]);
        let set_shared = format!("__nvtune_shared = static_cast< ::size_t>({});", shape.shared);
        if let Some([x, y, z]) = shape.grid {
            return format!("__nvtune_grid = ::dim3({x}u, {y}u, {z}u);\n{set_block}\n{set_shared}");
        }
        let mut text = String::new();
        let mut fits = Vec::new();
        for (at, (dimension, most)) in ["x", "y", "z"].into_iter().zip(MAX_GRID).enumerate() {
            let Scale { before, after } = scale[at];
            let threads = format!("static_cast<unsigned long long>(__nvtune_grid.{dimension}) * {before}u");
            let _ = writeln!(
                text,
                "const unsigned long long __nvtune_{dimension} = ({threads} + {}u) / {after}u;",
                after.saturating_sub(1)
            );
            fits.push(format!("__nvtune_{dimension} <= {most}u"));
            if !surplus && !scale[at].is_exact() {
                fits.push(format!("__nvtune_{dimension} * {after}u == {threads}"));
            }
        }
        let set_grid = "__nvtune_grid = ::dim3(static_cast<unsigned>(__nvtune_x), static_cast<unsigned>(__nvtune_y), static_cast<unsigned>(__nvtune_z));";
        let _ = write!(text, "if ({}) {{\n{set_grid}\n{set_block}\n{set_shared}\n}}", fits.join(" && "));
        text
    }
}

/// The compute capability of the current device: asked once for each device. A race of two threads stores the same value twice.
const CAPABILITY: &str = "\
static int __nvtune_capabilities[64];
int __nvtune_device = 0, __nvtune_capability = 0;
if (cudaGetDevice(&__nvtune_device) == cudaSuccess && __nvtune_device >= 0) {
if (__nvtune_device < 64) __nvtune_capability = __atomic_load_n(&__nvtune_capabilities[__nvtune_device], __ATOMIC_RELAXED);
if (__nvtune_capability == 0) {
int __nvtune_minor = 0;
if (cudaDeviceGetAttribute(&__nvtune_capability, cudaDevAttrComputeCapabilityMajor, __nvtune_device) == cudaSuccess && cudaDeviceGetAttribute(&__nvtune_minor, cudaDevAttrComputeCapabilityMinor, __nvtune_device) == cudaSuccess) {
__nvtune_capability = __nvtune_capability * 10 + __nvtune_minor;
if (__nvtune_device < 64) __atomic_store_n(&__nvtune_capabilities[__nvtune_device], __nvtune_capability, __ATOMIC_RELAXED);
} else {
__nvtune_capability = 0;
}
}
}";

/// The stub file with these texts at the start of their stubs' bodies, and the names of the stubs that it defines.
pub fn rewritten<'a>(file: &str, texts: &[&'a StubText]) -> (String, Vec<&'a str>) {
    let mut places: Vec<(usize, &StubText)> =
        texts.iter().filter_map(|text| Some((body(file, &text.stub)?, *text))).collect();
    places.sort_by_key(|(place, _)| *place);
    let mut made = String::with_capacity(file.len());
    if places.iter().any(|(_, text)| text.text.contains(DETAIL_NAMESPACE)) {
        made.push_str(DETAIL);
    }
    let mut copied = 0;
    for (place, text) in &places {
        made.push_str(&file[copied..*place]);
        made.push_str(&text.text);
        copied = *place;
    }
    made.push_str(&file[copied..]);
    (made, places.into_iter().map(|(_, text)| text.stub.as_str()).collect())
}

/// Where the body of `__device_stub_NAME` begins, behind its brace.
fn body(file: &str, name: &str) -> Option<usize> {
    let start = format!("__device_stub_{name}(");
    file.match_indices(&start).find_map(|(at, _)| {
        let whole = !file[..at].ends_with(is_word);
        let parameters = at + start.len() - 1;
        let close = parameters + parenthesized(&file[parameters..])?.len() + 2;
        let rest = &file[close..];
        // A definition, not a declaration or a call.
        let brace = rest.len() - rest.trim_start().len();
        (whole && rest[brace..].starts_with('{')).then_some(close + brace + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn shape(block: Dim3, shared: &str) -> Shape {
        Shape { block, grid: None, shared: shared.into() }
    }

    /// In place of blocks of 256 threads.
    fn reshaped(block: u32, shared: &str, surplus: bool) -> Reshaped {
        let scale = [Scale { before: 256, after: block }, Scale::NONE, Scale::NONE];
        Reshaped { shape: shape([block, 1, 1], shared), scale, surplus }
    }

    #[test]
    fn only_the_definition_of_the_named_stub_is_changed() {
        let file = "extern void __device_stub__Z1kPf(float *);\nstatic void __device_stub__Z1kPfi(float *, int);\n\
                    void __device_stub__Z1kPf(float *__par0){__cudaLaunch(f);}\nvoid k(float *a)\n{__device_stub__Z1kPf( a); }\n\
                    static void __device_stub__Z1kPfi( float *__par0, int (*__par1)(int)) {  __cudaLaunch(g); }\n";
        let text = |stub: &str, text: &str| StubText { source: "a.cu".into(), stub: stub.into(), text: text.into() };
        let (first, second, missing) = (text("_Z1kPf", "A;"), text("_Z1kPfi", "B;"), text("_Z1k", "C;"));
        let (made, found) = rewritten(file, &[&second, &missing, &first]);
        assert_eq!(found, ["_Z1kPf", "_Z1kPfi"]);
        let expected = file
            .replace("{__cudaLaunch(f)", "{A;__cudaLaunch(f)")
            .replace("{  __cudaLaunch(g)", "{B;  __cudaLaunch(g)");
        assert_eq!(made, expected);
        assert_eq!(rewritten(file, &[&missing]), (file.to_owned(), vec![]));
    }

    #[test]
    fn the_text_of_one_architecture() {
        let winners = vec![(90, reshaped(96, "(96 * 16)", false))];
        let remap = Remap { baseline: shape([256, 1, 1], "(256 * 16)"), winners };
        expect![[r#"

            { /* made by nvtune: launches of the baseline's shape get the winner's */
            ::dim3 __nvtune_grid(1), __nvtune_block(1);
            ::size_t __nvtune_shared = 0;
            void *__nvtune_stream = 0;
            if (__cudaPopCallConfiguration(&__nvtune_grid, &__nvtune_block, &__nvtune_shared, &__nvtune_stream) != cudaSuccess) return;
            if (__nvtune_block.x == 256u && __nvtune_block.y == 1u && __nvtune_block.z == 1u && __nvtune_shared == static_cast< ::size_t>((256 * 16))) {
            const unsigned long long __nvtune_x = (static_cast<unsigned long long>(__nvtune_grid.x) * 256u + 95u) / 96u;
            const unsigned long long __nvtune_y = (static_cast<unsigned long long>(__nvtune_grid.y) * 1u + 0u) / 1u;
            const unsigned long long __nvtune_z = (static_cast<unsigned long long>(__nvtune_grid.z) * 1u + 0u) / 1u;
            if (__nvtune_x <= 2147483647u && __nvtune_x * 96u == static_cast<unsigned long long>(__nvtune_grid.x) * 256u && __nvtune_y <= 65535u && __nvtune_z <= 65535u) {
            __nvtune_grid = ::dim3(static_cast<unsigned>(__nvtune_x), static_cast<unsigned>(__nvtune_y), static_cast<unsigned>(__nvtune_z));
            __nvtune_block = ::dim3(96u, 1u, 1u);
            __nvtune_shared = static_cast< ::size_t>((96 * 16));
            }
            }
            if (__cudaPushCallConfiguration(__nvtune_grid, __nvtune_block, __nvtune_shared, static_cast<struct CUstream_st *>(__nvtune_stream)) != 0) return;
            }
        "#]]
        .assert_eq(&remap.text());
    }

    #[test]
    fn blocks_are_scaled_by_what_they_are_counted_by() {
        for (blocks, before, after, expected, exact) in [
            (128, 256, 128, 256, true),
            (3, 256, 512, 2, false),
            (5, 16, 8, 10, true),
            (7, 1, 1, 7, true),
            (0, 256, 128, 0, true),
            (u32::MAX, 1024, 1, u32::MAX, true),
        ] {
            let scale = Scale { before, after };
            assert_eq!((scale.covering(blocks), scale.is_exact()), (expected, exact), "{blocks} {scale:?}");
        }
        let mut kept = reshaped(96, "0", false);
        kept.scale = [Scale::NONE; 3];
        let text = Remap { baseline: shape([256, 1, 1], "0"), winners: vec![(90, kept)] }.text();
        assert!(text.contains("(static_cast<unsigned long long>(__nvtune_grid.x) * 1u + 0u) / 1u;"), "{text}");
        assert!(!text.contains("__nvtune_x * "), "{text}");
    }

    #[test]
    fn a_winner_that_is_the_baseline_changes_nothing() {
        let (same, other) = (reshaped(256, "0", true), reshaped(128, "0", true));
        let of = |winners| Remap { baseline: shape([256, 1, 1], "0"), winners };
        assert!(of(vec![(90, same.clone())]).is_nothing());
        assert!(!of(vec![(80, other.clone()), (90, same.clone())]).is_nothing());
        let text = of(vec![(80, other), (90, same)]).text();
        let (newer, older) = (text.find(">= 90"), text.find("else if (__nvtune_capability >= 80)"));
        assert!(newer.is_some() && newer < older, "{text}");
    }
}
