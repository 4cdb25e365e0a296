"""The number of parts that fits the memory of a worker.

The rule of the papers: S is the size of graph and features, M the memory of a worker, and T the memory for the
computation, two thirds of M. Use as many parts as workers (q) if ``S <= q (M - T)``, else ``ceil(S / (M - T))``. This S
ignores halos. Here the number increases until the largest part with its halo fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ....core.options import RunOptions
from ....errors import MemoryBudgetError, arg
from ....measures.evaluate import evaluate
from ....partitions.types import range_of_type
from ...data import Dataset
from ...memory import BatchSize, Need, batches, evaluation, full_batch, weights
from ...models import NEIGHBOUR, sampling_of
from ...options import Options
from .regroup import graph_of, partitioned

COMPUTING = 2 / 3
"""T, as a share of M."""

EDGE_BYTES = 8 + 8 + 8
"""Bytes per directed edge: the source, and for the backward pass the destination and the edge number."""

VERTEX_BYTES = 8 + 8 + 8 + 8
"""Bytes per vertex beside its features: offsets in both directions, degree, label."""

_TRIES = 8


@dataclass(frozen=True)
class Sizes:
    """A number of parts and its reason.

    Attributes
    ----------
    parts : int
        Number of parts.
    explained : dict
        ``graph_bytes`` (S), ``memory_per_worker`` (M), ``computing_bytes`` (T), ``parts_by_rule``, ``parts``,
        ``largest_part_bytes`` (with its halo), ``replication`` (all parts with halos, relative to S). None where
        unknown.
    """

    parts: int
    explained: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def given(cls, dataset: Dataset, parts: int, budget: int | None) -> Sizes:
        """Return the number that the user gave, and the sizes of its parts, if they are known."""
        total = graph_bytes(dataset)
        facts: dict[str, Any] = {"graph_bytes": total, "memory_per_worker": budget, "parts": parts}
        if parts == dataset.partition.k:
            bytes_of = _bytes_of_parts(dataset)
            facts |= {"largest_part_bytes": max(bytes_of), "replication": sum(bytes_of) / max(total, 1)}
            if budget is not None:
                _refuse_large(max(bytes_of), budget)
        return cls(parts, facts)


def graph_bytes(dataset: Dataset) -> int:
    """Return S, the bytes of the graph with features in memory."""
    edges = dataset.manifest["num_directed_edges"]
    widths = dataset.task.input_widths(0).items()
    numbers = sum(width * len(range_of_type(dataset.partition, name)) for name, width in widths)
    return _bytes(len(dataset.partition), edges, numbers)


def parts_for(dataset: Dataset, budget: int, workers: int, run: RunOptions) -> Sizes:
    """Return the least number of parts, beginning with that of the rule, whose largest part fits."""
    total, left = graph_bytes(dataset), _part_bytes(budget)
    by_rule = workers if total <= workers * left else math.ceil(total / max(left, 1))
    facts: dict[str, Any] = {
        "graph_bytes": total,
        "memory_per_worker": budget,
        "computing_bytes": budget - left,
        "parts_by_rule": by_rule,
    }
    k, bytes_of = by_rule, [total]
    for _ in range(_TRIES):
        if k > len(dataset.partition):
            break
        bytes_of = _bytes_of_parts(dataset) if k == dataset.partition.k else _bytes_of_new(dataset, k, run)
        facts |= {
            "parts": k,
            "largest_part_bytes": max(bytes_of),
            "replication": sum(bytes_of) / max(total, 1),
        }
        if max(bytes_of) <= left:
            return Sizes(k, facts)
        k = max(k + 1, math.ceil(k * max(bytes_of) / max(left, 1)))
    raise MemoryBudgetError(
        f"memory_per_worker: {budget:,} bytes leave {left:,} for a part, but with {facts.get('parts', by_rule)} parts "
        f"the largest needs {max(bytes_of):,} with its halo (all of them {sum(bytes_of) / max(total, 1):.1f} times the "
        "graph). More parts would have more halo. Give workers more memory, or use a partition with a lower cut"
    )


def _refuse_large(largest: int, budget: int) -> None:
    if largest > (left := _part_bytes(budget)):
        raise MemoryBudgetError(
            f"memory_per_worker: {budget:,} bytes leave {left:,} for a part, but the largest needs {largest:,} with "
            f"its halo. Give workers more memory, or pass {arg('parts', 'auto')}"
        )


def _part_bytes(budget: int) -> int:
    return int(budget * (1 - COMPUTING))


def _bytes(vertices: int, edges: int, numbers: int) -> int:
    return vertices * VERTEX_BYTES + 4 * numbers + edges * EDGE_BYTES


def _bytes_of_parts(dataset: Dataset) -> list[int]:
    types, widths = dataset.types, dataset.task.input_widths(0).items()
    found = []
    for part in dataset.partition.parts:
        of_types = ((types[name][part.index], width) for name, width in widths)
        numbers = sum(width * (rows.num_inner + rows.num_halo) for rows, width in of_types)
        found.append(_bytes(part.num_inner + part.num_halo, part.num_edges, numbers))
    return found


def _bytes_of_new(dataset: Dataset, k: int, run: RunOptions) -> list[int]:
    """Return the sizes of the parts of a new partition, with one hop."""
    with graph_of(dataset, run) as graph:
        parts = evaluate(graph, partitioned(dataset, graph, k, run), **vars(run)).parts
    columns, width = (
        zip(parts["vertices"] + parts["halo"], parts["volume"], strict=True),
        dataset.task.features,
    )
    return [_bytes(vertices, volume, vertices * width) for vertices, volume in columns]


SomeOptions = TypeVar("SomeOptions", bound=Options)


def of_a_part(options: SomeOptions, dataset: Dataset) -> SomeOptions:
    """Return the options with the batch size of a part, an equal share of that of all parts."""
    if options.batch_size is None:
        return options
    return replace(options, batch_size=-(-options.batch_size // dataset.partition.k))


def needs(dataset: Dataset, options: Options, workers: int) -> list[Need]:
    """Return what each worker takes: one part with its halo at a time, and what training over it computes."""
    task, parts, options = dataset.task, dataset.partition.parts, of_a_part(options, dataset)
    largest = max(_training_bytes(dataset, options, index) for index in range(len(parts)))
    halo = "more parts, or a partition with a lower cut"
    return [
        Need("a part with its halo", max(_bytes_of_parts(dataset)), halo),
        Need("activations of a part", largest, f"a smaller {arg('hidden')} or {arg('batch_size')}"),
        Need("averages of weights", 3 * weights(options, task).size),
        weights(options, task),
        *evaluation(dataset, options, -(-len(parts) // workers)),
    ]


def _training_bytes(dataset: Dataset, options: Options, index: int) -> int:
    task, part, trained = dataset.task, dataset.partition.parts[index], dataset.train_counts[index]
    n = part.num_inner + part.num_halo
    if options.batch_size is None and sampling_of(options.model) == NEIGHBOUR:
        return full_batch(options, task, part.num_rows, n, part.num_edges)
    size = BatchSize.of(options, options.batch_size or trained, trained, n, part.num_edges)
    return sum(need.size for need in batches(options, task, size, 4 * task.features))
