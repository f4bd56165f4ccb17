#!/usr/bin/env python3
"""Measures by how many bytes an object grows for N kernels with a winner each: the device code of the added entries,
and all else (stubs, runtime, names, relocations).

    NVTUNE_BINARY=target/release/nvtune NVTUNE_NVCC=... python3 kernels/object_size.py [--out kernels/results/object_size.txt]

The winners come from recorded timings (NVTUNE_REPLAY): no GPU is needed.
"""

import argparse
import json
import os
import subprocess
import tempfile
from datetime import date
from pathlib import Path

KERNEL = """//@tune threads(n) block({{128, 256}}) args(n = 1 << 20, x = random[n], y = out[n]) default(block = 256)
__global__ void work{0}(int n, float *y, const float *x) {{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = expf(x[i]) * {0}.5f;
}}
void launch{0}(int n, float *y, const float *x) {{ work{0}<<<(n + 255) / 256, 256>>>(n, y, x); }}
"""
TIMINGS = {
    "device": {"name": "NVIDIA H200", "compute_capability": 90},
    "entries": [{"label": "block=128", "time_us": 8.0, "spread": 0.02}, {"time_us": 10.0, "spread": 0.02}],
}
OPTIMIZATIONS = ("-O0", "-O2", "-O3")
COUNTS = (1, 2, 4)


def device_code(path):
    """Returns the bytes of the fat binary in an object."""
    for line in subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True).stdout.splitlines():
        if ".nv_fatbin" in line and "PROGBITS" in line:
            fields = line.split("]", 1)[1].split()
            return int(fields[4], 16)
    raise SystemExit(f"{path} has no fat binary")


def sizes(nvtune, nvcc, count, optimization):
    """Returns the growth of the device code and of all else, in bytes."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "k.cu").write_text("".join(KERNEL.format(number) for number in range(count)))
        (folder / "timings.json").write_text(json.dumps(TIMINGS))
        command = [optimization, "-arch=sm_90", "-c", "k.cu", "-o"]
        subprocess.run([nvcc, *command, "plain.o"], cwd=folder, check=True)
        environment = dict(os.environ, NVTUNE="measure", NVTUNE_REPLAY="timings.json", NVTUNE_CACHE_DIR=str(folder / "cache"), NVTUNE_NVCC=nvcc)
        tuned = subprocess.run(
            [nvtune, "nvcc", *command, "tuned.o"], cwd=folder, env=environment, capture_output=True, text=True
        )
        if tuned.returncode or tuned.stderr.count("block=128") < count:
            raise SystemExit(f"not every kernel has a winner:\n{tuned.stderr}")
        code = device_code(folder / "tuned.o") - device_code(folder / "plain.o")
        return code, (folder / "tuned.o").stat().st_size - (folder / "plain.o").stat().st_size - code


def first_line(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    nvtune = str(Path(os.environ.get("NVTUNE_BINARY", "target/release/nvtune")).resolve())
    nvcc = os.environ.get("NVTUNE_NVCC", "nvcc")
    version = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout.split("V")[-1].split()[0]
    lines = [
        "Bytes by which an object grows with a winner for each of its kernels (kernels/object_size.py).",
        f"nvcc {version}, {first_line(['g++', '--version'])}, no GPU, {date.today()}.",
        "",
        f"{'kernels':>7}  {'nvcc':>4}  {'device code':>11}  {'all else':>8}  {'all else per kernel':>19}",
    ]
    for count in COUNTS:
        for optimization in OPTIMIZATIONS:
            code, rest = sizes(nvtune, nvcc, count, optimization)
            lines.append(f"{count:7}  {optimization:>4}  {code:11}  {rest:8}  {rest // count:19}")
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if out:
        out.write_text(text)


if __name__ == "__main__":
    main()
