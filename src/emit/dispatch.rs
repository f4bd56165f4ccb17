//! Writes the C++ by which the launch stub of a kernel chooses an entry: nvcc's own, or a
//! winner's in the winner's shape (grid and block).
//!
//! In: a [`Dispatch`]. Out: C++ statements for the stub. Every `<<<>>>` launch of a kernel, from
//! any translation unit, calls one stub, which pops the launch configuration that was pushed
//! before. The statements pop it, and launch the winner in its own shape, or the kernel in the
//! shape that the program asked for. They return before the toolkit's own code for that.

use crate::launch::{Dim3, GridLimit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The namespace of the functions that expressions of a stub call.
pub const DETAIL_NAMESPACE: &str = "__nvtune_detail::";

const RUNTIME: &str = include_str!("dispatch_runtime.h");
/// Enables the part of the runtime that compares clusters.
const CLUSTERS: &str = "#define __NVTUNE_CLUSTERS\n";
/// Enables the part of the runtime that adds an argument.
const COARSENED: &str = "#define __NVTUNE_COARSENED\n";

/// Returns the functions that the statements and their expressions call, for the head of a stub
/// file with these dispatches.
pub(super) fn runtime(dispatches: &[&Dispatch]) -> String {
    let clusters = if any_winner(dispatches, |winner| winner.is_clustered) { CLUSTERS } else { "" };
    let coarsened = if any_winner(dispatches, Winner::is_coarsened) { COARSENED } else { "" };
    format!("{clusters}{coarsened}{RUNTIME}")
}

/// Returns the words of each entry's key in a stub file with these dispatches.
pub(super) fn key_words(dispatches: &[&Dispatch]) -> usize {
    if any_winner(dispatches, Winner::is_coarsened) { 65 + 64 } else { 65 }
}

fn any_winner(dispatches: &[&Dispatch], is_such: impl Fn(&Winner) -> bool) -> bool {
    dispatches.iter().flat_map(|dispatch| &dispatch.winners).any(is_such)
}

const DIMENSIONS: [&str; 3] = ["x", "y", "z"];

/// Bits of `Winner::replaced` in `dispatch_runtime.h`: launches in the baseline's shape, in the
/// winner's, and in a shape that is both.
const BASELINE_SHAPE: u32 = 1 << 1;
const WINNER_SHAPE: u32 = 1 << 2;
const BOTH_SHAPES: u32 = 1 << 3;

/// How the launches of one kernel choose among its entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// The launch that winners replace.
    pub baseline: LaunchText,
    /// One for each compute capability that has a winner.
    pub winners: Vec<Winner>,
    /// Whether a launch in a winner's own shape (host code that launches by the header) runs
    /// that winner.
    pub accepts_winner_launches: bool,
    /// Whether launches in the baseline's shape run winners; else only launches in a winner's
    /// own shape do.
    pub reshapes: bool,
}

/// A launch as C++ expressions over the stub's parameters (`__par0`); all are `long long`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchText {
    pub block: Dim3,
    /// By dimension.
    pub grid: [String; 3],
    /// Bytes of dynamic shared memory. `__nvtune_grid` is the grid of this launch.
    pub shared: String,
}

/// The winner's entry for one compute capability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Winner {
    /// `90`: devices of exactly this compute capability run it.
    pub capability: u32,
    /// Its name in the PTX.
    pub entry: String,
    pub launch: LaunchText,
    /// C++ conditions on the arguments: the winner runs in place of the baseline only if all
    /// hold.
    pub conditions: Vec<String>,
    /// Preferred shared-memory carve-out in percent, if the winner has one.
    pub carveout: Option<u32>,
    /// How many blocks of the program's grid, in x, one of the winner's blocks does the work of.
    pub coarsening: u32,
    /// Whether the winner or the kernel is launched in clusters.
    pub is_clustered: bool,
}

impl Winner {
    fn is_coarsened(&self) -> bool {
        self.coarsening > 1
    }
}

impl Dispatch {
    /// Returns whether no launch can run a winner, so that the stub may stay plain nvcc's.
    pub fn is_unused(&self) -> bool {
        self.winners.is_empty() || !(self.reshapes || self.accepts_winner_launches)
    }

    /// Returns the names of the entries that launches can run, each once.
    pub fn entries(&self) -> BTreeSet<&str> {
        let winners = if self.is_unused() { &[] } else { self.winners.as_slice() };
        winners.iter().map(|winner| winner.entry.as_str()).collect()
    }

    /// Returns the launches that a winner replaces, as bits for the runtime. Launches in the
    /// baseline's shape are replaced only if the `conditions` on the arguments hold; a launch in
    /// the winner's own shape that is not the baseline's does not need them.
    fn replaced_launches(&self, conditions: bool) -> u32 {
        let mut launches = 0;
        if self.reshapes && conditions {
            launches |= BASELINE_SHAPE | BOTH_SHAPES;
        }
        if self.accepts_winner_launches {
            launches |= WINNER_SHAPE | if conditions { BOTH_SHAPES } else { 0 };
        }
        launches
    }

    /// Returns the statements to insert before the stub's `__cudaLaunch`. `kernel` is that call's
    /// first argument, the kernel's host address. The entries are numbered from `first_key` on,
    /// in the order of [`Self::entries`] (see [`entry_key`]).
    pub(super) fn text(&self, kernel: &str, first_key: usize) -> String {
        let entries = self.entries();
        let winners = self.winners.iter().map(|winner| {
            let conditions =
                winner.conditions.iter().map(|condition| format!("({})", winner.launch.with_grid(condition)));
            let conditions = conditions.reduce(|left, right| format!("{left} && {right}"));
            let replaced = match (conditions, self.replaced_launches(true), self.replaced_launches(false)) {
                (Some(conditions), all, own) if all != own => format!("{conditions} ? {all}U : {own}U"),
                (_, all, _) => format!("{all}U"),
            };
            let number = first_key + entries.iter().take_while(|&&entry| entry != winner.entry).count();
            let carveout = winner.carveout.map_or(-1, i64::from);
            format!(
                "{{{}, {}, {}, {carveout}, {}U, {replaced}}}",
                winner.launch.value(),
                entry_key(number),
                winner.capability,
                winner.coarsening
            )
        });
        // `__nvtune_arguments` has room for one argument more than the kernel's, also where no
        // winner needs it: host compilers warn of what follows a null pointer that is passed.
        format!(
            "\n{{ /* made by nvtune: chooses which entry of the kernel runs, and in which shape */\nconst {DETAIL_NAMESPACE}Launch __nvtune_baseline = {};\nconst {DETAIL_NAMESPACE}Winner __nvtune_winners[] = {{\n{}}};\nvoid *__nvtune_arguments[sizeof(__args_arr) / sizeof(*__args_arr) + 1];\n__nvtune_launch(__args_arr, __args_idx, __nvtune_arguments, {kernel}, &__nvtune_baseline, __nvtune_winners, {});\nreturn;\n}}\n",
            self.baseline.value(),
            winners.collect::<Vec<_>>().join(",\n"),
            self.winners.len(),
        )
    }
}

impl LaunchText {
    /// Returns the condition that the grid of this launch is within a limit.
    pub fn condition(&self, limit: GridLimit) -> String {
        let [x, y, z] = self.grid.each_ref().map(|blocks| format!("{DETAIL_NAMESPACE}blocks({blocks})"));
        let (relation, blocks) = match limit {
            GridLimit::AtLeast(least) => (">=", least),
            GridLimit::AtMost(most) => ("<=", most),
        };
        format!("1ULL * {x} * {y} * {z} {relation} {blocks}ULL")
    }

    /// Returns the initializer of the runtime's `Launch`.
    fn value(&self) -> String {
        let [x, y, z] = self.block;
        let grid = self.grid.each_ref().map(|blocks| format!("{DETAIL_NAMESPACE}blocks({blocks})"));
        let shared = self.with_grid(&self.shared);
        format!("{{{{{}}}, {{{x}, {y}, {z}}}, static_cast< ::size_t>({shared})}}", grid.join(", "))
    }

    /// Returns an expression with this launch's grid in place of `__nvtune_grid.x`, `.y` and `.z`.
    fn with_grid(&self, expression: &str) -> String {
        let blocks = DIMENSIONS.iter().zip(&self.grid);
        blocks.fold(expression.to_owned(), |text, (dimension, blocks)| {
            text.replace(&format!("__nvtune_grid.{dimension}"), &format!("({blocks})"))
        })
    }
}

/// The name of the variable whose address is the entry's key in the CUDA runtime, as a host
/// function's address is a kernel's; by the entry's number in its stub file. The variable holds
/// what is known of the entry on each device.
///
/// It is data, because linkers that fold identical code would give two functions one address.
/// It has a number, because names of templates have hundreds of characters.
pub(super) fn entry_key(number: usize) -> String {
    format!("__nvtune_key_{number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const KERNEL: &str = "((char *)k)";

    fn launch(block: Dim3, threads: u32) -> LaunchText {
        let grid = [format!("__nvtune_detail::ceildiv(__par0, {threads}LL)"), "1LL".into(), "1LL".into()];
        LaunchText { block, grid, shared: "0LL".into() }
    }

    fn winner(capability: u32, conditions: &[&str]) -> Winner {
        Winner {
            capability,
            entry: format!("k__nvtune_{capability}"),
            launch: launch([128, 2, 1], 1024),
            conditions: conditions.iter().map(|&condition| condition.to_owned()).collect(),
            carveout: None,
            coarsening: 1,
            is_clustered: false,
        }
    }

    fn dispatch(winners: Vec<Winner>) -> Dispatch {
        Dispatch { baseline: launch([256, 1, 1], 256), winners, accepts_winner_launches: false, reshapes: true }
    }

    #[test]
    fn text_of_one_capability() {
        let text = dispatch(vec![winner(90, &["__par0 % 4 == 0", "__par0 > 0"])]).text(KERNEL, 7);
        expect![[r#"

            { /* made by nvtune: chooses which entry of the kernel runs, and in which shape */
            const __nvtune_detail::Launch __nvtune_baseline = {{__nvtune_detail::blocks(__nvtune_detail::ceildiv(__par0, 256LL)), __nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL)}, {256, 1, 1}, static_cast< ::size_t>(0LL)};
            const __nvtune_detail::Winner __nvtune_winners[] = {
            {{{__nvtune_detail::blocks(__nvtune_detail::ceildiv(__par0, 1024LL)), __nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL)}, {128, 2, 1}, static_cast< ::size_t>(0LL)}, __nvtune_key_7, 90, -1, 1U, (__par0 % 4 == 0) && (__par0 > 0) ? 10U : 0U}};
            void *__nvtune_arguments[sizeof(__args_arr) / sizeof(*__args_arr) + 1];
            __nvtune_launch(__args_arr, __args_idx, __nvtune_arguments, ((char *)k), &__nvtune_baseline, __nvtune_winners, 1);
            return;
            }
        "#]].assert_eq(&text);
    }

    #[test]
    fn text_of_two_capabilities_and_launches_by_the_header() {
        let mut narrow = winner(80, &[]);
        narrow.launch = LaunchText { shared: "(__nvtune_grid.x * 4LL)".into(), ..launch([64, 1, 1], 64) };
        narrow.carveout = Some(50);
        let all = Dispatch { accepts_winner_launches: true, ..dispatch(vec![narrow, winner(90, &[])]) };
        expect![[r#"

            { /* made by nvtune: chooses which entry of the kernel runs, and in which shape */
            const __nvtune_detail::Launch __nvtune_baseline = {{__nvtune_detail::blocks(__nvtune_detail::ceildiv(__par0, 256LL)), __nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL)}, {256, 1, 1}, static_cast< ::size_t>(0LL)};
            const __nvtune_detail::Winner __nvtune_winners[] = {
            {{{__nvtune_detail::blocks(__nvtune_detail::ceildiv(__par0, 64LL)), __nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL)}, {64, 1, 1}, static_cast< ::size_t>(((__nvtune_detail::ceildiv(__par0, 64LL)) * 4LL))}, __nvtune_key_7, 80, 50, 1U, 14U},
            {{{__nvtune_detail::blocks(__nvtune_detail::ceildiv(__par0, 1024LL)), __nvtune_detail::blocks(1LL), __nvtune_detail::blocks(1LL)}, {128, 2, 1}, static_cast< ::size_t>(0LL)}, __nvtune_key_8, 90, -1, 1U, 14U}};
            void *__nvtune_arguments[sizeof(__args_arr) / sizeof(*__args_arr) + 1];
            __nvtune_launch(__args_arr, __args_idx, __nvtune_arguments, ((char *)k), &__nvtune_baseline, __nvtune_winners, 2);
            return;
            }
        "#]].assert_eq(&all.text(KERNEL, 7));
    }

    #[test]
    fn dispatch_without_launches_for_winners_has_no_entries() {
        let all = dispatch(vec![winner(90, &[]), winner(80, &[]), winner(90, &[])]);
        assert_eq!(all.entries().into_iter().collect::<Vec<_>>(), ["k__nvtune_80", "k__nvtune_90"]);
        let no_launches = Dispatch { reshapes: false, ..all };
        assert!(no_launches.is_unused() && no_launches.entries().is_empty());
        assert!(dispatch(Vec::new()).is_unused());
    }
}
