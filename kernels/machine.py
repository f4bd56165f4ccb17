#!/usr/bin/env python3
"""What a measurement was taken on: the GPU, its driver, the toolkit, the sources.

In: nvidia-smi, an nvcc, git. Out: a dictionary for a record; run as a program, the name of the GPU's folder in results/.
Invariant: a fact that cannot be had is None, never a guess.
"""

import datetime
import os
import platform
import re
import subprocess
import sys

# One line of `nvidia-smi --query-gpu`, in this order.
QUERIES = {
    "gpu": "name",
    "driver": "driver_version",
    "compute_capability": "compute_cap",
    "sm_clock_max_mhz": "clocks.max.sm",
    "memory_clock_max_mhz": "clocks.max.memory",
    "memory_mib": "memory.total",
    "power_limit_w": "power.limit",
}


def output(command, **options):
    """The first command's stdout, or None when it cannot run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def gpu():
    """Facts of the first GPU; all None without one."""
    text = output(["nvidia-smi", f"--query-gpu={','.join(QUERIES.values())}", "--format=csv,noheader,nounits"])
    values = [value.strip() for value in text.splitlines()[0].split(",")] if text else []
    if len(values) != len(QUERIES):
        return dict.fromkeys(QUERIES)
    return {key: None if value.startswith("[") else value for key, value in zip(QUERIES, values)}


def architecture(facts):
    """sm_90 for compute capability 9.0; None without a GPU."""
    capability = facts.get("compute_capability")
    return f"sm_{capability.replace('.', '')}" if capability else None


def toolkit(nvcc):
    """The release of an nvcc: 13.0.88."""
    found = re.search(r"\bV(\d+\.\d+\.\d+)", output([str(nvcc), "--version"]) or "")
    return found.group(1) if found else None


def describe(nvcc, repository):
    return {
        **gpu(),
        "toolkit": toolkit(nvcc),
        "host": f"{platform.system()} {platform.machine()}",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": output(["git", "-C", str(repository), "rev-parse", "HEAD"]),
        "command": [os.path.basename(sys.argv[0]), *sys.argv[1:]],
    }


def folder(facts):
    """The name of the GPU's folder: h200 for an `NVIDIA H200`."""
    name = (facts.get("gpu") or "no-gpu").lower().removeprefix("nvidia ")
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")


if __name__ == "__main__":
    print(folder(gpu()))
