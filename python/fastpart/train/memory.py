"""The memory of a training, stated before it starts and refused if the limit does not hold it.

Every method states what each of its processes takes beside files: rows of features and edges are mapped, and lie in the
page cache, which gives way. Most needs are bounds: a batch may have fewer rows than its seeds and fanouts allow.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .. import _core
from ..core.options import RunOptions
from ..core.parameters import sized
from ..errors import MemoryBudgetError, arg
from ..partitions.part_rows import VertexRows
from ..partitions.parts import VertexPartData
from ..partitions.seeds import rank_of_part
from .data.dataset import AnyDataset, Dataset
from .inference.hops import PIECE_BYTES
from .inference.inference import Fits
from .learning.batches import STEPS
from .method_options import ByteGNNOptions, EdgeOptions, LinkOptions, SampledOptions
from .models import CLUSTER, NEIGHBOUR, attends, is_layered, may_take_edges, sampling_of
from .models.scores import Task
from .options import Options
from .plugged import name_of

LIGHT_BYTES = 64 << 20
"""A process without torch."""

PROCESS_BYTES = 360 << 20
"""A process with torch: 310 MB of its modules, and what the allocator keeps. Measured with torch 2.15 for CUDA 13."""

SERVER_BYTES = 384 << 20
"""The process that workers are copies of. It has what optimizers import, too. Measured: 383 MB."""

COPY_BYTES = 64 << 20
"""Memory that a copy of it has for itself, with a small network. Measured: 49 MB."""

Keeping = SampledOptions | ByteGNNOptions | LinkOptions | EdgeOptions
"""Options of methods whose loaders may keep rows."""

_SHARE = 2
"""Batches made ahead take one part in so many of what is left. The rest is for the page cache, where the rows lie."""

_SHOWN = 5
"""An error names so many needs, the largest."""

_NUMBER = 4
"""Bytes of a number of features."""


@dataclass(frozen=True)
class Need:
    """A use of memory of a process.

    Attributes
    ----------
    what : str
        Its name in errors.
    size : int
        Bytes, of each process.
    remedy : str
        How to need less.
    processes : int
        How many processes need it.
    """

    what: str
    size: int
    remedy: str = ""
    processes: int = 1

    @property
    def total(self) -> int:
        """Bytes of all processes."""
        return self.size * self.processes

    def __str__(self) -> str:
        times = f" in each of {self.processes} processes" if self.processes > 1 else ""
        return f"{sized(self.size)} for {self.what}{times}"


def of_processes(needs: Sequence[Need], count: int) -> list[Need]:
    """Return the needs of so many equal processes."""
    return [replace(need, processes=need.processes * count) for need in needs]


def left_by(needs: Sequence[Need], run: RunOptions, what: str = "training") -> int:
    """Return the bytes that the memory limit leaves. ``what`` is the word for what needs them.

    Raises
    ------
    MemoryBudgetError
        It leaves none. The text says what needs how much, the largest first, and the remedies.
    """
    limit = _limit(run)
    needed = sum(need.total for need in needs)
    if needed <= limit:
        return limit - needed
    largest = sorted((need for need in needs if need.total), key=lambda need: -need.total)[:_SHOWN]
    remedies = list(dict.fromkeys(need.remedy for need in largest if need.remedy))
    # One that only says less than another one is left out.
    remedies = [each for each in remedies if not any(other.startswith(f"{each} ") for other in remedies)]
    advice = "Raise memory_limit" + (f", or use {', '.join(remedies[:3])}" if remedies else "")
    raise MemoryBudgetError(
        f"{what} needs {sized(needed)} of memory, but the limit is {sized(limit)}: "
        f"{', '.join(map(str, largest))}. {advice}"
    )


def _limit(run: RunOptions) -> int:
    return _core.memory_budget() if run.memory_limit is None else run.memory_limit


def bytes_for_batches(left: int, workers: int) -> int:
    """Return the bytes that batches of a worker may take before their use, of what the needs leave."""
    return left // max(workers, 1) // _SHARE


def processes(count: int, copies: bool) -> list[Need]:
    """Return the fixed needs of processes that train: copies of one that has imported torch, or new interpreters."""
    fewer = "fewer processes" if count > 1 else ""
    if not copies:
        return [Need("torch and its modules", PROCESS_BYTES, fewer, count)]
    return [Need("torch and its modules", SERVER_BYTES), Need("a worker", COPY_BYTES, fewer, count)]


def may_copy(count: int, needs: Sequence[Need], run: RunOptions) -> bool:
    """Return whether workers are copies of a server: unless only new interpreters fit, which one worker may be."""
    server, new = (sum(need.total for need in processes(count, copies)) for copies in (True, False))
    return server <= new or server + sum(need.total for need in needs) <= _limit(run)


# Networks.


def number_bytes(options: Options) -> int:
    """Return the bytes of a number of weights and activations."""
    return 8 if options.precision == "float64" else _NUMBER


def widths(options: Options, task: Task) -> Iterator[tuple[int, int]]:
    """Yield the widths of the inputs of each layer and of what it computes."""
    heads = options.heads if attends(options.model) else 1
    width = max(task.embedded.input_widths(options.hidden).values())
    for layer in range(options.layers):
        out = (task.classes if layer == options.layers - 1 else options.hidden) * heads
        yield width, out
        width = out


def weights(options: Options, task: Task) -> Need:
    """Return the need of weights, gradients, Adam, the best weights, and a checkpoint while it is written."""
    numbers = sum((1 + task.num_relations) * width * out + out for width, out in widths(options, task))
    numbers += sum(each.rows * each.dim for of_type in task.categories.values() for each in of_type.values())
    return Need("weights and Adam", 7 * number_bytes(options) * numbers, f"a smaller {arg('hidden')}")


def activations(
    options: Options, task: Task, levels: Sequence[tuple[int, int, int]], training: bool = True
) -> int:
    """Return the bytes of the activations of a step, and of their gradients if it is of training.

    ``levels`` has targets, sources and edges of each layer, the first one first.
    """
    numbers = 0
    for index, ((width, out), (targets, sources, edges)) in enumerate(
        zip(widths(options, task), levels, strict=True)
    ):
        numbers += targets * (2 * width + 6 * out)
        numbers += edges * _numbers_per_edge(options, task, width, out)
        if index and training:
            numbers += sources * width
    return numbers * number_bytes(options) // (1 if training else 2)


def _numbers_per_edge(options: Options, task: Task, width: int, out: int) -> int:
    """Return how many numbers a layer computes for each edge. Models of users may copy the rows of both ends."""
    more = 2 * task.edge_features if may_take_edges(options.model, task) else 0
    if attends(options.model):
        return (4 if more else 3) * out + 6 * options.heads + more
    if is_layered(options.model):
        return 3 * width + more if more else 0
    return 2 * max(width, out) + more


# Batches.


@dataclass(frozen=True)
class BatchSize:
    """Bounds of a batch: nodes and in-edges of each level but the last, from the seeds on, and nodes of the last."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]

    @classmethod
    def sampled(cls, seeds: int, fanouts: Sequence[int], vertices: int, edges: int) -> BatchSize:
        """Return the bounds of sampled neighbours. -1 takes all."""
        nodes, picked = [min(seeds, vertices)], []
        for fanout in fanouts:
            most = edges if fanout < 0 else min(nodes[-1] * fanout, edges)
            picked.append(most)
            nodes.append(min(most, vertices))
        return cls(tuple(nodes), tuple(picked))

    @classmethod
    def of(
        cls,
        options: Options,
        seeds: int,
        training: int,
        vertices: int,
        edges: int,
        fanouts: Sequence[int] | None = None,
    ) -> BatchSize:
        """Return the bounds of the batches of a model over a graph, with so many of its training vertices.

        ``fanouts`` bound the in-edges of a vertex, if they are others than those of the options.
        """
        batch_kind = sampling_of(options.model)
        if batch_kind == NEIGHBOUR:
            return cls.sampled(seeds, fanouts or options.fanouts, vertices, edges)
        batch = options.batch_size or -(-training // STEPS)
        share = min(1.0, 2 * batch / max(training, 1))  # groups of clusters differ in size
        most = min(vertices, int(vertices * share) if batch_kind == CLUSTER else batch * (options.layers + 1))
        inside = min(edges, int(edges * min(1.0, 2 * most / max(vertices, 1))))
        return cls((most, *[0] * options.layers), (inside, *[0] * (options.layers - 1)))

    @property
    def rows(self) -> int:
        """Nodes of all levels."""
        return sum(self.nodes)

    def size(self, row_bytes: int, edge_bytes: int = 4) -> int:
        """Return the bytes of a batch: rows of features, ids, offsets and edges, and what memory keeps for growth."""
        return (self.rows * (row_bytes + 16) + sum(self.edges) * (edge_bytes + 8)) * 5 // 4

    def levels(self, layers: int) -> list[tuple[int, int, int]]:
        """Return targets, sources and edges of each layer, the first one first."""
        if not any(self.nodes[1:]):  # every layer sees the whole graph that was sampled
            return [(self.nodes[0], self.nodes[0], sum(self.edges))] * layers
        known = np.cumsum(self.nodes).tolist()
        edges = np.cumsum(self.edges).tolist()
        found = [(t, s, e) for (t, s), e in zip(pairwise(known), edges, strict=True)]
        return found[::-1]


SMALLER = f"a smaller {arg('batch_size')} or {arg('fanouts')}"


def batches(options: Options, task: Task, size: BatchSize, row_bytes: int, edge_bytes: int = 4) -> list[Need]:
    """Return the needs of training on batches: one in use, one in the making. Others are made as memory allows."""
    return [
        Need("two batches", 2 * size.size(row_bytes, edge_bytes), SMALLER),
        Need(
            "activations",
            activations(options, task, size.levels(options.layers)),
            f"{SMALLER} or {arg('hidden')}",
        ),
    ]


def kept_rows(dataset: AnyDataset[Any], options: Keeping, loaders: int = 1) -> list[Need]:
    """Return the needs of rows that loaders keep in memory, from their cache or on the device."""
    n, _ = size_of(dataset)
    resident = min(options.resident or 0, n * max(each[0].feature_bytes for each in dataset.types.values()))
    return [
        Need(
            "places of rows that are kept",
            4 * n * options.keeps * loaders,
            f"no {arg('cache')} and no {arg('resident')}",
        ),
        Need("resident rows", resident if options.device == "cpu" else 0, f"a smaller {arg('resident')}"),
    ]


def share_of_seeds(dataset: AnyDataset[Any], workers: int) -> float:
    """Return the largest share of the training vertices that a worker has."""
    counts = np.array(dataset.train_counts, np.float64)
    owners = rank_of_part(len(counts), min(workers, len(counts)))
    return float(np.bincount(owners, counts).max() / max(counts.sum(), 1))


# Scores.

BLOCK_BYTES = 256 << 20
"""What a block of vertices with all their hops may always take. It may take as much as is free, too."""


def evaluation(dataset: Dataset, options: Options, parts: int) -> list[Need]:
    """Return the needs of exact outputs: pieces of the layers, or, for models without layers, a whole part.

    A process computes those of so many parts.
    """
    part = max(each.num_inner for each in dataset.partition.parts)
    of_all = len(dataset.partition) * (options.layers - 1 + _NUMBER)  # masks, and factors of gcn and sgc
    remedy = "more workers" if parts > 1 else ""
    known = Need("labels and masks of its parts", 40 * part * max(parts, 1) + of_all, remedy)
    if is_layered(options.model):
        hub = max(map(_most_in_edges, dataset.partition.parts))
        widest = number_bytes(options) * max(max(both) for both in widths(options, dataset.task))
        piece = min(PIECE_BYTES, widest * sum(size_of(dataset)))
        return [known, Need("pieces of layers", 2 * max(piece, widest * hub))]
    largest = max(_whole(dataset, each, options) for each in dataset.partition.parts)
    what = f"the outputs of {name_of(options.model)} for a block of vertices with {options.layers} hops"
    least = min(largest, BLOCK_BYTES)
    return [known, Need(what, least, "a fastpart.train.models.Network, which has layers")]


def fitting(dataset: Dataset, options: Options, free: int) -> Fits:
    """Return what tells whether a block of a model without layers fits into so many free bytes."""
    most = max(free, BLOCK_BYTES)

    def fits(nodes: Sequence[int], edges: Sequence[int]) -> bool:
        return _hops_bytes(dataset, options, nodes, edges) <= most

    return fits


def _most_in_edges(part: VertexPartData) -> int:
    indptr = part.indptr[: part.num_inner + 1]
    step = 1 << 20
    return max(
        (int(np.diff(indptr[at : at + step + 1]).max()) for at in range(0, part.num_inner, step)), default=0
    )


def _whole(dataset: Dataset, part: VertexPartData, options: Options) -> int:
    """Return the bytes of a part with all its hops, with the activations of a model without layers."""
    n, m = len(dataset.partition), int(dataset.manifest["num_directed_edges"])
    ring = part.halo_sizes[0] if part.halo_sizes else 0
    nodes, edges = [part.num_inner], list[int]()
    for hop in range(options.layers):
        if hop == 0:
            picked, new = int(part.indptr[part.num_inner]), ring
        else:
            first = part.num_inner
            picked = int(part.degree[first : first + ring].sum()) if hop == 1 else m - sum(edges)
            new = min(picked, n - sum(nodes))
        edges.append(max(picked, 0))
        nodes.append(max(new, 0))
    return _hops_bytes(dataset, options, nodes, edges)


def _hops_bytes(dataset: Dataset, options: Options, nodes: Sequence[int], edges: Sequence[int]) -> int:
    """Return the bytes of vertices with all their hops, with the activations of a model without layers."""
    size = BatchSize(tuple(nodes), tuple(edges))
    levels = size.levels(options.layers)
    return size.size(row_bytes(dataset)) + activations(options, dataset.task, levels, training=False)


def row_bytes(dataset: AnyDataset[Any], moved: bool = False) -> int:
    """Return the bytes of the features of a vertex in a batch, of the type whose rows are widest.

    Coded rows that were ``moved`` into the batch are there twice: as they came, and decoded. Where rows only move or
    are kept, they take the bytes of the files, ``feature_bytes`` of a part.
    """
    return max(_row_bytes(of_type[0], moved) for of_type in dataset.types.values())


def _row_bytes(part: VertexRows, moved: bool) -> int:
    row = part.row_type("features")
    decoded = 0 if row is None else int(row[0].itemsize * np.prod(row[1], dtype=np.int64))
    return decoded + (part.feature_bytes if moved and part.coding("features") is not None else 0)


def edge_row_bytes(dataset: AnyDataset[Any], options: Options) -> int:
    """Return the bytes of the row and the features of an in-edge in a batch, 0 for a model that takes none."""
    if not (dataset.task.edge_features and may_take_edges(options.model, dataset.task)):
        return 0
    part = dataset.partition.parts[0]
    types = {part.row_type("edge_features"), part.stored_type("edge_features")}  # coded rows are decoded
    return 8 + sum(row[0].itemsize * math.prod(row[1]) for row in types if row is not None)


def workers_here(workers: int) -> int:
    """Return how many of the workers are on this machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", workers))


# Graphs in memory.

MORE_PARTS = "more parts"

VERTEX_BYTES = 64
"""Bytes of a vertex in memory beside its features: offsets, degree, id, labels, masks."""

EDGE_BYTES = 40
"""Bytes of a directed edge of a graph in memory, while it is read: sources and places. Then it takes 24."""


def size_of(dataset: AnyDataset[Any]) -> tuple[int, int]:
    """Return the number of vertices and of directed edges."""
    return int(dataset.manifest["n"]), int(dataset.manifest["num_directed_edges"])


def graph_bytes(options: Options, vertices: int, edges: int, features: int) -> int:
    """Return the bytes of a graph in memory with its features, which float64 copies."""
    number = _NUMBER if number_bytes(options) == _NUMBER else _NUMBER + number_bytes(options)
    return vertices * (VERTEX_BYTES + number * features) + edges * EDGE_BYTES


def full_batch(
    options: Options, task: Task, vertices: int, sources: int, edges: int, training: bool = True
) -> int:
    """Return the bytes of the activations of all layers over the same graph."""
    return activations(options, task, [(vertices, sources, edges)] * options.layers, training)
