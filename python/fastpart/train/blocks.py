"""Vertices of the parts of a process, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Vertices = npt.NDArray[np.int64]

Block = tuple[int, Vertices]
"""A part, and some of its inner vertices by local id. They ascend, also from block to block of a part."""

VertexMask = Callable[[int], npt.NDArray[np.bool_]]
"""Returns the mask of the inner vertices of a part that are wanted."""

PIECE_BYTES = 64 << 20
"""Bytes of a block, about. The limit of the memory does not change blocks, and so no digit of what is computed."""


def piece(size: int) -> int:
    """Return how many things of a size in bytes a block has, about."""
    return PIECE_BYTES // max(size, 1)


class InEdges(Protocol):
    """The inner vertices of a part, or those of one type, and where the in-edges of each begin."""

    @property
    def num_inner(self) -> int: ...  # noqa: D102
    @property
    def indptr(self) -> npt.NDArray[np.int64]: ...  # noqa: D102


class Blocks:
    """Splits the vertices of parts into blocks.

    Parameters
    ----------
    parts : sequence of InEdges
        All parts.
    own : list of int
        Those of this process.
    starts : numpy.ndarray
        The first row of each part.

    Attributes
    ----------
    parts : list of int
        The parts of this process.
    """

    def __init__(
        self, parts: Sequence[InEdges], own: list[int], starts: npt.NDArray[np.integer[Any]]
    ) -> None:
        self._all, self.parts, self._starts = parts, own, starts

    def vertices(self, part: int, wanted: VertexMask | None) -> Vertices:
        """Return the wanted inner vertices of a part. None: all."""
        return np.arange(self._all[part].num_inner) if wanted is None else np.flatnonzero(wanted(part))

    def rows(self, part: int, vertices: Vertices) -> npt.NDArray[np.uint32]:
        """Return the rows of inner vertices of a part."""
        return (self._starts[part] + vertices).astype(np.uint32)

    def degrees(self, part: int, vertices: Vertices) -> Vertices:
        """Return how many in-edges inner vertices of a part have."""
        indptr = self._all[part].indptr
        degrees: Vertices = indptr[vertices + 1] - indptr[vertices]
        return degrees

    def split(
        self, wanted: VertexMask | None, cost: Callable[[Vertices], Vertices], most: int
    ) -> Iterator[Block]:
        """Yield the wanted vertices of this process in blocks that cost about ``most``, given the cost of a degree."""
        for number in self.parts:
            vertices = self.vertices(number, wanted)
            costs = np.cumsum(cost(self.degrees(number, vertices)))
            for block in np.split(vertices, np.flatnonzero(np.diff(costs // most)) + 1):
                if len(block):
                    yield number, block
