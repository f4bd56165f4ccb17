#!/usr/bin/env python3
"""Holds the model's dynamic instruction counts against what NVIDIA's profiler (ncu) counts on this GPU.

In: the suite's recorded spaces in kernels/results/GPU/, the test program `gpu` (GPU_TEST_BINARY) that launches a record's
baseline on the workload it was timed on, and an nvtune-eval (NVTUNE_EVAL_BINARY) that prints the model's counts. Out:
kernels/results/GPU/ncu.json, and a table on stdout; status 0 when every kernel was counted.
Invariant: what ncu counts is `smsp__inst_executed.sum`, the warp instructions of one launch; a kernel that fails
leaves the others' rows.

    kernels/ncu.py [--results FOLDER] [--out FILE] [--only NAME...]

`--compare FILE` prints the table anew, with this nvtune's counts in place of those in the file; it needs no GPU.
"""

import argparse
import concurrent.futures
import csv
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile

METRIC = "smsp__inst_executed.sum"
# What the counts of a kernel may differ by: where all control depends on sizes and indices, and where it depends on data.
PLAIN, DATA = 0.01, 0.10
# Kernels whose branches or loops depend on what is in their buffers, or on what they compute of it.
BY_DATA = {"cfd", "hash_lookup", "marching_cubes", "particles", "pns", "radix_pass", "rc5", "rpes", "spmv", "tpacf"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("kernels/results/h200"))
    parser.add_argument("--out", type=pathlib.Path, help="the file to write (default: ncu.json in that folder)")
    parser.add_argument("--compare", type=pathlib.Path, metavar="FILE", help="compare with what was counted before")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="these kernels alone")
    parser.add_argument("--ncu", default="ncu")
    return parser.parse_args()


def predicted(records):
    """What the model says, by kernel."""
    program = os.environ.get("NVTUNE_EVAL_BINARY", "target/release/nvtune-eval")
    said = subprocess.run([program, "judge", "--instructions", *records], stdout=subprocess.PIPE, text=True, check=True)
    return {found["kernel"]: found for found in map(json.loads, said.stdout.splitlines())}


def column(ncu, report, name, *options):
    """One column of a page of a report; ncu prints rows of its own before the header."""
    told = subprocess.run([ncu, "--import", report, "--csv", *options], capture_output=True, text=True, check=True)
    rows = list(csv.reader(io.StringIO(told.stdout)))
    return below(rows, name)


def below(rows, name):
    """What stands below the header of this name."""
    header = next(at for at, row in enumerate(rows) if name in row)
    place = rows[header].index(name)
    return [row[place] for row in rows[header + 1 :] if len(row) > place]


def number(text):
    return float(text.replace(",", ""))


def counted(ncu, program, record, symbol, folder):
    """Profiles the first launch of the baseline: its warp instructions, and those of each SASS instruction in order."""
    report = os.path.join(folder, f"{symbol}.ncu-rep")
    command = [ncu, "--target-processes", "all", "--metrics", METRIC, "--section", "SourceCounters"]
    command += ["--kernel-name-base", "mangled", "--kernel-name", symbol, "--launch-count", "1", "-f", "-o", report]
    try:
        ran = subprocess.run(command + [program, "replay", record], capture_output=True, text=True, timeout=60)
        total = number(column(ncu, report, METRIC, "--page", "raw")[-1])
    except (OSError, subprocess.SubprocessError, StopIteration, ValueError, IndexError) as error:
        said = (ran.stdout + ran.stderr)[-400:] if "ran" in locals() else ""
        return {"problem": f"{error!r} {said}"}
    each = []
    try:
        found = column(ncu, report, "Instructions Executed", "--page", "source", "--print-source", "sass")
        each = [int(number(text)) for text in found]
    except (subprocess.SubprocessError, StopIteration, ValueError) as error:
        print(f"{symbol}: no counts by instruction: {error!r}", file=sys.stderr)
    return {"counted": total, "each": each}


def worst(model, each):
    """The block whose count differs most from the model's, in instructions of the whole grid, and both counts for a warp."""
    found = []
    for block in model["blocks"]:
        first = block["offset"] // 16
        real = each[first : first + block["instructions"]]
        if real:
            # The first instruction of a block is executed by every warp that comes there.
            real_count, said = real[0] / model["warps"], block["count"]
            gap = abs(real_count - said) * len(real)
            found.append((gap, {"offset": block["offset"], "instructions": len(real), "model": said, "counted": real_count}))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def table(rows):
    """Markdown."""
    print("| kernel | control | model | ncu | model / ncu - 1 | within |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows:
        if "problem" in row:
            print(f"| {row['kernel']} | | | | {row['problem'].splitlines()[0][:60]} | no |")
            continue
        within = "yes" if row["within"] else "**no**"
        print(f"| {row['kernel']} | {row['control']} | {row['model']:.6g} | {row['counted']:.6g} | {row['error']:+.2%} | {within} |")
    good = sum(row.get("within", False) for row in rows)
    print(f"\n{good} of {len(rows)} kernels within {PLAIN:.0%} (plain control) or {DATA:.0%} (control by data)")


def written(version, rows):
    """JSON, a line for each kernel."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    return f'{{"metric": "{METRIC}", "ncu": "{version}", "kernels": [\n{lines}\n]}}\n'


def compared(model, found):
    """One row."""
    row = {"kernel": model["kernel"], "control": "data" if model["kernel"] in BY_DATA else "plain", **found}
    if "counted" in found:
        row["model"] = model["instructions"]
        row["error"] = row["model"] / found["counted"] - 1
        row["within"] = abs(row["error"]) <= (DATA if row["control"] == "data" else PLAIN)
        row["worst"] = worst(model, found["each"])
    return row


def main():
    options = arguments()
    records = sorted(str(path) for path in options.results.glob("*.json.gz"))
    names = [pathlib.Path(record).name.removesuffix(".json.gz") for record in records]
    records = {name: record for name, record in zip(names, records) if not options.only or name in options.only}
    models = predicted(list(records.values()))
    if options.compare:
        before = json.loads(options.compare.read_text())
        kept = {row["kernel"]: {key: row[key] for key in ("counted", "each", "problem") if key in row} for row in before["kernels"]}
        table([compared(model, kept[name]) for name, model in sorted(models.items()) if name in kept])
        return 0
    program = os.path.abspath(os.environ["GPU_TEST_BINARY"])
    rows = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(4) as pool:
        # One kernel is profiled at a time, whoever asks; starting and reading go on beside that.
        jobs = {name: pool.submit(counted, options.ncu, program, records[name], models[name]["symbol"], folder) for name in models}
        for name in sorted(jobs):
            rows.append(compared(models[name], jobs[name].result()))
    version = subprocess.run([options.ncu, "--version"], capture_output=True, text=True, check=True).stdout
    out = options.out or options.results / "ncu.json"
    out.write_text(written(version.strip().splitlines()[-1], rows))
    table(rows)
    return 0 if all("problem" not in row for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
