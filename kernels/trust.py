#!/usr/bin/env python3
"""How far the winners of searches can be trusted, on this machine's GPU.

In: the suite's programs, an nvcc, nvtune (as bench.py finds them). Out, in results/<gpu>/trust.json and as a table: for each
kernel, the winners of repeated searches; the program of each distinct winner against plain nvcc's, run in turns and timed by the
programs' own CUDA events, or (`--spaces`) its time in a record of the whole space, and how far from the best of that it is; what a
search took, and what it takes to compile each configuration by nvcc and run it (from a sample of configurations, extrapolated to all).
Invariant: a search knows nothing of the one before; what fails is named, and the rest is there.
"""

import argparse
import concurrent.futures
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import bench
from bench import KERNELS, SUITE, Failure, run, run_program, within

REPOSITORY = KERNELS.parent


def search(tools, name, number):
    """One search in a folder of its own: the decision of nvtune, and the wall clock of the whole compile."""
    folder = tools.work / name / f"search-{number}"
    folder.mkdir(parents=True)
    source = within(KERNELS / name / f"{name}.cu")
    environment = dict(tools.tuned_environment, NVTUNE_CACHE_DIR=str(folder / "cache"), NVTUNE_WAIT="3600")
    words = [tools.shim, *tools.flags, "-c", source, "-o", folder / f"{name}.o"]
    _, said, seconds = run(words, bench.BUILD_LIMIT, environment)
    kernels = json.loads((folder / f"{name}.tune.json").read_text())["kernels"]
    kernel = next(kernel for kernel in kernels if kernel["name"] == name)
    winner = kernel["configurations"][kernel["winner"]]
    keep = ("block", "cap", "grid", "macros", "cache", "carveout", "math", "exact_block", "coarsening")
    return {
        "winner": {key: winner[key] for key in keep if key in winner},
        "provenance": kernel["provenance"],
        "speedup": kernel["speedup"],
        "timed": kernel["timed"],
        "points": kernel["points"],
        "seconds": kernel["seconds"],
        "conditions": kernel.get("conditions"),
        "compile_s": seconds,
        "warnings": [line for line in said.splitlines() if "warning" in line],
        "object": str(folder / f"{name}.o"),
    }


def program(tools, name, target, into):
    run([tools.nvcc, *tools.flags, target, *tools.link_flags, "-o", into], bench.BUILD_LIMIT, tools.plain_environment)
    return Path(into)


def exhaustive(tools, name, configurations, count, seed):
    """Seconds to compile a configuration by nvcc and run it, for a sample: the default launch, with its register cap and macros."""
    draw = random.Random(seed)
    seconds = []
    for number, chosen in enumerate(draw.sample(configurations, min(count, len(configurations)))):
        folder = tools.work / name / f"es-{number}"
        folder.mkdir(parents=True)
        defines = [f"-D{key}={value}" for key, value in chosen.get("macros", {}).items()]
        cap = [f"-maxrregcount={chosen['cap']}"] if chosen.get("cap") else []
        source, into = within(KERNELS / name / f"{name}.cu"), folder / name
        begin = time.monotonic()
        try:
            run([tools.nvcc, *tools.flags, *cap, *defines, source, *tools.link_flags, "-o", into], bench.BUILD_LIMIT, tools.plain_environment)
            run_program(into)
        except Failure:
            # A configuration that the program's own launch does not fit took its time all the same.
            pass
        seconds.append(time.monotonic() - begin)
    return seconds


def distinct(searches):
    """The winners, each with how often it was chosen and one of the searches that did."""
    found = {}
    for one in searches:
        found.setdefault(json.dumps(one["winner"], sort_keys=True), []).append(one)
    return [(same[0], len(same)) for _, same in sorted(found.items())]


def look_up(name, searches, folder):
    """The winners as the record of the whole space has them."""
    result = {"kernel": name, "searches": searches, "winners": [], "failures": []}
    try:
        for found, chosen in distinct(searches):
            # A record of the space has no code for exactly a block, and no coarsened blocks.
            facts = bench.space_facts(folder / f"{name}.json.gz", {**found["winner"], "exact_block": None, "coarsening": None})
            result["winners"].append({"winner": found["winner"], "chosen": chosen, "plain_us": facts["baseline_us"], "nvtune_us": facts["winner_us"], "regret": facts["regret"]})
            result["space"] = facts["size"]
    except (Failure, KeyError) as why:
        result["failures"].append(str(why))
    return result


def look_at(tools, name, searches, options):
    result = {"kernel": name, "searches": searches, "failures": []}
    try:
        folder = tools.work / name
        run([tools.nvcc, *tools.flags, "-c", within(KERNELS / name / f"{name}.cu"), "-o", folder / "plain.o"], bench.BUILD_LIMIT, tools.plain_environment)
        plain = program(tools, name, folder / "plain.o", folder / "plain")
        result["winners"] = []
        for number, (found, chosen) in enumerate(distinct(searches)):
            tuned = program(tools, name, found["object"], folder / f"tuned-{number}")
            compared = bench.compare_programs(plain, tuned, options.rounds, options.repetitions)
            result["winners"].append(
                {
                    "winner": found["winner"],
                    "chosen": chosen,
                    "plain_us": compared["plain"]["median_us"],
                    "nvtune_us": compared["nvtune"]["median_us"],
                    "samples_us": {which: compared[which]["samples_us"] for which in compared},
                    "check": compared["nvtune"]["check"],
                }
            )
    except Failure as why:
        result["failures"].append(str(why))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=list(SUITE))
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=4, help="compiles at a time; they take turns on the GPU")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--spaces", type=Path, metavar="FOLDER", help="records of the whole spaces (bench.py), in place of the programs")
    parser.add_argument("--sample", type=int, default=0, help="configurations that are compiled by nvcc and run, one by one")
    parser.add_argument("--limit", type=float, default=240, help="begin nothing more after this many seconds")
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    begin = time.monotonic()
    nvtune = Path(os.environ["NVTUNE_BINARY"]).resolve()
    results = []

    def left():
        return options.limit - (time.monotonic() - begin)

    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        nvcc = Path(shutil.which(options.nvcc) or options.nvcc).resolve()
        tools = bench.Tools(nvcc, nvtune, Path(work), options.arch)
        jobs = {}
        # Every kernel once, then every kernel again: what there is no time for is the last repetition of all.
        for number in range(options.searches):
            for name in options.kernels:
                jobs[name, number] = pool.submit(lambda name, number: search(tools, name, number) if left() > 0 else None, name, number)
        found = {name: [] for name in options.kernels}
        failures = {name: [] for name in options.kernels}
        for (name, _), job in jobs.items():
            try:
                found[name].append(job.result())
            except (Failure, OSError, StopIteration, ValueError) as why:
                failures[name].append(str(why))
        for name in options.kernels:
            searches = [one for one in found[name] if one is not None]
            if not searches or left() < -60:
                results.append({"kernel": name, "failures": failures[name] or ["there was no time"]})
                continue
            configurations = configurations_of(tools, name)
            result = look_up(name, searches, options.spaces) if options.spaces else look_at(tools, name, searches, options)
            for one in searches:
                del one["object"]
            result["failures"] += failures[name]
            if options.sample and left() > -30:
                result["exhaustive"] = {
                    "sample_s": exhaustive(tools, name, configurations, options.sample, 1),
                    "configurations": len(configurations),
                }
            results.append(result)
            bench.write_json(options.out, results, None)
            print(line(result), flush=True)
    bench.write_json(options.out, results, None)
    return 0


def configurations_of(tools, name):
    record = tools.work / name / "search-0" / f"{name}.tune.json"
    kernels = json.loads(record.read_text())["kernels"]
    return next(kernel for kernel in kernels if kernel["name"] == name)["configurations"]


def line(result):
    winners = result.get("winners", [])
    seconds = [sum(one["seconds"].values()) - 2 * one["seconds"].get("waited", 0) for one in result["searches"]]
    slowest = max((one["nvtune_us"] / one["plain_us"] for one in winners), default=float("nan"))
    text = f"{result['kernel']:20} {len(seconds)} searches, {len(winners)} winners, at most {slowest:.3f} of plain nvcc's time, {statistics.median(seconds):.2f} s each"
    if result.get("space"):
        times = sorted(one["nvtune_us"] for one in winners for _ in range(one["chosen"]))
        alike = max(sum(abs(other / time - 1) <= 0.01 for other in times) for time in times)
        timed = statistics.median(one["timed"] for one in result["searches"])
        text += f", {timed:.0f} of {result['space']['configurations']} timed, {alike} within 1% of one time"
        for kind, which in (("regret", False), ("regret of the same code for any block", True)):
            worst = max((one["regret"] for one in winners if bool(one["winner"].get("exact_block")) == which), default=None)
            text += "" if worst is None else f", {kind} {100 * worst:.2f}% at worst"
    if "exhaustive" in result:
        each = statistics.mean(result["exhaustive"]["sample_s"])
        whole = each * result["exhaustive"]["configurations"]
        text += f"; each configuration by nvcc and run: {each:.2f} s, all: {whole:.0f} s, {whole / statistics.median(seconds):.0f} times"
    return text + "".join(f"; {why}" for why in result["failures"])


if __name__ == "__main__":
    sys.exit(main())
