#!/usr/bin/env python3
"""Times the suite on this machine's GPU: built by plain nvcc, built by nvtune, and the whole space of each kernel.

In: the suite's programs, an nvcc (found as `.ci/toolkit.py` finds it), nvtune (NVTUNE_BINARY, else built with cargo).
Out, in results/<gpu>/: NAME.json for each kernel, NAME.space.json (nvtune's record of the whole space), suite.json with
the table, which is also printed last.
Always holds: both builds have the same words on their command lines; plain and tuned program run in turns, so that a
drift of the clocks falls on both; every file appears whole; a failure of one kernel leaves the others' results.
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
sys.path.insert(0, str(REPOSITORY / ".ci"))

import machine  # noqa: E402
import toolkit  # noqa: E402

SUITE = tuple(sorted(path.parent.name for path in KERNELS.glob("*/*.cu") if path.stem == path.parent.name))
# Seconds after which a step counts as hung.
BUILD_LIMIT, PROGRAM_LIMIT, EXHAUSTIVE_LIMIT = 600, 120, 1800


class Failure(Exception):
    """A step that did not do what it should, in words for the reader of the table."""


def run(command, limit, environment=None, statuses=(0,)):
    """Runs a command in the repository's root and gives (stdout, stderr, seconds)."""
    started = time.monotonic()
    try:
        done = subprocess.run(
            [str(word) for word in command],
            cwd=REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        raise Failure(f"{Path(command[0]).name} took more than {limit} s") from None
    except OSError as why:
        raise Failure(f"{command[0]}: {why.strerror}") from None
    seconds = time.monotonic() - started
    if done.returncode not in statuses:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise Failure(f"{Path(command[0]).name} exited {done.returncode}: {last}")
    return done.stdout, done.stderr, seconds


def within(path):
    """A path as seen from the repository's root, so that commands and records read the same on every machine."""
    return path.relative_to(REPOSITORY) if path.is_relative_to(REPOSITORY) else path


def messages(said):
    return [line.replace(f"{REPOSITORY}/", "") for line in said.splitlines()]


def write_json(path, value, indent=2):
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".json.new")
    aside.write_text(json.dumps(value, indent=indent, sort_keys=True) + "\n")
    aside.replace(path)


# ---- what is compared ------------------------------------------------------------------------------------------


class Tools:
    """The two compilers, each with its environment, and the words that both get."""

    def __init__(self, nvcc, nvtune, work, architecture):
        self.nvcc, self.nvtune, self.work = nvcc, nvtune, work
        self.flags = ["-O3", f"-arch={architecture}"]
        # A toolkit that was put together from packages may keep its libraries where nvcc does not look.
        root = nvcc.parent.parent
        bare = not (root / "lib64").exists() and (root / "lib" / "libcudart_static.a").exists()
        self.link_flags = [f"-L{root / 'lib'}"] if bare else []
        shims = work / "shims"
        shims.mkdir(parents=True)
        (shims / "nvcc").symlink_to(nvtune)
        self.plain_environment = dict(os.environ)
        self.tuned_environment = dict(
            os.environ,
            NVTUNE="measure",
            PATH=f"{shims}{os.pathsep}{os.environ.get('PATH', '')}",
            NVTUNE_NVCC=str(nvcc),
        )
        self.shim = shims / "nvcc"

    def build(self, name, tuned):
        """Builds a program as its user would; gives its path and what the compile said and took."""
        folder = self.work / name / ("nvtune" if tuned else "plain")
        folder.mkdir(parents=True, exist_ok=True)
        compiler = self.shim if tuned else self.nvcc
        environment = self.tuned_environment if tuned else self.plain_environment
        source, target, program = KERNELS / name / f"{name}.cu", folder / f"{name}.o", folder / name
        words = [*self.flags, "-c", within(source), "-o", within(target)]
        _, said, seconds = run([compiler, *words], BUILD_LIMIT, environment)
        run([compiler, *self.flags, target, *self.link_flags, "-o", program], BUILD_LIMIT, environment)
        header = folder / f"{name}.tune.h"
        return program, {
            "command": ["nvcc", *(str(word) for word in words)],
            "seconds": seconds,
            "messages": messages(said),
            "header": header.read_text() if header.exists() else None,
        }


def run_program(program, *options):
    """The JSON line of one run of a program of the suite; a failed check is a result, not an error."""
    stdout, _, _ = run([program, "--json", *options], PROGRAM_LIMIT, statuses=(0, 1))
    for line in reversed(stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise Failure(f"{program.name} printed no JSON")


def compare_programs(plain, tuned, rounds, repetitions):
    """Checks both programs, then times them in turns; medians over the rounds of each run's median."""
    checked = {"plain": run_program(plain, "--check"), "nvtune": run_program(tuned, "--check")}
    samples = {"plain": [], "nvtune": []}
    for turn in range(rounds):
        pair = [("plain", plain), ("nvtune", tuned)]
        for which, program in pair if turn % 2 == 0 else reversed(pair):
            samples[which].append(run_program(program, "--repetitions", repetitions)["time_us"]["median"])
    return {
        which: {
            "launch": {key: checked[which][key] for key in ("grid", "block", "shared", "registers", "header")},
            "check": checked[which]["check"],
            "samples_us": samples[which],
            "median_us": statistics.median(samples[which]),
        }
        for which in samples
    }


def exhaustive(tools, name):
    """Tunes the kernel and times its whole space in one measuring process: `nvtune bench`.

    Gives its record as it is, and what the table shows of it. The one place that knows that command and its fields.
    """
    folder = tools.work / name / "space"
    folder.mkdir(parents=True, exist_ok=True)
    words = [*tools.flags, "-c", within(KERNELS / name / f"{name}.cu"), "-o", within(folder / f"{name}.o")]
    _, said, seconds = run([tools.nvtune, "bench", tools.nvcc, *words], EXHAUSTIVE_LIMIT, tools.tuned_environment)
    try:
        whole = json.loads((folder / f"{name}.tune.json").read_text())
    except (OSError, ValueError) as why:
        raise Failure(f"nvtune bench wrote no record: {why}") from None
    kernel = next((kernel for kernel in whole["kernels"] if kernel["name"] == name), None)
    if kernel is None or not kernel.get("truth"):
        raise Failure(f"the record of nvtune bench says nothing of the whole space of {name}: {' '.join(messages(said))}")
    truth, configurations = kernel["truth"], kernel["configurations"]
    summary = {
        **truth,
        **{index: configurations[kernel[index]] for index in ("baseline", "winner")},
        "best": configurations[truth["best"]],
        "points_timed": kernel["timed"],
        "points": kernel["points"],
        "seconds": sum(kernel["seconds"].values()),
        "exhaustive_points": truth["timed"],
        "exhaustive_seconds": truth["seconds"],
        "command_seconds": seconds,
        "messages": messages(said),
    }
    return whole, summary


def measure(tools, name, options, folder):
    """All that is measured of one kernel. What fails is named in `failures`; the rest is there."""
    result = {"kernel": name, "failures": []}
    try:
        plain, result["plain_build"] = tools.build(name, tuned=False)
        tuned, result["nvtune_build"] = tools.build(name, tuned=True)
        result["programs"] = compare_programs(plain, tuned, options.rounds, options.repetitions)
        for which, program in result["programs"].items():
            if program["check"] != "ok":
                result["failures"].append(f"the {which} program computes wrong results")
    except Failure as why:
        result["failures"].append(str(why))
    if not options.no_exhaustive:
        try:
            record, result["space"] = exhaustive(tools, name)
            # A space has hundreds of configurations: a line each would be most of the repository.
            write_json(folder / f"{name}.space.json", record, indent=None)
        except Failure as why:
            result["failures"].append(str(why))
    return result


# ---- the table -------------------------------------------------------------------------------------------------


def ratio(numerator, denominator):
    return numerator / denominator if numerator and denominator else None


def cells(result):
    """One line of the table; what was not measured is a dash."""
    space, programs = result.get("space", {}), result.get("programs", {})
    plain, tuned = (programs.get(which, {}) for which in ("plain", "nvtune"))
    checks = "/".join(program.get("check", "-") for program in (plain, tuned))

    def show(value, form):
        return "-" if value is None else format(value, form)

    regret = space.get("regret")
    return (
        result["kernel"],
        show(space.get("baseline_us"), ".1f"),
        show(space.get("winner_us"), ".1f"),
        show(space.get("best_us"), ".1f"),
        show(ratio(space.get("baseline_us"), space.get("winner_us")), ".3f"),
        show(None if regret is None else 100 * regret, ".2f"),
        show(space.get("points_timed"), "d"),
        show(space.get("points"), "d"),
        show(space.get("seconds"), ".1f"),
        show(plain.get("median_us"), ".1f"),
        show(tuned.get("median_us"), ".1f"),
        show(ratio(plain.get("median_us"), tuned.get("median_us")), ".3f"),
        checks,
    )


HEADINGS = (
    ("", "kernel"),
    ("baseline", "us"),
    ("winner", "us"),
    ("best of", "ES us"),
    ("speed-", "up"),
    ("regret", "%"),
    ("points", "timed"),
    ("in the", "space"),
    ("tuning", "s"),
    ("program", "plain us"),
    ("program", "nvtune us"),
    ("speed-", "up"),
    ("checks", "plain/nvtune"),
)


def table(results):
    lines = [tuple(heading[row] for heading in HEADINGS) for row in (0, 1)] + [cells(result) for result in results]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    for line in lines:
        first, rest = line[0].ljust(widths[0]), (cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))
        yield "  ".join([first, *rest]).rstrip()


# ---- the program -----------------------------------------------------------------------------------------------


def nvtune_binary():
    """NVTUNE_BINARY, else what cargo builds."""
    named = os.environ.get("NVTUNE_BINARY")
    if named:
        path = Path(named).absolute()
        if not toolkit.is_executable(path):
            raise Failure(f"NVTUNE_BINARY names {named}, which is no program")
        return path
    if not shutil.which("cargo"):
        raise Failure("no cargo to build nvtune with: set NVTUNE_BINARY to a built one")
    if subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=REPOSITORY).returncode != 0:
        raise Failure("cargo could not build nvtune")
    return REPOSITORY / os.environ.get("CARGO_TARGET_DIR", "target") / "release" / "nvtune"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", default=",".join(SUITE), help="names, with commas (default: all)")
    parser.add_argument("--rounds", type=int, default=6, help="turns of plain and tuned program (default 6)")
    parser.add_argument("--repetitions", type=int, default=50, help="timed launches in a turn (default 50)")
    parser.add_argument("--no-exhaustive", action="store_true", help="leave out timing the whole space")
    parser.add_argument("--results", type=Path, default=KERNELS / "results", help="folder for the records")
    parser.add_argument("--work", type=Path, default=REPOSITORY / "build" / "bench", help="folder to build in; emptied")
    options = parser.parse_args()
    options.kernels = [name for name in options.kernels.split(",") if name]
    unknown = [name for name in options.kernels if not (KERNELS / name / f"{name}.cu").is_file()]
    if unknown or not options.kernels:
        parser.error(f"no such kernel: {', '.join(unknown) or 'none named'}")
    if options.rounds < 1 or options.repetitions < 1:
        parser.error("--rounds and --repetitions take a number from 1")
    return options


def main():
    options = arguments()
    try:
        nvcc, nvtune = toolkit.nvcc_path(), nvtune_binary()
        facts = machine.describe(nvcc, REPOSITORY)
        architecture = machine.architecture(facts)
        if not architecture:
            raise Failure("no GPU found (nvidia-smi)")
    except (Failure, toolkit.Failure) as why:
        print(f"bench: {why}", file=sys.stderr)
        return 2
    shutil.rmtree(options.work, ignore_errors=True)
    tools = Tools(nvcc, nvtune, options.work.absolute(), architecture)
    folder = options.results / machine.folder(facts)
    results = []
    for name in options.kernels:
        print(f"bench: {name}", file=sys.stderr, flush=True)
        result = measure(tools, name, options, folder)
        for failure in result["failures"]:
            print(f"bench: {name}: {failure}", file=sys.stderr, flush=True)
        write_json(folder / f"{name}.json", {"machine": facts, **result})
        results.append(result)
    lines = list(table(results))
    write_json(folder / "suite.json", {"machine": facts, "kernels": results, "table": lines})
    print(f"{facts['gpu']}, driver {facts['driver']}, nvcc {facts['toolkit']}, records in {within(folder.absolute())}\n")
    print("\n".join(lines))
    return 1 if any(result["failures"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
