#!/usr/bin/env python3
"""Writes a page of the suite's kernels (`nvtune report --html`), tuned on their recorded spaces in place of a GPU.

In: report_page.py FOLDER PAGE [KERNEL...], where FOLDER has the spaces (kernels/results/h200); NVTUNE_BINARY, NVTUNE_NVCC. Out: PAGE, and
the builds in build/report. NVTUNE_BUDGET bounds the time of each kernel.
"""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
OUT = REPOSITORY / "build" / "report"
# A point that the space has no time for is slower than all of its points.
SLOWER = 1.05


def recording(space):
    """Returns the times of a recorded space in the form of NVTUNE_REPLAY, or None if it has none."""
    points = space["configurations"]
    code = lambda point: (point.get("variant"), json.dumps(point["launch"]))
    times = {code(point): point["time"]["median_us"] for point in reversed(points) if point.get("time")}
    entries = []
    for point in points:
        if code(point) not in times:
            continue
        words = [f"{name}={value}" for name, value in space["sources"][point["source"]].get("macros", {}).items()]
        words += [f"regs={point['cap']}"] if point["cap"] else []
        entries.append({"block": point["block"], "label": " ".join(words), "time_us": times[code(point)], "spread": 0.004})
    if not entries:
        return None
    # An entry of fewer words answers for more points: it comes after those of more.
    entries.sort(key=lambda entry: -len(entry["label"].split()))
    device = {name: space["device"][name] for name in ("name", "compute_capability", "driver", "sms")}
    slowest = max(entry["time_us"] for entry in entries)
    return {"device": device, "entries": [*entries, {"time_us": SLOWER * slowest}]}


def build(program, name, space):
    """Builds a kernel, tuned on its space; returns the path of its record."""
    replay = OUT / f"{name}.json"
    replay.write_text(json.dumps(recording(space)))
    environment = dict(os.environ, NVTUNE="measure", NVTUNE_REPLAY=str(replay), NVTUNE_CACHE_DIR=str(OUT / "cache"))
    command = [program, "nvcc", *space["options"], "-c", space["source"], "-o", str(OUT / f"{name}.o")]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True)
    return str(OUT / f"{name}.tune.json")


def main(folder, page, *names):
    program = os.environ.get("NVTUNE_BINARY", str(REPOSITORY / "target/release/nvtune"))
    OUT.mkdir(parents=True, exist_ok=True)
    records = []
    for path in sorted(Path(folder).glob("*.json.gz")):
        name = path.name.removesuffix(".json.gz")
        space = json.loads(gzip.decompress(path.read_bytes()))
        if (not names or name in names) and recording(space):
            records.append(build(program, name, space))
    subprocess.run([program, "report", *records, "--html", page], check=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
