"""Processor seconds of an import and of commands, and those of short trainings with workers: launching.py.

Starts are medians of processes of their own, next to a start of Python alone and with numpy. ``python -X importtime``
says where they go. Trainings run one after the other in one process. The first one starts the server that imports
torch. The others copy it. All processes count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

import fastpart as fp

STARTS = (
    ("-c", "pass"),
    ("-c", "import numpy"),
    ("-c", "import fastpart"),
    *(("-m", "fastpart", *words.split()) for words in ("--help", "partition --help", "train --help")),
)
REPEATS = 9
TRAININGS, WORKERS, N = 4, 2, 60
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int | str) -> float:
    """Return the seconds of a process, of the children that it has reaped, and of those that run."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(map(int, fields[11:15])) / TICKS + sum(map(processor_seconds, children))


def processor_seconds_of(words: Sequence[str]) -> float:
    """Return the seconds of a process of Python."""
    before = processor_seconds(os.getpid())
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return processor_seconds(os.getpid()) - before


def main() -> None:
    """Print a line per start and per training."""
    for words in STARTS:
        taken = median(processor_seconds_of(words) for _ in range(REPEATS))
        print(f"python {' '.join(words)}: {taken:.2f} processor seconds")
    ring, labels = np.array([[v, (v + 1) % N] for v in range(N)]), np.arange(N) * 2 // N
    splits = {"train": np.arange(0, N, 2), "val": np.arange(1, N, 4), "test": np.arange(3, N, 4)}
    with tempfile.TemporaryDirectory() as folder:
        features = np.eye(2, dtype=np.float32)[labels]
        fp.VertexPartition(labels, k=2).save(
            f"{folder}/parts", graph=ring, features=features, labels=labels, splits=splits
        )
        for number in range(1, TRAININGS + 1):
            before, start = processor_seconds(os.getpid()), time.perf_counter()
            fp.train.sampled(f"{folder}/parts", epochs=1, workers=WORKERS, threads=WORKERS)
            spent, passed = processor_seconds(os.getpid()) - before, time.perf_counter() - start
            print(f"training {number}: {spent:.2f} processor seconds, {passed:.2f} s")


if __name__ == "__main__":
    main()
