//! The parser: modules, other front ends, malformed and large text.

use super::*;

#[test]
fn directives_of_module_are_read() {
    let module = Module::parse(EVERYTHING).unwrap();
    assert_eq!((module.version, &*module.target[0], module.address_size), ((9, 0), "sm_90a", 64));
    let externals = module.functions.iter().filter(|f| f.body.is_none()).count();
    assert_eq!((externals, module.functions.len()), (1, 3));
}

#[test]
fn variables_have_sizes_and_initial_values() {
    let module = Module::parse(EVERYTHING).unwrap();
    let table = module.variable("table").unwrap();
    assert_eq!((table.space, table.size, table.align), (StateSpace::Const, 16, 4));
    // The second row begins at byte 8 though the first gives one value of two.
    let values = table.initial.as_ref().unwrap();
    assert_eq!(
        values[..],
        [(0, Initial::Bits(0x3f80_0000)), (8, Initial::Bits(0x4000_0000)), (12, Initial::Bits(0x4040_0000))]
    );
    let pointers = module.variable("pointers").unwrap();
    assert_eq!(pointers.initial.as_ref().unwrap()[0].1, Initial::Address { name: "table".into(), offset: 4 });
    assert_eq!(
        (module.variable("dynamic").unwrap().size, module.variable("text").unwrap().linkage),
        (0, Linkage::Visible)
    );
}

#[test]
fn entry_has_parameters_and_directives() {
    let module = Module::parse(EVERYTHING).unwrap();
    let entry = module.entry("kernel").unwrap();
    let pair = &entry.parameters[0];
    assert_eq!((&*pair.name, pair.scalar, pair.align, pair.size), ("pair", Scalar::B8, 8, 16));
    assert!(entry.parameters[1].pointer);
    let directives: Vec<(&str, &[u64])> = entry.directives.iter().map(|d| (&*d.name, &d.values[..])).collect();
    assert_eq!(directives, [(".maxntid", &[128, 2, 1][..]), (".minnctapersm", &[3]), (".maxclusterrank", &[8])]);
    assert_eq!(&EVERYTHING[entry.directives[0].span.clone()], ".maxntid 128, 2, 1");
}

#[test]
fn instructions_have_lines_operands_and_guards() {
    let module = Module::parse(EVERYTHING).unwrap();
    let body = module.entry("kernel").unwrap().body.as_ref().unwrap();
    let lines: Vec<(u32, &str)> = body.instructions().map(|i| (i.line, i.opcode.text())).collect();
    let line_of = |text: &str| EVERYTHING.lines().position(|l| l.contains(text)).unwrap() as u32 + 1;
    assert!(lines.contains(&(line_of("ld.global.nc"), "ld.global.nc.L2::128B.v2.u32")), "{lines:?}");
    let load = body.instructions().find(|i| i.opcode.text().starts_with("ld.global")).unwrap();
    assert_eq!(load.operands[0], Operand::Vector(vec![Operand::Name("%r2".into()), Operand::Sink]));
    assert_eq!(load.operands[1], Operand::Address { base: Some("%rd1".into()), offset: -8 });
    let guarded = body.instructions().find(|i| i.guard.is_some()).unwrap();
    assert_eq!((guarded.opcode.text(), guarded.guard.as_ref().unwrap().negated), ("bra", true));
    assert!(body.statements.iter().any(|s| matches!(s, Statement::Targets { targets, .. } if targets.len() == 2)));
}

#[test]
fn front_ends_of_other_architectures_are_read() {
    // From sm_100 on nvcc has another front end, with pragmas between instructions and `.ptr` parameters.
    for architecture in ["sm_75", "sm_100", "sm_120"] {
        for file in ["matmul", "control", "arithmetic"] {
            let text = fixtures::ptx(&format!("{file}/{architecture}"));
            let module = Module::parse(&text).unwrap();
            assert_eq!(&*module.target[0], architecture);
            for entry in module.functions.iter().filter(|f| f.entry) {
                assert!(module.canonical_text(&entry.name).unwrap().contains("\nret\n"), "{}", entry.name);
            }
        }
    }
}

#[test]
fn malformed_text_is_error_with_its_line() {
    let cases = [
        (".version 9.0\n.entry k(\n.param .u32 a", "PTX line 3: expected `,` or `)`, found `end of text`"),
        (".entry k()\n{\n  mov.u32 %r1 %r2;\n}", "PTX line 3: expected `,` or `;`, found `%r2`"),
        (".entry k()\n{\n  add.s32 %r1, 12x4;\n}", "PTX line 3: malformed number `12x4`"),
        ("hello", "PTX line 1: expected a directive, found `hello`"),
        ("\n/* never", "PTX line 2: the text ends inside a comment"),
        (".global .u32 x = {1, 2", "PTX line 1: expected `,` or `}`, found `end of text`"),
    ];
    for (text, message) in cases {
        assert_eq!(Module::parse(text).unwrap_err().to_string(), message, "{text}");
    }
}

#[test]
fn calls_by_address_are_found_in_entry_and_its_callees() {
    let text = "\
.version 9.0
.target sm_90
.address_size 64
.func leaf() { ret; }
.func by_address(.param .b64 f) {
.reg .b64 %rd<2>;
ld.param.b64 %rd1, [f];
prototype_0 : .callprototype () _ ();
call %rd1, (), prototype_0;
ret; }
.global .u64 table[1] = { by_address };
.visible .entry direct() { call leaf, (); ret; }
.visible .entry branches(.param .u32 n) {
.reg .b32 %r<2>;
ld.param.u32 %r1, [n];
to: .branchtargets end;
brx.idx %r1, to;
end: ret; }
.visible .entry indirect() {
.reg .b64 %rd<2>;
mov.b64 %rd1, leaf;
{ .param .b64 p; st.param.b64 [p], %rd1; call by_address, (p); }
ret; }
.visible .entry listed() {
.reg .b64 %rd<2>;
mov.b64 %rd1, leaf;
to: .calltargets leaf;
call %rd1, (), to;
ret; }
";
    for (entry, expected) in [("direct", false), ("branches", false), ("indirect", true), ("listed", true)] {
        assert_eq!(calls_by_address(text, entry), Ok(expected), "{entry}");
    }
    assert_eq!(calls_by_address(text, "none"), Err(PtxError::NoEntry { name: "none".to_owned() }));
}

#[test]
fn megabyte_is_read_quickly() {
    let one = fixtures::ptx("caps/sm_90");
    let body = &one[one.find(".visible").unwrap()..];
    let mut text = one[..one.find(".visible").unwrap()].to_owned();
    while text.len() < 1 << 20 {
        text.push_str(body);
    }
    let start = std::time::Instant::now();
    let module = Module::parse(&text).unwrap();
    let elapsed = start.elapsed();
    assert!(module.functions.len() > 3);
    // 50 ms is the aim of an optimised build; tests run unoptimised and beside others.
    assert!(elapsed.as_millis() < 1000, "{elapsed:?}");
    eprintln!("{} bytes in {elapsed:?}", text.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(random_cases(64, 300)) })]
    #[test]
    fn random_text_does_not_panic(text in "\\PC*") {
        let _ = Module::parse(&text);
    }

    #[test]
    fn mutated_ptx_is_read_or_refused(at in 0usize..EVERYTHING.len(), length in 0usize..40, with in "[{}()\\[\\];,.:@!|+\\-\"/*0-9a-f%$ \\n]{0,6}") {
        let end = (at + length).min(EVERYTHING.len());
        let text = format!("{}{}{}", &EVERYTHING[..at], with, &EVERYTHING[end..]);
        if let Ok(module) = Module::parse(&text) {
            let _ = module.canonical_text("kernel");
            let _ = set_register_cap(&text, "kernel", 40);
            if let Ok(edited) = set_cache_operators(&text, &[("kernel", LoadCacheOperator::Cs)]) {
                Module::parse(&edited).expect("what was read can be read with operators");
            }
        }
    }
}
