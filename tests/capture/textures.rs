//! Launches with texture and surface objects: what is recorded of them, what is left out, and what a build makes of it.

use super::{Headers, check, command, described, kernel, link, source, timed, write_timings};
use crate::support::full::cases;
use expect_test::expect;
use nvtune::recording::{LeftOut, RecordedLaunch, fuzzed};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// A folder with `textured.cu` and the program made of it.
static BUILT: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(source("textured.cu"), folder.path().join("launches.cu")).expect("copied");
    let built = command(folder.path(), "capture", Headers::Cuda).output().expect("it starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    link(folder.path(), &[]);
    folder
});

/// Runs the program with recordings in a folder of their own.
fn recorded(argument: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Command::new(BUILT.path().join("program"));
    let ran = program.arg(argument).env("NVTUNE_CAPTURE_DIR", folder.path()).output().expect("it starts");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success() && printed.ends_with("\nerror 0\n"), "{ran:?}");
    folder
}

/// The contents of a buffer of the only recorded launch.
fn contents(folder: &Path, buffer: usize) -> Vec<u8> {
    let recorded = kernel(folder, "resampled");
    let file = std::fs::read(&recorded.launches[0].path).expect("read");
    let place = &recorded.launches[0].launch.buffers[buffer];
    file[place.start as usize..place.end as usize].to_vec()
}

#[test]
fn objects_are_recorded_with_their_arrays_and_memory() {
    let folder = recorded("0");
    check(
        folder.path(),
        "resampled",
        expect![[r#"
            3 x grid [1, 2, 1] block [8, 2, 1] shared 0
              Signed 8
              Signed 4
              Texture of 8 bytes
              Texture of 8 bytes
              Surface of 8 bytes
              Pointer of 8 bytes
              buffers [128, 128, 4096, 30]
              argument 5 + 0 -> buffer 0 + 0
              image_of_all: 8 bytes
              array [8, 4, 0] of 1xF32, flags 0 = buffer 1
              array [5, 3, 2] of 1xU8, flags 3 = buffer 3
              argument 2 + 0 = Array(0)
                [1, 2, 3, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0] None
              argument 3 + 0 = Linear { buffer: 2, offset: 512, bytes: 256, texel: Element { scalar: F32, lanes: 1 } }
                [1, 2, 3, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0] None
              argument 4 + 0 = Array(1)
        "#]],
    );
    let texels: Vec<u8> = (0..32).flat_map(|i| (0.5 * i as f32).to_le_bytes()).collect();
    assert_eq!(contents(folder.path(), 1), texels);
    assert_eq!(contents(folder.path(), 3), (100..130).collect::<Vec<u8>>());
}

#[test]
fn rows_of_memory_views_and_arrays_of_two_objects_are_recorded() {
    check(
        recorded("1").path(),
        "resampled",
        expect![[r#"
            3 x grid [1, 2, 1] block [8, 2, 1] shared 0
              Signed 8
              Signed 4
              Texture of 8 bytes
              Texture of 8 bytes
              Surface of 8 bytes
              Pointer of 8 bytes
              buffers [128, 30, 4096]
              argument 5 + 0 -> buffer 0 + 0
              image_of_all: 8 bytes
              array [5, 3, 2] of 1xU8, flags 3 = buffer 1
              argument 2 + 0 = Array(0)
                [1, 2, 3, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0] Some([1, 5, 3, 2, 0, 0])
              argument 3 + 0 = Pitched { buffer: 2, offset: 512, width: 6, height: 3, pitch: 512, texel: Element { scalar: F32, lanes: 1 } }
                [1, 2, 3, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0] None
              argument 4 + 0 = Array(0)
        "#]],
    );
}

#[test]
#[ignore = "long: in the full run"]
fn handle_that_is_zero_is_passed_as_it_is() {
    let folder = recorded("4");
    let launch = &kernel(folder.path(), "resampled").launches[0].launch;
    assert_eq!(launch.textures.iter().map(|texture| texture.argument).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(launch.arguments[2].bytes, [0; 8]);
}

#[test]
fn objects_that_cannot_be_replayed_are_left_out_with_the_reason() {
    for (argument, reason) in [
        ("2", "it has a mipmapped array"),
        ("3", "the driver does not describe its texture or surface"),
        ("5", "it has an array of a kind that is not recorded"),
        ("6", "it has an array of a kind that is not recorded"),
        ("7", "its texture is of memory that the driver does not know"),
    ] {
        let recorded = kernel(recorded(argument).path(), "resampled");
        assert_eq!(recorded.left_out, [LeftOut::Other(reason.to_owned())], "{argument}");
        assert!(recorded.launches.is_empty(), "{argument}");
    }
}

/// Builds with what a run recorded; returns what is said, and the record.
fn tuned(folder: &Path, mode: &str) -> (String, serde_json::Value) {
    let sources = tempfile::tempdir().expect("a folder");
    std::fs::copy(source("textured.cu"), sources.path().join("launches.cu")).expect("copied");
    write_timings(sources.path(), r#"{"label": "block=128", "time_us": 5.0}, {"time_us": 10.0, "spread": 0.01}"#);
    let mut build = command(sources.path(), mode, Headers::Cuda);
    build.env("NVTUNE_CAPTURE_DIR", folder).env("NVTUNE_REPLAY", "timings.json").env("NVTUNE_CANDIDATES", "4");
    let ran = build.output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stderr).replace(&*folder.to_string_lossy(), "FOLDER");
    assert!(ran.status.success(), "{said}");
    let record = std::fs::read_to_string(sources.path().join("launches.tune.json")).unwrap_or_default();
    (said, serde_json::from_str(&record).unwrap_or_default())
}

#[test]
#[ignore = "long: in the full run"]
fn kernel_with_textures_is_tuned_on_its_recording() {
    let folder = recorded("0");
    let (said, _) = tuned(folder.path(), "measure");
    assert!(timed(&said).contains("nvtune: resampled: timed\n") && said.contains("; 4 of 408 points timed"), "{said}");
    // Without a GPU the model predicts its times.
    let (said, record) = tuned(folder.path(), "static");
    let rows = record["kernels"][0]["configurations"].as_array().unwrap_or_else(|| panic!("{said}"));
    let is_predicted = |row: &serde_json::Value| row["score"]["predicted_us"].as_f64().is_some_and(|time| time > 0.0);
    assert!(rows.len() > 100 && rows.iter().all(is_predicted), "{record}");
}

#[test]
#[ignore = "long: in the full run"]
fn handle_in_a_structure_is_recorded_and_tuned() {
    let folder = recorded("8");
    check(
        folder.path(),
        "held",
        expect![[r#"
        3 x grid [1, 1, 1] block [32, 1, 1] shared 0
          Other of 16 bytes
          Pointer of 8 bytes
          buffers [128, 4096]
          argument 1 + 0 -> buffer 0 + 0
          image_of_all: 8 bytes
          argument 0 + 8 = Linear { buffer: 1, offset: 512, bytes: 256, texel: Element { scalar: F32, lanes: 1 } }
            [1, 2, 3, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0] None
    "#]],
    );
    let (said, _) = tuned(folder.path(), "measure");
    assert!(
        said.lines().any(|line| line.starts_with("nvtune: held: block=") && line.contains(" points timed")),
        "{said}"
    );
}

#[test]
#[ignore = "long: in the full run"]
fn kernel_with_handles_in_memory_is_not_tuned() {
    let (said, _) = tuned(recorded("8").path(), "measure");
    let lines = said.lines().filter(|line| line.contains("recording cannot be used"));
    expect![[r#"
        nvtune warning : listed: not tuned: its recording cannot be used: `images` points to textures, which a recording cannot replay [N0095]
        nvtune warning : stored: not tuned: its recording cannot be used: it has none of the kernel's textures: make their handles parameters [N0095]
    "#]].assert_eq(&lines.map(|line| format!("{line}\n")).collect::<String>());
}

#[test]
fn damaged_or_truncated_recording_names_nothing_that_it_does_not_have() {
    for argument in cases(&["0", "1"], 1) {
        let folder = recorded(argument);
        let bytes = std::fs::read(&kernel(folder.path(), "resampled").launches[0].path).expect("read");
        let is_read = |bytes: &[u8]| RecordedLaunch::read(&mut std::io::Cursor::new(bytes)).is_ok();
        assert!(is_read(&bytes));
        // The words of arrays and objects, at the end of the index.
        for at in bytes.len() - 700..bytes.len() {
            for value in [0, 1, 2, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                fuzzed::recording(&damaged);
            }
        }
        for length in 0..bytes.len() {
            assert!(!is_read(&bytes[..length]), "{length} bytes");
        }
    }
}

#[test]
fn recording_of_objects_that_contradicts_itself_is_refused() {
    let folder = recorded("0");
    let recorded = kernel(folder.path(), "resampled");
    let bytes = std::fs::read(&recorded.launches[0].path).expect("read");
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let end = bytes.len() - 24;
    // Behind the words of three objects, the last of which is the surface: 10, 0 and 0.
    let (surface, linear) = (end - 8 * 12, end - 8 * (12 + 19));
    assert_eq!((word(surface), word(linear), word(linear + 8 * 7)), (4, 3, 256));
    let arrays = linear - 8 * (19 + 1 + 2 * 7);
    assert_eq!([word(arrays + 8), word(arrays + 8 * 2)], [8, 4]);
    for (what, at, value) in [
        ("a texture beyond its memory", linear + 8 * 7, 4096 - 511),
        ("a texture at an offset that overflows", linear + 8 * 4, u64::MAX),
        ("an array that is not there", surface + 8 * 3, 2),
        ("a buffer that is not there", linear + 8 * 3, 9),
        ("an argument that is no handle", surface, 5),
        ("a handle twice", surface, 3),
        ("a field of a handle that is no structure", surface + 8, 8),
        ("a kind that is not recorded", linear + 8 * 2, 1),
        ("an array larger than its contents", arrays + 8, 9),
        ("an array of more bytes than there are numbers", arrays + 8, 1 << 62),
        ("a texel without a format", arrays + 8 * 4, 0xb0),
        ("a texel of three channels", arrays + 8 * 5, 3),
        ("an array without memory", arrays + 8 * 6, 0x40),
    ] {
        let mut damaged = bytes.clone();
        damaged[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
        assert!(RecordedLaunch::read(&mut std::io::Cursor::new(&damaged)).is_err(), "{what}");
    }
    assert!(!described(&recorded).contains("unusable"));
}
