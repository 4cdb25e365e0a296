"""Partition the graph of a partition directory again."""

from __future__ import annotations

import hashlib
import inspect
import json
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ....core.options import NAMES, RunOptions
from ....errors import CapacityWarning
from ....graphs.graph import Graph
from ....graphs.graph_directory import write_beside
from ....graphs.opening import open_graph
from ....partitions import partitioners
from ....partitions.partition import VertexPartition
from ....store import save
from ....store.manifest import CATEGORIES
from ....store.saving import refuse_unwritable
from ...data import SPLITS, Dataset
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
        records = np.lib.format.open_memmap(file, "w+", np.dtype(np.uint32), (m, 2))
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
    taken = set(inspect.signature(function).parameters) - NOT_AGAIN
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
    features = np.lib.format.open_memmap(
        file, "w+", np.dtype(dataset.manifest["features"]["dtype"]), (n, width)
    )
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
    rows = np.lib.format.open_memmap(file, "w+", np.dtype(stated["dtype"]), shape)
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
