//! Writes the C++ by which the launch stub of a kernel chooses an entry: nvcc's own, or a
//! winner's in the winner's shape.
//!
//! Every `<<<>>>` launch of a kernel, from any translation unit, calls one stub, which pops the
//! launch configuration that was pushed before. The text pops it first, and either pushes the
//! winner's and launches the winner, or pushes what it popped for the toolkit's own code behind
//! it. Launches that it does not recognize run as plain nvcc's do.

use crate::launch::Dim3;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The namespace of the functions that expressions of a stub call.
pub const DETAIL_NAMESPACE: &str = "__nvtune_detail::";

/// The functions that the text and its expressions call, for the head of a stub file.
pub(super) const RUNTIME: &str = include_str!("dispatch_runtime.h");

const DIMENSIONS: [&str; 3] = ["x", "y", "z"];

/// Says how the launches of one kernel choose among its entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// What a launch must be to be given to a winner.
    pub baseline: LaunchText,
    /// One for each compute capability that has a winner.
    pub winners: Vec<Winner>,
    /// Whether a launch in a winner's own shape (host code that launches by the header) runs
    /// that winner.
    pub accepts_winner_launches: bool,
    /// Whether launches of the baseline's shape are given to winners; else only the winners'
    /// own launches are.
    pub reshapes: bool,
}

/// Describes a launch by C++ expressions over the stub's parameters (`__par0`); all are `long
/// long`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchText {
    pub block: Dim3,
    /// By dimension.
    pub grid: [String; 3],
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
    /// C++ conditions on the arguments. All must hold where the winner runs in place of the
    /// baseline.
    pub conditions: Vec<String>,
    /// Percent of the shared memory, if the winner wants one.
    pub carveout: Option<u32>,
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

    /// Returns the statements to put before the stub's `__cudaLaunch`; `kernel` is what that
    /// launches, the kernel's host address.
    pub(super) fn text(&self, kernel: &str) -> String {
        let launch = |name: &str, launch: &LaunchText| {
            format!("const {DETAIL_NAMESPACE}Launch __nvtune_{name} = {};\n", launch.value())
        };
        let mut text =
            String::from("\n{ /* made by nvtune: chooses which entry of the kernel runs, and in which shape */\n");
        let _ = write!(
            text,
            "{}int __nvtune_device = 0;\nconst int __nvtune_capability = {DETAIL_NAMESPACE}capability(&__nvtune_device);\n",
            launch("baseline", &self.baseline)
        );
        for winner in &self.winners {
            let conditions =
                winner.conditions.iter().map(|condition| format!("({})", winner.launch.with_grid(condition)));
            let conditions = conditions.reduce(|left, right| format!("{left} && {right}")).unwrap_or("true".to_owned());
            let _ = write!(
                text,
                "if (__nvtune_capability == {}) {{\n{}if ({DETAIL_NAMESPACE}launch_winner(__nvtune_device, __args_arr, {}, {kernel}, {}, &__nvtune_baseline, &__nvtune_winner, {}, {}, {conditions})) return;\n}}\n",
                winner.capability,
                launch("winner", &winner.launch),
                key(&winner.entry),
                winner.carveout.map_or(-1, i64::from),
                self.reshapes,
                self.accepts_winner_launches,
            );
        }
        text + "}\n"
    }
}

impl LaunchText {
    /// Returns it as the value of a `Launch`.
    fn value(&self) -> String {
        let [x, y, z] = self.block;
        format!("{{{{{x}, {y}, {z}}}, {{{}}}, {}}}", self.grid.join(", "), self.with_grid(&self.shared))
    }

    /// Returns an expression with this launch's grid in place of its names.
    fn with_grid(&self, expression: &str) -> String {
        let blocks = DIMENSIONS.iter().zip(&self.grid);
        blocks.fold(expression.to_owned(), |text, (dimension, blocks)| {
            text.replace(&format!("__nvtune_grid.{dimension}"), &format!("({blocks})"))
        })
    }
}

/// Names the variable whose address stands for an entry in the runtime. It holds what is known
/// of the entry on each device.
///
/// It is data: linkers that fold identical code would give two functions one address.
pub(super) fn key(entry: &str) -> String {
    format!("__nvtune_key_{entry}")
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
        }
    }

    fn dispatch(winners: Vec<Winner>) -> Dispatch {
        Dispatch { baseline: launch([256, 1, 1], 256), winners, accepts_winner_launches: false, reshapes: true }
    }

    #[test]
    fn text_of_one_capability() {
        let text = dispatch(vec![winner(90, &["__par0 % 4 == 0", "__par0 > 0"])]).text(KERNEL);
        expect![[r#"

            { /* made by nvtune: chooses which entry of the kernel runs, and in which shape */
            const __nvtune_detail::Launch __nvtune_baseline = {{256, 1, 1}, {__nvtune_detail::ceildiv(__par0, 256LL), 1LL, 1LL}, 0LL};
            int __nvtune_device = 0;
            const int __nvtune_capability = __nvtune_detail::capability(&__nvtune_device);
            if (__nvtune_capability == 90) {
            const __nvtune_detail::Launch __nvtune_winner = {{128, 2, 1}, {__nvtune_detail::ceildiv(__par0, 1024LL), 1LL, 1LL}, 0LL};
            if (__nvtune_detail::launch_winner(__nvtune_device, __args_arr, __nvtune_key_k__nvtune_90, ((char *)k), -1, &__nvtune_baseline, &__nvtune_winner, true, false, (__par0 % 4 == 0) && (__par0 > 0))) return;
            }
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
            const __nvtune_detail::Launch __nvtune_baseline = {{256, 1, 1}, {__nvtune_detail::ceildiv(__par0, 256LL), 1LL, 1LL}, 0LL};
            int __nvtune_device = 0;
            const int __nvtune_capability = __nvtune_detail::capability(&__nvtune_device);
            if (__nvtune_capability == 80) {
            const __nvtune_detail::Launch __nvtune_winner = {{64, 1, 1}, {__nvtune_detail::ceildiv(__par0, 64LL), 1LL, 1LL}, ((__nvtune_detail::ceildiv(__par0, 64LL)) * 4LL)};
            if (__nvtune_detail::launch_winner(__nvtune_device, __args_arr, __nvtune_key_k__nvtune_80, ((char *)k), 50, &__nvtune_baseline, &__nvtune_winner, true, true, true)) return;
            }
            if (__nvtune_capability == 90) {
            const __nvtune_detail::Launch __nvtune_winner = {{128, 2, 1}, {__nvtune_detail::ceildiv(__par0, 1024LL), 1LL, 1LL}, 0LL};
            if (__nvtune_detail::launch_winner(__nvtune_device, __args_arr, __nvtune_key_k__nvtune_90, ((char *)k), -1, &__nvtune_baseline, &__nvtune_winner, true, true, true)) return;
            }
            }
        "#]].assert_eq(&all.text(KERNEL));
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
