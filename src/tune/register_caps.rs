//! Compiles machine code under every register cap, without running ptxas for each of them.
//!
//! A cap changes the code only while it binds: where two caps give the same code, so do those
//! between them. (That is how ptxas behaves on every kernel tried, not a promise of it: the
//! final build compares the code of the winner with what was timed, so a kernel for which it
//! were wrong would keep its baseline.)

use super::variants::AssemblyResult;

/// The code under each of `caps`, in their order; `assemble` runs ptxas.
pub fn assemble_all(caps: &[u32], assemble: &(impl Fn(u32) -> AssemblyResult + Sync)) -> Vec<AssemblyResult> {
    let mut ascending: Vec<u32> = caps.iter().copied().filter(|&cap| cap != 0).collect();
    ascending.sort_unstable();
    ascending.dedup();
    let (uncapped, capped) = rayon::join(
        || caps.contains(&0).then(|| assemble(0)),
        || match ascending.as_slice() {
            [] => Vec::new(),
            [only] => vec![assemble(*only)],
            [first, .., last] => {
                let (low, high) = rayon::join(|| assemble(*first), || assemble(*last));
                between(&ascending, low, high, assemble)
            }
        },
    );
    caps.iter()
        .map(|cap| match ascending.binary_search(cap) {
            Ok(place) => capped[place].clone(),
            Err(_) => uncapped.clone().unwrap_or_else(|| assemble(*cap)),
        })
        .collect()
}

/// The code under each of two or more ascending caps, of which the first and the last are
/// known.
fn between(
    caps: &[u32],
    low: AssemblyResult,
    high: AssemblyResult,
    assemble: &(impl Fn(u32) -> AssemblyResult + Sync),
) -> Vec<AssemblyResult> {
    let same = matches!((&low, &high), (Ok(a), Ok(b)) if a.digest == b.digest);
    if same || caps.len() == 2 {
        let mut all = vec![low.clone(); caps.len() - 1];
        all.push(high);
        return all;
    }
    let middle = caps.len() / 2;
    let code = assemble(caps[middle]);
    let (mut below, above) = rayon::join(
        || between(&caps[..=middle], low, code.clone(), assemble),
        || between(&caps[middle..], code.clone(), high, assemble),
    );
    below.pop();
    below.extend(above);
    below
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

    /// A compiler whose code is what the cap leaves of `natural` registers, in steps of 8.
    fn compiler(natural: u32) -> impl Fn(u32) -> AssemblyResult {
        move |cap| {
            let registers = if cap == 0 { natural / 2 } else { cap.min(natural) } / 8;
            Ok(Assembly { symbol: String::new(), cubin: Arc::from([].as_slice()), digest: registers.to_string() })
        }
    }

    fn digests(all: Vec<AssemblyResult>) -> Vec<String> {
        all.into_iter()
            .map(|code| code.map(|assembly| assembly.digest).unwrap_or_else(|problem| problem.to_string()))
            .collect()
    }

    #[test]
    fn caps_that_do_not_bind_are_not_assembled() {
        let runs = AtomicUsize::new(0);
        let compiler = compiler(16);
        let caps = [0, 32, 40, 48, 56, 64, 72, 80, 96, 128, 168, 255];
        let all = assemble_all(&caps, &|cap| {
            runs.fetch_add(1, Ordering::Relaxed);
            compiler(cap)
        });
        assert_eq!((all.len(), runs.into_inner()), (caps.len(), 3));
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
            caps in proptest::collection::vec(0_u32..256, 1..20),
            natural in 8_u32..256
        ) {
            let compiler = compiler(natural);
            let expected = digests(caps.iter().map(|&cap| compiler(cap)).collect());
            prop_assert_eq!(digests(assemble_all(&caps, &compiler)), expected);
        }
    }
}
