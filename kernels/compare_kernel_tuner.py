#!/usr/bin/env python3
"""How long nvtune and Kernel Tuner take to answer, and how good their answers are, on the same kernels and this GPU.

In: kernels of the suite, Kernel Tuner 1.5 with CuPy, an nvcc, nvtune (NVTUNE_BINARY), records of the whole spaces of this GPU's model
(bench.py). Out, in --out and as a table: for each kernel the seconds of each of Kernel Tuner's strategies at each budget and of
nvtune's search, compiling included, and how much slower than the best of the space each winner is by the records.
Invariant: both tune the same blocks, grids and macros (nvtune register caps too); Kernel Tuner starts warm (imports, the GPU's context
and a first compile are not counted), keeps compiled kernels in memory only, and checks no result.
"""

import argparse
import contextlib
import io
import os
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

# CuPy reads it when it is imported.
os.environ["CUPY_CACHE_IN_MEMORY"] = "1"

import cupy
import kernel_tuner
import numpy

import bench
import machine
import trust

STRATEGIES = ("random_sample", "genetic_algorithm", "hybrid_vndx")
BUDGETS = (22, 60)
# A strategy that has used up a small space may look for new points for ever.
RACE_LIMIT_S = 20

# What the kernels take from headers that NVRTC does not have.
PRELUDE = """
namespace std { typedef decltype(sizeof(0)) size_t; typedef long ptrdiff_t; }
#define FLT_MAX 3.402823466e+38F
"""

f32, i32 = numpy.float32, numpy.int32


def random(count, low=0.0, high=1.0):
    return numpy.random.default_rng(1).uniform(low, high, count).astype(f32)


def out(count):
    return numpy.zeros(count, f32)


def each(start, stop, step):
    return list(range(start, stop + 1, step))


X, Y = "block_size_x", "block_size_y"


def space(problem, arguments, parameters, divisors=((X,), (Y,)), **more):
    return {"problem_size": problem, "arguments": arguments, "tune_params": parameters, "grid_div_x": list(divisors[0]), "grid_div_y": list(divisors[1]), **more}


# Each kernel's space as its comment has it, in Kernel Tuner's words. Functions, as the data of all is more than one needs.
SPACES = {
    "nbody": lambda n=32768: space((n,), [i32(n), f32(0.01), random(4 * n), out(4 * n)], {X: each(64, 1024, 64)}, ((X,), ()), smem_args={"size": f"{X} * 16"}),
    "cp": lambda n=1024: space(
        (n, n),
        [i32(n), i32(2000), f32(0.0009765625), f32(1.0625), out(n * n)],
        {X: [16, 32, 64, 128], Y: [1, 2, 4, 8, 16], "WORK": [1, 2, 4, 8, 16], "COALESCED": [1, 0]},
        ((X, "WORK"), (Y,)),
        restrictions=["WORK > 1 or COALESCED == 1", f"{X} * {Y} >= 64", f"{X} * {Y} <= 512"],
        cmem_args={"cp_atoms": random(4 * 4096)},
    ),
    "matmul_naive": lambda n=2048: space(
        (n, n),
        [i32(n), random(n * n), random(n * n), out(n * n)],
        {X: [8, 16, 32, 64, 128, 256], Y: [1, 2, 4, 8, 16, 32]},
        restrictions=[f"{X} * {Y} >= 64", f"{X} * {Y} <= 1024"],
    ),
    "matmul_tiled": lambda n=2048: space(
        (n, n),
        [i32(n), random(n * n), random(n * n), out(n * n)],
        {X: [8, 16, 32], Y: [1, 2, 4, 8, 16, 32], "TILE": [8, 16, 32], "WORK": [1, 2, 4, 8]},
        (("TILE",), ("TILE",)),
        restrictions=[f"{X} == TILE", f"{Y} * WORK == TILE"],
    ),
    "saxpy": lambda n=1 << 25: space((n,), [i32(n), f32(2), random(n), random(n)], {X: each(64, 1024, 32)}, ((X,), ())),
    "matrix_add": lambda n=6144: space(
        (n, n),
        [i32(n), numpy.zeros(n * n, i32), numpy.zeros(n * n, i32), numpy.zeros(n * n, i32)],
        {X: [8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024], Y: [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]},
        restrictions=[f"{X} * {Y} <= 1024"],
    ),
    "black_scholes": lambda n=1 << 24: space(
        ("GRID",),
        [i32(n), f32(0.03), f32(0.25), random(n, 10, 50), random(n, 10, 100), random(n, 0.25, 5), out(n), out(n)],
        {X: each(64, 1024, 64), "GRID": [132, 264, 528, 1056, 2112, 4224]},
        ((), ()),
    ),
    "transpose": lambda n=8192: space(
        (n, n),
        [i32(n), random(n * n), out(n * n)],
        {X: [16, 32, 64], Y: [2, 4, 8, 16], "TILE": [16, 32, 64], "ROWS": [2, 4, 8, 16], "PAD": [0, 1]},
        (("TILE",), ("TILE",)),
        restrictions=[f"{X} == TILE", f"{Y} == ROWS"],
    ),
    "conv2d": lambda n=4096: space(
        (n, n),
        [i32(n), i32(n), random((n + 16) ** 2), out(n * n)],
        {X: [16, 32, 64, 128], Y: [2, 4, 8, 16], "WORK_X": [1, 2, 4], "WORK_Y": [1, 2, 4, 8], "PAD": [0, 1]},
        ((X, "WORK_X"), (Y, "WORK_Y")),
        # Kernel Tuner fails where a launch needs more dynamic shared memory than 48 KiB.
        restrictions=[f"{X} * {Y} <= 1024", f"({X} * WORK_X + 16 + PAD) * ({Y} * WORK_Y + 16) * 4 <= 49152"],
        smem_args={"size": f"({X} * WORK_X + 16 + PAD) * ({Y} * WORK_Y + 16) * 4"},
        cmem_args={"filter": random(17 * 17, -1, 1)},
    ),
    "stencil3d": lambda n=384: space(
        (n, n, n),
        [i32(n), random((n + 8) ** 3), out(n**3)],
        {X: [16, 32, 64, 128], Y: [4, 8, 16, 32], "TILED": [0, 1], "DEPTH": [32, 64, 128, 384]},
        grid_div_z=["DEPTH"],
        restrictions=[f"{X} * {Y} <= 1024"],
        smem_args={"size": f"TILED * ({X} + 8) * ({Y} + 8) * 4"},
        cmem_args={"weights": random(5, -1, 1)},
    ),
    "fdtd": lambda n=4096: space(
        (n, n),
        [i32(n), f32(0.5), *(random(n * n) for _ in range(4)), *(out(n * n) for _ in range(3))],
        {X: [16, 32, 64, 128, 256], Y: [1, 2, 4, 8, 16], "WORK": [1, 2, 4, 8]},
        ((X,), (Y, "WORK")),
        restrictions=[f"{X} * {Y} <= 1024"],
    ),
    "softmax": lambda rows=8192, columns=4096: space(
        (rows,),
        [i32(rows), i32(columns), random(rows * columns, -8, 8), out(rows * columns)],
        {X: [32, 64, 128, 256, 512, 1024], Y: [1, 2, 4, 8], "ONLINE": [0, 1], "VECTOR": [1, 2, 4]},
        ((Y,), ()),
        restrictions=[f"{X} * {Y} <= 1024"],
    ),
    "layer_norm": lambda rows=16384, columns=2048: space(
        (rows,),
        [i32(rows), i32(columns), f32(1e-5), random(rows * columns, -4, 4), random(columns), random(columns), out(rows * columns)],
        {X: each(32, 512, 32), "CACHE": [0, 1], "VECTOR": [1, 2, 4]},
        ((), ()),
        smem_args={"size": "CACHE * 2048 * 4"},
    ),
    "mri_q": lambda n=1 << 18, samples=2048: space(
        (n,),
        [i32(n), i32(samples), *(random(n, -1, 1) for _ in range(3)), random(4 * samples, -16, 16), out(n), out(n)],
        {X: each(64, 512, 64), "UNROLL": [1, 2, 4, 8], "SAMPLES": [32, 64, 128, 256, 512, 1024]},
        ((X,), ()),
    ),
}


def source(name):
    """The kernel with its macros, without the includes before it and the program after it."""
    text = (bench.KERNELS / name / f"{name}.cu").read_text()
    return PRELUDE + re.split(r"\nstatic bench::Shape", text.split("#endif", 1)[1])[0]


def configuration(chosen):
    """Kernel Tuner's winner as a record of nvtune names it: without a register cap."""
    macros = {key: chosen[key] for key in chosen if key.isupper() and key != "GRID"}
    found = {"block": [int(chosen.get(key, 1)) for key in (X, Y)] + [1], "cap": 0}
    if macros:
        found["macros"] = {key: int(value) for key, value in macros.items()}
    if "GRID" in chosen:
        found["grid"] = [int(chosen["GRID"]), 1, 1]
    return found


def give_up(*_):
    raise TimeoutError(f"no answer within {RACE_LIMIT_S} s")


def race(name, strategy, budget):
    """One search of Kernel Tuner: its seconds, evaluations, and winner."""
    problem = SPACES[name]()
    problem["tune_params"] = {key: list(values) for key, values in problem["tune_params"].items()}
    said = io.StringIO()
    # What an earlier search compiled is no part of this one.
    cupy.clear_memo()
    begin = time.monotonic()
    signal.alarm(RACE_LIMIT_S)
    try:
        with contextlib.redirect_stdout(said):
            results, _ = kernel_tuner.tune_kernel(
                name, source(name), lang="CUPY", compiler_options=["--std=c++17"], strategy=strategy, strategy_options={"max_fevals": budget}, quiet=True, **problem
            )
    finally:
        signal.alarm(0)
    seconds = time.monotonic() - begin
    timed = [result for result in results if isinstance(result.get("time"), float)]
    best = min(timed, key=lambda result: result["time"])
    return {"seconds": seconds, "evaluated": len(results), "timed": len(timed), "winner": configuration({key: best[key] for key in problem["tune_params"]})}


def regret(name, winner, folder, speedup=None):
    """How much slower than the best of the space the winner is by the record; None where the record lacks it.

    A record has no code for exactly a block. Such a winner's time is the record's of the default launch, divided by the speedup.
    """
    try:
        facts = bench.space_facts(folder / f"{name}.json.gz", winner)
    except bench.Failure:
        return None
    if winner.get("exact_block") and speedup:
        return facts["baseline_us"] / speedup / facts["best_us"] - 1
    return facts.get("regret")


def compare(tools, name, spaces, searches):
    result = {"kernel": name, "kernel_tuner": [], "nvtune": []}
    for number in range(searches):
        found = trust.search(tools, name, number)
        seconds = {key: value for key, value in found["seconds"].items() if key != "waited"}
        result["nvtune"].append({"seconds": sum(seconds.values()), "phases": seconds, "timed": found["timed"], "winner": found["winner"], "regret": regret(name, found["winner"], spaces, found["speedup"])})
    # The first of a process compiles slower than those after it.
    race(name, "random_sample", 2)
    for strategy in STRATEGIES:
        for budget in BUDGETS:
            try:
                one = race(name, strategy, budget)
            except Exception as why:  # What it raises is named in the result, of whatever type.
                one = {"failure": f"{type(why).__name__}: {why}"[:300]}
            else:
                one["regret"] = regret(name, one["winner"], spaces)
            result["kernel_tuner"].append({"strategy": strategy, "budget": budget, **one})
    return result


def line(result):
    def percent(value):
        return "-" if value is None else f"{value:.1%}"

    ours = statistics.median(one["seconds"] for one in result["nvtune"])
    worst = max((one["regret"] for one in result["nvtune"] if one["regret"] is not None), default=None)
    cells = [f"{one['seconds']:.2f} {percent(one['regret'])}" if "seconds" in one else "failed" for one in result["kernel_tuner"]]
    return f"{result['kernel']:14} {ours:5.2f} {percent(worst):>5} | " + " | ".join(f"{cell:>11}" for cell in cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=list(SPACES))
    parser.add_argument("--searches", type=int, default=3, help="searches of nvtune for each kernel; the table has their median")
    parser.add_argument("--spaces", type=Path, help="records of the whole spaces; those of this GPU's model if not given")
    parser.add_argument("--limit", type=float, default=500, help="begin no further kernel after this many seconds")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    begin = time.monotonic()
    signal.signal(signal.SIGALRM, give_up)
    facts = machine.gpu()
    spaces = options.spaces or bench.KERNELS / "results" / machine.folder(facts)
    nvcc = Path(shutil.which(options.nvcc) or options.nvcc).resolve()
    record = {**machine.describe(nvcc, trust.REPOSITORY), "kernel_tuner": "1.5.0", "kernels": []}
    print(f"{'kernel':14} nvtune      | " + " | ".join(f"{strategy.split('_')[0]} {budget}".rjust(11) for strategy in STRATEGIES for budget in BUDGETS))
    with tempfile.TemporaryDirectory() as work:
        tools = bench.Tools(nvcc, Path(os.environ["NVTUNE_BINARY"]).resolve(), Path(work), machine.architecture(facts) or "sm_90")
        for name in options.kernels:
            if time.monotonic() - begin > options.limit:
                break
            try:
                found = compare(tools, name, spaces, options.searches)
            except (bench.Failure, OSError, ValueError) as why:
                print(f"{name:14} {why}", flush=True)
                continue
            record["kernels"].append(found)
            bench.write_json(options.out, record, None)
            print(line(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
