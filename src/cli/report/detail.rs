//! One kernel in detail: the decision, and its configurations in a table.

use super::rows::{Row, format_share};
use crate::cli::wrap::wrapped;
use crate::record::Decision;
use crate::search::Provenance;
use std::collections::HashSet;

/// Rows shown of a space: the winner, the baseline and the best of the others.
const ROWS: usize = 12;

/// What some of the columns are, by [`crate::model`] and [`crate::search`].
const LEGEND: &str = "T: further threads that would fit on an SM; C: estimated cycles of one thread. Less of both is better (PO of Liang et al., ASP-DAC 2013).";
const PROMISED: &str = "promised: the expected gain over the baseline, averaged over the possible errors of the model, which chooses by it; predicted: the time in us.";

/// Blanks before what follows a line break within a line that is too long.
const INDENT: usize = 6;

/// Returns the details of kernels, each with its row, in lines of at most `columns`.
pub fn details(kernels: &[(Row, &Decision)], columns: Option<usize>) -> String {
    let mut text: String = kernels.iter().map(|(row, decision)| decision_detail(row, decision)).collect();
    let promised = kernels.iter().any(|(_, decision)| has_promises(decision));
    for legend in [promised.then_some(PROMISED), (!kernels.is_empty()).then_some(LEGEND)].into_iter().flatten() {
        text.push_str(&format!("{legend}\n"));
    }
    wrapped(&text, INDENT, columns)
}

fn decision_detail(row: &Row, decision: &Decision) -> String {
    let source = &row.source;
    let device = decision.device.as_ref().map_or("no GPU", |device| device.name.as_str());
    let mut text = format!(
        "{} ({source}, {}, {device}): {}, {:.2}x over the baseline\n",
        decision.name, decision.architecture, decision.provenance, decision.speedup
    );
    text.push_str(&format!(
        "  {} points, {} distinct machine codes, {} timed by {}; compile {:.2} s, model {:.2} s, measure {:.2} s\n",
        decision.points,
        decision.variants.len(),
        decision.timed,
        decision.strategy,
        decision.seconds.compile,
        decision.seconds.model,
        decision.seconds.measure
    ));
    text.push_str(&limiting_factors(decision));
    if row.gpu_share.is_some() {
        text.push_str(&format!("  {} of the recorded GPU time\n", format_share(row.gpu_share)));
    }
    if let Some(tolerance) = &decision.tolerance {
        let winner = decision.configurations.get(decision.winner).and_then(|row| row.timing.as_ref());
        let used = match winner.and_then(|timing| timing.tolerance_used) {
            None => String::new(),
            Some(0.0) => ": no number differs".to_owned(),
            Some(used) if used < 1e-4 => ": the largest difference takes less than 0.01% of that".to_owned(),
            Some(used) => format!(": the largest difference takes {:.2}% of that", 100.0 * used),
        };
        text.push_str(&format!("  the winner's results are within {tolerance} of the baseline's{used}\n"));
    }
    if decision.provenance == Provenance::Locked && !has_numbers(decision) {
        text.push_str(&locked_rows(decision));
        return text + &decision_notes(decision);
    }
    let promised = if has_promises(decision) { "  promised" } else { "" };
    text.push_str(&format!("    time us  predicted{promised}  regs  occupancy      T        C  configuration\n"));
    let mut shown: Vec<usize> = (0..decision.configurations.len()).collect();
    shown.sort_by(|&a, &b| decision.configurations[a].compare(&decision.configurations[b]));
    // Configurations with the same machine code and launch are one point: the first of them is
    // shown.
    let point = |index: usize| (decision.configurations[index].variant, decision.configurations[index].launch);
    let mut seen = HashSet::from([point(decision.winner), point(decision.baseline)]);
    shown.retain(|&index| seen.insert(point(index)));
    shown.truncate(ROWS);
    shown.insert(0, decision.baseline);
    if decision.winner != decision.baseline {
        shown.insert(0, decision.winner);
    }
    for index in shown {
        text.push_str(&detail_row(decision, index));
    }
    text + &decision_notes(decision)
}

/// Returns what the user should know about the decision as a whole.
fn decision_notes(decision: &Decision) -> String {
    let notes = decision.all_held().chain(decision.notes.iter().cloned());
    notes.map(|note| format!("  note: {note}\n")).collect()
}

/// Whether a table would have anything but dashes.
fn has_numbers(decision: &Decision) -> bool {
    decision.configurations.iter().any(|row| row.timing.is_some() || row.score.is_some())
}

/// Winner and baseline of a lock file's entry, which has neither times nor scores.
fn locked_rows(decision: &Decision) -> String {
    let row = |name: &str, index: usize| format!("  {name:8}  {}\n", decision.configurations[index].configuration);
    let winner = (decision.winner != decision.baseline).then(|| row("winner", decision.winner));
    let rest =
        "  a lock file has neither times nor scores; `nvtune tune --anew` times all again, and the cache keeps that\n";
    winner.unwrap_or_default() + &row("baseline", decision.baseline) + rest
}

/// What bounds the predicted times of winner and baseline; nothing where the model does not
/// know them.
fn limiting_factors(decision: &Decision) -> String {
    let of = |index: usize| Some(decision.configurations.get(index)?.score?.bottleneck);
    match (of(decision.winner), of(decision.baseline)) {
        (Some(winner), Some(baseline)) if decision.winner != decision.baseline => {
            format!("  predicted to be bound by {winner}; the baseline by {baseline}\n")
        }
        (_, Some(baseline)) => format!("  the baseline is predicted to be bound by {baseline}\n"),
        (Some(winner), None) => format!("  predicted to be bound by {winner}\n"),
        (None, None) => String::new(),
    }
}

/// Whether the model chose, by what it promises.
fn has_promises(decision: &Decision) -> bool {
    decision.configurations.iter().any(|found| found.promised.is_some())
}

fn detail_row(decision: &Decision, index: usize) -> String {
    let configuration = &decision.configurations[index];
    let mark = match index {
        _ if index == decision.winner => " <- winner",
        _ if index == decision.baseline => " <- baseline",
        _ => "",
    };
    let measured = configuration.timing.as_ref().map_or("-".to_owned(), |timing| format!("{:.2}", timing.median_us));
    let promised = match configuration.promised {
        _ if !has_promises(decision) => String::new(),
        Some(gain) => format!("  {:>8}", format!("{gain:.2}x")),
        None => format!("  {:>8}", "-"),
    };
    let score = match &configuration.score {
        Some(score) => format!(
            "{:>9.2}{promised}  {:>4}  {:>9.3}  {:>5.0}  {:>7.0}",
            score.predicted_us, score.registers, score.occupancy, score.t, score.c
        ),
        None => format!("{:>9}{promised}  {:>4}  {:>9}  {:>5}  {:>7}", "-", "-", "-", "-", "-"),
    };
    let refused = configuration.refused.as_ref().map(|reason| format!(" (refused: {reason})")).unwrap_or_default();
    format!("  {measured:>9}  {score}  {}{mark}{refused}\n", configuration.configuration)
}
