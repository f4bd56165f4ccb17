//! From a stub file that nvcc wrote to the arguments and buffers of a launch.

use super::support::full::is_full;
use expect_test::expect;
use nvtune::comment::{Annotation, annotations};
use nvtune::cuda::Type;
use nvtune::cuda::template_instance::Spelled;
use nvtune::cuda::{Element, Scalar};
use nvtune::diag::{Source, render};
use nvtune::space::{Limits, Space};
use nvtune::workload::{Argument, Buffer, FileBytes, Fill, bind, contents, entries, find};
use std::collections::BTreeMap;
use std::sync::Arc;

const STUB: &str = include_str!("stubs/kernels.stub.c");
const KERNELS: &str = include_str!("stubs/kernels.cu");
const NO_MACROS: BTreeMap<String, i64> = BTreeMap::new();

/// `kernels.cu` with a tuning comment in the line above the one that begins so.
fn annotation(line: &str, clauses: &str) -> Annotation {
    // The comment takes the place of the line's own break, so that lines keep their numbers.
    let at = KERNELS.find(line).expect("the kernel is in kernels.cu");
    let text = format!("{}/*@tune {clauses} */\n{}", &KERNELS[..at], &KERNELS[at..]);
    let found = annotations(&Source::new("src/kernels.cu", text.as_bytes()))
        .unwrap_or_else(|problems| panic!("{}", render(&problems)));
    let mut annotation = found.into_iter().next().expect("one comment");
    annotation.kernel.line -= 1;
    annotation
}

#[test]
fn entries_are_read_from_stub_file() {
    let mut shown = String::new();
    for entry in entries(STUB) {
        let place =
            entry.file.as_deref().zip(entry.line).map(|(file, line)| format!("{file}({line})")).unwrap_or_default();
        let bound = entry.max_threads.map(|bound| format!(" <= {bound}")).unwrap_or_default();
        shown.push_str(&format!("{}({}) {place}{bound}\n", entry.qualified, entry.parameters.join("; ")));
    }
    expect![[r#"
        _NV_ANON_NAMESPACE::anonymous(unsigned long long; signed char; bool; double) kernels.cu(18) <= 128
        ns::inner::packed(__half; __half *; const __nv_bfloat16 *; float4 *; float3 *; bool *; uchar4 *) kernels.cu(12)
        nothing() kernels.cu(26)
        twice(int; double *) kernels.cu(25)
        twice(int; float *) kernels.cu(24)
        values(Params; View<float>; View<const double> *; float **; float[4] &; void *) kernels.cu(23)
        instance<float, (int)4>(float *; int) 
        typedefs(float; float *; unsigned int; unsigned long; long; unsigned char *) kernels.cu(9)
        plain(int; float; const float *; float *) kernels.cu(8)
    "#]]
    .assert_eq(&shown);
    let symbols: Vec<String> =
        entries(STUB).into_iter().map(|entry| entry.symbol).filter(|symbol| !symbol.contains("GLOBAL")).collect();
    expect!["_ZN2ns5inner6packedE6__halfPS1_PK13__nv_bfloat16P6float4P6float3PbP6uchar4 _Z7nothingv _Z5twiceiPd _Z5twiceiPf _Z6values6Params4ViewIfEPS0_IKdEPPfRA4_fPv _Z8instanceIfLi4EEvPT_i typedefs _Z5plainifPKfPf"].assert_eq(&symbols.join(" "));
}

#[test]
fn damaged_stub_file_is_read_or_refused() {
    for at in (0..STUB.len()).step_by(if is_full() { 1 } else { 21 }) {
        let found = entries(&STUB[..at]).len() + entries(&STUB[at..]).len();
        assert!(found <= entries(STUB).len());
    }
}

#[test]
fn annotations_find_their_entries() {
    let entries = entries(STUB);
    let clauses = "block(32) threads(4)";
    for (line, expected) in [
        ("__global__ void plain", "plain"),
        ("__global__ void packed", "ns::inner::packed"),
        ("__global__ void\n__launch_bounds__", "_NV_ANON_NAMESPACE::anonymous"),
        ("__global__ void nothing", "nothing"),
    ] {
        let entry = find(&entries, &annotation(line, clauses), &NO_MACROS, &Spelled::new())
            .unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(entry.qualified, expected);
    }
    for (line, types) in
        [("__global__ void twice(int a, float", "float *"), ("__global__ void twice(int a, double", "double *")]
    {
        let entry = find(&entries, &annotation(line, clauses), &NO_MACROS, &Spelled::new())
            .unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(entry.parameters[1], types);
    }
    let mut absent = annotation("__global__ void plain", clauses);
    absent.kernel.name = "gone".to_string();
    let problem = find(&entries, &absent, &NO_MACROS, &Spelled::new()).expect_err("no such kernel");
    assert!(
        problem.to_string().starts_with(
            "src/kernels.cu(9): warning: the compilation has no kernel `gone`; nvcc builds it as it is [N0167]\n"
        ),
        "{problem}"
    );
}

/// What binding gives, in short.
fn bound(line: &str, clauses: &str) -> String {
    let annotation = annotation(line, &format!("block(32) grid(4) {clauses}"));
    let space = Space::new(&annotation, &Limits::default()).unwrap_or_else(|problems| panic!("{}", render(&problems)));
    let entries = entries(STUB);
    let entry = find(&entries, &annotation, &NO_MACROS, &Spelled::new()).unwrap_or_else(|problem| panic!("{problem}"));
    let workload = match bind(&annotation, entry, &space, space.baseline()) {
        Ok(workload) => workload,
        Err(problems) => {
            return problems.iter().map(|problem| format!("error: {}\n", problem.message)).collect();
        }
    };
    let mut shown = String::new();
    for (argument, text) in workload.arguments.iter().zip(&entry.parameters) {
        let value = match argument {
            Argument::Scalar(bytes) => format!("{bytes:02x?}"),
            Argument::Struct { bytes, buffers } => format!("{bytes:02x?} with {buffers:?}"),
            Argument::Buffer(index) => {
                let buffer = &workload.buffers[*index];
                let Buffer { name, element, count, fill, .. } = buffer;
                let fill = match fill {
                    Fill::Each(_) | Fill::Table(_) => {
                        format!("{:?}, ...", (0..5).map(|at| contents::value(buffer, at)).collect::<Vec<_>>())
                    }
                    fill => format!("{fill:?}"),
                };
                format!("{name}: {count} of {}x{:?}, {fill}", element.lanes, element.scalar)
            }
        };
        shown.push_str(&format!("{text} <- {value}\n"));
    }
    if let Some(checks) = &workload.checks {
        checks.iter().for_each(|check| {
            shown.push_str(&format!("check {} {:?} {:?}\n", check.buffer, check.relative, check.absolute))
        });
    }
    shown
}

#[test]
fn values_have_types_of_parameters() {
    let mut shown = String::new();
    for (line, clauses) in [
        ("__global__ void plain", "args(n = 1 << 8, a = 2.0f, x = random[n], y = out[n * block.x]) check(y)"),
        ("__global__ void plain", "args(n = 1e3, a = -1, x = nullptr, y = random(-1, 1)[n]) check(y, rtol = 0)"),
        ("__global__ void plain", "args(n = 1 << 31, a = 1e39, x = zeros[0], y = out[1 << 50]) check(none)"),
        ("__global__ void plain", "args(n = 1.5, a = zeros[4], x = 5, y = fill(1e300)[4])"),
        ("__global__ void plain", ""),
        (
            "extern \"C\" __global__ void typedefs",
            "args(a = 1, p = zeros[4], n = 1 << 31, s = 1, q = -1, b = random[4]) check(b, p, atol = 1)",
        ),
        (
            "extern \"C\" __global__ void typedefs",
            "args(a = 1, p = zeros[4], n = -1, s = -1, q = 0, b = fill(256)[4]) check(b, rtol = 1)",
        ),
        ("extern \"C\" __global__ void typedefs", "args(a = 1, p = zeros[4], n = 1, s = 1, q = 0, b = fill(-1)[4])"),
        ("extern \"C\" __global__ void typedefs", "args(a = 1, p = zeros[4], n = 1, s = 1, q = 0, b = fill(-257)[4])"),
        ("extern \"C\" __global__ void typedefs", "args(a = 1, p = zeros[4], n = 1, s = 1, q = 0, b = fill(-1.5)[4])"),
        ("extern \"C\" __global__ void typedefs", "args(a = 1, p = zeros[4], n = 1, s = 1, q = 0, b = fill(1e300)[4])"),
        (
            "__global__ void packed",
            "args(h = 1.0, p = random[2], b = iota[2], f = random[2], g = out[2], flags = random[8], c = iota[3]) check(p, b)",
        ),
        (
            "__global__ void plain",
            "args(n = 1 << 8, a = 1, x = each(index == 0 ? 0.5 : n / index)[n], y = each(n << index % 2)[n])",
        ),
        ("__global__ void plain", "args(n = 1 << 20, a = 1, x = each(1 / (n - 1 - index))[n], y = each(indx + m)[n])"),
        ("__global__ void plain", "args(n = 100, a = 2, x = random(-a, n / 2)[n], y = fill(a / 4.0)[n])"),
        ("__global__ void plain", "args(n = 3, a = 1, x = random(n, m)[n], y = fill(1 / (n - 3))[n])"),
        ("__global__ void plain", "args(n = 3, a = 1, x = random(n, 2)[n], y = fill(n * 1e39)[n])"),
        ("__global__ void\n__launch_bounds__", "args(n = 5, c = -128, f = true, d = 0.1)"),
        ("__global__ void\n__launch_bounds__", "args(n = 5, c = 128, f = 2, d = 0.1)"),
        ("__global__ void plain", "args(n = 3, a = 1, x = {1, -0.5, n}, y = {4}[2 * n])"),
        (
            "__global__ void plain",
            "args(n = 9, a = 1, x = each(sqrt(index) + floor(-0.5))[n], y = each(pow(index, 2) * cos(0))[n])",
        ),
        ("__global__ void plain", "args(n = 9, a = 1, x = each(log(index))[n], y = each(sqrt(1 - index))[n])"),
        ("__global__ void plain", "args(n = 3, a = 1, x = {1, 1e39}, y = {1, 2, 3, 4}[n])"),
        (
            "__global__ void packed",
            "args(h = 1.0, p = {1}, b = {2}, f = {1, 2, 3, 4, 5}, g = {1}[2], flags = {true, 2}, c = {255})",
        ),
        (
            "__global__ void packed",
            "args(h = 1.0, p = {1}, b = {2}, f = {1, 2, 3, 4, 5}, g = {1}[2], flags = {true, false}, c = {255, 0, 1})",
        ),
        ("__global__ void values", "args(p = {1}, v = {1, 2}, w = {1}, pp = {1}, tile = {1}, q = {255})"),
        ("__global__ void values", "args(p = 1, v = 1, w = zeros[1], pp = zeros[1], tile = 1, q = zeros[3])"),
    ] {
        shown.push_str(&format!("==== {clauses}\n{}", bound(line, clauses)));
    }
    expect![[r#"
        ==== args(n = 1 << 8, a = 2.0f, x = random[n], y = out[n * block.x]) check(y)
        int <- [00, 01, 00, 00]
        float <- [00, 00, 00, 40]
        const float * <- x: 256 of 1xF32, Random { lo: 0.0, hi: 1.0 }
        float * <- y: 8192 of 1xF32, Poison
        check 1 0.0001 None
        ==== args(n = 1e3, a = -1, x = nullptr, y = random(-1, 1)[n]) check(y, rtol = 0)
        int <- [e8, 03, 00, 00]
        float <- [00, 00, 80, bf]
        const float * <- [00, 00, 00, 00, 00, 00, 00, 00]
        float * <- y: 1000 of 1xF32, Random { lo: -1.0, hi: 1.0 }
        check 0 0.0 None
        ==== args(n = 1 << 31, a = 1e39, x = zeros[0], y = out[1 << 50]) check(none)
        error: `n` is of type `int` and cannot be 2147483648: it holds -2147483648 to 2147483647
        error: 1e39 is too large for `a`, which is of type `float`
        error: buffer `x` needs 1 element or more, not 0
        error: buffer `y` has 1125899906842624 elements of 4 bytes: more than any GPU holds
        ==== args(n = 1.5, a = zeros[4], x = 5, y = fill(1e300)[4])
        error: `n` is of type `int` and cannot be 1.5
        error: `a` is of type `float` and takes a value, not a buffer
        error: `x` is of type `const float *` and takes a buffer, such as random[n], zeros[n] or out[n]
        error: 1e300 is too large for `y`, which is of type `float *`
        ==== 
        error: `plain` cannot be measured: it has no args(...)
        ==== args(a = 1, p = zeros[4], n = 1 << 31, s = 1, q = -1, b = random[4]) check(b, p, atol = 1)
        float <- [00, 00, 80, 3f]
        float * <- p: 4 of 1xF32, Zeros
        unsigned int <- [00, 00, 00, 80]
        unsigned long <- [01, 00, 00, 00, 00, 00, 00, 00]
        long <- [ff, ff, ff, ff, ff, ff, ff, ff]
        unsigned char * <- b: 4 of 1xU8, Random { lo: 0.0, hi: 255.0 }
        check 1 0.0 None
        check 0 0.0001 Some(1.0)
        ==== args(a = 1, p = zeros[4], n = -1, s = -1, q = 0, b = fill(256)[4]) check(b, rtol = 1)
        error: `n` is of type `unsigned int` and cannot be -1: it holds 0 to 4294967295
        error: `s` is of type `unsigned long` and cannot be -1: it holds 0 to 18446744073709551615
        error: buffer `b` is of type `unsigned char *`, which does not hold 256
        ==== args(a = 1, p = zeros[4], n = 1, s = 1, q = 0, b = fill(-1)[4])
        error: buffer `b` is of type `unsigned char *`, which does not hold -1; C makes 255 of it
        ==== args(a = 1, p = zeros[4], n = 1, s = 1, q = 0, b = fill(-257)[4])
        error: buffer `b` is of type `unsigned char *`, which does not hold -257
        ==== args(a = 1, p = zeros[4], n = 1, s = 1, q = 0, b = fill(-1.5)[4])
        error: buffer `b` is of type `unsigned char *`, which does not hold -1.5
        ==== args(a = 1, p = zeros[4], n = 1, s = 1, q = 0, b = fill(1e300)[4])
        error: buffer `b` is of type `unsigned char *`, which does not hold 1e300
        ==== args(h = 1.0, p = random[2], b = iota[2], f = random[2], g = out[2], flags = random[8], c = iota[3]) check(p, b)
        __half <- [00, 3c]
        __half * <- p: 2 of 1xF16, Random { lo: 0.0, hi: 1.0 }
        const __nv_bfloat16 * <- b: 2 of 1xBf16, Iota
        float4 * <- f: 2 of 4xF32, Random { lo: 0.0, hi: 1.0 }
        float3 * <- g: 2 of 3xF32, Poison
        bool * <- flags: 8 of 1xU8, Random { lo: 0.0, hi: 1.0 }
        uchar4 * <- c: 3 of 4xU8, Iota
        check 0 0.004 None
        check 1 0.03 None
        ==== args(n = 1 << 8, a = 1, x = each(index == 0 ? 0.5 : n / index)[n], y = each(n << index % 2)[n])
        int <- [00, 01, 00, 00]
        float <- [00, 00, 80, 3f]
        const float * <- x: 256 of 1xF32, [0.5, 256.0, 128.0, 85.0, 64.0], ...
        float * <- y: 256 of 1xF32, [256.0, 512.0, 256.0, 512.0, 256.0], ...
        ==== args(n = 1 << 20, a = 1, x = each(1 / (n - 1 - index))[n], y = each(indx + m)[n])
        error: element 1048575 of buffer `x` has no value: division by zero
        error: unknown name `indx`: known are a, n, block.size/x/y/z, grid.x/y/z
        ==== args(n = 100, a = 2, x = random(-a, n / 2)[n], y = fill(a / 4.0)[n])
        int <- [64, 00, 00, 00]
        float <- [00, 00, 00, 40]
        const float * <- x: 100 of 1xF32, Random { lo: -2.0, hi: 50.0 }
        float * <- y: 100 of 1xF32, Constant(0.5)
        ==== args(n = 3, a = 1, x = random(n, m)[n], y = fill(1 / (n - 3))[n])
        error: unknown name `m`: known are a, n, block.size/x/y/z, grid.x/y/z
        error: division by zero
        ==== args(n = 3, a = 1, x = random(n, 2)[n], y = fill(n * 1e39)[n])
        error: this range is empty: 3 is above 2; write random(2, 3)
        error: 3e39 is too large for `y`, which is of type `float *`
        ==== args(n = 5, c = -128, f = true, d = 0.1)
        unsigned long long <- [05, 00, 00, 00, 00, 00, 00, 00]
        signed char <- [80]
        bool <- [01]
        double <- [9a, 99, 99, 99, 99, 99, b9, 3f]
        ==== args(n = 5, c = 128, f = 2, d = 0.1)
        error: `c` is of type `signed char` and cannot be 128: it holds -128 to 127
        error: `f` is of type `bool` and cannot be 2: it holds 0 to 1
        ==== args(n = 3, a = 1, x = {1, -0.5, n}, y = {4}[2 * n])
        int <- [03, 00, 00, 00]
        float <- [00, 00, 80, 3f]
        const float * <- x: 3 of 1xF32, [1.0, -0.5, 3.0, 0.0, 0.0], ...
        float * <- y: 6 of 1xF32, [4.0, 0.0, 0.0, 0.0, 0.0], ...
        ==== args(n = 9, a = 1, x = each(sqrt(index) + floor(-0.5))[n], y = each(pow(index, 2) * cos(0))[n])
        int <- [09, 00, 00, 00]
        float <- [00, 00, 80, 3f]
        const float * <- x: 9 of 1xF32, [-1.0, 0.0, 0.4142135679721832, 0.7320508360862732, 1.0], ...
        float * <- y: 9 of 1xF32, [0.0, 1.0, 4.0, 9.0, 16.0], ...
        ==== args(n = 9, a = 1, x = each(log(index))[n], y = each(sqrt(1 - index))[n])
        error: element 0 of buffer `x` has no value: `log` has no finite value here
        error: element 2 of buffer `y` has no value: `sqrt` has no finite value here
        ==== args(n = 3, a = 1, x = {1, 1e39}, y = {1, 2, 3, 4}[n])
        error: 1e39 is too large for `x[1]`, which is of type `float`
        error: 4 values are listed for `y`, which has 3 of them: take some out, or make it longer
        ==== args(h = 1.0, p = {1}, b = {2}, f = {1, 2, 3, 4, 5}, g = {1}[2], flags = {true, 2}, c = {255})
        error: `flags[1]` is of type `bool` and cannot be 2: it holds 0 to 1
        ==== args(h = 1.0, p = {1}, b = {2}, f = {1, 2, 3, 4, 5}, g = {1}[2], flags = {true, false}, c = {255, 0, 1})
        __half <- [00, 3c]
        __half * <- p: 1 of 1xF16, [1.0, 0.0, 0.0, 0.0, 0.0], ...
        const __nv_bfloat16 * <- b: 1 of 1xBf16, [2.0, 0.0, 0.0, 0.0, 0.0], ...
        float4 * <- f: 2 of 4xF32, [1.0, 2.0, 3.0, 4.0, 5.0], ...
        float3 * <- g: 2 of 3xF32, [1.0, 0.0, 0.0, 0.0, 0.0], ...
        bool * <- flags: 2 of 1xU8, [1.0, 0.0, 0.0, 0.0, 0.0], ...
        uchar4 * <- c: 1 of 4xU8, [255.0, 0.0, 1.0, 0.0, 0.0], ...
        ==== args(p = {1}, v = {1, 2}, w = {1}, pp = {1}, tile = {1}, q = {255})
        error: `p` is of type `Params`: give its fields, as in p = {x = 1, y = zeros[n]}
        error: `v` is of type `View<float>`: give its fields, as in v = {x = 1, y = zeros[n]}
        error: `w` is of type `View<const double> *`: say what numbers it is made of, as in float w = random[2 * n]
        error: `pp` is of type `float **`: buffers hold numbers, not pointers
        error: `tile` is a reference (`float[4] &`): what it refers to lives in the host's program
        ==== args(p = 1, v = 1, w = zeros[1], pp = zeros[1], tile = 1, q = zeros[3])
        error: `p` is of type `Params`: give its fields, as in p = {x = 1, y = zeros[n]}
        error: `v` is of type `View<float>`: give its fields, as in v = {x = 1, y = zeros[n]}
        error: `w` is of type `View<const double> *`: say what numbers it is made of, as in float w = random[2 * n]
        error: `pp` is of type `float **`: buffers hold numbers, not pointers
        error: `tile` is a reference (`float[4] &`): what it refers to lives in the host's program
    "#]].assert_eq(&shown);
}

#[test]
fn contents_of_part_equal_contents_of_whole() {
    let bytes = (0..=255u8).cycle().take(3 + 50 * contents::MAX_ELEMENT).collect();
    let file = Fill::File(FileBytes::new(Arc::new(bytes), 3));
    let annotation =
        annotation("__global__ void plain", "block(32) grid(4) args(n = 64, a = 1, x = 0, y = each(index * 7 % n)[n])");
    let space = Space::new(&annotation, &Limits::default()).expect("a space");
    let entries = entries(STUB);
    let entry = find(&entries, &annotation, &NO_MACROS, &Spelled::new()).expect("an entry");
    let each = bind(&annotation, entry, &space, space.baseline()).expect("a workload").buffers[0].fill.clone();
    let random = Fill::Random { lo: 2.0, hi: 100.0 };
    let table = Fill::Table(vec![1, 2, 3, 4, 5]);
    let fills = [Fill::Poison, Fill::Zeros, Fill::Iota, Fill::Constant(3.0), random, file, table, each];
    for scalar in Scalar::ALL {
        for fill in &fills {
            for lanes in 1..=4 {
                let element = Element { scalar, lanes };
                let buffer = Buffer { name: "x".to_string(), element, count: 50, fill: fill.clone(), seed: 9 };
                let size = element.size();
                let mut whole = vec![0; 50 * size];
                assert!(contents::fill_bytes(&buffer, 0..50, &mut whole));
                let mut part = vec![0; 7 * size];
                assert!(contents::fill_bytes(&buffer, 13..20, &mut part));
                assert_eq!(part, whole[13 * size..20 * size]);
                for (index, bytes) in (0..).zip(whole.chunks(size)) {
                    assert_eq!(&contents::element_bytes(&buffer, index)[..size], bytes);
                }
                if let Fill::Random { lo, hi } = *fill {
                    let values: Vec<f64> =
                        (0..50 * u64::from(lanes)).map(|lane| contents::value(&buffer, lane)).collect();
                    assert!(values.iter().all(|value| (lo..=hi).contains(value)));
                    assert!(values.windows(2).any(|pair| pair[0] != pair[1]));
                }
                if *fill == Fill::Poison && scalar.is_float() {
                    assert!(contents::value(&buffer, 0).is_nan());
                }
            }
        }
    }
}

#[test]
fn seeds_are_distinct_and_random_numbers_uniform() {
    let annotation = annotation(
        "__global__ void plain",
        "block(32) grid(4) args(n = 4, a = 1, x = random[100000], y = random[100000])",
    );
    let space = Space::new(&annotation, &Limits::default()).unwrap_or_else(|problems| panic!("{}", render(&problems)));
    let entries = entries(STUB);
    let entry = find(&entries, &annotation, &NO_MACROS, &Spelled::new()).unwrap_or_else(|problem| panic!("{problem}"));
    let mut workload =
        bind(&annotation, entry, &space, space.baseline()).unwrap_or_else(|problems| panic!("{}", render(&problems)));
    let first: Vec<u64> = workload.buffers.iter().map(|buffer| buffer.seed).collect();
    let mean = (0..100_000).map(|index| contents::value(&workload.buffers[0], index)).sum::<f64>() / 1e5;
    assert!((mean - 0.5).abs() < 0.005, "{mean}");
    let equal = (0..100_000)
        .filter(|&index| contents::value(&workload.buffers[0], index) == contents::value(&workload.buffers[1], index))
        .count();
    assert!(equal < 10, "{equal}");
    workload.reseed(1);
    let second: Vec<u64> = workload.buffers.iter().map(|buffer| buffer.seed).collect();
    assert!(first.iter().chain(&second).collect::<std::collections::BTreeSet<_>>().len() == 4);
    workload.reseed(0);
    assert!(workload.buffers.iter().map(|buffer| buffer.seed).eq(first));
    // Whole integers of the range, both ends among them.
    let element = Element { scalar: Scalar::U8, lanes: 1 };
    let bytes =
        Buffer { name: "b".to_string(), element, count: 10_000, fill: Fill::Random { lo: 0.0, hi: 255.0 }, seed: 3 };
    let seen: std::collections::BTreeSet<u64> =
        (0..10_000).map(|index| contents::value(&bytes, index) as u64).collect();
    assert_eq!(seen.len(), 256);
    assert!(matches!(Type::parse_type("const float *"), Type::Pointer { is_const: true, .. }));
}
