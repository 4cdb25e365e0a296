"""Writes the partition directory. docs/reference/partition-directory.md describes its schema."""

from __future__ import annotations

import io
import os
from collections import defaultdict
from collections.abc import Iterable
from filecmp import clear_cache, cmp
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from .. import _core
from ..core.folders import below, leads_out
from ..core.frames import before_polars_threads
from ..core.options import RunOptions
from ..core.outputs import new_folder
from ..core.parameters import one_line
from ..core.parsing import named
from ..core.rows import STATISTICS, Array, Rows, not_finite
from ..errors import GraphWarning, warn
from ..graphs.graph import Graph
from ..graphs.graph_directory import EDGES, GraphDirectory
from ..graphs.types import TypedRanges
from ..machines.partitioning import Place
from ..machines.parts import WrittenParts
from ..partitions.coding import COLUMNS, EDGE_COLUMNS
from ..partitions.part_files import MANIFEST
from ..partitions.partition import EdgePartition, Partition, VertexPartition
from ..partitions.parts import PART, part_name
from ..partitions.results import Evaluation
from ..partitions.stored_graph import store_ids
from .contents import (
    IDS,
    Contents,
    Gathering,
    Sizes,
    arrays_of_relation,
    arrays_of_type,
    count_types,
    described,
)
from .edge_splits import write_edge_splits
from .manifest import CATEGORIES, Listing, as_json, manifest_bytes, replaced_files
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
    workers: WrittenParts | None = None
    try:
        with new_folder(target, replaced_files(target)) as inside:
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
        if workers is not None:
            workers.remove()
    finally:
        if workers is not None:
            workers.close()


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
    sizes_of_graph = graph.num_vertices, graph.num_edges, graph.directedness
    return entries | _write_rows(write, graph._typed or TypedRanges.without_names(*sizes_of_graph), contents)


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


def _write_rows(write: _Rows, typed: TypedRanges, contents: Contents) -> dict[str, Any]:
    """Write the rows of each type and relation, and return the entries of the manifest."""
    written: dict[str, dict[str, Rows]] = defaultdict(dict)
    for number, each in enumerate(typed.types):
        written[_above("types", each.name)] |= write.all(arrays_of_type(typed, number, contents))
    for of in typed.edge_types:
        written[_above("relations", of.relation.name)] |= write.all(arrays_of_relation(typed, of, contents))
    entries, is_coded = {above: described(rows) for above, rows in written.items()}, False
    for of_each, names, kind, columns in (
        (contents.of_types, ("features", "halo_features"), "types", COLUMNS),
        (contents.of_relations, ("edge_features",), "relations", EDGE_COLUMNS),
    ):
        for name, data in of_each.items():
            if data.features is not None:
                above, coded = _above(kind, name), data.features.coded
                _put_beside(write.inside / above / STATISTICS, data.features.statistics)
                if coded is not None:
                    _put_beside(write.inside / above / columns, coded.columns)
                    known = [each for each in names if each in entries[above]]
                    entries[above] |= dict.fromkeys(known, coded.described())
                    is_coded = True
                if data.features.embedded:
                    entries[above][CATEGORIES] = msgspec.to_builtins(data.features.embedded)
                    is_coded = True
    if not typed.types[0].name:
        return entries[""] | ({"schema": CODED} if is_coded else {})
    content = typed.content
    for kind, of_kind in content.items():
        for entry in of_kind:
            entry |= entries[_above(kind, entry["name"])]
    return content


def _above(kind: str, name: str) -> str:
    """Return the folder of a type or a relation in that of a part, and in the directory."""
    return f"{kind}/{name}/" if name else ""


def _put_beside(file: Path, array: Any) -> None:
    """Write an array that stored features are read with, if there is one."""
    if array is not None:
        with named(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, array)


class _Rows:
    """Sends rows to the parts that hold them."""

    def __init__(
        self, inside: Path, sizes: list[Sizes], listing: Listing, options: RunOptions, graph: Graph
    ) -> None:
        self.inside, self._sizes = inside, sizes
        self._listing, self._options = listing, options
        self._graph, self._looked_at = graph, list[Rows]()

    def all(self, arrays: Iterable[Gathering]) -> dict[str, Rows]:
        """Write arrays, and return their rows by the entries of the manifest."""
        written = {}
        for array in arrays:
            self._write(array)
            self._listing.add()
            written[array.key] = array.rows
        return written

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


_NUMBERS = {"edge_ids.npy", "edge_reverse.npy", "halo_rows.npy"}
"""Files with numbers that records and vertices have elsewhere: in the list of records, in other parts."""


def keep_unchanged(inside: Path, target: Path, partition: Partition) -> list[int]:
    """Link the files of ``target`` that ``inside`` has with the same content, and return the parts that differ.

    Ids of records do not count: those of the second directions of edges grow with the number of records. Nor do the
    rows of the halo: they shift where a vertex enters or leaves another part.
    A file that is kept has its old inode and time of change, so a copy of the directory is updated without it.
    """
    clear_cache()
    return [
        part
        for part, old in enumerate(partition.parameters["old_parts"])
        if not _keep(inside / part_name(part), None if old is None else target / part_name(old))
    ]


def _keep(new: Path, old: Path | None) -> bool:
    """Link the equal files of the folder of a part. Return whether nothing but numbers differs."""
    names = set(below(new))
    if old is None or not (old / PART).is_file():
        return False
    kept = {name for name in names if not leads_out(old / name, old.parent) and _link(old / name, new / name)}
    return names - _NUMBERS == set(below(old)) - _NUMBERS and names - kept <= _NUMBERS


def _link(old: Path, new: Path) -> bool:
    """Put a link to the old file in the place of the new one, if they are equal. Return whether they are."""
    with named(old):
        if old.is_symlink() or not old.is_file() or not cmp(old, new, shallow=False):
            return False
    link = new.with_name(f".{new.name}.kept")
    try:
        os.link(old, link)
    except OSError:  # the file system has no links: the new file is as good
        return True
    os.replace(link, new)
    return True


class NotFinite:
    """The rows of an array that hold NaN or an infinite number."""

    def __init__(self, array: Gathering) -> None:
        self._array = array
        self._seen = self._count = self._first = 0

    def add(self, chunk: Array) -> None:
        """Look at the next rows."""
        found = not_finite(chunk)
        if len(found):
            self._first = self._first if self._count else self._seen + int(found[0])
            self._count += len(found)
        self._seen += len(chunk)

    def warn(self, graph: Graph) -> None:
        """Warn of the rows, if there are any, and name the first one."""
        if not self._count:
            return
        folder, key = self._array.name.rpartition("/")[0], self._array.key
        kind, _, name = folder.partition("/")
        about = f"{kind[:-1]} {name!r}: " if folder else ""
        first = f"record {self._first}"
        if key == "features":
            first = f"vertex {self._first}{_own_id(graph, name, self._first)}"
        rows = "the row of" if self._count == 1 else f"{self._count} rows, the first of them of"
        warn(
            f"{about}{key}: {rows} {first} has NaN or infinite numbers. A network has no outputs where they reach. "
            "Replace them before you train",
            GraphWarning,
        )


def _own_id(graph: Graph, of_type: str, vertex: int) -> str:
    """Return the id that a vertex of a type had in tables, in parentheses. Nothing if it had none."""
    if graph.directory is None:
        return ""
    directory = GraphDirectory(graph.directory)
    own = directory.own_id(of_type or next(iter(directory.types)), vertex)
    return "" if own is None else f" (id {one_line(str(own), 40)!r})"
