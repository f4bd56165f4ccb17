//! What each constant buys on every space -> a table in Markdown.

use super::Ablated;
use crate::judge::{FIRST, Losses, rows};
use nvtune::model::CONSTANTS;
use std::collections::BTreeMap;

/// The measures: each with its name, its value, and the factor and decimals with which it is printed.
type Measure = (&'static str, fn(&Losses) -> f64, f64, usize);
const MEASURES: [Measure; 3] = [
    ("order", |losses| losses.order, 1.0, 4),
    ("first candidates (%)", |losses| losses.first, 100.0, 2),
    ("single choice (%)", |losses| losses.choice, 100.0, 2),
];

/// A kernel whose order gets worse by more than this on every GPU needs the constant.
const NEEDED: f64 = 0.01;

/// What the loss of a measure grows by without a constant, over all kernels.
struct Growth {
    mean: f64,
    /// 1.96 standard errors of the mean.
    noise: f64,
}

impl Growth {
    fn new(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        Self { mean, noise: 1.96 * (variance / count).sqrt() }
    }
}

pub fn text(ablated: &[Ablated]) -> String {
    let mut kernels: BTreeMap<&str, Vec<&Ablated>> = BTreeMap::new();
    for space in ablated {
        kernels.entry(&space.kernel).or_default().push(space);
    }
    let mut table = vec![["constant", "value", "neutral", "unit", "source", "kernels"].map(str::to_owned).to_vec()];
    table[0].extend(MEASURES.iter().map(|(name, ..)| (*name).to_owned()));
    table[0].extend(["most".to_owned(), "verdict".to_owned()]);
    for (place, constant) in CONSTANTS.iter().enumerate() {
        // By kernel and GPU: what the loss grows by.
        let growths = |part: fn(&Losses) -> f64| {
            let growth =
                move |space: &&Ablated| space.without[place].map_or(0.0, |losses| part(&losses) - part(&space.losses));
            kernels.values().map(move |spaces| spaces.iter().map(growth).collect::<Vec<f64>>()).collect::<Vec<_>>()
        };
        let changed =
            kernels.values().filter(|spaces| spaces.iter().any(|space| space.without[place].is_some())).count();
        let mut row = vec![
            format!("`{}`", constant.name),
            number(constant.value),
            number(constant.neutral),
            constant.unit.to_owned(),
            constant.source.to_owned(),
            changed.to_string(),
        ];
        let (mut buys, mut costs) = (false, false);
        for (_, part, factor, decimals) in MEASURES {
            let by_kernel: Vec<f64> =
                growths(part).iter().map(|spaces| spaces.iter().sum::<f64>() / spaces.len() as f64).collect();
            let Growth { mean, noise } = Growth::new(&by_kernel);
            buys |= mean > noise;
            costs |= mean < -noise;
            row.push(format!("{:+.decimals$} ± {:.decimals$}", factor * mean, factor * noise));
        }
        let least =
            growths(|losses| losses.order).into_iter().map(|spaces| spaces.into_iter().fold(f64::INFINITY, f64::min));
        let most = least.zip(kernels.keys()).max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(most, _)| *most > 0.0);
        row.push(most.map_or("-".to_owned(), |(most, kernel)| format!("{kernel} {most:+.3}")));
        let is_needed = most.is_some_and(|(most, _)| most > NEEDED);
        let verdict = match (buys, costs) {
            _ if changed == 0 => "not exercised",
            (true, true) => "mixed",
            (true, false) => "buys",
            (false, true) => "costs",
            (false, false) if is_needed => "buys for a kernel",
            (false, false) => "within noise",
        };
        row.push(verdict.to_owned());
        table.push(row);
    }
    let spaces = ablated.len();
    format!(
        "What the model alone loses on {spaces} recorded spaces of {} kernels if a constant has its neutral value, the one with which \
         its term vanishes. *Kernels*: those with a prediction that changes. *Order*: by how much Kendall's tau between predicted and \
         recorded time falls. *First candidates*, *single choice*: by how many percent of the best time the best of the first {FIRST} \
         candidates, and the model's single choice, get slower. Each is a mean over the kernels (of a kernel, over its GPUs) with its \
         noise, 1.96 standard errors of that mean. *Most*: the kernel whose tau falls most on every GPU.\n\n\
         A constant *buys* if a loss grows by more than its noise, or *buys for a kernel* if the tau of one falls by more than \
         {NEEDED} on every GPU; it *costs* if a loss falls by more than its noise. One that is neither has its \
         reason to stay in its source.\n\n{}",
        kernels.len(),
        rows(&table)
    )
}

fn number(value: f64) -> String {
    if value.is_finite() { format!("{}", (value * 1e4).round() / 1e4) } else { "infinite".to_owned() }
}
