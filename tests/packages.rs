//! Packages: what is in the .deb, the wheel and the archive, made of a program that only prints its name.

use super::support::book::root;
use super::support::summary;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tree as `make install DESTDIR=... PREFIX=/usr` leaves it.
fn stage() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("root/usr/bin/nvtune");
    fs::create_dir_all(program.parent().expect("a folder")).expect("a folder");
    // The versions of glibc that a program needs are names in it.
    fs::write(&program, "#!/bin/sh\n# GLIBC_2.17 GLIBC_2.28\necho nvtune\n").expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    folder
}

fn package(folder: &Path, arguments: &[&str]) -> Result<PathBuf, String> {
    let mut command = Command::new("python3");
    command.arg(root().join("packaging/package.py")).args(arguments);
    command.arg("--root").arg(folder.join("root")).arg("--out").arg(folder.join("out"));
    let output = command.args(["--version", "1.2.3"]).output().expect("python3 starts");
    if output.status.success() {
        Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn said(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn same_tree_gives_the_same_wheel_and_archive() {
    let folder = stage();
    for kind in ["wheel", "archive"] {
        let bytes = || fs::read(package(folder.path(), &[kind]).expect("made")).expect("it is there");
        assert!(bytes() == bytes(), "{kind}");
    }
}

#[test]
fn deb_has_a_folder_of_shims() {
    if which::which("dpkg-deb").is_err() {
        return;
    }
    let folder = stage();
    let path = package(folder.path(), &["deb"]).expect("made");
    let list = said(Command::new("dpkg-deb").arg("--contents").arg(&path));
    assert!(list.contains("./usr/lib/nvtune/nvcc -> ../../bin/nvtune"), "{list}");
    let depends = said(Command::new("dpkg-deb").arg("--field").arg(&path).arg("Depends"));
    assert_eq!(depends, "libc6 (>= 2.28)\n");
    let target = folder.path().join("unpacked");
    said(Command::new("dpkg-deb").arg("--extract").arg(&path).arg(&target));
    assert_eq!(said(&mut Command::new(target.join("usr/lib/nvtune/nvcc"))), "nvtune\n");
}

#[test]
#[ignore = "long: in the full run"]
fn wheel_installs_the_program_next_to_python() {
    let folder = stage();
    let wheel = package(folder.path(), &["wheel"]).expect("made");
    let name = wheel.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with("nvtune-1.2.3-py3-none-manylinux_2_28_"), "{name}");
    let environment = folder.path().join("venv");
    let python = |arguments: &[&OsStr]| {
        Command::new("python3").args(arguments).output().is_ok_and(|output| output.status.success())
    };
    let [module, venv, bare, pip] = ["-m", "venv", "--without-pip", "pip"].map(OsStr::new);
    let install = ["install", "--no-index", "--disable-pip-version-check"].map(OsStr::new);
    // By the pip that is there, where it can: to put one into the environment takes seconds.
    let target = environment.join("bin/python");
    let by_own_pip =
        [&[module, pip, "--python".as_ref(), target.as_os_str()][..], &install, &[wheel.as_os_str()]].concat();
    if !python(&[module, venv, bare, environment.as_os_str()]) || !python(&by_own_pip) {
        if !python(&[module, venv, environment.as_os_str()]) {
            return;
        }
        said(Command::new(environment.join("bin/pip")).args(install).arg(&wheel));
    }
    assert_eq!(said(&mut Command::new(environment.join("bin/nvtune"))), "nvtune\n");
}

#[test]
fn archive_has_one_folder_and_names_its_glibc() {
    let folder = stage();
    let path = package(folder.path(), &["archive"]).expect("made");
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with("nvtune-1.2.3-") && name.ends_with("-linux-glibc2.28.tar.xz"), "{name}");
    let list = said(Command::new("tar").arg("-tf").arg(&path));
    let top = format!("{}/", name.trim_end_matches(".tar.xz"));
    assert!(list.lines().all(|line| line.starts_with(&top)), "{list}");
    assert!(list.contains(&format!("{top}bin/nvtune\n")), "{list}");
}

#[test]
fn program_that_needs_a_newer_glibc_is_refused() {
    let folder = stage();
    let problem = package(folder.path(), &["archive", "--glibc", "2.17"]).expect_err("it is too new");
    assert!(problem.contains("the program needs glibc 2.28, newer than 2.17"), "{problem}");
}

/// The oldest glibc that the book promises.
const OLDEST_GLIBC: u32 = 17;

/// Returns the newest 2.N of glibc whose symbols a program needs.
fn newest_glibc(program: &Path) -> u32 {
    let needs = said(Command::new("readelf").args(["--wide", "--version-info"]).arg(program));
    let minors = needs.split("GLIBC_2.").skip(1).map(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    });
    minors.max().expect("it needs some")
}

#[test]
#[ignore = "long: in the full run"]
fn archive_and_wheel_for_an_old_glibc_run_and_need_none_that_is_newer() {
    let missing = ["cargo-zigbuild", "readelf", "make"].iter().find(|tool| which::which(tool).is_err());
    if let Some(tool) = missing {
        return summary::keep("packages", &format!("packages for glibc 2.{OLDEST_GLIBC}: no {tool} here"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut make = Command::new("make");
    make.args(["archive", "wheel"]).arg(format!("GLIBC=2.{OLDEST_GLIBC}")).current_dir(root());
    let made = said(make.env_remove("NVTUNE_BINARY").env_remove("MAKEFLAGS"));
    let package = |end: &str| {
        let line = made.lines().find(|line| line.ends_with(end)).unwrap_or_else(|| panic!("no {end}: {made}"));
        root().join(line)
    };
    let wheel = package(".whl");
    let name = wheel.file_name().expect("a name").to_string_lossy().into_owned();
    let minor = name.split("manylinux_2_").nth(1).and_then(|rest| rest.split('_').next()).expect("a tag");
    said(
        Command::new("tar").arg("-xf").arg(package(".tar.xz")).args(["--strip-components=1", "-C"]).arg(folder.path()),
    );
    let program = folder.path().join("bin/nvtune");
    let newest = newest_glibc(&program);
    assert!(newest <= OLDEST_GLIBC, "it needs glibc 2.{newest}");
    assert_eq!(minor, newest.to_string(), "{name}");
    let version = said(Command::new(program).arg("--version"));
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    summary::keep("packages", &format!("packages for glibc 2.{OLDEST_GLIBC}: pass, and need glibc 2.{newest}"));
}
