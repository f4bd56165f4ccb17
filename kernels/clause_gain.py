#!/usr/bin/env python3
"""Measures what a clause of the tuning comment gains: programs of the suite built by nvcc, by nvtune, and by nvtune with the
clause in every comment.

    NVTUNE_BINARY=target/release/nvtune NVTUNE_NVCC=... python3 kernels/clause_gain.py CLAUSE [NAME...] [--out FILE]

    kernels/clause_gain.py 'unroll(auto)' cp fdtd lbm
    kernels/clause_gain.py 'spill(shared)'

Without names: all programs. The three programs of a kernel run in turns, and a time is the median over them. Each tuned
program must pass its own check. The table goes to stdout and to FILE. Status 0 if each program was built and passed.
With `--static` nothing is run: the table has what nvtune compiles without a GPU (strategy es).
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path

import machine

KERNELS = Path(__file__).resolve().parent
SUITE = sorted(path.parent.name for path in KERNELS.glob("*/*.cu") if path.stem == path.parent.name)
TURNS = 7


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clause")
    parser.add_argument("names", nargs="*", metavar="NAME", help="these programs alone")
    parser.add_argument("--architecture", default="native")
    parser.add_argument("--static", action="store_true")
    parser.add_argument("--out", type=Path)
    return parser.parse_args()


def copy(name, folder, clause):
    """Copies a program and what it includes, with the clause in each comment, and returns the folder of the program."""
    shutil.copytree(KERNELS / "common", folder / "common", dirs_exist_ok=True)
    shutil.copytree(KERNELS / name, folder / name)
    source = folder / name / f"{name}.cu"
    lines, previous = [], ""
    for line in source.read_text().splitlines():
        # A comment is one block, or several lines.
        is_first = line.startswith("/*@tune") or line.startswith("//@tune ") and not previous.startswith("//@tune ")
        lines.append(line.replace("@tune", f"@tune {clause}", 1) if clause and is_first else line)
        previous = line
    source.write_text("\n".join(lines) + "\n")
    return folder / name


def build(name, folder, compiler, options, environment):
    """Builds a program; returns the line of each kernel that nvtune prints."""
    command = [*compiler, "-O3", *options, f"{name}.cu"]
    done = subprocess.run([*command, "-c", "-o", f"{name}.o"], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-800:]}")
    if environment["NVTUNE"] != "static":
        libraries = Path(environment["NVTUNE_NVCC"]).parent.parent / "lib"
        link = [environment["NVTUNE_NVCC"], *options, f"{name}.o", f"-L{libraries}", "-o", name]
        subprocess.run(link, cwd=folder, check=True)
    return [line for line in done.stderr.splitlines() if line.startswith("nvtune: ")]


def run(name, folder, *options):
    """The JSON line of one run of a program."""
    done = subprocess.run([f"./{name}", "--json", *options], cwd=folder, capture_output=True, text=True, timeout=120)
    return json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{")))


def compiled(name, folder):
    """What a record says of the space: points, distinct code, and code that spills without dynamic shared memory."""
    kernel = json.loads((folder / f"{name}.tune.json").read_text())["kernels"][0]
    rows = kernel["configurations"]
    factors = {(row.get("unroll"), row.get("variant")) for row in rows if row.get("variant") is not None}
    plain = {variant for factor, variant in factors if factor is None}
    own = sorted({factor for factor, variant in factors if factor is not None and variant not in plain})
    spilling = {variant for variant, code in enumerate(kernel["variants"]) if code["spills"]}
    spilled = sum(row.get("variant") in spilling and row["launch"]["shared"] == 0 for row in rows)
    return f"{len(rows):6} points, {len(kernel['variants']):4} variants, factors with code of their own {own}, {spilled} points may share spills"


def main():
    options = arguments()
    nvcc = os.environ.get("NVTUNE_NVCC") or shutil.which("nvcc")
    nvtune = [str(Path(os.environ.get("NVTUNE_BINARY", "target/release/nvtune")).resolve()), "nvcc"]
    flags = [f"-arch={options.architecture}"]
    lines = [f"What {options.clause} gains (kernels/clause_gain.py), {date.today()}", ""]
    failed = False
    with tempfile.TemporaryDirectory() as work:
        environment = dict(os.environ, NVTUNE_NVCC=nvcc, NVTUNE="static" if options.static else "measure", NVTUNE_CACHE_SIZE="0")
        if options.static:
            environment["NVTUNE_STRATEGY"] = "es"
        else:
            lines[0] += ", {gpu}, driver {driver}".format(**machine.gpu())
        for name in options.names or SUITE:
            try:
                work_of = lambda which: Path(work) / which
                tuned = copy(name, work_of("clause"), options.clause)
                said = build(name, tuned, nvtune, flags, environment)
                if options.static:
                    lines.append(f"{name:20} {compiled(name, tuned)}")
                    continue
                folders = {"plain": copy(name, work_of("plain"), None), "nvtune": copy(name, work_of("nvtune"), None), "clause": tuned}
                build(name, folders["plain"], [nvcc], flags, environment)
                without = build(name, folders["nvtune"], nvtune, flags, environment)
                for which in ("nvtune", "clause"):
                    if run(name, folders[which], "--check")["check"] != "ok":
                        raise RuntimeError(f"{name}: the check of {which} fails")
                samples = {which: [] for which in folders}
                for turn in range(TURNS):
                    for which in sorted(folders, reverse=turn % 2 == 1):
                        samples[which].append(run(name, folders[which])["time_us"]["median"])
                times = {which: statistics.median(of) for which, of in samples.items()}
                gains = [times["plain"] / times[which] for which in ("nvtune", "clause")]
                lines += [f"{name:20} without {gains[0]:.3f}x, with {gains[1]:.3f}x", *(f"  {line}" for line in without + said)]
            except (RuntimeError, OSError, ValueError, KeyError, StopIteration, subprocess.SubprocessError) as why:
                failed = True
                lines.append(f"{name:20} {why!r}")
            finally:
                print(lines[-1], file=sys.stderr, flush=True)
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if options.out:
        options.out.write_text(text)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
