//! Indices of blocks and threads, and their places in a grid or block.

/// Splits a linear index into x, y and z.
pub(crate) fn unravel_index(index: u64, extents: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = extents.map(u64::from);
    [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
}

/// Joins x, y and z to a linear index.
pub(crate) fn linear_index(index: [u32; 3], [x, y, _]: [u32; 3]) -> u64 {
    let [a, b, c] = index.map(u64::from);
    a + u64::from(x) * (b + u64::from(y) * c)
}

/// Returns the linear index of the middle along each dimension. The middle of all linear
/// indices would be at an edge if the last extent is even.
pub(crate) fn middle_index([x, y, z]: [u32; 3]) -> u64 {
    let [x, y, z] = [x, y, z].map(u64::from);
    x / 2 + x * (y / 2 + y * (z / 2))
}

/// Middle, first and last, without repetition.
pub(crate) fn middle_and_ends(extents: [u32; 3]) -> Vec<u64> {
    let (middle, last) = (middle_index(extents), extents.iter().map(|&n| u64::from(n)).product::<u64>() - 1);
    let mut indices = vec![middle];
    indices.extend([0, last].into_iter().filter(|&end| end != middle));
    indices.dedup();
    indices
}
