//! Writes the C++ by which the launch stub of a kernel chooses an entry: nvcc's own, or a winner's in the winner's shape.
//!
//! Every `<<<>>>` launch of a kernel, from any translation unit, calls one stub, which pops the launch configuration that
//! was pushed before. The text pops it first, and either pushes the winner's and launches the winner, or pushes what it
//! popped for the toolkit's own code behind it. Launches that it does not recognize run as plain nvcc's do.

use crate::launch::Dim3;
use crate::space::MAX_GRID;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The namespace of the functions that expressions of a stub call.
pub const DETAIL_NAMESPACE: &str = "__nvtune_detail::";

/// The functions that the text and its expressions call, for the head of a stub file.
pub(super) const RUNTIME: &str = include_str!("dispatch_runtime.h");

/// Bytes of dynamic shared memory that every kernel can have on every device without an attribute.
const UNRAISED_SHARED: u32 = 48 * 1024;

const DIMENSIONS: [&str; 3] = ["x", "y", "z"];

/// Says how the launches of one kernel choose among its entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// What a launch must be to be given to a winner.
    pub baseline: LaunchText,
    /// One for each compute capability that has a winner.
    pub winners: Vec<Winner>,
    /// Whether a launch in a winner's own shape (host code that launches by the header) runs that winner.
    pub accepts_winner_launches: bool,
    /// Whether launches of the baseline's shape are given to winners; else only the winners' own launches are.
    pub reshapes: bool,
}

/// Describes a launch by C++ expressions over the stub's parameters (`__par0`); all are `long long`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchText {
    pub block: Dim3,
    /// By dimension. `None`: any grid, which stays as launched.
    pub grid: Option<[String; 3]>,
    /// Bytes of dynamic shared memory. `__nvtune_grid` is the grid of this launch.
    pub shared: String,
}

/// Describes the entry for one compute capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Winner {
    /// `90`: devices of exactly this compute capability run it.
    pub capability: u32,
    /// Its name in the PTX.
    pub entry: String,
    pub launch: LaunchText,
    /// C++ conditions on the arguments. All must hold where the winner runs in place of the baseline.
    pub conditions: Vec<String>,
    /// Percent of the shared memory, if the winner wants one.
    pub carveout: Option<u32>,
}

/// Gives the parts of `__cudaLaunch(KERNEL, OTHERS)` in a stub.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchCall<'t> {
    /// The kernel's host address.
    pub kernel: &'t str,
    /// Further arguments, which depend on the toolkit.
    pub others: &'t [&'t str],
}

impl Dispatch {
    /// Returns whether every launch runs as plain nvcc's.
    pub fn is_nothing(&self) -> bool {
        self.winners.is_empty() || !(self.reshapes || self.accepts_winner_launches)
    }

    /// Returns the names of the entries that launches can be given to, each once.
    pub fn entries(&self) -> BTreeSet<&str> {
        let winners = if self.is_nothing() { &[] } else { self.winners.as_slice() };
        winners.iter().map(|winner| winner.entry.as_str()).collect()
    }

    /// Returns the statements to put before the stub's `__cudaLaunch`.
    pub(super) fn text(&self, call: LaunchCall<'_>) -> String {
        let mut text = String::from(
            "\n{ /* made by nvtune: chooses which entry of the kernel runs, and in which shape */\n\
             ::dim3 __nvtune_grid(1), __nvtune_block(1);\n\
             ::size_t __nvtune_shared = 0;\n\
             void *__nvtune_stream = 0;\n\
             if (__cudaPopCallConfiguration(&__nvtune_grid, &__nvtune_block, &__nvtune_shared, &__nvtune_stream) != cudaSuccess) return;\n",
        );
        if self.compares_baseline() {
            text += &format!("const bool __nvtune_is_baseline = {};\n", self.baseline.condition());
        }
        text += &format!(
            "if ({}) {{\nint __nvtune_device = 0;\nconst int __nvtune_capability = {DETAIL_NAMESPACE}capability(&__nvtune_device);\n",
            self.candidates()
        );
        for winner in &self.winners {
            text += &self.attempt(winner, call);
        }
        text + "}\n" + &push("__nvtune_block", "__nvtune_shared") + "}\n"
    }

    /// Returns whether any decision depends on whether the launch is the baseline's.
    fn compares_baseline(&self) -> bool {
        self.reshapes || self.winners.iter().any(|winner| !winner.conditions.is_empty())
    }

    /// Returns the condition of launches that may be a winner's, whatever the device is.
    fn candidates(&self) -> String {
        let mut candidates = Vec::new();
        if self.reshapes {
            candidates.push("__nvtune_is_baseline".to_owned());
        }
        if self.accepts_winner_launches {
            let blocks: BTreeSet<Dim3> = self.winners.iter().map(|winner| winner.launch.block).collect();
            candidates.extend(blocks.into_iter().map(|block| format!("({})", is_block(block))));
        }
        candidates.join(" || ")
    }

    /// Returns the statements that launch a winner and return, if the launch is one for it.
    fn attempt(&self, winner: &Winner, call: LaunchCall<'_>) -> String {
        let launch = &winner.launch;
        let mut text = format!(
            "if (__nvtune_capability == {}) {{\nstatic int __nvtune_limits[64];\n\
             const ::dim3 __nvtune_launched = __nvtune_grid;\n",
            winner.capability
        );
        let mut fits = "__nvtune_bytes >= 0".to_owned();
        if let Some(grid) = &launch.grid {
            for ((dimension, expression), most) in DIMENSIONS.iter().zip(grid).zip(MAX_GRID) {
                text += &format!("const long long __nvtune_{dimension} = {expression};\n");
                let _ = write!(fits, " && __nvtune_{dimension} >= 1 && __nvtune_{dimension} <= {most}LL");
            }
            let unsigned = DIMENSIONS.map(|dimension| format!("static_cast<unsigned>(__nvtune_{dimension})"));
            text += &format!("__nvtune_grid = ::dim3({});\n", unsigned.join(", "));
        }
        let [x, y, z] = launch.block;
        let threads = u64::from(x) * u64::from(y) * u64::from(z);
        let carveout = winner.carveout.map_or_else(|| "-1".to_owned(), |percent| percent.to_string());
        let LaunchCall { kernel, others } = call;
        let key = key(&winner.entry);
        let arguments: String = others.iter().map(|argument| format!(", {argument}")).collect();
        let push = push(&format!("::dim3({x}u, {y}u, {z}u)"), "static_cast< ::size_t>(__nvtune_bytes)");
        text += &format!("const long long __nvtune_bytes = {};\n", launch.shared);
        let is_own = match (self.accepts_winner_launches, self.compares_baseline()) {
            (true, true) => "!__nvtune_is_baseline",
            (true, false) => "true",
            (false, _) => "false",
        };
        let choice = self.choice(winner).map(|choice| format!(" && ({choice})")).unwrap_or_default();
        // A second round where the device was reset since the first.
        text + &format!(
            "if ({fits}{choice})\n\
             while ({DETAIL_NAMESPACE}is_ready(__nvtune_limits, __nvtune_device, (&{key}), {kernel}, {threads}, {carveout}, __nvtune_bytes, {is_own})) {{\n\
             const bool __nvtune_needs_attribute = __nvtune_bytes > {UNRAISED_SHARED} && cudaPeekAtLastError() == cudaSuccess;\n\
             {push}\
             {{ __cudaLaunch((&{key}){arguments}); }}\n\
             if (!__nvtune_needs_attribute || !{DETAIL_NAMESPACE}is_lost(&__nvtune_limits[__nvtune_device], (&{key}), __nvtune_bytes)) return;\n}}\n\
             __nvtune_grid = __nvtune_launched;\n}}\n"
        )
    }

    /// Returns the condition under which a launch is one for this winner; `None` if it always holds.
    ///
    /// A launch in the shape of both is right with either entry, so conditions decide there.
    fn choice(&self, winner: &Winner) -> Option<String> {
        let conditions = winner.conditions.iter().map(|condition| format!("({condition})"));
        let conditions = conditions.reduce(|left, right| format!("{left} && {right}"));
        let own = winner.launch.own_condition();
        match (self.reshapes, self.accepts_winner_launches, conditions) {
            (true, false, conditions) => conditions,
            (true, true, Some(conditions)) => Some(format!("__nvtune_is_baseline ? {conditions} : {own}")),
            (true, true, None) => Some(format!("__nvtune_is_baseline || ({own})")),
            (false, _, Some(conditions)) => Some(format!("{own} && (!__nvtune_is_baseline || ({conditions}))")),
            (false, _, None) => Some(own),
        }
    }
}

impl LaunchText {
    /// Returns the condition that a launch is this one: the block first, for it costs least.
    fn condition(&self) -> String {
        let shared = format!("static_cast<long long>(__nvtune_shared) == ({})", self.shared);
        let grid = self.grid.iter().flat_map(|grid| {
            DIMENSIONS.iter().zip(grid).map(|(dimension, expression)| {
                format!("static_cast<long long>(__nvtune_grid.{dimension}) == ({expression})")
            })
        });
        [is_block(self.block), shared].into_iter().chain(grid).collect::<Vec<_>>().join(" && ")
    }

    /// Returns the same where the expressions have been evaluated.
    fn own_condition(&self) -> String {
        let shared = "static_cast<long long>(__nvtune_shared) == __nvtune_bytes".to_owned();
        let grid = DIMENSIONS
            .iter()
            .filter(|_| self.grid.is_some())
            .map(|dimension| format!("static_cast<long long>(__nvtune_launched.{dimension}) == __nvtune_{dimension}"));
        [is_block(self.block), shared].into_iter().chain(grid).collect::<Vec<_>>().join(" && ")
    }
}

/// Returns the statement that pushes a configuration for a `__cudaLaunch` to pop.
fn push(block: &str, shared: &str) -> String {
    format!(
        "if (__cudaPushCallConfiguration(__nvtune_grid, {block}, {shared}, static_cast<struct CUstream_st *>(__nvtune_stream)) != 0) return;\n"
    )
}

/// Names the variable whose address stands for an entry in the runtime.
///
/// It is data: linkers that fold identical code would give two functions one address.
pub(super) fn key(entry: &str) -> String {
    format!("__nvtune_key_{entry}")
}

fn is_block(block: Dim3) -> String {
    let equal =
        DIMENSIONS.iter().zip(block).map(|(dimension, value)| format!("__nvtune_block.{dimension} == {value}u"));
    equal.collect::<Vec<_>>().join(" && ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const CALL: LaunchCall<'_> = LaunchCall { kernel: "((char *)k)", others: &["0U"] };

    fn launch(block: Dim3, threads: u32) -> LaunchText {
        let grid = [format!("__nvtune_detail::ceildiv(__par0, {threads}LL)"), "1LL".into(), "1LL".into()];
        LaunchText { block, grid: Some(grid), shared: "0LL".into() }
    }

    fn winner(capability: u32, conditions: &[&str]) -> Winner {
        Winner {
            capability,
            entry: format!("k__nvtune_{capability}"),
            launch: launch([128, 2, 1], 1024),
            conditions: conditions.iter().map(|&condition| condition.to_owned()).collect(),
            carveout: None,
        }
    }

    fn dispatch(winners: Vec<Winner>) -> Dispatch {
        Dispatch { baseline: launch([256, 1, 1], 256), winners, accepts_winner_launches: false, reshapes: true }
    }

    /// Returns what of a winner's `if` depends on the kind of dispatch.
    fn choice(accepts_winner_launches: bool, reshapes: bool, conditions: &[&str]) -> String {
        let mut winner = winner(90, conditions);
        winner.launch.grid = None;
        let all = Dispatch { accepts_winner_launches, reshapes, ..dispatch(vec![winner]) };
        format!("{}\n", all.choice(&all.winners[0]).unwrap_or_default())
    }

    #[test]
    fn text_of_one_capability() {
        let text = dispatch(vec![winner(90, &["__par0 % 4 == 0", "__par0 > 0"])]).text(CALL);
        expect![[r#"

            { /* made by nvtune: chooses which entry of the kernel runs, and in which shape */
            ::dim3 __nvtune_grid(1), __nvtune_block(1);
            ::size_t __nvtune_shared = 0;
            void *__nvtune_stream = 0;
            if (__cudaPopCallConfiguration(&__nvtune_grid, &__nvtune_block, &__nvtune_shared, &__nvtune_stream) != cudaSuccess) return;
            const bool __nvtune_is_baseline = __nvtune_block.x == 256u && __nvtune_block.y == 1u && __nvtune_block.z == 1u && static_cast<long long>(__nvtune_shared) == (0LL) && static_cast<long long>(__nvtune_grid.x) == (__nvtune_detail::ceildiv(__par0, 256LL)) && static_cast<long long>(__nvtune_grid.y) == (1LL) && static_cast<long long>(__nvtune_grid.z) == (1LL);
            if (__nvtune_is_baseline) {
            int __nvtune_device = 0;
            const int __nvtune_capability = __nvtune_detail::capability(&__nvtune_device);
            if (__nvtune_capability == 90) {
            static int __nvtune_limits[64];
            const ::dim3 __nvtune_launched = __nvtune_grid;
            const long long __nvtune_x = __nvtune_detail::ceildiv(__par0, 1024LL);
            const long long __nvtune_y = 1LL;
            const long long __nvtune_z = 1LL;
            __nvtune_grid = ::dim3(static_cast<unsigned>(__nvtune_x), static_cast<unsigned>(__nvtune_y), static_cast<unsigned>(__nvtune_z));
            const long long __nvtune_bytes = 0LL;
            if (__nvtune_bytes >= 0 && __nvtune_x >= 1 && __nvtune_x <= 2147483647LL && __nvtune_y >= 1 && __nvtune_y <= 65535LL && __nvtune_z >= 1 && __nvtune_z <= 65535LL && ((__par0 % 4 == 0) && (__par0 > 0)))
            while (__nvtune_detail::is_ready(__nvtune_limits, __nvtune_device, (&__nvtune_key_k__nvtune_90), ((char *)k), 256, -1, __nvtune_bytes, false)) {
            const bool __nvtune_needs_attribute = __nvtune_bytes > 49152 && cudaPeekAtLastError() == cudaSuccess;
            if (__cudaPushCallConfiguration(__nvtune_grid, ::dim3(128u, 2u, 1u), static_cast< ::size_t>(__nvtune_bytes), static_cast<struct CUstream_st *>(__nvtune_stream)) != 0) return;
            { __cudaLaunch((&__nvtune_key_k__nvtune_90), 0U); }
            if (!__nvtune_needs_attribute || !__nvtune_detail::is_lost(&__nvtune_limits[__nvtune_device], (&__nvtune_key_k__nvtune_90), __nvtune_bytes)) return;
            }
            __nvtune_grid = __nvtune_launched;
            }
            }
            if (__cudaPushCallConfiguration(__nvtune_grid, __nvtune_block, __nvtune_shared, static_cast<struct CUstream_st *>(__nvtune_stream)) != 0) return;
            }
        "#]].assert_eq(&text);
    }

    #[test]
    fn text_of_two_capabilities_and_launches_by_the_header() {
        let mut narrow = winner(80, &[]);
        narrow.launch = LaunchText { block: [64, 1, 1], grid: None, shared: "(__par0 * 4LL)".into() };
        narrow.carveout = Some(50);
        let all = Dispatch { accepts_winner_launches: true, ..dispatch(vec![narrow, winner(90, &[])]) };
        expect![[r#"

            { /* made by nvtune: chooses which entry of the kernel runs, and in which shape */
            ::dim3 __nvtune_grid(1), __nvtune_block(1);
            ::size_t __nvtune_shared = 0;
            void *__nvtune_stream = 0;
            if (__cudaPopCallConfiguration(&__nvtune_grid, &__nvtune_block, &__nvtune_shared, &__nvtune_stream) != cudaSuccess) return;
            const bool __nvtune_is_baseline = __nvtune_block.x == 256u && __nvtune_block.y == 1u && __nvtune_block.z == 1u && static_cast<long long>(__nvtune_shared) == (0LL) && static_cast<long long>(__nvtune_grid.x) == (__nvtune_detail::ceildiv(__par0, 256LL)) && static_cast<long long>(__nvtune_grid.y) == (1LL) && static_cast<long long>(__nvtune_grid.z) == (1LL);
            if (__nvtune_is_baseline || (__nvtune_block.x == 64u && __nvtune_block.y == 1u && __nvtune_block.z == 1u) || (__nvtune_block.x == 128u && __nvtune_block.y == 2u && __nvtune_block.z == 1u)) {
            int __nvtune_device = 0;
            const int __nvtune_capability = __nvtune_detail::capability(&__nvtune_device);
            if (__nvtune_capability == 80) {
            static int __nvtune_limits[64];
            const ::dim3 __nvtune_launched = __nvtune_grid;
            const long long __nvtune_bytes = (__par0 * 4LL);
            if (__nvtune_bytes >= 0 && (__nvtune_is_baseline || (__nvtune_block.x == 64u && __nvtune_block.y == 1u && __nvtune_block.z == 1u && static_cast<long long>(__nvtune_shared) == __nvtune_bytes)))
            while (__nvtune_detail::is_ready(__nvtune_limits, __nvtune_device, (&__nvtune_key_k__nvtune_80), ((char *)k), 64, 50, __nvtune_bytes, !__nvtune_is_baseline)) {
            const bool __nvtune_needs_attribute = __nvtune_bytes > 49152 && cudaPeekAtLastError() == cudaSuccess;
            if (__cudaPushCallConfiguration(__nvtune_grid, ::dim3(64u, 1u, 1u), static_cast< ::size_t>(__nvtune_bytes), static_cast<struct CUstream_st *>(__nvtune_stream)) != 0) return;
            { __cudaLaunch((&__nvtune_key_k__nvtune_80), 0U); }
            if (!__nvtune_needs_attribute || !__nvtune_detail::is_lost(&__nvtune_limits[__nvtune_device], (&__nvtune_key_k__nvtune_80), __nvtune_bytes)) return;
            }
            __nvtune_grid = __nvtune_launched;
            }
            if (__nvtune_capability == 90) {
            static int __nvtune_limits[64];
            const ::dim3 __nvtune_launched = __nvtune_grid;
            const long long __nvtune_x = __nvtune_detail::ceildiv(__par0, 1024LL);
            const long long __nvtune_y = 1LL;
            const long long __nvtune_z = 1LL;
            __nvtune_grid = ::dim3(static_cast<unsigned>(__nvtune_x), static_cast<unsigned>(__nvtune_y), static_cast<unsigned>(__nvtune_z));
            const long long __nvtune_bytes = 0LL;
            if (__nvtune_bytes >= 0 && __nvtune_x >= 1 && __nvtune_x <= 2147483647LL && __nvtune_y >= 1 && __nvtune_y <= 65535LL && __nvtune_z >= 1 && __nvtune_z <= 65535LL && (__nvtune_is_baseline || (__nvtune_block.x == 128u && __nvtune_block.y == 2u && __nvtune_block.z == 1u && static_cast<long long>(__nvtune_shared) == __nvtune_bytes && static_cast<long long>(__nvtune_launched.x) == __nvtune_x && static_cast<long long>(__nvtune_launched.y) == __nvtune_y && static_cast<long long>(__nvtune_launched.z) == __nvtune_z)))
            while (__nvtune_detail::is_ready(__nvtune_limits, __nvtune_device, (&__nvtune_key_k__nvtune_90), ((char *)k), 256, -1, __nvtune_bytes, !__nvtune_is_baseline)) {
            const bool __nvtune_needs_attribute = __nvtune_bytes > 49152 && cudaPeekAtLastError() == cudaSuccess;
            if (__cudaPushCallConfiguration(__nvtune_grid, ::dim3(128u, 2u, 1u), static_cast< ::size_t>(__nvtune_bytes), static_cast<struct CUstream_st *>(__nvtune_stream)) != 0) return;
            { __cudaLaunch((&__nvtune_key_k__nvtune_90), 0U); }
            if (!__nvtune_needs_attribute || !__nvtune_detail::is_lost(&__nvtune_limits[__nvtune_device], (&__nvtune_key_k__nvtune_90), __nvtune_bytes)) return;
            }
            __nvtune_grid = __nvtune_launched;
            }
            }
            if (__cudaPushCallConfiguration(__nvtune_grid, __nvtune_block, __nvtune_shared, static_cast<struct CUstream_st *>(__nvtune_stream)) != 0) return;
            }
        "#]].assert_eq(&all.text(CALL));
    }

    #[test]
    fn conditions_decide_where_the_launch_is_the_baselines() {
        let mut choices = String::new();
        for (accepts_winner_launches, reshapes) in [(false, true), (true, true), (true, false)] {
            choices += &choice(accepts_winner_launches, reshapes, &[]);
            choices += &choice(accepts_winner_launches, reshapes, &["A", "B"]);
        }
        expect![[r#"

            (A) && (B)
            __nvtune_is_baseline || (__nvtune_block.x == 128u && __nvtune_block.y == 2u && __nvtune_block.z == 1u && static_cast<long long>(__nvtune_shared) == __nvtune_bytes)
            __nvtune_is_baseline ? (A) && (B) : __nvtune_block.x == 128u && __nvtune_block.y == 2u && __nvtune_block.z == 1u && static_cast<long long>(__nvtune_shared) == __nvtune_bytes
            __nvtune_block.x == 128u && __nvtune_block.y == 2u && __nvtune_block.z == 1u && static_cast<long long>(__nvtune_shared) == __nvtune_bytes
            __nvtune_block.x == 128u && __nvtune_block.y == 2u && __nvtune_block.z == 1u && static_cast<long long>(__nvtune_shared) == __nvtune_bytes && (!__nvtune_is_baseline || ((A) && (B)))
        "#]].assert_eq(&choices);
    }

    #[test]
    fn baseline_is_compared_only_where_it_matters() {
        for (reshapes, conditions, compares) in [(true, &[][..], true), (false, &["A"], true), (false, &[], false)] {
            let winners = vec![winner(90, conditions)];
            let all = Dispatch { accepts_winner_launches: true, reshapes, ..dispatch(winners) };
            assert_eq!(all.text(CALL).contains("__nvtune_is_baseline"), compares, "{reshapes} {conditions:?}");
        }
    }

    #[test]
    fn dispatch_without_launches_for_winners_has_no_entries() {
        let all = dispatch(vec![winner(90, &[]), winner(80, &[]), winner(90, &[])]);
        assert_eq!(all.entries().into_iter().collect::<Vec<_>>(), ["k__nvtune_80", "k__nvtune_90"]);
        let no_launches = Dispatch { reshapes: false, ..all };
        assert!(no_launches.is_nothing() && no_launches.entries().is_empty());
        assert!(dispatch(Vec::new()).is_nothing());
    }
}
