"""The number of parts that fits the memory of a worker, and the graph of a partition directory, partitioned again."""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ....core.calls import full_signature
from ....core.options import NAMES, RunOptions
from ....core.parsing import created
from ....errors import CapacityWarning, MemoryBudgetError, arg
from ....graphs.graph import Graph
from ....graphs.graph_directory import write_beside
from ....graphs.opening import open_graph
from ....measures.evaluate import evaluate
from ....partitions import partitioners
from ....partitions.partition import VertexPartition
from ....partitions.types import range_of_type
from ....store import save
from ....store.manifest import CATEGORIES
from ....store.saving import refuse_unwritable
from ...data.dataset import SPLITS, Dataset
from ...memory import BatchSize, Need, batches, evaluation, full_batch, weights
from ...models import NEIGHBOUR, sampling_of
from ...options import Options
from ...runs.identity import data_of
from ...runs.run_folder import UNKNOWN, RunFolder

DEFAULT = "spring"
"""Partitioner for partitions that are not from fastpart."""

NOT_AGAIN = frozenset({"graph", "k", "balance_on", "degrees", "splits", "split", *NAMES})
"""Parameters that a directory does not hold, or that are set anew."""


@contextmanager
def graph_of(dataset: Dataset, run: RunOptions) -> Iterator[Graph]:
    """Yield the graph of all parts. Its records are collected in a temporary file."""
    manifest = dataset.manifest
    n, m = len(dataset.partition), manifest["m"]
    with tempfile.TemporaryDirectory(prefix="fastpart-", dir=run.tmp_dir) as folder:
        file = Path(folder) / "edges.npy"
        if not m:
            yield open_graph(
                np.empty((0, 2), np.uint32), num_vertices=n, directedness=manifest["directedness"]
            )
            return
        records = created(file, np.uint32, (m, 2))
        for part in dataset.partition.parts:
            end = int(part.indptr[part.num_inner])
            ids = part.edge_ids[:end]
            first = ids < m  # the opposite direction of a record has the id m + record
            rows = np.repeat(np.arange(part.num_inner), np.diff(part.indptr[: part.num_inner + 1]))
            records[ids[first], 0] = part.vertices[part.indices[:end][first]]
            records[ids[first], 1] = part.vertices[rows[first]]
        records.flush()
        del records
        yield open_graph(file, num_vertices=n, directedness=manifest["directedness"], layout="rows")


def partitioned(dataset: Dataset, graph: Graph, k: int, run: RunOptions) -> VertexPartition:
    """Partition into k parts with the partitioner and parameters of the dataset."""
    name = dataset.partition.algorithm
    known = name in partitioners.PARTITIONERS
    function = partitioners.PARTITIONERS[name if known else DEFAULT]
    given: dict[str, Any] = dataset.partition.parameters if known else {}
    taken = set(full_signature(function).parameters) - NOT_AGAIN
    given = {key: value for key, value in given.items() if key in taken}
    if known and partitioners.needs_splits(name):
        given["splits"] = _splits(dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)
        partition = function(graph, k=k, **given, **vars(run))
    assert isinstance(partition, VertexPartition)
    return partition


def regrouped(dataset: Dataset, k: int, out: RunFolder, run: RunOptions) -> Dataset:
    """Return the same graph in k parts: those in ``parts-K`` if they were made of the same, else new ones."""
    name = f"parts-{k}"
    target, made_of = out.path / name, _identity(dataset)
    out.add([f"{name}/"])
    known = out.content.get("parts", {})
    if target.exists():
        if known.get(name) in (made_of, *_by_earlier_versions(target, dataset)):
            return Dataset(target)
        refuse_unwritable(target, "directory", None)
    with (
        graph_of(dataset, run) as graph,
        tempfile.TemporaryDirectory(prefix="fastpart-", dir=run.tmp_dir) as folder,
    ):
        rows = _rows(dataset, Path(folder))
        partition = partitioned(dataset, graph, k, run)
        hops = dataset.manifest["halo_hops"]
        save(partition, target, graph=graph, overwrite=True, halo_hops=hops, **rows, **vars(run))
    out.update(parts={**known, name: made_of})
    return Dataset(target)


def _by_earlier_versions(target: Path, dataset: Dataset) -> tuple[str, ...]:
    """Return how the folder lists parts of versions that knew them by their edges only, if these are the same."""
    same = Dataset(target).manifest.get("checksum") == dataset.manifest.get("checksum")
    return (UNKNOWN,) if same else ()


def _identity(dataset: Dataset) -> str:
    """Return a hash of what the parts are made of: edges, rows and splits, the partitioner and the halo."""
    how = {name: dataset.manifest.get(name) for name in ("algorithm", "parameters", "halo_hops")}
    text = json.dumps([data_of(dataset.path, dataset.manifest), how], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _rows(dataset: Dataset, folder: Path) -> dict[str, Any]:
    """Return features, labels and splits by vertex, and features of edges by record. Features are in files."""
    n, width = len(dataset.partition), dataset.task.features
    file = folder / "features.npy"
    features = created(file, dataset.manifest["features"]["dtype"], (n, width))
    labels: Any = None
    for part in dataset.partition.parts:
        features[part.inner] = part.features
        assert part.labels is not None
        if labels is None:
            labels = np.empty((n, *part.labels.shape[1:]), part.labels.dtype)
        labels[part.inner] = part.labels
    features.flush()
    if (categories := dataset.manifest.get(CATEGORIES)) is not None:
        write_beside(file, categories)
    rows = {"features": file, "labels": labels, "splits": _splits(dataset)}
    return rows | ({"edge_features": _edge_rows(dataset, folder)} if dataset.task.edge_features else {})


def _edge_rows(dataset: Dataset, folder: Path) -> Path:
    """Return a file of the features of edges, by record."""
    m, stated = int(dataset.manifest["m"]), dataset.manifest["edge_features"]
    file = folder / "edge_features.npy"
    shape = (m, *stated["shape"])
    rows = created(file, stated["dtype"], shape)
    for part in dataset.partition.parts:
        assert part.edge_features is not None
        rows[part.edge_ids % max(m, 1)] = part.edge_features
    rows.flush()
    return file


def _splits(dataset: Dataset) -> dict[str, Any]:
    """Return the mask of each split."""
    n = len(dataset.partition)
    splits = {name: np.zeros(n, bool) for name in SPLITS if name in dataset.manifest["splits"]}
    for part in dataset.partition.parts:
        for name, mask in splits.items():
            mask[part.inner] = getattr(part, name)
    return splits


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
