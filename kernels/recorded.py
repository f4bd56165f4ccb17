#!/usr/bin/env python3
"""Tunes the suite on recorded launches: comments cut down to `//@tune` and macro axes, one run of each program, one build.

In: the suite's programs, an nvcc, nvtune (NVTUNE_BINARY, else built with cargo). Out: a JSON file (--out) with, for each kernel,
the shortened comment, the winner with it and with the whole comment, and the time of both programs; the same as a table on stdout.
Invariant: of a comment stay `define`, `require`, `template`, `name`, `launch`, the defaults of macros, and of `threads`, `grid`
and `shared` those that name a macro, which no recording of one build can tell. The two programs run in turns.
"""

import argparse
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import bench

KEPT = ("define", "require", "template", "name", "launch")
OF_LAUNCH = ("threads", "grid", "shared")


def clauses(text):
    """The clauses of a comment's text: name and what stands in its parentheses."""
    at, found = 0, []
    while match := re.compile(r"([a-z]+)\s*\(").search(text, at):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.append((match.group(1), text[match.end() : end - 1]))
        at = end
    return found


def items(text):
    """The pieces between commas that are in no bracket."""
    depth, pieces = 0, [""]
    for letter in text:
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += letter
    return [piece.strip() for piece in pieces if piece.strip()]


def shortened(comment):
    """The comment that leaves the rest to the recording."""
    body = re.sub(r"^\s*(//@tune|/\*@tune|\*/|\*)", "", comment, flags=re.M)
    body = re.sub(r"//.*", "", body).replace("*/", "")
    given = clauses(body)
    macros = [piece.split("=")[0].strip() for name, text in given if name == "define" for piece in items(text)]
    kept = []
    for name, text in given:
        of_macro = any(re.search(rf"\b{macro}\b", text) for macro in macros)
        if name in KEPT or (name in OF_LAUNCH and of_macro):
            kept.append(f"{name}({' '.join(text.split())})")
        elif name == "default":
            own = [piece for piece in items(text) if piece.split("=")[0].strip() in macros]
            kept += [f"default({', '.join(own)})"] if own else []
    return " ".join(["//@tune", *kept])


def without_workload(source):
    """A source with its comments shortened, and these."""
    comment = re.compile(r"^/\*@tune.*?\*/\n|(?:^//@tune[^\n]*\n)+", re.M | re.S)
    found = [shortened(match.group(0)) for match in comment.finditer(source)]
    return comment.sub(lambda match: shortened(match.group(0)) + "\n", source), found


def build(tools, folder, name, mode):
    """Builds a program in its folder; gives the program, what was said, seconds and the winner."""
    environment = dict(tools.tuned_environment, NVTUNE=mode)
    source, target, program = folder / name / f"{name}.cu", folder / f"{name}.o", folder / f"{name}-{mode}"
    _, said, seconds = bench.run([tools.shim, *tools.flags, "-c", source, "-o", target], bench.BUILD_LIMIT, environment)
    bench.run([tools.shim, *tools.flags, target, *tools.link_flags, "-o", program], bench.BUILD_LIMIT, environment)
    return program, bench.messages(said), seconds, bench.decision(folder / f"{name}.tune.json", name)


def sources(work, name, text):
    """A copy of a program's folder with this source, and of what it includes."""
    shutil.copytree(bench.KERNELS / name, work / name)
    shutil.copytree(bench.KERNELS / "common", work / "common")
    (work / name / f"{name}.cu").write_text(text)
    return work


def tune(tools, work, name, rounds, repetitions):
    """One row: the kernel tuned by its whole comment and by what its program recorded."""
    source = (bench.KERNELS / name / f"{name}.cu").read_text()
    short, comments = without_workload(source)
    given = sources(work / "given" / name, name, source)
    recorded = sources(work / "recorded" / name, name, short)
    row = {"kernel": name, "comments": comments}
    program, row["given_messages"], row["given_s"], by_comment = build(tools, given, name, "measure")
    capturing, row["capture_messages"], row["capture_s"], _ = build(tools, recorded, name, "capture")
    started = time.monotonic()
    bench.run([capturing, "--repetitions", "1"], bench.PROGRAM_LIMIT)
    row["run_s"] = time.monotonic() - started
    row["recorded_mib"] = sum(path.stat().st_size for path in recorded.rglob("*.launch")) / 2**20
    again, row["recorded_messages"], row["recorded_s"], by_recording = build(tools, recorded, name, "measure")
    for key, decision in (("given", by_comment), ("recorded", by_recording)):
        row[key] = decision and decision["winner"]
    row["check"] = [bench.run_program(which, "--check")["check"] for which in (program, again)]
    samples = ([], [])
    for turn in range(rounds):
        pair = [(0, program), (1, again)]
        for which, run in pair if turn % 2 == 0 else reversed(pair):
            samples[which].append(bench.run_program(run, "--repetitions", repetitions)["time_us"]["median"])
    row["given_us"], row["recorded_us"] = map(statistics.median, samples)
    row["ratio"] = row["recorded_us"] / row["given_us"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    bench.add_suite_options(parser, "recorded.json")
    options = parser.parse_args()
    nvcc = Path(os.environ.get("NVTUNE_NVCC") or shutil.which("nvcc")).absolute()

    def line_of(row):
        return (
            f"{row['ratio']:.3f} {row['given_us']:10.2f} {row['recorded_us']:10.2f} us  {row['recorded_s']:.1f} s"
            f"  {row['recorded_mib']:.0f} MiB  {row['check']}"
        )

    with tempfile.TemporaryDirectory() as folder:
        tools = bench.Tools(nvcc, Path(bench.binary("nvtune")).absolute(), Path(folder), options.architecture)

        def row_of(name):
            try:
                return tune(tools, Path(folder), name, options.rounds, options.repetitions)
            finally:
                shutil.rmtree(Path(folder) / "recorded", ignore_errors=True)

        rows = bench.collect(options.kernels, row_of, line_of, nvcc, options.out, options.seconds)
    timed = [row for row in rows if "ratio" in row]
    within = sum(row["ratio"] <= 1.01 for row in timed)
    print(f"{within} of {len(rows)} within 1% of the winner by the whole comment")
    return 0 if len(timed) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
