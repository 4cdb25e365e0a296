"""The stage that fetches the features of a batch: which rows it needs, how many of other ranks, and where they are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .. import _core
from ..core.pairs import distinct
from ..errors import ParameterError, arg
from ..partitions.coding import Coding
from ..partitions.types import ONLY_TYPE
from .ahead import Ahead, ended
from .cached_rows import refuse_large
from .planning.windows import PlannedRows
from .rows.owners import Exchange, Owners
from .rows.sources import Array, Cached, Counts, Files, Resident, RowIds, RowIndex, RowSource, decoded
from .sample import SampledArrays


class Nodes(Protocol):
    """What has rows of features: the nodes of one type in a batch, or the in-edges of one relation."""

    @property
    def rows(self) -> npt.NDArray[Any]: ...  # noqa: D102
    @property
    def features(self) -> Array | None: ...  # noqa: D102


AnyNodes = TypeVar("AnyNodes", bound=Nodes)

Key = TypeVar("Key")

FilledBatch = tuple[SampledArrays, Any]
"""A batch, and the features of its nodes, an array or a tensor: of a graph with types a mapping of them by type."""


class Fetching:
    """The features of the nodes of one type, or of the in-edges of one relation.

    It counts the rows of other ranks, and fetches those not here.

    Parameters
    ----------
    here : RowSource or None
        The rows that are here. None if the partition has no features.
    starts : numpy.ndarray
        int64: first row of each part, and the number of rows.
    away : numpy.ndarray
        Mask of the parts whose rows are counted and, if there is an exchange, fetched.
    exchange : Exchange, optional
        Messages to the other ranks. Without it all rows are here.
    coding : Coding, optional
        How rows are decoded. They are moved and kept as they are stored.

    Attributes
    ----------
    here : RowSource or None
        May be replaced before the first batch, by a source of the same rows.
    away : list of int
        The parts that are away.
    counts : Counts
        What was needed of them.
    cached : RowIndex
        Rows of other ranks that are kept.
    resident : Resident or None
        Rows that stay on a device.
    """

    def __init__(
        self,
        here: RowSource | None,
        starts: npt.NDArray[np.int64],
        away: npt.NDArray[np.bool_],
        exchange: Exchange | None,
        coding: Coding | None = None,
    ) -> None:
        self.here, self._exchange, self._coding = here, exchange, coding
        self._starts, self.away = starts, np.flatnonzero(away).tolist()
        self._num_rows = int(starts[-1])
        self.counts = Counts()
        self.cached = RowIndex(np.empty(0, np.uint32))
        self.resident: Resident | None = None
        self._kept: Cached | None = None
        self._set_decoding()

    def _set_decoding(self) -> None:
        self._decoding: _core.Features | None = None
        here, coding = self.here, self._coding
        if (
            coding is not None
            and not self.by_messages
            and isinstance(here, Files)
            and here.features is not None
        ):
            self._decoding = here.features.decoded(coding.core)

    def read_planned(self, cached: Callable[[_core.Features], _core.Features]) -> None:
        """Let the core fill batches from packed rows, and keep those in memory that a plan has ``cached``."""
        here = self.here
        if self.by_messages or not isinstance(here, Files) or here.features is None:
            raise ParameterError(
                f"plan: rows of other ranks come by messages, which are not planned. Leave out {arg('plan')} or "
                f"{arg('remote')}"
            )
        self.here = Files(cached(here.features), here.dtype, here.row_shape)
        self._set_decoding()

    @property
    def with_batches(self) -> _core.Features | None:
        """The files that the core fills batches from while it makes them. None: rows are read afterwards.

        They decode, unless rows of other ranks come to them.
        """
        if self.resident is not None or not isinstance(self.here, Files):
            return None
        return self._decoding or self.here.features

    @property
    def by_messages(self) -> bool:
        """Whether rows of the parts that are away come by messages."""
        return self._exchange is not None

    @property
    def row_bytes(self) -> int:
        """Bytes of the features of a row."""
        return 0 if self.here is None else math.prod(self.here.row_shape) * self.here.dtype.itemsize

    @property
    def _source(self) -> RowSource:
        assert self.here is not None
        return self.here

    def rows(self, ids: RowIds) -> Array:
        """Return rows that are here or cached."""
        x = self._source.rows(ids)
        if self._kept is not None:
            self._kept.put(x, ids)
        return x

    def keep_cached(self, rows: npt.NDArray[Any]) -> None:
        """Keep rows of other ranks, which ascend, so that batches need not fetch them. All ranks have to call it.

        Rows in files are only counted as cached: the page cache keeps them.
        """
        self.cached = RowIndex(rows, self._num_rows)
        if self._exchange is not None:
            refuse_large(len(rows), self.row_bytes, _core.memory_budget())
            self._exchange.begin(1)
            try:
                self._kept = Cached(self.cached, Owners(self._exchange, self._source, Counts()).rows(rows))
            finally:
                self._exchange.leave()

    def keep_resident(self, rows: RowIds, device: torch.device) -> None:
        """Keep rows on a device, where the features of batches are from then on. They ascend, and are own or cached."""
        self.resident = Resident(RowIndex(rows, self._num_rows), self.rows, device)

    def count(self, rows: RowIds) -> None:
        """Count the rows of a batch that was not made here."""
        self._count([self._absent(self._needed(rows))])

    def read_counts(self) -> dict[str, int]:
        """Return what batches needed and read since the last call. See :meth:`..loader.Loader.read_counts`."""
        features = self.here.features if isinstance(self.here, Files) else None
        return {**self.counts.read(), "read_bytes": 0 if features is None else features.read_bytes()}

    def filled(
        self, batches: Iterator[AnyNodes], together: int, steps: int
    ) -> Generator[tuple[AnyNodes, Array | Tensor | None]]:
        """Yield the batches with features. The rows of so many of them are counted and fetched ``together``."""
        read = self._counted if self._exchange is None else self._received
        with closing(read(batches, together, steps)) as filled:
            for batch, x in filled:  # a GPU copies in the stream of the thread that asks
                yield batch, self._joined(batch.rows, x)

    def _joined(self, ids: RowIds, x: Array | None) -> Array | Tensor | None:
        """Return the features of rows, given those that are not resident."""
        if self.resident is None or x is None:
            return x
        joined = self.resident.joined(ids, x)
        return (
            joined if self._coding is None or x.dtype != self._coding.dtype else decoded(joined, self._coding)
        )

    def _counted(
        self, batches: Iterator[AnyNodes], together: int, steps: int
    ) -> Generator[tuple[AnyNodes, Array | None]]:
        wanted: list[RowIds] = []
        for batch in batches:
            rows = self._needed(batch.rows)
            if self.away:
                wanted.append(self._absent(rows))
            if len(wanted) == together:
                self._count(wanted)
                wanted = []
            yield batch, self.of_batch(batch)
        self._count(wanted)

    def _received(
        self, batches: Iterator[AnyNodes], together: int, steps: int
    ) -> Generator[tuple[AnyNodes, Array | None]]:
        assert self._exchange is not None
        self._exchange.begin(-(-steps // together))
        windows = self._windows(batches, together, self._exchange)
        with closing(Ahead(windows, self._exchange.leave)) as ahead:
            yield from chain.from_iterable(ahead)

    def _windows(
        self, batches: Iterator[AnyNodes], together: int, exchange: Exchange
    ) -> Iterator[list[tuple[AnyNodes, Array | None]]]:
        """Yield the batches whose rows are fetched together."""
        with ended(batches):
            while window := list(islice(batches, together)):
                with self.counts.timed():
                    rows = self._count([self._absent(self._needed(batch.rows)) for batch in window])
                    found = Cached(RowIndex(rows), Owners(exchange, self._source, self.counts).rows(rows))
                yield [(batch, self.of_batch(batch, found)) for batch in window]

    def of_batch(self, batch: Nodes, found: Cached | None = None) -> Array | None:
        """Return the features of the nodes of a batch, but for resident ones."""
        with self.counts.timed():
            x, ids = batch.features, batch.rows
            if self.resident is not None:
                ids = self.resident.index.absent(ids)
            if self.here is not None and (x is None or self.with_batches is None):
                x = self.here.rows(ids)
            for kept in (found, self._kept):
                if kept is not None and x is not None:
                    kept.put(x, ids)
            if self._coding is None or self.resident is not None or x is None:
                return x
            return self._coding.decode(x) if x.dtype == self._coding.dtype else x  # the core has decoded them

    def _needed(self, rows: RowIds) -> RowIds:
        """Return the distinct rows of a batch, which ascend, and count them if they have features."""
        rows = distinct(rows)
        self.counts.add("rows", 0 if self.here is None else len(rows))
        return rows

    def _absent(self, rows: RowIds) -> RowIds:
        """Return the rows of the parts that are away. They are distinct and ascend, before and after."""
        bounds = np.searchsorted(rows, self._starts)
        return np.concatenate([rows[:0], *(rows[bounds[p] : bounds[p + 1]] for p in self.away)])

    def _count(self, wanted: Sequence[RowIds]) -> RowIds:
        """Count the distinct rows of some batches, and return those that have to be fetched."""
        if not wanted:
            return np.empty(0, np.uint32)
        rows = distinct(np.concatenate(wanted)) if len(wanted) > 1 else wanted[0]
        if len(self.cached.ids):
            fetched = self.cached.absent(rows)
            self.counts.add("cached_rows", len(rows) - len(fetched))
            rows = fetched
        self.counts.add("remote_rows", len(rows))
        if self._exchange is None:
            self.counts.add("remote_bytes", len(rows) * self.row_bytes)
        return rows

    def complete(self, rows: npt.NDArray[Any], x: Array | None, features: _core.Features | None) -> Array:
        """Return ``x`` with the rows of other ranks. All ranks have to call it, also without rows. It is not counted.

        Parameters
        ----------
        rows : numpy.ndarray
            Row of each item of ``x``.
        x : numpy.ndarray or None
            Values of the rows that are here. None if there are no rows.
        features : _core.Features or None
            Values of the rows that are here. Answers to the other ranks are read from them.
        """
        x = np.empty((0, 0), np.float32) if x is None else x
        assert self._exchange is not None
        wanted = self._absent(distinct(rows))
        own = Files(features, x.dtype, x.shape[1:])
        Cached(RowIndex(wanted), Owners(self._exchange, own, Counts()).rows(wanted)).put(x, rows)
        return x

    def close(self) -> None:
        """End the connections to other ranks."""
        if self._exchange is not None:
            self._exchange.close()


class Fetchings(Generic[Key]):
    """Where the features of each type or relation come from. In a graph without types there is one, of an empty name.

    Parameters
    ----------
    of : mapping of Fetching
        By type or relation. One without features only counts nothing.
    """

    def __init__(self, of: Mapping[Key, Fetching]) -> None:
        self._of = dict(of)

    @property
    def by_messages(self) -> bool:
        """Whether rows of the parts that are away come by messages."""
        return any(fetching.by_messages for fetching in self._of.values())

    def read_counts(self) -> dict[str, int]:
        """Return what batches needed and read since the last call, of all together."""
        counts: Counter[str] = Counter()
        for fetching in self._of.values():
            counts.update(fetching.read_counts())
        return dict(counts)

    def read_seconds(self) -> float:
        """Return the seconds of fetching since the last call, beside those of the core."""
        return sum(fetching.counts.read_seconds() for fetching in self._of.values())

    def close(self) -> None:
        """End the connections to other ranks."""
        for fetching in self._of.values():
            fetching.close()


class NodeFetching(Fetchings[str]):
    """Where the features of nodes come from.

    Attributes
    ----------
    of_type : dict of Fetching
        By type.
    here : RowSource or None
        That of the only type, in a graph without types.
    planned : PlannedRows or None
        What a plan has packed.
    """

    planned: PlannedRows | None = None

    @property
    def of_type(self) -> dict[str, Fetching]:  # noqa: D102
        return self._of

    @property
    def here(self) -> RowSource | None:  # noqa: D102
        return self._of[ONLY_TYPE].here

    @here.setter
    def here(self, source: RowSource) -> None:
        self._of[ONLY_TYPE].here = source

    @property
    def with_batches(self) -> _core.Features | list[_core.Features | None] | None:
        """The files of each type that the core fills batches from while it makes them."""
        found = [fetching.with_batches for fetching in self._of.values()]
        return found[0] if ONLY_TYPE in self._of else found

    def read_planned(self, planned: PlannedRows) -> None:
        """Let the core fill batches from the packed rows of a plan."""
        for name in planned.types:
            self._of[name].read_planned(partial(planned.with_cache, name))
        self.planned = planned

    def pack_of(self, epoch: int) -> _core.Pack | list[_core.Pack | None] | None:
        """Return the packed rows of an epoch, over types one pack for each. None: they are not planned."""
        if self.planned is None:
            return None
        files = {name: self._of[name].with_batches for name in self.planned.types}
        packs = self.planned.packs_of(epoch, {name: of for name, of in files.items() if of is not None})
        found = [packs.get(name) for name in self._of]
        return found[0] if ONLY_TYPE in self._of else found

    def close(self) -> None:
        """End the connections to other ranks, and remove what was packed beyond a plan."""
        if self.planned is not None:
            self.planned.close()
        super().close()

    @property
    def row_bytes(self) -> list[int]:
        """Bytes of the features of a row, type by type."""
        return [fetching.row_bytes for fetching in self._of.values()]

    def counts_of_types(self) -> dict[str, dict[str, int]]:
        """Return what batches needed and read since the last call, by type."""
        return {name: fetching.read_counts() for name, fetching in self._of.items()}

    def filled(self, batches: Iterator[SampledArrays], together: int, steps: int) -> Generator[FilledBatch]:
        """Yield the batches with features. The rows of ``together`` batches are counted and fetched at a time."""
        if ONLY_TYPE in self._of:
            return self._of[ONLY_TYPE].filled(batches, together, steps)
        stages = [
            (name, fetching, partial(_of_type, number=number))
            for number, (name, fetching) in enumerate(self._of.items())
            if fetching.here is not None
        ]
        return chained(batches, stages, together, steps)


View = Callable[[Any], tuple[npt.NDArray[Any], Array | None]]
"""Returns of a batch which rows of features it needs, and the features if they were read."""

Added = Generator[tuple[SampledArrays, dict[Key, Any]]]
"""Batches with the features that were fetched for them."""


def _of_type(batch: Any, number: int) -> tuple[RowIds, Array | None]:
    return batch.rows[number], batch.features[number] if batch.features else None


def chained(
    batches: Iterator[SampledArrays],
    stages: Sequence[tuple[Key, Fetching, View]],
    together: int,
    steps: int,
) -> Added[Key]:
    """Yield batches with the features that several fetch one after the other, each those of a view."""
    stream: Added[Key] = _begun(batches)
    for key, fetching, view in stages:
        stream = _added(stream, key, fetching, view, together, steps)
    return stream


def _begun(batches: Iterator[SampledArrays]) -> Added[Any]:
    with ended(batches):
        for batch in batches:
            yield batch, {}


class _Viewed(NamedTuple):
    """What a batch needs of one type or relation, and the batch with what was fetched for it so far."""

    rows: npt.NDArray[Any]
    features: Array | None
    filled: tuple[SampledArrays, dict[Any, Any]]


def _views(stream: Added[Key], view: View) -> Generator[_Viewed]:
    with ended(stream):
        for filled in stream:
            yield _Viewed(*view(filled[0]), filled)


def _added(
    stream: Added[Key], key: Key, fetching: Fetching, view: View, together: int, steps: int
) -> Added[Key]:
    """Add what one of them fetches. It ends what it reads from, also in the thread that fetches ahead."""
    views = _views(stream, view)
    with ended(views), closing(fetching.filled(views, together, steps)) as found:
        for viewed, x in found:
            viewed.filled[1][key] = x
            yield viewed.filled
