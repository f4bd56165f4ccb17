//! Cycles, instructions and waits of one thread.

use super::*;

/// Cycles, instructions and regions of the fixture's loop, worked out by hand from its listing (see `flow_and_control_bits_of_cuda_12_for_sm_90`).
#[test]
fn loop_takes_cycles_of_its_listing() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let kernel = &cubin.kernels()[0];
    let [fifty, hundred] = [50.0, 100.0].map(|n| Analysis::new(kernel, Some(&total(n, coalesced()))));
    // IMAD.WIDE 6, then LDG 1 + IADD3 4 + ISETP 1 within the load's 745 cycles, then FADD 12 and BRA 5.
    let iteration = 6.0 + 745.0 + 12.0 + 5.0;
    assert_eq!(((hundred.cycles - fifty.cycles) / 50.0).round(), iteration);
    assert_eq!((hundred.instructions - fifty.instructions) / 50.0, 6.0);
    // Each iteration waits once; besides, the barrier, and the start.
    assert_eq!(hundred.regions, 100.0 + 2.0);
    let cached = Analysis::new(kernel, Some(&total(100.0, Access { reuse: 1.0, in_l1: 1.0, ..coalesced() })));
    assert_eq!((hundred.cycles - cached.cycles).round(), 100.0 * (745.0 - 40.0));
    // Of sectors of which one in four is new, a load waits a quarter of the way where they lie side by side, for another warp has brought
    // the rim; lanes that gather from all over wait for the last, and for 28 more sectors to arrive. The fewer sectors come from
    // device memory, the sooner the last of them is there: one 2 doublings sooner than a line of 4, and 32 of them 3 doublings later.
    let doubling = 0.17 * 745.0;
    let (lone, all) = (745.0 - 2.0 * doubling, 745.0 + 3.0 * doubling);
    let partly = Access { reuse: 0.75, in_l1: 0.75, ..coalesced() };
    let gather = Access { sectors: 32.0, lines: 32.0, ..partly };
    for (access, hits, waits) in
        [(partly, 0.0, 0.75 * 40.0 + 0.25 * lone), (gather, 0.0, all + 28.0), (gather, 1.0, 40.0 + 28.0)]
    {
        let analysis = Analysis::new(kernel, Some(&total(100.0, Access { hits, ..access })));
        let saved: f64 = 100.0 * (745.0 - waits);
        assert_eq!((hundred.cycles - analysis.cycles).round(), saved.round(), "{hits} {access:?}");
    }
}

/// A copy of a loop that no profiled warp reached accesses memory like the profiled one.
#[test]
fn access_without_profile_is_like_profiled_ones() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let kernel = &cubin.kernels()[0];
    let traffic =
        |profile: &Profile| Analysis::new(kernel, Some(profile)).traffic.iter().map(|of| of.sectors).sum::<f64>();
    let gather = Access { sectors: 32.0, lines: 32.0, ..coalesced() };
    let seen = total(64.0, gather);
    let elsewhere = |access: Access| {
        let mut profile = total(64.0, access);
        let access = profile.accesses.remove(&38).unwrap();
        profile.accesses.insert(9999, access);
        profile.mean.insert(9999, 1.0);
        profile
    };
    assert_eq!(traffic(&elsewhere(gather)), traffic(&seen));
    // Another width tells nothing: threads side by side.
    assert_eq!(traffic(&elsewhere(Access { width: 8, ..gather })), traffic(&total(64.0, coalesced())));
}
