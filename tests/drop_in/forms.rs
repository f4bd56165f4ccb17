//! Every form of call with a marked file: what is tuned, what is not, and that nothing else differs from plain nvcc's.

use super::sandbox::{self, Call, SMALL_HEADERS, Sandbox, Seen};
use crate::support::full::is_full;
use crate::support::summary;
use std::path::Path;

/// What becomes of the kernels of `two.cu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// In this output `first` has the register cap that won; the output is an object if its name says so.
    Tuned(&'static str),
    /// nvcc's build, for it has no launch stub that could select a winner; each kernel is told of.
    Pinned,
    /// nvcc's build, and one line with these words.
    Left(&'static str),
    /// nvcc's build without a word.
    Silent,
}
use Expected::{Left, Pinned, Silent, Tuned};

const NOT_LINKED: &str = "this call makes no machine code";

/// A form of call; the quick run has the first [`QUICK`] of them.
const FORMS: &[(&str, Expected)] = &[
    ("-c two.cu -o two.o", Tuned("two.o")),
    ("-MD -MF two.d -x cu -c two.cpp -o two.o", Tuned("two.o")),
    ("-cubin two.cu", Pinned),
    ("-c two.cu plain.cu", Tuned("two.o")),
    ("-E two.cu -o two.ii", Silent),
    ("--dryrun -c two.cu", Silent),
    ("-ptx two.cu", Left("-ptx makes no machine code")),
    // From here on in the full run only.
    ("-c two.cu", Tuned("two.o")),
    ("-c two.cu -odir out", Tuned("out/two.o")),
    ("-c two.cu -odir nowhere -o two.o", Tuned("two.o")),
    ("-c two.cu -o out/other.o", Tuned("out/other.o")),
    ("-c two.cu -o=comma,folder/two.o", Tuned("comma,folder/two.o")),
    ("-c ./two.cu -o two.o", Tuned("two.o")),
    ("-c out/../two.cu -o two.o", Tuned("two.o")),
    ("-x cu -c two.cpp", Tuned("two.o")),
    ("-fatbin two.cu", Pinned),
    ("-fatbin two.cu -o out/x.fatbin", Pinned),
    ("-cubin -o out/x.cubin two.cu", Pinned),
    ("two.cu main.cpp -o prog", Tuned("prog")),
    ("two.cu main.cpp", Tuned("a.out")),
    ("-shared -Xcompiler -fPIC two.cu -o libtwo.so", Tuned("libtwo.so")),
    ("-lib two.cu -o libtwo.a", Tuned("libtwo.a")),
    ("-MD -c two.cu -o two.o", Tuned("two.o")),
    ("-MMD -MF out/two.d -MT target.o -c two.cu -o two.o", Tuned("two.o")),
    ("-MD -MP -MF two.d -c two.cu -o two.o", Tuned("two.o")),
    ("-MMD -MF /dev/null -c two.cu -o two.o", Tuned("two.o")),
    ("--generate-dependencies-with-compile --dependency-output two.d -c two.cu -o two.o", Tuned("two.o")),
    ("-t 2 -gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 -c two.cu -o two.o", Tuned("two.o")),
    ("-t0 -gencode arch=compute_90,code=[sm_90,compute_90] -c two.cu -o two.o", Tuned("two.o")),
    ("-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_90,code=sm_90 -c two.cu -o two.o", Tuned("two.o")),
    ("-arch=all-major -c two.cu -o two.o", Tuned("")),
    ("-arch=all -c two.cu -o two.o", Tuned("")),
    ("-arch=native -c two.cu -o two.o", Tuned("")),
    ("--keep --keep-dir out -c two.cu -o two.o", Tuned("two.o")),
    ("-lineinfo -c two.cu -o two.o", Tuned("two.o")),
    ("-g -c two.cu -o two.o", Tuned("two.o")),
    ("-O1 -use_fast_math -std=c++20 -c two.cu -o two.o", Tuned("two.o")),
    ("-Xptxas -O2 -Xcompiler -fPIC -ccbin g++ -c two.cu -o two.o", Tuned("two.o")),
    ("-split-compile=2 -c two.cu -o two.o", Tuned("two.o")),
    ("-optf two.rsp", Tuned("two.o")),
    ("-optf nested.rsp", Tuned("two.o")),
    ("NVCC_PREPEND_FLAGS=-lineinfo NVCC_APPEND_FLAGS=-DUNUSED=1 -c two.cu -o two.o", Tuned("two.o")),
    ("NVCC_APPEND_FLAGS=-o=two.o -c two.cu", Tuned("two.o")),
    ("-c two.cu -c -o two.o", Tuned("two.o")),
    ("-I. -Iout -isystem out -DUNUSED=1 -c two.cu -o two.o", Tuned("two.o")),
    ("-c includes_two.cu -o two.o", Tuned("two.o")),
    ("-c -o two.o -x cu - <two.cu", Silent),
    ("-G -c two.cu -o two.o", Left("-G compiles device code without optimisation")),
    ("-dc two.cu -o two.o", Tuned("two.o")),
    ("-dw two.cu -o two.o", Tuned("two.o")),
    ("-rdc=true -c two.cu -o two.o", Tuned("two.o")),
    ("-rdc=true -MD -MF two.d -c two.cu -o two.o", Tuned("two.o")),
    ("-rdc=true two.cu main.cpp -o prog", Tuned("prog")),
    ("-dlto -c two.cu -o two.o", Left(NOT_LINKED)),
    ("-dlto -dc two.cu -o two.o", Left(NOT_LINKED)),
    ("-arch=compute_90 -c two.cu -o two.o", Left(NOT_LINKED)),
    ("-ltoir -gencode arch=compute_90,code=lto_90 two.cu", Left("-ltoir makes no machine code")),
    ("-optix-ir two.cu", Left("-optix-ir makes no machine code")),
    ("-cuda two.cu -o two.ii", Left("-cuda makes no machine code")),
    ("-M two.cu -o two.d", Silent),
    ("-MM two.cu", Silent),
    ("-clean -c two.cu", Silent),
    ("-fdevice-syntax-only two.cu", Silent),
    ("-c two.cu -o /dev/null", Silent),
];

const QUICK: usize = 4;

/// Recorded timings for which the register caps of `two.cu` win: what a GPU would say.
pub const CAPS_WIN: &str = r#"{
    "device": {"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000, "sms": 132},
    "entries": [
        {"kernel": "_Z5firstiPKfPf", "label": "regs=24", "time_us": 10.0, "spread": 0.01},
        {"kernel": "_Z7boundediPKfPf", "label": "regs=32", "time_us": 10.0, "spread": 0.01},
        {"time_us": 15.0, "spread": 0.01}
    ]
}"#;

/// The folder that calls are made in; with `header`, the source includes what nvtune makes for it.
fn fixture(header: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    let source = std::fs::read_to_string(root.join("tests/end_to_end/sources/two.cu")).expect("it is there");
    for stem in ["two.cu", "two.cpp"] {
        let include = if header { "#if __has_include(\"two.tune.h\")\n#include \"two.tune.h\"\n#endif\n" } else { "" };
        write(stem, &format!("{include}{source}"));
    }
    write("includes_two.cu", "#include \"two.cu\"\n");
    write("two.rsp", "-c two.cu -o two.o");
    write("nested.rsp", "-DUNUSED=1\n--options-file two.rsp");
    write("main.cpp", "int main() { return 0; }\n");
    write("plain.cu", "__global__ void other(int *x) { *x = 1; }\n");
    write("recorded.json", CAPS_WIN);
    for name in ["out", "comma,folder"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    folder
}

fn call(form: &str) -> Call {
    let mut call = Call::default();
    for word in form.split(' ') {
        match (word.strip_prefix('<'), word.split_once('=')) {
            (Some(file), _) => call.stdin = Some(file.to_owned()),
            (None, Some((name, value))) if name.starts_with("NVCC_") => {
                call.environment.push((name.to_owned(), value.to_owned()));
            }
            _ => call.arguments.push(word.into()),
        }
    }
    let has = |text: &str| form.contains(text);
    if !["-arch", "-gencode", "-M ", "-MM "].iter().any(|option| has(option)) {
        call.arguments.push("-arch=sm_90".into());
    }
    // fatbinary splits the names of its images at commas: with temporary files beside the object plain nvcc fails there, too.
    if !has("--keep") && !has("--dryrun") && !has("comma") {
        call.arguments.push("-objtemp".into());
    }
    if has("prog") || has("main.cpp") || has("-shared") {
        let root = sandbox::nvcc().parent().and_then(Path::parent).expect("a toolkit").to_path_buf();
        call.arguments.push(format!("-L{}/lib", root.display()).into());
    }
    // The first form has the real headers in a quick run, too.
    if !is_full() && form != FORMS[0].0 {
        call.environment.push(("NVCC_PREPEND_FLAGS".to_owned(), SMALL_HEADERS.to_owned()));
    }
    for (name, value) in [("NVTUNE", "measure"), ("NVTUNE_REPLAY", "recorded.json")] {
        call.environment.push((name.to_owned(), value.to_owned()));
    }
    call
}

#[test]
fn marked_file_is_tuned_or_left_to_nvcc_in_every_form_of_call() {
    let forms = if is_full() { FORMS } else { &FORMS[..QUICK] };
    let plain_source = fixture(false);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let problems = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let sandbox = Sandbox::new(plain_source.path());
                while let Some((form, expected)) = forms.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                    if let Err(problem) = check(&sandbox, form, *expected) {
                        problems.lock().expect("no thread panics").push(format!("{form}\n{problem}"));
                    }
                }
            });
        }
    });
    let problems = problems.into_inner().expect("no thread panicked");
    let count = |wanted: fn(&Expected) -> bool| forms.iter().filter(|(_, expected)| wanted(expected)).count();
    summary::keep(
        "forms",
        &format!(
            "forms of call with a marked file: {} ({} tuned, {} without launch stubs, {} left to nvcc with one line, {} silently), {} wrong",
            forms.len(),
            count(|expected| matches!(expected, Tuned(_))),
            count(|expected| *expected == Pinned),
            count(|expected| matches!(expected, Left(_))),
            count(|expected| *expected == Silent),
            problems.len()
        ),
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Names of files that nvtune may add.
const OWN: [&str; 2] = [".tune.h", ".tune.json"];

fn check(sandbox: &Sandbox, form: &str, expected: Expected) -> Result<(), String> {
    let call = call(form);
    let plain = sandbox.plain(&call);
    let before = match expected {
        Tuned(output) if !output.is_empty() => Some(registers(sandbox, output)?),
        _ => None,
    };
    let tuned = sandbox.nvtune(&call);
    let (own, rest): (Vec<&str>, Vec<&str>) =
        tuned.stderr.split_inclusive('\n').partition(|line| line.starts_with("nvtune"));
    let rest = rest.concat();
    if plain.code != tuned.code || plain.stdout != tuned.stdout {
        return Err(format!("exit code {:?}, not {:?}: {}", tuned.code, plain.code, tuned.stderr));
    }
    if rest != plain.stderr {
        return Err(format!("says `{rest}`, not `{}`", plain.stderr));
    }
    let is_right = match expected {
        Tuned(_) => says_each_kernel_once(&own, form.contains("-arch=native")),
        Pinned => {
            let (notes, results): (Vec<&str>, Vec<&str>) = own.iter().partition(|line| line.contains(": note: "));
            notes.iter().all(|note| note.contains("no launch stubs")) && says_each_kernel_once(&results, false)
        }
        Left(words) => own.len() == 1 && own[0].contains(words),
        Silent => own.is_empty(),
    };
    if !is_right {
        return Err(format!("nvtune says {own:?}"));
    }
    same_files(&plain, &tuned, expected, form.contains("-G"))?;
    let Some(before) = before else { return Ok(()) };
    let Tuned(output) = expected else { return Ok(()) };
    let (kept, winner) = (registers(sandbox, output)?, winner_registers(sandbox, output)?);
    if before <= 24 || kept != before || winner > 24 {
        return Err(format!(
            "`first` has {before} registers without nvtune, {kept} with it, and {winner} in its winner"
        ));
    }
    Ok(())
}

/// One line for each kernel, in a fat build one for each architecture of it. Without a GPU `-arch=native` is nvcc's default, which the GPU
/// of the recording does not run: then a line says so.
fn says_each_kernel_once(lines: &[&str], native: bool) -> bool {
    let is_expected = |line: &&&str| !(native && line.contains("timed as compiled by the driver"));
    let about = |line: &str| line.strip_prefix("nvtune: ")?.split_once(": ").map(|(about, _)| about.to_owned());
    let all: Option<Vec<String>> = lines.iter().filter(is_expected).map(|line| about(line)).collect();
    let Some(all) = all else { return false };
    let of = |kernel: &str| {
        let architectures = all.iter().filter_map(|about| about.strip_prefix(kernel));
        architectures.filter(|rest| rest.is_empty() || rest.starts_with(" on sm_")).collect::<Vec<_>>()
    };
    let (first, bounded) = (of("first"), of("bounded"));
    let distinct = std::collections::BTreeSet::from_iter(&first).len();
    first == bounded && first.len() + bounded.len() == all.len() && distinct == first.len() && distinct > 0
}

/// All files are the same but nvtune's own, the fat binary, what holds it, and the host code with the launch stubs. With `-G` nvcc makes other bytes each time.
fn same_files(plain: &Seen, tuned: &Seen, expected: Expected, debug: bool) -> Result<(), String> {
    let (is_tuned, is_told) = (matches!(expected, Tuned(_)), matches!(expected, Tuned(_) | Pinned));
    for (name, was) in &plain.files {
        let is = tuned.files.get(name).ok_or_else(|| format!("{name} is missing"))?;
        if was == is || debug && name.contains(".o") {
            continue;
        }
        let holds_code = [
            ".nv_fatbin",
            "__nv_relfatbin",
            ".o",
            ".cubin",
            ".fatbin",
            ".ptx",
            ".fatbin.c",
            ".reg.c",
            ".stub.c",
            ".module_id",
            ".a",
            ".so",
            "prog",
            "a.out",
        ];
        // The layout of a linked program follows from the size of its fat binary.
        let linked = ["prog ", "a.out ", ".so "].iter().any(|part| name.contains(part));
        let in_cubin = name.contains(".cubin ") || name.contains(".fatbin ");
        // The launch stubs are functions of the host code, with sections of their own.
        if is_tuned
            && (linked || in_cubin || is_of_host(name) || holds_code.iter().any(|suffix| name.ends_with(suffix)))
        {
            continue;
        }
        if is_told && name.ends_with(".d") && !name.contains(' ') {
            continue;
        }
        return Err(format!("{name} has other bytes"));
    }
    let extra = tuned.files.keys().filter(|name| !plain.files.contains_key(*name));
    let foreign: Vec<_> = extra
        .filter(|name| {
            !is_told
                || !(is_of_host(name) || name.contains("__nvtune_") || OWN.iter().any(|suffix| name.ends_with(suffix)))
        })
        .collect();
    if foreign.is_empty() { Ok(()) } else { Err(format!("nvtune leaves {foreign:?}")) }
}

/// Whether this is a section of an object of the marked source.
fn is_of_host(name: &str) -> bool {
    name.contains("two.o ") || name.contains("other.o ")
}

/// Registers of nvcc's own `first` in an output of the last call.
fn registers(sandbox: &Sandbox, output: &str) -> Result<u32, String> {
    registers_of(sandbox, output, |name| name.contains("first") && !name.contains("__nvtune_"))
}

/// The same of its winner.
fn winner_registers(sandbox: &Sandbox, output: &str) -> Result<u32, String> {
    registers_of(sandbox, output, |name| name.contains("first") && name.contains("__nvtune_"))
}

fn registers_of(sandbox: &Sandbox, output: &str, is_it: impl Fn(&str) -> bool) -> Result<u32, String> {
    let tool = sandbox::nvcc().with_file_name("cuobjdump");
    let ran = std::process::Command::new(tool).arg("-res-usage").arg(sandbox.work().join(output)).output();
    let text = String::from_utf8_lossy(&ran.expect("cuobjdump starts").stdout).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut numbers = lines.windows(2).filter_map(|pair| {
        is_it(pair[0].strip_prefix("Function ")?).then_some(())?;
        pair[1].strip_prefix("REG:")?.split_whitespace().next()?.parse::<u32>().ok()
    });
    // The newest architecture comes last.
    numbers.next_back().ok_or_else(|| format!("cuobjdump finds no `first` in {output}: {text}"))
}

#[test]
fn device_link_keeps_the_registers_of_tuned_objects() {
    let source = fixture(false);
    let sandbox = Sandbox::new(source.path());
    let compiled = sandbox.nvtune(&call("-dc two.cu -o two.o"));
    assert_eq!(compiled.code, Some(0), "{}", compiled.stderr);
    let before = winner_registers(&sandbox, "two.o").expect("it has code");
    let linked = |link: &str, what: &str| {
        let output = std::process::Command::new(link)
            .args(["-arch=sm_90", "-dlink", "two.o", "-o", what])
            .current_dir(sandbox.work())
            .env("NVTUNE_NVCC", sandbox::nvcc())
            .output()
            .expect("it starts");
        assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        winner_registers(&sandbox, what).expect("it has code")
    };
    let nvcc = sandbox::nvcc();
    let own = sandbox.work().join("../bin/nvcc");
    let all = [linked(&nvcc.to_string_lossy(), "plain.o"), linked(&own.to_string_lossy(), "tuned.o")];
    assert!(before <= 24 && all == [before; 2], "{before} registers in the object, {all:?} when linked");
}

#[test]
fn failed_compile_leaves_the_files_that_were_there() {
    let failures = [
        ("the front end", "#error it cannot\n", None),
        ("the host compiler", "#ifndef __CUDA_ARCH__\nint wrong = \"text\";\n#endif\n", Some("/* older */\n")),
        ("the front end", "#error it cannot\n", Some("/* older */\n")),
        ("the host compiler", "#ifndef __CUDA_ARCH__\nint wrong = \"text\";\n#endif\n", None),
    ];
    for (what, end, header) in &failures[..if is_full() { 4 } else { 1 }] {
        let source = fixture(true);
        let path = |name: &str| source.path().join(name);
        let text = std::fs::read_to_string(path("two.cu")).expect("it is there");
        std::fs::write(path("two.cu"), text + end).expect("written");
        for name in header.iter().flat_map(|_| ["two.tune.h", "two.tune.json"]) {
            std::fs::write(path(name), header.unwrap_or_default()).expect("written");
        }
        let sandbox = Sandbox::new(source.path());
        let call = call("-c two.cu -o two.o");
        let (plain, tuned) = (sandbox.plain(&call), sandbox.nvtune(&call));
        assert!(plain.code != Some(0) && plain.code == tuned.code, "{what}: {:?}, {}", tuned.code, tuned.stderr);
        assert_eq!(tuned.files, plain.files, "{what}: {}", tuned.stderr);
    }
}

#[test]
fn depfile_differs_by_the_header_alone() {
    let forms = [
        "-MD -MF two.d -c two.cu -o two.o",
        "-MMD -MF two.d -MT target.o -c two.cu -o two.o",
        "-MD -MP -c two.cu -o two.o",
        "--generate-dependencies-with-compile --dependency-output two.d -x cu -c two.cpp -o two.o",
        "-MD -MF two.d -rdc=true -c two.cu -o two.o",
        "-MD -MF two.d -c two.cu -o comma,folder/two.o",
    ];
    let source = fixture(true);
    let sandbox = Sandbox::new(source.path());
    for form in &forms[..if is_full() { forms.len() } else { 1 }] {
        let call = call(form);
        let (plain, tuned) = (sandbox.plain(&call), sandbox.nvtune(&call));
        assert_eq!((plain.code, tuned.code), (Some(0), Some(0)), "{form}: {}", tuned.stderr);
        let words = |seen: &Seen| -> Vec<String> {
            let text = String::from_utf8_lossy(&seen.files["work/two.d"].1).replace("\\\n", " ");
            text.split_whitespace().map(str::to_owned).collect()
        };
        let (plain, tuned) = (words(&plain), words(&tuned));
        let added: Vec<&String> = tuned.iter().filter(|word| !plain.contains(word)).collect();
        assert!(
            !added.is_empty() && added.iter().all(|word| word.trim_end_matches(':').ends_with("two.tune.h")),
            "{form}: {added:?}"
        );
        let without: Vec<&String> = tuned.iter().filter(|word| !word.contains("two.tune.h")).collect();
        assert_eq!(without, plain.iter().collect::<Vec<_>>(), "{form}");
    }
}
