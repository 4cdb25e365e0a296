"""Processor time of gathering rows with 8 bits per number, beside that of float32.

``python benches/decoding.py [--rows 1048576] [--gathered 100000] [--rounds 21]`` gathers random rows of 100 and of 128
numbers with one thread, and prints milliseconds for rows of float32, and the share of it that coded rows take: the
median of pairs that are measured one after the other. The parts are written below target/decoding once.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import fastpart as fp
from fastpart import _core

FOLDER = Path(__file__).resolve().parents[1] / "target" / "decoding"

WIDTHS = (100, 128)
PARTS = 4


def main() -> None:
    """Print a line for each width and scale."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1 << 20)
    parser.add_argument("--gathered", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=21)
    given = parser.parse_args()
    random = np.random.default_rng(1)
    for width in WIDTHS:
        folder = written(given.rows, width)
        plain = features_of(folder / "plain")
        for scale in ("row", "column"):
            coded = features_of(folder / scale)
            pairs = []
            for _ in range(given.rounds):
                rows = random.integers(0, given.rows, given.gathered).astype(np.uint32)
                pairs.append((seconds(plain, rows), seconds(coded, rows)))
            least, share = np.median(pairs, axis=0)[0], np.median([one / other for other, one in pairs])
            print(
                f"width {width}, scale per {scale:6}: float32 {1e3 * least:6.1f} ms, coded {share:.2f}",
                flush=True,
            )


def written(n: int, width: int) -> Path:
    """Return a folder with the same partition and rows of float32, with a scale per row, and with one per column."""
    folder = FOLDER / f"{n}-{width}"
    if folder.exists():
        return folder
    folder.mkdir(parents=True)
    graph = fp.generate.rmat(folder / "g.bin", n=n, m=n)
    random = np.random.default_rng(0)
    numbers = random.standard_normal((n, width), np.float32)
    sizes = {"row": random.lognormal(size=(n, 1)), "column": 10.0 ** random.uniform(-2, 2, width)}
    partition = fp.algorithms.random(graph, PARTS, of="vertices")
    partition.save(folder / "plain", graph=graph, features=numbers)
    for scale, size in sizes.items():
        rows = numbers * size.astype(np.float32)
        partition.save(folder / scale, graph=graph, features=rows, feature_dtype="int8")
        found = fp.open_partition(folder / scale).manifest["features"]["coding"]["scale"]
        assert found == scale
    return folder


def features_of(folder: Path) -> _core.Features:
    """Return the rows of a directory, decoded while they are gathered."""
    parts = fp.open_partition(folder).parts
    topology = _core.Topology([part.folder for part in parts])
    features = _core.Features([part.folder / "features.npy" for part in parts], topology, direct=False)
    coding = parts[0].coding("features")
    return features if coding is None else features.decoded(coding.core)


def seconds(features: _core.Features, rows: np.ndarray) -> float:
    """Return the seconds of processor that gathering takes."""
    start = time.process_time()
    features.gather(rows)
    return time.process_time() - start


if __name__ == "__main__":
    main()
