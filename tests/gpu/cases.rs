// What contents and comparisons are tried on, with the device code on the host and on a GPU; a part of both tests.

/// Contents that the device makes, of each kind, and at the ends of what the type holds.
fn fills(scalar: Scalar) -> Vec<Fill> {
    let random = |lo, hi| Fill::Random { lo, hi };
    let mut fills = vec![Fill::Zeros, Fill::Poison, Fill::Iota, Fill::Constant(42.4), random(0.0, 100.0)];
    match scalar.integer_bounds() {
        Some((least, most)) => fills.extend([random(least as f64, most as f64), random(-7.5, 3.5), random(9.0, 2.0)]),
        None => fills.extend([
            random(-1.0, 1.0),
            random(0.0, 1e-7),
            random(-1e300, 1e300),
            random(1.0, 1.0 + f64::EPSILON),
            random(0.0, f64::MAX),
            random(5.0, 5.0),
        ]),
    }
    fills
}

/// Expected numbers.
const VALUES: [f64; 12] =
    [0.0, -0.0, 1.0, -2.5, 1e-7, 6e-8, 60000.0, 65504.0, 1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

/// The bits of what comes in place of one that may be off by so much: at the bounds, what no bound holds for, and the neighbours of these.
fn near(scalar: Scalar, value: f64, off: f64) -> Vec<u64> {
    let near = [value + off, value - off, value - 1.001 * off, -value];
    let bits = near.into_iter().chain(VALUES).map(|near| encode(scalar, near));
    bits.flat_map(|bits| [bits.wrapping_sub(1), bits, bits.wrapping_add(1)]).collect()
}
