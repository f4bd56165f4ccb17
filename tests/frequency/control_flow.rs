//! Branches that follow data, and values that are not known.

use super::*;

#[test]
fn switch_follows_data() {
    for (selector, opcode) in [(2.0, "fma.rn.f32"), (3.0, "sqrt"), (4.0, "rcp"), (7.0, "neg")] {
        let case = Case::new("control", "choose").buffer(Scalar::U32, 1, 64, Fill::Constant(selector)).buffer(
            Scalar::F32,
            1,
            66,
            Fill::Constant(2.0),
        );
        let profile = case.profile([2, 1, 1], [32, 1, 1], 0);
        assert!(profile.exact);
        assert!(case.total(&profile, opcode) >= 1.0, "{selector}: {opcode}");
        let value = f32_of(&case.output(0, 1, 0, 1, 4)[0]);
        let expected = match selector as u32 {
            2 => 5.0,
            3 => 2f32.sqrt(),
            4 => 0.5,
            _ => -2.0,
        };
        assert_eq!(value, expected, "{selector}");
    }
}

#[test]
fn branch_table_is_followed() {
    for (index, expected) in [(0, 10), (1, 11), (2, 12)] {
        let case = with_n(
            "t: .branchtargets A, B, C;\nbrx.idx %r1, t;\n\
             A: mov.u32 %r2, 10; bra D;\nB: mov.u32 %r2, 11; bra D;\nC: mov.u32 %r2, 12;\n\
             D: st.global.u32 [%rd1], %r2; ret;",
            index,
        );
        assert_eq!(u32_of(&case.output(0, 0, 0, 1, 4)[0]), expected);
    }
}

#[test]
fn unknown_value_that_decides_branch_makes_profile_inexact() {
    let spin =
        "L: atom.global.cas.b32 %r2, [%rd1], 7, 1; setp.ne.s32 %p1, %r2, 7;\n@%p1 bra L;\nadd.f32 %f1, %f1, %f1; ret;";
    let forever = "L: bra L;";
    let clock = "mov.u32 %r2, %clock;\nL: mov.u32 %r3, %clock; sub.u32 %r4, %r3, %r2; setp.lt.u32 %p1, %r4, 9;\n@%p1 bra L; ret;";
    let shared =
        "ld.shared.u32 %r2, [s+8]; bar.sync 0; setp.eq.u32 %p1, %r2, 0;\n@%p1 ret;\nadd.f32 %f1, %f1, %f1; ret;";
    let outside = "ld.global.u32 %r2, [%rd1+1000000]; setp.eq.u32 %p1, %r2, 0;\n@%p1 ret;\nret;";
    let unknown = "frobnicate.b32 %r2, %r1, [%rd1]; setp.eq.u32 %p1, %r2, 0;\n@%p1 ret;\nret;";
    for body in [spin, forever, clock, shared, outside, unknown] {
        let profile = with_n(body, 5).profile([2, 1, 1], [64, 1, 1], 0);
        assert!(!profile.exact, "{body}");
        assert!(!profile.counts.is_empty());
    }
}

#[test]
fn unknown_value_that_decides_nothing_keeps_profile_exact() {
    let harmless = "frobnicate.b32 %r2, %r1; st.global.u32 [%rd1], %r2; ret;";
    assert!(with_n(harmless, 5).profile([1, 1, 1], [32, 1, 1], 0).exact);
}
