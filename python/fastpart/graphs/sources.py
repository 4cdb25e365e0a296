"""Edges of other libraries' objects as two columns of ids, without a copy where possible.

Graph libraries are recognized by the module of a type and by its attributes. None is imported here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.forks import before_polars_threads
from ..core.frames import pl
from ..core.options import RunOptions
from ..core.pairs import keys_of, mixed
from ..core.parameters import Directedness, Layout
from ..core.parsing import named
from ..errors import GraphFormatError, ParameterError

Array = npt.NDArray[Any]

_BLOCK = 1 << 16
"""Records per step."""

_BATCH = 1 << 18
"""Rows of a lazy frame in memory at a time."""

_LARGEST = 2**32 - 2

_HOST = (1, 3, 11)
"""Devices of DLPack whose memory the CPU can read: its own, and memory pinned by CUDA or ROCm."""

ACCEPTED = (
    "a path, an array of shape (m, 2) or (2, m), a pair of arrays (sources, targets), a list of pairs, a table of two "
    "integer columns (Polars, pandas, Arrow), or a graph of scipy.sparse, networkx, igraph, rustworkx, DGL or PyG"
)


@dataclass(frozen=True)
class Columns:
    """The edges of an object, and what else it knows.

    ``both``: the library stores an undirected edge as two records.
    """

    sources: Array
    targets: Array
    num_vertices: int | None = None
    directed: bool = False
    both: bool = False
    weights: Any = None

    @property
    def directedness(self) -> Directedness:
        """The meaning of a record."""
        if self.both:
            return "symmetric" if mirrored(self.sources, self.targets) else "directed"
        return "directed" if self.directed else "undirected"


def columns_of(
    source: Any, layout: Layout | None, options: RunOptions, weights: str | None = None
) -> Columns:
    """Return the edges of an object, and their weights if it has any of that name.

    ``layout`` applies to two-dimensional arrays. For these, ``weights`` is no name but a path, and not looked at.
    """
    libraries = {base.__module__.partition(".")[0] for base in type(source).__mro__}
    for library, adapter in _GRAPHS.items():
        if library in libraries:
            columns = adapter(source)
            if weights is None:
                return columns
            return replace(columns, weights=_weights_of_graph(library, source, weights))
    if "polars" in libraries and hasattr(source, "collect_batches"):
        if weights is not None:
            raise TypeError("weights: a lazy frame is streamed without weights. Pass .collect() of it")
        return Columns(*_streamed(source, options).T)
    if "pandas" in libraries and hasattr(source, "iloc") and source.ndim == 2:
        source, given = _without("pandas", source, weights, list(source.columns), axis=1)
        names = _two("pandas", list(source.columns))
        u, v = (_ids(name, source.iloc[:, i].to_numpy()) for i, name in enumerate(names))
        return Columns(u, v, weights=given)
    if hasattr(source, "__arrow_c_stream__"):
        return _arrow(source, weights)
    if "torch" in libraries and hasattr(source, "detach"):
        source, layout = source.detach().cpu().numpy(), layout or "edge_index"
    pair = _pair(source)
    return Columns(*(pair or _array(source, layout)))


def mirrored(sources: Array, targets: Array) -> bool:
    """Return whether every record (u, v) has its (v, u). Sums of hashes need one pass and no memory."""
    difference = 0
    for start in range(0, len(sources), _BLOCK):
        u, v = sources[start : start + _BLOCK], targets[start : start + _BLOCK]
        difference += int(mixed(keys_of(u, v)).sum(dtype=np.uint64))
        difference -= int(mixed(keys_of(v, u)).sum(dtype=np.uint64))
    return difference % 2**64 == 0


# Arrays, lists and pairs.


def _array(source: Any, layout: Layout | None) -> tuple[Array, Array]:
    if isinstance(source, np.ma.MaskedArray):
        raise TypeError("graph: masked arrays are not accepted. Drop the masked records, as by .compressed()")
    array = _plain(source)
    if array.shape == (0,) and not isinstance(source, np.ndarray):
        array = np.empty((0, 2), np.uint32)  # an empty list
    if array.ndim == 2 and array.shape[1] == 2 and layout != "edge_index":
        return array[:, 0], array[:, 1]
    if array.ndim == 2 and array.shape[0] == 2 and layout != "rows":
        return array[0], array[1]
    wanted = {"rows": "(m, 2)", "edge_index": "(2, m)", None: "(m, 2) or (2, m)"}[layout]
    raise TypeError(f"graph: expected an array of shape {wanted}, got {array.shape}")


def _plain(source: Any) -> Array:
    """Return an array of any library, or lists, as a numpy array, without a copy where possible."""
    if isinstance(source, np.ndarray):
        return source
    if isinstance(source, list | tuple):
        try:
            return np.asarray(source)
        except ValueError:
            raise TypeError(
                "graph: expected pairs (source, target), got lists of different lengths"
            ) from None
    if hasattr(source, "__dlpack_device__"):
        if source.__dlpack_device__()[0] not in _HOST:
            raise TypeError(f"graph: {_named(source)} is on an accelerator. Copy it to the CPU")
        with suppress(BufferError, RuntimeError, TypeError):  # __array__ may still work
            return np.from_dlpack(source)
    if hasattr(source, "__array__"):
        array = np.asarray(source)
        if array.dtype != object:
            return array
    raise TypeError(f"graph: expected {ACCEPTED}, got {_named(source)}")


def _pair(source: Any) -> tuple[Array, Array] | None:
    """Return the two columns of a pair of arrays or of a tuple of two lists. None for anything else."""
    if not isinstance(source, list | tuple) or len(source) != 2:
        return None
    arrays = all(hasattr(item, "__array__") or hasattr(item, "__dlpack__") for item in source)
    lists = isinstance(source, tuple) and all(isinstance(item, list) for item in source)
    if not (arrays or lists):
        return None
    u, v = (_plain(_on_host(item)) for item in source)
    if not u.size and not v.size:
        u, v = u.astype(np.uint32), v.astype(np.uint32)  # numpy makes floats of empty lists
    if u.ndim != 1 or u.shape != v.shape:
        raise TypeError(
            f"graph: expected sources and targets of one dimension and one length, got shapes {u.shape} and {v.shape}"
        )
    return u, v


def _on_host(item: Any) -> Any:
    return item.detach().cpu().numpy() if hasattr(item, "detach") else item


# Tables.


def _arrow(source: Any, weights: str | None) -> Columns:
    frame = source
    if not isinstance(source, pl.DataFrame):
        before_polars_threads("graph: an Arrow table")
        frame = pl.DataFrame(source)
    library = type(source).__module__.partition(".")[0]
    frame, given = _without(library, frame, weights, frame.columns)
    _two(library, frame.columns)
    u, v = map(_of_series, frame.get_columns())
    return Columns(u, v, weights=given)


def _without(
    library: str, frame: Any, name: str | None, names: list[Any], **how: Any
) -> tuple[Any, Array | None]:
    """Return a frame without the column of that name, and what the column holds."""
    if name is None:
        return frame, None
    if name not in names:
        raise ParameterError(
            f"weights: the {library} frame has no column {name!r}, only {', '.join(map(str, names))}"
        )
    return frame.drop(name, **how), frame[name].to_numpy()


def _two(library: str, names: list[Any]) -> list[Any]:
    if len(names) != 2:
        raise TypeError(
            f"graph: the {library} frame has {len(names)} columns. Select the two that hold the ids"
        )
    return names


def _of_series(column: Any) -> Array:
    if column.null_count() or not column.dtype.is_integer():
        raise TypeError(
            f"graph: expected integers, but column {column.name!r} is {column.dtype} or has nulls"
        )
    ids: Array = column.to_numpy()
    return ids


def _ids(name: object, ids: Array) -> Array:
    if ids.dtype.kind not in "iu":
        raise TypeError(f"graph: expected integers, but column {name!r} is {ids.dtype} or has nulls")
    return ids


def _streamed(frame: Any, options: RunOptions) -> Array:
    """Return the records of a lazy frame in a nameless mapped file. Only one batch is in memory at a time."""
    import tempfile  # here, because its import is slow

    before_polars_threads("graph: a lazy frame")
    names = _two("polars", frame.collect_schema().names())
    count = 0
    with tempfile.TemporaryFile(dir=options.tmp_dir) as file:
        for batch in frame.collect_batches(chunk_size=_BATCH, maintain_order=True):
            records = np.empty((len(batch), 2), "<u4")
            for slot, name in enumerate(names):
                records[:, slot] = _checked(batch[name], count)
            with named(options.tmp_dir or tempfile.gettempdir()):
                file.write(records.data)  # numpy's tofile hides the reason of an error
                file.flush()
            count += len(batch)
        if not count:
            return np.empty((0, 2), np.uint32)
        return np.memmap(file, "<u4", "r", shape=(count, 2))


def _checked(column: Any, first: int) -> Array:
    """Return the ids of a batch that begins with record ``first``. Refuse those that a cast would wrap."""
    ids = _of_series(column)
    bad = np.flatnonzero((ids < 0) | (ids > _LARGEST))
    if bad.size:
        raise GraphFormatError(
            f"graph: record {first + int(bad[0])} holds the id {ids[bad[0]]}, outside 0 to 2^32 - 2. Relabel the ids"
        )
    return ids


# Graphs of other libraries.


def _scipy(matrix: Any) -> Columns:
    if not hasattr(matrix, "tocoo") or len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = getattr(matrix, "shape", None)
        raise TypeError(f"graph: expected a square matrix, got {_named(matrix)} of shape {shape}")
    entries = matrix.tocoo(copy=False)
    return Columns(entries.row, entries.col, matrix.shape[0], both=True)


def _networkx(graph: Any) -> Columns:
    if not hasattr(graph, "is_multigraph"):
        raise _unknown(graph)
    n = graph.number_of_nodes()
    for node in graph:
        if not isinstance(node, int | np.integer) or not 0 <= node < n:
            raise GraphFormatError(
                f"graph: {_named(graph)} has the node {node!r:.80}, which is not one of 0..{n - 1}. "
                "Pass networkx.convert_node_labels_to_integers(graph)"
            )
    u, v = _pairs(iter(graph.edges()), graph.number_of_edges())
    return Columns(u, v, n, graph.is_directed())


def _igraph(graph: Any) -> Columns:
    if not hasattr(graph, "vcount"):
        raise _unknown(graph)
    u, v = _pairs((edge.tuple for edge in graph.es), graph.ecount())
    return Columns(u, v, graph.vcount(), graph.is_directed())


def _rustworkx(graph: Any) -> Columns:
    if not hasattr(graph, "edge_list"):
        raise _unknown(graph)
    n = graph.num_nodes()
    if n and max(graph.node_indexes()) != n - 1:
        raise GraphFormatError(
            f"graph: {_named(graph)} has gaps in its node indices, where nodes were removed. "
            "Pass graph.subgraph(graph.node_indexes())"
        )
    u, v = np.asarray(graph.edge_list(), np.int64).reshape(-1, 2).T
    return Columns(u, v, n, "Di" in type(graph).__name__)


def _dgl(graph: Any) -> Columns:
    if not hasattr(graph, "is_homogeneous"):
        raise _unknown(graph)
    if not graph.is_homogeneous:
        raise TypeError(
            f"graph: {_named(graph)} has several types of nodes or edges. Pass dgl.to_homogeneous(graph)"
        )
    u, v = (_on_host(ids) for ids in graph.edges(order="eid"))
    return Columns(u, v, graph.num_nodes(), both=True)


def _pyg(graph: Any) -> Columns:
    if hasattr(graph, "edge_types"):
        raise TypeError(
            f"graph: {_named(graph)} has several types of nodes or edges. Pass graph.to_homogeneous()"
        )
    if getattr(graph, "edge_index", None) is None:
        raise TypeError(f"graph: {_named(graph)} has no edge_index. Pass a Data that has one")
    u, v = _on_host(graph.edge_index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG warns when it guesses the number as the largest id + 1
        n = graph.num_nodes
    return Columns(u, v, n, both=True)


def _weights_of_graph(library: str, graph: Any, name: str) -> Any:
    """Return the weights that a graph of another library has by that name, in the order of its edges."""
    try:
        match library:
            case "scipy":
                return {"data": graph.tocoo(copy=False).data}[name]
            case "networkx":
                return _attribute(graph, name)
            case "igraph":
                return graph.es[name]
            case "rustworkx":
                return [
                    payload[name] if isinstance(payload, Mapping) else payload for payload in graph.edges()
                ]
            case "dgl":
                return graph.edata[name]
    except KeyError:
        known = ' A matrix has "data"' if library == "scipy" else ""
        raise ParameterError(f"weights: the {library} graph has no {name!r} on its edges.{known}") from None
    if getattr(graph, name, None) is None:
        raise ParameterError(
            f"weights: the PyG graph has no {name!r}. Its data are {', '.join(graph.keys())}"
        )
    return getattr(graph, name)


def _attribute(graph: Any, name: str) -> list[Any]:
    """Return an attribute of the edges of a networkx graph, 1 where it is missing. Refuse one that no edge has."""
    known = {each for _, _, attributes in graph.edges(data=True) for each in attributes}
    if name not in known and graph.number_of_edges():
        names = ", ".join(sorted(map(repr, known))) or "none"
        raise ParameterError(
            f"weights: no edge of the networkx graph has {name!r}. Attributes of its edges: {names}"
        )
    return [weight for _, _, weight in graph.edges(data=name, default=1)]


_GRAPHS: dict[str, Callable[[Any], Columns]] = {
    "networkx": _networkx,
    "igraph": _igraph,
    "rustworkx": _rustworkx,
    "scipy": _scipy,
    "dgl": _dgl,
    "torch_geometric": _pyg,
}
"""By the package that defines the type or one of its bases."""


def _pairs(edges: Iterator[tuple[int, int]], count: int) -> Array:
    """Return pairs of ids as columns, filled one by one."""
    ids = np.fromiter(chain.from_iterable(edges), np.uint32, 2 * count)
    return ids.reshape(-1, 2).T


def _named(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _unknown(value: object) -> TypeError:
    return TypeError(f"graph: expected {ACCEPTED}, got {_named(value)}")
