"""Partitions: one part per vertex, or one part per edge record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from . import parameters
from .errors import GraphFormatError, ParameterError


class Partition:
    """What vertex and edge partitions share; make one of the two.

    Attributes
    ----------
    assignment : numpy.ndarray
        Part of each item, read-only.
    k : int
        Number of parts.
    loads : numpy.ndarray
        int64, length k: items of each part.
    cap : int or None
        The largest load that was allowed; None if there was no bound.
    weight_loads : numpy.ndarray or None
        int64, length k: weight of each part, if it was made with ``balance_on``.
    weight_cap : int or None
        The largest weight that was allowed.
    algorithm : str
        Name of the function that made it; "user" for an array of the user's own.
    parameters : dict
        What that function was given, defaults included.
    n, m, loops, checksum
        Identify the graph it belongs to; None where unknown.
    """

    kind: ClassVar[str]
    item: ClassVar[str]
    items: ClassVar[str]

    weight_loads: npt.NDArray[np.int64] | None = None
    weight_cap: int | None = None

    def __init__(self, array: npt.ArrayLike, k: int) -> None:
        self.k = parameters.parts(k)
        self.assignment = self._checked(np.asarray(array))
        self.loads = _frozen(np.bincount(self.assignment, minlength=self.k).astype(np.int64))
        self.cap: int | None = None
        self.algorithm = "user"
        self.parameters: dict[str, Any] = {}
        self.n: int | None = None
        self.m: int | None = None
        self.loops: int | None = None
        self.checksum: str | None = None

    @classmethod
    def _made(cls, algorithm: str, given: Mapping[str, Any], fields: Mapping[str, Any]) -> Self:
        """Wrap what the core made, which needs no checks."""
        made = cls.__new__(cls)
        made.k = given["k"]
        made.assignment = fields["assignment"]
        made.loads = _frozen(np.array(fields["loads"], dtype=np.int64))
        made.cap = fields["cap"]
        made.algorithm = algorithm
        made.parameters = dict(given)
        made.n, made.m = fields["n"], fields["m"]
        made.loops, made.checksum = fields["loops"], fields["checksum"]
        return made

    def _checked(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if array.ndim != 1:
            raise TypeError(f"assignment: shape {array.shape}; expected one part per {self.item}")
        if array.dtype.kind not in "iu" and array.size:
            raise TypeError(f"assignment: dtype {array.dtype}; parts are integers")
        bad = np.flatnonzero((array < 0) | (array >= self.k)) if array.size else array
        if bad.size:
            first = int(bad[0])
            raise ParameterError(
                f"assignment: {self.item} {first} has part {array[first]}, outside 0..{self.k - 1} (k={self.k})"
            )
        return _frozen(array.astype(self._dtype(), copy=True))

    def _dtype(self) -> npt.DTypeLike:
        return np.int32

    def __len__(self) -> int:
        return len(self.assignment)

    def __repr__(self) -> str:
        spread = f"loads {self.loads.min()}..{self.loads.max()}"
        return f"<{type(self).__name__}: {self.algorithm}, k={self.k}, {len(self)} {self.items}, {spread}>"

    def refuse_other_graph(self, n: int, m: int, checksum: str | None) -> None:
        """Raise :class:`GraphFormatError` unless this partition belongs to the graph described."""
        mine = {"n": self.n, "m": self.m, "checksum": self.checksum}
        for name, value in {"n": n, "m": m, "checksum": checksum}.items():
            if value is not None and mine[name] is not None and value != mine[name]:
                raise GraphFormatError(
                    f"the partition belongs to another graph: its {name} is {mine[name]}, the graph's is {value}"
                )
        items = {"vertex": n, "record": m}[self.item]
        if len(self) != items:
            raise GraphFormatError(
                f"the partition belongs to another graph: it has {len(self)} {self.items}, the graph has {items} "
                "(trailing isolated vertices? then open the edges with num_vertices=)"
            )

    def save(self, out: parameters.StrPath, **options: Any) -> None:
        """Write the partition; see :func:`fastpart.store.save`, which this calls, for the formats and options."""
        from .store import save

        save(self, out, **options)


class VertexPartition(Partition):
    """One part per vertex.

    Parameters
    ----------
    array : array of integers, shape (n,)
        Part of each vertex, in ``0..k-1``; copied to int32.
    k : int
        Number of parts.

    Raises
    ------
    ParameterError
        A part outside ``0..k-1``; the text names the first vertex that has one.
    TypeError
        The array is not one-dimensional, or does not hold integers.

    Examples
    --------
    >>> import fastpart as fp
    >>> fp.VertexPartition([0, 1, 1, 0], k=2).loads
    array([2, 2])
    """

    kind = "vertex"
    item = "vertex"
    items = "vertices"


class EdgePartition(Partition):
    """One part per edge record, in stream order.

    Parameters
    ----------
    array : array of integers, shape (m,)
        Part of each record, in ``0..k-1``; copied to uint8 for k <= 255, int16 for k <= 32,767, else int32.
    k : int
        Number of parts.

    Raises
    ------
    ParameterError
        A part outside ``0..k-1``; the text names the first record that has one.
    TypeError
        The array is not one-dimensional, or does not hold integers.

    Examples
    --------
    >>> import fastpart as fp
    >>> fp.EdgePartition([0, 1, 1], k=2).assignment
    array([0, 1, 1], dtype=uint8)
    """

    kind = "edge"
    item = "record"
    items = "records"

    def _dtype(self) -> npt.DTypeLike:
        return np.uint8 if self.k <= 255 else np.int16 if self.k <= 32_767 else np.int32


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
