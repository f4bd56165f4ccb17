//! Which warps are run, and what their profile says of the grid.

use super::*;

#[test]
fn diverging_warp_takes_time_of_all_its_lanes() {
    // Each lane has its long turn while the others wait: a warp takes as long as all of its lanes one after another.
    let case = with_n(
        "mov.u32 %r2, %tid.x; and.b32 %r2, %r2, 31; mov.u32 %r3, 0;\n\
         L: mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2; ld.global.u32 %r4, [%rd3];\n\
         setp.ne.u32 %p1, %r4, %r2;\n@%p1 bra S;\nmov.u32 %r5, 0; mov.u32 %r6, 1;\n\
         M: mad.lo.u32 %r6, %r6, 1103515245, 12345; and.b32 %r7, %r6, 4096; setp.eq.u32 %p2, %r7, 0;\n\
         @%p2 bra N;\nadd.u32 %r8, %r8, %r6;\n\
         N: add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 400;\n@%p3 bra M;\n\
         S: add.u32 %r3, %r3, 1; setp.lt.u32 %p4, %r3, 32;\n@%p4 bra L;\nst.global.u32 [%rd1], %r8; ret;",
        0,
    );
    let profile = case.profile([4, 1, 1], [512, 1, 1], 0);
    assert_eq!(case.counts(&profile, "mad.lo"), [32.0 * 400.0]);
    assert!(
        profile.exact && (70_000.0..100_000.0).contains(&profile.mean_instructions),
        "{}",
        profile.mean_instructions
    );
}

#[test]
fn rare_long_warps_count_by_their_share() {
    // Of every sixteen warps of the grid one takes 400 turns and the others 10, whichever blocks they are in; and of its lanes two take part.
    let case = with_n(
        "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n\
         mad.lo.u32 %r5, %r2, %r3, %r4;\n\
         shr.u32 %r6, %r5, 5;\n\
         and.b32 %r6, %r6, 15;\n\
         setp.eq.u32 %p1, %r6, 5;\n\
         selp.u32 %r7, 400, 10, %p1;\n\
         and.b32 %r8, %r5, 15;\n\
         setp.ne.u32 %p2, %r8, 0;\n\
         and.pred %p2, %p1, %p2;\n\
         @%p2 ret;\n\
         mul.wide.u32 %rd2, %r5, 32;\n\
         add.s64 %rd3, %rd1, %rd2;\n\
         mov.u32 %r9, 0;\n\
         L: ld.global.u32 %r10, [%rd3];\n\
         add.s64 %rd3, %rd3, 128;\n\
         add.u32 %r9, %r9, 1;\n\
         setp.lt.u32 %p3, %r9, %r7;\n\
         @%p3 bra L;\n\
         ret;",
        0,
    );
    let line = 1 + case.text.lines().position(|line| line.contains("ld.global.u32 %r10")).unwrap() as u32;
    let (turns, lanes) = ((400.0 + 15.0 * 10.0) / 16.0, (400.0 * 2.0 + 15.0 * 10.0 * 32.0) / (400.0 + 15.0 * 10.0));
    for block in [32, 64, 128, 256, 1024] {
        let profile = case.profile([(1 << 17) / block, 1, 1], [block, 1, 1], 0);
        let (mean, access) = (profile.mean[&line], profile.accesses[&line]);
        assert!((mean / turns - 1.0).abs() < 0.1, "blocks of {block}: {mean} turns, not {turns}");
        assert!((access.lanes / lanes - 1.0).abs() < 0.1, "blocks of {block}: {} lanes, not {lanes}", access.lanes);
        assert!((access.sectors / lanes - 1.0).abs() < 0.1, "a sector for each: {access:?}");
    }
}
