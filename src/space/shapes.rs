//! Block shapes: those that `block(auto)` stands for, those of lists, and which is nearest to
//! the usual one.

use super::limits::Limits;
use crate::gpu::WARP;
use crate::launch::Dim3;
use std::cmp::Reverse;

/// Threads of the block that a program without other knowledge is most likely to use.
const USUAL_THREADS: u32 = 256;

/// Extents in x of `block(auto)` in two and three dimensions. Torres et al. (HPCS'11, section
/// III.B): a warp should ask for contiguous elements, so rows of whole warps (16, half a warp,
/// is the least that still fills a memory segment; 48 breaks warps and did badly); multiples of
/// three are there since 192, 384 and 768 threads divide the 1536 threads of an SM.
const AUTO_X: [u32; 9] = [16, 32, 64, 96, 128, 192, 256, 384, 512];
/// The most extent of a block in y or z that `block(auto)` has.
pub(crate) const MOST_ROWS: i64 = 64;
/// Extents in y of `block(auto)` in two dimensions.
const AUTO_Y: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Extents in x, and in y and z, of `block(auto)` in three dimensions; rows of 8 are there for
/// the cubes that stencils use.
const AUTO_X3: [u32; 5] = [8, 16, 32, 64, 128];
const AUTO_YZ3: [u32; 5] = [1, 2, 4, 8, 16];

/// Lists the shapes of `block(auto)` for blocks that extend in these dimensions. In x
/// alone, these have 32 to 1024 threads in steps of a warp. In more dimensions, they are
/// whole warps with 64 to 1024 threads.
pub(crate) fn automatic_shapes(extends: [bool; 3]) -> Vec<Dim3> {
    let shapes: Vec<Dim3> = match extends {
        [_, false, false] => return (1..=32).map(|warps| [warps * WARP, 1, 1]).collect(),
        [_, true, false] => product_of([&AUTO_X, &AUTO_Y, &[1]]),
        [_, false, true] => product_of([&AUTO_X, &[1], &AUTO_Y]),
        [_, true, true] => product_of([&AUTO_X3, &AUTO_YZ3, &AUTO_YZ3]),
    };
    let fits = |shape: &Dim3| {
        let threads: u32 = shape.iter().product();
        threads.is_multiple_of(WARP) && (64..=1024).contains(&threads)
    };
    shapes.into_iter().filter(fits).collect()
}

fn product_of([xs, ys, zs]: [&[u32]; 3]) -> Vec<Dim3> {
    xs.iter().flat_map(|&x| ys.iter().flat_map(move |&y| zs.iter().map(move |&z| [x, y, z]))).collect()
}

/// Lists the shapes of one list for each dimension that the limits allow, x slowest. The
/// complete product of the lists is never built.
pub(crate) fn listed_shapes(lists: &[Vec<u32>], limits: &Limits) -> Vec<Dim3> {
    let one = vec![1];
    let list = |dimension: usize| lists.get(dimension).unwrap_or(&one);
    let mut shapes = Vec::new();
    for &x in list(0).iter().filter(|&&x| limits.allows([x, 1, 1])) {
        for &y in list(1).iter().filter(|&&y| limits.allows([x, y, 1])) {
            shapes.extend(list(2).iter().map(|&z| [x, y, z]).filter(|&shape| limits.allows(shape)));
        }
    }
    shapes
}

/// Ranks a shape by its distance from the usual block: by thread count, then elongation,
/// then wider in x and in y first.
pub(crate) fn shape_strangeness(shape: Dim3) -> (u32, u32, Reverse<Dim3>) {
    let threads: u32 = shape.iter().product();
    (threads.abs_diff(USUAL_THREADS), shape.iter().sum(), Reverse(shape))
}

#[cfg(test)]
mod tests {
    use super::{automatic_shapes, shape_strangeness};

    const EXTENTS: [[bool; 3]; 4] =
        [[true, false, false], [true, true, false], [true, true, true], [true, false, true]];

    #[test]
    fn automatic_shapes_are_whole_warps() {
        let counts = EXTENTS.map(|extends| automatic_shapes(extends).len());
        assert_eq!(counts, [32, 33, 80, 33]);
        for shape in EXTENTS.into_iter().flat_map(automatic_shapes) {
            let threads: u32 = shape.iter().product();
            assert!(threads.is_multiple_of(32) && threads <= 1024, "{shape:?}");
        }
    }

    #[test]
    fn the_usual_block_comes_first() {
        for (shapes, first) in [
            (automatic_shapes(EXTENTS[0]), [256, 1, 1]),
            (automatic_shapes(EXTENTS[1]), [16, 16, 1]),
            (vec![[100, 1, 1], [300, 1, 1]], [300, 1, 1]),
            (vec![[64, 4, 1], [32, 8, 1]], [32, 8, 1]),
            (vec![[4, 8, 1], [8, 4, 1]], [8, 4, 1]),
        ] {
            assert_eq!(shapes.into_iter().min_by_key(|&shape| shape_strangeness(shape)), Some(first));
        }
    }
}
