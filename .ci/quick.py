#!/usr/bin/env python3
"""Runs the quick checks, as many at once as the build allows, and shows the output of those that failed last.

In: NVTUNE_NVCC, CARGO. Out: a line for each check when it ends; status 1 if one failed; logs in `build/quick/`.
The lints need the build directory, and wait until the tests are built: then they run beside them, and give way to them.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
LOGS = REPOSITORY / "build" / "quick"
CARGO = os.environ.get("CARGO", "cargo")
# A file system in memory, and the room that the tests have there with ease.
MEMORY, MEMORY_BYTES = "/dev/shm", 2 << 30


class Check:
    """A command that runs, with its output in a file."""

    def __init__(self, name, *command):
        self.name = name
        self.path = LOGS / f"{name}.log"
        self.begin = time.monotonic()
        with self.path.open("w") as output:
            self.process = subprocess.Popen(command, cwd=REPOSITORY, stdout=output, stderr=subprocess.STDOUT)

    def output(self):
        return self.path.read_text(errors="replace")

    def wait_until_built(self):
        """Waits until cargo runs the first test program, and has let go of the build directory."""
        while "     Running " not in self.output() and self.process.poll() is None:
            time.sleep(0.1)

    def has_ended(self):
        """Returns whether the command has ended, and says so the first time."""
        if self.process.poll() is None:
            return False
        word = "FAILED" if self.process.returncode else "ok"
        print(f"{word}: {self.name} ({time.monotonic() - self.begin:.0f} s)", flush=True)
        return True


def lints():
    """What cargo is to do for the lints: where clippy compiles (RUSTC_WORKSPACE_WRAPPER), what the tests do not build."""
    if os.environ.get("RUSTC_WORKSPACE_WRAPPER"):
        return ["build", "--locked", "--bench", "scoring", "--test", "gpu"]
    return ["clippy", "--locked", "--workspace", "--all-targets", "--test", "gpu", "--", "-D", "warnings"]


@contextlib.contextmanager
def temporary_folder():
    """Where the tests write: in memory if it has room and runs programs, for they make and remove many small files."""
    folder = None
    with contextlib.suppress(OSError):
        found = os.statvfs(MEMORY)
        if "TMPDIR" not in os.environ and not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= MEMORY_BYTES:
            folder = tempfile.mkdtemp(prefix="quick-checks-", dir=MEMORY)
    folder = folder or tempfile.mkdtemp(prefix="quick-checks-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_checks():
    checks = [Check("format", CARGO, "fmt", "--check")]
    # Some tests wait more than they compute.
    os.environ.setdefault("RUST_TEST_THREADS", str(1 + (os.cpu_count() or 1)))
    tests = Check("tests", CARGO, "test", "--locked", "--workspace")
    checks.append(Check("scripts", ".ci/checks"))
    tests.wait_until_built()
    checks += [Check("lints", "nice", "-n", "19", CARGO, *lints()), tests]
    running = checks
    while running:
        running = [check for check in running if not check.has_ended()]
        time.sleep(0.1)
    return [check for check in checks if check.process.returncode]


def main():
    LOGS.mkdir(parents=True, exist_ok=True)
    with temporary_folder() as folder:
        os.environ["TMPDIR"] = folder
        failed = run_checks()
    for check in failed:
        print(f"\n{check.name}:\n{check.output()}", flush=True)
    sys.exit(1 if failed else 0)


main()
