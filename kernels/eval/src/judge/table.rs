//! What was found on every kernel -> tables in Markdown, aligned so that they read as well on a terminal.

use super::judged::{FIRST, Found, Judged, METRICS, SETS};
use nvtune::settings::Strategy;

/// What counts as near the best.
const NEAR: f64 = 0.01;

/// The tables of every kernel and over all of them, for each GPU.
pub fn text(judged: &[Judged]) -> String {
    let mut devices: Vec<&str> = Vec::new();
    for kernel in judged {
        if !devices.contains(&kernel.device.as_str()) {
            devices.push(&kernel.device);
        }
    }
    let of_each = devices.into_iter().map(|device| {
        let its_own: Vec<Judged> = judged.iter().filter(|kernel| kernel.device == device).cloned().collect();
        format!("## {device}\n\n{}", of_device(&its_own))
    });
    of_each.collect::<Vec<_>>().join("\n")
}

fn of_device(judged: &[Judged]) -> String {
    let mut text = String::from(
        "Each strategy's cell: regret (points timed, share of the space). *Best* is the best of the space over the default.\n\n",
    );
    text.push_str(&rows(&strategies(judged)));
    text.push_str("\nOver all kernels:\n\n");
    text.push_str(&rows(&strategies_over_all(judged)));
    text.push_str(&format!(
        "\nThe model alone: how far from the best of the space are the best of PO's Pareto set, the best of the first {FIRST} \
         candidates, and the single predicted choice; that choice's speed over the default's, and that of the choice among {SETS} sets \
         of macros that lie far apart; Kendall's tau between each metric \
         and time (1 is a perfect order).\n\n",
    ));
    text.push_str(&rows(&model(judged)));
    text
}

fn strategies(judged: &[Judged]) -> Vec<Vec<String>> {
    let mut table = vec![vec![
        "kernel".to_owned(),
        "configurations".to_owned(),
        "points".to_owned(),
        "default us".to_owned(),
        "best".to_owned(),
    ]];
    table[0].extend(Strategy::ALL.iter().map(|(name, _)| (*name).to_owned()).chain([few()]));
    for kernel in judged {
        let mut row = vec![
            kernel.kernel.clone(),
            kernel.configurations.to_string(),
            format!("{}{}", kernel.points, if kernel.sampled { " (sample)" } else { "" }),
            format!("{:.1}", kernel.baseline_us),
            format!("{:.3}x", kernel.baseline_us / kernel.best_us),
        ];
        row.extend(kernel.found.iter().chain([&kernel.few]).map(|found| {
            format!("{} ({}, {})", percent(found.regret), found.timed, share(found.timed, kernel.points))
        }));
        table.push(row);
    }
    table
}

fn strategies_over_all(judged: &[Judged]) -> Vec<Vec<String>> {
    let names = [
        "strategy",
        "regret: median",
        "worst",
        "within 1%",
        "within 5%",
        "speed (geometric mean)",
        "share: median",
        "largest",
        "of all configurations (geometric mean)",
    ];
    let mut table = vec![names.map(str::to_owned).to_vec()];
    let all = Strategy::ALL.into_iter().enumerate().map(|(place, (name, _))| (name.to_owned(), Some(place)));
    for (name, place) in all.chain([(few(), None)]) {
        let of = |kernel: &Judged| place.map_or(Some(kernel.few), |place| kernel.found.get(place).copied());
        let found: Vec<(&Judged, Found)> = judged.iter().filter_map(|kernel| Some((kernel, of(kernel)?))).collect();
        let regrets: Vec<f64> = found.iter().map(|(_, found)| found.regret).collect();
        let speeds: Vec<f64> = found.iter().map(|(_, found)| found.speed).collect();
        let share = |count: usize, kernel: &Judged| count as f64 / kernel.points.max(1) as f64;
        let shares: Vec<f64> = found.iter().map(|(kernel, found)| share(found.timed, kernel)).collect();
        let spaces: Vec<f64> =
            found.iter().map(|(kernel, found)| found.timed as f64 / kernel.configurations.max(1) as f64).collect();
        let within = |limit: f64| regrets.iter().filter(|regret| **regret <= limit).count();
        table.push(vec![
            name,
            percent(median(&regrets)),
            percent(most(&regrets)),
            format!("{} of {}", within(NEAR), regrets.len()),
            format!("{} of {}", within(0.05), regrets.len()),
            format!("{:.3}x", geometric_mean(&speeds)),
            percent(median(&shares)),
            percent(most(&shares)),
            percent(geometric_mean(&spaces)),
        ]);
    }
    table
}

/// The default strategy where it may time few configurations.
fn few() -> String {
    format!("{} of {FIRST}", Strategy::default())
}

fn model(judged: &[Judged]) -> Vec<Vec<String>> {
    let first = format!("first {FIRST}");
    let screened = format!("of {SETS} sets");
    let names = ["kernel", "PO set", first.as_str(), "predicted", "its speed", screened.as_str()];
    let mut table = vec![names.iter().chain(&METRICS).map(|name| (*name).to_owned()).collect::<Vec<_>>()];
    for kernel in judged {
        let mut row = vec![kernel.kernel.clone()];
        row.extend([kernel.pareto, kernel.first, kernel.predicted].map(percent));
        let speed = |speed: Option<f64>| speed.map_or("refused".to_owned(), |speed| format!("{speed:.3}x"));
        row.extend([kernel.predicted_speed, kernel.screened_speed].map(speed));
        row.extend(kernel.tau.map(|tau| format!("{tau:.2}")));
        table.push(row);
    }
    let near = |of: fn(&Judged) -> f64| {
        let count = judged.iter().filter(|kernel| of(kernel) <= NEAR).count();
        format!("{count} of {}", judged.len())
    };
    let mut last = vec!["within 1%; mean".to_owned()];
    last.extend([near(|kernel| kernel.pareto), near(|kernel| kernel.first), near(|kernel| kernel.predicted)]);
    let mean = |of: fn(&Judged) -> Option<f64>| {
        let speeds: Vec<f64> = judged.iter().filter_map(of).collect();
        let refused = judged.len() - speeds.len();
        let besides = if refused > 0 { format!(" ({refused} refused)") } else { String::new() };
        format!("{:.3}x{besides}", geometric_mean(&speeds))
    };
    last.extend([mean(|kernel| kernel.predicted_speed), mean(|kernel| kernel.screened_speed)]);
    last.extend((0..METRICS.len()).map(|metric| {
        let sum: f64 = judged.iter().map(|kernel| kernel.tau[metric]).sum();
        format!("{:.2}", sum / judged.len() as f64)
    }));
    table.push(last);
    table
}

/// A Markdown table: the first column to the left, the others to the right.
pub(crate) fn rows(table: &[Vec<String>]) -> String {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| {
        table.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in table.iter().enumerate() {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            text.push_str(&if column == 0 { format!("| {cell}{padding} |") } else { format!(" {padding}{cell} |") });
        }
        text.push('\n');
        if number == 0 {
            for (column, &width) in widths.iter().enumerate() {
                let line = "-".repeat(width - 1);
                text.push_str(&if column == 0 { format!("| {line}- |") } else { format!(" {line}: |") });
            }
            text.push('\n');
        }
    }
    text
}

fn percent(value: f64) -> String {
    if value.is_finite() { format!("{:.2}%", 100.0 * value) } else { "-".to_owned() }
}

fn share(part: usize, whole: usize) -> String {
    format!("{:.0}%", 100.0 * part as f64 / whole.max(1) as f64)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NAN, f64::max)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { at(middle) } else { (at(middle.wrapping_sub(1)) + at(middle)) / 2.0 }
}

fn geometric_mean(values: &[f64]) -> f64 {
    (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
}
