"""Features, labels, splits, times and weights of a graph, from the columns of its tables, file by file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..columns import DESCRIPTION, RelationColumns, VertexColumns
from .job import Job, NumberedType
from .records import Records
from .units import Unit


def write_vertex_attributes(job: Job, types: Mapping[str, NumberedType]) -> dict[str, dict[str, Any]]:
    """Write the attributes of all types into their folders, and return what is known of them."""
    found = {}
    for name, table in job.catalog.vertices.items():
        columns = VertexColumns(table, types[name].n)
        if not columns.wanted or table.reader is None:
            continue
        folder = job.path("graph", "types", name, "features.npy").parent
        rows = np.memmap(job.path("types", name, "rows.u32"), np.uint32, "r") if table.reader.rows else None
        attributes = _Attributes(job, f"types/{name}", columns, folder, len(table.reader.files))
        for unit in attributes.todo(job.units[f"vertices/{name}"]):
            assert rows is not None
            for each in unit.slices:
                vertices = rows[each.first : each.first + each.rows]
                columns.write(folder, each.file, vertices, each.start, each.stop)
        found[name] = attributes.finish()
    return found


def write_record_attributes(job: Job, records: list[Records]) -> dict[str, dict[str, Any]]:
    """Write the attributes of all relations into their folders, and return what is known of them."""
    found = {}
    for each in records:
        name = each.relation.name
        columns = RelationColumns(each.relation, each.m)
        if not columns.wanted:
            continue
        folder = job.path("graph", "relations", name, "features.npy").parent
        attributes = _Attributes(job, f"relations/{name}", columns, folder, len(each.relation.reader.files))
        for unit in attributes.todo(job.units[f"relations/{name}"]):
            for piece in unit.slices:
                first, kept = each.of_slice(unit, piece)
                columns.write(folder, piece.file, first, kept, piece.start, piece.stop)
        found[name] = attributes.finish()
    return found


class _Attributes:
    """The arrays of one type or relation, and what the journal tells of them."""

    def __init__(
        self, job: Job, name: str, columns: VertexColumns | RelationColumns, folder: Path, files: int
    ) -> None:
        self.job, self.name, self.columns, self.folder, self.files = job, name, columns, folder, files

    def todo(self, units: Sequence[Unit]) -> Iterator[Unit]:
        """Yield the units whose rows have to be written. Each is noted as done when the next one is asked for."""
        journal = self.job.journal
        if journal.done("columns", self.name) is not None:
            return
        names = {unit.number: ("attributes", f"{self.name}/{unit.name}") for unit in units}
        self._forget_lost(list(names.values()))
        self.columns.begin(self.folder, self._surveys())
        for unit in units:
            stage, name = names[unit.number]
            if journal.done(stage, name, files=False) is None:
                yield unit
                journal.add(stage, name, self.columns.files(self.folder))
            self.job.advance("attributes", 0)

    def _forget_lost(self, units: list[tuple[str, str]]) -> None:
        """Begin again if an array is lost: its rows are those of all units."""
        journal, description = self.job.journal, self.folder / DESCRIPTION
        if journal.done("columns", self.name, files=False) is not None:
            description.unlink(missing_ok=True)
        noted = [each for each in units if journal.done(*each, files=False) is not None]
        if not description.exists() and any(journal.done(*each) is None for each in noted):
            journal.forget([*noted, ("columns", self.name)])

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
