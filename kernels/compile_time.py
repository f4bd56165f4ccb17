#!/usr/bin/env python3
"""What nvtune adds to the time of a compile: `nvcc -c` through nvtune against plain `nvcc -c`; calls that compile nothing, where the
machine's noise is small; and the search for tuning comments in a large source.

In: saxpy without its tuning comment, the same with a marked header of which it makes no instance, the suite as it stands and
without its lines that include nvtune's headers, a project of 50 marked kernels in 20 files, an nvcc, nvtune (NVTUNE_BINARY,
else target/release/nvtune), with --pytorch torch's headers. Out: tables, and build/compile_time.json. Invariant: the two
compilers run in turns, each first in every other pair, and a pair's ratio is taken before the median, so that a drift of the
machine falls on both; beside the wall clock stands the processor time (user and system) of a build with all its processes,
which other work on the machine hardly changes; no GPU is used (NVTUNE=static). Cold: without a cache. Warm: what an earlier
build decided is in it; plain nvcc is then given the winner's macros, so that both compile the same code.
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

KERNELS = Path(__file__).resolve().parent
REPOSITORY = KERNELS.parent
WORK = REPOSITORY / "build" / "compile_time"
sys.path.insert(0, str(REPOSITORY / ".ci"))

import toolkit  # noqa: E402


# A header of a library: a marked kernel that each source may make instances of, and a macro that joins names.
LIBRARY = """#pragma once
#define LIBRARY_JOIN(a, b) a##b
//@tune template(float) threads(n) block(64:1024:64) regs(auto) default(block = 256)
//@tune args(n = 1 << 20, x = random[n])
template <typename T> __global__ void library_scale(int n, T *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= T(2);
}
template <typename T> void library_run(int n, T *x) { library_scale<T><<<(n + 255) / 256, 256>>>(n, x); }
inline int LIBRARY_JOIN(library_, version)() { return 1; }
"""
NO_INSTANCE = "header marked, no instance"

SUITE = ("saxpy", "black_scholes", "nbody", "matmul_naive", "matmul_tiled")


def sources():
    """(what it is, its path) of what is compiled: saxpy without its comment, alone and with a marked header, then the suite's sources."""
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
    (WORK / "unmarked" / "library.cuh").write_text(LIBRARY)
    (WORK / "unmarked" / "no_instance.cu").write_text('#include "library.cuh"\n' + unmarked)
    yield NO_INSTANCE, WORK / "unmarked" / "no_instance.cu"
    for name in SUITE:
        yield f"marked: {name}", KERNELS / name / f"{name}.cu"
    (WORK / "without_header").mkdir()
    for name in SUITE:
        text = (KERNELS / name / f"{name}.cu").read_text()
        without = re.sub(r"#if __has_include\(.*\n#include .*\n#endif\n", "", text)
        if without == text:
            sys.exit(f"compile_time: {name}.cu does not include its header")
        (WORK / "without_header" / f"{name}.cu").write_text(without)
        yield f"marked, no header: {name}", WORK / "without_header" / f"{name}.cu"


EXTENSION = """#include <torch/extension.h>
//@tune threads(n) block(64:1024:64) regs(auto) default(block = 256)
//@tune args(n = 1 << 20, x = random[n], y = out[n])
__global__ void scaled(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
torch::Tensor scale(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const int n = x.numel();
    scaled<<<(n + 255) / 256, 256>>>(n, x.data_ptr<float>(), y.data_ptr<float>());
    return y;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); }
"""


def extension():
    """(what it is, its path, the words that torch.utils.cpp_extension gives nvcc) of a source of a PyTorch extension."""
    found = importlib.util.find_spec("torch")
    if found is None:
        sys.exit("compile_time: no torch is found: install it, or set PYTHONPATH")
    headers = Path(found.origin).parent / "include"
    path = WORK / "extension.cu"
    path.write_text(EXTENSION)
    operators = ("HALF_OPERATORS", "HALF_CONVERSIONS", "BFLOAT16_CONVERSIONS", "HALF2_OPERATORS")
    words = [f"-D__CUDA_NO_{name}__" for name in operators]
    words += ["--expt-relaxed-constexpr", "-std=c++17", "-Xcompiler", "-fPIC", "-DTORCH_EXTENSION_NAME=extension"]
    folders = [headers, headers / "torch" / "csrc" / "api" / "include", sysconfig.get_path("include")]
    return "marked, no header: PyTorch extension", path, words + [f"-I{folder}" for folder in folders]


KERNEL = """
//@tune threads(n) block(64:1024:64) regs(auto) default(block = 256)
//@tune args(n = 1 << 20, a = 2.0f, x = random[n], y = random[n])
__global__ void step{number}(int n, float a, const float *x, float *y) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i] * {number}.0f;
}}
"""
FILES, KERNELS_IN_ALL, JOBS = 20, 50, 8


def project():
    """The folder of a project of its own, with a Makefile that takes NVCC."""
    folder = WORK / "project"
    folder.mkdir()
    for number in range(FILES):
        kernels = range(number, KERNELS_IN_ALL, FILES)
        (folder / f"part{number}.cu").write_text("".join(KERNEL.format(number=kernel) for kernel in kernels))
    (folder / "Makefile").write_text(
        "OBJECTS := $(patsubst %.cu,$(OUT)/%.o,$(wildcard *.cu))\nall: $(OBJECTS)\n"
        "$(OUT)/%.o: %.cu\n\t$(NVCC) -O3 -arch=sm_90 -c $< -o $@\n"
    )
    return folder


def used(command, environment, folder=None):
    """(seconds of wall clock, seconds of processor time with all processes that it started and waited for) of a command; ends this program where it fails."""
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            words = said.read().decode(errors="replace")
            sys.exit(f"compile_time: {' '.join(command)} ended with {process.returncode}\n{words}")
    return seconds, usage.ru_utime + usage.ru_stime


def made(folder, compiler, environment, out):
    """Seconds of a `make -j` from nothing: wall clock, processor."""
    target = folder / out
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    command = ["make", "-s", f"-j{JOBS}", f"NVCC={compiler}", f"OUT={out}"]
    seconds = used(command, environment, folder)
    again = subprocess.run([*command, "-q"], cwd=folder, env=environment, capture_output=True, text=True)
    if again.returncode != 0:
        sys.exit(f"compile_time: a second make would build again\n{again.stdout}")
    return seconds


def compare_projects(nvcc, shim, folder, environment, pairs):
    """As compare(), of the whole project."""
    plain, tuned = [], []
    for turn in range(-1, pairs):
        order = [(plain, nvcc, os.environ, "plain"), (tuned, shim, environment, "tuned")]
        for times, compiler, variables, out in order if turn % 2 == 0 else reversed(order):
            times.append(made(folder, compiler, variables, out))
    return medians(plain[1:], tuned[1:])


def timed(compiler, source, environment, options=()):
    """Seconds of a compile: wall clock, processor."""
    target = WORK / f"{source.stem}.o"
    command = [str(compiler), "-O3", "-arch=sm_90", "-c", str(source), "-o", str(target), *options]
    target.unlink(missing_ok=True)
    seconds = used(command, environment)
    if not target.exists():
        sys.exit(f"compile_time: {' '.join(command)} made no object")
    return seconds


def seconds_of(command, environment, null):
    """Wall clock of a process from its start to its end."""
    actions = [(os.POSIX_SPAWN_DUP2, null, stream) for stream in (0, 1, 2)]
    started = time.perf_counter()
    os.waitpid(os.posix_spawn(command[0], command, environment, file_actions=actions), 0)
    return time.perf_counter() - started


def added(first, second, environment, pairs):
    """Milliseconds that `second` takes more than `first`: the medians of both, the median of the pairs' differences, and the
    difference of the 99th percentiles, which fall on the machine's noise where they stand alone."""
    null = os.open(os.devnull, os.O_RDWR)
    times = ([], [])
    for turn in range(pairs + 10):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            times[which].append(1e3 * seconds_of((first, second)[which], environment, null))
    os.close(null)
    plain, tuned = (taken[10:] for taken in times)
    percentile = lambda values: statistics.quantiles(values, n=100)[98]  # noqa: E731
    return {
        "plain_ms": statistics.median(plain),
        "nvtune_ms": statistics.median(tuned),
        "added_ms": statistics.median(b - a for a, b in zip(plain, tuned)),
        "added_p99_ms": percentile(tuned) - percentile(plain),
        "pairs": pairs,
    }


def large_source(folder):
    """A source of 1 MB with 200 quoted includes, and one with nothing in it."""
    folder.mkdir()
    line = "__device__ float unmarked(float x) { return x * 2.0f; }  // nothing to tune, @ all\n"
    for number in range(200):
        (folder / f"part{number}.cuh").write_text(line * 10)
    includes = "".join(f'#include "part{number}.cuh"\n' for number in range(200))
    (folder / "large.cu").write_text(includes + line * (2**20 // len(line)))
    (folder / "empty.cu").write_text("")
    return folder / "large.cu", folder / "empty.cu"


def handed_over(nvcc, shim, unmarked, environment, pairs):
    """Rows for calls that compile nothing, and for the search by itself: with a program in nvcc's place that does nothing."""
    for label, words in (("--version", ["--version"]), ("--dryrun -c", ["--dryrun", "-c", str(unmarked)])):
        row = added([str(nvcc), *words], [str(shim), *words], environment, pairs)
        yield {"build": f"unmarked {label}", **row}
    large, empty = large_source(WORK / "large")
    nothing = dict(environment, NVTUNE_NVCC=shutil.which("true"))
    row = added([str(shim), "-c", str(empty)], [str(shim), "-c", str(large)], nothing, pairs)
    yield {"build": "search 1 MB, 200 includes", **row}


def winners_macros(source):
    """The options of nvcc for the macros of the winners that the last build recorded."""
    record = json.loads((WORK / f"{source.stem}.tune.json").read_text())
    winners = [kernel["configurations"][kernel["winner"]] for kernel in record["kernels"]]
    return [f"-D{name}={value}" for winner in winners for name, value in winner.get("macros", {}).items()]


def compare(nvcc, shim, source, environment, pairs, words=(), is_warm=False):
    """As medians(), over the pairs. Both compilers get `words`."""
    plain, tuned, options = [], [], []
    if is_warm:
        timed(shim, source, environment, words)
        options = winners_macros(source)
    for turn in range(-1, pairs):
        order = [(plain, nvcc, os.environ, options), (tuned, shim, environment, [])]
        for times, compiler, variables, given in order if turn % 2 == 0 else reversed(order):
            times.append(timed(compiler, source, variables, [*words, *given]))
    # The first pair warms the page cache.
    return medians(plain[1:], tuned[1:])


def medians(plain, tuned):
    """What a row of the table says of the pairs' (wall clock, processor time)."""
    row = {}
    for at, (name, ratio) in enumerate((("", "ratio"), ("cpu_", "cpu_ratio"))):
        ours, theirs = [pair[at] for pair in tuned], [pair[at] for pair in plain]
        row[f"plain_{name}ms"] = 1e3 * statistics.median(theirs)
        row[f"nvtune_{name}ms"] = 1e3 * statistics.median(ours)
        row[ratio] = statistics.median(second / first for first, second in zip(theirs, ours))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15, help="pairs of compiles in each line (default 15)")
    parser.add_argument("--calls", type=int, default=500, help="pairs of calls that compile nothing (default 500)")
    parser.add_argument("--warm", action="store_true", help="only builds whose results are in the cache")
    parser.add_argument("--cold", action="store_true", help="only marked builds without a cache")
    parser.add_argument("--unmarked", action="store_true", help="only calls that compile nothing")
    parser.add_argument("--no-instance", action="store_true", help="only a source that makes no instance of its marked header")
    parser.add_argument("--pytorch", action="store_true", help="only a source of a PyTorch extension, without a cache")
    options = parser.parse_args()
    pairs = options.pairs
    if options.calls < 100:
        parser.error("--calls takes a number from 100")
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
        NVTUNE_LOCK=str(WORK / "none.lock"),
    )
    cold, warm = dict(environment, NVTUNE_CACHE_SIZE="0"), dict(environment, NVTUNE_CACHE_DIR=str(WORK / "cache"))
    only_warm, only_cold = options.warm, options.cold
    is_part = only_warm or only_cold or options.no_instance or options.pytorch
    quick = [] if is_part else list(handed_over(nvcc, shim, compiled[0][1], environment, options.calls))
    if quick:
        print(f"calls that compile nothing, {options.calls} pairs")
        print(f"{'':26} {'plain ms':>9} {'nvtune ms':>10} {'added ms':>9} {'at p99':>7}")
    for row in quick:
        print(
            f"{row['build']:26} {row['plain_ms']:9.2f} {row['nvtune_ms']:10.2f} {row['added_ms']:9.2f} {row['added_p99_ms']:7.2f}"
        )
    if options.unmarked:
        return 0
    print()
    rows = []

    def add(label, pairs, times):
        rows.append({"build": label, **times, "pairs": pairs})

    if options.pytorch:
        label, source, words = extension()
        add(label + ", cold", pairs, compare(nvcc, shim, source, cold, pairs, words))
        compiled = []
    if options.no_instance:
        compiled = [(label, source) for label, source in compiled if label == NO_INSTANCE]
    for label, source in compiled:
        is_marked = label.startswith("marked")
        if only_cold and not is_marked:
            continue
        if not only_warm:
            add(label + (", cold" if is_marked else ""), pairs, compare(nvcc, shim, source, cold, pairs))
        if is_marked and not only_cold:
            add(label + ", warm", pairs, compare(nvcc, shim, source, warm, pairs, is_warm=True))
    if not (options.no_instance or options.pytorch or only_cold):
        label = f"make -j{JOBS}, {KERNELS_IN_ALL} kernels, warm"
        add(label, pairs, compare_projects(nvcc, shim, project(), warm, pairs))
    record = REPOSITORY / "build" / "compile_time.json"
    record.write_text(json.dumps(quick + rows, indent=2) + "\n")
    print(f"nvcc -O3 -arch=sm_90 -c, medians of {pairs} pairs, NVTUNE=static")
    print(f"{'':40} {'plain ms':>9} {'nvtune ms':>10} {'ratio':>7} {'plain cpu':>10} {'nvtune cpu':>11} {'ratio':>7}")
    for row in rows:
        print(
            f"{row['build']:40} {row['plain_ms']:9.1f} {row['nvtune_ms']:10.1f} {row['ratio']:7.3f}"
            f" {row['plain_cpu_ms']:10.1f} {row['nvtune_cpu_ms']:11.1f} {row['cpu_ratio']:7.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
