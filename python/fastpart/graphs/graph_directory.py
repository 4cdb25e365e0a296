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
from ..core.parameters import path, regular, shown
from ..core.parsing import damaged, json_object
from ..errors import GraphFormatError, ParameterError

MARKER = "graph.json"
"""The file that marks a graph directory and describes it."""

EDGES = "edges.bin"

RELATION_FILES = {"features.npy": "edge_features.npy"}
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


class GraphDirectory:
    """What a graph directory holds.

    Attributes
    ----------
    path : pathlib.Path
        The directory.
    content : dict
        What ``graph.json`` says.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder
        marker = folder / MARKER
        try:
            text = regular(marker).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise ParameterError(
                f"graph: {shown(folder)} is no graph directory: it has no {MARKER}. Pass a folder that `fastpart "
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
    def of(cls, graph: Any) -> GraphDirectory:
        """Return the directory of a path, or of a graph that was opened from one."""
        if not isinstance(graph, str | bytes | os.PathLike):
            folder = getattr(graph, "directory", None)
            file = getattr(graph, "path", None)
            if folder is None and file is not None and (file.parent / MARKER).is_file():
                folder = file.parent
            if folder is None:
                raise ParameterError(
                    "graph: it was opened from numbers of vertices, and has no ids. Pass the folder that `fastpart "
                    "ingest` wrote"
                )
            return cls(folder)
        folder = path("graph", graph)
        if not folder.exists():
            raise FileNotFoundError(2, os.strerror(2), str(folder))
        return cls(folder.parent if folder.name == EDGES else folder)

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
            return pl.scan_parquet(file).collect_schema()["id"]

    def own_id(self, name: str, vertex: int) -> Any:
        """Return the id that a vertex of a type had in tables. None if there are no ids."""
        file = self.ids(name)
        if not file.exists():
            return None
        with damaged(file, "not a Parquet file of ids"):
            found = pl.scan_parquet(file).select("id").slice(vertex, 1).collect()["id"]
        return found[0] if len(found) else None

    def file_of_type(self, name: str, file: str) -> Path:
        """Return a file of a type. Those of a single type lie at the top."""
        return self.path / file if len(self.types) == 1 else self.path / "types" / name / file

    def labels(self, name: str) -> list[Any] | None:
        """Return the label of each class of a type, if they were text."""
        entry = next(each for each in self.content["types"] if each["name"] == name)
        file = self.file_of_type(name, "categories.json")
        column = (entry.get("labels") or {}).get("column")
        if column is None or not file.exists():
            return None
        known = json_object(file, file.read_bytes()).get(column)
        return None if known is None else list(known["values"])

    def damaged(self, what: str) -> GraphFormatError:
        """Return the refusal of a directory that contradicts itself."""
        return GraphFormatError(f"{shown(self.path)}: {what}. Ingest again")
