"""The child process of a peer. It does one task, which is given as JSON."""

from __future__ import annotations

import ctypes
import json
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.system import die_with, resident_bytes

Ids = npt.NDArray[np.int64]
Graph = tuple[Ids, Ids, Ids]
"""CSR: indptr, indices, and the weight of each entry."""


_MOST_WEIGHT = 2**30
"""Largest total weight of all edges. Peers add in 32 bits, and see each edge twice."""


def simple_graph(
    records: npt.NDArray[np.uint32], n: int, weights_of_records: npt.NDArray[np.uint32] | None = None
) -> Graph:
    """Return the simple graph in both directions. Loops are dropped.

    The weight of an edge is its number of records, or the sum of their weights, which is then halved (and rounded up)
    until all fit, and at least 1.
    """
    proper = records[:, 0] != records[:, 1]
    ends = np.sort(records[proper].astype(np.uint64), axis=1)
    keys = ends[:, 0] * np.uint64(n) + ends[:, 1]
    pairs, weights = np.unique(keys, return_counts=True)
    if weights_of_records is not None:
        sums = np.zeros(len(pairs), np.uint64)
        np.add.at(sums, np.searchsorted(pairs, keys), weights_of_records[proper].astype(np.uint64))
        shift = max(int(sums.sum()).bit_length() - _MOST_WEIGHT.bit_length() + 1, 0)
        weights = np.maximum(-(-sums.astype(np.int64) >> shift), 1)
    low, high = np.divmod(pairs, np.uint64(max(n, 1)))
    sources, targets = np.concatenate([low, high]), np.concatenate([high, low]).astype(np.int64)
    order = np.lexsort((targets, sources))
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(sources.astype(np.int64), minlength=n), out=indptr[1:])
    return indptr, targets[order], np.tile(weights.astype(np.int64), 2)[order]


def metis(graph: Graph, k: int, balance: float, seed: int, constraints: int = 1) -> tuple[Ids, float]:
    """METIS, k-way. The bounds are ``balance`` for vertices and, with two constraints, 1.10 for volume."""
    import pymetis

    excess = int(round(1000 * (balance - 1), 6))  # in thousandths
    options = pymetis.Options(seed=seed % 2**31, ufactor=max(excess, 1))
    if constraints == 1:
        indptr, indices, weights = graph
        start = time.perf_counter()
        result = pymetis.part_graph(
            k, pymetis.CSRAdjacency(indptr, indices), eweights=weights, recursive=False, options=options
        )
        return np.asarray(result[1], dtype=np.int64), time.perf_counter() - start
    if constraints != 2:
        raise ValueError(f"constraints is 1 or 2, not {constraints}")
    return _metis_two_constraints(graph, k, balance, options)


def _metis_two_constraints(graph: Graph, k: int, balance: float, options: Any) -> tuple[Ids, float]:
    """Call METIS in the library of pymetis directly: the functions of pymetis take one constraint only."""
    from pymetis import _internal

    library = ctypes.CDLL(_internal.__file__)
    if not hasattr(library, "METIS_PartGraphKway") or not hasattr(_internal, "_idx_type_width"):
        raise RuntimeError(
            "this pymetis does not export METIS_PartGraphKway, which two constraints need. Use constraints=1"
        )
    width = {32: np.int32, 64: np.int64}[_internal._idx_type_width()]
    indptr, indices, weights = (np.ascontiguousarray(array, dtype=width) for array in graph)
    n = len(indptr) - 1
    vertex_weights = np.stack([np.ones(n, width), np.diff(indptr) + 1], axis=1)  # as volume_balance does
    tolerances = np.array([max(balance, 1.001), 1.10], np.float32)
    option_values = np.array([options._get(i) for i in range(40)], width)
    part, cut = np.zeros(n, width), np.zeros(1, width)

    def at(array: npt.NDArray[Any] | None) -> ctypes.c_void_p | None:
        return None if array is None else array.ctypes.data_as(ctypes.c_void_p)

    sizes = [np.array([value], width) for value in (n, 2, k)]
    arguments = [
        sizes[0], sizes[1], indptr, indices, vertex_weights, None, weights, sizes[2], None, tolerances, option_values,
        cut, part,
    ]  # fmt: skip
    start = time.perf_counter()
    code = library.METIS_PartGraphKway(*map(at, arguments))
    seconds = time.perf_counter() - start
    if code != 1:
        raise RuntimeError(f"METIS_PartGraphKway returned {code}")
    return part.astype(np.int64), seconds


def kaminpar(
    graph: Graph, k: int, balance: float, seed: int, threads: int, folder: Path, preset: str = "default"
) -> tuple[Ids, float]:
    """KaMinPar for the edge cut. Parts have up to ``balance`` times the mean number of vertices, rounded up."""
    import kaminpar as package

    file = folder / "graph.parhip"
    write_parhip(graph, file)
    compressed = preset == "terapart"  # it crashes on other graphs
    loaded = package.load_graph(str(file), package.GraphFileFormat.PARHIP, compressed)
    file.unlink()
    package.reseed(seed % 2**31)
    partitioner = package.KaMinPar(threads, getattr(package, f"{preset}_context")())
    start = time.perf_counter()
    result = partitioner.compute_partition(loaded, k, max(balance - 1, 1e-9))  # 0 is no bound to it
    return np.asarray(result, dtype=np.int64), time.perf_counter() - start


def write_parhip(graph: Graph, file: Path) -> None:
    """Write ParHIP's binary format: a header (version, n, entries), offsets in bytes, neighbours, edge weights."""
    indptr, indices, weights = graph
    header = np.array([2, len(indptr) - 1, len(indices)], np.uint64)  # 2: the vertices have no weights
    offsets = (indptr + len(indptr) + len(header)).astype(np.uint64) * np.uint64(8)
    with file.open("wb") as out:
        for array in (header, offsets, indices.astype(np.uint64), weights):
            array.tofile(out)


def mtkahypar(
    graph: Graph, k: int, balance: float, seed: int, threads: int, preset: str = "default"
) -> tuple[Ids, float]:
    """Mt-KaHyPar for the edge cut. Bounds are those of KaMinPar. The deterministic preset ignores the seed."""
    import mtkahypar as package

    indptr, indices, weights = graph
    if weights.sum() >= 2**31:  # the sums of Mt-KaHyPar would wrap silently
        raise RuntimeError("Mt-KaHyPar adds weights in 32 bits. The graph must have fewer than 2^30 records")
    n = len(indptr) - 1
    sources = np.repeat(np.arange(n), np.diff(indptr))
    once = sources < indices
    edges = np.column_stack([sources[once], indices[once]]).tolist()
    package.set_seed(seed % 2**31)
    library = package.initialize(threads, False)
    context = library.context_from_preset(getattr(package.PresetType, preset.upper()))
    context.set_partitioning_parameters(k, balance - 1, package.Objective.CUT)
    loaded = library.create_graph(context, n, len(edges), edges, [1] * n, weights[once].tolist())
    del edges, sources, once
    _begin_peak()  # the lists, which only this interface needs, do not count
    start = time.perf_counter()
    result = loaded.partition(context)
    return np.asarray(result.get_partition(), dtype=np.int64), time.perf_counter() - start


def stream(
    graph: Graph, k: int, balance: float, seed: int, batch: int, passes: int, buffer: int = 0
) -> tuple[Ids, float]:
    """HeiStream, in batches of so many vertices. With a buffer, in vertices, it is BuffCut. It ignores weights."""
    from chszlablib import Decomposition
    from chszlablib import Graph as Loaded

    n = len(graph[0]) - 1
    if k == 1 or n == 0:  # which it refuses
        return np.zeros(n, np.int64), 0.0
    loaded = Loaded.from_csr(graph[0], graph[1])
    start = time.perf_counter()
    result = Decomposition.stream_partition(
        loaded, k, 100 * (balance - 1), seed % 2**31, max_buffer_size=buffer, batch_size=batch,
        num_streams_passes=passes,
    )  # fmt: skip
    return np.asarray(result.assignment, dtype=np.int64), time.perf_counter() - start


def main() -> None:
    """Do the task. After an error, stderr holds the traceback and then the error in one line."""
    task = json.loads(sys.argv[1])
    die_with(task["parent"])
    folder = Path(task["folder"])
    try:
        if task["task"] == "graph":
            records = np.fromfile(folder / "records.u32", np.uint32).reshape(-1, 2)
            file = folder / "weights.npy"
            weights = np.load(file, allow_pickle=False) if file.exists() else None
            np.savez(folder / "graph.npz", *simple_graph(records, task["n"], weights))
        else:
            _partition(task, folder)
    except Exception as error:
        traceback.print_exc()
        sys.exit(f"{type(error).__name__}: {error}".replace("\n", " "))


def _partition(task: dict[str, Any], folder: Path) -> None:
    __import__(task["module"])  # before the memory of the run is counted
    base = _begin_peak()
    with np.load(folder / "graph.npz", allow_pickle=False) as stored:
        graph = (stored["arr_0"], stored["arr_1"], stored["arr_2"])
    k, balance, seed, threads, given = (task[name] for name in ("k", "balance", "seed", "threads", "given"))
    match task["task"]:
        case "metis":
            part, seconds = metis(graph, k, balance, seed, **given)
        case "kaminpar":
            part, seconds = kaminpar(graph, k, balance, seed, threads, folder, **given)
        case "mtkahypar":
            part, seconds = mtkahypar(graph, k, balance, seed, threads, **given)
        case _:
            part, seconds = stream(graph, k, balance, seed, **given)
    memory = resident_bytes(peak=True) - base
    np.save(folder / "part.npy", part)
    (folder / "result.json").write_text(json.dumps({"seconds": seconds, "memory": memory}))


def _begin_peak() -> int:
    """Reset the kernel's peak of resident memory, and return the resident memory."""
    with suppress(OSError):  # without the reset, a higher peak of the imports counts
        Path("/proc/self/clear_refs").write_text("5")
    return resident_bytes()


if __name__ == "__main__":
    main()
