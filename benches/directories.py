"""Costs of the list of files in a partition directory: seconds to write, to open and to read it with and without.

`python benches/directories.py [vertices edges features k rounds]`. The two ways alternate. The median of each counts.
"""

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np

import fastpart as fp

TARGET = Path(__file__).resolve().parents[1] / "target"

UNLISTED = ("fastpart.store.manifest.Listing.add", "fastpart.partitions.part_files.refuse_other_size")


def seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def unlisted(work: Callable[[], object]) -> float:
    """Return the seconds of a call that neither hashes files nor compares sizes."""
    with patch(UNLISTED[0], lambda *_: None), patch(UNLISTED[1], lambda *_: None):
        return seconds(work)


def opened(folder: Path) -> list[np.ndarray]:
    """Return all arrays of all parts."""
    arrays = []
    for part in fp.open_partition(folder).parts:
        arrays += [part.vertices, part.degree, part.indptr, part.indices, part.edge_ids, part.features]
        arrays += [part.labels, part.train, part.halo_parts]
    return arrays


def read(folder: Path) -> int:
    """Read every byte of all arrays."""
    return sum(int(array.reshape(-1).view(np.uint8)[::64].sum()) for array in opened(folder))


def main() -> None:
    n, m, width, k, rounds = [int(word) for word in sys.argv[1:]] or [500_000, 4_000_000, 100, 8, 5]
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TARGET) as name:
        home = Path(name)
        graph = fp.generate.rmat(home / "g.bin", n=n, m=m)
        random = np.random.default_rng(0)
        features = random.random((n, width), np.float32)
        data = {"features": features, "labels": np.arange(n) % 9, "splits": {"train": np.arange(0, n, 2)}}
        partition = fp.VertexPartition(random.integers(0, k, n, np.int32), k)
        folder = home / "parts"
        steps: dict[str, Callable[[], object]] = {
            "write": lambda: partition.save(folder, graph=graph, **data),
            "open": lambda: opened(folder),
            "read": lambda: read(folder),
        }
        times: dict[str, tuple[list[float], list[float]]] = {what: ([], []) for what in steps}
        for _ in range(rounds):
            for way, timed in enumerate((unlisted, seconds)):
                shutil.rmtree(folder, ignore_errors=True)
                for what, step in steps.items():
                    times[what][way].append(timed(step))
        found = fp.store.verify(folder)
        print(f"{found.bytes / 1e6:.0f} MB in {found.files} files, k = {k}")
        for what, (without, listed) in times.items():
            one, other = statistics.median(without), statistics.median(listed)
            print(f"{what:6} {one:8.3f} s without, {other:8.3f} s with the list: {other / one - 1:+.1%}")
        print(
            f"verify {statistics.median(seconds(lambda: fp.store.verify(folder)) for _ in range(3)):8.3f} s"
        )


if __name__ == "__main__":
    main()
