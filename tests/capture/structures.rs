//! Launches with structures: what a build makes of the numbers in them.

use super::{Headers, command, nvcc, nvtune, recorded_program, source, succeed, write_timings};
use expect_test::expect;
use std::process::Command;

#[test]
fn grid_that_numbers_in_structures_give_follows_them() {
    let folder = recorded_program(include_str!("structured.cu"));
    let fastest = r#"{"label": "block=64", "time_us": 5.0}, {"label": "block=64x1", "time_us": 5.0}, {"time_us": 10.0, "spread": 0.01}"#;
    write_timings(folder.path(), fastest);
    let mut tuning = command(folder.path(), "measure", Headers::Cuda);
    succeed(tuning.arg("--keep").env("NVTUNE_REPLAY", "timings.json").env("NVTUNE_HEADER_DIR", folder.path()));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    let stub = read("launches.cudafe1.stub.c");
    for extent in ["__par0.extent.x", "__par0.counts[1]", "__par0.z"] {
        assert!(stub.contains(&format!("static_cast<long long>({extent})")), "{extent}: {stub}");
    }
    let mut lock = Command::new(env!("CARGO_BIN_EXE_nvtune"));
    succeed(lock.arg("lock").env("NVTUNE_NVCC", nvcc()).current_dir(folder.path()));
    let text = read("nvtune.lock");
    let inferred = text.lines().map(str::trim).filter(|line| line.contains("inferred"));
    expect![[r#"
        "inferred": "threads((size.x * size.y) * size.z) args(size = {x = 11, y = 13, z = 13})",
        "inferred": "threads(1024)",
        "inferred": "threads(sizes.extent.x, sizes.extent.y) args(sizes = {extent = {x = 50, y = 30}})",
        "inferred": "args(sizes = {counts = {3, 1500}})",
    "#]]
    .assert_eq(&inferred.map(|line| format!("{line}\n")).collect::<String>());
    let header = read("launches.tune.h");
    let grids =
        header.lines().filter_map(|line| line.strip_prefix("static inline struct nvtune_dim3 ")?.strip_suffix(';'));
    let grids = grids.filter(|declared| declared.contains("_grid("));
    expect![[r#"
        nvtune_planes_grid(int sizes_extent_x, int sizes_extent_y)
        nvtune_rows_grid(long long sizes_counts_1)
        nvtune_cells_grid(unsigned int size_x, unsigned int size_y, unsigned int size_z)
        nvtune_items_grid(void)
    "#]]
    .assert_eq(&grids.map(|line| format!("{line}\n")).collect::<String>());
    // Without recordings, GPU and cache, as on a farm.
    for file in ["launches.tune.json", "timings.json"] {
        std::fs::remove_file(folder.path().join(file)).expect(file);
    }
    std::fs::remove_dir_all(folder.path().join("launches.capture")).expect("recordings");
    let ran = nvtune(folder.path(), "locked", &[("NVTUNE_CACHE_SIZE", "0")]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    expect![[r#"
        nvtune: planes: block=64 (2.00x over the baseline, locked)
        nvtune: rows: block=64 (2.00x over the baseline, locked)
        nvtune: cells: block=64 (2.00x over the baseline, locked)
        nvtune: items: block=64 (2.00x over the baseline, locked)
    "#]]
    .assert_eq(&said);
    // The field that the launch follows has another name now.
    let text = std::fs::read_to_string(source("structured.cu")).expect("read").replace("extent", "size");
    std::fs::write(folder.path().join("launches.cu"), text).expect("written");
    let ran = nvtune(folder.path(), "locked", &[("NVTUNE_CACHE_SIZE", "0")]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    expect![[r#"
        nvtune warning : planes: not tuned: its lock entry does not fit: class "Sizes" has no member "extent"; record it again [N0211]
        nvtune: rows: block=64 (2.00x over the baseline, locked)
        nvtune: cells: block=64 (2.00x over the baseline, locked)
        nvtune: items: block=64 (2.00x over the baseline, locked)
    "#]].assert_eq(&said);
    // A mistake of the comment's own is an error as ever.
    let text = std::fs::read_to_string(source("structured.cu")).expect("read").replacen(
        "//@tune regs({0})\n",
        "//@tune regs({0}) require(blok.x > 3)\n",
        1,
    );
    std::fs::write(folder.path().join("launches.cu"), text).expect("written");
    let ran = nvtune(folder.path(), "locked", &[("NVTUNE_CACHE_SIZE", "0")]);
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("error: unknown name `blok.x`; did you mean `block.x`? [N0112]"), "{said}");
}
