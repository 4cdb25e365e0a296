"""Groups: batches for all compute workers of a machine as one message, with each row of features once.

A batch worker makes a group. The receiver puts it into shared memory, from where compute workers take their batches.
"""

from __future__ import annotations

import math
import mmap
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.system import allocate
from ....errors import MemoryBudgetError, TrainingError, arg
from ....partitions.part_files import RowType
from ....partitions.partition import VertexPartition
from ....partitions.types import edge_keys, of_relation, of_type, type_names
from ....runtime.launch import SHARED_MEMORY
from .cache import CacheIndex, RowIds
from .messages import Array, Kind, MessageError, Spec, framed

_ALIGN = 64

_NUMBERS: RowType = np.dtype(np.int32), ()
_ROW_IDS: RowType = np.dtype(np.uint32), ()
_NONE: RowType = np.dtype(np.uint8), (0,)
"""Features of vertices that have none."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A sampled batch.

    Attributes
    ----------
    rows : list of numpy.ndarray
        By type: row of each node among those of the type, level by level.
    indptr, indices : list of numpy.ndarray
        By relation: the in-edges of the nodes of all levels but the last.
    edge_features : list of numpy.ndarray or None
        By relation: features of the in-edges, as they are stored, if they are sent.
    levels, edges : list of list of int
        Nodes of each level by type, and in-edges of each hop by relation.
    """

    rows: list[npt.NDArray[Any]]
    indptr: list[npt.NDArray[np.int32]]
    indices: list[npt.NDArray[np.int32]]
    edge_features: list[Array | None]
    levels: list[list[int]]
    edges: list[list[int]]

    @property
    def counts(self) -> list[list[int]]:
        """Nodes of each level, type after type, and in-edges of each hop, relation after relation."""
        return [[*chain.from_iterable(self.levels)], [*chain.from_iterable(self.edges)]]

    def arrays(self, places: Sequence[Array]) -> list[Array]:
        """Return the arrays of a batch, given the places of its nodes by type."""
        of_relations = zip(self.indptr, self.indices, self.edge_features, strict=True)
        return [*places, *(each for each in chain.from_iterable(of_relations) if each is not None)]


@dataclass(frozen=True)
class Layout:
    """The arrays of groups over a directory.

    For each type they are the features that are sent, all rows (these first), and the slots of the others in the cache,
    then which of those that are sent are kept there, and in which slots. Behind them, each batch has the place of each
    node among the rows of its type, and for each relation offsets and sources of the in-edges, and their features if
    these are sent.

    Attributes
    ----------
    types : list of tuple
        Type and shape of the features of a vertex, by type of the vertices.
    relations : list of tuple or None
        Type and shape of the features of an in-edge, by relation. None if they are not sent.
    ends : list of tuple of int
        Number of the types of the sources and of the targets, by relation.
    """

    types: list[RowType]
    relations: list[RowType | None]
    ends: list[tuple[int, int]]

    OF_TYPE = 5
    """Arrays of a type before the batches."""

    @classmethod
    def of(cls, partition: VertexPartition, edge_features: bool) -> Layout:
        """Return the layout for a directory."""
        names, keys = type_names(partition), edge_keys(partition)
        return cls(
            [of_type(partition, name)[0].stored_type("features") or _NONE for name in names],
            [
                of_relation(partition, key[1])[0].stored_type("edge_features") if edge_features else None
                for key in keys
            ],
            [(names.index(source), names.index(target)) for source, _, target in keys],
        )

    @property
    def row_bytes(self) -> list[int]:
        """Bytes of the features of a vertex, by type."""
        return [dtype.itemsize * math.prod(shape) for dtype, shape in self.types]

    def rows(self, arrays: Sequence[Any]) -> list[Sequence[Any]]:
        """Return the arrays of each type, of those of a message."""
        return [arrays[first : first + self.OF_TYPE] for first in range(0, self._of_types, self.OF_TYPE)]

    def refuse_wrong(self, content: Mapping[str, Any], specs: Sequence[Spec]) -> None:
        """Raise an error unless a message has the arrays that it needs."""
        graphs, of_batch = content.get("graphs"), self._of_batch
        if not isinstance(graphs, list) or len(specs) != self._of_types + len(of_batch) * len(graphs):
            raise MessageError("a group has another number of arrays than its batches need")
        expected = [each for row in self.types for each in (row, _ROW_IDS, _NUMBERS, _NUMBERS, _NUMBERS)]
        right = [(dtype, shape[1:]) for dtype, shape in specs] == expected + of_batch * len(graphs)
        if (
            not right
            or not all(shape for _, shape in specs)
            or any(sent[1][0] > rows[1][0] for sent, rows, *_ in self.rows(specs))
        ):
            raise MessageError("a group has arrays of other types or shapes than this directory needs")

    def samples(self, graphs: Sequence[Any], arrays: Sequence[Array]) -> Iterator[tuple[int, Sample]]:
        """Yield the compute worker and the sample of each batch. Its rows are places among those of the group."""
        types, each = len(self.types), len(self._of_batch)
        for number, (worker, levels, edges) in enumerate(graphs):
            found = iter(arrays[number * each : (number + 1) * each])
            sample = Sample(
                rows=[next(found) for _ in range(types)],
                indptr=[],
                indices=[],
                edge_features=[],
                levels=_divided(levels, types),
                edges=_divided(edges, len(self.relations)),
            )
            for row in self.relations:
                sample.indptr.append(next(found))
                sample.indices.append(next(found))
                sample.edge_features.append(None if row is None else next(found))
            yield worker, sample

    @property
    def _of_types(self) -> int:
        return self.OF_TYPE * len(self.types)

    @property
    def _of_batch(self) -> list[RowType]:
        of_relations = ([_NUMBERS, _NUMBERS, *([] if row is None else [row])] for row in self.relations)
        return [_NUMBERS] * len(self.types) + [*chain.from_iterable(of_relations)]


def _divided(counts: list[int], among: int) -> list[list[int]]:
    each = len(counts) // among
    return [counts[first : first + each] for first in range(0, each * among, each)]


# Batch workers.


@dataclass(frozen=True)
class Group:
    """A group of batches, before the features are read.

    Attributes
    ----------
    sent : list of numpy.ndarray
        Rows to send, by type. They ascend.
    content : dict
        The content of the message.
    of_types, of_batches : list of list of numpy.ndarray
        Its arrays of each type, without the features, and of each batch.
    """

    sent: list[RowIds]
    content: dict[str, Any]
    of_types: list[list[Array]]
    of_batches: list[list[Array]]

    def arrays(self, features: Sequence[Array]) -> list[Array]:
        """Return all arrays of the message, given the features that are sent, by type."""
        of_types = ([x, *arrays] for x, arrays in zip(features, self.of_types, strict=True))
        return [*chain.from_iterable(of_types), *chain.from_iterable(self.of_batches)]


class Grouping:
    """Makes groups. It has a number and a mark for every row of each type.

    Parameters
    ----------
    num_rows, row_bytes : sequence of int
        Rows of each type, and the bytes of each row.
    indexes : sequence of CacheIndex
        The contents of the cache, by type.
    """

    def __init__(
        self, num_rows: Sequence[int], row_bytes: Sequence[int], indexes: Sequence[CacheIndex]
    ) -> None:
        self._types = [*map(_OfType, num_rows, row_bytes, indexes)]

    def group(self, samples: Sequence[Sample], compute_workers: Sequence[int]) -> Group:
        """Return the group of some batches, given the compute worker of each."""
        sent, of_types, places = list[RowIds](), list[list[Array]](), list[list[Array]]()
        ungrouped = 0
        for number, each in enumerate(self._types):
            rows, arrays, its_places, alone = each.placed([sample.rows[number] for sample in samples])
            sent.append(rows)
            of_types.append(arrays)
            places.append(its_places)
            ungrouped += alone
        of_batches = [
            sample.arrays([its_places[batch] for its_places in places])
            for batch, sample in enumerate(samples)
        ]
        for sample, its_arrays in zip(samples, of_batches, strict=True):
            head = framed({"kind": Kind.BATCH, "graphs": [[0, *sample.counts]]}, [])
            ungrouped += len(head) + sum(array.nbytes for array in its_arrays)
        graphs = [[worker, *sample.counts] for worker, sample in zip(compute_workers, samples, strict=True)]
        content = {"kind": Kind.BATCH, "graphs": graphs, "ungrouped": ungrouped}
        return Group(sent, content, of_types, of_batches)


class _OfType:
    """The rows of a type in groups."""

    def __init__(self, num_rows: int, row_bytes: int, index: CacheIndex) -> None:
        self._place = np.empty(num_rows, np.int32)
        self._marked = np.zeros(num_rows, np.bool_)
        self._row_bytes, self._cache_index = row_bytes, index

    def placed(self, batches: Sequence[RowIds]) -> tuple[RowIds, list[Array], list[Array], int]:
        """Return the rows to send, the arrays of the type, and the places of the nodes of each batch.

        The last one is the bytes of rows in messages of one batch each, with each of its rows once, and the same cache.
        """
        for batch in batches:
            self._marked[batch] = True
        rows = np.flatnonzero(self._marked).astype(np.uint32)
        self._marked[rows] = False
        placement = self._cache_index.place(rows)
        sent, cached = rows[~placement.cached], rows[placement.cached]
        ordered = np.concatenate([sent, cached])
        self._place[ordered] = np.arange(len(ordered))
        places, alone, its_rows = list[Array](), 0, np.zeros(len(ordered), np.bool_)
        for batch in batches:
            places.append(self._place[batch])
            its_rows[:] = False
            its_rows[places[-1]] = True
            count, missing = int(np.count_nonzero(its_rows)), int(np.count_nonzero(its_rows[: len(sent)]))
            alone += missing * self._row_bytes + 4 * count + 4 * (count - missing)  # features, rows and slots
        return sent, [ordered, placement.slots, placement.kept, placement.into], places, alone


# The receiver.

Extent = tuple[int, str, tuple[int, ...]]
"""Offset, type and shape of an array in a file."""


@dataclass(frozen=True)
class File:
    """A file in shared memory."""

    name: str
    memory: mmap.mmap


@dataclass(frozen=True)
class Buffer:
    """A file with a group.

    Attributes
    ----------
    file : File
        The file in shared memory.
    extents : list
        Where the features and the rows of each type, and the arrays of each batch, lie in the file.
    x : list of numpy.ndarray
        The features of all rows, by type. At first, rows from the cache are missing.
    arrays : list of numpy.ndarray
        Arrays that a message is received into.
    """

    file: File
    extents: list[Extent]
    x: list[Array]
    arrays: list[Array]


class BufferPool:
    """Hands out buffers. It takes files that were used before, because fresh memory takes as long as to fill it.

    Parameters
    ----------
    run : str
        Name of the run. Files are removed with it in any case.
    layout : Layout
        The arrays of groups.
    """

    def __init__(self, run: str, layout: Layout) -> None:
        self._run, self._layout = run, layout
        self._numbers = count()
        self._free: list[File] = []
        self._lock = threading.Lock()

    def take(self, content: Mapping[str, Any], specs: Sequence[Spec]) -> Buffer:
        """Return a buffer for a message."""
        self._layout.refuse_wrong(content, specs)
        types = self._layout.rows(specs)
        shared: list[Spec] = []
        for (dtype, shape), (_, rows, *_) in zip(self._layout.types, types, strict=True):
            shared += (dtype, (rows[1][0], *shape)), rows
        extents, end = [], 0
        for dtype, shape in [*shared, *specs[self._layout.OF_TYPE * len(types) :]]:
            extents.append((end, dtype.str, shape))
            end += -(-dtype.itemsize * int(np.prod(shape, dtype=object)) // _ALIGN) * _ALIGN
        file = self._file(end)
        views = [_view(file.memory, extent) for extent in extents]
        whole, arrays = views[: len(shared) : 2], list[Array]()
        for x, rows, (sent, _, *others) in zip(whole, views[1 : len(shared) : 2], types, strict=True):
            arrays += [x[: sent[1][0]], rows, *(np.empty(shape, dtype) for dtype, shape in others)]
        return Buffer(file, extents, whole, arrays + views[len(shared) :])

    def _file(self, size: int) -> File:
        """Return a file that nobody uses. A new one takes the place of one that is too small."""
        with self._lock:
            self._free.sort(key=lambda file: len(file.memory))
            for place, file in enumerate(self._free):
                if len(file.memory) >= size:
                    return self._free.pop(place)
            if self._free:
                _unlink(self._free.pop(0))
            name = f"{self._run}-batch-{os.getpid()}-{next(self._numbers)}"
        return File(name, _created(SHARED_MEMORY / name, size + size // 8 + _ALIGN))

    def take_back(self, buffer: Buffer) -> None:
        """Use the file of a buffer again."""
        with self._lock:
            self._free.append(buffer.file)

    def close(self) -> None:
        """Remove the files that nobody uses."""
        with self._lock:
            for file in self._free:
                _unlink(file)
            self._free.clear()


def _unlink(file: File) -> None:
    (SHARED_MEMORY / file.name).unlink(missing_ok=True)


def _created(file: Path, size: int) -> mmap.mmap:
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        allocate(handle, size)  # otherwise a write to a full /dev/shm would be a SIGBUS
        return mmap.mmap(handle, size)
    except OSError as error:
        file.unlink()
        raise MemoryBudgetError(
            f"/dev/shm has not {size:,} bytes left for a group of batches ({error.strerror}). Use a smaller "
            f"{arg('batch_size')} or {arg('ahead')}"
        ) from error
    finally:
        os.close(handle)


def _view(memory: mmap.mmap, extent: Extent) -> Array:
    offset, dtype, shape = extent
    size = int(np.prod(shape, dtype=object))
    return np.frombuffer(memory, dtype, size, offset).reshape(shape)


# Compute workers.


class GroupReader:
    """A group of batches in shared memory, as a compute worker reads it.

    Attributes
    ----------
    x, rows : list of numpy.ndarray
        Features and rows of each type.
    """

    def __init__(self, layout: Layout, name: str, extents: Sequence[Extent], graphs: Sequence[Any]) -> None:
        with (SHARED_MEMORY / name).open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        arrays, of_types = [_view(memory, extent) for extent in extents], 2 * len(layout.types)
        self.x, self.rows, self._arrays = arrays[:of_types:2], arrays[1:of_types:2], arrays[of_types:]
        self._layout, self._graphs = layout, graphs

    def batches(self, compute_worker: int) -> Iterator[Sample]:
        """Yield the batches of a compute worker. Their rows are places in the group."""
        for its_worker, sample in self._layout.samples(self._graphs, self._arrays):
            if its_worker == compute_worker:
                self._refuse_wrong(sample)
                yield sample

    def _refuse_wrong(self, sample: Sample) -> None:
        """Raise an error unless the arrays of a batch fit together. A model would read beyond them."""
        nodes = [sum(levels) for levels in sample.levels]
        right = [len(places) for places in sample.rows] == nodes
        bounds = list(zip(sample.rows, map(len, self.rows), strict=True))
        relations = zip(sample.indptr, sample.indices, sample.edges, self._layout.ends, strict=True)
        for indptr, indices, edges, (source, target) in relations:
            targets = sum(sample.levels[target][:-1])
            right = right and len(indptr) == targets + 1 and len(indices) == sum(edges)
            if not right or indptr[0] != 0 or indptr[-1] != len(indices) or np.any(np.diff(indptr) < 0):
                raise TrainingError("a batch has other numbers of nodes and edges than it says")
            bounds.append((indices, nodes[source]))
        for numbers, end in bounds:
            if len(numbers) and (numbers.min() < 0 or numbers.max() >= end):
                raise TrainingError("a batch names a node that it does not have")
        for rows, indices in zip(sample.edge_features, sample.indices, strict=True):
            if rows is not None and len(rows) != len(indices):
                raise TrainingError("a batch has another number of features of in-edges than of in-edges")
