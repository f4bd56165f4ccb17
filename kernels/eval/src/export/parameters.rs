//! Configurations -> the tuning parameters of their space, by names that other tuners use.

use nvtune::launch::{Configuration, DIMENSIONS};
use nvtune::record::RecordedSpace;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};

/// The word for options that are left to the compiler.
const NONE: &str = "none";

/// A value, as both formats write it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Setting {
    Number(i64),
    Word(String),
}

impl From<&Setting> for Value {
    fn from(setting: &Setting) -> Self {
        match setting {
            Setting::Number(number) => (*number).into(),
            Setting::Word(word) => word.as_str().into(),
        }
    }
}

/// The parameters of a space. A parameter that no configuration sets is not among them, except the block's width.
pub struct Parameters {
    /// In the order of [`Parameters::row`].
    pub names: Vec<String>,
    /// The settings of each configuration, in the order of `names`.
    rows: Vec<Vec<Setting>>,
}

impl Parameters {
    pub fn new(space: &RecordedSpace) -> Self {
        let configurations = || space.configurations.iter().map(|found| &found.configuration);
        let mut columns: Vec<(String, Vec<Setting>)> = Vec::new();
        for (name, neutral, setting) in launch_parameters() {
            let column: Vec<Setting> = configurations().map(setting).collect();
            if neutral.is_none_or(|neutral| column.iter().any(|setting| *setting != neutral)) {
                columns.push((name, column));
            }
        }
        let macros: BTreeMap<&String, ()> =
            configurations().flat_map(|found| found.macros.keys()).map(|name| (name, ())).collect();
        for name in macros.into_keys() {
            let value = |found: &Configuration| Setting::Number(found.macros.get(name).copied().unwrap_or_default());
            // The source's macro keeps its name.
            columns.iter_mut().filter(|(known, _)| known == name).for_each(|(known, _)| known.insert_str(0, "nvtune_"));
            columns.push((name.clone(), configurations().map(value).collect()));
        }
        let rows = (0..space.configurations.len())
            .map(|index| columns.iter().map(|(_, column)| column[index].clone()).collect())
            .collect();
        Self { names: columns.into_iter().map(|(name, _)| name).collect(), rows }
    }

    /// The settings of a configuration.
    pub fn row(&self, configuration: usize) -> &[Setting] {
        &self.rows[configuration]
    }

    /// The same as an object of JSON.
    pub fn object(&self, configuration: usize) -> Map<String, Value> {
        self.names.iter().cloned().zip(self.row(configuration).iter().map(Value::from)).collect()
    }

    /// The distinct values of a parameter, ascending.
    pub fn values(&self, parameter: usize) -> Vec<&Setting> {
        let mut values: Vec<&Setting> = self.rows.iter().map(|row| &row[parameter]).collect();
        values.sort();
        values.dedup();
        values
    }

    /// The numbers that a parameter has in all configurations; none where it has words.
    pub fn numbers(&self, parameter: usize) -> Option<Vec<i64>> {
        let number = |row: &Vec<Setting>| match row[parameter] {
            Setting::Number(number) => Some(number),
            Setting::Word(_) => None,
        };
        self.rows.iter().map(number).collect()
    }

    /// The parameters whose values depend on each other: with all others free, the space is the product. Empty where each value
    /// goes with each.
    pub fn dependent(&self) -> Vec<usize> {
        let mut dependent: Vec<usize> = (0..self.names.len()).collect();
        for parameter in 0..self.names.len() {
            let others: Vec<usize> = dependent.iter().copied().filter(|&other| other != parameter).collect();
            if self.combinations(&dependent).len() == self.values(parameter).len() * self.combinations(&others).len() {
                dependent = others;
            }
        }
        dependent
    }

    /// The distinct settings of some parameters, ascending.
    pub fn combinations(&self, parameters: &[usize]) -> Vec<Vec<&Setting>> {
        let rows = self.rows.iter().map(|row| parameters.iter().map(|&parameter| &row[parameter]).collect());
        let mut combinations: Vec<Vec<&Setting>> = rows.collect::<HashSet<_>>().into_iter().collect();
        combinations.sort();
        combinations
    }
}

type OfConfiguration = Box<dyn Fn(&Configuration) -> Setting>;

/// What a launch or the compiler is given: its name, the setting that says nothing, and its setting in a configuration.
fn launch_parameters() -> Vec<(String, Option<Setting>, OfConfiguration)> {
    let number = |number: u32| Setting::Number(number.into());
    let word = |text: String| Setting::Word(if text.is_empty() { NONE.to_owned() } else { text });
    let none = || Some(Setting::Word(NONE.to_owned()));
    let mut all: Vec<(String, Option<Setting>, OfConfiguration)> = Vec::new();
    for (axis, name) in DIMENSIONS.into_iter().enumerate() {
        let neutral = (axis > 0).then(|| number(1));
        all.push((format!("block_size_{name}"), neutral, Box::new(move |found| number(found.block[axis]))));
    }
    for (axis, name) in DIMENSIONS.into_iter().enumerate() {
        let blocks = move |found: &Configuration| number(found.grid.map_or(0, |grid| grid[axis]));
        all.push((format!("grid_size_{name}"), Some(number(0)), Box::new(blocks)));
    }
    let carveout = |found: &Configuration| Setting::Number(found.carveout.map_or(-1, i64::from));
    let cache = move |found: &Configuration| word(found.cache.map(|cache| cache.to_string()).unwrap_or_default());
    all.push(("maxrregcount".to_owned(), Some(number(0)), Box::new(move |found| number(found.cap))));
    all.push(("load_cache".to_owned(), none(), Box::new(cache)));
    all.push(("carveout".to_owned(), Some(Setting::Number(-1)), Box::new(carveout)));
    all.push(("math".to_owned(), none(), Box::new(move |found| word(found.math.to_string()))));
    all.push(("unroll".to_owned(), Some(number(0)), Box::new(move |found| number(found.unroll.unwrap_or_default()))));
    all
}
