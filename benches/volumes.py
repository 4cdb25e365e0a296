"""What the default bound on volume costs on graphs with hubs, and what it leaves.

    python benches/volumes.py [SCALE] [MEMORY_LIMIT]

Partitions an R-MAT graph of 2**SCALE vertices and 16 edges per vertex into 8 parts, without a bound on volume and with
several. Prints the processor time, what ``fp.info`` predicts for it, the cut, and the volume of each part beside the
mean. The default, 24 with a limit of 4 GB, takes an hour and 30 GB of temporary files. 20 takes some minutes.
"""

from __future__ import annotations

import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import fastpart as fp
from fastpart.partitions.partitioners.choice import VOLUME_BALANCE

K = 8
BOUNDS = (None, VOLUME_BALANCE, 1.5, 1.25)


def partitioned(file: Path, bound: float | None, limit: str | None) -> str:
    """Return a row of the table."""
    graph = fp.open_graph(file)
    volumes = graph.degrees() + np.int64(1)
    options: dict[str, Any] = {"threads": 1} | ({"memory_limit": limit} if limit else {})
    begin = process_time()
    p = fp.partition(graph, K, volume_balance=bound, **options)
    seconds = process_time() - begin
    loads = np.bincount(p.assignment, weights=volumes, minlength=K) / volumes.sum() * K
    predicted = "-"
    if bound == VOLUME_BALANCE:
        limited = [
            plan
            for plan in fp.info(graph, K, **options)["plans"]
            if plan["path"] == p.parameters["path"] and plan["sample"] in (None, p.parameters.get("sample"))
        ]
        predicted = f"{limited[-1]['seconds']['cached']:.1f}"
    parts = " ".join(f"{load:.2f}" for load in sorted(loads, reverse=True))
    return f"{bound or '-':>5}  {seconds:8.1f}  {predicted:>9}  {p.evaluate().cut_ratio:.4f}  {parts}"


def main() -> None:
    scale = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    limit = sys.argv[2] if len(sys.argv) > 2 else ("4G" if scale >= 24 else None)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rmat.bin"
        fp.generate.rmat(file, n=1 << scale, m=16 << scale)
        print("bound   seconds  predicted     cut  volumes of the parts, mean 1")
        for bound in BOUNDS:
            with get_context("spawn").Pool(1) as pool:  # memory that a run leaves to the allocator is its own
                print(pool.apply(partitioned, (file, bound, limit)), flush=True)


if __name__ == "__main__":
    main()
