#!/usr/bin/env python3
"""What nvtune adds to the time of a compile: `nvcc -c` through nvtune against plain `nvcc -c`.

In: saxpy without its tuning comment, the suite as it stands, an nvcc, nvtune (NVTUNE_BINARY, else target/release/nvtune). Out: a table,
and build/compile_time.json. Always holds: the two compilers run in turns, each first in every other pair, and a pair's
ratio is taken before the median, so that a drift of the machine falls on both; no GPU is used (NVTUNE=static).
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

KERNELS = Path(__file__).resolve().parent
REPOSITORY = KERNELS.parent
WORK = REPOSITORY / "build" / "compile_time"
sys.path.insert(0, str(REPOSITORY / ".ci"))

import toolkit  # noqa: E402


SUITE = ("saxpy", "black_scholes", "nbody", "matmul_naive", "matmul_tiled")


def sources():
    """(what it is, its path) of what is compiled: saxpy without its comment, then the marked sources of the suite."""
    marked = (KERNELS / "saxpy" / "saxpy.cu").read_text()
    unmarked = "".join(line for line in marked.splitlines(True) if not line.startswith("//@tune"))
    if unmarked == marked:
        sys.exit("compile_time: saxpy.cu has no tuning comment")
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "common").mkdir(parents=True)
    shutil.copy(KERNELS / "common" / "bench.h", WORK / "common")
    (WORK / "unmarked").mkdir()
    (WORK / "unmarked" / "unmarked.cu").write_text(unmarked)
    yield "unmarked (saxpy)", WORK / "unmarked" / "unmarked.cu"
    for name in SUITE:
        yield f"marked: {name}", KERNELS / name / f"{name}.cu"


def timed(compiler, source, environment):
    target = WORK / f"{source.stem}.o"
    command = [str(compiler), "-O3", "-arch=sm_90", "-c", str(source), "-o", str(target)]
    target.unlink(missing_ok=True)
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    if done.returncode != 0 or not target.exists():
        sys.exit(f"compile_time: {' '.join(command)} made no object (status {done.returncode})\n{done.stderr}")
    return seconds


def compare(nvcc, shim, source, environment, pairs):
    """(plain, nvtune, ratio): medians, in seconds, over the pairs."""
    plain, tuned = [], []
    for turn in range(-1, pairs):
        order = [(plain, nvcc, os.environ), (tuned, shim, environment)]
        for times, compiler, variables in order if turn % 2 == 0 else reversed(order):
            times.append(timed(compiler, source, variables))
    # The first pair warms the page cache.
    plain, tuned = plain[1:], tuned[1:]
    ratios = [second / first for first, second in zip(plain, tuned)]
    return statistics.median(plain), statistics.median(tuned), statistics.median(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15, help="pairs of compiles in each line (default 15)")
    pairs = parser.parse_args().pairs
    if pairs < 1:
        parser.error("--pairs takes a number from 1")
    try:
        nvcc = toolkit.nvcc_path()
    except toolkit.Failure as why:
        sys.exit(f"compile_time: {why}")
    target = REPOSITORY / os.environ.get("CARGO_TARGET_DIR", "target")
    nvtune = Path(os.environ.get("NVTUNE_BINARY") or target / "release" / "nvtune").absolute()
    if not toolkit.is_executable(nvtune):
        sys.exit(f"compile_time: {nvtune} is not there: cargo build --release, or set NVTUNE_BINARY")
    compiled = list(sources())
    shim = WORK / "bin" / "nvcc"
    shim.parent.mkdir()
    shim.symlink_to(nvtune)
    environment = dict(
        os.environ,
        NVTUNE="static",
        NVTUNE_NVCC=str(nvcc),
    )
    rows = []
    for label, source in compiled:
        plain, tuned, ratio = compare(nvcc, shim, source, environment, pairs)
        rows.append(
            {"build": label, "plain_ms": 1e3 * plain, "nvtune_ms": 1e3 * tuned, "ratio": ratio, "pairs": pairs}
        )
    record = REPOSITORY / "build" / "compile_time.json"
    record.write_text(json.dumps(rows, indent=2) + "\n")
    print(f"nvcc -O3 -arch=sm_90 -c, medians of {pairs} pairs, NVTUNE=static")
    print(f"{'':26} {'plain ms':>9} {'nvtune ms':>10} {'added ms':>9} {'ratio':>7}")
    for row in rows:
        added = row["nvtune_ms"] - row["plain_ms"]
        print(
            f"{row['build']:26} {row['plain_ms']:9.1f} {row['nvtune_ms']:10.1f} {added:9.1f} {row['ratio']:7.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
