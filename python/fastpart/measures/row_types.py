"""The rows of a typed graph that training fetches: how many bytes those of each type have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.parameters import meant
from ..core.parsing import mapped
from ..errors import ParameterError
from ..graphs.graph import Graph
from ..graphs.graph_directory import found_in
from ..partitions.partition import VertexPartition
from ..partitions.types import rows_of_type, type_names


@dataclass(frozen=True)
class RowTypes:
    """The types of rows. A plain graph has one without a name.

    Attributes
    ----------
    names : tuple of str or None
        The types. None: the graph has none.
    row_bytes : tuple of int or None
        Bytes of the features of a row, by type. None: they are unknown.
    """

    names: tuple[str, ...] | None
    row_bytes: tuple[int, ...] | None

    @classmethod
    def of(cls, names: Sequence[str] | None, given: Any, known: Sequence[int] | None) -> Self:
        """Return the types with the bytes that a caller gives, or those that are ``known``.

        Raises
        ------
        ParameterError, TypeError
            Bytes of a type that there is not, or a number below 0.
        """
        if not isinstance(given, Mapping):
            count = 1 if names is None else len(names)
            if given is not None:
                known = [parameters.integer("row_bytes", given, 0, 2**63 - 1)] * count
            types = None if names is None else tuple(names)
            return cls(types, None if known is None else tuple(known))
        if names is None:
            raise ParameterError("row_bytes: the graph has no types. Pass a number")
        for name in given:
            if name not in names:
                raise ParameterError(
                    f"row_bytes: {name!r} is none of the types {', '.join(names)}{meant(str(name), names)}"
                )
        sizes = (parameters.integer(f"row_bytes: {name}", given.get(name, 0), 0, 2**63 - 1) for name in names)
        return cls(tuple(names), tuple(sizes))

    @property
    def worth(self) -> list[float]:
        """What a row is worth to a cache, by type: its bytes. If none are known, all rows are worth the same."""
        if self.row_bytes is None or not any(self.row_bytes):
            return [1.0] * (1 if self.names is None else len(self.names))
        return list(map(float, self.row_bytes))

    @property
    def counted(self) -> list[bool]:
        """Whether rows are fetched, by type."""
        return [worth > 0 for worth in self.worth]


def stored_bytes(partition: VertexPartition) -> list[int] | None:
    """Return the bytes of the features of a row of a directory, by type. None if it has no features at all."""
    parts = [rows_of_type(partition.parts[0], name) for name in type_names(partition)]
    sizes = [part.feature_bytes if "features" in part._manifest else 0 for part in parts]
    return sizes if any(sizes) else None


def directory_bytes(graph: Graph) -> list[int] | None:
    """Return the bytes of the features of a row in a graph directory, by type. None if there are none."""
    if graph._typed is None or graph.directory is None:
        return None
    files = found_in(graph.directory, graph._typed).get("features", {})
    rows = {name: mapped(file) for name, file in files.items()}
    sizes = [
        rows[each.name].nbytes // max(1, len(rows[each.name])) if each.name in rows else 0
        for each in graph._typed.types
    ]
    return sizes if any(sizes) else None


def bytes_of_rows(partition: VertexPartition) -> npt.NDArray[np.float32] | float:
    """Return the bytes of the features of any row, or for a typed graph those of each row of the topology.

    If there are no features, each row has one.
    """
    worth = RowTypes.of(type_names(partition), None, stored_bytes(partition)).worth
    return worth[0] if partition._types is None else of_each_row(partition._types, worth)


def of_each_row(types: _core.Types, by_type: Sequence[float]) -> npt.NDArray[np.float32]:
    """Return the value of the type of each row of the topology: part after part, and type after type in each."""
    counts = np.diff(np.array(types.starts, np.int64), axis=1).astype(np.int64)
    return np.repeat(np.tile(np.array(by_type, np.float32), counts.shape[1]), counts.T.ravel())
