"""The graph that a directory with a vertex partition holds, mapped."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.folders import inside
from ..core.ids import IdTable
from ..core.parameters import shown
from ..core.parsing import named
from ..errors import GraphFormatError, ParameterError, arg, code
from .part_files import MANIFEST
from .part_rows import typed_of
from .parts import Parts, time_files


class OneType:
    """Stands for the types of a graph without types: the rows of all vertices are rows of the one type.

    Attributes
    ----------
    starts : list of numpy.ndarray
        As in ``_core.Types``: first row of each part among those of the type, and their number.
    """

    def __init__(self, topology: _core.Topology) -> None:
        self.starts = [topology.starts]

    def locate(self, rows: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]:
        """Return the number of the type of each row, and the row among those of the type."""
        return np.zeros(len(rows), np.uint16), rows


class StoredGraph:
    """A base of :class:`fastpart.VertexPartition`: what its methods read of a directory."""

    folder: Path | None
    if TYPE_CHECKING:

        @property
        def parts(self) -> Parts[Any]: ...  # noqa: D102

    @property
    def is_typed(self) -> bool:
        """Whether the graph has types."""
        return "types" in self.parts._manifest

    @cached_property
    def _topology(self) -> _core.Topology:
        """The in-edges of all parts, mapped."""
        return _core.Topology([part._folder for part in self.parts])

    @cached_property
    def _types(self) -> _core.Types | None:
        """The types of the vertices and in-edges of all parts. None: the graph has no types."""
        typed = typed_of(self.parts._manifest)
        if typed is None:
            return None
        numbers = {each.name: number for number, each in enumerate(typed.types)}
        return _core.Types(
            self._topology,
            [part._folder for part in self.parts],
            [each.first for each in typed.types],
            [(numbers[each.source], numbers[each.target]) for each in typed.edge_types],
        )

    @cached_property
    def _rows_by_type(self) -> _core.Types | OneType:
        """The rows of each type."""
        return self._types or OneType(self._topology)

    @cached_property
    def _times(self) -> _core.Times:
        """When vertices and edges came to be, mapped."""
        vertices, edges = time_files(self.parts)
        if not (any(vertices) or any(edges)):
            raise ParameterError(
                f"temporal: {parameters.shown(self.folder or '')} holds no times. Save the partition with "
                f"{arg('edge_times')} or {arg('times')}"
            )
        return _core.Times(self._topology, vertices, edges, self._types)


def refuse_without_edges(partition: StoredGraph, name: str = "partition") -> None:
    """Raise an error that begins with ``name`` unless the parts are stored with all of their in-edges."""
    if partition.parts._manifest.get("halo_hops", 0) < 1:
        raise ParameterError(
            f"{name}: {parameters.shown(partition.folder or '')} lacks the edges between parts. Save the partition "
            f"with {arg('halo_hops', 1)}"
        )


def refuse_types(partition: StoredGraph, name: str, what: str) -> None:
    """Raise an error that begins with ``name`` if the graph has types, which ``what`` does not tell apart."""
    if partition.is_typed:
        raise ParameterError(
            f"{name}: {parameters.shown(partition.folder or '')} holds a graph with types, and {what} one type of "
            "vertices with one kind of features. Hand the parts over with "
            f"{code('fastpart.export.dgl', '`fastpart export dgl`')} or "
            f"{code('fastpart.export.pyg', '`fastpart export pyg`')}, which keep the types"
        )


IDS = "ids"
"""The entry of a manifest that lists the types whose ids lie in the folder of the same name, in their order."""


def stored_ids(folder: Path, manifest: Mapping[str, Any], n: int) -> tuple[IdTable, ...]:
    """Return the ids of ``n`` vertices in a directory."""
    typed, names, root = typed_of(manifest), manifest.get(IDS, []), folder.resolve()
    known = names if typed is None else [each.name for each in typed.types]
    spans = [(0, n)] if typed is None else [(each.first, each.n) for each in typed.types]
    if names != known or len(names) != len(spans):
        raise GraphFormatError(f"{shown(folder / MANIFEST)}: {IDS}: expected the types of the vertices")
    return tuple(
        IdTable.of(name, *span, inside(root, _file(name))) for name, span in zip(names, spans, strict=True)
    )


def store_ids(folder: Path, tables: Sequence[IdTable]) -> dict[str, list[str]]:
    """Copy ids to a directory that is being written, and return their entry of the manifest."""
    for each in tables:
        target = folder / _file(each.name)
        with named(target):
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(each.file, target)
        each.refuse_changed()
    return {IDS: [each.name for each in tables]} if tables else {}


def _file(name: str) -> str:
    return f"ids/{name}.parquet"
