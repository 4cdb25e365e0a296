"""The last stages: what the tables say of vertices and records, and the graph directory with its name.

Features, labels, splits, times and weights come from the columns of the tables, file by file.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from .... import _core
from ....core.folders import below
from ....core.notes import log
from ....core.outputs import new_folder
from ....core.pairs import distinct, mixed
from ....core.parameters import shown
from ....core.parsing import created
from ....errors import GraphFormatError
from ...graph import Graph, open_records
from ...graph_directory import EDGES, MARKER, RELATION_FILES, cuts, name_of
from ...sidecars import Sidecar
from ...types import Reverse, TypedRanges, default_reverse
from ...weights import Weights, scaled
from ..catalog import Catalog, RelationTable
from ..columns import DESCRIPTION, RelationColumns, VertexColumns
from ..columns.rows import LEFT_OUT, opened, replacing
from .job import Job, NumberedType, Unit
from .records import RECORD, Records

Slots = npt.NDArray[np.uint32] | npt.NDArray[np.int64] | slice
"""The vertices or records of some rows."""

_BLOCK_BYTES = 8 << 20
"""Bytes of rows that are hashed at a time."""

_VERTICES = 1 << 20
"""Vertices that are looked at at a time."""


def write_vertex_attributes(job: Job, types: Mapping[str, NumberedType]) -> dict[str, dict[str, Any]]:
    """Write the attributes of all types into their folders, and return what is known of them."""
    found = {}
    for name, table in job.catalog.vertices.items():
        columns = VertexColumns(table, types[name].n)
        if not columns.wanted or table.reader is None:
            continue
        folder = job.path("graph", "types", name, "features.npy").parent
        rows = np.memmap(job.path("types", name, "rows.u32"), np.uint32, "r") if table.reader.rows else None
        attributes = _Attributes(
            job, f"types/{name}", columns, folder, len(table.reader.files), _vertices_of(rows), types[name].n
        )
        for unit in attributes.todo(job.units[f"vertices/{name}"]):
            assert rows is not None
            for each in unit.slices:
                vertices = rows[each.first : each.first + each.rows]
                columns.write(folder, each.file, vertices, each.start, each.stop)
        found[name] = attributes.finish()
    return found


def _vertices_of(rows: npt.NDArray[np.uint32] | None) -> Callable[[Unit], Slots]:
    """Return what tells the vertices of the rows of a unit."""

    def vertices(unit: Unit) -> Slots:
        assert rows is not None
        given = rows[unit.first : unit.first + unit.rows]
        return np.array(given[given != LEFT_OUT])

    return vertices


def write_record_attributes(job: Job, records: list[Records]) -> dict[str, dict[str, Any]]:
    """Write the attributes of all relations into their folders, and return what is known of them."""
    found = {}
    for each in records:
        name = each.relation.name
        columns = RelationColumns(each.relation, each.m)
        if not columns.wanted:
            continue
        folder = job.path("graph", "relations", name, "features.npy").parent
        attributes = _Attributes(
            job, f"relations/{name}", columns, folder, len(each.relation.reader.files), each.of_unit, each.m
        )
        for unit in attributes.todo(job.units[f"relations/{name}"]):
            for piece in unit.slices:
                first, kept = each.of_slice(unit, piece)
                columns.write(folder, piece.file, first, kept, piece.start, piece.stop)
        found[name] = attributes.finish()
    return found


class _Attributes:
    """The arrays of one type or relation, and what the journal tells of them."""

    def __init__(
        self,
        job: Job,
        name: str,
        columns: VertexColumns | RelationColumns,
        folder: Path,
        files: int,
        slots: Callable[[Unit], Slots],
        count: int,
    ) -> None:
        self.job, self.name, self.columns, self.folder, self.files = job, name, columns, folder, files
        self.slots, self.count = slots, count

    def todo(self, units: Sequence[Unit]) -> Iterator[Unit]:
        """Yield the units whose rows have to be written. Each is noted as done when the next one is asked for."""
        journal = self.job.journal
        if journal.done("columns", self.name) is not None:
            return
        (self.folder / DESCRIPTION).unlink(missing_ok=True)
        self._begin(units)
        for unit in units:
            if journal.done(*self._noted(unit)) is None:
                yield unit
                arrays = self.columns.files(self.folder)
                rows = [_hash_of_rows(array, self.slots(unit)) for array in arrays]
                journal.add(*self._noted(unit), counts={"rows": rows})
            self.job.advance("attributes", 0)

    def _noted(self, unit: Unit) -> tuple[str, str]:
        """Return stage and name of a unit in the journal."""
        return "attributes", f"{self.name}/{unit.name}"

    def _begin(self, units: Sequence[Unit]) -> None:
        """Create the arrays, if they are not there. Begin again if one is damaged: its rows are those of all units."""
        journal, surveys = self.job.journal, self._surveys()
        noted = [unit for unit in units if journal.done(*self._noted(unit)) is not None]
        self.columns.begin(self.folder, surveys, anew=not noted)
        if noted and not self._are_whole(units, noted):
            log.info("%s: the arrays of %s are damaged. They are made again", shown(self.folder), self.name)
            journal.forget([*map(self._noted, noted), ("columns", self.name)])
            self.columns.begin(self.folder, surveys, anew=True)

    def _are_whole(self, units: Sequence[Unit], noted: list[Unit]) -> bool:
        """Return whether the rows of some units are those that were written, and the rows of no unit are still 0."""
        arrays = self.columns.files(self.folder)
        for unit in noted:
            done = self.job.journal.done(*self._noted(unit))
            if done is None or done["rows"] != [_hash_of_rows(array, self.slots(unit)) for array in arrays]:
                return False
        return not any(
            block.count(0) < len(block)
            for places in self._unwritten(units)
            for array in arrays
            for block in _rows_of(array, places)
        )

    def _unwritten(self, units: Sequence[Unit]) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the vertices that no unit writes. Each record is written by some unit."""
        if isinstance(self.columns, RelationColumns):
            return
        unwritten = np.ones(self.count, np.bool_)
        for unit in units:
            unwritten[self.slots(unit)] = False
        for start in range(0, self.count, _VERTICES):
            yield np.flatnonzero(unwritten[start : start + _VERTICES]) + start

    def finish(self) -> dict[str, Any]:
        """Complete the arrays, and return what is known of them."""
        told = self.job.journal.done("columns", self.name)
        if told is None:
            told = self.columns.finish(self.folder, self._surveys())
            told = self.job.journal.add("columns", self.name, sorted(self.folder.iterdir()), told)
        return told

    def _surveys(self) -> list[dict[str, Any]]:
        journal, surveys = self.job.journal, []
        for number in range(self.files):
            survey = journal.done("survey", f"{self.name}/{number}")
            if survey is None:
                survey = journal.add("survey", f"{self.name}/{number}", (), self.columns.survey(number))
            surveys.append(survey)
        return surveys


def _hash_of_rows(array: Path, slots: Slots) -> str:
    """Return a hash of the head of an array and of some of its rows."""
    head = array.stat().st_size - opened(array).nbytes
    with array.open("rb") as file:
        hashes = [_core.hash_bytes(file.read(head))]
    hashes += [_core.hash_bytes(block) for block in _rows_of(array, slots)]
    return _core.hash_bytes("".join(hashes).encode())


def _rows_of(array: Path, slots: Slots) -> Iterator[bytes]:
    """Yield the bytes of some rows of an array, a few megabytes at a time."""
    rows = opened(array)
    rows = rows[slots] if isinstance(slots, slice) else rows
    places = None if isinstance(slots, slice) else slots
    step = max(_BLOCK_BYTES // max(rows.nbytes // max(len(rows), 1), 1), 1)
    for start in range(0, len(rows) if places is None else len(places), step):
        block = rows[start : start + step] if places is None else rows[places[start : start + step]]
        yield block.tobytes()


_BLOCK = 1 << 20
"""Values in memory at a time."""

_COPIED = 8 << 20
"""Bytes of records that are copied at a time."""


def finish(
    job: Job,
    types: Mapping[str, NumberedType],
    records: list[Records],
    attributes: Mapping[str, Mapping[str, dict[str, Any]]],
) -> None:
    """Complete the graph directory and give it its name."""
    edges = job.graph / "edges.bin"
    described = _describe(job, types, records, attributes, edges)
    n = sum(each.n for each in types.values())
    directedness = job.catalog.schema.directedness
    graph = open_records(edges, dtype="u32", num_vertices=n, directedness=directedness, weights=False)
    _, checksum = graph.identify(job.run)
    weights = _write_weights(job, records, graph)
    _write_times(job, records)
    typed = TypedRanges.of(described["types"], described["relations"], n, graph.num_edges, directedness)
    Sidecar("u32", n, graph.num_edges, directedness, checksum, weights, typed=typed).write(edges)
    del graph
    for each in described["relations"]:
        if dropped := each["nulls"] + each["missing"]:
            log.info(
                "%s: dropped %s, %s for a null id and %s for an id that no table declares",
                each["name"],
                f"{dropped:,} record{'s' if dropped != 1 else ''}",
                f"{each['nulls']:,}",
                f"{each['missing']:,}",
            )
        if each["repeated"] and job.catalog.relations[each["name"]].entry.time is None:
            log.info(
                "%s: %s of %s records have the source and target of an earlier one. Each stays an edge of its own",
                each["name"],
                f"{'' if each['m'] <= COUNTED else 'about '}{each['repeated']:,}",
                f"{each['m']:,}",
            )
    for name, count in isolated(job.catalog, types, records, edges).items():
        log.info(
            "%s: %s in no record, because `missing: drop` dropped all that %s",
            name,
            f"{count:,} {'vertex is' if count == 1 else 'vertices are'}",
            "names it" if count == 1 else "name them",
        )
    if job.settings["shards"]:
        described["shards"] = _write_shards(job, job.settings["shards"], records)
    _place(job, _names(job, types, records), described)


def _describe(
    job: Job,
    types: Mapping[str, NumberedType],
    records: list[Records],
    attributes: Mapping[str, Mapping[str, dict[str, Any]]],
    edges: Path,
) -> dict[str, Any]:
    schema = job.catalog.schema
    of_types = [
        {
            "name": each.name,
            "n": each.n,
            "declared": 0 if (reader := job.catalog.vertices[each.name].reader) is None else reader.rows,
            "ids": str(job.catalog.vertices[each.name].dtype),
            **attributes["types"].get(each.name, {}),
        }
        for each in types.values()
    ]
    of_relations = [
        {
            "name": each.relation.name,
            "source": each.relation.source,
            "target": each.relation.target,
            "m": each.m,
            "reverse": _reverse(each.relation, schema.directedness),
            "nulls": each.nulls,
            "missing": each.missing,
            "repeated": repeated(each, edges),
            **attributes["relations"].get(each.relation.name, {}),
        }
        for each in records
    ]
    return {
        "fastpart": 1,
        "version": _core.__version__,
        "directedness": schema.directedness,
        "types": of_types,
        "relations": of_relations,
        "schema": msgspec.to_builtins(schema, enc_hook=lambda frame: type(frame).__name__),
    }


def _reverse(relation: RelationTable, directedness: str) -> Reverse:
    told = relation.entry.reverse
    return default_reverse(relation.source, relation.target, directedness) if told is None else told


def _write_weights(job: Job, records: list[Records], graph: Graph) -> dict[str, Any] | None:
    """Write the weights of all records, scaled. Those of relations without weights are 1."""
    files = [job.graph / "relations" / each.relation.name / "weights.npy" for each in records]
    if not any(file.exists() for file in files) or not graph.num_edges:
        return None
    target = Weights.beside(job.graph / "edges.bin")
    raw = created(job.path("weights.f64"), "<f8", (graph.num_edges,))
    _combine(records, files, raw, 1)
    values, scale = scaled(raw, "weight")
    if not values.any():
        names = ", ".join(
            each.relation.name for each, file in zip(records, files, strict=True) if file.exists()
        )
        raise GraphFormatError(
            f"relations.{names}.weight: all weights are 0, so no record would count. Leave them out"
        )
    with replacing(target) as new, new.open("wb") as written:
        np.save(written, values)
    opened = open_records(
        job.graph / "edges.bin", dtype="u32", num_vertices=graph.num_vertices, weights=target
    )
    weights = opened._weights
    return None if weights is None else {"scale": scale, "checksum": weights.checksum}


def _write_times(job: Job, records: list[Records]) -> None:
    """Write the times of all records in one file. Records of relations without times have the smallest number."""
    files = [job.graph / "relations" / each.relation.name / "times.npy" for each in records]
    if not any(file.exists() for file in files):
        return
    m = records[-1].first + records[-1].m
    with replacing(job.graph / "edges.bin.times.npy") as new:
        times = created(new, "<i8", (m,))
        _combine(records, files, times, np.iinfo(np.int64).min)
        times.flush()


def _combine(records: list[Records], files: list[Path], rows: npt.NDArray[Any], missing: int) -> None:
    """Write rows of all relations one after the other. ``missing`` stands for those of relations without a file."""
    for each, file in zip(records, files, strict=True):
        given = np.load(file, mmap_mode="r") if file.exists() else None
        for start in range(0, each.m, _BLOCK):
            stop = min(start + _BLOCK, each.m)
            rows[each.first + start : each.first + stop] = missing if given is None else given[start:stop]


def _write_shards(job: Job, count: int, records: list[Records]) -> list[str]:
    """Write the records as several files, too. Those of ``edges.bin`` then stay behind."""
    names = []
    with (job.graph / EDGES).open("rb") as edges:
        for number, (first, end) in enumerate(cuts(records[-1].first + records[-1].m, count)):
            names.append(name_of(number))
            with replacing(job.graph / names[-1]) as new, new.open("wb") as shard:
                edges.seek(first * RECORD)
                left = (end - first) * RECORD
                while left and (block := edges.read(min(left, _COPIED))):
                    shard.write(block)
                    left -= len(block)
    return names


def _names(job: Job, types: Mapping[str, NumberedType], records: list[Records]) -> dict[str, Path]:
    """Return the files of the directory by their names in it. Those of a single type or relation lie at its top."""
    names = {name: job.graph / name for name in below(job.graph)}
    if job.settings["shards"]:
        del names[EDGES]
    for each in records:
        for combined in ("weights.npy", "times.npy", DESCRIPTION):
            names.pop(f"relations/{each.relation.name}/{combined}", None)
    for name in types:
        names.pop(f"types/{name}/{DESCRIPTION}", None)
    if len(types) == 1:
        names = {_at_top(name, "types", {}): file for name, file in names.items()}
    if len(records) == 1:
        names = {_at_top(name, "relations", RELATION_FILES): file for name, file in names.items()}
    return names


def _at_top(name: str, kind: str, known: Mapping[str, str]) -> str:
    """Return the name of a file of ``kind/NAME/`` at the top of the directory. Others keep theirs."""
    parts = name.split("/")
    return known.get(parts[2], parts[2]) if parts[0] == kind and len(parts) == 3 else name


def _place(job: Job, names: Mapping[str, Path], described: dict[str, Any]) -> None:
    """Put the directory in its place, in one step. Until then the work folder keeps every file."""
    with new_folder(job.out, job.owned) as target:
        for name, file in names.items():
            there = target / name
            there.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(file, there)
            except OSError:  # a file system without links
                shutil.copyfile(file, there)
        content = json.dumps({**described, "files": sorted(names)}, indent=1)
        _core.write_file(target / MARKER, content.encode())


COUNTED = 1 << 20
"""Records up to which repeated ones are counted. A sample of about this number of pairs estimates more."""

_PAIRS = 1 << 18
"""Records in memory at a time."""

_WEIGHED = 1 << 26
"""Vertices that are looked for at a time, a byte each."""


def repeated(records: Records, edges: Path) -> int:
    """Return how many records have the source and target of an earlier one, of many records about how many.

    The sample takes pairs by a hash of both ends. So it has all records of a pair, or none.
    """
    shift = max(-(-records.m // COUNTED) - 1, 0).bit_length()
    known = np.empty(0, np.uint64)
    waiting: list[npt.NDArray[np.uint64]] = []
    total = 0
    for block in _blocks(records, edges):
        pairs = block[mixed(block) >> np.uint64(64 - shift) == 0] if shift else block
        total += len(pairs)
        waiting.append(pairs)
        if sum(map(len, waiting)) > COUNTED:
            known, waiting = distinct(np.concatenate([known, *waiting])), []
    known = distinct(np.concatenate([known, *waiting]))
    return (total - len(known)) << shift


def isolated(
    catalog: Catalog, types: Mapping[str, NumberedType], records: Sequence[Records], edges: Path
) -> dict[str, int]:
    """Return how many vertices are in no record, of types whose ids come from records that were dropped."""
    found = {}
    for name, numbered in types.items():
        mine = [each for each in records if name in (each.relation.source, each.relation.target)]
        if catalog.vertices[name].reader is not None or not any(each.missing for each in mine):
            continue
        count = 0
        for start in range(numbered.first, numbered.first + numbered.n, _WEIGHED):
            seen = np.zeros(min(_WEIGHED, numbered.first + numbered.n - start), np.bool_)
            for each in mine:
                for block in _blocks(each, edges):
                    ends = block.view(np.uint32).astype(np.int64) - start
                    seen[ends[(ends >= 0) & (ends < len(seen))]] = True
            count += len(seen) - int(seen.sum())
        if count:
            found[name] = count
    return found


def _blocks(records: Records, edges: Path) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the records of a relation, each pair of numbers of 32 bits as one number of 64."""
    for start in range(0, records.m, _PAIRS):
        count = min(_PAIRS, records.m - start)
        yield np.fromfile(edges, "<u8", count, offset=(records.first + start) * RECORD)
