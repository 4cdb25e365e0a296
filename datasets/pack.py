"""Make the graphs that are shipped from the graphs of a data folder: ``python datasets/pack.py DATA``.

``DATA/NAME`` holds ``edges.npy`` (uint32, shape (m, 2), every undirected edge once), ``labels.npy``, ``feats.npz``,
``meta.json`` and, where the source has a public split, ``split.npz``. Run twice, it writes the same bytes.
"""

import gzip
import json
import shutil
import sys
from pathlib import Path

import numpy as np

NAMES = ("cora", "amazon-computers")


def write_edges(target: Path, edges: np.ndarray, meta: dict) -> None:
    """Write a SNAP-style edge list. n is stated because isolated vertices have no line."""
    header = (
        f"# {meta['name']}: undirected, each edge once, u < v, no loops; ids 0..{meta['n'] - 1}\n"
        f"# Source: {meta['source']}; licence: {meta['licence']}\n"
        f"# Nodes: {meta['n']} Edges: {len(edges)}\n"
        "# FromNodeId\tToNodeId\n"
    )
    lines = "".join(f"{u}\t{v}\n" for u, v in edges.tolist())
    # Neither a name nor a time in the gzip header, so that the bytes depend on the edges only.
    with target.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write((header + lines).encode("ascii"))


def pack(source: Path, target: Path) -> None:
    """Write the edges, labels, features and split of one graph."""
    meta = json.loads((source / "meta.json").read_text())
    write_edges(target / f"{source.name}.txt.gz", np.load(source / "edges.npy"), meta)
    shutil.copyfile(source / "labels.npy", target / f"{source.name}.labels.npy")
    shutil.copyfile(source / "feats.npz", target / f"{source.name}.features.npz")
    if (source / "split.npz").exists():
        shutil.copyfile(source / "split.npz", target / f"{source.name}.split.npz")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} DATA")
    for name in NAMES:
        pack(Path(sys.argv[1]) / name, Path(__file__).parents[1] / "python" / "fastpart" / "datasets")
