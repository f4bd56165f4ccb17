//! Requests that do not fit, sizes beyond reason and kernels without sense.

use super::*;

/// Asks for the profile of a kernel with a buffer and an integer, changed in one way.
fn error(change: impl FnOnce(&mut String, &mut Launch, &mut Workload)) -> SimError {
    let case = with_n("ret;", 1);
    let mut launch = Launch { grid: [1, 1, 1], block: [32, 1, 1], shared: 0, carveout: None, coarsening: None };
    let (mut entry, mut workload) = ("k".to_owned(), case.workload.clone());
    change(&mut entry, &mut launch, &mut workload);
    profile_entry(&case.module, &entry, &launch, &workload, &Limits::default()).unwrap_err()
}

#[test]
fn missing_entry_is_error() {
    assert_eq!(error(|entry, _, _| *entry = "other".into()), SimError::NoEntry { name: "other".into() });
}

#[test]
fn block_of_too_many_threads_is_error() {
    assert!(matches!(error(|_, launch, _| launch.block = [2048; 3]), SimError::Launch { .. }));
}

#[test]
fn empty_grid_is_error() {
    assert!(matches!(error(|_, launch, _| launch.grid = [0, 1, 1]), SimError::Launch { .. }));
}

#[test]
fn argument_of_other_size_is_error() {
    let found = error(|_, _, workload| workload.arguments[1] = Argument::Scalar(vec![0; 8]));
    assert_eq!(found, SimError::Size { index: 1, expected: 4, given: 8 });
}

#[test]
fn missing_argument_is_error() {
    let found = error(|_, _, workload| drop(workload.arguments.pop()));
    assert_eq!(found, SimError::Arguments { expected: 2, given: 1 });
}

#[test]
fn argument_without_buffer_is_error() {
    assert_eq!(error(|_, _, workload| workload.arguments[1] = Argument::Buffer(9)), SimError::Buffer { index: 1 });
}

#[test]
fn huge_sizes_cost_no_memory() {
    let text = ".version 8.0\n.target sm_90\n.global .align 2147483648 .b8 g[18446744073709551615];\n\
                .entry k(.param .align 1073741824 .b8 a[4], .param .align 2147483648 .u32 n)\n{\n\
                .reg .b32 %r<4294967295>;\n.reg .v4 .f64 %v<4294967295>;\n.local .b8 l[9223372036854775807];\n\
                .param .b8 p[9223372036854775807];\nmov.u32 %r4294967294, %r1; mov.u64 %r1, l; st.param.u32 [p+9000000000000000000], %r1;\n\
                ld.param.u32 %r2, [n]; ld.local.u32 %r3, [l+9223372036854775807]; ret;\n}\n";
    let module = Module::parse(text).unwrap();
    let arguments = vec![Argument::Scalar(vec![0; 4]); 2];
    let workload = Workload { arguments, ..Workload::default() };
    let launch =
        Launch { grid: [u32::MAX, u32::MAX, 1], block: [32, 1, 1], shared: u32::MAX, carveout: None, coarsening: None };
    let limits = Limits { warps: 1, ..Limits::default() };
    let profile = profile_entry(&module, "k", &launch, &workload, &limits).unwrap();
    assert_eq!(profile.mean_instructions, 6.0);
}

/// Lines of plausible PTX, put together without sense.
fn lines() -> impl Strategy<Value = String> {
    let register = (0u32..6).prop_map(|i| format!("%r{i}"));
    let operand = prop_oneof![
        (0u32..6).prop_map(|i| format!("%r{i}")),
        any::<i32>().prop_map(|i| i.to_string()),
        Just("%tid.x".to_owned()),
        Just("s".to_owned())
    ];
    let opcode = prop::sample::select(vec![
        "add.s32",
        "sub.u32",
        "mul.lo.s32",
        "mul.hi.u32",
        "mad.lo.s32",
        "div.s32",
        "rem.s32",
        "div.u32",
        "shl.b32",
        "shr.s32",
        "shr.u32",
        "bfe.u32",
        "bfe.s32",
        "bfi.b32",
        "min.s32",
        "max.u32",
        "popc.b32",
        "clz.b32",
        "brev.b32",
        "bfind.s32",
        "bmsk.clamp.b32",
        "szext.wrap.s32",
        "sad.u32",
        "lop3.b32",
        "prmt.b32",
        "shf.l.wrap.b32",
        "shf.r.clamp.b32",
        "add.cc.u32",
        "madc.hi.cc.u32",
        "add.rn.f32",
        "fma.rm.f32.sat",
        "cvt.rni.s8.f32",
        "cvt.s64.s32",
        "cvt.u8.s32",
        "cvt.rn.f16.f32",
        "abs.s32",
        "neg.s64",
        "selp.b32",
        "slct.u32.s32",
        "set.eq.u32.s32",
        "dp4a.u32.s32",
        "mov.u32",
        "mov.b64",
        "cvta.shared.u64",
        "shfl.sync.down.b32",
        "add.f16x2",
        "vadd.s32",
        "mul24.hi.s32",
    ]);
    let arithmetic = (opcode, register.clone(), prop::collection::vec(operand.clone(), 0..5)).prop_map(
        |(opcode, target, sources)| format!("{opcode} {target}, {};", sources.join(", ")).replace(", ;", ";"),
    );
    let label = (0u32..4).prop_map(|l| format!("L{l}"));
    let branch = (any::<bool>(), 0u32..3, label)
        .prop_map(|(not, p, label)| format!("@{}%p{p} bra {label};", if not { "!" } else { "" }));
    let compare =
        (0u32..3, operand.clone(), operand.clone()).prop_map(|(p, a, b)| format!("setp.lt.s32 %p{p}, {a}, {b};"));
    let memory = (prop::sample::select(vec!["global", "shared", "local", "param"]), register, any::<i32>()).prop_map(
        |(space, r, at)| {
            format!(
                "st.{space}.u32 [%rd1+{at}], {r}; ld.{space}.s16 {r}, [{r}+{at}]; ld.v2.u64 {{%rd2, %rd3}}, [%rd1];"
            )
        },
    );
    prop_oneof![4 => arithmetic, 1 => branch, 2 => compare, 1 => memory]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(random_cases(64, 300)) })]
    #[test]
    fn arbitrary_kernel_is_profiled_within_limit(body in prop::collection::vec(lines(), 1..30), n in any::<i32>()) {
        let mut text: Vec<String> = Vec::new();
        for (index, line) in body.iter().enumerate() {
            if index % 8 == 0 {
                text.push(format!("L{}:", index / 8));
            }
            text.push(line.clone());
        }
        let case = with_n(&text.join("\n"), n);
        let launch = Launch { grid: [3, 1, 1], block: [40, 1, 1], shared: 16, carveout: None, coarsening: None };
        let limits = Limits { instructions: 20_000, ..Limits::default() };
        let profile = profile_entry(&case.module, "k", &launch, &case.workload, &limits).unwrap();
        prop_assert!(profile.mean_instructions >= 0.0);
    }
}
