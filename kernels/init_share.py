#!/usr/bin/env python3
"""Counts the kernels of projects that `nvtune init` proposes a comment for.

    kernels/init_share.py NAME=FOLDER...

Runs `nvtune init` on the files below each folder that hold kernels, those of one folder at once,
and prints a table, then the reasons with their numbers. Files are read and left as they are.
NVTUNE_BINARY names the program (default: nvtune on PATH).
"""

import collections
import os
import pathlib
import re
import subprocess
import sys

EXTENSIONS = {".cu", ".cuh", ".h", ".hpp", ".inl"}
SUMMARY = re.compile(r"^nvtune: .*: proposed: (\d+); left out: (\d+); marked already: (\d+)$")
REASON = re.compile(r"^.*?:\d+: \w+: (.*) \[N0235\]$")


def folders_with_kernels(root):
    """The files with kernels below a folder, by their own folders."""
    found = collections.defaultdict(list)
    for path in sorted(pathlib.Path(root).rglob("*")):
        if path.suffix in EXTENSIONS and path.is_file() and b"__global__" in path.read_bytes():
            found[path.parent].append(path.name)
    return found


def count(program, root):
    """What init says of all kernels below a folder."""
    counts = collections.Counter()
    reasons = collections.Counter()
    for folder, names in folders_with_kernels(root).items():
        ran = subprocess.run([program, "init", *names], cwd=folder, capture_output=True, text=True, errors="replace")
        diff = ran.stdout.splitlines()
        counts["launch"] += sum(line.lstrip("+ \t").startswith("// No workload:") for line in diff if line.startswith("+"))
        for line in ran.stderr.splitlines():
            if summary := SUMMARY.match(line):
                proposed, refused, marked = map(int, summary.groups())
                counts.update(proposed=proposed, refused=refused, marked=marked)
            elif reason := REASON.match(line):
                reasons[re.sub(r"`[^`]*`|'[^']*'|\d+", "_", reason[1])] += 1
            else:
                print(f"{folder}: {line}", file=sys.stderr)
    return counts, reasons


def main():
    if len(sys.argv) < 2 or any("=" not in word for word in sys.argv[1:]):
        sys.exit(__doc__)
    program = os.path.abspath(os.environ["NVTUNE_BINARY"]) if "NVTUNE_BINARY" in os.environ else "nvtune"
    all_reasons = collections.Counter()
    print("| project | kernels | comment | of these without workload | reason | share |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, root in (word.split("=", 1) for word in sys.argv[1:]):
        counts, reasons = count(program, root)
        all_reasons += reasons
        total = counts["proposed"] + counts["refused"]
        share = counts["proposed"] / total if total else 0
        print(
            f"| {name} | {total} | {counts['proposed']} | {counts['launch']} | {counts['refused']} | {share:.0%} |",
            flush=True,
        )
    print()
    for reason, number in all_reasons.most_common():
        print(f"{number:4} {reason}")


if __name__ == "__main__":
    main()
