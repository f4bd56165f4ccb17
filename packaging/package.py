#!/usr/bin/env python3
"""Makes a package of a built nvtune: package.py deb|wheel|archive --root ROOT --version VERSION --out FOLDER.

In: ROOT, the folder that `make install DESTDIR=ROOT PREFIX=/usr` has filled. Out: the path of the package, printed.
The same ROOT gives the same bytes. Needs dpkg-deb for the .deb, and nothing but Python for the others.
"""

import argparse
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
SUMMARY = "A drop-in nvcc that tunes the kernels you mark with a comment"
# The oldest date that a zip file can hold; packages have no date of their own.
DATE = (1980, 1, 1, 0, 0, 0)
EPOCH = 315532800
MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def newest_glibc(program):
    """Returns the newest version of glibc that a program asks for, as (2, 34)."""
    versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", program.read_bytes())
    return max(((int(major), int(minor)) for major, minor in versions), default=(2, 17))


def deb(root, version, out):
    """A package with a folder of shims, as ccache has: /usr/lib/nvtune first on PATH."""
    machine = MACHINES.get(os.uname().machine, os.uname().machine)
    major, minor = newest_glibc(root / "usr/bin/nvtune")
    path = out / f"nvtune_{version}_{machine}.deb"
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(root, tree, symlinks=True)
        shims = tree / "usr/lib/nvtune"
        shims.mkdir(parents=True, exist_ok=True)
        (shims / "nvcc").symlink_to("../../bin/nvtune")
        documents = tree / "usr/share/doc/nvtune"
        documents.mkdir(parents=True, exist_ok=True)
        text = "".join((REPOSITORY / name).read_text() for name in ("LICENSE-MIT", "LICENSE-APACHE"))
        (documents / "copyright").write_text(text)
        size = sum(file.stat().st_size for file in tree.rglob("*") if file.is_file()) // 1024
        control = tree / "DEBIAN"
        control.mkdir()
        (control / "control").write_text(
            f"Package: nvtune\nVersion: {version}\nArchitecture: {machine}\nSection: devel\nPriority: optional\n"
            f"Maintainer: nvtune developers <nvtune@localhost>\nInstalled-Size: {size}\nDepends: libc6 (>= {major}.{minor})\n"
            f"Suggests: nvidia-cuda-toolkit\nDescription: {SUMMARY}\n"
            " Put /usr/lib/nvtune first on PATH, and builds that call nvcc tune marked kernels.\n"
        )
        environment = dict(os.environ, SOURCE_DATE_EPOCH=str(EPOCH))
        command = ["dpkg-deb", "--build", "--root-owner-group", str(tree), str(path)]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return path


def wheel(root, version, out):
    """A wheel that carries the program: `pip install` puts it next to Python's own programs."""
    program = root / "usr/bin/nvtune"
    major, minor = newest_glibc(program)
    tag = f"py3-none-manylinux_{major}_{minor}_{os.uname().machine}"
    info = f"nvtune-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: nvtune\nVersion: {version}\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\n"
    files = {
        f"nvtune-{version}.data/scripts/nvtune": program.read_bytes(),
        f"{info}/METADATA": f"{metadata}Description-Content-Type: text/markdown\n\n{(REPOSITORY / 'README.md').read_text()}".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: nvtune\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        f"{info}/licenses/LICENSE-MIT": (REPOSITORY / "LICENSE-MIT").read_bytes(),
        f"{info}/licenses/LICENSE-APACHE": (REPOSITORY / "LICENSE-APACHE").read_bytes(),
    }
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = ("".join(lines) + f"{info}/RECORD,,\n").encode()
    path = out / f"nvtune-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            # A regular file: pip makes no other executable.
            entry.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return path


def archive(root, version, out):
    """A tar.xz of the installed tree below one folder. Its name says which glibc it needs."""
    major, minor = newest_glibc(root / "usr/bin/nvtune")
    name = f"nvtune-{version}-{os.uname().machine}-linux-glibc{major}.{minor}"
    path = out / f"{name}.tar.xz"

    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = EPOCH
        return entry

    with tarfile.open(path, "w:xz") as file:
        for source in sorted((root / "usr").rglob("*")):
            file.add(source, f"{name}/{source.relative_to(root / 'usr')}", recursive=False, filter=plain)
        for license in ("LICENSE-MIT", "LICENSE-APACHE"):
            file.add(REPOSITORY / license, f"{name}/{license}", filter=plain)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["deb", "wheel", "archive"])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--glibc", help="fail if the program needs a newer glibc than this, as 2.28")
    options = parser.parse_args()
    program = options.root / "usr/bin/nvtune"
    if not program.is_file():
        sys.exit(f"package.py: {program} is not there: run make install DESTDIR={options.root} PREFIX=/usr")
    if options.glibc:
        most, needed = tuple(int(part) for part in options.glibc.split(".")), newest_glibc(program)
        if needed > most:
            sys.exit(f"package.py: the program needs glibc {needed[0]}.{needed[1]}, newer than {options.glibc}: build it on an older system")
    options.out.mkdir(parents=True, exist_ok=True)
    print({"deb": deb, "wheel": wheel, "archive": archive}[options.kind](options.root, options.version, options.out))


if __name__ == "__main__":
    main()
