//! The grids of all configurations -> an expression over the parameters that gives them.
//!
//! A record has numbers, and both formats want a rule. Invariant: the expression gives every recorded grid exactly. Expressions are
//! Python's, as the readers of T1 evaluate them.

use super::parameters::{Parameters, Setting};
use std::collections::BTreeMap;

/// The most parameters that a size is divided by: the block in x and the macros of a tile, say.
const MOST_DIVISORS: usize = 4;

/// The size of a grid in one dimension.
#[derive(Debug, PartialEq)]
pub enum LaunchSize {
    /// The problem's size over the product of these parameters, rounded up. None: the size itself.
    Quotient { problem: u64, divisors: Vec<String> },
    /// Any other rule.
    Expression(String),
}

impl LaunchSize {
    /// Finds the rule for these sizes, one for each configuration.
    pub fn new(parameters: &Parameters, sizes: &[u64]) -> Self {
        let numbers: Vec<(usize, Vec<u64>)> =
            (0..parameters.names.len()).filter_map(|index| Some((index, positive(parameters, index)?))).collect();
        let first = sizes.first().copied().unwrap_or(1);
        if sizes.iter().all(|&size| size == first) {
            return Self::Quotient { problem: first, divisors: Vec::new() };
        }
        if let Some((index, _)) = numbers.iter().find(|(_, values)| values == sizes) {
            return Self::Expression(parameters.names[*index].clone());
        }
        let mut subsets: Vec<Vec<usize>> = vec![Vec::new()];
        for place in 0..numbers.len() {
            let larger: Vec<Vec<usize>> = subsets
                .iter()
                .filter(|subset| subset.len() < MOST_DIVISORS)
                .map(|subset| [subset.as_slice(), &[place]].concat())
                .collect();
            subsets.extend(larger);
        }
        subsets.sort_by_key(Vec::len);
        for subset in subsets {
            let columns: Vec<&[u64]> = subset.iter().map(|&place| numbers[place].1.as_slice()).collect();
            if let Some(problem) = dividend(&columns, sizes) {
                let name = |&place: &usize| parameters.names[numbers[place].0].clone();
                return Self::Quotient { problem, divisors: subset.iter().map(name).collect() };
            }
        }
        Self::Expression(look_up(parameters, sizes))
    }

    /// The expression for the number of blocks.
    pub fn expression(&self) -> String {
        match self {
            Self::Quotient { problem, divisors } if divisors.is_empty() => problem.to_string(),
            Self::Quotient { problem, divisors } => {
                let divisor = divisors.join(" * ");
                format!("({problem} + {divisor} - 1) // ({divisor})")
            }
            Self::Expression(expression) => expression.clone(),
        }
    }
}

/// The values of a parameter, where all are numbers above 0.
fn positive(parameters: &Parameters, index: usize) -> Option<Vec<u64>> {
    let numbers = parameters.numbers(index)?;
    numbers.into_iter().map(|number| u64::try_from(number).ok().filter(|&number| number > 0)).collect()
}

/// The largest number that gives these sizes if it is divided by the columns' products and rounded up.
fn dividend(columns: &[&[u64]], sizes: &[u64]) -> Option<u64> {
    let (mut above, mut most) = (0, u64::MAX);
    for (index, &size) in sizes.iter().enumerate() {
        let divisor = columns.iter().try_fold(1_u64, |product, column| product.checked_mul(column[index]))?;
        above = above.max(size.checked_sub(1)?.checked_mul(divisor)?);
        most = most.min(size.checked_mul(divisor)?);
    }
    (above < most).then_some(most)
}

/// A table of the sizes by the fewest parameters that leaving out one by one finds.
fn look_up(parameters: &Parameters, sizes: &[u64]) -> String {
    let table = |key: &[usize]| {
        let mut table: BTreeMap<Vec<&Setting>, u64> = BTreeMap::new();
        let is_rule = sizes.iter().enumerate().all(|(index, &size)| {
            let row = parameters.row(index);
            *table.entry(key.iter().map(|&parameter| &row[parameter]).collect()).or_insert(size) == size
        });
        is_rule.then_some(table)
    };
    let mut key: Vec<usize> = (0..parameters.names.len()).collect();
    for parameter in 0..parameters.names.len() {
        let fewer: Vec<usize> = key.iter().copied().filter(|&other| other != parameter).collect();
        if table(&fewer).is_some() {
            key = fewer;
        }
    }
    let entry = |(settings, size): (Vec<&Setting>, u64)| format!("{}: {size}", tuple(&settings));
    let entries: Vec<String> = table(&key).into_iter().flatten().map(entry).collect();
    let names: Vec<&str> = key.iter().map(|&parameter| parameters.names[parameter].as_str()).collect();
    format!("{{{}}}[({},)]", entries.join(", "), names.join(", "))
}

/// Settings as a tuple of Python.
pub fn tuple(settings: &[&Setting]) -> String {
    let texts: Vec<String> = settings.iter().map(|&setting| serde_json::Value::from(setting).to_string()).collect();
    format!("({},)", texts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::dividend;

    #[test]
    fn dividend_is_one_that_gives_every_size() {
        let blocks = [32, 64, 128, 256];
        assert_eq!(dividend(&[&blocks], &[32, 16, 8, 4]), Some(1024));
        assert_eq!(dividend(&[&blocks], &[31, 16, 8, 4]), Some(992));
        assert_eq!(dividend(&[&blocks], &[32, 16, 9, 4]), None);
        assert_eq!(dividend(&[&blocks, &[1, 2, 1, 4]], &[32, 8, 8, 1]), Some(1024));
    }
}
