"""Features, labels, splits, times and weights of a graph, from the columns of its tables, file by file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..columns import RelationColumns, VertexColumns
from .job import Job, NumberedType
from .records import Records


def write_vertex_attributes(job: Job, types: Mapping[str, NumberedType]) -> dict[str, dict[str, Any]]:
    """Write the attributes of all types into their folders, and return what is known of them."""
    found = {}
    for name, table in job.catalog.vertices.items():
        columns = VertexColumns(table, types[name].n)
        if not columns.wanted or table.reader is None:
            continue
        units = job.units[f"vertices/{name}"]
        folder = job.path("graph", "types", name, "features.npy").parent
        rows = np.memmap(job.path("types", name, "rows.u32"), np.uint32, "r") if table.reader.rows else None
        surveys = _surveys(job, f"types/{name}", columns, len(table.reader.files))
        columns.begin(folder, surveys)
        for unit in units:
            if rows is not None and job.journal.done("attributes", f"types/{name}/{unit.name}") is None:
                for each in unit.slices:
                    vertices = rows[each.first : each.first + each.rows]
                    columns.write(folder, each.file, vertices, each.start, each.stop)
                job.journal.add("attributes", f"types/{name}/{unit.name}")
            job.advance("attributes", 0)
        found[name] = columns.finish(folder, surveys)
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
        surveys = _surveys(job, f"relations/{name}", columns, len(each.relation.reader.files))
        columns.begin(folder, surveys)
        for unit in job.units[f"relations/{name}"]:
            if job.journal.done("attributes", f"relations/{name}/{unit.name}") is None:
                for piece in unit.slices:
                    first, kept = each.of_slice(unit, piece)
                    columns.write(folder, piece.file, first, kept, piece.start, piece.stop)
                job.journal.add("attributes", f"relations/{name}/{unit.name}")
        found[name] = columns.finish(folder, surveys)
    return found


def _surveys(job: Job, name: str, columns: Any, files: int) -> list[dict[str, Any]]:
    surveys = []
    for number in range(files):
        survey = job.journal.done("survey", f"{name}/{number}")
        if survey is None:
            survey = job.journal.add("survey", f"{name}/{number}", (), columns.survey(number))
        surveys.append(survey)
    return surveys
