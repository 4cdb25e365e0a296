"""Edges split into training, validation and test, for link prediction."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.pairs import keys_of, mixed, undirected_keys
from ..core.parameters import StrPath
from ..errors import ParameterError
from .convert import refuse_input
from .graph import Graph
from .opening import open_graph
from .sidecars import Sidecar
from .staging import RAW, beside, staged

Pairs = npt.NDArray[np.int64]
"""Sources and targets, of shape (pairs, 2)."""

_BLOCK = 1 << 20
"""Records per step."""


@dataclass(frozen=True, eq=False)
class EdgeSplits:
    """The edges of a graph, split into training, validation and test. :func:`split_edges` makes it.

    Attributes
    ----------
    graph : Graph
        The records to train on. Partition and save this graph.
    val, test : numpy.ndarray
        int64, of shape (pairs, 2): the held-out pairs of vertices, source and target.
    """

    graph: Graph
    val: Pairs = field(repr=False)
    test: Pairs = field(repr=False)

    def __str__(self) -> str:
        return (
            f"{self.graph.num_edges} records to train on, {len(self.val)} val and {len(self.test)} test pairs"
        )


@with_options
def split_edges(
    graph: Any,
    val: float = 0.05,
    test: float = 0.1,
    *,
    seed: int | None = 0,
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> EdgeSplits:
    """Split the edges of a graph into training, validation and test, for link prediction.

    Split before you partition. Then neither the partition nor a message of training sees the held-out edges.

    Parameters
    ----------
    graph : path, array or Graph
        The graph, as :func:`open_graph` accepts it.
    val, test : float
        Shares of the edges that are held out.
    seed : int
        Seed of the split.
    out : path, optional
        A file of raw pairs for the training records, with its sidecar ``OUT.json``. The held-out pairs go to
        ``OUT.splits.npz``, which ``save(edge_splits=...)`` takes. Default: the training records stay in memory.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    EdgeSplits

    Raises
    ------
    ParameterError
        The shares are negative or add up to 1 or more, or the output is the input.

    Notes
    -----
    The split of a pair of vertices is a hash of both ids and the seed. So all records of a pair, also in the other
    direction, go to the same split, and nothing leaks. The shares are met up to chance. Loops stay in the training
    graph. A held-out pair is listed once, as its first record has it. In a directed graph both directions are listed
    if there are records of both. Weights of records are left out.

    Records are streamed. In memory are 40 bytes per held-out record and, without ``out``, 8 per training record.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> ring = np.array([[v, (v + 1) % 1000] for v in range(1000)])
    >>> splits = fp.split_edges(ring, val=0.1, test=0.2)
    >>> print(splits)
    702 records to train on, 86 val and 212 test pairs
    >>> splits.graph
    <Graph: n=1000, m=702, undirected>
    """
    shares = parameters.share_or_none("val", val), parameters.share_or_none("test", test)
    if sum(shares) >= 1:
        raise ParameterError(f"val, test: {val} and {test} leave no edges to train on")
    number, run = parameters.seed(seed), run_options(**options)
    target = None if out is None else parameters.in_folder(parameters.path("out", out))
    opened = open_graph(graph, **options)
    if opened.types is not None:
        raise ParameterError(
            "graph: the edges of a graph with types are of several relations, and the split does not tell them apart. "
            "Split the records of one relation"
        )
    opened.warn_of_unread_weights("split_edges")
    if target is None:
        pieces = [np.empty((0, 2), np.uint32)]
        held_out = _split(opened, shares, number, pieces.append, run)
        training = open_graph(
            np.concatenate(pieces),
            layout="rows",
            num_vertices=opened.num_vertices,
            directedness=opened.directedness,
        )
        return EdgeSplits(training, *held_out)
    if opened.path is not None:
        refuse_input(opened.path, target)
    with staged(target, [*RAW, "splits.npz"], run) as file:
        held_out = _write(opened, shares, number, file, run)
    return EdgeSplits(open_graph(target), *held_out)


def _write(
    graph: Graph, shares: tuple[float, float], seed: int, file: Path, run: RunOptions
) -> tuple[Pairs, Pairs]:
    """Write the training records with their sidecar, and the held-out pairs."""
    with file.open("wb") as opened:
        held_out = _split(graph, shares, seed, lambda block: opened.write(block.tobytes()), run)
    n = graph.num_vertices
    written = open_graph(file, dtype="u32", num_vertices=n, directedness=graph.directedness)
    checksum = written.identify(run)[1]
    Sidecar("u32", n, written.num_edges, graph.directedness, checksum).write(file)
    with beside(file, "splits.npz").open("wb") as opened:
        np.savez(opened, val=held_out[0], test=held_out[1])
    return held_out


def _split(
    graph: Graph,
    shares: tuple[float, float],
    seed: int,
    put: Callable[[npt.NDArray[np.uint32]], object],
    run: RunOptions,
) -> tuple[Pairs, Pairs]:
    """Pass the training records to ``put`` block by block, and return the pairs of the other splits."""
    key, total = mixed(np.uint64(seed)), graph.num_edges
    bounds = [math.ceil(share * 2.0**64) for share in (shares[0], sum(shares))]
    held_out: tuple[list[Pairs], list[Pairs]] = [], []
    for start in range(0, total, _BLOCK):
        block = graph._source.block(start, min(start + _BLOCK, total))
        u, v = block[:, 0], block[:, 1]
        hashes = mixed(undirected_keys(u, v) ^ key)
        split = np.searchsorted(np.array(bounds, np.uint64), hashes, side="right")
        split[u == v] = len(held_out)
        put(np.ascontiguousarray(block[split == len(held_out)]))
        for index, pairs in enumerate(held_out):
            pairs.append(block[split == index].astype(np.int64))
        if run.progress is not None:
            run.progress("split", min(start + _BLOCK, total), total)
    graph.check_unchanged()
    val, test = (_once(pairs, graph.directedness) for pairs in held_out)
    return val, test


def _once(blocks: list[Pairs], directedness: str) -> Pairs:
    """Return every pair once, in the order of the first records."""
    pairs = np.concatenate([np.empty((0, 2), np.int64), *blocks])
    key = keys_of if directedness == "directed" else undirected_keys
    _, first = np.unique(key(pairs[:, 0], pairs[:, 1]), return_index=True)
    return pairs[np.sort(first)]
