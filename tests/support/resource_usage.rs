//! What `cuobjdump -res-usage` prints of a cubin, against what `nvtune::sass` reads.

use nvtune::sass::Cubin;

/// Compares all kernels of a cubin with the printed text. Returns their number and one line for each that differs.
pub fn compare(cubin: &str, bytes: &[u8], printed: &str) -> (usize, Vec<String>) {
    let parsed = Cubin::parse(bytes).unwrap_or_else(|error| panic!("{cubin}: {error}"));
    let architecture = parsed.architecture();
    let (mut name, mut seen, mut wrong) = ("", 0, Vec::new());
    for line in printed.lines().map(str::trim) {
        if let Some(function) = line.strip_prefix("Function ") {
            name = function.trim_end_matches(':');
        } else if line.starts_with("REG:") {
            let field = |key: &str| -> u32 {
                let value = line.split_whitespace().find_map(|word| word.strip_prefix(key)).expect(key);
                value.parse().expect(value)
            };
            // The driver's 1 KiB is counted from sm_90 on, where the kernel has shared memory at all; the constant bank begins with what is
            // the driver's ("Constant bank 0" grew with sm_90 and sm_100).
            let reserve = if architecture >= 90 && field("SHARED:") > 0 { 1024 } else { 0 };
            let constants = match architecture {
                ..90 => 0x160,
                90..100 => 0x210,
                _ => 0x380,
            };
            let theirs =
                [field("REG:"), field("STACK:"), field("SHARED:") - reserve, field("CONSTANT[0]:") - constants];
            let ours = parsed.kernel(name).map(|kernel| {
                let found = &kernel.resources;
                [found.registers, found.stack_frame, found.static_shared, found.parameter_bytes]
            });
            if ours != Some(theirs) {
                wrong
                    .push(format!("{cubin} {name}: registers, stack, shared, parameters are {ours:?}, not {theirs:?}"));
            }
            seen += 1;
        }
    }
    assert_eq!(seen, parsed.kernels().len(), "{cubin}: {printed}");
    (seen, wrong)
}
