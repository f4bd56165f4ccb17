#!/usr/bin/env python3
"""Whole programs of public projects, marked by comments alone, built by nvcc and by nvtune in its place, and watched by ncu.

In: kernels/programs.json or the list that --programs names (per program: its folder, source, the comments above its kernels,
what it prints when its own check passes) and the projects, each in a folder of its name (the suite's own are beside this file). Out: a JSON file with a row for
each kernel (block, grid, registers and time in both programs, the programs' own check), and a table on stdout; status 0 when
every program was built and passed.
Invariant: both programs are built from the same marked source with the same options; they run in turns, a program that
launches a kernel once in more of them; a row's time is the median over the launches of all turns, clocks and caches left alone.

    kernels/programs.py PROJECTS [--programs FILE] [--out FILE] [--only NAME...] [--turns N] [--copy FOLDER] [--clause CLAUSE]

`--clause` adds a clause to every comment, as in `--clause 'unroll(auto)'`. `--copy` only copies what the programs need of the projects into another folder.
"""

import argparse
import concurrent.futures
import csv
import io
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import machine

KERNELS = pathlib.Path(__file__).resolve().parent
METRICS = ["gpu__time_duration.sum", "launch__registers_per_thread"]
# Sources older than CUDA 13 call a function that is gone.
OPTIONS = ["-O3", "-DcudaThreadSynchronize=cudaDeviceSynchronize"]
# Launches of a kernel that are looked at in one run, and in all turns if three times as many are enough for it.
LAUNCHES = 12
LEAST = 15
# Programs that are built at once.
AT_ONCE = 6


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("projects", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path, default=KERNELS / "programs.json", metavar="FILE", help="the list of programs")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("programs.json"))
    parser.add_argument("--only", nargs="*", metavar="NAME", help="these programs alone")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--copy", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--clause", help="added to every comment")
    parser.add_argument("--nvcc", default=os.environ.get("NVTUNE_NVCC") or shutil.which("nvcc"))
    parser.add_argument("--nvtune", default=os.environ.get("NVTUNE_BINARY", "target/release/nvtune"))
    parser.add_argument("--ncu", default="ncu")
    return parser.parse_args()


def copy(program, projects, to):
    """What the program needs of its project: its folder, without what is below, and those that it includes from."""
    project = KERNELS if program["project"] == "the suite" else projects / program["project"]
    for folder in [program["folder"], *program.get("include", [])]:
        flat = lambda where, names: [name for name in names if (pathlib.Path(where) / name).is_dir()]
        shutil.copytree(project / folder, to / program["project"] / folder, ignore=flat, dirs_exist_ok=True)


def edited(source, edits):
    text = source.read_text(errors="surrogateescape")
    for gone, instead in edits.items():
        if gone not in text:
            raise SystemExit(f"{source}: has no {gone!r}")
        text = text.replace(gone, instead)
    return text


def mark(program, folder, clause=None):
    """Puts the comments above their kernels, and takes out what this toolkit does not know any more."""
    source = folder / program.get("in", program["source"])
    edits = program.get("edits", {})
    for name, inner in edits.items():
        # Those of another file stand under its name.
        if isinstance(inner, dict):
            other = folder / name
            other.write_text(edited(other, inner), errors="surrogateescape")
    text = edited(source, {gone: instead for gone, instead in edits.items() if isinstance(instead, str)})
    for kernel, comment in program["marks"].items():
        head = re.compile(rf"^(?:template\s*<[^>]*>\s*)?[^;{{}}\n]*__global__[^;{{}}]*?\b{kernel}\s*\([^;{{]*{{", re.MULTILINE)
        found = head.search(text)
        if not found:
            raise SystemExit(f"{source}: {kernel} is not defined there")
        # One of the suite has its comment already.
        lines = "".join(f"//@tune {line}\n" for line in [*comment, *([clause] if clause else [])])
        text = text[: found.start()] + lines + text[found.start() :]
    source.write_text(text, errors="surrogateescape")


def build(program, folder, compiler, output, options, environment):
    """Compiles and links as the project does, in one call for each source."""
    objects, said = [], []
    for source in [program["source"], *program.get("others", [])]:
        objects.append(f"{output}-{pathlib.Path(source).stem}.o")
        command = [compiler, *OPTIONS, *options, "-c", source, "-o", objects[-1]]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        said += [line for line in done.stderr.splitlines() if "nvtune" in line]
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr[-800:]}")
    subprocess.run([compiler, *options, *objects, "-o", output], cwd=folder, env=environment, check=True)
    return said


def passed(program, folder, binary):
    """Whether the program's own check passes; None where it has none."""
    done = subprocess.run([f"./{binary}", *program.get("arguments", [])], cwd=folder, capture_output=True, text=True, errors="replace", timeout=300, check=False)
    if "check" not in program:
        return None if done.returncode == 0 else False
    return done.returncode == 0 and re.search(program["check"], done.stdout + done.stderr, re.MULTILINE) is not None


def watch(program, folder, binary, ncu, count):
    """What ncu sees of the first `count` launches of the marked kernels, for each a list; the program is ended after them."""
    names = "|".join(program["marks"])
    # A winner's entry has the kernel's mangled name and a suffix; ncu shows it as it is.
    pattern = f"^({names})$|^[A-Za-z0-9_]*({names})[A-Za-z0-9_]*__nvtune_[0-9a-f]+$"
    command = [ncu, "--csv", "--print-units", "base", "--cache-control", "none", "--clock-control", "none"]
    command += ["--metrics", ",".join(METRICS), "--kernel-name", f"regex:{pattern}", "--launch-count", str(count), "--kill", "yes"]
    command += [f"./{binary}", *program.get("arguments", [])]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=300, check=False)
    lines = done.stdout.splitlines()
    head = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), None)
    if head is None:
        raise RuntimeError(f"ncu saw nothing of {binary}: {(done.stdout + done.stderr)[-800:]}")
    launches = {}
    for row in csv.DictReader(io.StringIO("\n".join(line for line in lines[head:] if line.startswith('"')))):
        launch = launches.setdefault(row["ID"], {"kernel": kernel_of(row["Kernel Name"], program["marks"])})
        launch["block"], launch["grid"] = (numbers(row[name]) for name in ("Block Size", "Grid Size"))
        launch[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    seen = {}
    for launch in launches.values():
        seen.setdefault(launch["kernel"], []).append(launch)
    return seen


def kernel_of(name, kernels):
    """The marked kernel that ncu shows under this name, which can be that of a winner's entry."""
    plain = re.split(r"[<(]", name.removeprefix("void "))[0]
    return plain if plain in kernels else max((kernel for kernel in kernels if kernel in plain), key=len)


def numbers(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def build_both(program, folder, options):
    """Builds one program by nvcc and by nvtune; their lines. Several are built at once: measuring takes turns by itself."""
    architecture = f"-arch={machine.architecture(machine.gpu())}"
    includes = [f"-I{os.path.relpath(folder.parents[len(pathlib.Path(program['folder']).parts) - 1] / path, folder)}" for path in program.get("include", [])]
    plain = {**os.environ, "NVTUNE": "off"}
    tuning = {**os.environ, "NVTUNE": "measure", "NVTUNE_NVCC": options.nvcc, "NVTUNE_LOCK": str(folder / "none.lock")}
    said = build(program, folder, options.nvcc, "plain", [architecture, *includes], plain)
    with tempfile.TemporaryDirectory() as shim:
        nvcc = pathlib.Path(shim) / "nvcc"
        nvcc.symlink_to(pathlib.Path(options.nvtune).resolve())
        return said + build(program, folder, str(nvcc), "tuned", [architecture, *includes], tuning)


def rows(program, folder, options):
    """Runs one program, built both ways; a row for each marked kernel."""
    checks = {binary: passed(program, folder, binary) for binary in ("plain", "tuned")}
    seen = {"plain": {}, "tuned": {}}
    turn, count = 0, LAUNCHES * len(program["marks"])
    while turn < options.turns or turn < 3 * options.turns and min(len(launches) for launches in seen["plain"].values()) < LEAST:
        for binary in ("plain", "tuned")[:: 1 if turn % 2 == 0 else -1]:
            for kernel, launches in watch(program, folder, binary, options.ncu, count).items():
                seen[binary].setdefault(kernel, []).extend(launches)
        # What there is to see comes first, and the program's check on the host need not be waited for again.
        count = min(count, sum(len(launches) for launches in seen["plain"].values()) // (turn + 1))
        turn += 1
    for kernel in program["marks"]:
        both = [seen[binary][kernel] for binary in ("plain", "tuned")]
        last = [launches[-1] for launches in both]
        us = [round(statistics.median(launch[METRICS[0]] for launch in launches) / 1e3, 3) for launches in both]
        yield {
            "project": program["project"],
            "program": program["program"],
            "kernel": kernel,
            "block": [launch["block"] for launch in last],
            "grid": [launch["grid"] for launch in last],
            "registers": [int(launch[METRICS[1]]) for launch in last],
            "us": us,
            "launches": [len(launches) for launches in both],
            "speedup": round(us[0] / us[1], 3),
            "check": "none" if checks["tuned"] is None else {True: "passed", False: "failed"}[checks["tuned"]],
            "plain_check": "none" if checks["plain"] is None else {True: "passed", False: "failed"}[checks["plain"]],
        }


def main():
    options = arguments()
    programs = [program for program in json.loads(options.programs.read_text()) if not options.only or program["program"] in options.only]
    if options.copy:
        for program in programs:
            copy(program, options.projects, options.copy)
        return 0
    found, failed = [], []
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        folders = []
        for number, program in enumerate(programs):
            work = pathlib.Path(temporary) / str(number)
            copy(program, options.projects, work)
            folders.append(work / program["project"] / program["folder"])
            mark(program, folders[-1], options.clause)
        builds = [pool.submit(build_both, program, folder, options) for program, folder in zip(programs, folders)]
        # Nothing else runs while programs are watched.
        concurrent.futures.wait(builds)
        for program, folder, lines in zip(programs, folders, builds):
            print(program["program"], flush=True)
            try:
                for line in lines.result():
                    print(f"  {line[:200]}")
                found.extend(rows(program, folder, options))
            except (RuntimeError, OSError, KeyError, subprocess.SubprocessError) as error:
                failed.append(program["program"])
                print(f"  failed: {error}")
            what = {**machine.describe(options.nvcc, KERNELS.parent), "turns": options.turns, "rows": found}
            options.out.write_text(json.dumps(what, indent=1) + "\n")
    for row in found:
        block = ["x".join(str(size) for size in block).removesuffix("x1").removesuffix("x1") for block in row["block"]]
        cells = [row["project"], row["program"], f"`{row['kernel']}`", *block, *(f"{us:.1f}" for us in row["us"]), f"{row['speedup']:.2f}", row["check"]]
        print(f"| {' | '.join(cells)} |")
    wrong = [row["program"] for row in found if row["check"] == "failed"]
    if failed or wrong:
        print(f"failed: {', '.join(failed + wrong)}", file=sys.stderr)
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
