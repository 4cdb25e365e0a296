"""Writes the partition directory. docs/reference/partition-directory.md describes its schema."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from .. import _core
from ..core.forks import before_polars_threads
from ..core.options import RunOptions
from ..core.parsing import named
from ..core.rows import Rows
from ..core.standardising import STATISTICS
from ..graphs.graph import Graph
from ..graphs.graph_directory import EDGES
from ..graphs.types import TypedRanges
from ..machines.partitioning import Place
from ..machines.parts import WrittenParts
from ..partitions.coding import COLUMNS, EDGE_COLUMNS
from ..partitions.part_files import MANIFEST
from ..partitions.partition import EdgePartition, Partition, VertexPartition
from ..partitions.parts import PART, part_name
from ..partitions.results import Evaluation
from ..partitions.stored_ids import store_ids
from .arrays import (
    IDS,
    Gathering,
    Sizes,
    arrays_of_relation,
    arrays_of_type,
    count_types,
    described,
    plain_arrays,
)
from .contents import Contents
from .edge_splits import write_edge_splits
from .manifest import CATEGORIES, Listing, as_json, manifest_bytes, replaced_files
from .not_finite import NotFinite
from .reusing import keep_unchanged
from .schemas import CODED, SCHEMA, TYPED, caps_of

RUN_OPTIONS = "run.toml"
"""The file with the options of the command that made a partition."""


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
    place: Place | None = None,
    run_options: bytes | None = None,
) -> None:
    """Write the directory under a temporary name, and rename it when it is complete. Workers may write its parts.

    ``run_options`` is the content of a file with the options of the command that made the partition.
    """
    manifest: dict[str, Any] = {"schema": SCHEMA, "fastpart": _core.__version__, **identity(partition)}
    directory = _core.AtomicDir(target, replaced_files(target))
    workers: WrittenParts | None = None
    try:
        inside = Path(directory.path)
        listing = Listing(inside, options)
        _core.write_npy(inside / "assignment.npy", partition.assignment, options)
        if run_options is not None:
            _put(inside / RUN_OPTIONS, run_options)
        if graph is not None and evaluation is not None and contents is not None:
            manifest |= _describe(graph, evaluation, options)
            if place is not None:
                given = (partition.assignment, partition.k, contents.halo_hops)
                workers = WrittenParts(place, graph, *given)
            manifest |= _write_parts(inside, partition, graph, contents, options, listing, workers)
            if isinstance(partition, VertexPartition):
                manifest |= store_ids(inside, graph._id_tables)
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
        if workers is not None:
            workers.remove()
    finally:
        if workers is not None:
            workers.close()
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
        # A folder has a size of its own, which depends on the file system.
        records = graph.path / EDGES if graph.path.is_dir() else graph.path
        described["input"] = {"path": name, "bytes": records.stat().st_size}
    return described


def _write_parts(
    inside: Path,
    partition: Partition,
    graph: Graph,
    contents: Contents,
    options: RunOptions,
    listing: Listing,
    workers: WrittenParts | None,
) -> dict[str, Any]:
    """Write the folders of the parts, and return their entries of the manifest."""
    entries: dict[str, Any] = {}
    given = (graph._source, partition.assignment, partition.k)
    how: dict[str, Any] = {"directedness": graph.directedness, "into": inside, "options": options}
    if isinstance(partition, EdgePartition):
        sizes = _core.write_edge_parts(*given, **how)
    else:
        entries["halo_hops"] = contents.halo_hops
        if workers is not None:
            sizes, facts = workers.write(inside, options)
            listing.know(facts)
        else:
            relations = graph._directions
            sizes = _core.write_vertex_parts(*given, relations=relations, halo_hops=contents.halo_hops, **how)
    if graph._typed is not None:
        entries |= _count_types(inside, graph._typed, sizes)
    _write_sizes(inside, sizes)
    if contents.held_out is not None:
        shape: dict[str, Any] = {
            "directedness": graph.directedness,
            "m": graph.num_edges,
            "halo_hops": contents.halo_hops,
        }
        if graph._typed is not None:
            shape |= {"schema": TYPED, **graph._typed.content}
        held_out = contents.held_out
        entries["edge_splits"] = write_edge_splits(
            inside, shape, partition.assignment, held_out, sizes, graph._typed
        )
        if contents.held_out_from is not None:
            entries["held_out_from"] = contents.held_out_from
        _write_sizes(inside, sizes)
    listing.add()
    write = _Rows(inside, sizes, listing, options, graph)
    if graph._typed is not None:
        return entries | _write_typed(write, graph._typed, contents)
    entries |= write.all(plain_arrays(contents))
    coded = _describe_features(inside, contents, entries)
    return entries | coded | ({"schema": CODED} if coded else {})


def _count_types(inside: Path, typed: TypedRanges, sizes: list[Sizes]) -> dict[str, Any]:
    """Add to all sizes how much is of each type, and return the number of directed edges for the manifest."""
    edges = 0
    for index, size in enumerate(sizes):
        count_types(inside / part_name(index), size, typed)
        degree = np.load(inside / part_name(index) / "degree.npy", mmap_mode="r")
        edges += int(degree[: size["num_inner"]].sum())
    return {"schema": TYPED, "num_directed_edges": edges}


def _write_sizes(inside: Path, sizes: list[Sizes]) -> None:
    for index, size in enumerate(sizes):
        _put(inside / part_name(index) / PART, as_json(size))


def _write_typed(write: _Rows, typed: TypedRanges, contents: Contents) -> dict[str, Any]:
    """Write the rows of each type and relation, and return the entries of the manifest."""
    content = typed.content
    for number, entry in enumerate(content["types"]):
        of_type = contents.of_types[entry["name"]]
        entry |= write.all(arrays_of_type(typed, number, of_type))
        entry |= _describe_features(write.inside, of_type, entry, f"types/{entry['name']}/")
    entries = {entry["name"]: entry for entry in content["relations"]}
    for each in typed.edge_types:
        of_relation = contents.of_relations[each.relation.name]
        entries[each.relation.name] |= write.all(arrays_of_relation(typed, each, of_relation))
    for name, entry in entries.items():
        entry |= _describe_features(write.inside, contents.of_relations[name], entry, f"relations/{name}/")
    return content


def _describe_features(
    inside: Path, contents: Contents, described: Mapping[str, Any], above: str = ""
) -> dict[str, Any]:
    """Write what coded or standardised features are read with, and return the entries of those with codes."""
    entries: dict[str, Any] = {}
    for features, names, columns in (
        (contents.features, ("features", "halo_features"), COLUMNS),
        (contents.edge_features, ("edge_features",), EDGE_COLUMNS),
    ):
        if features is None:
            continue
        coded = features.coded
        for file, array in {
            columns: None if coded is None else coded.columns,
            STATISTICS: features.statistics,
        }.items():
            if array is not None:
                target = inside / f"{above}{file}"
                with named(target):
                    target.parent.mkdir(parents=True, exist_ok=True)
                    np.save(target, array)
        if coded is not None:
            entries |= dict.fromkeys([name for name in names if name in described], coded.described())
        if features.embedded:
            entries[CATEGORIES] = msgspec.to_builtins(features.embedded)
    return entries


class _Rows:
    """Sends rows to the parts that hold them."""

    def __init__(
        self, inside: Path, sizes: list[Sizes], listing: Listing, options: RunOptions, graph: Graph
    ) -> None:
        self.inside, self._sizes = inside, sizes
        self._listing, self._options = listing, options
        self._graph, self._looked_at = graph, list[Rows]()

    def all(self, arrays: Iterable[Gathering]) -> dict[str, Any]:
        """Write arrays, and return their entries of the manifest."""
        written = {}
        for array in arrays:
            self._write(array)
            self._listing.add()
            written[array.key] = array.rows
        return described(written)

    def _write(self, array: Gathering) -> None:
        folders = [self.inside / part_name(index) for index in range(len(self._sizes))]
        file, rows = f"{array.name}.npy", array.rows
        for folder in folders:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
        gatherer = _core.RowGatherer(
            self.inside,
            file,
            ids=array.ids,
            ranges=array.ranges(self.inside, self._sizes),
            first=array.first,
            num_rows=len(rows),
            dtype=rows.dtype,
            row_shape=rows.shape[1:],
            options=self._options,
        )
        # Halos and reverse relations have the same rows once more.
        new = array.key in ("features", "edge_features") and all(rows is not each for each in self._looked_at)
        found = NotFinite(array) if new else None
        for chunk in rows.chunks():
            gatherer.push(chunk, self._options)
            if found is not None:
                found.add(chunk)
        gatherer.finish(self._options)
        if found is not None:
            self._looked_at.append(rows)
            found.warn(self._graph)
        for folder in folders:
            (folder / IDS).unlink(missing_ok=True)


def _put(file: Path, content: bytes) -> None:
    """Write a file of a directory that is still under its temporary name."""
    with named(file):
        file.write_bytes(content)
