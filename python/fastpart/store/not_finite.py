"""Rows of features with NaN or infinite numbers, counted while they are written."""

from __future__ import annotations

from ..core.finite import not_finite
from ..core.parameters import one_line
from ..core.rows import Array
from ..errors import GraphWarning, warn
from ..graphs.graph import Graph
from ..graphs.graph_directory import GraphDirectory
from .arrays import Gathering


class NotFinite:
    """The rows of an array that hold NaN or an infinite number."""

    def __init__(self, array: Gathering) -> None:
        self._array = array
        self._seen = self._count = self._first = 0

    def add(self, chunk: Array) -> None:
        """Look at the next rows."""
        found = not_finite(chunk)
        if len(found):
            self._first = self._first if self._count else self._seen + int(found[0])
            self._count += len(found)
        self._seen += len(chunk)

    def warn(self, graph: Graph) -> None:
        """Warn of the rows, if there are any, and name the first one."""
        if not self._count:
            return
        folder, key = self._array.name.rpartition("/")[0], self._array.key
        kind, _, name = folder.partition("/")
        about = f"{kind[:-1]} {name!r}: " if folder else ""
        first = f"record {self._first}"
        if key == "features":
            first = f"vertex {self._first}{_own_id(graph, name, self._first)}"
        rows = "the row of" if self._count == 1 else f"{self._count} rows, the first of them of"
        warn(
            f"{about}{key}: {rows} {first} has NaN or infinite numbers. A network has no outputs where they reach. "
            "Replace them before you train",
            GraphWarning,
        )


def _own_id(graph: Graph, of_type: str, vertex: int) -> str:
    """Return the id that a vertex of a type had in tables, in parentheses. Nothing if it had none."""
    if graph.directory is None:
        return ""
    directory = GraphDirectory(graph.directory)
    own = directory.own_id(of_type or next(iter(directory.types)), vertex)
    return "" if own is None else f" (id {one_line(str(own), 40)!r})"
