//! The measuring process on a stand-in for the driver: CUDA arrays, textures and surfaces of a recorded launch.

use super::driver::{buffer, makes, outcomes, start};
use nvtune::cuda::{Element, Sampling, Scalar, TextureArray, TextureMemory, TextureObject};
use nvtune::measure::Candidate;
use nvtune::workload::{Argument, Buffer, FileBytes, Fill};
use std::sync::Arc;

/// Texels of a row, and rows.
const EXTENT: [u64; 3] = [100, 10, 0];
const COUNT: u64 = 1000;
const TEXEL: Element = Element { scalar: Scalar::U32, lanes: 1 };

/// Numbers that a recording has.
fn recorded(name: &str, factor: u32) -> Buffer {
    let bytes: Vec<u8> = (0..COUNT as u32).flat_map(|number| (number * factor).to_le_bytes()).collect();
    buffer(name, Scalar::U32, COUNT, Fill::File(FileBytes::new(Arc::new(bytes), 0)))
}

/// A candidate whose argument of this number is the handle of an object.
fn with_object(kernel: &str, y: Buffer, argument: usize, memory: TextureMemory, mode: Option<u32>) -> Candidate {
    let candidate = makes(kernel, recorded("x", 3), y);
    let mut workload = (*candidate.workload).clone();
    workload.arguments[argument] = Argument::Scalar(vec![0; 8]);
    let descriptor = |mode| Sampling { descriptor: [mode, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], view: None };
    workload.textures = vec![TextureObject { argument, field: 0, memory, sampling: mode.map(descriptor) }];
    if let TextureMemory::Array(_) = &workload.textures[0].memory {
        workload.arrays = vec![TextureArray { buffer: argument - 2, extent: EXTENT, texel: TEXEL, flags: 2 }];
    }
    Candidate { workload: Arc::new(workload), ..candidate }
}

/// `(n, a, texture x, unsigned *y)`
fn fetching(kernel: &str, memory: TextureMemory) -> Candidate {
    with_object(kernel, buffer("y", Scalar::U32, COUNT, Fill::Poison), 2, memory, Some(1))
}

/// `(n, a, const unsigned *x, surface y)`
fn drawing(kernel: &str, y: Buffer) -> Candidate {
    with_object(kernel, y, 3, TextureMemory::Array(0), None)
}

#[test]
fn texture_has_the_recorded_contents() {
    let plain = |kernel| makes(kernel, recorded("x", 3), buffer("y", Scalar::U32, COUNT, Fill::Poison));
    let (linear, pitched) = (
        TextureMemory::Linear { buffer: 0, offset: 0, bytes: 4 * COUNT, texel: TEXEL },
        TextureMemory::Pitched { buffer: 0, offset: 0, width: 50, height: 20, pitch: 200, texel: TEXEL },
    );
    let candidates = [TextureMemory::Array(0), linear, pitched].map(|memory| fetching("fetches", memory));
    assert_eq!(outcomes(&mut start(1 << 30), &plain("copies"), &candidates), ["timed"; 3]);
    let shifted = TextureMemory::Linear { buffer: 0, offset: 4, bytes: 4 * COUNT - 4, texel: TEXEL };
    let mut shifted = fetching("fetches", shifted);
    Arc::make_mut(&mut shifted.workload).arguments[0] = Argument::Scalar(999_i32.to_le_bytes().to_vec());
    let said = outcomes(&mut start(1 << 30), &plain("copies"), &[shifted]);
    assert!(said[0].contains("1000 of 1000 elements of `y` differ"), "{said:?}");
}

#[test]
fn array_that_a_surface_writes_is_compared_and_restored() {
    for y in [recorded("y", 7), buffer("y", Scalar::U32, COUNT, Fill::Overwritten)] {
        let of = |kernel| drawing(kernel, y.clone());
        let said = outcomes(&mut start(1 << 30), &of("draws"), &["draws", "draws_wrong", "draws"].map(of));
        assert_eq!([&said[0], &said[2]], ["timed"; 2], "{said:?}");
        assert!(said[1].contains("1 of 1000 elements of `y` differ from the baseline's: y[999] is "), "{said:?}");
    }
    // It adds to what it finds: a sum that is left from the launch before would show.
    let of = |kernel| drawing(kernel, recorded("y", 7));
    let said = outcomes(&mut start(1 << 30), &of("adds"), &["adds", "draws", "adds"].map(of));
    assert_eq!([&said[0], &said[2]], ["timed"; 2], "{said:?}");
    assert!(said[1].contains("elements of `y` differ"), "{said:?}");
}

#[test]
fn write_into_an_array_that_the_baseline_only_reads_is_refused_and_undone() {
    let of = |kernel| fetching(kernel, TextureMemory::Array(0));
    let said = outcomes(&mut start(1 << 30), &of("fetches"), &["fetches", "scribbles", "fetches"].map(of));
    let stray = "writes to `x` where the baseline leaves it alone (an index out of bounds?)";
    assert_eq!(said, ["timed", stray, "timed"]);
}

#[test]
fn object_that_the_driver_does_not_take_is_refused_alone() {
    let of =
        |memory, mode| with_object("fetches", buffer("y", Scalar::U32, COUNT, Fill::Poison), 2, memory, Some(mode));
    let beyond = TextureMemory::Linear { buffer: 0, offset: 8, bytes: 4 * COUNT, texel: TEXEL };
    let mut misshapen = of(TextureMemory::Array(0), 1);
    Arc::make_mut(&mut misshapen.workload).arrays[0].extent[1] = 11;
    let candidates = [of(TextureMemory::Array(0), 4), of(beyond, 1), misshapen, of(TextureMemory::Array(0), 1)];
    let said = outcomes(&mut start(1 << 30), &of(TextureMemory::Array(0), 0), &candidates);
    for refused in &said[..3] {
        assert_eq!(refused, "making its textures failed: CUDA_ERROR_INVALID_VALUE");
    }
    assert_eq!(said[3], "timed");
}
