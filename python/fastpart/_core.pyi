"""The compiled core. Its functions believe what the package's modules have checked; use those."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer  # Python 3.12 has it in collections.abc

from .core.options import RunOptions

__version__: str
MAX_PARTS: int

_Ids = npt.NDArray[np.int64]
_Rows = npt.NDArray[np.uint32]
_Numbers = npt.NDArray[np.float32] | npt.NDArray[np.float64]
_Path = str | os.PathLike[str]
_Known = tuple[int, int, int, str]

@final
class EdgeSource:
    @staticmethod
    def open(
        path: _Path,
        *,
        dtype: str | None,
        layout: str | None,
        io: str,
        num_vertices: int | None,
        max_vertices: int | None,
        weights: _Path | npt.NDArray[np.uint32] | None,
        options: RunOptions,
        by_relation: bool = False,
        remedy: str | None = None,
    ) -> EdgeSource: ...
    @staticmethod
    def open_shards(
        paths: Sequence[_Path],
        *,
        io: str,
        num_vertices: int,
        weights: _Path | npt.NDArray[np.uint32] | None,
        by_relation: bool = False,
    ) -> EdgeSource: ...
    @staticmethod
    def columns(
        sources: npt.NDArray[Any],
        targets: npt.NDArray[Any],
        *,
        num_vertices: int | None,
        max_vertices: int | None,
        weights: _Path | npt.NDArray[np.uint32] | None,
        options: RunOptions,
        by_relation: bool = False,
    ) -> EdgeSource: ...
    @property
    def num_vertices(self) -> int: ...
    @property
    def num_edges(self) -> int: ...
    @property
    def dtype(self) -> str | None: ...
    def check_unchanged(self) -> None: ...
    def with_weights(self, weights: npt.NDArray[np.uint32]) -> EdgeSource: ...
    def extent(self, options: RunOptions) -> tuple[int, int, int, str] | None: ...
    def block(self, first: int, end: int) -> npt.NDArray[np.uint32]: ...
    def forget_csr(self) -> None: ...
    def identify(self, options: RunOptions) -> tuple[int, str]: ...
    def degrees(self, options: RunOptions) -> tuple[npt.NDArray[np.uint32], int, str]: ...

@final
class Planted:
    def __new__(cls, *, n: int, m: int, classes: int, features: int, seed: int) -> Planted: ...
    def labels(self, options: RunOptions) -> _Ids: ...
    def split(self, options: RunOptions) -> tuple[_Ids, _Ids, _Ids]: ...
    def write_features(self, target: _Path, dtype: str, options: RunOptions) -> None: ...
    def write(self, target: _Path, options: RunOptions) -> str: ...

@final
class AtomicDir:
    def __new__(cls, target: _Path, owned: Sequence[_Path] = ...) -> AtomicDir: ...
    @property
    def path(self) -> str: ...
    def commit(self) -> None: ...
    def discard(self) -> None: ...

@final
class IdSorter:
    """Ids of a kind ("signed", "unsigned", "string", "binary") on their way into sorted runs ``FOLDER/NAME-00000``, ...

    ``limit``: bytes of memory. ``distinct``: rows do not count.
    """

    def __new__(cls, kind: str, folder: _Path, name: str, *, limit: int, distinct: bool) -> IdSorter: ...
    def push(self, frame: Any, column: int, first: int) -> int | None:
        """Add a column of a frame, whose first row is number ``first``. Return the first null row, left out."""

    def finish(self) -> list[tuple[str, int]]:
        """Write the last run. Return all, with the number of their ids."""

@final
class Ids:
    """A column ``id`` for a library that reads Arrow, once."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...
    def __len__(self) -> int: ...

@final
class Numbering:
    """Runs on their way to numbers: the rank of each id.

    ``keys``: a file for each bucket. ``rows``: the file of the vertex of each row, and their number. ``first``: of rows
    with the same id the first one counts.
    """

    def __new__(
        cls,
        kind: str,
        runs: Sequence[_Path],
        keys: Sequence[_Path],
        *,
        rows: tuple[_Path, int] | None,
        first: bool,
        limit: int,
    ) -> Numbering: ...
    def next(self, count: int) -> Ids | None:
        """Return the next ids, at most ``count``. None at the end, and at an id that two rows declare."""

    @property
    def duplicate(self) -> tuple[str, int, int] | None:
        """An id that two rows declare, and the rows."""

    @property
    def blanks(self) -> int:
        """How many ids differ from the one before by blanks at their ends only."""

    def finish(self) -> int:
        """Force all to the disk. Return the number of vertices."""

_Side = tuple[str, int, int]  # kind of ids, first bucket, number of buckets
_Joined = tuple[
    int, int, int, tuple[int, bool] | None
]  # kept, with a null, with a missing end, the first of these

@final
class EndSpill:
    """Ends of records on their way into the files of buckets, each behind its first bytes."""

    def __new__(cls, sides: Sequence[_Side], files: Sequence[tuple[_Path, int]]) -> EndSpill: ...
    def begin(self, order: _Path) -> None: ...
    def push(self, frame: Any, keep_nulls: bool) -> int | None:
        """Add the first two columns of a frame. Return the first row with a null end, unless they are kept."""

    def end(self) -> tuple[int, list[int]]:
        """Force the unit to the disk. Return its records, and the length of each bucket's file."""

@final
class EndLookup:
    """Records whose ends are looked up at once: files of keys, kind and first vertex of either side."""

    def __new__(
        cls, source: tuple[Sequence[_Path], str, int], target: tuple[Sequence[_Path], str, int]
    ) -> EndLookup: ...
    def begin(self, out: _Path, first: int) -> None: ...
    def push(self, frame: Any) -> int | None:
        """Add the first two columns of a frame. Return the first row with a null end."""

    def end(self) -> _Joined: ...

def resolve_ends(
    buckets: Sequence[tuple[Sequence[_Path], _Path, _Path, str]], options: RunOptions
) -> list[int]:
    """Write the vertices of ends by bucket (files of keys, of ends, of vertices, kind). Return how many are missing."""

def join_ends(
    units: Sequence[tuple[_Path, Sequence[tuple[_Path, int]], tuple[_Path, int] | None, _Path | None]],
    sides: Sequence[_Side],
    first: Sequence[int],
    options: RunOptions,
) -> list[_Joined]:
    """Write records of units: order, vertices of buckets and how many come before, where they go, which are kept."""

@final
class MappedFile(Buffer):
    """The bytes of a regular file, mapped read-only, without an open descriptor."""

    def __new__(cls, path: _Path) -> MappedFile: ...

@final
class RowGatherer:
    """One pass over the rows of a source writes ``part-*/NAME`` of every part.

    Row i of part p's file is the row of the source that ``ids`` ("vertices.npy" or "edge_ids.npy" of the part) names at
    ``ranges[p][0] + i``. Id ``first`` names row 0. An id >= first + num_rows means id - num_rows (the second direction
    of a record). Push all rows from the first to the last as C-contiguous chunks of ``dtype``, of any lengths, then
    finish.
    """

    def __new__(
        cls,
        into: _Path,
        name: str,
        *,
        ids: str,
        ranges: list[tuple[int, int]],
        first: int,
        num_rows: int,
        dtype: np.dtype[Any],
        row_shape: tuple[int, ...],
        options: RunOptions,
    ) -> RowGatherer: ...
    def push(self, rows: npt.NDArray[Any], options: RunOptions) -> None: ...
    def finish(self, options: RunOptions) -> None: ...

@final
class Topology:
    """The in-edges of all vertices of a vertex partition, mapped from the folders of its parts.

    Give the folders of all parts in their order, with a halo of one hop or two. Vertices are named by *rows*: part
    after part, the inner vertices of each. ``starts`` has the first row of every part, and the number of rows.
    """

    def __new__(cls, folders: Sequence[_Path]) -> Topology: ...
    @staticmethod
    def in_memory(vertices: _Ids, indptr: _Ids, indices: npt.NDArray[np.int32]) -> Topology:
        """Return the topology of a graph in memory, as one part. The ids of its in-edges are their positions."""

    @property
    def num_parts(self) -> int: ...
    @property
    def num_vertices(self) -> int: ...
    @property
    def starts(self) -> _Ids: ...
    @property
    def edge_starts(self) -> _Ids:
        """First in-edge of each part, and the number of in-edges: ``edge_starts[p] + e`` is in-edge e of part p."""
    def keep_at_most(self, most: int) -> None:
        """Let memory of batches wait to be used again only up to so many bytes, for rows and samples each."""

    def rows_of(self, ids: _Ids) -> _Rows: ...
    def edge_rows_of(self, targets: _Rows, ids: _Ids, num_records: int) -> _Ids:
        """Return the rows of in-edges, given the row of the target and the id of each, in a graph of m records."""

    def ids_of(self, rows: _Rows) -> _Ids: ...
    def degrees_of(self, rows: _Rows) -> _Ids: ...
    def accesses(
        self,
        seeds: _Rows,
        fanouts: Sequence[int] | Sequence[Sequence[int]],
        *,
        num_seeds: int,
        batch_size: int,
        types: Types | None = None,
        options: RunOptions | None = None,
    ) -> npt.NDArray[np.float32]:
        """Return for each row the expected number of steps of an epoch whose batch has it.

        The batches are layered and uniform, with ``fanouts[h]`` in-edges of a vertex in hop h. With ``types`` these are
        ``fanouts[h][r]`` of relation r. The ``seeds`` are those of one rank, ``num_seeds`` are those of all ranks, and
        ``batch_size`` are those of a step on all ranks.
        """

    def traffic(
        self,
        seeds: _Rows,
        fanouts: Sequence[Sequence[int]],
        *,
        batch_size: int,
        caches: Sequence[float | int],
        row_bytes: Sequence[float],
        types: Types | None = None,
        options: RunOptions,
    ) -> list[PartTraffic]:
        """Return the traffic of each part, as :func:`predict_traffic`."""

    def subgraph(self, rows: _Rows, *, edge_ids: bool = False, edge_rows: bool = False) -> SampledBatch:
        """Return the in-edges between distinct vertices, as a batch of one level: row i of the CSR is node i."""

    def walks(self, roots: _Rows, length: int, *, seed: int, epoch: int = 0, step: int = 0) -> _Rows:
        """Return the rows that walks against the direction of the edges visit, of shape (walks, length + 1).

        A walk stays at a vertex without in-edges. Steps are functions of (seed, epoch, step, hop, walk, root).
        """

@final
class PartTraffic:
    """Rows of a part per epoch, by type. ``cached`` and ``saved`` have them for each cache. A plain graph has one."""

    @property
    def seeds(self) -> int: ...
    @property
    def rows(self) -> list[float]: ...
    @property
    def remote(self) -> list[float]: ...
    @property
    def cached(self) -> list[list[int]]: ...
    @property
    def saved(self) -> list[list[float]]: ...

def predict_traffic(
    edges: EdgeSource,
    assignment: npt.NDArray[np.int32],
    k: int,
    seeds: _Rows,
    fanouts: Sequence[Sequence[int]],
    *,
    directedness: str,
    relations: Sequence[tuple[int, int | None]] | None,
    types: Sequence[int],
    batch_size: int,
    caches: Sequence[float | int],
    row_bytes: Sequence[float],
    options: RunOptions,
) -> list[PartTraffic]:
    """Return the traffic of each part. Of ``caches``, floats are shares of its rows, and integers are bytes.

    ``fanouts[h][r]`` in-edges of relation r are sampled per vertex in hop h. A plain graph has one relation. ``types``
    are the numbers of vertices of each type, and ``row_bytes`` the bytes of a row of each, or 1 if they are unknown.
    """

def sampling_weights(
    edges: EdgeSource,
    k: int,
    seeds: _Rows,
    fanouts: Sequence[int],
    *,
    directedness: str,
    relations: Sequence[tuple[int, int | None]] | None,
    batch_size: int,
    options: RunOptions,
) -> npt.NDArray[np.uint32]:
    """Return for each record how often a rank samples it, in units of 1/1024 of the mean and at least 1."""

@final
class Times:
    """When vertices and in-edges came to be: a ``.npy`` of int64 for each part, or None.

    With ``types``, for each type of vertices or edges in each part, part by part. The smallest number stands for none.
    What has no time was always there.
    """

    def __new__(
        cls,
        topology: Topology,
        vertices: Sequence[_Path | None],
        edges: Sequence[_Path | None],
        types: Types | None = None,
    ) -> Times: ...
    def of_rows(self, rows: _Rows) -> _Ids:
        """Return the times of vertices. Without any, all have none."""

@final
class SampledBatch:
    """Nodes level by level, and one CSR over those of all levels but the last.

    The sources of row i are the nodes ``indices[indptr[i]:indptr[i + 1]]``. ``e_id`` has the ids of these in-edges and
    ``edge_rows`` their rows (see :attr:`Topology.edge_starts`), if wanted. ``n_id`` has the original id of each node,
    and ``seed_time`` the time of its seeds, if they have times. Arrays lie in memory that is used again once the last
    of them is gone. That of the features is apart.
    """

    rows: _Rows
    n_id: _Ids
    indptr: npt.NDArray[np.int32]
    indices: npt.NDArray[np.int32]
    e_id: _Ids | None
    edge_rows: _Ids | None
    seed_time: _Ids | None
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]
    features: npt.NDArray[Any] | None
    edge_features: npt.NDArray[Any] | None

@final
class TypedSampledBatch:
    """Nodes by type and, within a type, level by level. One CSR for each type of edges over the nodes of its types.

    The in-edges of relation r at target i have the sources ``indices[r][indptr[r][i]:indptr[r][i + 1]]``, places among
    the nodes of their type. ``indptr[r]`` covers all levels but the last. ``rows`` are those of each type.
    """

    rows: list[_Rows]
    n_id: list[_Ids]
    seed_time: list[_Ids] | None
    indptr: list[npt.NDArray[np.int32]]
    indices: list[npt.NDArray[np.int32]]
    e_id: list[_Ids] | None
    num_sampled_nodes: list[list[int]]
    num_sampled_edges: list[list[int]]
    features: list[npt.NDArray[Any] | None]

_Batch = TypeVar("_Batch", SampledBatch, TypedSampledBatch)

@final
class Sampler(Generic[_Batch]):
    """Samples ``fanouts[h]`` in-edges of every vertex of level h, without replacement; -1 takes all.

    With ``types`` these are ``fanouts[h][r]`` in-edges of relation r. What is drawn for a vertex is a function of
    (seed, epoch, step, h, original id) and, with types, r, whatever the partition. A vertex is once in a level or, with
    ``merged``, once in the batch; then only vertices new in the batch are sampled. ``kind``:

    - "uniform".
    - "weighted": ``weights`` (float32 or float64) has one number for each of the m records; 0 means never.
    - "labor": LABOR-0, fewer distinct vertices; ``fanouts[h]`` in-edges on average.

    With ``times`` each seed has a time. Only in-edges whose time, the later one of their own and of their source's, is
    strictly before it are sampled, in every hop: uniformly, or the last ones (``temporal``), whatever ``kind``. A node
    is a vertex with the time of its seeds, and draws are functions of the time, too.
    """

    @overload
    def __new__(
        cls,
        topology: Topology,
        fanouts: Sequence[int],
        *,
        types: None = None,
        kind: str = "uniform",
        seed: int = 0,
        merged: bool = False,
        edge_ids: bool = False,
        edge_rows: bool = False,
        weights: npt.NDArray[Any] | None = None,
        times: Times | None = None,
        temporal: str = "uniform",
    ) -> Sampler[SampledBatch]: ...
    @overload
    def __new__(
        cls,
        topology: Topology,
        fanouts: Sequence[Sequence[int]],
        *,
        types: Types,
        kind: str = "uniform",
        seed: int = 0,
        merged: bool = False,
        edge_ids: bool = False,
        edge_rows: bool = False,
        weights: npt.NDArray[Any] | None = None,
        times: Times | None = None,
        temporal: str = "uniform",
    ) -> Sampler[TypedSampledBatch]: ...
    @overload
    def __new__(
        cls,
        topology: Topology,
        fanouts: Sequence[int] | Sequence[Sequence[int]],
        *,
        types: Types | None,
        kind: str = "uniform",
        seed: int = 0,
        merged: bool = False,
        edge_ids: bool = False,
        edge_rows: bool = False,
        weights: npt.NDArray[Any] | None = None,
        times: Times | None = None,
        temporal: str = "uniform",
    ) -> Sampler[Any]: ...
    def read_seconds(self) -> tuple[float, float]:
        """Return the seconds of sampling and of copying features since the last call, of all threads."""
    def sample(
        self,
        seeds: _Rows,
        *,
        times: _Ids | None = None,
        epoch: int = 0,
        step: int = 0,
        features: Features | Sequence[Features | None] | None = None,
        edge_features: Features | None = None,
    ) -> _Batch:
        """Return the batch of some seeds, given as rows of the topology.

        With types, ``features`` have one entry for each type, None where it has none. Their rows are those of the
        type: :attr:`Types.starts`. Features of in-edges need ``edge_rows=True``, which is for graphs without types.
        """
    def batches(
        self,
        seeds: _Rows,
        offsets: _Ids,
        *,
        times: _Ids | None = None,
        epoch: int = 0,
        features: Features | Sequence[Features | None] | None = None,
        edge_features: Features | None = None,
        pack: Pack | Sequence[Pack | None] | None = None,
        ahead: int = 2,
        max_bytes: int | None = None,
        threads: int = 1,
    ) -> Batches[_Batch]:
        """Iterate over the batches of an epoch: step i has the seeds ``seeds[offsets[i]:offsets[i + 1]]``.

        ``threads`` make them, at most ``ahead`` of them before they are asked for, and only as long as these take no
        more than ``max_bytes`` bytes. One is always made. Features come from ``pack``, if it is given. With types it
        has one entry for each type, None where rows are not packed. With ``ahead=0`` the caller makes the batches. The
        number of threads, of which no more than ``ahead`` start, does not change them.
        """

@final
class Batches(Generic[_Batch]):
    def __iter__(self) -> Batches[_Batch]: ...
    def __next__(self) -> _Batch: ...
    def close(self) -> None:
        """End the threads. Dropping the iterator or an error does so, too. There are no batches after it."""

@final
class Types:
    """Types of the vertices of a topology, as ranges of ids, and of its edges.

    ``folders`` are those of the topology, with ``relations.npy``. ``firsts`` has the first vertex of each type, and
    ``ends`` for each type of edges the types of its sources and of its targets.
    """

    def __new__(
        cls,
        topology: Topology,
        folders: Sequence[_Path],
        firsts: Sequence[int],
        ends: Sequence[tuple[int, int]],
    ) -> Types: ...
    @property
    def topology(self) -> Topology: ...
    @property
    def starts(self) -> list[_Ids]:
        """By type: first row of each part among the rows of the type, and their number."""
    def locate(self, rows: _Rows) -> tuple[npt.NDArray[np.uint16], _Rows]:
        """Return the type of each row of the topology, and the row among those of the type."""

@final
class Coding:
    """Rows of ``width`` numbers with 8 bits each. See :mod:`fastpart.partitions.coding`.

    ``columns`` has ``low`` of every column, then ``step`` of every column. Without it, rows end with their own.
    """

    def __new__(cls, width: int, columns: npt.NDArray[np.float32] | None = None) -> Coding: ...
    def encode(self, numbers: npt.NDArray[np.float32], out: npt.NDArray[np.uint8]) -> None:
        """Write the codes of ``numbers`` to ``out``. Nobody else changes either meanwhile."""
    def decode(self, rows: npt.NDArray[np.uint8], out: npt.NDArray[np.float32]) -> None:
        """Write the numbers of ``rows`` to ``out``. Nobody else changes either meanwhile."""

@final
class Features:
    """Rows of all inner vertices, one ``.npy`` per part in the order of the topology.

    With ``starts``, the first row of each part and the number of rows, they are other rows of the parts, as those of
    the in-edges (``topology.edge_starts``) or of the vertices of one type. None stands for a part whose rows are not
    here: ``gather`` and batches leave their places as they are.
    """

    def __new__(
        cls,
        files: Sequence[_Path | None],
        topology: Topology,
        *,
        starts: _Ids | None = None,
        direct: bool | None = None,
    ) -> Features: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def row_shape(self) -> tuple[int, ...]: ...
    def decoded(self, coding: Coding) -> Features:
        """Return the same rows, which are coded, as float32. Both share the files."""
    def loaded(self) -> Features:
        """Return the same rows, copied from the files into memory."""
    def empty(self, count: int) -> npt.NDArray[Any]:
        """Return an array for so many rows, in memory that is used again once it is gone. Its content is arbitrary."""
    def with_cache(self, ids: _Rows, file: _Path, checksum: int) -> Features:
        """Return the same rows. Those in ``file``, an ``.npy`` of the rows ``ids`` only, stay in memory.

        ``checksum`` is that of :meth:`pack`.
        """
    def pack(
        self, targets: Sequence[tuple[_Path, _Ids, _Rows]], options: RunOptions
    ) -> list[npt.NDArray[np.uint64]]:
        """Write an ``.npy`` for each target: the rows of its batches as they are stored, one batch behind the other.

        The rows of batch i are ``rows[offsets[i]:offsets[i + 1]]``, which ascend. Returns a checksum of each batch: of
        the numbers of its rows and of their bytes. Nobody changes the arrays meanwhile.
        """
    def open_pack(self, file: _Path, offsets: _Ids, checksums: npt.NDArray[np.uint64]) -> Pack:
        """Open an ``.npy`` that :meth:`pack` wrote with these offsets."""
    def gather(
        self,
        rows: _Rows | _Ids,
        out: npt.NDArray[Any] | None = None,
        *,
        pack: Pack | None = None,
        step: int = 0,
    ) -> npt.NDArray[Any]: ...
    @property
    def has_means(self) -> bool:
        """Whether :meth:`means` can be asked for: all rows are here, and float32."""
    @property
    def is_on_disk(self) -> bool:
        """Whether memory does not hold the rows. Then :meth:`means` reads each once, in the order of the files."""
    def read_bytes(self) -> int:
        """Return the bytes that were read for rows since the last call, by all that share the files.

        Whole blocks of 4 KiB past the page cache, which neighbouring rows share, and the rows themselves in maps. Bytes
        of packs count, rows that stay in memory do not, nor do :meth:`means`.
        """
    def bytes_of(self, rows: _Rows | _Ids) -> int:
        """Return the bytes that a batch of these rows reads without a pack, as :meth:`read_bytes` counts them."""
    def means(
        self, targets: _Rows, threads: int, weights: npt.NDArray[np.float32] | None = None
    ) -> npt.NDArray[np.float32]:
        """Return the mean of the rows over all in-edges of each target, 0 without any, of shape (targets, width).

        With ``weights``, one for each row of the topology, it is that of the rows times their weights.
        """

@final
class Pack:
    """The rows of the batches of an epoch that :meth:`Features.pack` wrote, for batches that need these rows."""

def sampler_memory(num_vertices: int) -> int:
    """Return the bytes that a thread which samples takes beside its batches, for batches of up to 2^20 nodes."""

def disk_rates(files: Sequence[_Path], seconds: float) -> tuple[float, float] | None:
    """Measure the disk of some files for about so many seconds, with reads past the page cache.

    Returns reads of 4 KiB at random places per second, 128 at a time, and bytes of consecutive reads per second. None:
    the file system refuses such reads, as tmpfs does, or the files have no 4 KiB.
    """

def sparse_adam(
    tables: tuple[_Numbers, _Numbers, _Numbers],
    rows: _Rows,
    bounds: _Ids,
    gradients: _Numbers,
    *,
    first: int,
    size: float,
    betas: tuple[float, float],
    eps: float,
) -> None:
    """Make a step of Adam with the rows ``rows`` of a table, whose row 0 is ``first``.

    ``tables`` are the values, the means of the gradients and those of their squares: [num_rows, width], float32 or
    float64, changed in place. ``rows`` are several lists behind each other, each ascending: list ``i`` is
    ``rows[bounds[i]:bounds[i + 1]]``. ``gradients`` ([len(rows), width]) of a row in several lists are added up in the
    order of the lists.
    """

def default_threads() -> int: ...
def memory_budget() -> int: ...

@final
class Field:
    name: str
    doc: str
    kind: str
    default: Any
    words: list[str]
    range: tuple[int, int] | None
    only: str | None

@final
class Algorithm:
    name: str
    of: list[str]
    doc: str
    reads_weights: bool
    variants: list[tuple[str, str]]
    fields: list[Field]

@final
class Identity:
    n: int
    m: int
    loops: int
    checksum: str
    def __new__(cls, n: int, m: int, loops: int, checksum: str) -> Identity: ...

@final
class PlanCosts:
    memory: int
    path: str
    sample: float
    outside: bool
    files: int
    read: int
    written: int
    seconds: float

@final
class VertexResult:
    assignment: npt.NDArray[np.int32]
    loads: list[int]
    cap: int | list[int] | None
    weight_loads: list[list[int]]
    weight_caps: list[int | list[int]]
    weight_nominals: list[int | list[int]]
    volume_loads: list[int] | None
    volume_cap: int | list[int] | None
    volume_nominal: int | list[int] | None
    dealt: bool
    graph: Identity
    chosen: dict[str, Any]
    warnings: list[str]
    costs: dict[str, Any]
    def __new__(
        cls,
        assignment: npt.NDArray[np.int32],
        loads: Sequence[int],
        cap: int | Sequence[int] | None,
        weight_loads: Sequence[Sequence[int]],
        weight_caps: Sequence[int | Sequence[int]],
        weight_nominals: Sequence[int | Sequence[int]],
        volume_loads: Sequence[int] | None,
        volume_cap: int | Sequence[int] | None,
        volume_nominal: int | Sequence[int] | None,
        dealt: bool,
        graph: Identity,
        chosen: dict[str, Any],
        warnings: Sequence[str],
        costs: dict[str, Any],
    ) -> VertexResult: ...

@final
class EdgeResult:
    assignment: npt.NDArray[Any] | None
    loads: list[int]
    cap: int | None
    graph: Identity
    chosen: dict[str, Any]
    warnings: list[str]
    costs: dict[str, Any]

@final
class ClusterResult:
    assignment: npt.NDArray[np.int32]
    sizes: npt.NDArray[np.uint32]
    volumes: _Ids
    modularity: float
    max_volume: int | None
    graph: Identity

@final
class CutCounts:
    internal: _Ids
    cut: _Ids
    volume: _Ids
    matrix: _Ids | None
    graph: Identity

@final
class EdgeCounts:
    replicas: _Ids
    touched: int
    types: list[tuple[_Ids, int]]
    graph: Identity

@final
class Converted:
    graph: Identity
    notes: list[str]
    both: bool | None

@final
class Ordered:
    graph: Identity
    origin: Identity
    bytes_per_entry: tuple[float, float]
    """Before, and after."""

def algorithms() -> list[Algorithm]: ...
def successors() -> list[Algorithm]: ...
def partition(
    name: str,
    edges: EdgeSource,
    values: dict[str, Any],
    *,
    k: int,
    of: str,
    directedness: str,
    out: _Path | None,
    options: RunOptions,
) -> VertexResult | EdgeResult: ...
def cluster_modularity(
    edges: EdgeSource,
    *,
    max_vertices: int | None,
    max_volume: int | None,
    batch: int | None,
    symmetric: bool,
    options: RunOptions,
) -> ClusterResult: ...
def cluster_hollocou(
    edges: EdgeSource, *, max_volume: int | None, batch: int | None, options: RunOptions
) -> ClusterResult: ...
def order(
    edges: EdgeSource,
    target: _Path,
    *,
    assignment: npt.NDArray[np.uint32] | None,
    k: int,
    seed: int,
    symmetric: bool,
    options: RunOptions,
) -> Ordered: ...
def home_parts(
    edges: EdgeSource, assignment: npt.NDArray[Any], k: int, options: RunOptions
) -> VertexResult: ...
def cut_counts(
    edges: EdgeSource, assignment: npt.NDArray[np.int32], k: int, options: RunOptions
) -> CutCounts: ...
def halo_counts(
    edges: EdgeSource,
    assignment: npt.NDArray[np.int32],
    k: int,
    parts: tuple[int, int],
    types: list[int],
    options: RunOptions,
) -> list[_Ids]: ...
def component_counts(
    edges: EdgeSource, assignment: npt.NDArray[np.int32], k: int, options: RunOptions
) -> _Ids: ...
def weighted_cut(
    edges: EdgeSource, assignment: npt.NDArray[np.int32], k: int, options: RunOptions
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]] | None: ...
def count_edge_partition(
    edges: EdgeSource,
    assignment: npt.NDArray[Any],
    k: int,
    options: RunOptions,
    types: list[int] | None = None,
) -> EdgeCounts: ...
def relation_cuts(
    edges: EdgeSource,
    assignment: npt.NDArray[np.int32],
    k: int,
    relations: list[int],
    options: RunOptions,
) -> list[tuple[int, int, int]]: ...
def sparse_cut_matrix(
    edges: EdgeSource, assignment: npt.NDArray[np.int32], k: int, options: RunOptions
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], _Ids]: ...
def split_counts(assignment: npt.NDArray[np.int32], ids: _Ids, k: int, options: RunOptions) -> _Ids: ...
def label_skew(
    assignment: npt.NDArray[np.int32], labels: _Ids, k: int, options: RunOptions
) -> npt.NDArray[np.float64]: ...
def write_vertex_parts(
    edges: EdgeSource,
    assignment: npt.NDArray[np.int32],
    k: int,
    *,
    directedness: str,
    relations: Sequence[tuple[int, int | None]] | None,
    halo_hops: int,
    into: _Path,
    options: RunOptions,
    parts: tuple[int, int] | None = None,
) -> list[dict[str, Any]]:
    """Write the folders of the parts below ``into``; per part what ``part.json`` holds, num_halo as [hop 1, hop 2].

    By default these are all parts, and the temporary file lies in ``into``. That of some lies where ``options`` say.

    ``relations`` has the number of records of each relation, and the number of its reverse edges, which is its own one
    if they are edges of the same relation. It goes before ``directedness``.
    """

def write_edge_parts(
    edges: EdgeSource,
    assignment: npt.NDArray[Any],
    k: int,
    *,
    directedness: str,
    into: _Path,
    options: RunOptions,
) -> list[dict[str, Any]]:
    """Write the folders of the parts below ``into``; per part what ``part.json`` holds."""

def memory_estimates(edges: EdgeSource, k: int, symmetric: bool, options: RunOptions) -> dict[str, int]: ...
def multilevel_plans(
    edges: EdgeSource,
    k: int,
    symmetric: bool,
    volume_balance: float | None,
    degrees: npt.NDArray[np.uint32] | None,
    options: RunOptions,
) -> list[PlanCosts]: ...
def generate_rmat(target: _Path, *, n: int, m: int, seed: int, options: RunOptions) -> str: ...
def generate_ba(target: _Path, *, n: int, m: int, seed: int, options: RunOptions) -> str: ...
def generate_grid(target: _Path, *, rows: int, columns: int, options: RunOptions) -> tuple[int, str]: ...
def format_of(file: _Path) -> str: ...
def convert(
    sources: Sequence[_Path],
    target: _Path,
    *,
    format: str | None,
    relabel: bool,
    swap: bool,
    dtype: str | None,
    layout: str | None,
    num_vertices: int | None,
    max_vertices: int | None,
    drop_loops: bool,
    dedup: bool,
    shuffle: int | None,
    weights: str | None,
    column: int | str | None,
    columns: tuple[int | str, int | str] | None,
    unsure: bool,
    comments: str | None,
    names: bool,
    options: RunOptions,
) -> Converted: ...
def text_holds_names(
    source: _Path,
    *,
    columns: tuple[int | str, int | str] | None,
    column: int | str | None,
    unsure: bool,
    comments: str | None,
    options: RunOptions,
) -> bool: ...
def tabulate(
    sources: Sequence[_Path],
    target: _Path,
    *,
    names: bool,
    columns: tuple[int | str, int | str] | None,
    column: int | str | None,
    unsure: bool,
    comments: str | None,
    options: RunOptions,
) -> list[str]: ...
def write_edges(
    edges: EdgeSource, target: _Path, *, format: str, scale: float, options: RunOptions
) -> list[str]: ...
def refuse_foreign(directory: _Path, owned: Sequence[_Path]) -> None: ...
def shards_of_records(m: int, count: int) -> list[tuple[int, int]]: ...
def count_shard(edges: EdgeSource, shard: tuple[int, int], symmetric: bool, options: RunOptions) -> bytes: ...
def cut_shards(counts: Sequence[bytes], n: int, m: int, count: int) -> tuple[_Known, list[int]]: ...
def scatter_shard(
    edges: EdgeSource,
    shard: tuple[int, int],
    symmetric: bool,
    starts: Sequence[int],
    into: _Path,
    options: RunOptions,
) -> None: ...
def gather_shard(
    sources: Sequence[_Path],
    shard: int,
    vertices: tuple[int, int],
    identity: _Known,
    into: _Path,
    options: RunOptions,
) -> int: ...
def entries_of_piece(path: _Path) -> int: ...
def partition_replica(
    values: Mapping[str, Any],
    *,
    k: int,
    pieces: Sequence[tuple[_Path, int, int, int]],
    identity: _Known,
    symmetric: bool,
    number: int,
    count: int,
    exchange: Callable[[bytes], list[bytes]],
    folder: _Path,
    options: RunOptions,
) -> tuple[VertexResult, int]: ...
def replica_memory(n: int, entries: int, k: int, sample: float, volume_balance: float | None) -> int: ...
def hash_bytes(content: bytes) -> str: ...
def hash_files(files: Sequence[_Path], options: RunOptions) -> list[tuple[int, str]]: ...
def write_file(target: _Path, content: bytes) -> None: ...
def write_npy(target: _Path, array: npt.NDArray[Any], options: RunOptions) -> None: ...
def write_lines(target: _Path, array: npt.NDArray[Any], options: RunOptions) -> None: ...
