//! Numbers of bytes as messages have them.

/// A number of bytes as a person reads it: `1.5 MiB`.
pub fn in_units(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >> shift > 0) {
        Some((shift, unit)) => format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::in_units;

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_they_fill() {
        for (bytes, shown) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1_572_864, "1.5 MiB"),
            (1 << 30, "1.0 GiB"),
            (5 << 40, "5120.0 GiB"),
        ] {
            assert_eq!(in_units(bytes), shown);
        }
    }
}
