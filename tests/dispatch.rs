//! Dispatching stubs, run for real on a runtime that only says what it is asked to launch (`dispatch/runtime.cpp`).

use crate::support::toolkit::{Headers, include_folder, nvcc, set_headers};
use expect_test::expect;
use nvtune::emit::{Dispatch, LaunchText, StubChange, StubText, Winner, rewrite_stubs};
use std::path::Path;
use std::process::Command;

/// Builds `dispatch/launches.cu` in a new folder up to its host code, and rewrites its stubs.
fn host_code(headers: Headers, options: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut compile = Command::new(nvcc());
    compile.args(["--keep", "-arch=sm_90", "-c", "-o", "launches.o"]).args(options);
    compile.arg(source("launches.cu")).current_dir(folder.path());
    set_headers(&mut compile, headers);
    run(&mut compile);
    let path = folder.path().join("launches.cudafe1.stub.c");
    let file = std::fs::read_to_string(&path).expect("nvcc keeps the stub file");
    let stubs = stubs(&file);
    let rewritten = rewrite_stubs(&file, &stubs.iter().collect::<Vec<_>>(), None);
    assert_eq!(rewritten.problems, vec![None; stubs.len()]);
    std::fs::write(&path, rewritten.text).expect("written");
    folder
}

fn source(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dispatch").join(name)
}

/// Compiles the host code as nvcc's last step does.
fn compile_host_code(folder: &Path, headers: Headers, options: &[&str]) {
    let mut compiler = Command::new("g++");
    if headers == Headers::Small {
        compiler.arg("-isystem").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mini"));
    }
    compiler
        .arg("-isystem")
        .arg(include_folder())
        .args(["-D__CUDA_ARCH__=900", "-D__CUDA_ARCH_LIST__=900"])
        .args(options);
    run(compiler.args(["-c", "launches.cudafe1.cpp", "-o", "launches.o"]).current_dir(folder));
}

/// Links the host code with the runtime and returns what the program prints.
fn launches(folder: &Path) -> String {
    let mut link = Command::new("g++");
    link.arg("-I")
        .arg(include_folder())
        .args(["-w", "-pthread", "-o", "program", "launches.o"])
        .arg(source("runtime.cpp"));
    run(link.current_dir(folder));
    run(Command::new(folder.join("program")).current_dir(folder))
}

/// Runs a command that must end well without a word on standard error.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{command:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns a launch of blocks that cover `__par0` threads in x.
fn launch(block: u32, n: &str, threads: u32, shared: &str) -> LaunchText {
    let x = format!("__nvtune_detail::ceildiv(static_cast<long long>({n}), {threads}LL)");
    LaunchText { block: [block, 1, 1], grid: [x, "1LL".into(), "1LL".into()], shared: shared.into() }
}

fn winner(capability: u32, entry: &str, launch: LaunchText, conditions: &[&str]) -> Winner {
    let conditions = conditions.iter().map(|&condition| condition.to_owned()).collect();
    Winner { capability, entry: entry.into(), launch, conditions, carveout: None, coarsening: 1, is_clustered: true }
}

/// Returns the dispatch of each kernel of `launches.cu`.
fn stubs(file: &str) -> Vec<StubText> {
    // The name of the anonymous namespace depends on the path.
    let hidden = file.split("__device_stub_").find(|text| text.contains("_cu_") && text.contains("6eitherE"));
    let hidden = hidden.and_then(|text| text.split('(').next()).expect("the stub of `either`");
    let dispatch = |baseline, winners| Dispatch { baseline, winners, accepts_winner_launches: false, reshapes: true };
    let mut wide = launch(128, "__par0.n", 1024, "0LL");
    wide.block[1] = 2;
    let reshaped = dispatch(
        launch(256, "__par0.n", 256, "0LL"),
        vec![
            winner(80, "reshaped__nvtune_80", launch(64, "__par0.n", 64, "0LL"), &[]),
            winner(90, "reshaped__nvtune_90", wide, &["__par0.n % 4 == 0", "__par0.n > 0"]),
        ],
    );
    let by_header = Dispatch {
        accepts_winner_launches: true,
        reshapes: false,
        ..dispatch(
            launch(256, "__par0", 256, "0LL"),
            vec![winner(90, "by_header__nvtune_1", launch(64, "__par0", 64, "256LL"), &["__par0 > 1000"])],
        )
    };
    let either = Dispatch {
        accepts_winner_launches: true,
        ..dispatch(
            launch(256, "__par0", 256, "0LL"),
            vec![winner(90, "either__nvtune_1", launch(128, "__par0", 128, "0LL"), &["__par0 % 2 == 0"])],
        )
    };
    let blocks = |blocks: u32, block, shared: &str| LaunchText {
        block: [block, 1, 1],
        grid: [format!("{blocks}LL"), "1LL".into(), "1LL".into()],
        shared: shared.into(),
    };
    let mut half = winner(90, "staged__nvtune_1", blocks(10, 512, "(static_cast<long long>(__par0) * 4LL)"), &[]);
    half.carveout = Some(50);
    let rows = |block, y: &str| LaunchText {
        block: [block, 1, 1],
        grid: ["1LL".into(), y.into(), "1LL".into()],
        shared: "0LL".into(),
    };
    let tall = dispatch(
        rows(256, "__nvtune_detail::ceildiv(static_cast<long long>(__par0), 16LL)"),
        vec![winner(90, "tall__nvtune_1", rows(32, "static_cast<long long>(__par0)"), &[])],
    );
    let argumentless =
        dispatch(blocks(1, 256, "0LL"), vec![winner(90, "argumentless__nvtune_1", blocks(1, 64, "0LL"), &[])]);
    // Without a whole block the program launches nothing, though the winner's grid has a block.
    let floor = LaunchText {
        grid: ["static_cast<long long>(__par0) / 256LL".into(), "1LL".into(), "1LL".into()],
        ..blocks(1, 256, "0LL")
    };
    let mut coarsened = winner(90, "flat__nvtune_1", launch(64, "__par0", 64, "0LL"), &[]);
    coarsened.coarsening = 3;
    let flat = dispatch(floor, vec![coarsened]);
    [
        ("_Z4flatiPf", "_Z4flatiPf", flat),
        ("_Z8reshapedIfEv4SizePT_", "_Z8reshapedIfEv4SizePT_", reshaped),
        ("_Z9by_headeriPf", "by_header", by_header),
        (hidden, hidden, either),
        ("_Z6stagediPf", "_Z6stagediPf", dispatch(blocks(10, 256, "1024LL"), vec![half])),
        ("_Z4talliPf", "_Z4talliPf", tall),
        ("_Z12argumentlessv", "_Z12argumentlessv", argumentless),
    ]
    .map(|(stub, symbol, dispatch)| StubText {
        source: "launches.cu".into(),
        stub: stub.into(),
        symbol: symbol.into(),
        change: StubChange::Dispatch(dispatch),
    })
    .into()
}

#[test]
fn each_launch_runs_the_entry_that_its_dispatch_names() {
    let folder = host_code(Headers::Small, &[]);
    compile_host_code(folder.path(), Headers::Small, &["-std=c++14"]);
    let printed = launches(folder.path());
    // The name of the anonymous namespace depends on the path.
    let short = |line: &str| match line.find("_ZN").zip(line.find("6eitherE")) {
        Some((from, to)) => format!("{}either{}\n", &line[..from], &line[to + "6eitherEiPf".len()..]),
        None => format!("{line}\n"),
    };
    expect![[r#"
        baseline's, first and again
          reshaped__nvtune_90 grid 1 1 1 block 128 2 1 shared 0 stream 0; attributes x2 capability x4 device x2 shared x2
          reshaped__nvtune_90 grid 2 1 1 block 128 2 1 shared 0 stream 0; device x2
        other block
          _Z8reshapedIfEv4SizePT_ grid 4 1 1 block 128 2 1 shared 0 stream 0;
        other grid, part of the grid
          _Z8reshapedIfEv4SizePT_ grid 4 2 1 block 256 1 1 shared 0 stream 0;
          _Z8reshapedIfEv4SizePT_ grid 2 1 1 block 256 1 1 shared 0 stream 0;
        other shared memory
          _Z8reshapedIfEv4SizePT_ grid 4 1 1 block 256 1 1 shared 4 stream 0;
        condition does not hold
          _Z8reshapedIfEv4SizePT_ grid 4 1 1 block 256 1 1 shared 0 stream 0; device
        stream
          reshaped__nvtune_90 grid 1 1 1 block 128 2 1 shared 0 stream 7; device x2
        winner's own shape is no launch for it
          _Z8reshapedIfEv4SizePT_ grid 1 1 1 block 128 2 1 shared 0 stream 0;
        instance without a dispatch
          _Z8reshapedIdEv4SizePT_ grid 4 1 1 block 256 1 1 shared 0 stream 0;
        no arguments
          argumentless__nvtune_1 grid 1 1 1 block 64 1 1 shared 0 stream 0; attributes x2 capability x2 device shared
        winner's grid within and beyond the limits, and of no block
          tall__nvtune_1 grid 1 65535 1 block 32 1 1 shared 0 stream 0; attributes x2 capability x2 device shared
          _Z4talliPf grid 1 4096 1 block 256 1 1 shared 0 stream 0;
          _Z4talliPf grid 1 0 1 block 256 1 1 shared 0 stream 0;
        no launch at all
          _Z4flatiPf grid 0 1 1 block 256 1 1 shared 0 stream 0;
        device of 8.0, first and again
          reshaped__nvtune_80 grid 16 1 1 block 64 1 1 shared 0 stream 0; attributes x2 capability x2 device shared
          reshaped__nvtune_80 grid 16 1 1 block 64 1 1 shared 0 stream 0; device
        device of 7.5
          _Z8reshapedIfEv4SizePT_ grid 4 1 1 block 256 1 1 shared 0 stream 0; capability x4 device x2 shared x2
        device 64
          _Z8reshapedIfEv4SizePT_ grid 4 1 1 block 256 1 1 shared 0 stream 0; device x2
        winner's own launch by the header, whatever the conditions
          by_header__nvtune_1 grid 16 1 1 block 64 1 1 shared 256 stream 0; attributes x2 capability x2 device shared
          by_header__nvtune_1 grid 2 1 1 block 64 1 1 shared 256 stream 0; device
        winner's block in another grid, with other shared memory
          by_header grid 15 1 1 block 64 1 1 shared 256 stream 0;
          by_header grid 16 1 1 block 64 1 1 shared 0 stream 0;
        baseline's is no launch for the winner
          by_header grid 4 1 1 block 256 1 1 shared 0 stream 0;
        winner's own launch where the baseline's is one, too
          either__nvtune_1 grid 8 1 1 block 128 1 1 shared 0 stream 0; attributes x2 capability x2 device shared
          either__nvtune_1 grid 8 1 1 block 128 1 1 shared 0 stream 0; device
        the same where the condition does not hold
          either__nvtune_1 grid 8 1 1 block 128 1 1 shared 0 stream 0; device
          either grid 4 1 1 block 256 1 1 shared 0 stream 0;
        launch by the header on a device without a winner
          by_header grid 16 1 1 block 64 1 1 shared 256 stream 0; capability x2 device shared
        entry is not in the image, first and again
          _Z8reshapedIfEv4SizePT_ grid 4 1 1 block 256 1 1 shared 0 stream 0; attributes capability x4 device x2 shared x2
          _Z8reshapedIfEv4SizePT_ grid 4 1 1 block 256 1 1 shared 0 stream 0; device x2
          by_header grid 16 1 1 block 64 1 1 shared 256 stream 0; attributes capability x2 device shared
        memory is short at first
          _Z8reshapedIfEv4SizePT_ grid 4 1 1 block 256 1 1 shared 0 stream 0; attributes capability x4 device x2 shared x2
          reshaped__nvtune_90 grid 1 1 1 block 128 2 1 shared 0 stream 0; attributes x2 capability x2 device x2 shared
        error is pending, then not
          _Z8reshapedIfEv4SizePT_ grid 4 1 1 block 256 1 1 shared 0 stream 0 pending 9; device x2
          reshaped__nvtune_90 grid 1 1 1 block 128 2 1 shared 0 stream 0; attributes x2 capability x4 device x2 shared x2
          reshaped__nvtune_90 grid 1 1 1 block 128 2 1 shared 0 stream 0 pending 9; device x2
        error is pending, and the launch is the winner's own, or the baseline's
          either grid 8 1 1 block 128 1 1 shared 0 stream 0 pending 9; device
          either grid 4 1 1 block 256 1 1 shared 0 stream 0 pending 9; device
          by_header grid 16 1 1 block 64 1 1 shared 256 stream 0 pending 9; device
        winner's blocks are too large for its registers
          _Z6stagediPf grid 10 1 1 block 256 1 1 shared 1024 stream 0; attributes x2 capability x2 device shared
        shared memory of 16, 48, 64 KiB, then 64 and 16 again, then more than there is
          staged__nvtune_1 grid 10 1 1 block 512 1 1 shared 16384 stream 0; attributes x2 capability x2 device set carveout=50 shared
          staged__nvtune_1 grid 10 1 1 block 512 1 1 shared 49152 stream 0; device
          staged__nvtune_1 grid 10 1 1 block 512 1 1 shared 65536 stream 0; attributes x2 capability x2 device set shared=231424 shared
          staged__nvtune_1 grid 10 1 1 block 512 1 1 shared 65536 stream 0; device
          staged__nvtune_1 grid 10 1 1 block 512 1 1 shared 16384 stream 0; device
          _Z6stagediPf grid 10 1 1 block 256 1 1 shared 1024 stream 0; attributes x2 capability x2 device set shared=231424 shared
        device is reset: its attributes are lost
          staged__nvtune_1 grid 10 1 1 block 512 1 1 shared 65536 stream 0 error 1; device
          _Z6stagediPf grid 10 1 1 block 256 1 1 shared 1024 stream 0;
          staged__nvtune_1 grid 10 1 1 block 512 1 1 shared 65536 stream 0; attributes x2 capability x2 device set carveout=50 set shared=231424 shared
        the same where an error is pending
          _Z6stagediPf grid 10 1 1 block 256 1 1 shared 1024 stream 0 pending 1; device
        attributes of the kernel are the winner's
          tall__nvtune_1 grid 1 16 1 block 32 1 1 shared 0 stream 0; attributes x2 capability x2 device set 14=1 set carveout=25 shared
        the winner's carve-out goes first
          staged__nvtune_1 grid 10 1 1 block 512 1 1 shared 256 stream 0; attributes x2 capability x2 device set carveout=50 shared
        clusters of another size
          _Z12argumentlessv grid 1 1 1 block 256 1 1 shared 0 stream 0; attributes x2 capability x2 device shared
        shared memory cannot be raised
          _Z6stagediPf grid 10 1 1 block 256 1 1 shared 1024 stream 0; attributes x2 capability x2 device set carveout=50 set shared=231424 shared
        one device only, first and again
          flat__nvtune_1 grid 4 1 1 block 64 1 1 shared 0 stream 0 arguments 256 and 4; attributes x2 capability x2 device occupancy processors shared
          flat__nvtune_1 grid 4 1 1 block 64 1 1 shared 0 stream 0 arguments 256 and 4;
        the same in a stream that is captured
          _Z4flatiPf grid 1 1 1 block 256 1 1 shared 0 stream 8;
        enough blocks that one may do the work of three
          flat__nvtune_1 grid 3 1 1 block 64 1 1 shared 0 stream 0 arguments 511 and 8;
        two threads at once
          staged__nvtune_1 grid 10 1 1 block 512 1 1 shared 65536 stream 0: 1000 times
    "#]].assert_eq(&printed.lines().map(short).collect::<String>());
}

#[test]
fn stubs_compile_without_warnings_in_every_standard() {
    let folder = host_code(Headers::Small, &[]);
    for standard in ["-std=c++11", "-std=c++14", "-std=c++17", "-std=c++20"] {
        let strict = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror", "-O3", standard];
        compile_host_code(folder.path(), Headers::Small, &strict);
    }
}

#[test]
#[ignore = "long: in the full run"]
fn winner_is_launched_into_the_stream_of_the_thread() {
    let folder = host_code(Headers::Cuda, &["--default-stream=per-thread"]);
    compile_host_code(folder.path(), Headers::Cuda, &["-std=c++14", "-Wall", "-Wextra", "-Werror"]);
    let printed = launches(folder.path());
    let launches = printed.lines().filter(|line| line.starts_with("  "));
    let of_other_streams = launches.clone().filter(|line| !line.contains("(stream per thread)"));
    assert_eq!(of_other_streams.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(launches.filter(|line| line.contains("__nvtune_")).count() > 10, "{printed}");
}
