//! Compiles machine code under every register cap, without running ptxas for each of them.
//!
//! A cap changes the code only while it binds: where two caps give the same code, so do those
//! between them. (That is how ptxas behaves on every kernel tried, not a promise of it: the final
//! build compares the code of the winner with what was timed, so a kernel for which it were wrong
//! would keep its baseline.)

use super::variants::{Assembly, AssemblyResult};
use crate::process;
use std::sync::{Mutex, PoisonError};

/// Returns the code of each job under each of its caps, in their order. `assemble` runs ptxas for a
/// job, by its index, and a cap.
pub fn assemble_all(
    jobs: &[Vec<u32>],
    assemble: &(impl Fn(usize, u32) -> AssemblyResult + Sync),
) -> Vec<Vec<AssemblyResult>> {
    let searches: Vec<CapSearch> = jobs.iter().map(|caps| CapSearch::new(caps)).collect();
    let of_job = |job: usize, places: Vec<usize>| places.into_iter().map(move |place| (job, place));
    let first = searches.iter().enumerate().flat_map(|(job, search)| of_job(job, search.begin()));
    let threads = rayon::current_num_threads().min(jobs.iter().map(Vec::len).sum());
    process::run_jobs(first, threads, |(job, place)| {
        let code = assemble(job, searches[job].caps[place]);
        of_job(job, searches[job].note(place, code)).collect()
    });
    searches.into_iter().zip(jobs).map(|(search, caps)| search.results(caps)).collect()
}

/// What is known of the code under the caps of a job.
struct CapSearch {
    /// Ascending. No cap, which is 0, gives code of its own.
    caps: Vec<u32>,
    codes: Mutex<Vec<CapCode>>,
}

/// What is known of the code under one cap.
#[derive(Clone)]
enum CapCode {
    Unknown,
    Asked,
    Known(AssemblyResult),
}

impl CapSearch {
    fn new(caps: &[u32]) -> Self {
        let mut caps = caps.to_vec();
        caps.sort_unstable();
        caps.dedup();
        let codes = Mutex::new(vec![CapCode::Unknown; caps.len()]);
        Self { caps, codes }
    }

    /// The place of the least cap.
    fn first(&self) -> usize {
        usize::from(self.caps.first() == Some(&0))
    }

    /// The places that are assembled in any case: no cap, the least and the largest.
    fn begin(&self) -> Vec<usize> {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = [0, self.first(), self.caps.len().saturating_sub(1)];
        let mut begun = Vec::new();
        for place in ends {
            if let Some(code @ CapCode::Unknown) = codes.get_mut(place) {
                *code = CapCode::Asked;
                begun.push(place);
            }
        }
        begun
    }

    /// Notes the code of a place; returns the places to assemble next.
    fn note(&self, place: usize, code: AssemblyResult) -> Vec<usize> {
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        codes[place] = CapCode::Known(code);
        let mut next = Vec::new();
        let mut low: Option<usize> = None;
        for high in self.first()..codes.len() {
            match &codes[high] {
                CapCode::Unknown => {}
                CapCode::Asked => low = None,
                CapCode::Known(code) => {
                    if let Some(low) = low.replace(high)
                        && !matches!((&codes[low], code), (CapCode::Known(Ok(a)), Ok(b)) if a.digest == b.digest)
                    {
                        next.extend(self.between(low, high, code.as_ref().ok()));
                    }
                }
            }
        }
        next.iter().for_each(|&place| codes[place] = CapCode::Asked);
        next
    }

    /// Returns the places to assemble between two whose codes differ. `code` is that of the larger
    /// one, `high`: it says which caps bind. These are assembled, and the least one that does not
    /// bind; if none binds, the middle one.
    fn between(&self, low: usize, high: usize, code: Option<&Assembly>) -> Vec<usize> {
        if high - low < 2 {
            return Vec::new();
        }
        let binds = |place: &usize| code.and_then(|code| code.registers).is_some_and(|used| self.caps[*place] < used);
        let binding = (low + 1..high).take_while(binds).count();
        match binding {
            0 => vec![low + (high - low) / 2],
            _ => (low + 1..high).take(binding + 1).collect(),
        }
    }

    /// The codes under these caps. A cap that was not assembled is between two of the same code.
    fn results(self, caps: &[u32]) -> Vec<AssemblyResult> {
        let codes = self.codes.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut filled: Vec<AssemblyResult> = Vec::with_capacity(codes.len());
        for code in codes {
            let last = filled.last().cloned();
            filled.extend(match code {
                CapCode::Known(code) => Some(code),
                CapCode::Unknown | CapCode::Asked => last,
            });
        }
        let place = |cap| self.caps.binary_search(cap).ok();
        caps.iter().filter_map(|cap| filled.get(place(cap)?).cloned()).collect()
    }
}

/// Selects `count` of the caps evenly, the first and last among them, and the baseline's.
pub fn thin_caps(caps: &[u32], count: usize, baseline: u32) -> Vec<u32> {
    let last = caps.len().saturating_sub(1);
    if count > last {
        return caps.to_vec();
    }
    let steps = count.saturating_sub(1).max(1);
    let is_selected = |index: usize| (0..count).any(|step| step * last / steps == index);
    let selected =
        caps.iter().enumerate().filter(|&(index, value)| *value == baseline || count > 1 && is_selected(index));
    selected.map(|(_, value)| *value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::variants::Assembly;
    use proptest::prelude::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A compiler whose code is what the cap leaves of `natural` registers, in steps of 8, and may
    /// say how many these are.
    fn compiler(natural: u32, registers_known: bool) -> impl Fn(u32) -> AssemblyResult {
        move |cap| {
            let registers = if cap == 0 { natural / 2 } else { cap.min(natural) } / 8;
            let used = registers_known.then_some(registers * 8);
            let (symbol, cubin) = (String::new(), Arc::from([].as_slice()));
            Ok(Assembly { symbol, cubin, digest: registers.to_string(), registers: used })
        }
    }

    fn digests(all: Vec<AssemblyResult>) -> Vec<String> {
        all.into_iter()
            .map(|code| code.map(|assembly| assembly.digest).unwrap_or_else(|problem| problem.to_string()))
            .collect()
    }

    #[test]
    fn caps_that_do_not_bind_are_not_assembled() {
        let caps = [0, 32, 40, 48, 56, 64, 72, 80, 96, 128, 168, 255];
        // None, the least and the largest; then those that bind and one that does not.
        for (natural, registers_known, expected) in
            [(16, true, 3), (16, false, 3), (56, true, 6), (56, false, 7), (240, true, 12)]
        {
            let runs = AtomicUsize::new(0);
            let compiler = compiler(natural, registers_known);
            let all = assemble_all(&[caps.to_vec()], &|_, cap| {
                runs.fetch_add(1, Ordering::Relaxed);
                compiler(cap)
            });
            assert_eq!((all[0].len(), runs.into_inner()), (caps.len(), expected), "{natural} {registers_known}");
        }
    }

    #[test]
    fn thinned_caps_keep_ends_and_baseline() {
        for (count, expected) in
            [(9, &[0, 32, 40, 48, 64, 96, 128][..]), (3, &[0, 40, 48, 128]), (2, &[0, 40, 128]), (1, &[40])]
        {
            assert_eq!(thin_caps(&[0, 32, 40, 48, 64, 96, 128], count, 40), expected, "{count}");
        }
    }

    proptest! {
        #[test]
        fn the_result_is_that_of_assembling_every_cap(
            jobs in proptest::collection::vec((proptest::collection::vec(0_u32..256, 0..20), 8_u32..256), 0..6),
            registers_known: bool
        ) {
            let compile = |job: usize, cap: u32| {
                let (_, natural): &(Vec<u32>, u32) = &jobs[job];
                compiler(*natural, registers_known)(cap)
            };
            let caps: Vec<Vec<u32>> = jobs.iter().map(|(caps, _)| caps.clone()).collect();
            let all = caps.iter().enumerate().map(|(job, caps)| caps.iter().map(|&cap| compile(job, cap)).collect());
            let expected: Vec<Vec<String>> = all.map(digests).collect();
            let found: Vec<Vec<String>> = assemble_all(&caps, &compile).into_iter().map(digests).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
