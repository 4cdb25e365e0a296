"""Partitions: one part per vertex, or one part per edge record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, Unpack

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.calls import called_well
from ..core.frames import identified, pl
from ..core.ids import IdTable
from ..core.options import Options, with_options
from ..core.protocols import Assignment, facts
from ..core.vertex_tables import file_of, in_order, numbers_in, table_of
from ..errors import FastpartError, GraphFormatError, ParameterError, arg, code
from ..graphs.graph import Graph
from ..machines.engine import Engine
from .methods import Loadable, Savable
from .parts import EdgePartData, PartData, Parts, VertexPartData
from .results import Cap, Evaluation, cap_of_parts, frozen
from .stored_graph import IDS, stored_ids

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BLOCK = 1 << 20
"""Items per check."""


class Partition(Savable, Assignment):
    """The base of :class:`VertexPartition` and :class:`EdgePartition`.

    Attributes
    ----------
    of : {"vertices", "edges"}
        What the parts are of.
    assignment : numpy.ndarray
        Part of each item, read-only.
    k : int
        Number of parts.
    loads : numpy.ndarray
        int64, length k: items of each part.
    cap : int or numpy.ndarray or None
        Upper bound on loads. None if there was no bound. With ``sizes``, parts have caps of their own: int64, length k.
    weight_loads : numpy.ndarray or None
        int64, length k: weight of each part, if ``balance_on`` was given. If it was a list of b arrays: shape (b, k).
    weight_cap : int or numpy.ndarray or None
        Upper bound on the weight of a part. If ``balance_on`` was a list of b arrays: int64, length b. With ``sizes``:
        int64, as ``weight_loads``.
    bounded_types : tuple of str or None
        What each weight stands for, if ``balance_on`` named types: the vertices of a type, as ``"paper"``, or its
        training vertices, as ``"paper:train"``. None in the place of an array.
    volume_loads : numpy.ndarray or None
        int64, length k: sum of degree + 1 over the vertices of each part, if it was bounded.
    volume_cap : int or numpy.ndarray or None
        Upper bound on this sum. With ``sizes``: int64, length k.
    algorithm : str
        Name of the partitioner, or "user" for your own array.
    parameters : dict
        Parameters of the partitioner, defaults included.
    costs : dict or None
        Costs of the call: ``seconds``, bytes ``read`` from storage and ``written`` to it (of the whole process; None
        where the system does not count them), and most bytes of temporary ``files`` at one time. On a cluster these
        are of one machine, and ``messages`` are the bytes that the machines sent each other, each message counted once,
        beside ``predicted_messages``, what :func:`fastpart.info` says before. None where unknown.
    num_vertices, num_edges, loops, checksum
        These identify the graph. None where unknown.
    folder, manifest
        The directory that was opened, and the content of its ``manifest.json``. None for other partitions.
    graph : Graph or None
        The graph that the partition was made from, or opened with. None where unknown, and after unpickling.

    Notes
    -----
    Two partitions are equal if they are of the same type and k and give every item the same part. ``np.asarray(p)`` is
    the assignment, without a copy. ``from_dlpack`` takes it, and tables get a column ``part``. A partition keeps its
    graph alive. Set ``p.graph = None`` to let it go.
    """

    of: ClassVar[str]
    _item: ClassVar[str]
    _items: ClassVar[str]
    _part: ClassVar[type[PartData]]
    folder: Path | None = None
    manifest: dict[str, Any] | None = None
    graph: Graph | None = None
    costs: dict[str, Any] | None = None
    _column = "part"
    _forgotten = ("graph", "_measures", "_topology", "_types", "_rows_by_type", "_times")

    weight_loads: npt.NDArray[np.int64] | None = None
    weight_cap: Cap | None = None
    bounded_types: tuple[str | None, ...] | None = None
    volume_loads: npt.NDArray[np.int64] | None = None
    volume_cap: Cap | None = None

    def __init__(self, array: npt.ArrayLike, k: int) -> None:
        self.k = parameters.parts(k)
        self.assignment, self.loads = self._checked(np.asarray(array))
        self.cap: Cap | None = None
        self.algorithm = "user"
        self.parameters: dict[str, Any] = {}
        self.num_vertices: int | None = None
        self.num_edges: int | None = None
        self.loops: int | None = None
        self.checksum: str | None = None

    @classmethod
    def _of_result(
        cls,
        algorithm: str,
        given: Mapping[str, Any],
        result: _core.VertexResult | _core.EdgeResult,
        assignment: npt.NDArray[Any],
    ) -> Self:
        """Wrap a result of the core without checks."""
        partition = cls.__new__(cls)
        partition.k = given["k"]
        partition.assignment = assignment
        partition.loads = frozen(np.array(result.loads, dtype=np.int64))
        partition.cap = None if result.cap is None else cap_of_parts(result.cap)
        partition.algorithm = algorithm
        partition.parameters = dict(given)
        partition.costs = result.costs
        partition.num_vertices, partition.num_edges = result.graph.n, result.graph.m
        partition.loops, partition.checksum = result.graph.loops, result.graph.checksum
        if isinstance(result, _core.VertexResult):
            if result.volume_loads is not None:
                partition.volume_loads = frozen(np.array(result.volume_loads, dtype=np.int64))
                partition.volume_cap = cap_of_parts(result.volume_cap or 0)
            if result.weight_loads:
                several = len(result.weight_loads) > 1 or isinstance(given.get("balance_on"), list)
                partition._balance_on(result.weight_loads, result.weight_caps, several=several)
        return partition

    def _balance_on(self, loads: list[list[int]], caps: list[int | list[int]], *, several: bool) -> None:
        """Set loads and caps of weights: those of one array, or of a list of arrays."""
        all_loads = np.array(loads, dtype=np.int64)
        self.weight_loads = frozen(all_loads if several else all_loads[0].copy())
        self.weight_cap = cap_of_parts(caps if several else caps[0])

    def _weights(self) -> list[tuple[str, npt.NDArray[np.int64], Cap]]:
        """Return the loads and the cap of each array of weights, with the end of its name.

        That is the type of the vertices, or the index in the list. An array that is no list has none.
        """
        if self.weight_loads is None:
            return []
        if isinstance(self.weight_cap, np.ndarray) and self.weight_loads.ndim == 2:
            caps = [cap_of_parts(cap) for cap in self.weight_cap.tolist()]
            names = self.bounded_types or (None,) * len(caps)
            ends = [_end(index if name is None else name) for index, name in enumerate(names)]
            return list(zip(ends, self.weight_loads, caps, strict=True))
        end = _end(self.bounded_types[0]) if self.bounded_types else ""
        return [(end, self.weight_loads, 0 if self.weight_cap is None else self.weight_cap)]

    def _checked(self, array: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """Return a copy of the array, and the loads. Blocks keep the extra memory small."""
        if array.ndim != 1:
            raise TypeError(f"assignment: expected one part per {self._item}, got shape {array.shape}")
        if array.dtype.kind not in "iu" and array.size:
            raise TypeError(f"assignment: expected integers, got dtype {array.dtype}")
        copy, loads = np.empty(array.size, self._dtype()), np.zeros(self.k, np.int64)
        for start in range(0, array.size, _BLOCK):
            block = array[start : start + _BLOCK]
            bad = np.flatnonzero((block < 0) | (block >= self.k))
            if bad.size:
                first = start + int(bad[0])
                raise ParameterError(
                    f"assignment: {self._item} {first} has part {array[first]}, outside 0..{self.k - 1} "
                    f"(k={self.k})"
                )
            copy[start : start + _BLOCK] = block
            loads += np.bincount(copy[start : start + _BLOCK], minlength=self.k)
        return frozen(copy), frozen(loads)

    def _dtype(self) -> npt.DTypeLike:
        return np.int32

    def __repr__(self) -> str:
        algorithm, spread = (
            parameters.one_line(self.algorithm, 60),
            f"loads {self.loads.min()}..{self.loads.max()}",
        )
        more = f", volume balance {balance:.2f}" if (balance := self._volume_balance) is not None else ""
        return f"<{type(self).__name__}: {algorithm}, k={self.k}, {len(self)} {self._items}, {spread}{more}>"

    def _repr_html_(self) -> str:
        named = {"algorithm": self.algorithm, "k": self.k, self._items: len(self)}
        named |= {"loads": f"{self.loads.min():,} to {self.loads.max():,}", "cap": self.cap}
        if (balance := self._volume_balance) is not None:
            named["volume balance"] = f"{balance:.2f}"
        return facts(type(self).__name__, named | ({"folder": self.folder} if self.folder else {}))

    @property
    def _volume_balance(self) -> float | None:
        """The largest volume relative to the mean, where volumes are bounded and parts are to have equal ones."""
        loads = getattr(self, "volume_loads", None)
        if loads is None or self.parameters.get("sizes") is not None:
            return None
        return float(loads.max() * self.k / max(int(loads.sum()), 1))

    def _values(self) -> tuple[Any, ...]:
        return (self.k,)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state | ({"folder": self.folder.absolute()} if self.folder else {})

    @with_options
    def evaluate(
        self,
        labels: Any = None,
        splits: Any = None,
        *,
        split: int | None = None,
        relation_weights: Mapping[str, float] | None = None,
        cluster: str | Engine | None = None,
        shared: parameters.StrPath | None = None,
        **options: Unpack[Options],
    ) -> Evaluation:
        """Measure the partition on its graph. See :func:`fastpart.evaluate`.

        Raises
        ------
        FastpartError
            The graph is not known, for example of your own array. Call ``fp.evaluate(graph, p)``.

        Examples
        --------
        >>> import numpy as np, fastpart as fp
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
        >>> p = fp.multilevel(graph, k=2)
        >>> p.evaluate().parts["halo"].to_list(), round(p.cut_ratio, 4)
        ([1, 1], 0.1429)
        """
        from ..measures.evaluate import evaluate

        if self.graph is None:
            raise FastpartError(
                "evaluate: this partition does not know its graph. Call "
                f"{code('fp.evaluate(graph, p)', '`fastpart evaluate GRAPH DIR`')}, or open it with {arg('graph')}"
            )
        return evaluate(
            self.graph,
            self,
            labels,
            splits,
            split=split,
            relation_weights=relation_weights,
            cluster=cluster,
            shared=shared,
            **options,
        )

    @called_well
    def plot(self, out: parameters.StrPath | None = None) -> Figure:
        """Plot the sizes of the parts against the cap, and what lies between the parts if the graph is known.

        A graph of up to 20,000 vertices, 300,000 records and 64 parts is drawn below, coloured by part, which takes up
        to some seconds. Edges between parts of the vertices are grey. Where a vertex lies depends on the graph only.

        Parameters
        ----------
        out : path, optional
            A ``.svg``, ``.png`` or ``.pdf``. It appears as a whole.

        Returns
        -------
        matplotlib.figure.Figure
            Notebooks show it. See :func:`fastpart.report.draw`.

        Raises
        ------
        ParameterError
            An unknown suffix.
        OSError
            With path and errno. The old file is intact.

        Examples
        --------
        >>> import numpy as np, fastpart as fp
        >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
        >>> figure = fp.spring(graph, k=2).plot()
        """
        from ..report.partitions import plot_partition

        return plot_partition(self, out)

    @cached_property
    def _measures(self) -> Evaluation:
        return self.evaluate()

    @property
    def parts(self) -> Parts[Any]:
        """The stored data of each part in a partition directory, mapped on first access.

        Raises
        ------
        FastpartError
            The partition does not come from a directory, or the directory was saved without the graph.
        """
        if self.folder is None or self.manifest is None or "directedness" not in self.manifest:
            where = (
                "the partition is in memory"
                if self.folder is None
                else f"{parameters.shown(self.folder)} was saved without the graph"
            )
            raise FastpartError(
                f"parts: {where}. Save the partition to a directory with {arg('graph')}, and open it"
            )
        return Parts(self._part, self.folder, self.manifest)


class VertexPartition(Loadable, Partition):
    """One part per vertex.

    Parameters
    ----------
    array : array of integers, shape (n,)
        Part of each vertex, in ``0..k-1``. It is copied to int32.
    k : int
        Number of parts.

    Raises
    ------
    ParameterError
        A part outside ``0..k-1``. The text names the first vertex that has one.
    TypeError
        The array is not one-dimensional, or does not hold integers.

    Examples
    --------
    >>> import fastpart as fp
    >>> fp.VertexPartition([0, 1, 1, 0], k=2).loads
    array([2, 2])
    """

    of = "vertices"
    assignment: npt.NDArray[np.int32]
    _item = "vertex"
    _items = "vertices"
    _part = VertexPartData

    @property
    def cut_ratio(self) -> float:
        """Cut records / records that are not loops. :meth:`evaluate` runs on first access."""
        return self._measures.cut_ratio

    @property
    def _id_tables(self) -> tuple[IdTable, ...]:
        """The ids that the vertices had in tables: those in the directory, else those of the graph."""
        if self.folder is not None and self.manifest is not None and IDS in self.manifest:
            return stored_ids(self.folder, self.manifest, len(self))
        return () if self.graph is None else self.graph._id_tables


def refuse_other_graph(partition: Partition, n: int, m: int, checksum: str | None) -> None:
    """Raise :class:`~fastpart.errors.GraphFormatError` if the partition belongs to another graph."""
    mine = {"n": partition.num_vertices, "m": partition.num_edges, "checksum": partition.checksum}
    for name, value in {"n": n, "m": m, "checksum": checksum}.items():
        if value is not None and mine[name] is not None and value != mine[name]:
            raise GraphFormatError(
                f"the partition belongs to another graph: its {name} is {mine[name]}, the graph's is {value}"
            )
    items = {"vertex": n, "record": m}[partition._item]
    if len(partition) != items:
        what = f"it has {len(partition)} {partition._items}, the graph has {items}"
        if partition._item == "vertex" and len(partition) > items:
            what += f". If trailing vertices are isolated, open the graph with {arg('num_vertices', len(partition))}"
        raise GraphFormatError(f"the partition belongs to another graph: {what}")


def vertex_partition_of(array: npt.ArrayLike, k: int | None = None) -> VertexPartition:
    """Wrap an array of parts. Without k there are as many parts as the largest one needs."""
    parts = np.asarray(array)
    if k is None:
        k = max(1, int(parts.max()) + 1) if parts.size and parts.dtype.kind in "iu" else 1
        if k > _core.MAX_PARTS:
            raise ParameterError(
                f"k: the largest part or cluster is {k - 1}, but at most {_core.MAX_PARTS} can be used"
            )
    return VertexPartition(parts, k)


PartitionSource = parameters.StrPath | Partition
"""A partition directory: its path, or the partition that was opened from it."""


def directory_of(source: PartitionSource) -> Path:
    """Return the path of a partition directory. Refuse a partition that is in memory only."""
    if not isinstance(source, Partition):
        return parameters.path("source", source)
    if source.folder is None:
        raise ParameterError(
            "source: the partition is in memory, without the data of its vertices. Save it with "
            f"{code('p.save(DIR, features=..., labels=..., splits=...)', '-o DIR')}, and pass DIR"
        )
    return source.folder


def partition_given(
    given: Any, graph: Graph | None, k: int | None = None, of: Literal["vertices", "edges"] | None = None
) -> Partition:
    """Return what a caller gave as a partition of a graph: as it is, from a path or a table, or one part per vertex."""
    if isinstance(given, Partition):
        return given
    ids = () if graph is None else graph._id_tables
    named = isinstance(given, str | bytes | os.PathLike)
    if graph is not None and (
        table := table_of("partition", given) if not named or _is_text(given) else None
    ):
        return vertex_partition_of(numbers_in(table, graph.num_vertices, ids, ("part",)), k)
    partition = read_partition(given, k, of) if named else vertex_partition_of(given, k)
    if partition.checksum is None and partition.of == "vertices" and not isinstance(given, Assignment):
        in_order("partition", ids)
    return partition


def _is_text(given: Any) -> bool:
    file = file_of("partition", given)
    return file is not None and file.suffix != ".parquet"


def read_partition(
    source: parameters.StrPath,
    k: int | None = None,
    of: Literal["vertices", "edges"] | None = None,
    name: str = "partition",
) -> Partition:
    """Read a partition, as :func:`fastpart.open_partition` does, for a function that takes it by this name."""
    from ..store.loading import read

    file = parameters.path("source", source)
    partition = read(file, None if k is None else parameters.parts(k), of)
    if of not in (None, partition.of):
        raise ParameterError(
            f"{name}: {parameters.shown(file)} holds parts of {partition.of}. Pass a partition of the {of}"
        )
    return partition


class EdgePartition(Partition):
    """One part per edge record, in stream order.

    Parameters
    ----------
    array : array of integers, shape (m,)
        Part of each record, in ``0..k-1``. It is copied to uint8 for k <= 255, int16 for k <= 32,767, else int32.
    k : int
        Number of parts.

    Raises
    ------
    ParameterError
        A part outside ``0..k-1``. The text names the first record that has one.
    TypeError
        The array is not one-dimensional, or does not hold integers.

    Examples
    --------
    >>> import fastpart as fp
    >>> fp.EdgePartition([0, 1, 1], k=2).assignment
    array([0, 1, 1], dtype=uint8)
    """

    of = "edges"
    assignment: npt.NDArray[np.uint8] | npt.NDArray[np.int16] | npt.NDArray[np.int32]
    _item = "record"
    _items = "records"
    _part = EdgePartData

    def to_frame(self) -> pl.DataFrame:
        """Return a frame of Polars with a row for each record: the ids of ``source`` and ``target``, and its ``part``.

        The ids are those of the tables of the user, else the numbers of the vertices. Without the graph, ``record``
        counts the records.
        """
        part = pl.Series("part", self.assignment)
        if self.graph is None:
            return pl.DataFrame({"record": pl.Series(range(len(self)), dtype=pl.Int64), "part": part})
        records = self.graph._source.block(0, len(self))
        ids = identified(self.graph._id_tables, self.graph.num_vertices)["id"]
        ends = [ids.gather(records[:, place]).alias(end) for place, end in enumerate(("source", "target"))]
        return pl.DataFrame([*ends, part])

    @property
    def rf(self) -> float:
        """Replication factor: the mean number of parts per vertex. :meth:`evaluate` runs on first access."""
        return self._measures.rf

    def _dtype(self) -> npt.DTypeLike:
        return np.uint8 if self.k <= 255 else np.int16 if self.k <= 32_767 else np.int32


def _end(name: str | int | None) -> str:
    """Return the end of the name of a measure of weights: the index in the list, or the name of a bound."""
    return "" if name is None else f"_{name}".replace(":", "_")
