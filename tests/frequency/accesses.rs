//! What loads, stores and atomics access: sectors, lanes, bank conflicts and reuse.

use super::*;

#[test]
fn guard_leaves_accesses_of_threads_in_range() {
    let case = Case::new("saxpy", "saxpy").int(1000).float(2.0).floats(1000).floats(1000);
    let profile = case.profile([4, 1, 1], [256, 1, 1], 0);
    assert!(profile.exact);
    assert_eq!(case.counts(&profile, "st.global"), [1.0]);
    // Of every warp, the last one too, some threads are in range.
    let length = case.module.entry(&case.entry).unwrap().body.as_ref().unwrap().instructions().count() as f64;
    assert_eq!(profile.mean_instructions, length, "{profile:?}");
    let load = case.accesses(&profile, "ld.global.nc")[0];
    let expected = Access {
        space: MemorySpace::Global,
        kind: AccessKind::Load,
        width: 4,
        // Of 32 warps the last has 8 threads in range: 125 sectors.
        sectors: 125.0 / 32.0,
        lines: 1.0,
        store_sectors: 0.0,
        partial: 0.0,
        completed: 0.0,
        unfinished: 0.0,
        stored_before: 0.0,
        busy_ns: 0.0,
        passes: 1.0,
        reuse: 0.0,
        in_l1: 0.0,
        in_l2: 0.0,
        in_l2_unknown: 0.0,
        hits: 0.0,
        reuse_after: 0.0,
        block_reuse: 0.0,
        block_sectors: 125.0 / 32.0,
        lanes: 1000.0 / 32.0,
        broadcast: false,
        buffer: Some(0),
    };
    assert_eq!(load, expected);
    // y is read and then written: the store meets the sectors of the load.
    assert_eq!(case.accesses(&profile, "st.global")[0].reuse, 1.0);
}

/// The first block that loads data waits for device memory; later ones find it in the level-2 cache.
#[test]
fn data_of_other_blocks_is_near() {
    let (planes, threads, blocks) = (64u64, 128u64, 100u64);
    let places = threads * blocks;
    let plane = places + threads;
    let case = Case::new("neighbours", "neighbours").int(planes as i32).floats((planes + 4) * plane).floats(threads);
    let case = case.buffer(Scalar::I32, 1, places, Fill::Random { lo: 0.0, hi: 4096.0 }).floats(4096).floats(places);
    let profile = case.profile([blocks as u32, 1, 1], [threads as u32, 1, 1], 0);
    let in_l2 = |buffer: u32| -> Vec<f64> {
        let loads = case.accesses(&profile, "ld.global").into_iter().filter(|access| access.buffer == Some(buffer));
        loads.map(|access| (access.in_l2 * 1000.0).round() / 1000.0).collect()
    };
    assert_eq!(in_l2(0), [0.0, 1.0], "the planes ahead, and the neighbour's place four planes later");
    assert_eq!(in_l2(1), [0.99], "what all of 100 blocks read");
    assert_eq!(in_l2(2), [0.0], "what each block reads of its own");
    // 12,800 places of 4096 values, of which a warp asks for many sectors of its own.
    assert!((0.5..1.0).contains(&in_l2(3)[0]), "read here and there: {:?}", in_l2(3));
}

#[test]
fn atomics_on_random_bins_have_bank_conflicts() {
    let n = 1 << 20;
    let case = Case::new("histogram", "histogram").int(n);
    let case = case.buffer(Scalar::U8, 1, n as u64, Fill::Random { lo: 0.0, hi: 255.0 });
    let case = case.buffer(Scalar::U32, 1, 256, Fill::Zeros);
    let profile = case.profile([64, 1, 1], [256, 1, 1], 0);
    assert!(profile.exact, "no branch depends on an atomic's result");
    assert_eq!(case.counts(&profile, "atom.shared"), [64.0]);
    let shared = case.accesses(&profile, "atom.shared")[0];
    assert_eq!((shared.space, shared.kind), (MemorySpace::Shared, AccessKind::Atomic));
    assert!(shared.passes > 1.5 && shared.passes < 8.0, "random bins collide: {shared:?}");
    let bytes = case.accesses(&profile, "ld.global.u8")[0];
    assert_eq!((bytes.width, bytes.sectors), (1, 1.0));
}

#[test]
fn load_at_end_of_long_loop_body_is_shared_by_warps() {
    // Each warp loads its own words and then, after so many instructions, by what they are, those of the next: few can be run to their end.
    for instructions in [10, 4000] {
        let work = "add.u32 %r5, %r5, 1;\n".repeat(instructions);
        let case = by_hand(&format!(
            "mov.u32 %r3, %tid.x;\n\
             mul.wide.u32 %rd2, %r3, 4;\n\
             add.s64 %rd3, %rd1, %rd2;\n\
             mov.u32 %r2, 0;\n\
             L: ld.global.u32 %r4, [%rd3];\n\
             {work}\
             setp.eq.u32 %p2, %r4, 7;\n\
             @%p2 bra M;\n\
             ld.global.u32 %r4, [%rd3+128];\n\
             M: add.s64 %rd3, %rd3, 2048;\n\
             add.u32 %r2, %r2, 1;\n\
             setp.lt.u32 %p1, %r2, 20;\n\
             @%p1 bra L;\n\
             ret;"
        ))
        .buffer(Scalar::U32, 1, 1 << 17, Fill::Iota)
        .int(0);
        let profile = case.profile([132, 1, 1], [512, 1, 1], 0);
        let [own, next] = case.accesses(&profile, "ld.global")[..] else { panic!("two loads") };
        assert!(own.block_reuse < 0.1 && next.block_reuse > 0.75, "{instructions}: {own:?} {next:?}");
    }
}

#[test]
fn walk_longer_than_record_reuses_its_sectors() {
    // 512 steps over a buffer of 64 sectors, a sector each; 32 of them are recorded, and none of these comes back.
    let case = by_hand(
        "mov.u32 %r2, 0;\n\
         L: and.b32 %r3, %r2, 63;\n\
         mul.wide.u32 %rd2, %r3, 32;\n\
         add.s64 %rd3, %rd1, %rd2;\n\
         ld.global.u32 %r4, [%rd3];\n\
         add.u32 %r2, %r2, 1;\n\
         setp.lt.u32 %p1, %r2, 512;\n\
         @%p1 bra L;\n\
         ret;",
    )
    .buffer(Scalar::U32, 1, 64 * 8, Fill::Iota)
    .int(0);
    let profile = case.profile([1, 1, 1], [32, 1, 1], 0);
    assert_eq!(case.counts(&profile, "ld.global"), [512.0]);
    let load = case.accesses(&profile, "ld.global")[0];
    // It may begin within a sector, so one more may be new.
    assert_eq!((load.sectors, load.reuse), (1.0, 1.0 - 65.0 / 512.0));
    let instructions_of_a_step = profile.mean_instructions / 512.0;
    assert!((load.reuse_after / (65.0 * instructions_of_a_step) - 1.0).abs() < 0.01, "{load:?}");
}

#[test]
fn lanes_that_left_loop_access_nothing() {
    // Lane i reads a line of its own 8 i + 8 times, counting down by the ones that it reads; the record ends when the first have dropped out.
    let case = by_hand(
        "mov.u32 %r2, %tid.x; mul.wide.u32 %rd4, %r2, 128; add.s64 %rd5, %rd1, %rd4; mad.lo.u32 %r4, %r2, 8, 8;\n\
         L: ld.volatile.global.u32 %r5, [%rd5];\nsub.u32 %r4, %r4, %r5; setp.ne.u32 %p1, %r4, 0;\n@%p1 bra L;\nret;",
    )
    .buffer(Scalar::U32, 1, 1 << 10, Fill::Constant(1.0))
    .int(0);
    let profile = case.profile([1, 1, 1], [32, 1, 1], 0);
    let load = case.accesses(&profile, "ld.volatile")[0];
    assert_eq!(case.counts(&profile, "ld.volatile"), [256.0]);
    assert_eq!((load.lanes, load.sectors, load.lines), (16.5, 16.5, 16.5));
}

#[test]
fn load_of_first_warp_alone_is_seen() {
    // The last four warps of eight are looked at first.
    let case = with_n(
        "mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 64; add.s64 %rd3, %rd1, %rd2;\n\
         setp.ge.u32 %p1, %r2, 32; @%p1 bra E;\nld.global.u32 %r4, [%rd3];\nE: st.shared.u32 [s], %r2; ret;",
        0,
    );
    let profile = case.profile([3, 1, 1], [256, 1, 1], 0);
    let load = case.accesses(&profile, "ld.global")[0];
    assert_eq!((load.sectors, load.buffer), (32.0, Some(0)));
}

#[test]
fn certain_access_beyond_memory_is_reported() {
    let seen = |body: &str, shared: u32| {
        let case = by_hand(&format!(
            "mov.u32 %r2, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\n{body}\nret;"
        ))
        .buffer(Scalar::U32, 1, 64, Fill::Iota)
        .int(7);
        let launch = Launch { grid: [1; 3], block: [64, 1, 1], shared, carveout: None, coarsening: None };
        let places = [0, 63].map(|x| ([0; 3], [x, 0, 0]));
        let found = find_violations(&case.module, "k", &launch, &case.workload, &places, 100).expect("it runs");
        found.iter().map(|violation| format!("{violation:?}")).collect::<Vec<_>>().join(" ")
    };
    let at = "cvt.u64.u32 %rd4, %r2; mov.u64 %rd5, s; add.s64 %rd5, %rd5, %rd4;\n";
    let own = "{ .shared .align 4 .b8 t[32]; st.shared.u32 [t+28], %r1; st.shared.u32 [t+32], %r1; }";
    let by_data = "ld.global.u32 %r4, [%rd1+4]; mul.wide.u32 %rd4, %r4, 1024; add.s64 %rd4, %rd4, %rd1; ld.global.u32 %r3, [%rd4];";
    for (body, shared, expected) in [
        ("ld.global.u32 %r3, [%rd3];", 0, ""),
        ("ld.global.u32 %r3, [%rd3+4];", 0, "Buffer { index: 0, byte: 256, kind: Load }"),
        ("st.global.u32 [%rd3+-8], %r1;", 0, "Buffer { index: 0, byte: -8, kind: Store }"),
        (
            "atom.global.add.u32 %r3, [%rd1+256], 1;",
            0,
            "Buffer { index: 0, byte: 256, kind: Atomic } Buffer { index: 0, byte: 256, kind: Atomic }",
        ),
        // Part of a vector is beyond the end.
        ("ld.global.v2.u32 {%r3, %r4}, [%rd3];", 0, "Buffer { index: 0, byte: 252, kind: Load }"),
        // Not executed; executed or not by what others have written; at an address that they have.
        ("setp.gt.u32 %p1, %r2, 64; @%p1 ld.global.u32 %r3, [%rd3+4];", 0, ""),
        ("ld.shared.u32 %r4, [s]; setp.ne.u32 %p1, %r4, 1; @%p1 ld.global.u32 %r3, [%rd3+4];", 0, ""),
        ("ld.shared.u32 %r4, [s]; setp.ne.u32 %p1, %r4, 0; @%p1 bra L; ld.global.u32 %r3, [%rd3+4]; L:", 0, ""),
        ("ld.shared.u64 %rd4, [s]; add.s64 %rd4, %rd4, %rd1; ld.global.u32 %r3, [%rd4+256];", 0, ""),
        // The last thread alone: 63 bytes from where four are left.
        (&format!("{at}ld.shared.u32 %r3, [%rd5+957];"), 0, ""),
        (&format!("{at}ld.shared.u32 %r3, [%rd5+958];"), 0, "Shared { has: 1024 }"),
        (&format!("{at}ld.shared.u32 %r3, [%rd5+958];"), 16, ""),
        (own, 0, "Shared { has: 1056 } Shared { has: 1056 }"),
        (own, 4, ""),
        ("setp.gt.u32 %p1, %r2, 62; @%p1 trap;", 0, "Failure"),
        // By what a buffer has, unless others may have written it before.
        (
            &format!("{by_data} ret;"),
            0,
            "Buffer { index: 0, byte: 1024, kind: Load } Buffer { index: 0, byte: 1024, kind: Load }",
        ),
        (&format!("bar.sync 0; {by_data} ret;"), 0, ""),
        ("ld.shared.u32 %r4, [s]; setp.ne.u32 %p1, %r4, 1; @%p1 trap;", 0, ""),
        ("setp.lt.u32 %p1, %r2, 63; @%p1 bra L; call.uni __assertfail, (%rd1); L:", 0, "Failure"),
    ] {
        assert_eq!(seen(body, shared), expected, "{body}");
    }
}
