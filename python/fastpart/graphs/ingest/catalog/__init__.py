"""The tables of a schema, opened and checked: what every stage of an ingest works on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ....core.frames import pl
from ....core.options import RunOptions
from ....errors import CapacityError
from ..problems import attempted
from ..schema import Column, Key, Relation, Schema, Vertices
from ..tables import IdKind as IdKind
from ..tables import TableReader, open_table
from . import requirements, triples
from .requirements import Use, kind_of

LARGEST = 2**32 - 2
"""Vertices of a graph, at most."""


Vocabulary = Mapping[str, Sequence[Any]]
"""The values of columns, in the order of their codes."""

Vocabularies = tuple[Mapping[str, Vocabulary], Mapping[str, Vocabulary]]
"""The vocabularies of types and of relations, by name."""


@dataclass(frozen=True)
class VertexTable:
    """A type of vertices, and the table that declares them, if there is one."""

    name: str
    entry: Vertices
    reader: TableReader | None
    id_column: str | None
    kind: IdKind
    """The same for all tables and relations that name ids of this type."""
    dtype: Any
    """The Polars type in which its ids go back to the user."""
    features: tuple[Column, ...] = ()
    """Its columns of features. Globs are resolved."""
    vocabulary: Vocabulary | None = None
    """The values of its columns of categories and classes in an earlier ingest. None: there is none."""
    sure: bool = True
    """Whether its ids have one kind. False only in a check, which has noted why."""


@dataclass(frozen=True)
class RelationTable:
    """A relation and its records."""

    name: str
    entry: Relation
    reader: TableReader
    source: str
    """The type of its sources."""
    target: str
    columns: tuple[str, str]
    """The columns of the ids of its sources and targets."""
    features: tuple[Column, ...] = ()
    """Its columns of features. Globs are resolved."""
    value: str | None = None
    """The text that names it in the column of relations, if its table has one."""
    vocabulary: Vocabulary | None = None
    """The values of its columns of categories and classes in an earlier ingest. None: there is none."""


@dataclass(frozen=True)
class Catalog:
    """All tables of a schema. Types and relations are sorted by name."""

    schema: Schema
    root: str
    vertices: Mapping[str, VertexTable]
    relations: Mapping[str, RelationTable]


def open_catalog(
    schema: Schema, root: str, options: RunOptions, vocabularies: Vocabularies | None = None
) -> Catalog:
    """Open all tables of a schema and check what they hold. Only footers, headers and counts are read.

    ``vocabularies`` are those of an earlier ingest, which keep the codes of categories and classes.

    Raises
    ------
    FileNotFoundError
        A path, a glob or a folder without a file.
    GraphFormatError
        A damaged file, a column that is missing, or one of a type that is of no use. Ids of two types.
    CapacityError
        More than 2^32 - 2 vertices.
    """
    how = root, options.tmp_dir, options.memory_limit
    declared = {
        name: attempted(f"vertices.{name}", open_table, f"vertices.{name}", entry.files, entry.format, *how)
        for name, entry in sorted(schema.vertices.items())
        if entry.files is not None
    }
    related: dict[str, RelationTable] = {}
    for name, entry in sorted(
        schema.relations.items(), key=lambda item: item[0] == "*"
    ):  # whose names come last
        place = f"relations.{name}"
        reader = attempted(place, open_table, place, entry.files, entry.format, *how)
        if reader is None or (table := attempted(place, _relation, place, name, entry, reader)) is None:
            continue
        parts = attempted(place, _parts, place, table, related, options.tmp_dir) if name == "*" else [table]
        related |= {part.name: part for part in parts or ()}
    related = dict(sorted(related.items()))
    vertices = {
        name: _type(name, entry, declared.get(name), related)
        for name, entry in sorted(schema.vertices.items())
    }
    if vocabularies is not None:
        of_types, of_relations = vocabularies
        vertices = {name: replace(each, vocabulary=of_types.get(name, {})) for name, each in vertices.items()}
        related = {
            name: replace(each, vocabulary=of_relations.get(name, {})) for name, each in related.items()
        }
    attempted("vertices", _check_rows, vertices)
    return Catalog(schema, root, vertices, related)


def _relation(place: str, name: str, entry: Relation, reader: TableReader) -> RelationTable | None:
    (source, from_), (target, to) = *entry.source.items(), *entry.target.items()
    columns = (key_of(from_).column, key_of(to).column)
    if not reader.files or (usable := requirements.check_relation(place, entry, reader, columns)) is None:
        return None  # in a check
    features = requirements.features_of(place, usable, reader, columns)
    return RelationTable(name, usable, reader, source, target, columns, features)


def _parts(
    place: str, table: RelationTable, others: Mapping[str, RelationTable], tmp_dir: Path | None
) -> list[RelationTable]:
    """Return the relations that a column names."""
    entry = table.entry
    more = [each for each in (entry.weight, entry.time, entry.label, entry.split) if isinstance(each, str)]
    columns = [*table.columns, *more, *(each.column for each in table.features)]
    parts = triples.split(table.reader, place, entry, columns, tmp_dir)
    for part in parts:
        if part.name in others:
            triples.refuse_taken(part)
    return [replace(table, name=part.name, reader=part.reader, value=part.value) for part in parts]


def _type(
    name: str, entry: Vertices, reader: TableReader | None, related: Mapping[str, RelationTable]
) -> VertexTable:
    uses = []
    features: tuple[Column, ...] = ()
    column = None
    if reader is not None and entry.id is not None:
        key = key_of(entry.id)
        column = key.column
        usable = requirements.check_vertices(f"vertices.{name}", entry, reader, column)
        reader = reader if usable is not None and reader.files else None
        entry = usable or entry
    if reader is not None and column is not None:
        features = requirements.features_of(f"vertices.{name}", entry, reader, (column,))
        uses.append(Use(f"vertices.{name}.id", reader.files, key))
    seen = set()
    for relation in related.values():
        for end, kind, ids in (
            ("source", relation.source, relation.entry.source),
            ("target", relation.target, relation.entry.target),
        ):
            shown = "*" if relation.value is not None else relation.name
            place = f"relations.{shown}.{end}"
            if kind == name and place not in seen:
                seen.add(place)
                added = reader is None or relation.entry.missing == "add"
                uses.append(Use(place, relation.reader.files, key_of(ids[name]), added))
    found = kind_of(name, uses)
    kind, dtype = found or ("string", pl.String())
    return VertexTable(name, entry, reader, column, kind, dtype, features, sure=found is not None)


def key_of(key: str | Key) -> Key:
    """Return a column of ids, however the schema writes it."""
    return Key(column=key) if isinstance(key, str) else key


def _check_rows(vertices: Mapping[str, VertexTable]) -> None:
    """Refuse tables with more vertices than a graph can have."""
    counted = [
        (table.reader.rows, name)
        for name, table in vertices.items()
        if table.reader is not None and table.entry.duplicates == "error"
    ]
    total = sum(rows for rows, _ in counted)
    if total > LARGEST:
        rows, name = max(counted)
        raise CapacityError(
            f"vertices.{name}: {rows:,} rows, and {total:,} in all types. A graph has at most 2^32 - 2 vertices"
        )
