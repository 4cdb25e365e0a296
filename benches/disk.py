"""Rows of features from disk, for batches of a partition whose features memory does not hold.

``python benches/disk.py PARTS [--limit 1.5G] [--batches 8] [--fanouts 10,10]`` samples the first batches of an epoch of
1,000 seeds each, in a control group of so many bytes, once for each way to read rows, in turn. It prints medians of
milliseconds per batch, of processor time, and of the bytes that the process read from the disk.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from fastpart import _core
from fastpart.core.parameters import memory_size

GROUPS = (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"))
BATCH, ROUNDS = 1000, 3


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", type=Path)
    parser.add_argument("--limit", default="1.5G")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--fanouts", default="10,10")
    parser.add_argument("--way", choices=["mmap", "direct"])
    given = parser.parse_args()
    if given.way is not None:
        measure(given.parts, given.way == "direct", given.batches, list(map(int, given.fanouts.split(","))))
        return
    group = made(memory_size(given.limit, "--limit", 1) or 0)
    found: dict[str, list[list[float]]] = {"mmap": [], "direct": []}
    for _ in range(ROUNDS):
        for way, rounds in found.items():
            command = [sys.executable, __file__, *sys.argv[1:], "--way", way]
            child = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, check=True, preexec_fn=lambda: enter(group)
            )
            rounds.append([float(value) for value in child.stdout.split()])
    group.rmdir()
    for way, rounds in found.items():
        wall, processor, megabytes, needed = map(statistics.median, zip(*rounds, strict=True))
        print(
            f"{way:8} {wall:8.0f} ms per batch, {processor:6.0f} of processor, {megabytes:7.0f} MB read for "
            f"{needed:.0f}"
        )


def made(limit: int) -> Path:
    """Return a new memory control group of so many bytes."""
    for root, file in GROUPS:
        if (Path(root) / file).exists() or (Path(root) / "cgroup.controllers").exists():
            group = Path(root) / f"fastpart-bench-{os.getpid()}"
            group.mkdir()
            (group / file).write_text(str(limit))
            return group
    sys.exit("benches/disk.py: no right to make a memory control group")


def enter(group: Path) -> None:
    """Let this process belong to the group."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def measure(parts: Path, direct: bool, batches: int, fanouts: list[int]) -> None:
    """Print milliseconds, those of the processor, and megabytes read and needed, per batch."""
    folders = sorted(parts.glob("part-*"))
    files = [folder / "features.npy" for folder in folders]
    topology = _core.Topology(folders)
    sampler = _core.Sampler(topology, fanouts, seed=1)
    seeds = np.random.default_rng(1).permutation(topology.num_vertices)[: batches * BATCH].astype(np.uint32)
    sampled = [sampler.sample(piece, step=step) for step, piece in enumerate(np.split(seeds, batches))]
    wanted = [batch.rows for batch in sampled]
    for file in files:
        with open(file, "rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    features = _core.Features(files, topology, direct=direct)
    before, wall, processor = bytes_read(), time.perf_counter(), time.process_time()
    needed = sum(features.gather(rows).nbytes for rows in wanted)
    times = time.perf_counter() - wall, time.process_time() - processor
    print(
        *(1e3 * seconds / batches for seconds in times),
        (bytes_read() - before) / batches / 1e6,
        needed / batches / 1e6,
    )


def bytes_read() -> int:
    """Return what this process has read from disks so far."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


if __name__ == "__main__":
    main()
