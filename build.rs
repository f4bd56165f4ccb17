//! How the binary is linked. Every call of nvcc pays for nvtune's start, so it starts with as little as can be: no addresses to
//! relocate, and the unwinder in the program instead of in one more library to load.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") != "linux" || target("ENV") != "gnu" {
        return;
    }
    println!("cargo:rustc-link-arg-bins=-no-pie");
    // rustc asks for libgcc_s by name. A linker script of that name, found first, gives it the static one where there is one.
    let found = Command::new("cc").arg("-print-file-name=libgcc_eh.a").output();
    let is_there = found.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains('/'));
    let folder = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    if is_there && std::fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh)\n").is_ok() {
        println!("cargo:rustc-link-arg-bins=-L{}", folder.display());
    }
}
