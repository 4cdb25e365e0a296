"""An order of the vertices that keeps clusters side by side, and the way back."""

from __future__ import annotations

import tempfile
from copy import copy
from pathlib import Path
from typing import Any, Unpack, overload

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.calls import called_well
from ..core.frames import Tabular, identified, pl
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.parameters import StrPath
from ..core.parsing import mapped
from ..core.protocols import facts
from ..errors import ParameterError
from ..graphs.convert import refuse_input, write_weights
from ..graphs.graph import Graph
from ..graphs.opening import open_graph
from ..graphs.sidecars import RAW, Sidecar, beside, staged
from .partition import VertexPartition, refuse_other_graph
from .partitioners.refining import start_of

Array = npt.NDArray[Any]


class Ordering(Tabular):
    """A graph whose vertices are in another order, from :func:`fastpart.order`, and the way back.

    Attributes
    ----------
    graph : Graph
        The graph in the new order.
    ids : numpy.ndarray
        uint64, length n, mapped, read-only: row = new id, value = old id. The file is ``OUT.ids.npy``.
    bytes_per_entry, bytes_per_entry_before : float
        Bytes per neighbour, if lists of neighbours are packed: their lengths and differences in 1, 2, 3 or 5 bytes.
        In the new order, and in the old one. Plain lists take 4.
    """

    def __init__(self, given: Graph, graph: Graph, ids: Path, bytes_per_entry: tuple[float, float]) -> None:
        self._given = given
        self.graph = graph
        self.ids: npt.NDArray[np.uint64] = mapped(ids)
        self.bytes_per_entry_before, self.bytes_per_entry = bytes_per_entry

    def __repr__(self) -> str:
        before, after = self.bytes_per_entry_before, self.bytes_per_entry
        return f"<Ordering: {len(self.ids)} vertices, {after:.2f} bytes per entry, {before:.2f} before>"

    def _repr_html_(self) -> str:
        named: dict[str, Any] = {"vertices": len(self.ids), "file": self.graph.path}
        named |= {"bytes per entry": self.bytes_per_entry, "before": self.bytes_per_entry_before}
        return facts("Ordering", named)

    def to_frame(self) -> pl.DataFrame:
        """Return a frame of Polars with a row for each vertex of the given graph: its id, and its ``vertex`` here."""
        vertex = self.restore(np.arange(len(self.ids)))
        return identified(self._given._id_tables, len(self.ids)).with_columns(vertex=vertex)

    @overload
    def apply(self, values: VertexPartition) -> VertexPartition: ...
    @overload
    def apply(self, values: npt.ArrayLike) -> Array: ...
    @called_well
    def apply(self, values: Any) -> Any:
        """Bring what belongs to the vertices of the given graph into the new order.

        Parameters
        ----------
        values : array of n rows or VertexPartition
            Such as labels, masks or features. Ids of vertices, as in a split, are not rows: bring a mask.

        Returns
        -------
        numpy.ndarray or VertexPartition
            Row v belongs to vertex v of ``graph``. The array is in memory, also if ``values`` is a mapped file.
        """
        if isinstance(values, VertexPartition):
            return _moved(values, self._given, self.graph, self.apply(values.assignment))
        return self._rows(values)[self.ids]

    @overload
    def restore(self, values: VertexPartition) -> VertexPartition: ...
    @overload
    def restore(self, values: npt.ArrayLike) -> Array: ...
    @called_well
    def restore(self, values: Any) -> Any:
        """Bring what belongs to the vertices of ``graph`` home, into the order of the given graph.

        Parameters
        ----------
        values : array of n rows or VertexPartition
            Such as the parts, clusters or predictions of the vertices of ``graph``.

        Returns
        -------
        numpy.ndarray or VertexPartition
            Row v belongs to vertex v of the given graph. A partition keeps its bounds and parameters.
        """
        if isinstance(values, VertexPartition):
            return _moved(values, self.graph, self._given, self.restore(values.assignment))
        rows = self._rows(values)
        restored = np.empty_like(rows)
        restored[self.ids] = rows
        return restored

    def _rows(self, values: Any) -> Array:
        rows = np.asarray(values)
        if rows.ndim == 0 or len(rows) != len(self.ids):
            raise ParameterError(
                f"values: shape {rows.shape}, expected one row for each of {len(self.ids)} vertices"
            )
        return rows


def _moved(partition: VertexPartition, origin: Graph, graph: Graph, assignment: Array) -> VertexPartition:
    """Return the partition of the same vertices in another graph."""
    loops, checksum = graph.identify()
    known = None if partition.checksum is None else origin.identify()[1]
    refuse_other_graph(partition, origin.num_vertices, origin.num_edges, known)
    moved = copy(partition)
    assignment.flags.writeable = False
    moved.assignment, moved.graph = assignment, graph
    moved.loops, moved.checksum = loops, checksum
    moved.folder, moved.manifest = None, None
    return moved


@with_options
def order(
    graph: Any,
    partition: Any = None,
    *,
    out: StrPath,
    k: int | None = None,
    seed: int = 0,
    **options: Unpack[Options],
) -> Ordering:
    """Write the graph with its vertices in an order that keeps clusters side by side.

    Neighbours then have ids near each other: lists of neighbours compress better, and algorithms that take the vertices
    by their ids meet clusters one after the other. Small clusters lie within larger ones. Where nothing else decides,
    the old order stays. It needs the adjacency (8 bytes per edge, in a mapped file when memory is short) and
    40 bytes per vertex. In a graph with types, the vertices of each type are ordered among themselves. Types and
    relations stay as they are.

    Parameters
    ----------
    graph : path, array or Graph
        What :func:`open_graph` accepts.
    partition : VertexPartition, array or path, optional
        Parts of the vertices. The vertices of part 0 then come first, those of part 1 second, and so on, and clusters
        lie within parts.
    out : path
        Raw u32 edges, with the sidecar ``OUT.json`` beside them. Record r is record r of the given graph, with new ids.
        So edge partitions and rows of records fit both. The weights of the records, if there are any, go to
        ``OUT.weights.npy``. The old ids go to ``OUT.ids.npy`` (uint64, row = new id, value = old id), as those of
        :func:`convert`.
    k : int, optional
        Number of parts. Default: that of the partition. An array, or a file that does not say it, needs it.
    seed : int, optional
        Seed of the clusters, 0 to 2**64 - 1.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Ordering
        With the new ``graph`` and the old ``ids``. ``apply`` brings arrays and partitions into the new order, and
        ``restore`` brings them home.

    Raises
    ------
    ParameterError
        The output is the input, or the partition has another length than the graph has vertices.
    GraphFormatError
        The partition belongs to another graph.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Notes
    -----
    Label propagation clusters the vertices, and then the clusters, with caps of 16 vertices, 128, 1,024 and so on.
    Weights of records do not matter. A graph with types is clustered as a whole, and then within each type. The result
    is the same for any number of threads. Source: Boldi, Rosa, Santini, Vigna, "Layered Label Propagation", WWW 2011.
    Here the clusters are nested.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, pathlib, tempfile
    >>> out = pathlib.Path(tempfile.mkdtemp()) / "ordered.bin"
    >>> two_triangles = np.array([[0, 2], [2, 4], [4, 0], [1, 3], [3, 5], [5, 1], [0, 1]])
    >>> ordering = fp.order(two_triangles, out=out)
    >>> ordering.ids
    array([0, 2, 4, 1, 3, 5], dtype=uint64)
    >>> parts = fp.multilevel(ordering.graph, k=2)
    >>> parts.assignment, ordering.restore(parts).assignment
    (array([0, 0, 0, 1, 1, 1], dtype=int32), array([0, 1, 0, 1, 0, 1], dtype=int32))
    """
    target, seed = parameters.path("out", out), parameters.seed(seed)
    run = run_options(**options)
    given = open_graph(graph, **options)
    if given.path is not None:
        refuse_input(given.path, target)
    start = None if partition is None else start_of("order", partition, k, given)
    if start is None and k is not None:
        raise ParameterError("k: needs a partition. Without one there are no parts")
    if start is not None:
        checksum = None if start.checksum is None else given.identify(run)[1]
        refuse_other_graph(start, given.num_vertices, given.num_edges, checksum)
    with staged(target, [*RAW, "ids.npy"], run) as file:
        parts = None if start is None else np.asarray(start.assignment).view(np.uint32)
        k = 1 if start is None else start.k
        ordered_by = _ordered if given.types is None else _ordered_by_type
        first, result = ordered_by(given, file, parts, k, seed, run)
        written, weights = result.graph, given._weights
        description = None if weights is None else write_weights(weights, file, run)
        Sidecar(
            "u32", written.n, written.m, given.directedness, written.checksum, description, typed=given._typed
        ).write(file)
    given._remember(first.origin.loops, first.origin.checksum)
    ordered = open_graph(target)
    ordered._remember(written.loops, written.checksum)
    return Ordering(
        given, ordered, beside(target, "ids.npy"), (first.bytes_per_entry[0], result.bytes_per_entry[1])
    )


def _ordered(
    graph: Graph, file: Path, assignment: npt.NDArray[np.uint32] | None, k: int, seed: int, run: RunOptions
) -> tuple[_core.Ordered, _core.Ordered]:
    """Write a graph in its new order, and its old ids.

    The first result is about the given graph, and the second one about the graph that is written.
    """
    symmetric = graph.directedness == "symmetric"
    result = _core.order(
        graph._source, file, assignment=assignment, k=k, seed=seed, symmetric=symmetric, options=run
    )
    return result, result


def _ordered_by_type(
    graph: Graph, file: Path, parts: npt.NDArray[np.uint32] | None, k: int, seed: int, run: RunOptions
) -> tuple[_core.Ordered, _core.Ordered]:
    """Write a graph with types, as :func:`_ordered` does without.

    Types stay ranges, so that clusters end with their types. Vertices of a type without edges among themselves would
    then keep their old order. So the clusters of the whole graph come first, and their order is the old one here.
    """
    types = np.repeat(
        np.arange(len(graph.types or ()), dtype=np.uint32), [each.n for each in graph.types or ()]
    )
    with tempfile.TemporaryDirectory(prefix="fastpart-", dir=run.tmp_dir) as folder:
        whole = Path(folder) / "whole.bin"
        first, _ = _ordered(graph, whole, parts, k, seed, run)
        ids = mapped(beside(whole, "ids.npy"))
        of_each = types if parts is None else types * np.uint32(k) + parts
        clustered = open_graph(whole, num_vertices=graph.num_vertices, directedness=graph.directedness)
        _, result = _ordered(clustered, file, of_each[ids], len(graph.types or ()) * k, seed, run)
        kept = beside(file, "ids.npy")
        found = ids[np.load(kept)]
    np.save(kept, found)
    return first, result
