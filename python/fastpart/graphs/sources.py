"""Edges of other libraries' objects as two columns of ids, without a copy where possible.

Graph libraries are recognized by the module of a type and by its attributes. None is imported here.
:func:`recognised_object` tells what an object is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from ..core.frames import pl
from ..core.notes import log
from ..core.option_groups import OptionGroup
from ..core.options import RunOptions
from ..core.pairs import keys_of, mixed
from ..core.parameters import Directedness, IdType, Layout, choice, flag, integer, mark
from ..errors import GraphFormatError, GraphWarning, ParameterError, arg, warn
from .tables import Pair, Table, table_of

Array = npt.NDArray[Any]

_BLOCK = 1 << 16
"""Records per step."""

_HOST = (1, 3, 11)
"""Devices of DLPack whose memory the CPU can read: its own, and memory pinned by CUDA or ROCm."""

ACCEPTED = (
    "a path or a list of paths, an array of shape (m, 2) or (2, m), a pair of arrays (sources, targets), a list of "
    "pairs, a table of two columns (Polars, pandas, Arrow), or a graph of scipy.sparse, networkx, igraph, rustworkx, "
    "DGL, PyG or OGB"
)


@dataclass(frozen=True, kw_only=True)
class RecordOptions(OptionGroup):
    """How records are read, which :func:`fastpart.open_graph` describes."""

    together: ClassVar = {
        "records": "columns comments relabel dtype num_vertices directedness io layout max_vertices weights"
    }

    columns: Sequence[int | str] | None = None
    comments: str | None = None
    relabel: bool = False
    dtype: IdType | None = None
    num_vertices: int | None = None
    directedness: Directedness | None = None
    io: Literal["mmap", "read"] = "mmap"
    layout: Layout | None = None
    max_vertices: int | None = None
    weights: Any = None


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """The arguments of :func:`fastpart.open_graph` beside the source."""

    columns: Pair | None = None
    comments: str | None = None
    relabel: bool = False
    dtype: IdType | npt.DTypeLike | None = None
    num_vertices: int | None = None
    directedness: Directedness | None = None
    io: Literal["mmap", "read"] = "mmap"
    layout: Layout | None = None
    max_vertices: int | None = None
    weights: Any = None

    def checked(self) -> Self:
        """Return the same with plain numbers. Refuse what is not valid."""
        if self.directedness is not None:
            choice("directedness", self.directedness, get_args(Directedness))
        if self.layout is not None:
            choice("layout", self.layout, get_args(Layout))
        choice("io", self.io, ("mmap", "read"))
        mark("comments", self.comments)
        n, most, top = self.num_vertices, self.max_vertices, 2**32 - 1
        return replace(
            self,
            relabel=flag("relabel", self.relabel),
            num_vertices=None if n is None else integer("num_vertices", n, 0, top),
            max_vertices=None if most is None else integer("max_vertices", most, 1, top),
        )

    def refuse(self, name: str, why: str) -> None:
        """Refuse a parameter that was given."""
        if getattr(self, name) not in (None, False):
            raise ParameterError(f"{name}: {why}")

    @property
    def of_records(self) -> dict[str, Any]:
        """The arguments that apply to raw records, by name, without the weights."""
        others = ("columns", "comments", "relabel", "weights")
        return {name: value for name, value in vars(self).items() if name not in others}


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
    matrix: bool = False
    """Whether the edges are the entries of a matrix."""
    ids: list[str] | list[int] | None = None
    """The ids of the vertices in the library, if they are names or other numbers than 0 to n-1."""

    @property
    def directedness(self) -> Directedness:
        """The meaning of a record."""
        if self.both and mirrored(self.sources, self.targets):
            return "symmetric"
        if self.both:
            if self.matrix and _triangular(self.sources, self.targets):
                warn(
                    "the matrix is triangular and taken for a directed graph. If it holds each undirected edge once, "
                    f"pass {arg('directedness', 'undirected')}. To keep it and this silent, pass "
                    f"{arg('directedness', 'directed')}",
                    GraphWarning,
                )
            return "directed"
        return "directed" if self.directed else "undirected"


def recognised_object(source: Any, given: Arguments, run: RunOptions) -> tuple[Columns | Table, Arguments]:
    """Return the edges of an object, and the arguments that are left. A table holds ids that have to be numbered."""
    named = given.weights if isinstance(given.weights, str) else None
    table = table_of(source, _libraries(source), given.columns, named)
    if table is not None and table.unread is not None and given.weights is None:
        given_so = arg(f"weights={table.unread!r}")
        log.info("graph: the column %r is not read. Pass %s to weight the records", table.unread, given_so)
    given.refuse("comments", "the source is no file. It applies to text")
    if table is None:
        given.refuse("columns", "the source is no table. It applies to text, Parquet and frames")
        if given.relabel or _holds_strings(source):
            table, given = _table_of_array(source, given.layout), replace(given, layout=None)
    if table is not None and (table.strings or given.relabel):
        return table, given
    if given.dtype is not None:
        raise ParameterError("dtype: applies to raw files only. Leave it out for an array")
    if table is not None:
        return Columns(*table.records(run), weights=table.weights(named)), given
    return _columns_of(source, given.layout, named), given


def _columns_of(source: Any, layout: Layout | None, weights: str | None = None) -> Columns:
    """Return the edges of an object, and their weights if it has any of that name.

    ``layout`` applies to two-dimensional arrays. For these, ``weights`` is no name but a path, and not looked at.
    """
    source = _of_pair(source)
    libraries = _libraries(source)
    for library, adapter in _GRAPHS.items():
        if library in libraries:
            if not hasattr(source, _OWN.get(library, "__class__")):
                raise TypeError(f"graph: expected {ACCEPTED}, got {_named(source)}")
            return adapter(source, weights)
    if isinstance(source, Mapping):
        return _ogb(source, weights)
    if "torch" in libraries and hasattr(source, "detach"):
        if "sparse" in str(source.layout):
            return _sparse(source.detach().cpu(), weights)
        source, layout = source.detach().cpu().numpy(), layout or "edge_index"
    if hasattr(source, "sparse_sizes") and hasattr(source, "coo"):
        rows, columns_, values = source.coo()
        return _entries(source.sparse_sizes(), rows, columns_, values, weights)
    pair = _pair(source)
    return Columns(*(pair or _array(source, layout)))


def _holds_strings(source: Any) -> bool:
    """Return whether the ids of an array, of a pair of them or of a list of pairs are strings."""
    while isinstance(source, list | tuple) and source:
        source = source[0]
    kind = getattr(getattr(source, "dtype", None), "kind", "O" if "polars" in _libraries(source) else "")
    if kind == "O":  # of a numpy array or a series
        source = next(iter(np.asarray(source).flat), None)
    return isinstance(source, str | bytes) or kind in ("U", "S", "T")


def _table_of_array(source: Any, layout: Layout | None) -> Table:
    """Return a table of the ids of an array, whose vertices are numbered by the rank of their ids."""
    libraries = _libraries(source)
    if libraries & _GRAPHS.keys() or isinstance(source, Mapping):
        raise ParameterError(f"relabel: {_named(source)} numbers its vertices by itself. Leave it out")
    found = _columns_of(source, layout)
    frame = pl.DataFrame({"source": found.sources, "target": found.targets}, strict=False)
    made = table_of(frame, {"polars"}, None, None)
    assert made is not None
    return made


def as_ids(ids: Array) -> Array:
    """Return ids of a type that the core reads. Smaller integers are copied, which loses nothing."""
    if ids.dtype.kind in "iu":
        return ids if ids.dtype.itemsize >= 4 else ids.astype(f"{ids.dtype.kind}4")
    raise TypeError(
        f"graph: expected integers or strings, got an array of dtype {ids.dtype}. Cast whole numbers with "
        ".astype(numpy.int64), and strings with .astype(str)"
    )


@contextmanager
def of_memory() -> Iterator[None]:
    """Give the remedies for arrays where the core names those for files."""
    try:
        yield
    except GraphFormatError as error:
        text = str(error)
        for words, others in _REMEDIES.items():
            text = text.replace(words, others)
        raise GraphFormatError(text) from None


_REMEDIES = {
    "Relabel with `fastpart convert --relabel`": f"Pass {arg('relabel', True)} to number the vertices by the rank "
    "of their ids",
    "relabel with `fastpart convert --relabel`": f"{arg('relabel', True)} to number the vertices by the rank of "
    "their ids",
    '. Or the file is of another kind: dtype="u64", or big-endian (`fastpart convert --swap`)': "",
}


def _libraries(source: Any) -> set[str]:
    return {base.__module__.partition(".")[0] for base in type(source).__mro__}


def _of_pair(source: Any) -> Any:
    """Return the graph of an item of a data set of OGB, which is a graph and its labels."""
    pair = isinstance(source, list | tuple) and len(source) == 2
    return source[0] if pair and isinstance(source[0], Mapping) else source


def mirrored(sources: Array, targets: Array) -> bool:
    """Return whether every record (u, v) has its (v, u). Sums of hashes need one pass and no memory."""
    difference = 0
    for start in range(0, len(sources), _BLOCK):
        u, v = sources[start : start + _BLOCK], targets[start : start + _BLOCK]
        difference += int(mixed(keys_of(u, v)).sum(dtype=np.uint64))
        difference -= int(mixed(keys_of(v, u)).sum(dtype=np.uint64))
    return difference % 2**64 == 0


def _triangular(rows: Array, columns: Array) -> bool:
    """Return whether all entries of a matrix lie on one side of its diagonal."""
    return bool((rows <= columns).all() or (rows >= columns).all())


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
        if array.dtype != object or _holds_strings(array):
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


# Graphs of other libraries.


def _weights(library: str, name: str | None, of_name: Callable[[str], Any], known: str = "") -> Any:
    """Return the weights that a graph of another library has by a name, in the order of its edges."""
    try:
        return None if name is None else of_name(name)
    except KeyError:
        raise ParameterError(f"weights: the {library} graph has no {name!r} on its edges.{known}") from None


def _scipy(matrix: Any, weights: str | None) -> Columns:
    if not hasattr(matrix, "tocoo") or len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = getattr(matrix, "shape", None)
        raise TypeError(f"graph: expected a square matrix, got {_named(matrix)} of shape {shape}")
    entries = matrix.tocoo(copy=False)
    data = _weights("scipy", weights, {"data": entries.data}.__getitem__, ' A matrix has "data"')
    return Columns(entries.row, entries.col, matrix.shape[0], both=True, weights=data, matrix=True)


def _networkx(graph: Any, weights: str | None) -> Columns:
    nodes, edges = nodes_of(graph), graph.edges()
    if nodes is not None:
        number = {node: vertex for vertex, node in enumerate(nodes)}
        edges = ((number[u], number[v]) for u, v in edges)
        log.info(
            "the vertices are the nodes of the graph in their order: part p.assignment[i] is that of list(graph)[i]"
        )
    u, v = _pairs(iter(edges), graph.number_of_edges())
    values = None if weights is None else _attribute(graph, weights)
    ids = None if nodes is None else _ids(nodes)
    return Columns(u, v, graph.number_of_nodes(), graph.is_directed(), weights=values, ids=ids)


def nodes_of(graph: Any) -> list[Any] | None:
    """Return the nodes of a graph of networkx in the order that numbers them. None: they are their own numbers."""
    n = len(graph)
    numbers = all(isinstance(node, int | np.integer) and 0 <= node < n for node in graph)
    return None if numbers else list(graph)


def _igraph(graph: Any, weights: str | None) -> Columns:
    u, v = _pairs((edge.tuple for edge in graph.es), graph.ecount())
    values = _weights("igraph", weights, graph.es.__getitem__)
    ids = _ids(graph.vs["name"]) if "name" in graph.vs.attributes() else None
    return Columns(u, v, graph.vcount(), graph.is_directed(), weights=values, ids=ids)


def _ids(names: list[Any]) -> list[str] | list[int] | None:
    """Return names as ids that a table can hold: all of them text, or all of them numbers. None for others."""
    if len(set(names)) < len(names):
        return None
    if all(isinstance(name, str) for name in names):
        return [str(name) for name in names]
    if all(isinstance(name, int | np.integer) and abs(int(name)) < 1 << 63 for name in names):
        return [int(name) for name in names]
    return None


def _rustworkx(graph: Any, weights: str | None) -> Columns:
    n = graph.num_nodes()
    if n and max(graph.node_indexes()) != n - 1:
        raise GraphFormatError(
            f"graph: {_named(graph)} has gaps in its node indices, where nodes were removed. "
            "Pass graph.subgraph(graph.node_indexes())"
        )
    u, v = np.asarray(graph.edge_list(), np.int64).reshape(-1, 2).T
    values = _weights(
        "rustworkx",
        weights,
        lambda name: [each[name] if isinstance(each, Mapping) else each for each in graph.edges()],
    )
    return Columns(u, v, n, "Di" in type(graph).__name__, weights=values)


def _dgl(graph: Any, weights: str | None) -> Columns:
    if not graph.is_homogeneous:
        raise TypeError(
            f"graph: {_named(graph)} has several types of nodes or edges. Pass dgl.to_homogeneous(graph)"
        )
    u, v = (_on_host(ids) for ids in graph.edges(order="eid"))
    values = _weights("dgl", weights, graph.edata.__getitem__)
    return Columns(u, v, graph.num_nodes(), both=True, weights=values)


def _pyg(graph: Any, weights: str | None) -> Columns:
    if any(base.__name__ == "Dataset" for base in type(graph).__mro__):
        graph = _dataset(graph)
    if hasattr(graph, "edge_types"):
        raise TypeError(
            f"graph: {_named(graph)} has several types of nodes or edges. Pass graph.to_homogeneous()"
        )
    values = None if weights is None else getattr(graph, weights, None)
    if getattr(graph, "edge_index", None) is not None:
        rows, columns = _on_host(graph.edge_index)
    elif hasattr(getattr(graph, "adj_t", None), "coo"):
        columns, rows, _ = map(_on_host, graph.adj_t.coo())  # the transposed adjacency
    else:
        raise TypeError(f"graph: {_named(graph)} has no edge_index. Pass a Data that has one")
    if weights is not None and values is None:
        raise ParameterError(
            f"weights: the PyG graph has no {weights!r}. Its data are {', '.join(graph.keys())}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG warns when it guesses the number as the largest id + 1
        return Columns(rows, columns, graph.num_nodes, both=True, weights=values)


def _dataset(graphs: Any) -> Any:
    """Return the only graph of a data set."""
    if len(graphs) != 1:
        raise TypeError(
            f"graph: {_named(graphs)} has {len(graphs)} graphs. Pass one of them, such as dataset[0]"
        )
    return graphs[0]


def _ogb_dataset(graphs: Any, weights: str | None) -> Columns:
    return _ogb(_of_pair(_dataset(graphs)), weights)


def _ogb(graph: Any, weights: str | None) -> Columns:
    """Return the edges of a graph as OGB has it: a dict with ``edge_index`` and ``num_nodes``."""
    if "edge_index_dict" in graph:
        raise TypeError("graph: the dict has edge_index_dict, several types of edges. Use fastpart ingest")
    if graph.get("edge_index") is None:
        keys = ", ".join(map(str, list(graph)[:10])) or "none"
        raise TypeError(f"graph: expected a dict with edge_index and num_nodes, got the keys {keys}")
    u, v = _array(_on_host(graph["edge_index"]), "edge_index")
    if weights is not None and graph.get(weights) is None:
        keys = ", ".join(str(key) for key, value in graph.items() if value is not None)
        raise ParameterError(f"weights: the dict has no {weights!r}, only {keys}")
    n = graph.get("num_nodes")
    return Columns(
        u, v, None if n is None else int(n), both=True, weights=None if weights is None else graph[weights]
    )


def _sparse(matrix: Any, weights: str | None) -> Columns:
    """Return the entries of a sparse tensor of torch."""
    match str(matrix.layout).removeprefix("torch.sparse_"):
        case "coo":
            (rows, columns), values = matrix._indices(), matrix._values()
        case "csr":
            columns, values = matrix.col_indices(), matrix.values()
            rows = _spread(matrix.crow_indices())
        case "csc":
            rows, values = matrix.row_indices(), matrix.values()
            columns = _spread(matrix.ccol_indices())
        case other:
            raise TypeError(f"graph: a sparse tensor of layout {other}. Pass .to_sparse_coo() of it")
    return _entries(tuple(matrix.shape), rows, columns, values, weights)


def _spread(starts: Any) -> Array:
    """Return the row of each entry, from where the rows start."""
    counts = np.diff(starts.numpy())
    return np.repeat(np.arange(len(counts)), counts)


def _entries(shape: Any, rows: Any, columns: Any, values: Any, weights: str | None) -> Columns:
    """Return the entries of a square matrix as edges from row to column."""
    if len(shape) != 2 or shape[0] != shape[1]:
        raise TypeError(f"graph: expected a square matrix, got a sparse tensor of shape {tuple(shape)}")
    if weights is not None and (weights != "data" or values is None):
        raise ParameterError(
            f'weights: the sparse tensor has no {weights!r}. A matrix with values has "data"'
        )
    u, v = (_plain(_on_host(ids)) for ids in (rows, columns))
    weights_ = None if weights is None else values
    return Columns(u, v, int(shape[0]), both=True, weights=weights_, matrix=True)


def _attribute(graph: Any, name: str) -> list[Any]:
    """Return an attribute of the edges of a networkx graph, 1 where it is missing. Refuse one that no edge has."""
    known = {each for _, _, attributes in graph.edges(data=True) for each in attributes}
    if name not in known and graph.number_of_edges():
        names = ", ".join(sorted(map(repr, known))) or "none"
        raise ParameterError(
            f"weights: no edge of the networkx graph has {name!r}. Attributes of its edges: {names}"
        )
    return [weight for _, _, weight in graph.edges(data=name, default=1)]


_GRAPHS: dict[str, Callable[[Any, str | None], Columns]] = {
    "networkx": _networkx,
    "igraph": _igraph,
    "rustworkx": _rustworkx,
    "scipy": _scipy,
    "dgl": _dgl,
    "torch_geometric": _pyg,
    "ogb": _ogb_dataset,
}
"""By the package that defines the type or one of its bases."""

_OWN = {"networkx": "is_multigraph", "igraph": "vcount", "rustworkx": "edge_list", "dgl": "is_homogeneous"}
"""An attribute that only the graphs of a package have."""


def _pairs(edges: Iterator[tuple[int, int]], count: int) -> Array:
    """Return pairs of ids as columns, filled one by one."""
    ids = np.fromiter(chain.from_iterable(edges), np.uint32, 2 * count)
    return ids.reshape(-1, 2).T


def _named(value: object) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
