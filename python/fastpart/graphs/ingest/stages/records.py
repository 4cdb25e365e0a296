"""Records of ids become records of vertices, relation by relation, each in its place of ``edges.bin``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .... import _core
from ....core.system import allocate
from ....errors import GraphFormatError
from ..catalog import RelationTable
from ..columns.rows import replacing
from ..problems import attempted
from .ids import PER_ID
from .job import Job, NumberedType, Slice, Unit, blocks, groups_of, place
from .work_folder import hash_of

RECORD = 8
"""Bytes of a record in ``edges.bin``."""

GROUP = 1 << 28
"""Records whose ends lie on the disk at a time."""

_OPEN_FILES = 600
"""Files that joins have open at a time. Many systems allow a process 1,024."""


@dataclass(frozen=True)
class Records:
    """The records of a relation in ``edges.bin``."""

    relation: RelationTable
    first: int
    m: int
    nulls: int
    missing: int
    starts: dict[str, int]
    """The number of the first record of each unit within the relation."""
    kept: dict[str, Path]
    """Units of which records were dropped, and the file that says which are kept."""

    def of_unit(self, unit: Unit) -> slice:
        """Return which records of the relation are those of a unit."""
        count = unit.rows
        if unit.name in self.kept:
            count = int(np.fromfile(self.kept[unit.name], np.bool_).sum())
        return slice(self.starts[unit.name], self.starts[unit.name] + count)

    def of_slice(self, unit: Unit, each: Slice) -> tuple[int, npt.NDArray[np.bool_] | None]:
        """Return the number of the first record of a slice within the relation, and which of its rows are kept."""
        before = each.first - unit.first
        if unit.name not in self.kept:
            return self.starts[unit.name] + before, None
        kept = np.fromfile(self.kept[unit.name], np.bool_)
        return self.starts[unit.name] + int(kept[:before].sum()), kept[before : before + each.rows]


def write_records(job: Job, types: Mapping[str, NumberedType]) -> list[Records]:
    """Write the records of all relations, one behind the other."""
    edges = job.graph / "edges.bin"
    rows = {name: sum(unit.rows for unit in job.units[f"relations/{name}"]) for name in job.catalog.relations}
    if not edges.exists():
        job.journal.forget(
            ("records", f"{name}/{unit.name}") for name in rows for unit in job.units[f"relations/{name}"]
        )
        _create(edges, sum(rows.values()) * RECORD)
    written: list[Records] = []
    for relation in job.catalog.relations.values():
        if not {relation.source, relation.target} <= types.keys():
            continue  # in a check that refused their ids
        first = written[-1].first + written[-1].m if written else 0
        sides = types[relation.source], types[relation.target]
        drops = relation.entry.missing == "drop" or relation.entry.nulls == "drop"
        at_once = not drops and all(len(side.keys) == 1 for side in sides)
        writer = (_Lookup if at_once else _Join)(job, relation, sides, edges, first)
        if (found := attempted(f"relations.{relation.name}", writer.write)) is not None:
            written.append(found)
    whole = written[-1].first + written[-1].m if written else 0
    if edges.stat().st_size != whole * RECORD:
        os.truncate(edges, whole * RECORD)
    return written


def _create(edges: Path, size: int) -> None:
    """Create the file, and take the disk that it needs, so that a full disk is found before the work."""
    with replacing(edges) as partial, partial.open("wb") as file:
        try:
            if size:
                allocate(file.fileno(), size)
        except OSError as error:
            partial.unlink()
            raise OSError(error.errno, os.strerror(error.errno or 0), str(edges)) from None


def null_end(relation: RelationTable, at: str) -> GraphFormatError:
    """Return the refusal of a record without an id."""
    return GraphFormatError(
        f"{at}: an id is null. Remove the row, or say `nulls: drop` for {relation.name!r} in the schema"
    )


def unknown_end(relation: RelationTable, at: str, column: str, id: Any, type_: str) -> str:
    """Return why a record is refused one of whose ids no table declares, and the remedy."""
    return (
        f"{at}: {column!r} is {id.hex() if isinstance(id, bytes) else repr(id)}, which is no id of {type_!r}. Say "
        f"`missing: drop` or `missing: add` for {relation.name!r} in the schema"
    )


class _Writer:
    """How the records of one relation are written."""

    def __init__(
        self,
        job: Job,
        relation: RelationTable,
        sides: tuple[NumberedType, NumberedType],
        edges: Path,
        first: int,
    ) -> None:
        self.job, self.relation, self.sides, self.edges, self.first = job, relation, sides, edges, first
        self.units = job.units[f"relations/{relation.name}"]
        self.kinds = [side.kind for side in sides]

    def name(self, unit: Unit) -> str:
        """Return the name of a unit in the journal."""
        return f"{self.relation.name}/{unit.name}"

    def frames(self, each: Slice) -> Iterator[Any]:
        """Yield the ids of both ends."""
        return self.relation.reader.ids(each.file, self.relation.columns, self.kinds, each.start, each.stop)

    def read(self, unit: Unit, push: Any) -> None:
        """Hand the ends of all rows of a unit to the core."""
        for each in unit.slices:
            row = each.first
            for frame in self.frames(each):
                null = push(frame)
                if null is not None:
                    raise null_end(self.relation, self.at(row + null))
                row += len(frame)
        self.job.advance("read records", unit.bytes)

    def piece(self, first: int, count: int) -> tuple[Path, int, int]:
        """Return where so many records lie."""
        return self.edges, first * RECORD, (first + count) * RECORD

    def at(self, row: int) -> str:
        """Return file and row of a row of the relation."""
        return place(self.relation.reader, row)

    def missing(self, row: int, source: bool, count: int) -> GraphFormatError:
        """Return the refusal of records whose ends no table declares. The first is in this row."""
        side = 0 if source else 1
        column, type_ = self.relation.columns[side], self.sides[side].name
        id: Any = "?"
        for unit in self.units:
            for each in unit.slices:
                if each.first <= row < each.first + each.rows:
                    start = row - each.first + each.start
                    (frame,) = self.relation.reader.ids(
                        each.file, [column], [self.kinds[side]], start, start + 1
                    )
                    id = frame.item()
        return GraphFormatError(
            f"{self.relation.name}: {count:,} record{'s name' if count != 1 else ' names'} a vertex that no table "
            f"declares. The first is in {unknown_end(self.relation, self.at(row), column, id, type_)}"
        )


class _Lookup(_Writer):
    """Both tables are small: every record is looked up at once."""

    def write(self) -> Records:
        """Write all units."""
        lookup = None
        starts: dict[str, int] = {}
        at, missing, first_missing = 0, 0, None
        for unit in self.units:
            starts[unit.name] = at
            if self.job.journal.done("records", self.name(unit)) is None:
                lookup = lookup or _core.EndLookup(*map(_declared, self.sides))
                lookup.begin(self.edges, self.first + at)
                self.read(unit, lookup.push)
                _, _, count, row = lookup.end()
                missing += count
                if row is not None and first_missing is None:
                    first_missing = unit.first + row[0], row[1]
                if not missing:
                    self.job.journal.add(
                        "records", self.name(unit), pieces=[self.piece(self.first + at, unit.rows)]
                    )
            else:
                self.job.advance("read records", unit.bytes)
            at += unit.rows
        if first_missing is not None:
            raise self.missing(*first_missing, missing)
        return Records(self.relation, self.first, at, 0, 0, starts, {})


class _Join(_Writer):
    """A radix join, group by group: ends to buckets, buckets to vertices, these back into the order of the records."""

    def write(self) -> Records:
        """Write all groups."""
        source, target = self.sides
        same = source.name == target.name
        self.layout = [
            (source.kind, 0, len(source.keys)),
            (target.kind, 0 if same else len(source.keys), len(target.keys)),
        ]
        self.buckets = [(source, key) for key in source.keys]
        if not same:
            self.buckets += [(target, key) for key in target.keys]
        self.first_vertices = source.first, target.first
        self.at_once = max(1, min(self.job.threads, _OPEN_FILES // len(self.buckets)))
        starts: dict[str, int] = {}
        kept: dict[str, Path] = {}
        at = nulls = missing = 0
        for number, group in enumerate(groups_of(self.units, GROUP)):
            folder = self.job.path("records", self.relation.name, f"{number:05}", "order").parent
            self._forget_lost(group, folder)
            counts = self._counts(group, folder)
            done = [self.job.journal.done("records", self.name(unit)) for unit in group]
            todo = [index for index, each in enumerate(done) if each is None]
            for index, unit in enumerate(group):
                starts[unit.name] = at
                at += counts[index]["records"]
                nulls += counts[index]["nulls"]
                missing += counts[index]["missing"]
                if counts[index]["records"] < unit.rows:
                    kept[unit.name] = self._kept(unit)
            for some in blocks(todo, self.at_once):
                spilled = self._spilled(group)
                units = [
                    self._unit(group[index], spilled[index], folder, self.first + starts[group[index].name])
                    for index in some
                ]
                _core.join_ends(units, self.layout, self.first_vertices, self.job.run)
                for index in some:
                    name, count = group[index].name, counts[index]["records"]
                    self.job.journal.add(
                        "records",
                        self.name(group[index]),
                        [kept[name]] if name in kept else [],
                        pieces=[self.piece(self.first + starts[name], count)],
                    )
            for file in folder.iterdir():
                file.unlink()
        return Records(self.relation, self.first, at, nulls, missing, starts, kept)

    def _forget_lost(self, group: list[Unit], folder: Path) -> None:
        """Begin a group again of which files are lost that are still needed."""
        journal = self.job.journal
        if all(journal.done("records", self.name(unit)) is not None for unit in group):
            return
        spilled = [unit for unit in group if journal.done("spill", self.name(unit), files=False) is not None]
        there = all(journal.done("spill", self.name(unit)) is not None for unit in spilled) and all(
            journal.done("resolve", self._bucket(group, bucket)) is not None
            or self._has_ends(spilled, folder, bucket)
            for bucket in range(len(self.buckets) if spilled else 0)
        )
        if not there:
            # Spills last: a kill among these lines must not leave counts without them.
            journal.forget(
                [
                    *(("count", self.name(unit)) for unit in group),
                    *(("resolve", self._bucket(group, bucket)) for bucket in range(len(self.buckets))),
                    *(("spill", self.name(unit)) for unit in group),
                ]
            )

    def _has_ends(self, spilled: list[Unit], folder: Path, bucket: int) -> bool:
        """Return whether the ends of a bucket that units have spilled are there, as they were written."""
        file, before = _ends(folder, bucket), 0
        if not file.exists():
            return False
        for unit in spilled:
            counts = self.job.journal.done("spill", self.name(unit), files=False) or {}
            if hash_of(file, before, counts["lengths"][bucket]) != counts["ends"][bucket]:
                return False
            before = counts["lengths"][bucket]
        return True

    def _bucket(self, group: list[Unit], bucket: int) -> str:
        """Return the name of a bucket of a group in the journal."""
        return f"{self.name(group[0])}/{bucket}"

    def _counts(self, group: list[Unit], folder: Path) -> list[dict[str, int]]:
        """Resolve the ends of a group, and return how many records of each unit are kept."""
        counts = [self.job.journal.done("count", self.name(unit)) for unit in group]
        if all(each is not None for each in counts):
            for unit in group:
                self.job.advance("read records", unit.bytes)
            return [each for each in counts if each is not None]
        self._spill(group, folder)
        missing = self._resolve(group, folder)
        drops = self.relation.entry.missing == "drop" or self.relation.entry.nulls == "drop"
        found = []
        spilled = self._spilled(group)
        for some in blocks(range(len(group)), self.at_once):
            if missing or drops:
                units = [self._unit(group[index], spilled[index], folder, None) for index in some]
                joined = _core.join_ends(units, self.layout, self.first_vertices, self.job.run)
            else:
                joined = [(group[index].rows, 0, 0, None) for index in some]
            found += joined
        if missing and self.relation.entry.missing != "drop":
            row, source = next(
                (unit.first + each[3][0], each[3][1])
                for unit, each in zip(group, found, strict=True)
                if each[3] is not None
            )
            raise self.missing(row, source, sum(each[2] for each in found))
        return [
            self.job.journal.add(
                "count",
                self.name(unit),
                [self._kept(unit)] if records < unit.rows else [],
                {"records": records, "nulls": nulls, "missing": lacking},
            )
            for unit, (records, nulls, lacking, _) in zip(group, found, strict=True)
        ]

    def _spill(self, group: list[Unit], folder: Path) -> None:
        spill = None
        lengths = [0] * len(self.buckets)
        for unit in group:
            counts = self.job.journal.done("spill", self.name(unit))
            if counts is not None and spill is None:
                lengths = counts["lengths"]
                self.job.advance("read records", unit.bytes)
                continue
            if spill is None:
                files = [(_ends(folder, bucket), length) for bucket, length in enumerate(lengths)]
                spill = _core.EndSpill(self.layout, files)
            spill.begin(self._order(unit, folder))
            drop = self.relation.entry.nulls == "drop"
            self.read(unit, lambda frame, spill=spill, drop=drop: spill.push(frame, drop))
            before = lengths
            records, lengths = spill.end()
            ends = [
                hash_of(_ends(folder, bucket), *piece)
                for bucket, piece in enumerate(zip(before, lengths, strict=True))
            ]
            self.job.journal.add(
                "spill",
                self.name(unit),
                [self._order(unit, folder)],
                {"records": records, "lengths": lengths, "ends": ends},
            )

    def _resolve(self, group: list[Unit], folder: Path) -> int:
        missing = 0
        done = [
            self.job.journal.done("resolve", self._bucket(group, bucket))
            for bucket in range(len(self.buckets))
        ]
        todo = [bucket for bucket, each in enumerate(done) if each is None]
        missing = sum(each["missing"] for each in done if each is not None)
        largest = max(PER_ID * side.n / len(side.keys) for side in self.sides)
        tables = max(1, min(self.job.threads, int(self.job.sorting // max(largest, 1))))
        for some in blocks(todo, 4 * tables):
            ends = [
                ([key], _ends(folder, bucket), _vertices(folder, bucket), side.kind)
                for bucket in some
                for side, key in [self.buckets[bucket]]
            ]
            found = _core.resolve_ends(ends, replace(self.job.run, threads=tables))
            for bucket, count in zip(some, found, strict=True):
                self.job.journal.add(
                    "resolve", self._bucket(group, bucket), [_vertices(folder, bucket)], {"missing": count}
                )
                _ends(folder, bucket).unlink()
            missing += sum(found)
        return missing

    def _spilled(self, group: list[Unit]) -> list[list[int]]:
        """Return for each unit how many ends of units before lie in each bucket."""
        widths = [8 if side.kind in ("signed", "unsigned") else 12 for side, _ in self.buckets]
        before = [[0] * len(self.buckets)]
        for unit in group:
            counts = self.job.journal.done("spill", self.name(unit), files=False) or {}
            before.append([length // width for length, width in zip(counts["lengths"], widths, strict=True)])
        return before

    def _unit(self, unit: Unit, before: list[int], folder: Path, first: int | None) -> Any:
        vertices = [(_vertices(folder, bucket), count) for bucket, count in enumerate(before)]
        if first is None:
            return self._order(unit, folder), vertices, None, self._kept(unit)
        return self._order(unit, folder), vertices, (self.edges, first), None

    def _order(self, unit: Unit, folder: Path) -> Path:
        return folder / f"order-{unit.name}"

    def _kept(self, unit: Unit) -> Path:
        return self.job.path("kept", self.relation.name, unit.name)


def _declared(side: NumberedType) -> tuple[list[Path], str, int]:
    return list(side.keys), side.kind, side.first


def _ends(folder: Path, bucket: int) -> Path:
    return folder / f"ends-{bucket:03}"


def _vertices(folder: Path, bucket: int) -> Path:
    return folder / f"vertices-{bucket:03}"
