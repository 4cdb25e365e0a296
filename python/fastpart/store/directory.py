"""Writes the partition directory. docs/reference/partition-directory.md describes its schema."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from ..core.forks import before_polars_threads
from ..core.options import RunOptions
from ..core.parsing import named
from ..core.rows import Rows
from ..core.standardising import STATISTICS
from ..graphs.graph import Graph
from ..partitions.coding import COLUMNS
from ..partitions.part_files import MANIFEST
from ..partitions.partition import EdgePartition, Partition
from ..partitions.parts import PART, part_name
from ..partitions.results import Evaluation
from .coding import Features
from .contents import Contents
from .edge_splits import write_edge_splits
from .manifest import Listing, as_json, manifest_bytes, replaced_files
from .reusing import keep_unchanged
from .schemas import CODED, SCHEMA, caps_of

Sizes = dict[str, Any]


def identity(partition: Partition) -> dict[str, Any]:
    """Return the entries of a manifest that identify the partition and its graph."""
    return {
        "of": partition.of,
        "algorithm": partition.algorithm,
        "parameters": partition.parameters,
        "k": partition.k,
        "caps": caps_of(partition),
        "n": partition.num_vertices,
        "m": partition.num_edges,
        "loops": partition.loops,
        "checksum": partition.checksum,
    }


def write_directory(
    target: Path,
    partition: Partition,
    options: RunOptions,
    evaluation: Evaluation | None,
    graph: Graph | None,
    contents: Contents | None,
) -> None:
    """Write the directory under a temporary name, and rename it when it is complete."""
    manifest: dict[str, Any] = {"schema": SCHEMA, "fastpart": _core.__version__, **identity(partition)}
    directory = _core.AtomicDir(target, replaced_files(target))
    try:
        inside = Path(directory.path)
        listing = Listing(inside, options)
        _core.write_npy(inside / "assignment.npy", partition.assignment, options)
        if graph is not None and evaluation is not None and contents is not None:
            manifest |= _describe(graph, evaluation, options)
            manifest |= _write_parts(inside, partition, graph, contents, options, listing)
            buffer = io.BytesIO()
            before_polars_threads("metrics.parquet")
            evaluation.parts.write_parquet(buffer)
            _put(inside / "metrics.parquet", buffer.getvalue())
            if partition.algorithm == "update":
                manifest["changed_parts"] = keep_unchanged(inside, target, partition)
            graph.check_unchanged()
        listing.add()
        _put(inside / MANIFEST, manifest_bytes(manifest | {"files": listing.files}))
        directory.commit()
    finally:
        directory.discard()


def _describe(graph: Graph, evaluation: Evaluation, options: RunOptions) -> dict[str, Any]:
    n, m = graph.num_vertices, graph.num_edges
    loops, checksum = graph.identify(options)
    described = {
        "n": n,
        "m": m,
        "loops": loops,
        "checksum": checksum,
        "directedness": graph.directedness,
        "num_directed_edges": 2 * m - loops if graph.directedness == "undirected" else m,
        "summary": evaluation.summary.row(0, named=True),
    }
    if graph.path is not None:
        name = os.fsencode(graph.path).decode(errors="replace")
        described["input"] = {"path": name, "bytes": graph.path.stat().st_size}
    return described


def _write_parts(
    inside: Path,
    partition: Partition,
    graph: Graph,
    contents: Contents,
    options: RunOptions,
    listing: Listing,
) -> dict[str, Any]:
    """Write the folders of the parts, and return their entries of the manifest."""
    described: dict[str, Any] = {}
    given = (graph._source, partition.assignment, partition.k)
    how: dict[str, Any] = {"directedness": graph.directedness, "into": inside, "options": options}
    if isinstance(partition, EdgePartition):
        sizes = _core.write_edge_parts(*given, **how)
    else:
        described["halo_hops"] = contents.halo_hops
        sizes = _core.write_vertex_parts(*given, halo_hops=contents.halo_hops, **how)
    for index, size in enumerate(sizes):
        _put(inside / part_name(index) / PART, as_json(size))
    if contents.held_out is not None:
        shape = {"directedness": graph.directedness, "m": graph.num_edges, "halo_hops": contents.halo_hops}
        held_out = contents.held_out
        described["edge_splits"] = write_edge_splits(inside, shape, partition.assignment, held_out, sizes)
        for index, size in enumerate(sizes):
            _put(inside / part_name(index) / PART, as_json(size))
    listing.add()
    for name, ids, span, rows in _arrays(contents):
        ranges = [span(size) for size in sizes]
        _gather(inside, name, ids, ranges, rows, options)
        listing.add()
        if name not in contents.masks:
            described[name] = {"dtype": rows.dtype.name, "shape": list(rows.shape[1:])}
    if contents.masks:
        described["splits"] = list(contents.masks)
    if contents.features is not None:
        names = [name for name in ("features", "halo_features") if name in described]
        described |= _describe_features(inside, contents.features, names)
    return described


def _describe_features(inside: Path, features: Features, names: Sequence[str]) -> dict[str, Any]:
    """Write what coded or standardised features are read with, and return their entries of the manifest."""
    coded, described = features.coded, dict[str, Any]()
    if coded is not None:
        described = {"schema": CODED, **dict.fromkeys(names, coded.described())}
    for file, array in {
        COLUMNS: None if coded is None else coded.columns,
        STATISTICS: features.statistics,
    }.items():
        if array is not None:
            with named(inside / file):
                np.save(inside / file, array)
    return described


def _arrays(contents: Contents) -> Iterator[tuple[str, str, Callable[[Sizes], tuple[int, int]], Rows]]:
    """Yield the name, the file of ids, the range of these ids in a part, and the rows of each array."""
    features = None if contents.features is None else contents.features.rows
    of_vertices = {"features": features, "labels": contents.labels, "times": contents.times, **contents.masks}
    for name, rows in of_vertices.items():
        if rows is not None:
            yield name, "vertices.npy", lambda size: (0, size["num_inner"]), rows
    if contents.halo_features and features is not None:
        yield "halo_features", "vertices.npy", _halo, features
    if contents.edge_features is not None:
        yield "edge_features", "edge_ids.npy", _edges, contents.edge_features
    if contents.edge_times is not None:
        yield "edge_times", "edge_ids.npy", _edges, contents.edge_times


def _edges(size: Sizes) -> tuple[int, int]:
    return 0, size["num_edges"]


def _halo(size: Sizes) -> tuple[int, int]:
    return size["num_inner"], size["num_inner"] + sum(size["num_halo"])


def _gather(
    inside: Path, name: str, ids: str, ranges: list[tuple[int, int]], rows: Rows, options: RunOptions
) -> None:
    gatherer = _core.RowGatherer(
        inside,
        f"{name}.npy",
        ids=ids,
        ranges=ranges,
        num_rows=len(rows),
        dtype=rows.dtype,
        row_shape=rows.shape[1:],
        options=options,
    )
    for chunk in rows.chunks():
        gatherer.push(chunk, options)
    gatherer.finish(options)


def _put(file: Path, content: bytes) -> None:
    """Write a file of a directory that is still under its temporary name."""
    with named(file):
        file.write_bytes(content)
