"""A DGL partition from the edge stream, beside `dgl.distributed.partition_graph`: seconds and anonymous memory.

Needs torch and dgl: `.venv-dgl/bin/python benches/export.py [vertices edges features k]`. Both sides get the same
random parts of a directed R-MAT; each run is a process of its own.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import fastpart as fp

TARGET = Path(__file__).resolve().parents[1] / "target"


def rss_anon() -> int:
    """Bytes of anonymous memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


def with_fastpart(folder: Path, threads: int, k: int) -> None:
    partition = fp.VertexPartition(np.load(folder / "parts.npy"), k)
    graph = fp.open_graph(folder / "g.bin")
    partition.save(folder / "parts", graph=graph, features=folder / "x.npy", threads=threads)
    fp.export.dgl(folder / "parts", folder / "dgl", threads=threads)


def with_dgl(folder: Path, k: int) -> None:
    import dgl
    import torch

    records = np.fromfile(folder / "g.bin", dtype=np.uint32).astype(np.int64)
    features = torch.from_numpy(np.load(folder / "x.npy"))
    graph = dgl.graph((records[0::2], records[1::2]), num_nodes=len(features))
    graph.ndata["feat"] = features
    dgl.distributed.partition_graph(graph, "graph", k, str(folder / "reference"), part_method="random")


def child(what: str, folder: str, *numbers: str) -> None:
    """Run one side and print seconds and peak memory."""
    import dgl  # noqa: F401  (the time and memory of its import are no part of the comparison)

    base = peak = rss_anon()
    over = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.005):
            peak = max(peak, rss_anon())

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.perf_counter()
    {"fastpart": with_fastpart, "dgl": with_dgl}[what](Path(folder), *map(int, numbers))
    seconds = time.perf_counter() - start
    over.set()
    thread.join()
    print(json.dumps({"seconds": seconds, "bytes": peak - base}))


def main(n: int = 1_000_000, m: int = 16_000_000, width: int = 100, k: int = 8) -> None:
    TARGET.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=TARGET) as name:
        folder = Path(name)
        fp.generate.rmat(folder / "g.bin", n=n, m=m)
        sidecar = folder / "g.bin.json"
        sidecar.write_text(sidecar.read_text().replace("undirected", "directed"))
        random = np.random.default_rng(0)
        np.save(folder / "parts.npy", random.integers(0, k, n, dtype=np.int32))
        np.save(folder / "x.npy", random.standard_normal((n, width), dtype=np.float32))
        runs = [("fastpart", "1", str(k)), ("fastpart", "2", str(k)), ("dgl", str(k))]
        for what, *numbers in runs:
            command = [sys.executable, __file__, "child", what, name, *numbers]
            run = subprocess.run(
                command, stdout=subprocess.PIPE, check=True, env={**os.environ, "DGLBACKEND": "pytorch"}
            )
            figures = json.loads(run.stdout.splitlines()[-1])
            threads = f"threads={numbers[0]}" if what == "fastpart" else "partition_graph"
            print(
                f"{what:9} {threads:16} {figures['seconds']:6.1f} s, RssAnon +{figures['bytes'] / 1e6:.0f} MB"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:])
    else:
        main(*map(int, sys.argv[1:]))
