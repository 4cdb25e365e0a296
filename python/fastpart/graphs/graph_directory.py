"""A graph directory: edges with the ids, features, labels, splits and times that came with them.

:func:`fastpart.ingest` writes it. ``graph.json`` marks it and describes what lies there.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from ..core.folders import within
from ..core.frames import pl
from ..core.ids import IdTable
from ..core.parameters import Directedness, path, regular, shown
from ..core.parsing import Count, Name, checked_object, damaged, json_object, mapped
from ..core.vertex_tables import InOrder
from ..errors import GraphFormatError, ParameterError
from .sidecars import Sidecar
from .types import RelationEntry, TypedRanges, TypeEntry

MARKER = "graph.json"
"""The file that marks a graph directory and describes it."""

EDGES = "edges.bin"

FEATURES = "features.npy"
"""The features of a type."""

CATEGORIES = "categories.json"
"""The values behind the codes of a type or relation, by column."""

RELATION_FILES = {
    **{name: f"edge_{name}" for name in (FEATURES, CATEGORIES, "feature_statistics.npy", "labels.npy")},
    "split.npz": "edge_label_splits.npz",
}
"""Names of the files of a relation at the top of the directory of a single relation, where they differ."""

VERSION = ("fastpart", 1)

ANEW = "Ingest again"

EMBEDDING = "embedding"
"""The form of a column of codes in a schema."""

MOST_EMBEDDED = 2**17
"""The most values of a column whose categories have learned rows. Each is in the memory of every worker."""

_LEAST_DIM, _MOST_DIM = 2, 100


class _Column(msgspec.Struct):
    column: str
    width: Count


class _Features(msgspec.Struct):
    dtype: str
    width: Count
    columns: list[_Column]


class _Labels(msgspec.Struct):
    column: str


class _Type(TypeEntry, kw_only=True):
    features: _Features | None = None
    labels: _Labels | None = None


class _Relation(RelationEntry, kw_only=True):
    features: _Features | None = None
    labels: _Labels | None = None


class _Content(msgspec.Struct):
    """The fields of ``graph.json`` that are read."""

    directedness: Directedness
    types: list[_Type]
    relations: list[_Relation]
    shards: list[Name] = []


class _Values(msgspec.Struct):
    values: list[str | int]


UNIT = 1 << 20
"""Records between two places where a file may end. Blocks of records never lie in two files."""


def cuts(m: int, count: int) -> list[tuple[int, int]]:
    """Return first record and end of each of ``count`` files, of about equal size. Small graphs have fewer."""
    units = -(-m // UNIT)
    count = max(1, min(count, units))
    ends = [min((number * units // count) * UNIT, m) for number in range(count + 1)]
    return list(pairwise(ends))


def name_of(number: int) -> str:
    """Return the name of a file of records."""
    return f"edges-{number:05}.bin"


def file_in(folder: Path, name: str) -> Path:
    """Return a file of a graph directory, which may be missing. Refuse one that leads out of the directory."""
    return within(folder, name, "graph directory")


def id_tables(folder: Path, typed: TypedRanges | None, n: int) -> tuple[IdTable, ...]:
    """Return the ids of all types that a directory holds below ``ids``. None where some type has none."""
    if typed is None:
        known = [(file.stem, 0, n) for file in sorted(file_in(folder, "ids").glob("*.parquet"))]
        known = known if len(known) == 1 else []
    else:
        known = [(each.name, each.first, each.n) for each in typed.types]
    files = [file_in(folder, f"ids/{name}.parquet") for name, _, _ in known]
    if not all(file.is_file() for file in files):
        return ()
    return tuple(IdTable.of(*each, file) for each, file in zip(known, files, strict=True))


class GraphDirectory:
    """What a graph directory holds.

    Attributes
    ----------
    path : pathlib.Path
        The directory.
    content : dict
        What ``graph.json`` says.
    sidecar : Sidecar
        What ``edges.bin.json`` says.
    """

    def __init__(self, folder: Path, parameter: str = "graph") -> None:
        self.path = folder
        marker = file_in(folder, MARKER)
        try:
            text = regular(marker).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise ParameterError(
                f"{parameter}: {shown(folder)} is no graph directory: it has no {MARKER}. Pass a folder that `fastpart "
                "ingest` wrote"
            ) from None
        self.content = json_object(marker, text, _Content, ANEW, VERSION)
        self.sidecar = self._sidecar_of_records()

    def _sidecar_of_records(self) -> Sidecar:
        """Return the sidecar. Refuse one that describes another graph than ``graph.json``, or other records."""
        content = self.content
        edges, *_ = (file_in(self.path, f"{EDGES}{suffix}") for suffix in ("", ".json", ".weights.npy"))
        if (sidecar := Sidecar.read(edges)) is None:
            raise self.damaged(f"an incomplete graph directory, without {EDGES}.json")
        try:
            typed = TypedRanges.of(
                content["types"], content["relations"], sidecar.n, sidecar.m, sidecar.directedness
            )
        except ValueError as error:
            raise GraphFormatError(f"{shown(self.path / MARKER)}: {error}. {ANEW}") from None
        if content["directedness"] != sidecar.directedness or sidecar.typed != (
            typed if typed.several else None
        ):
            raise self.damaged(f"{MARKER} and {EDGES}.json describe different graphs")
        if edges.is_file() and not sidecar.fits(edges):
            raise self.damaged(
                f"{EDGES} has {edges.stat().st_size:,} bytes, but {EDGES}.json says {sidecar.m:,} records of "
                f"{sidecar.dtype}"
            )
        return sidecar

    @classmethod
    def of(cls, graph: Any, parameter: str = "graph") -> GraphDirectory:
        """Return the directory of a path, or of a graph that was opened from one. Errors name the parameter."""
        if not isinstance(graph, str | bytes | os.PathLike):
            folder = getattr(graph, "directory", None)
            file = getattr(graph, "path", None)
            if folder is None and file is not None and (file.parent / MARKER).is_file():
                folder = file.parent
            if folder is None and getattr(graph, "_id_tables", None):
                raise ParameterError(
                    f"{parameter}: it was opened from an object of another library. to_frame() of the result has its "
                    "ids"
                )
            if folder is None:
                raise ParameterError(
                    f"{parameter}: it was opened from numbers of vertices, and has no ids. Pass the folder that "
                    "`fastpart ingest` wrote"
                )
            return cls(folder, parameter)
        folder = path(parameter, graph)
        if not folder.exists():
            raise FileNotFoundError(2, os.strerror(2), str(folder))
        return cls(folder.parent if folder.name == EDGES else folder, parameter)

    @cached_property
    def types(self) -> dict[str, int]:
        """The number of vertices of each type, in the order of their ranges."""
        return {each["name"]: each["n"] for each in self.content["types"]}

    @property
    def num_vertices(self) -> int:
        """The number of all vertices."""
        return sum(self.types.values())

    @property
    def shards(self) -> list[str]:
        """The files that hold the records, if they are several."""
        return list(self.content.get("shards", []))

    def ids(self, name: str) -> Path:
        """Return the Parquet file with the ids of a type, in the order of its vertices."""
        return regular(file_in(self.path, f"ids/{name}.parquet"))

    def id_dtype(self, name: str) -> Any:
        """Return the Polars type of the ids of a type."""
        file = self.ids(name)
        if not file.exists():
            raise FileNotFoundError(2, os.strerror(2), str(file))
        with damaged(file, "not a Parquet file of ids"):
            return pl.scan_parquet(regular(file)).collect_schema()["id"]

    def own_id(self, name: str, vertex: int) -> Any:
        """Return the id that a vertex of a type had in tables. None if there are no ids."""
        file = self.ids(name)
        if not file.exists():
            return None
        with damaged(file, "not a Parquet file of ids"):
            found = pl.scan_parquet(regular(file)).select("id").slice(vertex, 1).collect()["id"]
        return found[0] if len(found) else None

    def file_of_type(self, name: str, file: str) -> Path:
        """Return a file of a type. Those of a single type lie at the top."""
        return file_in(self.path, file if len(self.types) == 1 else f"types/{name}/{file}")

    def file_of_relation(self, name: str, file: str) -> Path:
        """Return a file of a relation. Those of a single relation lie at the top."""
        single = len(self.relations) == 1
        return file_in(self.path, RELATION_FILES.get(file, file) if single else f"relations/{name}/{file}")

    @cached_property
    def relations(self) -> dict[str, dict[str, Any]]:
        """What ``graph.json`` says of each relation, by name, in the order of their records."""
        return {each["name"]: each for each in self.content["relations"]}

    def records(self, name: str, size: int) -> Iterator[npt.NDArray[np.uint32]]:
        """Yield the records of a relation, at most ``size`` at a time. One without records has one empty block."""
        names = list(self.relations)
        start = sum(self.relations[each]["m"] for each in names[: names.index(name)])
        stop, before = start + self.relations[name]["m"], 0
        if start == stop:
            yield np.empty((0, 2), np.uint32)
        for name in self.shards or [EDGES]:
            file = regular(file_in(self.path, name))
            there = file.stat().st_size // _RECORD
            for first in range(max(start - before, 0), min(stop - before, there), size):
                count = min(first + size, stop - before, there) - first
                yield np.fromfile(file, "<u4", 2 * count, offset=first * _RECORD).reshape(-1, 2)
            before += there

    def vocabularies(self) -> tuple[dict[str, dict[str, list[Any]]], dict[str, dict[str, list[Any]]]]:
        """Return the values of the columns of categories, by type and by relation, in the order of their codes."""
        return (
            {name: categories_in(self.file_of_type(name, CATEGORIES)) for name in self.types},
            {name: categories_in(self.file_of_relation(name, CATEGORIES)) for name in self.relations},
        )

    @property
    def features(self) -> list[dict[str, Any]]:
        """The features of each type and relation that has any: its name, and what ``graph.json`` says of them."""
        entries = [*self.content["types"], *self.content["relations"]]
        return [{"name": each["name"], **each["features"]} for each in entries if each.get("features")]

    def labels(self, name: str) -> list[Any] | None:
        """Return the label of each class of a type, if they were text."""
        entry = next(each for each in self.content["types"] if each["name"] == name)
        return _classes(entry, self.file_of_type(name, CATEGORIES))

    def labels_of_relation(self, name: str) -> list[Any] | None:
        """Return the label of each class of a relation, if they were text."""
        return _classes(self.relations[name], self.file_of_relation(name, CATEGORIES))

    def damaged(self, what: str) -> GraphFormatError:
        """Return the refusal of a directory that contradicts itself."""
        return GraphFormatError(f"{shown(self.path)}: {what}. {ANEW}")


def _classes(entry: Mapping[str, Any], file: Path) -> list[Any] | None:
    labels = entry.get("labels")
    return labels and categories_in(file).get(labels["column"])


def categories_in(file: Path) -> dict[str, list[Any]]:
    """Return the values of each column in a file of categories. Without the file there are none."""
    if not file.exists():
        return {}
    content = json_object(file, None, None, ANEW)
    checked_object(file, content, dict.fromkeys(content, _Values), ANEW)
    found = {column: described["values"] for column, described in content.items()}
    for column, values in found.items():
        refuse_twice(shown(file), column, values)
    return found


OF_VERTICES = {
    "features": "features.npy",
    "labels": "labels.npy",
    "splits": "split.npz",
    "times": "times.npy",
}
"""The files of a type, by the parameter of ``save`` that takes them."""

OF_RELATIONS = {
    "edge_features": "features.npy",
    "edge_labels": "labels.npy",
    "edge_label_splits": "split.npz",
}
"""The files of a relation, by the parameter of ``save`` that takes them."""

_RECORD = 8
"""Bytes of a record."""

_NO_TIME = np.iinfo(np.int64).min
_BLOCK = 1 << 20


def found_in(folder: Path, typed: TypedRanges | None) -> dict[str, Any]:
    """Return the data of vertices and edges in a graph directory, by the parameter of ``save`` that takes them.

    A value is a file, or a mapping with one for each type or relation that has it if the graph has types.
    """
    types = [""] if typed is None else [each.name for each in typed.types]
    relations = [""] if typed is None else typed.names
    of_relations = {
        name: RELATION_FILES[file] if len(relations) == 1 else file for name, file in OF_RELATIONS.items()
    }
    found: dict[str, Any] = {name: _files(folder, "types", types, file) for name, file in OF_VERTICES.items()}
    found |= {name: _files(folder, "relations", relations, file) for name, file in of_relations.items()}
    found["edge_times"] = _times_of(file_in(folder, f"{EDGES}.times.npy"), typed)
    there = {name: files for name, files in found.items() if files}
    return there if typed else {name: files[""] for name, files in there.items()}


def _files(folder: Path, kind: str, names: Sequence[str], file: str) -> Mapping[str, Path]:
    """Return the file of each type or relation that has it. A single one has its files at the top."""
    above = {name: "" if len(names) == 1 else f"{kind}/{name}/" for name in names}
    files = {name: file_in(folder, f"{at}{file}") for name, at in above.items()}
    return {name: file for name, file in files.items() if file.is_file()}


def _times_of(file: Path, typed: TypedRanges | None) -> dict[str, Any]:
    """Return the times of the relations that have any."""
    if not file.is_file():
        return {}
    if typed is None:
        return {"": file}
    times = mapped(file)
    of = {each.name: times[each.first : each.range.stop] for each in typed.relations}
    blocks = {name: range(0, len(rows), _BLOCK) for name, rows in of.items()}
    return {
        name: rows
        for name, rows in of.items()
        if any((rows[start : start + _BLOCK] != _NO_TIME).any() for start in blocks[name])
    }


def refuse_twice(where: str, column: str, values: Sequence[Any]) -> None:
    """Refuse values of categories of which two are one. 5 and "5" are."""
    if len(set(map(str, values))) < len(values):
        raise GraphFormatError(f"{where}: {column!r}: a value is there twice")


# Columns of features that hold codes of categories, for models that learn a row for each category. The code of a
# category is its place among the values of its column. Behind these come the code of all values that an earlier
# vocabulary lacks, and the code of missing ones. So numbers of vertices and of categories may differ between graphs:
# the values tell which category is meant.


def default_dim(values: int) -> int:
    """Return the width of the learned rows of a column: 1.6 times its number of values to the power of 0.56.

    That is the rule of fastai, with the bounds of AutoGluon.
    """
    return max(_LEAST_DIM, min(_MOST_DIM, round(1.6 * math.pow(values, 0.56))))


class EmbeddedColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of codes.

    Attributes
    ----------
    place : int
        Its place among the columns of the features.
    dim : int
        Width of the learned row of a category.
    values : list
        Text or whole numbers, in the order of their codes.
    counts : list of int
        How many rows of the table have each value.
    unknown, missing : int
        How many have one that an earlier vocabulary lacks, and none.
    """

    place: Count
    dim: Annotated[int, msgspec.Meta(ge=_LEAST_DIM)]
    values: list[str | int]
    counts: list[Count]
    unknown: Count = 0
    missing: Count = 0

    @property
    def unknown_code(self) -> int:
        """The code of values that are not known."""
        return len(self.values)

    @property
    def missing_code(self) -> int:
        """The code of a missing value."""
        return len(self.values) + 1

    @property
    def rows(self) -> int:
        """Number of codes."""
        return len(self.values) + 2


Embedded = Mapping[str, EmbeddedColumn]
"""The columns of codes by name."""


def embedded_beside(rows: Any) -> dict[str, EmbeddedColumn]:
    """Return the columns of codes in a file of features: those that ``categories.json`` beside it names."""
    rows = rows.rows if isinstance(rows, InOrder) else rows
    rows = rows.filename if isinstance(rows, np.memmap) else rows
    if not isinstance(rows, str | bytes | os.PathLike):
        return {}
    source = Path(os.fsdecode(rows))
    file = source.with_name(CATEGORIES)
    if source.name != FEATURES or not file.is_file():
        return {}
    content = json_object(file, None, None, ANEW)
    content = {column: each for column, each in content.items() if _is_embedded(each)}
    checked_object(file, content, dict.fromkeys(content, EmbeddedColumn), ANEW)
    return embedded_in(content, shown(file))


def write_beside(rows: Path, content: Mapping[str, Any]) -> None:
    """Write the file that names the columns of codes in a file of features, given what a manifest describes."""
    described = {column: {**each, "as": EMBEDDING} for column, each in content.items()}
    rows.with_name(CATEGORIES).write_text(json.dumps(described))


def _is_embedded(described: Any) -> bool:
    return isinstance(described, dict) and described.get("as") == EMBEDDING


def embedded_in(content: Mapping[str, Any] | None, where: str) -> dict[str, EmbeddedColumn]:
    """Return the columns of codes that a file or a manifest describes."""
    found = {column: msgspec.convert(each, EmbeddedColumn) for column, each in (content or {}).items()}
    places = [each.place for each in found.values()]
    for column, each in found.items():
        refuse_twice(where, column, each.values)
        if len(each.counts) != len(each.values):
            raise GraphFormatError(f"{where}: {column!r}: there are not as many counts as values")
    if len(set(places)) < len(places):
        raise GraphFormatError(f"{where}: two columns of codes have one place")
    return found
