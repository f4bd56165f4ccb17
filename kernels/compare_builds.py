#!/usr/bin/env python3
"""Compares two builds of nvtune by what they choose: each tunes programs of the suite anew, and the tuned programs run in turns.

    python3 kernels/compare_builds.py OLD NEW [NAME...] [--seconds S] [--seed N] [--out FILE]

OLD and NEW are nvtune programs; the real nvcc is NVTUNE_NVCC, else the one on PATH. The programs are taken in an order drawn by the
seed, so that those that `--seconds` leaves out are no choice. Goes out: a line for each program, the geometric mean of the
times' ratios (below 1: NEW is faster), and FILE. Status 0 if each program was built and passed its check.
"""

import argparse
import math
import os
import random
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

import bench
import recorded

BUILDS = ("old", "new")


def compare(tools, work, name, rounds, repetitions):
    """One row: seconds of the searches, winners, and microseconds of the programs."""
    text = (bench.KERNELS / name / f"{name}.cu").read_text()
    row, programs = {"kernel": name}, {}
    for which in BUILDS:
        folder = recorded.sources(work / which / "sources" / name, name, text)
        programs[which], messages, build_s, decision = recorded.build(tools[which], folder, name, "measure")
        row[which] = {
            "build_s": build_s,
            "search_s": decision and decision["seconds"],
            "winner": decision and decision["winner"],
            "messages": messages,
            "check": bench.run_program(programs[which], "--check")["check"],
        }
    samples = {which: [] for which in BUILDS}
    for turn in range(rounds):
        for which in BUILDS if turn % 2 == 0 else reversed(BUILDS):
            samples[which].append(bench.run_program(programs[which], "--repetitions", repetitions)["time_us"]["median"])
    for which in BUILDS:
        row[which]["us"] = statistics.median(samples[which])
    row["ratio"] = row["new"]["us"] / row["old"]["us"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    bench.add_suite_options(parser, "compare_builds.json")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    nvcc = Path(os.environ.get("NVTUNE_NVCC") or shutil.which("nvcc")).absolute()
    names = list(options.kernels)
    random.Random(options.seed).shuffle(names)

    def line_of(row):
        searches = " ".join(f"{row[which]['search_s']:.2f}" for which in BUILDS)
        return f"{row['ratio']:.3f}  {row['old']['us']:10.2f} {row['new']['us']:10.2f} us  {searches} s"

    with tempfile.TemporaryDirectory() as folder:
        binaries = {"old": options.old, "new": options.new}
        tools = {
            which: bench.Tools(nvcc, binaries[which].absolute(), Path(folder) / which, options.architecture) for which in BUILDS
        }
        row_of = lambda name: compare(tools, Path(folder), name, options.rounds, options.repetitions)  # noqa: E731
        rows = bench.collect(names, row_of, line_of, nvcc, options.out, options.seconds)
    timed = [row for row in rows if row.get("ratio") and all(row[which]["check"] == "ok" for which in BUILDS)]
    if timed:
        mean = math.exp(statistics.mean(math.log(row["ratio"]) for row in timed))
        searches = [statistics.median(row[which]["search_s"] for row in timed) for which in BUILDS]
        print(f"geometric mean of {len(timed)}: {mean:.4f}; searches, median: {searches[0]:.2f} s, {searches[1]:.2f} s")
    return 0 if len(timed) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
