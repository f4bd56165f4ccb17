#!/usr/bin/env python3
"""Runs the long tests part by part, and keeps their outcomes in `tests/FULL.txt`.

In: names of parts (all without one), NVTUNE_NVCC, CARGO. Out: `tests/FULL.txt`, in which each part that ran has a new section;
status 1 if one failed. A part is a list of cargo's test filters; `rest` has every test that no other part has.
"""

import datetime
import os
import re
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
SUMMARY = REPOSITORY / "tests" / "FULL.txt"
LOGS = REPOSITORY / "build" / "full"
# Tests write what they found here (tests/support/summary.rs).
DETAILS = REPOSITORY / "build" / "test-full"

PARTS = {
    "conformance": ["conformance::"],
    "differential": ["drop_in::differential::"],
    "forms": ["drop_in::forms::"],
    "builds": ["drop_in::builds::", "drop_in::consumers::", "drop_in::compiler_caches::"],
    "races": ["drop_in::parallel::"],
    "locks": ["the_same_lock", "one_source_compiled_twice"],
    "kills": ["cache::", "faults::kills::"],
    "faults": ["faults::build", "faults::started", "faults::panics::"],
    "runners": ["end_to_end::runners::"],
    "packages": ["packages::"],
    "suite": ["suite::"],
    "fixtures": ["fixtures::"],
    "rest": [],
    "projects": ["drop_in::projects::"],
}
# Parts with a command besides cargo's tests.
COMMANDS = {"suite": [".ci/checks"]}

TITLE = "Outcomes of `make test-full`. A part that is run alone replaces its own section.\n"
HEAD = re.compile(r"^([a-z]+): (?:passed|FAILED), ", re.MULTILINE)
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed;", re.MULTILINE)


def commands(part):
    """Returns the command lines of a part."""
    test = [os.environ.get("CARGO", "cargo"), "test", "--locked", "--test", "main", "--", "--include-ignored"]
    filters = PARTS[part]
    if not filters:
        others = [name for names in PARTS.values() for name in names]
        filters = [word for name in others for word in ("--skip", name)]
    return [[command] for command in COMMANDS.get(part, [])] + [test + filters]


def run(part):
    """Runs a part; returns whether it passed, and its section."""
    for path in DETAILS.glob("*"):
        path.unlink()
    environment = {**os.environ, "NVTUNE_TEST_FULL": "1"}
    log = LOGS / f"{part}.log"
    begin = time.monotonic()
    passed = True
    with log.open("w") as output:
        for command in commands(part):
            ran = subprocess.run(command, cwd=REPOSITORY, env=environment, stdout=output, stderr=subprocess.STDOUT)
            passed = passed and ran.returncode == 0
    seconds = time.monotonic() - begin
    counts = [tuple(map(int, found)) for found in RESULT.findall(log.read_text(errors="replace"))]
    tests = sum(good + bad for good, bad in counts)
    # A filter that no test has any more is a part that tests nothing.
    passed = passed and tests > 0
    word = "passed" if passed else "FAILED"
    count = "1 test" if tests == 1 else f"{tests} tests"
    section = f"{part}: {word}, {count} in {seconds:.0f} s ({datetime.date.today()}, nvcc {toolkit()})\n"
    for path in sorted(DETAILS.glob("*")):
        section += "".join(f"  {line}\n" for line in path.read_text().rstrip().split("\n"))
    if not passed:
        sys.stderr.write(log.read_text(errors="replace"))
    print(section, end="", flush=True)
    return passed, section


def toolkit():
    """Returns nvcc's full version."""
    said = subprocess.run([os.environ["NVTUNE_NVCC"], "--version"], capture_output=True, text=True, check=True).stdout
    return re.search(r", V([\d.]+)", said)[1]


def sections(text):
    """Returns the sections of a summary by part."""
    heads = list(HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: text[head.start() : end].rstrip() + "\n" for head, end in zip(heads, ends)}


def main(names):
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        sys.exit(f"full.py: no part {unknown[0]}; the parts are {' '.join(PARTS)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    kept = sections(SUMMARY.read_text()) if SUMMARY.exists() else {}
    # So that no part's time has the build in it.
    cargo = os.environ.get("CARGO", "cargo")
    subprocess.run([cargo, "test", "--locked", "--test", "main", "--no-run"], cwd=REPOSITORY, check=True)
    failed = []
    # Without a folder of projects their old outcome stays.
    everything = [part for part in PARTS if part != "projects" or "NVTUNE_PROJECTS" in os.environ]
    for part in names or everything:
        passed, kept[part] = run(part)
        failed += [] if passed else [part]
        # After each: a run that is broken off keeps what it has.
        SUMMARY.write_text("\n".join([TITLE] + [kept[name] for name in PARTS if name in kept]))
    if failed:
        sys.exit(f"full.py: failed: {' '.join(failed)}")


main(sys.argv[1:])
