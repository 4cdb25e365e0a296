"""The features of batches of typed graphs: those of each type come from files of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import Any

from ... import _core
from ..ahead import ended
from ..fetching import Fetching

TypedFilled = tuple[_core.TypedSampledBatch, dict[str, Any]]
"""A batch, and the features of its nodes by type: an array or a tensor."""


class NodesOfType:
    """What a batch holds of one type, for the stage that fetches features."""

    def __init__(self, filled: TypedFilled, number: int) -> None:
        self.filled = filled
        batch = filled[0]
        self.rows, self.n_id = batch.rows[number], batch.n_id[number]
        self.features = batch.features[number] if batch.features else None


class TypedFetching:
    """Where the features of each type come from.

    Attributes
    ----------
    of_type : dict of Fetching
        By type. One without features only counts nothing.
    """

    def __init__(self, of_type: Mapping[str, Fetching]) -> None:
        self.of_type = dict(of_type)

    @property
    def with_batches(self) -> list[_core.Features | None]:
        """By type: the files that the core fills batches from while it makes them."""
        return [fetching.with_batches for fetching in self.of_type.values()]

    @property
    def by_messages(self) -> bool:
        """Whether rows of the parts that are away come by messages."""
        return any(fetching.by_messages for fetching in self.of_type.values())

    @property
    def row_bytes(self) -> dict[str, int]:
        """Bytes of the features of a row, by type."""
        return {name: fetching.row_bytes for name, fetching in self.of_type.items()}

    def filled(
        self, batches: Iterator[_core.TypedSampledBatch], together: int, steps: int
    ) -> Generator[TypedFilled]:
        """Yield the batches with features. The rows of so many of them are counted and fetched ``together``."""
        stream: Iterator[TypedFilled] = ((batch, {}) for batch in batches)
        for number, (name, fetching) in enumerate(self.of_type.items()):
            if fetching.here is not None:
                stream = _filled(stream, number, name, fetching, together, steps)
        yield from stream

    def read_counts(self) -> dict[str, int]:
        """Return what batches needed and read since the last call, of all types together."""
        counts: Counter[str] = Counter()
        for fetching in self.of_type.values():
            counts.update(fetching.read_counts())
        return dict(counts)

    def counts_of_types(self) -> dict[str, dict[str, int]]:
        """Return what batches needed and read since the last call, by type."""
        return {name: fetching.read_counts() for name, fetching in self.of_type.items()}

    def read_seconds(self) -> float:
        """Return the seconds of fetching since the last call, beside those of the core."""
        return sum(fetching.counts.read_seconds() for fetching in self.of_type.values())

    def close(self) -> None:
        """End the connections to other ranks."""
        for fetching in self.of_type.values():
            fetching.close()


def _filled(
    stream: Iterator[TypedFilled], number: int, name: str, fetching: Fetching, together: int, steps: int
) -> Generator[TypedFilled]:
    """Add the features of one type."""
    nodes = (NodesOfType(filled, number) for filled in stream)
    with ended(stream), closing(fetching.filled(nodes, together, steps)) as found:
        for of_type, x in found:
            of_type.filled[1][name] = x
            yield of_type.filled
