"""Features, labels, splits, times and weights of a graph, from the columns of its tables, file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .... import _core
from ....core.notes import log
from ....core.parameters import shown
from ..columns import DESCRIPTION, RelationColumns, VertexColumns
from ..columns.rows import LEFT_OUT, opened
from .job import Job, NumberedType, Unit
from .records import Records

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
