//! Host code -> the macros that are made of a name, directly or by further macros.

use super::host_code::HostCode;
use std::collections::{HashMap, HashSet};

impl HostCode {
    /// The macros of whose definitions one, or `each`, has a name, itself or by further macros; none that have one of `quoting`, which may
    /// make a string of it.
    pub(crate) fn macros_with<'a>(&'a self, name: &'a str, each: bool, quoting: &HashSet<&str>) -> HashSet<&'a str> {
        let mut by_word: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
        let mut left: HashMap<&str, usize> = HashMap::new();
        let definitions = self.files.iter().flat_map(|file| file.macros.iter().map(move |found| (file, found)));
        for (number, (file, found)) in definitions.enumerate() {
            let defined = file.source.slice(found.name);
            *left.entry(defined).or_default() += 1;
            let is_quoted = found.words.iter().any(|word| quoting.contains(word.as_str()));
            for word in found.words.iter().filter(|_| !is_quoted) {
                by_word.entry(word).or_default().push((number, defined));
            }
        }
        let (mut found, mut seen, mut pending) = (HashSet::new(), HashSet::new(), vec![name]);
        while let Some(word) = pending.pop() {
            for (number, defined) in by_word.remove(word).unwrap_or_default() {
                let count = left.entry(defined).or_default();
                *count = count.saturating_sub(usize::from(seen.insert(number)));
                if (*count == 0 || !each) && found.insert(defined) {
                    pending.push(defined);
                }
            }
        }
        found
    }

    /// The macros that make nothing but strings, or nothing at all, of their parameters.
    pub(crate) fn quoting_macros(&self) -> HashSet<&str> {
        let mut found: HashSet<&str> = HashSet::new();
        loop {
            let count = found.len();
            for file in &self.files {
                let quoting = file.macros.iter().filter(|of| {
                    let is_quoting = |word: &String| found.contains(word.as_str());
                    let has_quoting = of.words.iter().any(is_quoting);
                    let is_known = |word: &String| is_quoting(word) || has_quoting && of.parameters.contains(word);
                    !of.parameters.is_empty() && of.words.iter().all(is_known)
                });
                let names: Vec<&str> = quoting.map(|of| file.source.slice(of.name)).collect();
                found.extend(names);
            }
            if found.len() == count {
                return found;
            }
        }
    }
}
