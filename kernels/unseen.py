#!/usr/bin/env python3
"""What clauses gain on the kernels of kernels/UNSEEN.md, for which nobody wrote a macro.

    NVTUNE_BINARY=target/release/nvtune NVTUNE_NVCC=... python3 kernels/unseen.py HECBENCH CLAUSES... [--seconds N] [--share K/N]
        [--exhaustive] [--programs NAME...] [--keep FOLDER] [--out FILE]

    kernels/unseen.py ../HeCBench 'unroll(auto)' 'unroll(auto) math(ftz, fast_div, fast_sqrt, fmad)'

In: HeCBench at the commit of kernels/results/h200/unseen.json, whose comments are put above the kernels, once as they are and
once for each of CLAUSES with that added. Out: for each kernel and each of these the winner and its speed-up over the program's own
launch, as nvtune measured and compared it; in FILE, and as a table. With `--seconds` the kernels that are not begun by then are
left out, and counted. With `--share 2/3` only the second third of the kernels is built, as for one of three GPUs. With `--exhaustive`
each search is made again with every configuration timed (NVTUNE_STRATEGY=es). With `--keep FOLDER` that folder
gets what nvtune printed, and its records. With `--copy FOLDER` the sources are copied there, and nothing is built.
"""

import argparse
import concurrent.futures
import json
import math
import os
import random
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import machine

KERNELS = Path(__file__).resolve().parent
COMMENTS = KERNELS / "results/h200/unseen.json"
# Kernels that are built at once; their measuring takes turns by itself.
AT_ONCE = 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hecbench", type=Path)
    parser.add_argument("clauses", nargs="*", metavar="CLAUSES")
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--share", type=lambda text: tuple(map(int, text.split("/"))), default=(1, 1), metavar="K/N")
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--programs", nargs="+", metavar="NAME", help="the kernels of these programs alone")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("unseen.json"))
    parser.add_argument("--copy", type=Path, metavar="FOLDER")
    return parser.parse_args()


def kernels():
    """The kernels without macros of a user, in an order that says nothing."""
    recorded = json.loads(COMMENTS.read_text())
    lists = [value for value in recorded.values() if isinstance(value, list)]
    own = [kernel for each in lists for kernel in each if not any("define(" in line for line in kernel["comment"])]
    random.Random(45).shuffle(own)
    return own


def mark(source, kernel, clauses):
    """Puts the comment above the kernel, whose name may have the arguments of a template behind it."""
    text = source.read_text(errors="surrogateescape")
    words = kernel["kernel"].split("_")
    for count in range(len(words), 0, -1):
        name = re.escape("_".join(words[:count]))
        head = re.compile(rf"^(?:template\s*<[^>]*>\s*)?[^;{{}}\n]*__global__[^;{{}}]*?\b{name}\s*\([^;{{]*{{", re.MULTILINE)
        if found := head.search(text):
            lines = "".join(f"//@tune {line}\n" for line in [*kernel["comment"], *clauses])
            source.write_text(text[: found.start()] + lines + text[found.start() :], errors="surrogateescape")
            return
    raise RuntimeError("its kernel is not found")


def winner_of(said):
    """The winner in the line of a decision: `nvtune: saxpy: block=96 regs=24 (1.25x over the baseline, measured); ...`."""
    line = re.search(r"^nvtune: [^:\n]+: (block=[^(\n]*) \(", said, re.MULTILINE)
    return line.group(1) if line else "?"


def tuned(folder, kernel, clauses, nvcc, strategy="refit", keep=None):
    """Builds the source of a kernel with its comment; what the record says of it."""
    with tempfile.TemporaryDirectory() as place:
        place = Path(place) / folder.name
        shutil.copytree(folder, place)
        source = place / kernel["file"]
        mark(source, kernel, clauses)
        if source.suffix != ".cu":
            includes = re.compile(rf'#include\s*"{re.escape(source.name)}"')
            source = next(file for file in sorted(place.glob("*.cu")) if includes.search(file.read_text(errors="replace")))
        command = [str(nvcc), "-O3", "-std=c++17", "-arch=native", "-I.", "-c", source.name, "-o", "tuned.o"]
        environment = {**os.environ, "NVTUNE": "measure", "NVTUNE_CACHE_SIZE": "0", "NVTUNE_STRATEGY": strategy}
        begin = time.monotonic()
        built = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, errors="replace", check=False)
        if built.returncode != 0 or "nvtune" not in built.stderr:
            raise RuntimeError(built.stderr[-300:] or "nothing was tuned")
        record = (place / f"{source.stem}.tune.json").read_text()
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"\W+", "_", " ".join([folder.name, kernel["kernel"], *clauses, strategy]))
            (keep / f"{name}.json").write_text(record)
            (keep / f"{name}.txt").write_text(built.stderr)
        found = json.loads(record)["kernels"][0]
        return {
            "winner": winner_of(built.stderr),
            "speedup": found.get("speedup") or 1.0 if found["winner"] != found["baseline"] else 1.0,
            "timed": found.get("timed"),
            "seconds": round(time.monotonic() - begin, 1),
        }


def every(folder, kernel, nvcc, last, options):
    """One kernel under each set of clauses; None where its turn came too late."""
    if time.monotonic() > last:
        return None
    given = lambda clauses: [clauses] if clauses else []
    row = {"program": kernel["program"], "kernel": kernel["kernel"]}
    for clauses in ["", *options.clauses]:
        try:
            row[clauses] = tuned(folder, kernel, given(clauses), nvcc, keep=options.keep)
            if options.exhaustive:
                row[clauses]["exhaustive"] = tuned(folder, kernel, given(clauses), nvcc, "es", options.keep)
        except (RuntimeError, StopIteration, OSError, KeyError) as problem:
            row["problem"] = f"{clauses or 'the comment alone'}: {problem}"
            break
    return row


def show(row, sets):
    if "problem" in row:
        said = repr(row["problem"][-160:])
    else:
        all_of = lambda found: f" ({found['exhaustive']['speedup']:.3f} of {found['exhaustive']['timed']})" if "exhaustive" in found else ""
        said = "  ".join(f"{row[clauses]['speedup']:6.3f}{all_of(row[clauses])} {row[clauses]['winner'][:34]:34}" for clauses in ["", *sets])
    print(f"{row['program'][:14]:14} {row['kernel'][:20]:20} {said}", flush=True)


def mean(rows, clauses):
    return math.exp(sum(math.log(row[clauses]["speedup"]) for row in rows) / len(rows)) if rows else 1.0


def main():
    options = arguments()
    own = kernels()
    folders = {kernel["program"]: options.hecbench / "src" / f"{kernel['program']}-cuda" for kernel in own}
    # A few have a shorter name there than their folder.
    own = [kernel for kernel in own if folders[kernel["program"]].is_dir()]
    folders = {kernel["program"]: folders[kernel["program"]] for kernel in own}
    if options.copy:
        flat = lambda where, names: [name for name in names if (Path(where) / name).is_dir() or (Path(where) / name).stat().st_size > 500_000]
        for folder in folders.values():
            shutil.copytree(folder, options.copy / "src" / folder.name, ignore=flat, dirs_exist_ok=True)
        return
    if options.programs:
        own = [kernel for kernel in own if kernel["program"] in options.programs]
    share, shares = options.share
    own = own[share - 1 :: shares]
    last = time.monotonic() + options.seconds
    facts, rows, left_out = machine.describe(os.environ["NVTUNE_NVCC"], KERNELS.parent), [], 0
    with tempfile.TemporaryDirectory() as shim, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        nvcc = Path(shim) / "nvcc"
        nvcc.symlink_to(Path(os.environ["NVTUNE_BINARY"]).resolve())
        begun = [pool.submit(every, folders[kernel["program"]], kernel, nvcc, last, options) for kernel in own]
        for done in concurrent.futures.as_completed(begun):
            row = done.result()
            left_out += row is None
            if row:
                rows.append(row)
                show(row, options.clauses)
                # After each: what is broken off keeps what it has.
                options.out.write_text(json.dumps({**facts, "kernels": rows}, indent=1))
    rows = [row for row in rows if "problem" not in row]
    print(f"{left_out} kernels were not begun in time")
    for clauses in ["", *options.clauses]:
        print(f"{len(rows)} kernels, {clauses or 'the comments as they are'}: {mean(rows, clauses):.3f}")


main()
