#!/usr/bin/env python3
"""Times the suite on this machine's GPU: built by plain nvcc, built by nvtune, and the whole space of each kernel.

In: the suite's programs, an nvcc (found as `.ci/toolkit.py` finds it), nvtune (NVTUNE_BINARY, else built with cargo).
Out, in results/<gpu>/: NAME.json for each kernel, NAME.json.gz (the whole space, by `nvtune-eval record`), suite.json with the
table, which is also printed last.
Invariant: both builds have the same words on their command lines; plain and tuned program run in turns, so that a
drift of the clocks falls on both; every file appears whole; a failure of one kernel leaves the others' results.
"""

import argparse
import gzip
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
BUILD_LIMIT, PROGRAM_LIMIT = 600, 120


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


def add_suite_options(parser, out):
    """The options of a script that builds and times programs of the suite, with `out` as the default of --out."""
    parser.add_argument("kernels", nargs="*", default=SUITE)
    parser.add_argument("--out", type=Path, default=Path(out))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repetitions", default="15")
    parser.add_argument("--architecture", default="sm_90")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no kernel after this many seconds")


def collect(names, row_of, line_of, nvcc, out, seconds):
    """Rows of programs, written to `out` after each: `row_of(name)` gives one, `line_of(row)` what is printed of it. None is started
    after so many seconds; one that fails has a row with its failure."""
    started, rows = time.monotonic(), []
    for name in names:
        if time.monotonic() - started > seconds:
            break
        try:
            rows.append(row_of(name))
            print(f"{name:20} {line_of(rows[-1])}", flush=True)
        except Failure as why:
            rows.append({"kernel": name, "failure": str(why)})
            print(f"{name:20} {str(why)[-1500:]}", flush=True)
        write_json(out.absolute(), {"machine": machine.describe(nvcc, REPOSITORY), "rows": rows})
    return rows


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
            # What was timed earlier is not what is judged here.
            NVTUNE_CACHE_SIZE="0",
            NVTUNE_LOCK=str(work / "none.lock"),
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
            "decision": decision(folder / f"{name}.tune.json", name),
        }


def decision(path, name):
    """What nvtune decided for a kernel: the winner, how many points it timed, how long that took. None of a plain build."""
    if not path.exists():
        return None
    kernel = next((kernel for kernel in json.loads(path.read_text())["kernels"] if kernel["name"] == name), None)
    if kernel is None:
        return None
    return {
        "provenance": kernel["provenance"],
        "winner": kernel["configurations"][kernel["winner"]],
        "points_timed": kernel["timed"],
        # What it waited for others is part of what it measured.
        "seconds": sum(kernel["seconds"].values()) - 2 * kernel["seconds"].get("waited", 0),
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


def memory_check(tools, program):
    """What compute-sanitizer's memcheck finds in one launch of a program; None where the toolkit has no compute-sanitizer."""
    sanitizer = tools.nvcc.parent / "compute-sanitizer"
    if not toolkit.is_executable(sanitizer):
        return None
    try:
        run([sanitizer, "--error-exitcode", "9", program, "--repetitions", "1"], PROGRAM_LIMIT)
    except Failure as why:
        return str(why)
    return "clean"


def record_spaces(tools, options):
    """Times the whole space of each kernel that has no record yet: `nvtune-eval record`, which tells of its progress itself."""
    words = ["record", *(within(KERNELS / name / f"{name}.cu") for name in options.kernels)]
    words += ["--results", within(options.results.absolute()), "--budget", options.budget]
    if options.limit is not None:
        words += ["--limit", options.limit]
    words += ["--", *tools.flags]
    command = [str(word) for word in (binary("nvtune-eval"), *words)]
    return subprocess.run(command, cwd=REPOSITORY, env=tools.tuned_environment).returncode


def space_facts(path, chosen):
    """What a recorded space says of itself, and of the winner that the build chose."""
    try:
        space = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError) as why:
        raise Failure(f"there is no record of the whole space: {why}") from None
    configurations = space["configurations"]

    def microseconds(configuration):
        time = configuration["time"]
        if "mean_us" in time:
            return time["mean_us"]
        return (time["median_us"] + time.get("again_us", time["median_us"])) / 2

    timed = [configuration for configuration in configurations if "time" in configuration]
    best = min(timed, key=microseconds)
    # Configurations with the same code and launch are one point, and only its first is timed.
    key = ("block", "cap", "grid", "macros", "cache", "carveout", "math", "exact_block", "coarsening")
    chosen = next((c for c in configurations if all(c.get(k) == chosen.get(k) for k in key)), {}) if chosen else {}
    winner = next((c for c in timed if (c["variant"], c["launch"]) == (chosen.get("variant"), chosen.get("launch"))), None)
    facts = {
        "size": space["size"],
        "timed": len(timed),
        "baseline_us": microseconds(configurations[space["baseline"]]),
        "best": best,
        "best_us": microseconds(best),
    }
    if winner is not None:
        facts["winner_us"] = microseconds(winner)
        facts["regret"] = facts["winner_us"] / facts["best_us"] - 1
    return facts


def measure(tools, name, options):
    """All that is measured of one kernel's programs. What fails is named in `failures`; the rest is there."""
    result = {"kernel": name, "failures": []}
    try:
        plain, result["plain_build"] = tools.build(name, tuned=False)
        tuned, result["nvtune_build"] = tools.build(name, tuned=True)
        result["programs"] = compare_programs(plain, tuned, options.rounds, options.repetitions)
        for which, path in (("plain", plain), ("nvtune", tuned)):
            program = result["programs"][which]
            program["memcheck"] = memory_check(tools, path)
            if program["check"] != "ok":
                result["failures"].append(f"the {which} program computes wrong results")
            if program["memcheck"] not in (None, "clean"):
                result["failures"].append(f"the {which} program: {program['memcheck']}")
    except Failure as why:
        result["failures"].append(str(why))
    return result


def add_space(result, folder):
    decided = result.get("nvtune_build", {}).get("decision") or {}
    try:
        result["space"] = space_facts(folder / f"{result['kernel']}.json.gz", decided.get("winner"))
    except Failure as why:
        result["failures"].append(str(why))


# ---- the table -------------------------------------------------------------------------------------------------


def ratio(numerator, denominator):
    return numerator / denominator if numerator and denominator else None


def cells(result):
    """One line of the table; what was not measured is a dash."""
    space, programs = result.get("space", {}), result.get("programs", {})
    decided = result.get("nvtune_build", {}).get("decision") or {}
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
        show(decided.get("points_timed"), "d"),
        show(space.get("size", {}).get("points"), "d"),
        show(decided.get("seconds"), ".1f"),
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


def binary(name):
    """NVTUNE_BINARY for `nvtune` (NVTUNE_EVAL_BINARY for `nvtune-eval`), else what cargo builds."""
    variable = name.upper().replace("-", "_") + "_BINARY"
    named = os.environ.get(variable)
    if named:
        path = Path(named).absolute()
        if not toolkit.is_executable(path):
            raise Failure(f"{variable} names {named}, which is no program")
        return path
    if not shutil.which("cargo"):
        raise Failure(f"no cargo to build {name} with: set {variable} to a built one")
    if subprocess.run(["cargo", "build", "--release", "--quiet", "-p", name], cwd=REPOSITORY).returncode != 0:
        raise Failure(f"cargo could not build {name}")
    return REPOSITORY / os.environ.get("CARGO_TARGET_DIR", "target") / "release" / name


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", default=",".join(SUITE), help="names, with commas (default: all)")
    parser.add_argument("--rounds", type=int, default=6, help="turns of plain and tuned program (default 6)")
    parser.add_argument("--repetitions", type=int, default=50, help="timed launches in a turn (default 50)")
    parser.add_argument("--budget", type=float, default=60, help="GPU seconds for the whole space of a kernel (default 60)")
    parser.add_argument("--limit", type=float, help="seconds after which no further space is begun")
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
        nvcc, nvtune = toolkit.nvcc_path(), binary("nvtune")
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
        result = measure(tools, name, options)
        # At once: the programs' times are kept should the run be ended.
        write_json(folder / f"{name}.json", {"machine": facts, **result})
        results.append(result)
    if not options.no_exhaustive:
        record_spaces(tools, options)
        for result in results:
            add_space(result, folder)
            write_json(folder / f"{result['kernel']}.json", {"machine": facts, **result})
    for result in results:
        for failure in result["failures"]:
            print(f"bench: {result['kernel']}: {failure}", file=sys.stderr, flush=True)
    lines = list(table(results))
    write_json(folder / "suite.json", {"machine": facts, "kernels": results, "table": lines})
    print(f"{facts['gpu']}, driver {facts['driver']}, nvcc {facts['toolkit']}, records in {within(folder.absolute())}\n")
    print("\n".join(lines))
    return 1 if any(result["failures"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
