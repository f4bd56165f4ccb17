#!/usr/bin/env python3
"""Programs that no comment marks: recorded by one run, tuned on that, built again, and timed against what plain nvcc builds.

In: a folder of programs, each with a Makefile that takes CC and ARCH and has a target `run` (as HeCBench's), nvcc, nvtune
(NVTUNE_BINARY). Out: a JSON file (--out) with, for each program, what nvtune said, the seconds of each step and of each search, what the
program says of its own results, and the microseconds of its kernels by CUPTI's records (kernels/unmarked.cpp); a table on stdout.
Invariant: both programs are built by the same Makefile and run in turns, alone on their GPU. A program that plain nvcc does not
build, or that does not run (data that is not there, too long), is listed with the reason.

    kernels/unmarked.py PROGRAMS [NAME...] --out FILE [--gpus N] [--jobs N] [--turns N] [--run-limit SECONDS] [--limit SECONDS]
"""

import argparse
import concurrent.futures
import contextlib
import json
import math
import os
import re
import shlex
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import machine

KERNELS = Path(__file__).resolve().parent
BEGIN = time.monotonic()


class Failure(Exception):
    """Why a program has no row of times."""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4, help="programs at a time for each GPU; they take turns on it")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--run-limit", type=float, default=15, metavar="SECONDS", help="leave out programs that run longer")
    parser.add_argument("--build-limit", type=float, default=120, metavar="SECONDS", help="leave out programs that build longer")
    parser.add_argument("--limit", type=float, default=500, help="begin no further program after this many seconds")
    parser.add_argument("--nvcc", default=os.environ.get("NVTUNE_NVCC") or shutil.which("nvcc"))
    parser.add_argument("--nvtune", type=Path, default=Path(os.environ.get("NVTUNE_BINARY", "target/release/nvtune")).resolve())
    return parser.parse_args()


def run(command, folder, environment, limit):
    """Runs a shell line; returns status, output and seconds."""
    begin = time.monotonic()
    process = subprocess.Popen(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output = process.communicate(timeout=limit)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        raise Failure(f"`{command[:60]}` takes longer than {limit} s") from None
    return process.returncode, output.decode(errors="replace"), time.monotonic() - begin


def verdict(status, output):
    """What a program says of its own results, without times."""
    words = re.findall(r"\b(PASS\w*|FAIL\w*|[Ss]uccess\w*|[Mm]ismatch\w*|[Ee]rror\b|[Ii]ncorrect|[Cc]orrect|wrong)", output)
    return [status, *words]


def total(kernels):
    """Launches and microseconds of all kernels."""
    return sum(launches for launches, _ in kernels.values()), sum(microseconds for _, microseconds in kernels.values())


class Program:
    """A program in two copies, one for nvcc and one for nvtune."""

    def __init__(self, options, name, gpu, tools):
        self.options, self.name, self.gpu, self.tools = options, name, gpu, tools
        self.row = {"program": name, "seconds": {}}

    def environment(self, **more):
        return {**os.environ, "CUDA_VISIBLE_DEVICES": self.gpu, "NVTUNE_NVCC": self.options.nvcc, "NVTUNE_CACHE_SIZE": "0",
                "NVTUNE_WAIT": "600", **more}

    def build(self, folder, compiler, what, **more):
        line = f"make clean >/dev/null 2>&1; make -j2 CC={shlex.quote(compiler)} ARCH={self.tools['arch']}"
        # What times kernels is alone on the GPU as well.
        with self.tools["locks"][self.gpu] if more.get("NVTUNE") == "measure" else contextlib.nullcontext():
            status, output, seconds = run(line, folder, self.environment(**more), self.options.build_limit)
        self.row["seconds"][what] = round(seconds, 1)
        if status:
            raise Failure(f"{what}: make fails: {output[-600:]}")
        return [line for line in output.splitlines() if "nvtune" in line]

    def time(self, folder, what, counted=True, **more):
        """One run, alone on the GPU: what it says, and launches and microseconds of each of its kernels."""
        times = folder / "times"
        times.unlink(missing_ok=True)
        preload = {"LD_PRELOAD": self.tools["counter"], "UNMARKED_TIMES": str(times)} if counted else {}
        with self.tools["locks"][self.gpu]:
            status, output, seconds = run(run_line(folder, preload), folder, self.environment(**more), self.options.run_limit)
        self.row["seconds"][what] = round(seconds, 1)
        rows = [line.split() for line in times.read_text().splitlines()] if times.exists() else []
        if untimed := sum(int(row[3]) for row in rows):
            raise Failure(f"{what}: CUPTI has no times of {untimed} launches")
        kernels = {name: (int(launches), int(nanoseconds) / 1e3) for name, launches, nanoseconds, _ in rows}
        return verdict(status, output), kernels, output

    def judge(self, work):
        plain, tuned = work / "plain" / self.name, work / "tuned" / self.name
        for folder in (plain, tuned):
            shutil.copytree(self.options.programs / self.name, folder)
        self.build(plain, self.options.nvcc, "plain build")
        said, kernels, output = self.time(plain, "plain run")
        launches, microseconds = total(kernels)
        if said[0] or not launches:
            raise Failure(f"plain program: status {said[0]}, {launches} launches: {output[-200:]}")
        marks = {"NVTUNE_KERNELS": "all"}
        compiler = f"{self.options.nvtune} nvcc"
        self.row["capture messages"] = self.build(tuned, compiler, "capture build", NVTUNE="capture", **marks)
        captured, *_, output = self.time(tuned, "capture run", counted=False)
        self.row["capture said"] = [line for line in output.splitlines() if "nvtune" in line]
        if captured != said:
            raise Failure(f"capture: the program says {captured}, not {said}: {output[-400:]}")
        self.row["messages"] = self.build(tuned, compiler, "tuned build", NVTUNE="measure", **marks)
        decisions = [kernel for path in tuned.rglob("*.tune.json") for kernel in json.loads(path.read_text())["kernels"]]
        self.row["search seconds"] = {kernel["name"]: kernel["seconds"] for kernel in decisions if "seconds" in kernel}
        runs = {"plain": [microseconds], "tuned": []}
        for turn in range(self.options.turns):
            for which, folder in (("tuned", tuned), ("plain", plain)):
                answer, kernels, output = self.time(folder, f"{which} run")
                count, microseconds = total(kernels)
                if answer != said or count != launches:
                    raise Failure(f"{which}: the program says {answer} after {count} launches, not {said} after {launches}: {output[-300:]}")
                runs[which].append(microseconds)
                self.row[f"kernels of the last {which} run"] = kernels
        self.row.update(says=said, launches=launches, runs_us=runs)
        # The first run warms up the GPU.
        self.row["speedup"] = statistics.median(runs["plain"][1:]) / statistics.median(runs["tuned"])


def judge(options, name, gpu, tools):
    program = Program(options, name, gpu, tools)
    if time.monotonic() - BEGIN > options.limit:
        return {**program.row, "reason": "no time left"}
    with tempfile.TemporaryDirectory(prefix="unmarked") as work:
        try:
            program.judge(Path(work))
        except (Failure, OSError) as failure:
            program.row["reason"] = str(failure)
    row = program.row
    print(f"{row['program']:24} {row['speedup']:.3f}" if "speedup" in row else f"{row['program']:24} {row['reason'][:300]!r}", flush=True)
    return row


def run_line(folder, variables):
    """The shell line of the Makefile's target `run`, with these variables for the program alone."""
    printed = subprocess.run(["make", "-n", "-W", "none", "run", "CC=true"], cwd=folder, capture_output=True, text=True).stdout
    lines = [line for line in printed.splitlines() if not line.startswith(("true", "make"))]
    prefix = " ".join(["env", *(f"{key}={shlex.quote(value)}" for key, value in variables.items())])
    return "\n".join(re.sub(r"^\s*(?=\./)", f"{prefix} ", line) for line in lines[-1:])


def main():
    options = arguments()
    names = options.names or sorted(path.parent.name for path in options.programs.glob("*/Makefile"))
    facts = machine.describe(options.nvcc, KERNELS.parent)
    gpus = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True).stdout.split()[: options.gpus]
    with tempfile.TemporaryDirectory(prefix="counter") as folder:
        counter = f"{folder}/counter.so"
        libraries = Path(options.nvcc).resolve().parent.parent / "lib64"
        flags = ["-O2", "-std=c++17", "-shared", "-cudart", "none", "-Xcompiler", "-fPIC", "-Xlinker", f"-rpath={libraries}"]
        subprocess.run([options.nvcc, *flags, KERNELS / "unmarked.cpp", "-o", counter, "-lcupti"], check=True)
        tools = {"arch": "sm_" + facts["compute_capability"].replace(".", ""), "counter": counter, "locks": {gpu: threading.Lock() for gpu in gpus}}
        with concurrent.futures.ThreadPoolExecutor(options.jobs * len(gpus)) as pool:
            tasks = [pool.submit(judge, options, name, gpus[index % len(gpus)], tools) for index, name in enumerate(names)]
            rows = []
            for task in concurrent.futures.as_completed(tasks):
                rows.append(task.result())
                options.out.write_text(json.dumps({"machine": facts, "rows": rows}, indent=1) + "\n")
    timed = [row for row in rows if "speedup" in row]
    mean = math.exp(statistics.fmean(math.log(row["speedup"]) for row in timed)) if timed else math.nan
    print(f"{len(timed)} of {len(rows)} programs: {mean:.3f} in the geometric mean, {min((row['speedup'] for row in timed), default=math.nan):.3f} at worst")


main()
