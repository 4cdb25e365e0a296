"""The tables of a schema, opened and checked: what every stage of an ingest works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .schema import Relation, Schema, Vertices
from .tables import IdKind as IdKind
from .tables import TableReader


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


@dataclass(frozen=True)
class Catalog:
    """All tables of a schema. Types and relations are sorted by name."""

    schema: Schema
    root: str
    vertices: Mapping[str, VertexTable]
    relations: Mapping[str, RelationTable]
