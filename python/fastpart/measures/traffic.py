"""The rows that training on mini-batches will fetch from other parts, before anybody trains."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Unpack

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.frames import pl
from ..core.inputs import splits_of, train_of
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.protocols import tables
from ..errors import ParameterError
from ..graphs.graph import Graph
from ..graphs.opening import open_graph
from ..partitions.partition import (
    EdgePartition,
    Partition,
    VertexPartition,
    read_partition,
    vertex_partition_of,
)
from ..partitions.parts import Parts, VertexPartData
from ..partitions.seeds import seeds_of
from .counting import counted
from .ranking import Epoch


@dataclass(frozen=True, eq=False, repr=False)
class Traffic:
    """The predicted traffic of a partition, from :func:`fastpart.predict_traffic`.

    Attributes
    ----------
    parts : polars.DataFrame
        One row per part: ``part``, ``seeds``, and per epoch ``rows`` of its batches, ``remote_rows`` of other parts
        among them, ``cached_rows``, how many rows of other parts the cache holds, and ``saved_rows``, how many of the
        ``remote_rows`` it saves.
    fanouts : tuple of int
        In-edges per vertex in each hop.
    batch_size : int
        Seeds of a step on all ranks.
    cache : float
        Rows of the cache, as a share of the rows of a part.
    row_bytes : int or None
        Bytes of the features of a vertex.
    """

    parts: pl.DataFrame
    fanouts: tuple[int, ...]
    batch_size: int
    cache: float
    row_bytes: int | None

    @property
    def rows(self) -> float:
        """Rows of all batches of an epoch."""
        return float(self.parts["rows"].sum())

    @property
    def remote_rows(self) -> float:
        """Rows of other parts that all parts need in an epoch, without a cache."""
        return float(self.parts["remote_rows"].sum())

    @property
    def saved_rows(self) -> float:
        """The number of ``remote_rows`` that are in the cache."""
        return float(self.parts["saved_rows"].sum())

    @property
    def fetched_rows(self) -> float:
        """The number of ``remote_rows`` that are not in the cache, and are sent."""
        return self.remote_rows - self.saved_rows

    @property
    def remote_mb(self) -> float | None:
        """Megabytes (10**6 bytes) of ``remote_rows``. None if the bytes of a row are unknown."""
        return megabytes(self.remote_rows, self.row_bytes)

    @property
    def fetched_mb(self) -> float | None:
        """Megabytes (10**6 bytes) of ``fetched_rows``. None if the bytes of a row are unknown."""
        return megabytes(self.fetched_rows, self.row_bytes)

    def __repr__(self) -> str:
        bytes_ = "" if self.fetched_mb is None else f" ({self.fetched_mb:,.1f} MB)"
        return (
            f"<Traffic: {self.rows:,.0f} rows per epoch, {self.remote_rows:,.0f} of other parts, "
            f"{self.fetched_rows:,.0f}{bytes_} with a cache of {self.cache:g}>"
        )

    def _repr_html_(self) -> str:
        summary = {
            name: [getattr(self, name)] for name in ("rows", "remote_rows", "saved_rows", "fetched_mb")
        }
        return tables("Predicted traffic per epoch", pl.DataFrame(summary), self.parts)


@with_options
def predict_traffic(
    partition: Any,
    fanouts: Sequence[int],
    batch_size: int = 1024,
    *,
    cache: float = 0.1,
    graph: Any = None,
    splits: Any = None,
    split: int | None = None,
    row_bytes: int | None = None,
    exact: bool | None = None,
    seed: int = 0,
    **options: Unpack[Options],
) -> Traffic:
    """Predict how many rows the parts fetch from each other in an epoch of training on mini-batches.

    Each part trains on its own training vertices, as :meth:`fastpart.VertexPartition.loader` deals them with one rank
    per part. Neighbours are sampled uniformly. A row that a batch has in several levels is fetched once.

    Parameters
    ----------
    partition : path, VertexPartition or array of integers
        A partition directory, or any partition of vertices together with ``graph``.
    fanouts : sequence of int
        In-edges per vertex in each hop, from the seeds on, as the loader and ``fastpart.train`` take them. -1 takes
        all.
    batch_size : int
        Seeds of a step on all ranks.
    cache : float
        Rows of other parts that each part keeps, as a share of its own rows, from 0 to 1: those that it needs most
        often. 0 keeps none.
    graph : path, array or Graph, optional
        The graph, as :func:`open_graph` accepts it. Default: the parts of the directory.
    splits : mapping, or path of a .npz or a table, optional
        ``train``: vertex ids, or a bool mask of length n. Default: the labelled training vertices of the directory.
    split : int, optional
        Which row of ``train_masks`` of shape (s, n) to use.
    row_bytes : int, optional
        Bytes of the features of a vertex. Default: those of the directory.
    exact : bool, optional
        True samples epoch 0 of a loader and counts its rows, which needs a directory. False estimates them. Default:
        the count where it is cheaper, which is without a cache, and if the epoch samples no more edges than the
        estimate reads.
    seed : int
        Seed of the loader whose rows are counted. The estimate does not depend on it.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Traffic
        ``.remote_rows`` and ``.remote_mb`` per epoch, ``.fetched_rows`` and ``.fetched_mb`` with the cache, and
        ``.parts``.

    Raises
    ------
    ParameterError, TypeError
        There are no training vertices, ``exact=True`` has no directory, or a parameter is invalid.
    MemoryBudgetError
        20 bytes per vertex of degrees and candidates, and 28 for one part, exceed the memory limit. A count needs 4
        per thread and 1, and these only to rank the rows of a cache.

    Notes
    -----
    The count is what :meth:`fastpart.loading.Loader.read_counts` says after epoch 0, with ``ahead=0`` and
    ``cache_by="access"``. The rows of a cache are ranked as the loader does, for one part after the other.

    For the estimate, up to 64 batches of each part are sampled at once, each as one bit of a mask per vertex, in one
    pass over the edges per hop. What they fetch is the prediction. Access probabilities (SALIENT++, Kaler et al.,
    MLSys 2023) and these batches rank the rows for the cache. The probabilities alone treat the vertices of a level as
    independent, and say up to twice as many rows where a graph has many triangles.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> path_of_four = np.array([[0, 1], [1, 2], [2, 3]])
    >>> t = fp.predict_traffic([0, 0, 1, 1], [-1], graph=path_of_four, splits={"train": [1, 2]}, row_bytes=400)
    >>> t.remote_rows, t.remote_mb
    (2.0, 0.0008)
    """
    run = run_options(**options)
    plan = SamplingPlan.of(fanouts, batch_size, [cache])
    exact = None if exact is None else parameters.flag("exact", exact)
    seed = parameters.seed(seed)
    if row_bytes is not None:
        row_bytes = parameters.integer("row_bytes", row_bytes, 0, 2**63 - 1)
    opened = _partition(partition)
    source = graph if graph is not None or opened.folder is not None else opened.graph
    if exact and (graph is not None or opened.folder is None):
        raise ParameterError(
            "exact: only the parts of a directory are sampled. Pass a directory, and no graph="
        )
    if source is None:
        if opened.folder is None:
            raise ParameterError("graph: the partition does not know its graph. Pass graph=, or a directory")
        found = _of_directory(opened, plan, splits, split, exact, seed, run)
        row_bytes = _row_bytes(opened) if row_bytes is None else row_bytes
    else:
        if splits is None:
            raise ParameterError("splits: there are no training vertices. Pass splits=")
        whole = open_graph(source, **options)
        found = traffic_of(
            whole, opened, splits_of(splits, whole.num_vertices, split, whole._id_tables), plan, run
        )
    return plan.traffic(found, 0, row_bytes)


class PartTraffic(Protocol):
    """Rows per epoch of a part."""

    @property
    def seeds(self) -> int: ...  # noqa: D102
    @property
    def rows(self) -> float: ...  # noqa: D102
    @property
    def remote(self) -> float: ...  # noqa: D102
    @property
    def cached(self) -> Sequence[int]: ...  # noqa: D102
    @property
    def saved(self) -> Sequence[float]: ...  # noqa: D102


@dataclass(frozen=True)
class SamplingPlan:
    """The fanouts and batches of a training, and the caches to predict for."""

    fanouts: tuple[int, ...]
    batch_size: int
    caches: tuple[float, ...]

    @classmethod
    def of(cls, fanouts: object, batch_size: object, caches: Iterable[object]) -> SamplingPlan:
        """Check the values."""
        size = parameters.integer("batch_size", batch_size, 1, 2**31 - 1)
        shares = tuple(parameters.share_or_none("cache", cache) for cache in caches)
        return cls(parameters.fanouts_of(fanouts), size, shares)

    def is_cheap_to_count(self, seeds: int, edges: int) -> bool:
        """Return whether sampling an epoch is surely cheaper than its estimate, which reads all edges for each hop.

        Ranking the rows of a cache reads them as well, for each part.
        """
        sampled = seeds * sum(math.prod(self.fanouts[: hop + 1]) for hop in range(len(self.fanouts)))
        return -1 not in self.fanouts and not any(self.caches) and sampled <= edges * len(self.fanouts)

    def traffic(self, found: Sequence[PartTraffic], index: int, row_bytes: int | None) -> Traffic:
        """Return the result for one of the caches."""
        parts = pl.DataFrame(
            {
                "part": np.arange(len(found), dtype=np.int64),
                "seeds": np.array([part.seeds for part in found], np.int64),
                "rows": np.array([part.rows for part in found], float),
                "remote_rows": np.array([part.remote for part in found], float),
                "cached_rows": np.array([part.cached[index] for part in found], np.int64),
                "saved_rows": np.array([part.saved[index] for part in found], float),
            }
        )
        return Traffic(parts, self.fanouts, self.batch_size, self.caches[index], row_bytes)


def traffic_of(
    graph: Graph,
    partition: Partition,
    splits: Mapping[str, npt.NDArray[np.int64]],
    plan: SamplingPlan,
    options: RunOptions,
) -> list[_core.PartTraffic]:
    """Return the traffic of each part of a graph."""
    partition.refuse_other_graph(graph.num_vertices, graph.num_edges, None)
    return _core.predict_traffic(
        graph._source,
        partition.assignment,
        partition.k,
        train_of(splits),
        plan.fanouts,
        directedness=graph.directedness,
        relations=graph._directions,
        batch_size=plan.batch_size,
        caches=plan.caches,
        options=options,
    )


def megabytes(rows: float, row_bytes: int | None) -> float | None:
    """Return 10**6 bytes of so many rows."""
    return None if row_bytes is None else rows * row_bytes / 1e6


def _of_directory(
    partition: VertexPartition,
    plan: SamplingPlan,
    splits: Any,
    split: int | None,
    exact: bool | None,
    seed: int,
    options: RunOptions,
) -> Sequence[PartTraffic]:
    """Return the traffic of each part of a directory."""
    partition.refuse_without_edges()
    topology, parts = partition._topology, partition.parts
    vertices: Any = "train"
    if splits is not None:
        vertices = train_of(splits_of(splits, topology.num_vertices, split)).astype(np.int64)
    elif parts[0].types is not None:
        vertices = _train_of_types(parts)
    elif "train" not in (partition.manifest or {}).get("splits", []):
        raise ParameterError("splits: the directory has no training vertices. Pass splits=")
    seeds = seeds_of(vertices, parts, topology, ["train"])
    if not len(seeds.ids):
        raise ParameterError("splits: the directory has no training vertices. Pass splits=")
    if exact or (exact is None and plan.is_cheap_to_count(len(seeds.ids), partition.num_edges or 0)):
        epoch = Epoch(seeds.rows, plan.fanouts, plan.batch_size)
        return counted(partition, seeds, epoch, plan.caches, seed, options)
    return topology.traffic(
        seeds.rows, plan.fanouts, batch_size=plan.batch_size, caches=plan.caches, options=options
    )


def _train_of_types(parts: Parts[VertexPartData]) -> npt.NDArray[np.int64]:
    """Return the labelled training vertices of all types."""
    found = [np.empty(0, np.int64)]
    for part in parts:
        for each in part.types or ():
            view = part.of_type(each.name)
            mask = view.labelled("train")
            if mask is not None:
                found.append(view.inner[mask])
    return np.sort(np.concatenate(found))


def _row_bytes(partition: VertexPartition) -> int | None:
    return partition.parts[0].feature_bytes if "features" in (partition.manifest or {}) else None


def _partition(given: Any) -> VertexPartition:
    """Open what is given."""
    if isinstance(given, str | bytes | os.PathLike):
        given = read_partition(given)
    elif not isinstance(given, Partition):
        given = vertex_partition_of(given)
    if isinstance(given, EdgePartition):
        raise ParameterError("partition: batches are of vertices. Pass a partition of the vertices")
    return given if isinstance(given, VertexPartition) else vertex_partition_of(given)
