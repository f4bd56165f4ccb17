#!/usr/bin/env python3
"""Processor time of a search without a GPU, against nvcc's own compile.

In: an nvcc, nvtune (NVTUNE_BINARY, else target/release/nvtune), names of kernels of the suite (all without). Out: a table: plain
nvcc's processor time in seconds (the less of two runs), what nvtune takes more (NVTUNE=static, no cache), and the ratio of the two.
The promise is a ratio of at most 3, or 2 s.

With --steps: processor time and bytes of each of nvcc's steps instead, by which `src/tune/compile_budget.rs` bounds the search;
besides the kernels, three sources with many instances of a template.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = Path(__file__).resolve().parent
REPOSITORY = KERNELS.parent
sys.path.insert(0, str(REPOSITORY / ".ci"))

import toolkit  # noqa: E402

OPTIONS = ["-O3", "-arch=sm_90", f"-I{KERNELS / 'common'}"]

INSTANCES = """
template <int N> __global__ void k(int n, const float *x, float *y) {
    float a[N];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    #pragma unroll
    for (int j = 0; j < N; j++) a[j] = x[i + j * n];
    #pragma unroll
    for (int j = 0; j < N; j++)
        for (int l = 0; l < 4; l++) a[j] = a[(j + l) % N] * a[(j * 7 + l) % N] + sinf(a[j]);
    #pragma unroll
    for (int j = 0; j < N; j++) y[i + j * n] = a[j];
}
"""


def processor_time(command, folder, environment, shell=False):
    """Seconds of processor time of a command with all that it starts, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = subprocess.run(command, cwd=folder, env=environment, shell=shell, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ran.returncode != 0:
        sys.exit(f"static_cost: {command}: {ran.stderr[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ran.stderr


def search(nvcc, nvtune, source, folder):
    """Prints a row of the table."""
    call = [*OPTIONS, "-c", str(source), "-o", f"{folder}/kernel.o"]
    environment = {**os.environ, "NVTUNE_NVCC": nvcc, "NVTUNE": "static", "NVTUNE_CACHE_SIZE": "0"}
    plain = min(processor_time([nvcc, *call], folder, environment)[0] for _ in range(2))
    tuned, said = processor_time([nvtune, "nvcc", *call], folder, environment)
    more = tuned - plain
    kernel = next((line for line in said.splitlines() if line.startswith(f"nvtune: {source.stem}: block")), "")
    print(f"{source.stem:20} {plain:6.2f} {more:6.2f} {more / plain:6.2f}  {kernel[8:70]}", flush=True)
    return more / plain, more


def steps(nvcc, source, folder):
    """Prints what each of nvcc's steps takes, and the sizes that it goes by."""
    call = [nvcc, *OPTIONS, "-c", str(source), "-o", f"{folder}/kernel.o", "--keep", "--keep-dir", folder]
    dry_run = subprocess.run([*call, "--dryrun"], cwd=folder, capture_output=True, text=True, check=True).stderr
    environment, seconds = dict(os.environ), {}
    for line in dry_run.splitlines():
        line = line.removeprefix("#$ ")
        if assigned := re.match(r"^([A-Z_]+)=(.*)$", line):
            environment[assigned[1]] = assigned[2].strip('"')
            continue
        name = re.split(r"[/ ]", line.split()[0].strip('"'))[-1]
        if name != "rm":
            if name in ("gcc", "g++"):
                name = ("device -E" if "-D__CUDA_ARCH__=" in line else "host -E") if " -E " in line else "host -c"
            seconds[name] = seconds.get(name, 0.0) + processor_time(line, folder, environment, shell=True)[0]
    bytes_of = lambda suffix: max((path.stat().st_size for path in Path(folder).glob(f"*{suffix}")), default=0)  # noqa: E731
    taken = " ".join(f"{name} {value:.2f}" for name, value in seconds.items())
    print(f"{source.stem:14} {bytes_of('.ii'):9} {bytes_of('.ptx'):9}  {taken}", flush=True)


def main():
    nvcc = os.environ.get("NVTUNE_NVCC") or str(toolkit.nvcc_path())
    nvtune = os.environ.get("NVTUNE_BINARY") or str(REPOSITORY / "target" / "release" / "nvtune")
    names = [word for word in sys.argv[1:] if word != "--steps"]
    sources = [path for path in sorted(KERNELS.glob("*/*.cu")) if not names or path.stem in names]
    if missing := set(names) - {path.stem for path in sources}:
        sys.exit(f"static_cost: no kernel of the suite: {', '.join(sorted(missing))}")
    if "--steps" in sys.argv:
        print("source         bytes .ii bytes .ptx  seconds of processor time")
        with tempfile.TemporaryDirectory() as folder:
            for count in (4, 16, 40):
                path = Path(folder) / f"instances_{count}.cu"
                lines = (f"template __global__ void k<{number + 3}>(int, const float *, float *);" for number in range(count))
                path.write_text(INSTANCES + "\n".join(lines) + "\n")
                sources.append(path)
            for source in sources:
                with tempfile.TemporaryDirectory() as kept:
                    steps(nvcc, source, kept)
        return
    print("kernel                nvcc   more  ratio")
    rows = []
    for source in sources:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(search(nvcc, nvtune, source, folder))
    beyond = sum(ratio > 3 and more > 2 for ratio, more in rows)
    print(f"{len(rows)} kernels, ratio {max(ratio for ratio, _ in rows):.2f} at most, {beyond} beyond 3 and 2 s")


if __name__ == "__main__":
    main()
