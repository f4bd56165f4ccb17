#!/usr/bin/env python3
"""Makes programs of public projects into folders that kernels/unmarked.py takes: the sources, and a Makefile to build and run them.

In: a folder with checkouts of the projects, each under its own name (karpathy/llm.c, sgrauerg/polybenchGpu, yuhc/gpu-rodinia,
NVIDIA-developer-blog/code-samples, deeperlearning/professional-cuda-c-programming, PacktPublishing/Learn-CUDA-Programming,
Infatoshi/cuda-course, vetter/shoc, NVIDIA/ising-gpu, UoB-HPC/BabelStream, brucefan1983/GPUMD, ggml-org/ggml), and foreign_programs.json: for
each program its files, what is replaced in their text, and the lines that build and run it. Out: a folder for each program.
Nothing of the projects is kept here.

    kernels/foreign_programs.py CHECKOUTS OUT
"""

import json
import shutil
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().with_suffix(".json")


def edit(path, row):
    text = path.read_text(errors="surrogateescape")
    for old, new in row.get("replace", {}).items():
        text = text.replace(old, new)
    lines = [line for line in text.splitlines(True) if not any(word in line for word in row.get("without_lines", []))]
    path.write_text("".join(lines), errors="surrogateescape")


def makefile(row):
    recipe = {"program:": row["build"], "run: program": row["run"], "clean:": ["rm -f *.o program"]}
    rules = [target + "\n" + "".join(f"\t{line}\n" for line in lines) for target, lines in recipe.items()]
    return "CC ?= nvcc\nARCH ?= sm_90\n" + "".join(rules)


def main():
    checkouts, out = map(Path, sys.argv[1:3])
    for row in json.loads(TABLE.read_text()):
        folder = out / row["program"]
        folder.mkdir(parents=True)
        for name in row["files"]:
            source = checkouts / row["project"] / name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / source.name)
        for path in folder.iterdir():
            if path.suffix in (".cu", ".cuh"):
                edit(path, row)
        (folder / "Makefile").write_text(makefile(row))


main()
