"""A graph directory: edges with the ids, features, labels, splits and times that came with them.

:func:`fastpart.ingest` writes it. ``graph.json`` marks it and describes what lies there.
"""

from __future__ import annotations

import os
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from ..core.frames import pl
from ..core.ids import IdTable
from ..core.parameters import path, regular, shown
from ..core.parsing import damaged, json_object
from ..errors import GraphFormatError, ParameterError
from .types import TypedRanges

MARKER = "graph.json"
"""The file that marks a graph directory and describes it."""

EDGES = "edges.bin"

CATEGORIES = "categories.json"
"""The values behind the codes of a type or relation, by column."""

RELATION_FILES = {name: f"edge_{name}" for name in ("features.npy", CATEGORIES, "feature_statistics.npy")}
"""Names of the files of a relation at the top of the directory of a single relation, where they differ."""

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


def id_tables(folder: Path, typed: TypedRanges | None, n: int) -> tuple[IdTable, ...]:
    """Return the ids of all types that a directory holds below ``ids``. None where some type has none."""
    if typed is None:
        files = sorted((folder / "ids").glob("*.parquet"))
        return tuple(IdTable.of(file.stem, 0, n, file) for file in files) if len(files) == 1 else ()
    of_types = [(each, folder / "ids" / f"{each.name}.parquet") for each in typed.types]
    if not all(file.is_file() for _, file in of_types):
        return ()
    return tuple(IdTable.of(each.name, each.first, each.n, file) for each, file in of_types)


class GraphDirectory:
    """What a graph directory holds.

    Attributes
    ----------
    path : pathlib.Path
        The directory.
    content : dict
        What ``graph.json`` says.
    """

    def __init__(self, folder: Path, parameter: str = "graph") -> None:
        self.path = folder
        marker = folder / MARKER
        try:
            text = regular(marker).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise ParameterError(
                f"{parameter}: {shown(folder)} is no graph directory: it has no {MARKER}. Pass a folder that `fastpart "
                "ingest` wrote"
            ) from None
        self.content = json_object(marker, text)
        types = self.content.get("types")
        if not isinstance(types, list) or not all(
            isinstance(each, dict) and isinstance(each.get("name"), str) and isinstance(each.get("n"), int)
            for each in types
        ):
            raise GraphFormatError(
                f"{shown(marker)}: lists no types with their numbers of vertices. Ingest again"
            )

    @classmethod
    def of(cls, graph: Any, parameter: str = "graph") -> GraphDirectory:
        """Return the directory of a path, or of a graph that was opened from one. Errors name the parameter."""
        if not isinstance(graph, str | bytes | os.PathLike):
            folder = getattr(graph, "directory", None)
            file = getattr(graph, "path", None)
            if folder is None and file is not None and (file.parent / MARKER).is_file():
                folder = file.parent
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
        names = self.content.get("shards", [])
        if not isinstance(names, list) or not all(
            isinstance(each, str) and "/" not in each for each in names
        ):
            raise self.damaged(f"{MARKER} lists no files of records")
        return names

    def ids(self, name: str) -> Path:
        """Return the Parquet file with the ids of a type, in the order of its vertices."""
        return self.path / "ids" / f"{name}.parquet"

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
        return self.path / file if len(self.types) == 1 else self.path / "types" / name / file

    def file_of_relation(self, name: str, file: str) -> Path:
        """Return a file of a relation. Those of a single relation lie at the top."""
        if len(self.relations) == 1:
            return self.path / RELATION_FILES.get(file, file)
        return self.path / "relations" / name / file

    @cached_property
    def relations(self) -> dict[str, dict[str, Any]]:
        """What ``graph.json`` says of each relation, by name, in the order of their records."""
        relations = self.content.get("relations")
        if not isinstance(relations, list) or not all(
            isinstance(each, dict) and isinstance(each.get("name"), str) for each in relations
        ):
            raise self.damaged(f"{MARKER} lists no relations with their names")
        return {each["name"]: each for each in relations}

    def vocabularies(self) -> tuple[dict[str, dict[str, list[Any]]], dict[str, dict[str, list[Any]]]]:
        """Return the values of the columns of categories, by type and by relation, in the order of their codes."""
        return (
            {name: categories_in(self.file_of_type(name, CATEGORIES)) for name in self.types},
            {name: categories_in(self.file_of_relation(name, CATEGORIES)) for name in self.relations},
        )

    @property
    def features(self) -> list[dict[str, Any]]:
        """The features of each type and relation that has any: its name, and what ``graph.json`` says of them."""
        found = []
        for each in (*self.content["types"], *self.relations.values()):
            if (features := each.get("features")) is None:
                continue
            known = isinstance(features, dict) and isinstance(features.get("columns"), list)
            if not known or not all(
                isinstance(wide, dict) and isinstance(wide.get("width"), int) and key in wide
                for key, wide in [("dtype", features), *(("column", each) for each in features["columns"])]
            ):
                raise self.damaged(
                    f"{MARKER} lists no columns and widths of the features of {each['name']!r}"
                )
            found.append({"name": each["name"], **features})
        return found

    def labels(self, name: str) -> list[Any] | None:
        """Return the label of each class of a type, if they were text."""
        entry = next(each for each in self.content["types"] if each["name"] == name)
        labels = entry.get("labels")
        column = labels.get("column") if isinstance(labels, dict) else None
        return None if column is None else categories_in(self.file_of_type(name, CATEGORIES)).get(column)

    def damaged(self, what: str) -> GraphFormatError:
        """Return the refusal of a directory that contradicts itself."""
        return GraphFormatError(f"{shown(self.path)}: {what}. Ingest again")


def categories_in(file: Path) -> dict[str, list[Any]]:
    """Return the values of each column in a file of categories. Without the file there are none."""
    if not file.exists():
        return {}
    found = {}
    for column, described in json_object(file, regular(file).read_bytes()).items():
        values = described.get("values") if isinstance(described, dict) else None
        if not isinstance(values, list) or not all(type(each) in (str, int) for each in values):
            raise GraphFormatError(f"{shown(file)}: {column!r}: expected a list of text or whole numbers")
        if len(set(map(str, values))) < len(values):
            raise GraphFormatError(f"{shown(file)}: {column!r}: a value is there twice")
        found[column] = values
    return found
