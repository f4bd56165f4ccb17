//! Programs that record their launches, run on a runtime that takes the host's memory for the device's
//! (`capture/runtime.cpp`), and builds that go by what they recorded.

mod by_address;
mod later_launches;
mod other_launches;
mod structures;
mod textures;

use crate::support::record_schema::assert_records_in;
use crate::support::toolkit::{Headers, include_folder, nvcc, set_headers};
use expect_test::{Expect, expect};
use nvtune::cuda::{Sampling, TextureArray, TextureObject};
use nvtune::recording::{Holder, RecordedKernel, RecordedLaunch};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

/// A folder with the program, built once.
static BUILT: LazyLock<tempfile::TempDir> = LazyLock::new(|| built(&[], &[]));

/// A folder with the program, compiled and linked with these options besides.
fn built(compile: &[&str], link_options: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(source("launches.cu"), folder.path().join("launches.cu")).expect("copied");
    let ran = command(folder.path(), "capture", Headers::Cuda).args(compile).output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stderr).replace(&*folder.path().to_string_lossy(), "FOLDER");
    assert!(ran.status.success(), "{said}");
    expect![[r#"
        nvtune: scaled: launches are recorded below 'FOLDER/launches.capture'
        nvtune: viewed: launches are recorded below 'FOLDER/launches.capture'
        nvtune: filled_double: launches are recorded below 'FOLDER/launches.capture'
        nvtune: hidden: launches are recorded below 'FOLDER/launches.capture'
    "#]]
    .assert_eq(&said);
    link(folder.path(), link_options);
    folder
}

/// What is recorded of the program, a folder of its source tuned on that, and what is said then.
static TUNED: LazyLock<(tempfile::TempDir, tempfile::TempDir, String)> = LazyLock::new(|| {
    let (folder, _) = recorded("0", &[]);
    let sources = tempfile::tempdir().expect("a folder");
    let said = tuned_in(sources.path(), folder.path());
    (folder, sources, said)
});

/// Links the program of a folder with the runtime.
fn link(folder: &Path, options: &[&str]) {
    let mut link = Command::new("g++");
    link.args(options)
        .arg("-I")
        .arg(include_folder())
        .args(["-w", "-pthread", "-o", "program", "launches.o"])
        .arg(source("runtime.cpp"));
    let linked = link.current_dir(folder).output().expect("it starts");
    assert!(linked.status.success(), "{}", String::from_utf8_lossy(&linked.stderr));
}

/// Runs a command, which must succeed; returns what it says.
fn succeed(command: &mut Command) -> String {
    let ran = command.output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    said
}

/// A folder with a program of this text, and with what it recorded when it ran.
fn recorded_program(text: &str) -> tempfile::TempDir {
    recorded_program_and_output(text).0
}

/// Does the same as [`recorded_program`], and returns what the program printed.
fn recorded_program_and_output(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("launches.cu"), text).expect("written");
    succeed(&mut command(folder.path(), "capture", Headers::Cuda));
    link(folder.path(), &[]);
    let ran = Command::new(folder.path().join("program")).current_dir(folder.path()).output().expect("it starts");
    assert!(ran.status.success(), "{ran:?}");
    (folder, String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// Tunes on what the program of a folder recorded, by these recorded times in place of a GPU; returns what is said.
fn tuned_by_times(folder: &Path, entries: &str) -> String {
    write_timings(folder, entries);
    succeed(
        command(folder, "measure", Headers::Cuda).env("NVTUNE_REPLAY", "timings.json").env("NVTUNE_CACHE_SIZE", "0"),
    )
}

/// Writes recorded times of a GPU, which `NVTUNE_REPLAY` takes, into a folder.
fn write_timings(folder: &Path, entries: &str) {
    let replay =
        format!(r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90}}, "entries": [{entries}]}}"#);
    std::fs::write(folder.join("timings.json"), replay).expect("written");
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/capture").join(name)
}

/// nvtune as nvcc on `launches.cu` in a folder.
fn command(folder: &Path, mode: &str, headers: Headers) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nvtune"));
    command.args(["nvcc", "-arch=sm_90", "-c", "launches.cu", "-o", "launches.o"]).current_dir(folder);
    command.env("NVTUNE_NVCC", nvcc()).env("NVTUNE", mode).env("NVTUNE_CACHE_DIR", folder.join("cache"));
    set_headers(&mut command, headers);
    command
}

/// Runs it with the small headers.
fn nvtune(folder: &Path, mode: &str, environment: &[(&str, &str)]) -> Output {
    command(folder, mode, Headers::Small).envs(environment.iter().copied()).output().expect("it starts")
}

/// Runs the program with recordings in a folder of their own; returns that, and what was printed.
fn recorded(argument: &str, environment: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    recorded_by(BUILT.path(), argument, environment)
}

fn recorded_by(built: &Path, argument: &str, environment: &[(&str, &str)]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Command::new(built.join("program"));
    program.arg(argument).env("NVTUNE_CAPTURE_DIR", folder.path()).envs(environment.iter().copied());
    let ran = program.output().expect("it starts");
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(String::from_utf8_lossy(&ran.stderr), "");
    (folder, String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn kernel(folder: &Path, name: &str) -> RecordedKernel {
    RecordedKernel::read(&folder.join("launches.capture"), name)
}

/// What a recording says, without addresses.
fn described(recorded: &RecordedKernel) -> String {
    let mut text = String::new();
    let mut launches: Vec<_> = recorded.launches.iter().collect();
    launches.sort_by_key(|counted| counted.launch.grid);
    for counted in launches {
        let RecordedLaunch { grid, block, shared, arguments, buffers, pointers, variables, arrays, textures, .. } =
            &counted.launch;
        let _ = writeln!(text, "{} x grid {grid:?} block {block:?} shared {shared}", counted.count);
        for argument in arguments {
            let value = argument.integer().map(|value| value as f64).or(argument.float());
            let _ = match value {
                Some(value) => writeln!(text, "  {:?} {value}", argument.kind),
                None => writeln!(text, "  {:?} of {} bytes", argument.kind, argument.bytes.len()),
            };
        }
        let sizes: Vec<u64> = buffers.iter().map(|place| place.end - place.start).collect();
        let _ = writeln!(text, "  buffers {sizes:?}");
        for pointer in pointers {
            let holder = match pointer.holder {
                Holder::Argument(index) => format!("argument {index}"),
                Holder::Buffer(index) => format!("buffer {index}"),
                Holder::Variable(index) => format!("variable {index}"),
            };
            let _ = writeln!(text, "  {holder} + {} -> buffer {} + {}", pointer.offset, pointer.buffer, pointer.target);
        }
        for (_, symbol, place) in variables {
            let _ = writeln!(text, "  {symbol}: {} bytes", place.end - place.start);
        }
        for TextureArray { buffer, extent, texel, flags } in arrays {
            let _ = writeln!(
                text,
                "  array {extent:?} of {}x{:?}, flags {flags} = buffer {buffer}",
                texel.lanes, texel.scalar
            );
        }
        for TextureObject { argument, field, memory, sampling } in textures {
            let _ = writeln!(text, "  argument {argument} + {field} = {memory:?}");
            if let Some(Sampling { descriptor, view }) = sampling {
                let _ = writeln!(text, "    {descriptor:?} {view:?}");
            }
        }
        let file = std::fs::read(&counted.path).expect("read");
        assert!(counted.launch.is_intact(&file), "{}", counted.path.display());
    }
    if recorded.others > 0 {
        let _ = writeln!(text, "{} others", recorded.others);
    }
    for reason in &recorded.left_out {
        let _ = writeln!(text, "left out: {reason:?}");
    }
    for reason in &recorded.unusable {
        let _ = writeln!(text, "unusable: {reason}");
    }
    text
}

fn check(folder: &Path, name: &str, expected: Expect) {
    expected.assert_eq(&described(&kernel(folder, name)));
}

#[test]
fn first_launch_of_each_kind_is_recorded_with_the_memory_that_it_reaches() {
    let (folder, printed) = recorded("0", &[]);
    expect![[r#"
        _Z6scaledifPKfPf grid 4 1 1 block 256 1 1 shared 0
        _Z6scaledifPKfPf grid 2 1 1 block 256 1 1 shared 0
        _Z6viewed4ViewPKS_6Borderi grid 2 4 1 block 16 8 1 shared 0
        _Z6filledIdEvyT_PS0_ grid 5 1 1 block 128 1 1 shared 1024
        0 0
    "#]]
    .assert_eq(&printed);
    check(
        folder.path(),
        "scaled",
        expect![[r#"
            1 x grid [2, 1, 1] block [256, 1, 1] shared 0
              Signed 300
              Float 0.5
              Pointer of 8 bytes
              Pointer of 8 bytes
              buffers [4000, 8000]
              argument 2 + 0 -> buffer 0 + 0
              argument 3 + 0 -> buffer 1 + 400
              weights: 16 bytes
              target: 16 bytes
            3 x grid [4, 1, 1] block [256, 1, 1] shared 0
              Signed 1000
              Float 0.5
              Pointer of 8 bytes
              Pointer of 8 bytes
              buffers [4000, 8000]
              argument 2 + 0 -> buffer 0 + 0
              argument 3 + 0 -> buffer 1 + 0
              weights: 16 bytes
              target: 16 bytes
        "#]],
    );
    check(
        folder.path(),
        "viewed",
        expect![[r#"
        1 x grid [2, 4, 1] block [16, 8, 1] shared 0
          Other of 16 bytes
          Pointer of 8 bytes
          Other of 4 bytes
          Signed 30
          buffers [8000, 16, 4000]
          argument 0 + 0 -> buffer 0 + 0
          argument 1 + 0 -> buffer 1 + 0
          variable 1 + 0 -> buffer 2 + 40
          buffer 1 + 0 -> buffer 2 + 40
          weights: 16 bytes
          target: 16 bytes
    "#]],
    );
    check(
        folder.path(),
        "filled_double",
        expect![[r#"
            1 x grid [5, 1, 1] block [128, 1, 1] shared 1024
              Unsigned 600
              Float 2.5
              Pointer of 8 bytes
              buffers [8000]
              argument 2 + 0 -> buffer 0 + 0
              weights: 16 bytes
              target: 16 bytes
        "#]],
    );
}

#[test]
fn only_accessed_parts_of_a_large_allocation_are_recorded() {
    let (folder, printed) = recorded("5", &[("NVTUNE_CAPTURE_BYTES", "1M")]);
    expect![[r#"
        probe grid 4 block 256 of 1000
        _Z6scaledifPKfPf grid 4 1 1 block 256 1 1 shared 0
        probe grid 4 block 256 of 999
        error 0
        0 0
    "#]]
    .assert_eq(&printed);
    check(
        folder.path(),
        "scaled",
        expect![[r#"
        1 x grid [4, 1, 1] block [256, 1, 1] shared 0
          Signed 999
          Float 0.5
          Pointer of 8 bytes
          Pointer of 8 bytes
          buffers [8192]
          argument 2 + 0 -> buffer 0 + 0
          argument 3 + 0 -> buffer 0 + 4000
          weights: 16 bytes
          target: 16 bytes
        1 x grid [4, 1, 1] block [256, 1, 1] shared 0
          Signed 1000
          Float 0.5
          Pointer of 8 bytes
          Pointer of 8 bytes
          buffers [4096, 256]
          argument 2 + 0 -> buffer 0 + 0
          argument 3 + 0 -> buffer 1 + 0
          weights: 16 bytes
          target: 16 bytes
        1 x grid [4, 1, 1] block [256, 1, 1] shared 0
          Signed 998
          Float 0.5
          Pointer of 8 bytes
          Pointer of 8 bytes
          buffers [4000, 8000]
          argument 2 + 0 -> buffer 0 + 0
          argument 3 + 0 -> buffer 1 + 0
          weights: 16 bytes
          target: 16 bytes
    "#]],
    );
    let scaled = kernel(folder.path(), "scaled");
    let counted = scaled.launches.iter().find(|counted| counted.launch.arguments[0].integer() == Some(1000));
    let counted = counted.expect("the first launch");
    let file = std::fs::read(&counted.path).expect("read");
    let place = counted.launch.buffers[0].start as usize;
    assert_eq!(file[place + 4 * 999..place + 4000], 999f32.to_le_bytes());
}

#[test]
fn part_of_a_pointer_holds_what_it_points_at() {
    let (folder, _) = recorded("8", &[]);
    check(
        folder.path(),
        "scaled",
        expect![[r#"
        1 x grid [4, 1, 1] block [256, 1, 1] shared 0
          Signed 1000
          Float 0.5
          Pointer of 8 bytes
          Pointer of 8 bytes
          buffers [4096, 256]
          argument 2 + 0 -> buffer 0 + 0
          argument 3 + 0 -> buffer 1 + 0
          weights: 16 bytes
          target: 16 bytes
    "#]],
    );
}

#[test]
fn allocations_are_recorded_whole_if_their_parts_are_not_known() {
    for argument in ["6", "7"] {
        let (folder, printed) = recorded(argument, &[]);
        assert!(printed.contains("\nerror 0\n"), "{printed}");
        let launch = &kernel(folder.path(), "scaled").launches[0].launch;
        let sizes: Vec<u64> = launch.buffers.iter().map(|place| place.end - place.start).collect();
        assert_eq!(sizes, [17 << 20], "{argument}");
        let targets: Vec<u64> = launch.pointers.iter().map(|pointer| pointer.target).collect();
        assert_eq!(targets, [1 << 20, 8 << 20], "{argument}");
    }
    let (folder, _) = recorded("6", &[("NVTUNE_CAPTURE_BYTES", "1M")]);
    check(
        folder.path(),
        "scaled",
        expect![[r#"
        1 others
        left out: TooLarge { needed: 17825792, most: 1048576 }
    "#]],
    );
}

#[test]
#[ignore = "long: in the full run"]
fn launch_that_may_write_what_its_addresses_depend_on_is_recorded_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(source("gathered.cu"), folder.path().join("launches.cu")).expect("copied");
    let built = command(folder.path(), "capture", Headers::Cuda).output().expect("it starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    link(folder.path(), &[]);
    let ran = Command::new(folder.path().join("program")).current_dir(folder.path()).output().expect("it starts");
    assert!(ran.status.success(), "{ran:?}");
    check(
        folder.path(),
        "gathered",
        expect![[r#"
        1 x grid [2, 1, 1] block [256, 1, 1] shared 0
          Signed 500
          Pointer of 8 bytes
          Pointer of 8 bytes
          buffers [17825792]
          argument 1 + 0 -> buffer 0 + 0
          argument 2 + 0 -> buffer 0 + 1048576
        1 x grid [4, 1, 1] block [256, 1, 1] shared 0
          Signed 1000
          Pointer of 8 bytes
          Pointer of 8 bytes
          buffers [4096, 4096]
          argument 1 + 0 -> buffer 0 + 0
          argument 2 + 0 -> buffer 1 + 0
    "#]],
    );
}

#[test]
fn numbers_that_look_like_an_address_are_one_if_the_kernel_loads_addresses() {
    let folder = recorded_program(include_str!("capture/numbers.cu"));
    let sizes = |name: &str| -> Vec<u64> {
        let recorded = kernel(folder.path(), name);
        recorded.launches[0].launch.buffers.iter().map(|place| place.end - place.start).collect()
    };
    assert_eq!(sizes("listed"), [1000, 4000]);
    assert_eq!(sizes("followed"), [1000, 4000, 2000]);
}

#[test]
fn kinds_beyond_the_thirty_second_are_counted_together() {
    let (folder, _) = recorded("1", &[]);
    let hidden = kernel(folder.path(), "hidden");
    let counts: Vec<u64> = hidden.launches.iter().map(|counted| counted.count).collect();
    assert_eq!((counts, hidden.others), (vec![4; 32], 32));
}

/// In the stand-in a thread of a launch takes a microsecond.
#[test]
fn recorded_launches_are_timed() {
    let (folder, _) = recorded("0", &[]);
    let times = ["scaled", "viewed", "filled_double", "hidden"].map(|name| kernel(folder.path(), name).gpu_time_us);
    assert_eq!(times, [Some(3.0 * 1024.0 + 512.0), Some(1024.0), Some(640.0), None]);
    // Of kinds that are only counted the mean is taken.
    let (folder, _) = recorded("1", &[]);
    let hidden = kernel(folder.path(), "hidden").gpu_time_us.expect("it was timed");
    assert!((160.0 * 32.0..160.0 * 64.0).contains(&hidden), "{hidden}");
}

#[test]
fn launch_that_waits_for_the_program_is_let_go_on_and_not_timed() {
    let (folder, printed) = recorded("4", &[]);
    // Once: the second launch is not timed any more.
    expect![[r#"
        _Z6scaledifPKfPf grid 4 1 1 block 256 1 1 shared 0
        waits
        _Z6scaledifPKfPf grid 2 1 1 block 256 1 1 shared 0
        error 0
        0 0
    "#]]
    .assert_eq(&printed);
    let scaled = kernel(folder.path(), "scaled");
    assert_eq!((scaled.launches.len(), scaled.gpu_time_us), (2, None));
}

#[test]
fn report_has_the_share_of_the_recorded_gpu_time() {
    let (folder, sources, _) = &*TUNED;
    let report = |arguments: &[&str]| {
        let mut report = Command::new(env!("CARGO_BIN_EXE_nvtune"));
        report.args(["report", "launches.tune.json"]).args(arguments).current_dir(sources.path());
        let ran = report.env("NVTUNE_CAPTURE_DIR", folder.path()).output().expect("it starts");
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8_lossy(&ran.stdout).into_owned()
    };
    // 3584, 1024 and 640 us.
    let rows: serde_json::Value = serde_json::from_str(&report(&["--json"])).expect("JSON");
    let row = rows.as_array().expect("a list").iter().find(|row| row["kernel"] == "scaled").expect("a row");
    assert_eq!((&row["gpu_us"], &row["gpu_share"]), (&3584.0.into(), &(3584.0 / 5248.0).into()));
    assert!(report(&[]).contains("\n  68.3% of the recorded GPU time\n"));
    assert!(report(&["--csv"]).lines().any(|line| line.starts_with("viewed,") && line.contains(",1024.0,0.19")));
    assert!(report(&["--markdown"]).contains("| 68.3% |"));
    report(&["--html", "page.html"]);
    let page = std::fs::read_to_string(sources.path().join("page.html")).expect("a page");
    assert!(page.contains("<td class=\"figure\">12.2%</td>"), "{page}");
}

#[test]
#[ignore = "long: in the full run"]
fn launches_into_default_streams_of_threads_are_recorded() {
    let renamed = [
        "__cudaLaunchKernel",
        "cudaEventRecord",
        "cudaGetDriverEntryPointByVersion",
        "cudaMemcpyAsync",
        "cudaStreamIsCapturing",
        "cudaStreamSynchronize",
    ];
    let mut options: Vec<String> = renamed.iter().map(|name| format!("-D{name}={name}_ptsz")).collect();
    options.push("-DcudaMemcpyToSymbol=cudaMemcpyToSymbol_ptds".to_owned());
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let built = built(&["--default-stream=per-thread"], &options);
    let [(folder, printed), (usual, as_usual)] = [recorded_by(built.path(), "0", &[]), recorded("0", &[])];
    assert_eq!(printed, as_usual);
    for name in ["scaled", "viewed"] {
        assert_eq!(described(&kernel(folder.path(), name)), described(&kernel(usual.path(), name)));
    }
}

#[test]
fn launch_of_a_stream_that_is_captured_is_counted_alone() {
    let (folder, printed) = recorded("2", &[]);
    expect![[r#"
        _Z6scaledifPKfPf grid 4 1 1 block 256 1 1 shared 0
        0 0
    "#]]
    .assert_eq(&printed);
    check(
        folder.path(),
        "scaled",
        expect![[r#"
        1 others
    "#]],
    );
}

#[test]
fn what_is_left_out_is_said_with_the_reason() {
    let (folder, _) = recorded("0", &[("NVTUNE_CAPTURE_BYTES", "5K")]);
    check(
        folder.path(),
        "scaled",
        expect![[r#"
            4 others
            left out: TooLarge { needed: 12000, most: 5120 }
        "#]],
    );
}

#[test]
fn recordings_that_cannot_be_written_change_nothing() {
    let mut program = Command::new(BUILT.path().join("program"));
    let ran = program.env("NVTUNE_CAPTURE_DIR", "/dev/null/none").output().expect("it starts");
    assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
}

/// The grids that a record's configurations of a kernel have, where the grid is an axis.
fn grids(record: &serde_json::Value, kernel: &str) -> BTreeSet<u64> {
    let kernels = record["kernels"].as_array().expect("kernels");
    let found = kernels.iter().find(|found| found["name"] == kernel).expect("the kernel");
    let configurations = found["configurations"].as_array().expect("configurations");
    configurations.iter().filter_map(|of| of["grid"][0].as_u64()).collect()
}

#[test]
#[ignore = "long: in the full run"]
fn fixed_grid_of_a_proved_stride_loop_is_the_axis_that_its_comment_has() {
    let suite = include_str!("../kernels/black_scholes/black_scholes.cu");
    let begin = suite.find("__device__ inline").expect("the kernel");
    let own = &suite[begin..suite.find("static bench::Shape").expect("its end")];
    let (before, comment) = own.split_once("/*@tune").expect("its comment");
    let (comment, after) = comment.split_once("*/").expect("its end");
    let listed = comment.split(['{', '}']).nth(1).expect("a list").split(", ");
    let listed: BTreeSet<u64> = listed.map(|blocks| blocks.parse().expect("a number")).collect();
    let text = format!("{before}//@tune{after}{}", include_str!("capture/strided.cu"));
    let folder = recorded_program(&text);
    let fastest = r#"{"label": "grid=1056", "time_us": 5.0}, {"time_us": 10.0, "spread": 0.01}"#;
    write_timings(folder.path(), fastest);
    let mut tuning = command(folder.path(), "measure", Headers::Cuda);
    let said =
        succeed(tuning.arg("--keep").env("NVTUNE_REPLAY", "timings.json").env("NVTUNE_HEADER_DIR", folder.path()));
    let summary = said.lines().find(|line| line.starts_with("nvtune: black_scholes: block=")).expect("a line");
    assert!(summary.contains(" grid=1056 (2.00x over the baseline, measured, for "), "{summary}");
    assert_records_in(folder.path());
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    let record: serde_json::Value = serde_json::from_str(&read("launches.tune.json")).expect("JSON");
    assert_eq!(grids(&record, "black_scholes"), listed);
    assert_eq!(grids(&record, "added"), BTreeSet::from([4, 8, 16, 32, 64, 128]));
    for kernel in ["partial", "copied", "counted"] {
        assert_eq!(grids(&record, kernel), BTreeSet::new(), "{kernel}");
    }
    // The stub launches the winner in its own grid, if the loop's index cannot overflow in that.
    let stub = read("launches.cudafe1.stub.c");
    assert!(stub.contains("{{__nvtune_detail::blocks(1056LL), __nvtune_detail::blocks(1LL)"), "{stub}");
    assert!(stub.contains("2147483647LL - static_cast<long long>(__par0)"), "{stub}");
}

/// Builds with what was recorded, and timings for it; returns what is said.
fn tuned(folder: &Path) -> String {
    tuned_in(tempfile::tempdir().expect("a folder").path(), folder)
}

/// The same in this folder of sources.
fn tuned_in(sources: &Path, folder: &Path) -> String {
    std::fs::copy(source("launches.cu"), sources.join("launches.cu")).expect("copied");
    let entries = r#"{"label": "block=128", "time_us": 5.0}, {"time_us": 10.0, "spread": 0.01}"#;
    write_timings(sources, entries);
    let environment = [("NVTUNE_CAPTURE_DIR", folder.to_str().expect("text")), ("NVTUNE_REPLAY", "timings.json")];
    let ran = nvtune(sources, "measure", &environment);
    let said = String::from_utf8_lossy(&ran.stderr).replace(&*folder.to_string_lossy(), "FOLDER");
    assert!(ran.status.success(), "{said}");
    assert_records_in(sources);
    timed(&said)
}

/// The messages of a build, with no word of winners.
fn timed(said: &str) -> String {
    // Which of several equally fast configurations wins is not what is asked here.
    let said = said.lines().map(|line| match line.split_once(": block=") {
        Some((kernel, _)) => format!("{kernel}: timed\n"),
        None => format!("{line}\n"),
    });
    said.collect()
}

/// Which kind of launch a file is of is a checksum, that of another host compiler's structures another.
fn without_kinds(said: &str) -> String {
    let is_kind = |word: &str| !word.is_empty() && word.chars().all(|digit| digit.is_ascii_hexdigit());
    let folders = said.split('/').map(|word| match word.split_once(".launch") {
        Some((kind, rest)) if is_kind(kind) => format!("KIND.launch{rest}"),
        _ => word.to_owned(),
    });
    folders.collect::<Vec<_>>().join("/")
}

#[test]
fn bare_comments_are_tuned_on_recorded_launches() {
    expect![[r#"
        nvtune warning : hidden: not tuned: no grid is given and no launch recorded: build with NVTUNE=capture and run it [N0094]
        nvtune: scaled: timed
        nvtune: viewed: timed
        nvtune: filled_double: timed
    "#]].assert_eq(&TUNED.2);
}

/// Puts the program without its comments into a folder of sources.
fn without_comments(sources: &Path) {
    let text = std::fs::read_to_string(source("launches.cu")).expect("read");
    std::fs::write(sources.join("launches.cu"), text.replace("//@tune", "//")).expect("written");
}

/// Builds it with an environment; returns whether that went well, and what is said.
fn built_without_comments(mode: &str, environment: &[(&str, &str)]) -> (bool, String) {
    let sources = tempfile::tempdir().expect("a folder");
    without_comments(sources.path());
    let ran = nvtune(sources.path(), mode, environment);
    let said = String::from_utf8_lossy(&ran.stderr).replace(&*sources.path().to_string_lossy(), "SOURCES");
    (ran.status.success(), said)
}

#[test]
fn kernels_that_a_pattern_names_are_recorded_without_a_comment() {
    let (passed, said) = built_without_comments("capture", &[("NVTUNE_KERNELS", "scaled|view.*|filled")]);
    assert!(passed, "{said}");
    expect![[r#"
        nvtune: scaled: launches are recorded below 'SOURCES/launches.capture'
        nvtune: viewed: launches are recorded below 'SOURCES/launches.capture'
        nvtune: filled_double: launches are recorded below 'SOURCES/launches.capture'
    "#]]
    .assert_eq(&said);
}

/// Every kernel of `selected.cu` by a pattern.
const SELECTED: &str = "scaled|moved|widened|filled|summed|applied";

#[test]
#[ignore = "long: in the full run"]
fn overloads_templates_and_what_if_lets_through_are_recorded_and_tuned_without_a_comment() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(source("selected.cu"), folder.path().join("launches.cu")).expect("copied");
    let built = |mode: &str, kernels: &str| {
        let ran = nvtune(folder.path(), mode, &[("NVTUNE_KERNELS", kernels), ("NVTUNE_CANDIDATES", "2")]);
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert!(ran.status.success(), "{said}");
        said
    };
    let kernels = |said: &str| -> Vec<String> {
        let lines = said.lines().filter(|line| line.starts_with("nvtune") && !line.contains(": note: "));
        lines.map(|line| line.split(['\'', '=']).next().unwrap_or(line).to_owned()).collect()
    };
    let names = [
        "scaled",
        "scaled_2",
        "moved",
        "filled_float",
        "filled_double",
        "summed_400",
        "summed_2_300",
        "applied_Sum_float_ptr_const_float_ptr",
    ];
    let said = built("capture", "all");
    let recorded = |name| format!("nvtune: {name}: launches are recorded below ");
    assert_eq!(kernels(&said), names.map(recorded));
    link(folder.path(), &[]);
    let ran = Command::new(folder.path().join("program")).output().expect("it starts");
    assert!(ran.status.success(), "{ran:?}");
    let tuned = |name| format!("nvtune: {name}: block");
    for selection in ["all", SELECTED] {
        let said = built("static", selection);
        assert_eq!(kernels(&said), names.map(tuned), "{selection}");
    }
    let mut lock = Command::new(env!("CARGO_BIN_EXE_nvtune"));
    let locked = lock.arg("lock").env("NVTUNE_NVCC", nvcc()).current_dir(folder.path()).output().expect("it starts");
    assert!(locked.status.success(), "{locked:?}");
    // Without the recordings, as on a farm.
    std::fs::remove_dir_all(folder.path().join("launches.capture")).expect("removed");
    for selection in ["all", SELECTED] {
        let said = built("locked", selection);
        assert_eq!(kernels(&said), names.map(tuned), "{selection}");
    }
    std::fs::remove_file(folder.path().join("nvtune.lock")).expect("removed");
    let said = built("locked", "filled");
    expect![[r#"
        nvtune warning : filled: not tuned: no launch of an instance is recorded: build with NVTUNE=capture and run it [N0094]
        nvtune warning : filled_double: not tuned: no grid is given and no launch recorded: build with NVTUNE=capture and run it [N0094]
    "#]]
    .assert_eq(&said);
}

#[test]
fn build_without_optimisation_is_said_to_record_or_tune_nothing_and_asks_for_no_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(source("selected.cu"), folder.path().join("launches.cu")).expect("copied");
    for (mode, result) in [("capture", "not recorded"), ("static", "not tuned")] {
        let environment = [("NVTUNE_KERNELS", "scaled|moved"), ("NVCC_APPEND_FLAGS", "-G")];
        let ran = nvtune(folder.path(), mode, &environment);
        let said = String::from_utf8_lossy(&ran.stderr);
        let expected =
            format!("nvtune warning : launches.cu: {result}: -G compiles device code without optimisation [N0069]\n");
        assert_eq!(said, expected, "{mode}");
    }
}

#[test]
fn source_without_a_kernel_that_a_pattern_names_is_handed_over() {
    for pattern in ["scale", "fill", "nothing|else"] {
        assert_eq!(
            built_without_comments("measure", &[("NVTUNE_KERNELS", pattern)]),
            (true, String::new()),
            "{pattern}"
        );
    }
}

#[test]
fn pattern_that_is_no_regular_expression_is_an_error() {
    let (passed, said) = built_without_comments("measure", &[("NVTUNE_KERNELS", "scaled(")]);
    assert!(!passed);
    let expected = "nvtune fatal   : NVTUNE_KERNELS='scaled(' is not understood: unclosed group; expected 'all', or names: \
        'scale|fft_.*' [N0003]\n";
    assert_eq!(said, expected);
}

/// The lines of a build without notes, with no word of winners.
fn decisions(said: &str) -> Vec<&str> {
    let lines = said.lines().filter(|line| !line.contains(": note: "));
    lines.map(|line| line.split(": block=").next().unwrap_or(line)).collect()
}

#[test]
fn kernels_without_a_comment_are_tuned_on_recorded_launches() {
    let (folder, _) = recorded("0", &[]);
    let captures = ("NVTUNE_CAPTURE_DIR", folder.path().to_str().expect("text"));
    let kernels = |pattern| [captures, ("NVTUNE_KERNELS", pattern), ("NVTUNE_CANDIDATES", "2")];
    let (passed, said) = built_without_comments("static", &kernels("scaled|counted"));
    assert!(passed, "{said}");
    let said = decisions(&said);
    assert_eq!(
        said,
        [
            "nvtune warning : counted: not tuned: no grid is given and no launch recorded: build with \
             NVTUNE=capture and run it [N0094]",
            "nvtune: scaled",
        ]
    );
    // `counted` was recorded by another name.
    let (passed, said) = built_without_comments("static", &kernels("all"));
    assert!(passed, "{said}");
    let said = decisions(&said);
    assert_eq!(said, ["nvtune: scaled", "nvtune: viewed", "nvtune: filled_double"]);
}

#[test]
fn all_kernels_without_a_recording_are_nvccs_with_one_line() {
    let (passed, said) = built_without_comments("static", &[("NVTUNE_KERNELS", "all")]);
    assert!(passed, "{said}");
    expect![[r#"
        nvtune: launches.cu: not tuned: no launch of scaled, viewed, filled and 1 more is recorded: build with NVTUNE=capture and run it [N0094]
    "#]]
    .assert_eq(&said);
    // Where the program left them out, the line has the reason.
    let (folder, _) = recorded("0", &[("NVTUNE_CAPTURE_BYTES", "8")]);
    let captures = ("NVTUNE_CAPTURE_DIR", folder.path().to_str().expect("text"));
    let (passed, said) = built_without_comments("static", &[captures, ("NVTUNE_KERNELS", "all")]);
    assert!(passed, "{said}");
    expect![[r#"
        nvtune: launches.cu: not tuned: no launch of scaled, viewed, filled and 1 more is recorded: its buffers take at least 11.7 KiB, more than NVTUNE_CAPTURE_BYTES (8 B): build with NVTUNE=capture and run it with NVTUNE_CAPTURE_BYTES=12K [N0094]
    "#]]
    .assert_eq(&said);
}

#[test]
fn template_without_a_recording_is_nvccs_with_one_line() {
    let sources = tempfile::tempdir().expect("a folder");
    let text =
        "template <class T> __global__ void filled(T *out) { *out = 1; }\ntemplate __global__ void filled(double *);\n";
    std::fs::write(sources.path().join("launches.cu"), text).expect("written");
    let said = || {
        let ran = nvtune(sources.path(), "static", &[("NVTUNE_KERNELS", "all")]);
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8_lossy(&ran.stderr).into_owned()
    };
    expect![[r#"
        nvtune: launches.cu: not tuned: no launch of filled is recorded: build with NVTUNE=capture and run it [N0094]
    "#]]
    .assert_eq(&said());
    let kernel = sources.path().join("launches.capture/filled_double");
    std::fs::create_dir_all(&kernel).expect("made");
    std::fs::write(kernel.join("left_out"), "bytes 1395864371 1073741824\n").expect("written");
    expect![[r#"
        nvtune: launches.cu: not tuned: no launch of filled is recorded: its buffers take at least 1.3 GiB, more than NVTUNE_CAPTURE_BYTES (1.0 GiB): build with NVTUNE=capture and run it with NVTUNE_CAPTURE_BYTES=2G [N0094]
    "#]]
    .assert_eq(&said());
}

#[test]
fn kernels_that_the_program_left_out_are_named_by_reason() {
    let (folder, _) = recorded("0", &[]);
    let too_large = "bytes 1395864371 1073741824\n";
    for (name, reason) in [("read_128", too_large), ("read_256", too_large), ("sparse", "an array is sparse\n")] {
        let kernel = folder.path().join("launches.capture").join(name);
        std::fs::create_dir_all(&kernel).expect("made");
        std::fs::write(kernel.join("left_out"), reason).expect("written");
    }
    let captures = ("NVTUNE_CAPTURE_DIR", folder.path().to_str().expect("text"));
    let settings = [captures, ("NVTUNE_KERNELS", "all"), ("NVTUNE_CANDIDATES", "2")];
    let (passed, said) = built_without_comments("static", &settings);
    assert!(passed, "{said}");
    expect![[r#"
        nvtune: launches.cu: not tuned: no launch of sparse is recorded (an array is sparse): build with NVTUNE=capture and run it [N0094]
        nvtune: launches.cu: not tuned: no launch of read_128, read_256 is recorded: its buffers take at least 1.3 GiB, more than NVTUNE_CAPTURE_BYTES (1.0 GiB): build with NVTUNE=capture and run it with NVTUNE_CAPTURE_BYTES=2G [N0094]
        nvtune: scaled
        nvtune: viewed
        nvtune: filled_double"#]]
    .assert_eq(&decisions(&said).join("\n"));
}

#[test]
fn all_means_kernels_with_a_share_of_the_recorded_work() {
    let (folder, _) = recorded("0", &[]);
    let captures = folder.path().join("launches.capture");
    let work = kernel(folder.path(), "viewed").work();
    assert_eq!(work, 8 * 16 * 8);
    // The same launches a thousand times more often elsewhere: the counts of a process begin with its kinds'.
    let counts = |entry: &std::fs::DirEntry| entry.path().extension().is_some_and(|extension| extension == "counters");
    let other = folder.path().join("other.capture/scaled");
    std::fs::create_dir_all(&other).expect("made");
    for entry in std::fs::read_dir(captures.join("scaled")).expect("read").map(|entry| entry.expect("an entry")) {
        let mut bytes = std::fs::read(entry.path()).expect("read");
        if counts(&entry) {
            for word in bytes.chunks_exact_mut(8).take(32) {
                let count = u64::from_le_bytes(word.try_into().expect("8 bytes"));
                word.copy_from_slice(&(count * 1000).to_le_bytes());
            }
        }
        std::fs::write(other.join(entry.file_name()), bytes).expect("written");
    }
    let environment = [("NVTUNE_CAPTURE_DIR", folder.path().to_str().expect("text")), ("NVTUNE_KERNELS", "all")];
    let (passed, said) = built_without_comments("static", &environment);
    assert!(passed, "{said}");
    assert_eq!(said, "");
}

#[test]
fn init_proposes_bare_comments_for_recorded_kernels() {
    let (folder, _) = recorded("0", &[]);
    let sources = tempfile::tempdir().expect("a folder");
    without_comments(sources.path());
    let mut init = Command::new(env!("CARGO_BIN_EXE_nvtune"));
    init.args(["init", "launches.cu"]).env("NVTUNE_CAPTURE_DIR", folder.path()).current_dir(sources.path());
    let ran = init.output().expect("it starts");
    assert!(ran.status.success(), "{ran:?}");
    let diff = String::from_utf8_lossy(&ran.stdout);
    let added: String = diff.lines().filter(|line| line.starts_with('+')).map(|line| format!("{line}\n")).collect();
    expect![[r#"
        +++ b/launches.cu
        +//@tune block(auto) regs(auto)
        +//@tune block(auto) regs(auto)
        +//@tune block(auto) regs(auto)
        +// One block: it does not read blockDim.x.
        +//@tune threads(32) regs(auto) default(block = 32)
        +//@tune args(step = 0, out = out[2000])
    "#]]
    .assert_eq(&added);
}

#[test]
fn lock_file_gives_what_a_recording_gave() {
    let sources = tempfile::tempdir().expect("a folder");
    tuned_in(sources.path(), TUNED.0.path());
    let mut lock = Command::new(env!("CARGO_BIN_EXE_nvtune"));
    let locked = lock.arg("lock").env("NVTUNE_NVCC", nvcc()).current_dir(sources.path()).output().expect("it starts");
    assert!(locked.status.success(), "{locked:?}");
    let text = std::fs::read_to_string(sources.path().join("nvtune.lock")).expect("a lock file");
    let inferred = text.lines().map(str::trim).filter(|line| line.contains("inferred"));
    expect![[r#"
        "inferred": "threads(n) shared(block.size * 8) args(n = 600, value = 2.5)",
        "inferred": "threads(n) args(n = 1000, a = 0.5)",
        "inferred": "threads(height, height) args(height = 30)",
    "#]]
    .assert_eq(&inferred.map(|line| format!("{line}\n")).collect::<String>());
    // Without recordings, GPU and cache, as on a farm.
    let ran = nvtune(sources.path(), "locked", &[("NVTUNE_CACHE_SIZE", "0")]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    expect![[r#"
        nvtune warning : hidden: not tuned: no grid is given and no launch recorded: build with NVTUNE=capture and run it [N0094]
        nvtune: scaled: timed
        nvtune: viewed: timed
        nvtune: filled_double: timed
    "#]].assert_eq(&timed(&said));
    // Text that is no clause comes from no recording.
    let path = sources.path().join("nvtune.lock");
    std::fs::write(&path, text.replace("threads(", "threads)")).expect("written");
    let ran = nvtune(sources.path(), "locked", &[("NVTUNE_CACHE_SIZE", "0")]);
    let said = String::from_utf8_lossy(&ran.stderr).replace(&*sources.path().to_string_lossy(), "SOURCES");
    assert!(ran.status.success(), "{said}");
    expect![[r#"
        nvtune warning : 'SOURCES/nvtune.lock': entry `launches.cu: scaled, sm_90` is not used: its `inferred` is no clause [N0211]
        nvtune warning : scaled: not tuned: no grid is given and no launch recorded: build with NVTUNE=capture and run it [N0094]
        nvtune warning : 'SOURCES/nvtune.lock': entry `launches.cu: viewed, sm_90` is not used: its `inferred` is no clause [N0211]
        nvtune warning : viewed: not tuned: no grid is given and no launch recorded: build with NVTUNE=capture and run it [N0094]
        nvtune warning : 'SOURCES/nvtune.lock': entry `launches.cu: filled_double, sm_90` is not used: its `inferred` is no clause [N0211]
        nvtune warning : filled_double: not tuned: no grid is given and no launch recorded: build with NVTUNE=capture and run it [N0094]
        nvtune warning : hidden: not tuned: no grid is given and no launch recorded: build with NVTUNE=capture and run it [N0094]
    "#]].assert_eq(&timed(&said));
}

#[test]
fn recording_that_is_damaged_or_of_another_kernel_is_said_and_not_used() {
    let (folder, _) = recorded("0", &[]);
    let kernels = folder.path().join("launches.capture");
    let recording = |name: &str| kernel(folder.path(), name).launches[0].path.clone();
    // Data that another wrote over.
    let path = recording("viewed");
    let mut bytes = std::fs::read(&path).expect("read");
    bytes[20] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    // Cut off, as by a full disk.
    for counted in &kernel(folder.path(), "scaled").launches {
        let bytes = std::fs::read(&counted.path).expect("read");
        std::fs::write(&counted.path, &bytes[..bytes.len() - 9]).expect("written");
    }
    // Of a kernel that has other parameters now.
    std::fs::rename(recording("filled_double"), kernels.join("hidden.launch")).expect("moved");
    std::fs::create_dir(kernels.join("hidden")).expect("a folder");
    std::fs::rename(kernels.join("hidden.launch"), kernels.join("hidden/1.launch")).expect("moved");
    expect![[r#"
        nvtune warning : filled: not tuned: no launch of an instance is recorded: build with NVTUNE=capture and run it, or write template(...) [N0094]
        nvtune warning : scaled: 'FOLDER/launches.capture/scaled/KIND.launch' is not whole, or no recording [N0095]
        nvtune warning : scaled: 'FOLDER/launches.capture/scaled/KIND.launch' is not whole, or no recording [N0095]
        nvtune warning : scaled: not tuned: no grid is given and no launch recorded: build with NVTUNE=capture and run it [N0094]
        nvtune warning : hidden: not tuned: its recording cannot be used: 3 arguments for 2 parameters: record it again [N0095]
        nvtune warning : viewed: not tuned: its recording 'FOLDER/launches.capture/viewed/KIND.launch' is damaged: record it again [N0095]
    "#]].assert_eq(&without_kinds(&tuned(folder.path())));
}

#[test]
fn any_byte_of_an_index_may_be_wrong() {
    let (folder, _) = recorded("0", &[]);
    for name in ["scaled", "viewed"] {
        let path = &kernel(folder.path(), name).launches[0].path;
        let bytes = std::fs::read(path).expect("read");
        let start = bytes.len().saturating_sub(1000);
        for at in start..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let read = RecordedLaunch::read(&mut std::io::Cursor::new(&damaged));
                if let Ok(launch) = read {
                    assert!(launch.buffers.iter().all(|place| place.end <= bytes.len() as u64), "byte {at}");
                }
            }
        }
        for length in 0..bytes.len().min(64) {
            assert!(RecordedLaunch::read(&mut std::io::Cursor::new(&bytes[..length])).is_err(), "{length} bytes");
        }
    }
}
