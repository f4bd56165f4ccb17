#!/usr/bin/env python3
"""Finds a CUDA toolkit, or makes one in `.toolkit/`, and prints the path of its nvcc.

In: the environment (NVTUNE_NVCC, PATH, CUDA_HOME, CUDA_PATH). Out: one line, the path of a real nvcc (never nvtune).
Invariant: an installed nvcc is used as it is; `.toolkit/` appears whole or not at all, however many processes ask
for it at once; a second call finds it and changes nothing.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
TOOLKIT = REPOSITORY / ".toolkit"
# Staging beside the toolkit, on the same file system, so that the last step is one rename.
STAGING = REPOSITORY / "build"

# NVIDIA's own wheels. The disassemblers of 13.2 read what 13.0 makes, and know more of it.
PACKAGES = (
    "nvidia-cuda-nvcc==13.0.*",
    "nvidia-nvvm==13.0.*",
    "nvidia-cuda-crt==13.0.*",
    "nvidia-cuda-runtime==13.0.*",
    "nvidia-cuda-cccl==13.0.*",
    "nvidia-cuda-nvdisasm==13.2.*",
    "nvidia-cuda-cuobjdump==13.2.*",
)
# What a build needs of them; a wheel that lacks one has changed its layout.
NEEDED = (
    "bin/nvcc",
    "bin/nvcc.profile",
    "bin/cudafe++",
    "bin/ptxas",
    "bin/fatbinary",
    "bin/nvlink",
    "bin/cuobjdump",
    "bin/nvdisasm",
    "nvvm/bin/cicc",
    "nvvm/libdevice/libdevice.10.bc",
    "include/cuda_runtime.h",
    "include/crt/host_runtime.h",
    "include/cccl/nv/target",
    "lib/libcudart_static.a",
    "lib/libcudadevrt.a",
)
STAMP = "packages.txt"


class Failure(Exception):
    """Why there is no toolkit, in words for the user."""


def is_executable(path):
    return path.is_file() and os.access(path, os.X_OK)


def is_nvtune(path):
    """nvtune stands first on PATH under the name nvcc; the real one is looked for here."""
    return path.resolve().name == "nvtune"


def installed():
    """The nvcc of this machine, or None."""
    named = os.environ.get("NVTUNE_NVCC")
    if named:
        path = Path(shutil.which(named) or named)
        if not is_executable(path):
            raise Failure(f"NVTUNE_NVCC names {named}, which is no program")
        # Absolute, but with its links kept: nvcc finds its home by the path that it is called by.
        return Path(os.path.abspath(path))
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders = os.environ.get("PATH", "").split(os.pathsep) + [os.path.join(home, "bin") for home in homes if home]
    for folder in folders:
        path = Path(folder or ".").absolute() / "nvcc"
        if is_executable(path) and not is_nvtune(path):
            return path
    return None


def made():
    """The nvcc of `.toolkit/`, or None when it is not there or was made from other packages."""
    nvcc = TOOLKIT / "bin" / "nvcc"
    if not is_executable(nvcc):
        return None
    stamp = TOOLKIT / STAMP
    # Without a stamp it is a toolkit that somebody else put there: theirs to keep.
    if stamp.is_file() and stamp.read_text().split() != list(PACKAGES):
        return None
    return nvcc


def pip_install(target):
    pip = [sys.executable, "-m", "pip"]
    if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0:
        raise Failure(
            f"pip is missing ({sys.executable} -m pip): install it (python3-pip, or {sys.executable} -m ensurepip)"
        )
    options = ["--quiet", "--no-input", "--no-deps", "--no-compile", "--only-binary=:all:", "--retries=2"]
    environment = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_ROOT_USER_ACTION="ignore")
    done = subprocess.run(
        [*pip, "install", *options, "--target", str(target), *PACKAGES],
        env=environment,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        why = "\n".join((done.stderr or done.stdout).strip().splitlines()[-6:])
        raise Failure(f"pip could not get the packages (is there a network, and a wheel for this machine?):\n{why}")


def assemble(stage):
    """Installs into `stage` and gives the folder in it that is a toolkit root."""
    site = stage / "site"
    pip_install(site)
    roots = [path.parent.parent for path in site.glob("nvidia/*/bin/nvcc")]
    if len(roots) != 1:
        raise Failure("the packages hold no bin/nvcc where one is expected")
    root = roots[0]
    # A toolkit keeps its libraries in lib64 and links libcudart.so; the wheels have neither name.
    if not (root / "lib64").exists():
        (root / "lib64").symlink_to("lib")
    for library in sorted((root / "lib").glob("libcudart.so.*")):
        if not (root / "lib" / "libcudart.so").exists():
            (root / "lib" / "libcudart.so").symlink_to(library.name)
    missing = [name for name in NEEDED if not (root / name).exists()]
    if missing:
        raise Failure(f"the packages lack {', '.join(missing)}")
    if subprocess.run([str(root / "bin" / "nvcc"), "--version"], capture_output=True).returncode != 0:
        raise Failure("the nvcc of the packages does not run on this machine")
    (root / STAMP).write_text("\n".join(PACKAGES) + "\n")
    return root


def make():
    """Makes `.toolkit/` unless another process just has, and gives its nvcc."""
    STAGING.mkdir(exist_ok=True)
    with open(STAGING / "toolkit.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made():
            return made()
        # What a killed run left; nobody else is in here while the lock is held.
        for stale in STAGING.glob("toolkit.stage.*"):
            shutil.rmtree(stale, ignore_errors=True)
        print("toolkit: no nvcc found, getting one into .toolkit/", file=sys.stderr)
        stage = Path(tempfile.mkdtemp(prefix="toolkit.stage.", dir=STAGING))
        try:
            root = assemble(stage)
            if os.path.lexists(TOOLKIT):
                TOOLKIT.rename(stage / "replaced")
            root.rename(TOOLKIT)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
        nvcc = made()
        if not nvcc:
            raise Failure(".toolkit/bin/nvcc is not there although it was made")
        return nvcc


def nvcc_path():
    """The nvcc to use; raises Failure when there is none and none can be made."""
    return installed() or made() or make()


def main():
    try:
        print(nvcc_path())
    except (Failure, OSError) as why:
        print(f"toolkit: {why}", file=sys.stderr)
        print("toolkit: or set NVTUNE_NVCC to the nvcc of an installed CUDA toolkit", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
