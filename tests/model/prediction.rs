//! The predicted time and its bottleneck.

use super::*;

/// What takes longest counts, alone where it is the start of blocks, rounded where two meet, and then the launch's overhead. What blocks wait
/// for memory in a queue makes them live longer.
#[test]
fn terms_combine_into_time() {
    let rows = [
        (Terms { launch: 300.0, latency: 100.0, device: 100.0, ..Terms::default() }, 300.0),
        (Terms { launch: 30.0, latency: 30.0, issue: 40.0, overhead: 2.0, ..Terms::default() }, 52.0),
        (Terms { issue: 40.0, memory_pipe: 30.0, constant: 20.0, ..Terms::default() }, 40.0),
        (Terms { constant: 120.0, device: 50.0, ..Terms::default() }, 130.0),
        (Terms { device: 40.0, queue: 0.75, ..Terms::default() }, 50.0),
    ];
    for (terms, us) in rows {
        assert_eq!(terms.time_us(), us, "{terms:?}");
    }
}

/// Lone sectors that an SM reads here and there from a window of 64 KiB are mostly in its level-1 cache, from all of a buffer hardly any.
#[test]
fn gather_from_small_window_hits_level_1_cache() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let kernel = &cubin.kernels()[0];
    let access = Access { sectors: 32.0, lines: 32.0, in_l2_unknown: 1.0, buffer: Some(0), ..coalesced() };
    let bytes = 4 << 20;
    let launch = Launch { grid: [32768, 1, 1], block: [128, 1, 1], shared: 0, carveout: None, coarsening: None };
    let us = |together: f64| {
        let spread = [(0, Spread { alone: together / 4.0, together })].into();
        let profile = Profile { spread, ..total(8.0, access) }.with_shared(&[bytes], 4.0 * 32768.0);
        let analysis = Analysis::new(kernel, Some(&profile));
        let machine = Machine::flagship_of(architecture(90));
        let inputs = Inputs { machine: &machine, kernel: &analysis, launch: &launch, buffers: Some(&[bytes]) };
        score_configuration(&inputs).predicted_us
    };
    // Sixteen blocks at once look at as many windows of 4 KiB; at one of 64 KiB each, the last of them far from the first.
    let (narrow, apart, middle, wide) = (us(1.0 / 1024.0), us(1.0 / 64.0), us(1.0 / 8.0), us(1.0));
    assert!(narrow < wide / 2.0 && narrow < apart, "{narrow} {apart} {wide} us");
    assert!(apart < middle && middle < wide, "{apart} {middle} {wide} us");
}

/// Threads at once, by blocks that fit, or by those that the grid has.
#[test]
fn threads_in_flight_follow_grid_and_resident_blocks() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let analysis = Analysis::new(&cubin.kernels()[0], Some(&total(1.0, coalesced())));
    for (grid, block, expected) in
        [(132 * 64, 128, 1.0), (132 * 64, 16, 0.25), (132 * 4, 128, 0.25), (33, 128, 1.0 / 64.0)]
    {
        assert_eq!(scored(&analysis, grid, block).in_flight, expected, "{grid} blocks of {block}");
    }
}

/// What a rise of one input does to the predicted time and what bounds it.
#[test]
fn prediction_rises_with_work() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let kernel = &cubin.kernels()[0];
    let wide = Access { sectors: 16.0, width: 16, ..coalesced() };
    let streaming = Analysis::new(kernel, Some(&total(64.0, wide)));
    let scattered = Analysis::new(kernel, Some(&total(64.0, Access { sectors: 32.0, ..coalesced() })));
    let cached = Analysis::new(kernel, Some(&total(64.0, Access { reuse: 1.0, in_l1: 1.0, ..coalesced() })));

    let many = scored(&streaming, 132 * 16 * 8, 128);
    assert_eq!(many.bottleneck, Bottleneck::GlobalBandwidth);
    // 64 loads of 16 bytes and a store of 4 for each thread, at 4.32 TB/s.
    let least = f64::from(132 * 16 * 8 * 128) * (64.0 * 16.0 + 4.0) / 4.32e6;
    assert!((least..1.5 * least).contains(&many.predicted_us), "{} for {least}", many.predicted_us);

    assert_eq!(scored(&streaming, 8, 128).bottleneck, Bottleneck::GlobalLatency, "a short grid hides nothing");
    let apart = scored(&scattered, 132 * 16 * 8, 128);
    assert!(apart.predicted_us > 1.8 * many.predicted_us, "{apart:?} {many:?}");
    assert!(scored(&cached, 132 * 128, 128).predicted_us < many.predicted_us);
    assert_ne!(scored(&cached, 132 * 128, 128).bottleneck, Bottleneck::GlobalBandwidth);
    // One block more than a wave holds costs a wave more, where latency is the bound.
    let [full, over] = [132 * 16, 132 * 16 + 1].map(|grid| scored(&cached, grid, 128).predicted_us);
    assert!(over > 1.2 * full, "{over} for {full}");
}

#[test]
fn launch_beyond_bounds_of_kernel_is_infeasible() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let wide = Access { sectors: 16.0, width: 16, ..coalesced() };
    let streaming = Analysis::new(&cubin.kernels()[0], Some(&total(64.0, wide)));
    let refused = scored(&streaming, 1, 256);
    assert!(!refused.feasible && refused.predicted_us.is_infinite(), "launch bounds of 128 threads");
    assert!(!scored(&streaming, 0, 128).feasible && !scored(&streaming, 1, 0).feasible);
}

/// Without a profile each loop is taken for 32 iterations, and the score says so.
#[test]
fn score_without_profile_assumes_32_iterations() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    let analysis = Analysis::new(&cubin.kernels()[0], None);
    let score = scored(&analysis, 1024, 128);
    assert!(!score.exact && score.feasible && score.c > 32.0 * 600.0 / 2.0, "{score:?}");
    assert_eq!((score.occupancy, score.blocks_per_sm, score.registers), (1.0, 16, 12));
    let [few, many] =
        [8.0, 512.0].map(|trips| scored(&Analysis::with_trips(&cubin.kernels()[0], None, &[trips]), 1024, 128));
    assert!(few.c < score.c && score.c < many.c, "{} {} {}", few.c, score.c, many.c);
    assert_eq!((score.t, score.ro), (0.0, 12.0 / 255.0));
    let json = serde_json::to_value(score).unwrap();
    assert_eq!(json["limiter"], "warps");
}

/// Returns the shortest time of three runs: other tests run at the same time.
fn shortest(run: impl Fn()) -> Duration {
    let time = |_| {
        let started = Instant::now();
        run();
        started.elapsed()
    };
    (0..3).map(time).min().expect("three runs")
}

/// Calls a check with every kernel of the fixtures for sm_90.
fn for_each_kernel(check: impl Fn(&CubinKernel, &Profile)) {
    let everything_once = counts((1..2000).map(|line| (line, 1.0)));
    for cubin in fixtures::decoded().iter().filter(|cubin| cubin.architecture == 90) {
        Cubin::parse(&cubin.bytes).unwrap().kernels().iter().for_each(|kernel| check(kernel, &everything_once));
    }
}

/// Takes about a millisecond; the bound is that of a build without optimization.
#[test]
fn variant_is_analysed_within_50_ms() {
    for_each_kernel(|kernel, profile| {
        let time = shortest(|| assert!(Analysis::new(kernel, Some(profile)).cycles >= 0.0));
        assert!(time.as_millis() < 50, "{}: {time:?}", kernel.name);
    });
}

/// Takes some microseconds; the bound is that of a build without optimization.
#[test]
fn configuration_is_scored_within_100_us() {
    for_each_kernel(|kernel, profile| {
        let analysis = Analysis::new(kernel, Some(profile));
        let rounds = 1000;
        let time = shortest(|| assert!((1..=rounds).map(|grid| scored(&analysis, grid, 64).c).sum::<f64>() > 0.0));
        assert!((time / rounds).as_micros() < 100, "{}: {:?}", kernel.name, time / rounds);
    });
}
