"""What tables hold: types of vertices, relations between them, and where their columns lie.

These types are what every stage of an ingest reads. :mod:`.documents` makes them from YAML, TOML, JSON or a dict.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ...core.parameters import Directedness
from ...core.parsing import PATTERN, Name

RelationName = Annotated[str, msgspec.Meta(pattern=rf"^(\*|{PATTERN})\Z")]
"""``*`` stands for the relations that a column names."""

LEAST_DIM, MOST_DIM = 2, 1024
"""Bounds of the width of learned rows. One of 1 would be as wide as the column of the codes."""

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Entry(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """An entry of a schema. Keys that it does not know are refused."""


class Csv(Entry, kw_only=True, frozen=True):
    """How a text table is written. All columns are read as text."""

    separator: str | None = None
    """None: a tab in .tsv and .txt, a comma in all others."""
    quote: str = '"'
    header: bool = True
    nulls: list[str] = []


class Format(Entry, kw_only=True, frozen=True):
    """How files are read where their suffix does not say it."""

    csv: Csv | None = None


class Column(Entry, kw_only=True, frozen=True):
    """A column of features."""

    column: str
    as_: Literal["number", "onehot", "embedding", "code", "days", "category"] = msgspec.field(
        default="number", name="as"
    )
    """``category`` is what ``code`` was called."""
    fill: float | str | None = None
    standardise: bool = False
    dim: Annotated[int, msgspec.Meta(ge=LEAST_DIM, le=MOST_DIM)] | msgspec.UnsetType = msgspec.UNSET
    """Numbers of the learned row of a category. Unset: by the number of categories."""


class Rates(Entry, kw_only=True, frozen=True):
    """A split by shares: the earliest rows are for training, or a random choice."""

    by: Literal["time", "random"]
    train: Share
    val: Share = 0.0
    test: Share = 0.0


class Key(Entry, kw_only=True, frozen=True):
    """A column of ids. ``as: string`` reads dates, and numbers of several files, by their text."""

    column: str
    as_: Literal["string", "int"] | None = msgspec.field(default=None, name="as")


class Table(Entry, kw_only=True, frozen=True):
    """Files with the same columns."""

    files: Any = None
    """A path, glob, folder or URL, a list of them, or a frame of Polars. None: no table."""
    format: Format | None = None
    features: list[str | Column] = []
    """Columns of numbers, of lists of numbers, of categories, or of dates. ``f_*`` is a glob of names."""
    time: str | None = None
    """The column with the time of each row: whole numbers, dates or time stamps."""
    label: str | None = None
    """The column with the label of each row."""
    split: str | Rates | None = None
    """The column that holds train, val or test, or shares."""


class Vertices(Table, kw_only=True, frozen=True):
    """A type of vertices."""

    id: str | Key | None = None
    """The column of its ids. None: they are those that relations name."""
    duplicates: Literal["error", "first"] = "error"


class Relation(Table, kw_only=True, frozen=True):
    """Records from vertices of one type to vertices of one type."""

    source: dict[Name, str | Key]
    """The type, and the column of its ids."""
    target: dict[Name, str | Key]
    weight: str | None = None
    missing: Literal["error", "drop", "add"] = "error"
    """What becomes of records with an id that no table of vertices has. "add" makes it a vertex."""
    nulls: Literal["error", "drop"] = "error"
    reverse: bool | Literal["merged"] | None = None
    """Whether training also goes against its direction. None: between two types yes, within one "merged" if the graph
    is undirected, else no."""
    relation: str | None = None
    """Only of the relation ``*``: the column whose values name the relations."""


class Schema(Entry, kw_only=True, frozen=True):
    """A whole schema. Types and relations are numbered by name, whatever their order here."""

    fastpart: Literal[1] = 1
    root: str | None = None
    """Where relative paths begin: a folder or a URL. None: the folder of the schema's file."""
    vertices: dict[Name, Vertices]
    relations: dict[RelationName, Relation]
    directedness: Directedness = "undirected"
