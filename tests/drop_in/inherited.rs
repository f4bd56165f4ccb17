//! What an nvcc that nvtune hands a call to finds: the same environment, arguments, folder, files, signals and limits as without it.

use crate::support::full::{cases, is_full};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

/// Stands in for nvcc and says all that a process inherits.
const NVCC: &str = "#!/bin/sh\nenv | grep -v '^_=' | sort\npwd\numask\nulimit -a\nfor word; do printf '[%s]' \"$word\"; done\n\
                    grep -E '^(SigIgn|SigBlk|Nice|Groups|NoNewPrivs)' /proc/self/status\nls /proc/self/fd\nps -o pgid=,sid=,ni= -p $$ || true\n";

/// How a caller starts it; `\"$@\"` is the compiler and its arguments.
const CALLERS: [&str; 6] = [
    "exec \"$@\"",
    "trap '' PIPE INT HUP; exec \"$@\"",
    "exec \"$@\" <&-",
    "exec \"$@\" 7</dev/null 9>/dev/null",
    "umask 077; ulimit -n 99; cd /; exec \"$@\"",
    "exec env -i A=b 'C=d e' PATH=/usr/bin:/bin \"$@\"",
];

#[test]
fn nvcc_inherits_the_same_with_nvtune_as_without() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["home", "real", "own", "tmp"] {
        fs::create_dir(path(name)).expect("a folder");
    }
    fs::write(path("real/nvcc"), NVCC).expect("written");
    // A toolkit's own nvcc has this beside it.
    fs::write(path("real/nvcc.profile"), "").expect("written");
    fs::set_permissions(path("real/nvcc"), fs::Permissions::from_mode(0o755)).expect("executable");
    symlink(env!("CARGO_BIN_EXE_nvtune"), path("own/nvcc")).expect("linked");
    fs::write(path("plain.cu"), "#include \"plain.h\"\n").expect("written");
    fs::write(path("plain.h"), "int x;\n").expect("written");
    for caller in CALLERS {
        let caller = caller.replace("env -i", &format!("env -i NVTUNE_NVCC={}", path("real/nvcc").display()));
        let said = |compiler: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", &caller, "sh"]).arg(path(compiler)).args(["-DX=a b", "", "-c"]).arg(path("plain.cu"));
            command.current_dir(folder.path()).env("TMPDIR", path("tmp")).env("NVTUNE_NVCC", path("real/nvcc"));
            // With a cache, as users have it.
            command.env("HOME", path("home")).env_remove("XDG_CACHE_HOME").env_remove("NVTUNE_CACHE_SIZE");
            let output = command.output().expect("sh starts");
            assert!(output.status.success(), "{caller}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).expect("text")
        };
        let (plain, tuned) = (said("real/nvcc"), said("own/nvcc"));
        // The session's own processes differ, the group does not.
        assert!(plain.contains("SigIgn") && plain.contains("[-DX=a b][][-c]"), "{plain}");
        assert_eq!(tuned, plain, "{caller}");
    }
    let mut left: Vec<_> =
        fs::read_dir(folder.path()).expect("there").flatten().map(|entry| entry.file_name()).collect();
    left.sort();
    assert_eq!(left, ["home", "own", "plain.cu", "plain.h", "real", "tmp"]);
    for name in ["home", "tmp"] {
        assert_eq!(fs::read_dir(path(name)).expect("there").count(), 0, "{name}");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn nvtune_does_not_take_its_own_link_copy_or_script_for_nvcc() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["link", "copy", "hard", "script", "real"] {
        fs::create_dir(path(name)).expect("a folder");
    }
    let own = env!("CARGO_BIN_EXE_nvtune");
    symlink(own, path("link/nvcc")).expect("linked");
    fs::copy(own, path("copy/nvcc")).expect("copied");
    fs::hard_link(path("copy/nvcc"), path("hard/nvcc")).expect("linked");
    let script = |place: &str, text: String| {
        fs::write(path(place), text).expect("written");
        fs::set_permissions(path(place), fs::Permissions::from_mode(0o755)).expect("executable");
    };
    script("script/nvcc", format!("#!/bin/sh\nexec {own} nvcc \"$@\"\n"));
    // As Debian has it: nvcc is a script that starts the compiler.
    script("real/nvcc", "#!/bin/sh\necho real \"$@\"\n".to_owned());
    let places = ["link", "copy", "hard", "script"];
    let ways = |first: &str| if is_full() || first == "link" { 2 } else { 1 };
    for &first in cases(&places, 2) {
        for real_is_there in [true, false] {
            let mut folders: Vec<_> = std::iter::once(first).chain(places).map(&path).collect();
            if real_is_there {
                folders.push(path("real"));
            }
            // Relative, too: an entry of PATH may be.
            for nvcc in [path(&format!("{first}/nvcc")), format!("./{first}/nvcc").into()].into_iter().take(ways(first))
            {
                let mut command = Command::new(&nvcc);
                command.arg("--version").current_dir(folder.path()).env_clear();
                let output = command
                    .env("PATH", std::env::join_paths(&folders).expect("no colons"))
                    .output()
                    .expect("it starts");
                let said =
                    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
                if real_is_there {
                    assert_eq!(said, "real --version\n", "{}", nvcc.display());
                } else if !["/usr/local/cuda", "/opt/cuda"].iter().any(|place| std::path::Path::new(place).exists()) {
                    assert!(!output.status.success() && said.contains("no nvcc found"), "{}: {said}", nvcc.display());
                }
            }
        }
    }
}

#[test]
fn nvcc_that_looks_for_the_next_nvcc_is_called_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["own", "looks", "real"] {
        fs::create_dir(path(name)).expect("a folder");
    }
    symlink(env!("CARGO_BIN_EXE_nvtune"), path("own/nvcc")).expect("linked");
    let script = |place: &str, text: &str| {
        fs::write(path(place), text).expect("written");
        fs::set_permissions(path(place), fs::Permissions::from_mode(0o755)).expect("executable");
    };
    // As a link to ccache does.
    let looks = "#!/bin/bash\necho looks >&2\nfor n in $(type -ap nvcc); do [ $n -ef $0 ] || exec $n \"$@\"; done\n";
    script("looks/nvcc", looks);
    script("real/nvcc", "#!/bin/sh\necho real \"$@\"\n");
    fs::write(path("real/nvcc.profile"), "").expect("written");
    // Where a toolkit is installed, that is found at last.
    if ["/usr/local/cuda", "/opt/cuda"].iter().any(|place| std::path::Path::new(place).exists()) {
        return;
    }
    let mut all = String::new();
    for folders in
        [["own", "looks", "real"], ["looks", "own", "real"], ["own", "looks", "none"], ["looks", "own", "none"]]
    {
        let on_path = folders.map(&path).into_iter().chain(["/usr/bin".into(), "/bin".into()]);
        let mut command = Command::new("timeout");
        command.args(["20", "nvcc", "--version"]).current_dir(folder.path()).env_clear();
        let output =
            command.env("PATH", std::env::join_paths(on_path).expect("no colons")).output().expect("it starts");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).replace(&folder.path().display().to_string(), "FOLDER");
        all += &format!("{folders:?}: {:?} {said:?}\n", output.status.code());
    }
    expect_test::expect![[r#"
        ["own", "looks", "real"]: Some(0) "real --version\nlooks\n"
        ["looks", "own", "real"]: Some(0) "real --version\nlooks\nlooks\n"
        ["own", "looks", "none"]: Some(1) "looks\nnvtune fatal   : nvtune and 'FOLDER/looks/nvcc' start each other: set NVTUNE_NVCC to the path of NVIDIA's nvcc [N0001]\n"
        ["looks", "own", "none"]: Some(1) "looks\nlooks\nnvtune fatal   : nvtune and 'FOLDER/looks/nvcc' start each other: set NVTUNE_NVCC to the path of NVIDIA's nvcc [N0001]\n"
    "#]].assert_eq(&all);
}
