"""The rows that training on mini-batches will fetch from other parts, before anybody trains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack, cast

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.cache_size import CacheSize
from ..core.frames import Tabular, pl
from ..core.inputs import train_of
from ..core.option_groups import OptionObject
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.parameters import sized
from ..core.protocols import tables
from ..errors import MemoryBudgetError, ParameterError, arg
from ..graphs.given_splits import of_type, splits_by_type, typed_splits
from ..graphs.graph import Graph
from ..graphs.opening import open_graph
from ..partitions.loader_options import EpochOptions, Fanouts, FetchingOptions, HopOptions, SeedOptions
from ..partitions.part_rows import typed_of
from ..partitions.partition import (
    VertexPartition,
    partition_given,
)
from ..partitions.seeds import Seeds, seeds_of
from ..partitions.stored_graph import refuse_without_edges
from ..partitions.types import edge_keys, type_names, types_with
from .accesses import Epoch, SampledEpochs, most_needed_of_others, rows_by_type
from .sampling_plan import (
    PartTraffic,
    RowTypes,
    SamplingPlan,
    directory_bytes,
    edge_keys_of,
    of_each_row,
    stored_bytes,
    traffic_of,
)


@dataclass(frozen=True, eq=False, repr=False)
class Traffic(Tabular):
    """The predicted traffic of a partition, from :func:`fastpart.predict_traffic`.

    Attributes
    ----------
    parts : polars.DataFrame
        One row per part: ``part``, ``seeds``, and per epoch ``rows`` of its batches, ``remote_rows`` of other parts
        among them, ``cached_rows``, how many rows of other parts the cache holds, and ``saved_rows``, how many of the
        ``remote_rows`` it saves.
    fanouts : tuple of int, or dict of them
        In-edges per vertex in each hop, or those of each relation.
    batch_size : int
        Seeds of a step on all ranks.
    cache : float or str
        The cache of each part: a share of its rows, or memory with its unit.
    row_bytes : int, dict of int, or None
        Bytes of the features of a vertex. Of a typed graph by type, and 0 where a type has none.
    types : polars.DataFrame or None
        One row per type of a typed graph: ``type``, ``row_bytes``, and per epoch ``rows``, ``remote_rows``,
        ``cached_rows``, ``saved_rows``, ``remote_mb`` and ``fetched_mb`` of all parts. Rows of types without features
        are not fetched: ``parts`` and the sums leave them out.
    """

    parts: pl.DataFrame
    fanouts: Fanouts
    batch_size: int
    cache: float | str
    row_bytes: int | dict[str, int] | None
    types: pl.DataFrame | None = None

    def to_frame(self) -> pl.DataFrame:
        """Return the table of the parts."""
        return self.parts

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
        return self._megabytes(self.remote_rows, "remote_mb")

    @property
    def fetched_mb(self) -> float | None:
        """Megabytes (10**6 bytes) of ``fetched_rows``. None if the bytes of a row are unknown."""
        return self._megabytes(self.fetched_rows, "fetched_mb")

    def _megabytes(self, rows: float, name: str) -> float | None:
        if self.types is not None:
            return None if self.row_bytes is None else float(self.types[name].sum())
        return megabytes(rows, cast("int | None", self.row_bytes))

    def __repr__(self) -> str:
        bytes_ = "" if self.fetched_mb is None else f" ({self.fetched_mb:,.1f} MB)"
        return (
            f"<Traffic: {self.rows:,.0f} rows per epoch, {self.remote_rows:,.0f} of other parts, "
            f"{self.fetched_rows:,.0f}{bytes_} with a cache of {CacheSize.of(self.cache)}>"
        )

    def _repr_html_(self) -> str:
        summary = {
            name: [getattr(self, name)] for name in ("rows", "remote_rows", "saved_rows", "fetched_mb")
        }
        shown = [] if self.types is None else [self.types]
        return tables("Predicted traffic per epoch", pl.DataFrame(summary), *shown, self.parts)


@with_options(groups=[HopOptions, SeedOptions, FetchingOptions, RunOptions])
def predict_traffic(
    partition: Any,
    fanouts: Fanouts,
    batch_size: int = 1000,
    *,
    cache: float | str = 0.1,
    graph: Any = None,
    splits: Any = None,
    split: int | None = None,
    input: str | None = None,
    row_bytes: int | Mapping[str, int] | None = None,
    exact: bool | None = None,
    seed: int = 0,
    batches: OptionObject | None = None,
    fetching: OptionObject | None = None,
    run: OptionObject | None = None,
    **options: Unpack[Options],
) -> Traffic:
    """Predict how many rows the parts fetch from each other in an epoch of training on mini-batches.

    Each part trains on its own training vertices, as :meth:`fastpart.VertexPartition.loader` deals them with one rank
    per part. Neighbours are sampled uniformly. A row that a batch has in several levels is fetched once.

    Parameters
    ----------
    partition : path, VertexPartition or array of integers
        A partition directory, or any partition of vertices together with ``graph``.
    fanouts : sequence of int, or mapping of them
        In-edges per vertex in each hop, from the seeds on, as the loader and ``fastpart.train`` take them. -1 takes
        all. In a graph with types, so many of each relation. A mapping has a sequence for each relation, by its name or
        as ``("paper", "cites", "paper")``. It leaves out those that are not sampled.
    batch_size : int
        Seeds of a step on all ranks, by default as many as the loader and :func:`fastpart.train.sampled` take.
    cache : float or str
        Rows of other parts that each part keeps: a share of its own rows, from 0 to 1, or memory with its unit, such as
        "200M". They are those that it needs most often. 0 keeps none. Rows of several types are kept by how often they
        are needed times their bytes. Types without features count for nothing.
    graph : path, array or Graph, optional
        The graph, as :func:`open_graph` accepts it. Default: the parts of the directory.
    splits : mapping, or path of a .npz or a table, optional
        ``train``: vertex ids, or a bool mask of length n. Those of a typed graph may be given by type. Default: the
        labelled training vertices of the directory, or those of the graph directory.
    split : int, optional
        Which row of ``train_masks`` of shape (s, n) to use.
    input : str, optional
        The type of the seeds in a graph with types. Default: the only one with training vertices.
    row_bytes : int or mapping of str to int, optional
        Bytes of the features of a vertex, for each type of a typed graph if that has types. Types that a mapping leaves
        out have none. Default: those of the directory.
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
        ``.parts``. Of a typed graph also ``.types``.

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
    limits = run_options(**options)
    exact = None if exact is None else parameters.flag("exact", exact)
    seed = parameters.seed(seed)
    graph = None if graph is None else open_graph(graph, **options)
    opened = _partition(partition, graph)
    source = graph if graph is not None or opened.folder is not None else opened.graph
    if exact and (graph is not None or opened.folder is None):
        raise ParameterError(
            f"exact: only the parts of a directory are sampled. Pass a directory, and no {arg('graph')}"
        )
    if source is None:
        if opened.folder is None:
            raise ParameterError(
                f"graph: the partition does not know its graph. Pass {arg('graph')}, or a directory"
            )
        keys = edge_keys(opened) if opened.is_typed else None
        plan = SamplingPlan.of(fanouts, batch_size, [cache], keys)
        names = type_names(opened) if opened.is_typed else None
        rows = RowTypes.of(names, row_bytes, stored_bytes(opened))
        train = _seeds_of_directory(opened, splits, split, input)
        return summed(_of_directory(opened, plan, train, rows, exact, seed, limits), plan, 0, rows)
    whole = open_graph(source, **options)
    plan = SamplingPlan.of(fanouts, batch_size, [cache], edge_keys_of(whole))
    names = None if whole.types is None else [each.name for each in whole.types]
    rows = RowTypes.of(names, row_bytes, directory_bytes(whole))
    found = typed_splits(whole, splits, split)
    if splits is None and not found:
        raise ParameterError(f"splits: there are no training vertices. Pass {arg('splits')}")
    return summed(traffic_of(whole, opened, of_input(found, whole, input), plan, rows, limits), plan, 0, rows)


def summed(found: Sequence[PartTraffic], plan: SamplingPlan, index: int, rows: RowTypes) -> Traffic:
    """Return the result for one of the caches of a plan."""
    of_parts = {
        "rows": np.array([part.rows for part in found], float),
        "remote_rows": np.array([part.remote for part in found], float),
        "cached_rows": np.array([part.cached[index] for part in found], np.int64),
        "saved_rows": np.array([part.saved[index] for part in found], float),
    }
    parts = pl.DataFrame(
        {
            "part": np.arange(len(found), dtype=np.int64),
            "seeds": np.array([part.seeds for part in found], np.int64),
            **{name: values[:, rows.counted].sum(axis=1) for name, values in of_parts.items()},
        }
    )
    cache, size = plan.caches[index].given, plan.batch_size
    if rows.names is None:
        row_bytes = None if rows.row_bytes is None else rows.row_bytes[0]
        return Traffic(parts, plan.fanouts, size, cache, row_bytes)
    known = None if rows.row_bytes is None else dict(zip(rows.names, rows.row_bytes, strict=True))
    types = _types_frame(rows, {name: values.sum(axis=0) for name, values in of_parts.items()})
    return Traffic(parts, plan.fanouts, size, cache, known, types)


def _types_frame(rows: RowTypes, sums: dict[str, npt.NDArray[Any]]) -> pl.DataFrame:
    sizes = [None] * len(rows.names or ()) if rows.row_bytes is None else list(rows.row_bytes)
    fetched = sums["remote_rows"] - sums["saved_rows"]
    return pl.DataFrame(
        [
            pl.Series("type", rows.names, pl.String),
            pl.Series("row_bytes", sizes, pl.Int64),
            *(pl.Series(name, values) for name, values in sums.items()),
            *(
                pl.Series(name, [megabytes(*each) for each in zip(values, sizes, strict=True)], pl.Float64)
                for name, values in (("remote_mb", sums["remote_rows"]), ("fetched_mb", fetched))
            ),
        ]
    )


def of_input(
    splits: dict[str, npt.NDArray[np.int64]], graph: Graph, input: str | None
) -> dict[str, npt.NDArray[np.int64]]:
    """Return the training vertices of one type. A graph without types has those of all."""
    if graph.types is None:
        if input is not None:
            raise ParameterError(
                "input: this graph has no types, so all of its vertices are of one. Leave it out"
            )
        return splits
    train = splits.get("train", np.empty(0, np.int64))
    found = {each.name: of_type(train, each) for each in graph.types}
    if input is not None and input not in found:
        raise ParameterError(f"input: unknown type {input!r}. The types are {', '.join(found)}")
    there = [name for name, ids in found.items() if len(ids)]
    if input is None and len(there) > 1:
        raise ParameterError(f"input: {', '.join(there)} have training vertices. Name one of them")
    name = input or next(iter(there), None)
    return {"train": train if name is None else found[name]}


def megabytes(rows: float, row_bytes: int | None) -> float | None:
    """Return 10**6 bytes of so many rows."""
    return None if row_bytes is None else rows * row_bytes / 1e6


def _seeds_of_directory(
    partition: VertexPartition, splits: Any, split: int | None, input: str | None
) -> Seeds:
    """Return the seeds of a training over a directory."""
    refuse_without_edges(partition)
    vertices: Any = "train"
    if splits is not None:
        vertices = train_of(_given_splits(splits, partition, split)).astype(np.int64)
    elif not types_with("train", partition):
        raise ParameterError(f"splits: the directory has no training vertices. Pass {arg('splits')}")
    seeds = seeds_of(vertices, partition, input)
    if not len(seeds.ids):
        raise ParameterError(f"splits: the directory has no training vertices. Pass {arg('splits')}")
    return seeds


def _given_splits(splits: Any, partition: VertexPartition, split: int | None) -> Any:
    typed = typed_of(partition.manifest or {})
    return splits_by_type(splits, typed, partition._topology.num_vertices, split, partition._id_tables)


def _of_directory(
    partition: VertexPartition,
    plan: SamplingPlan,
    seeds: Seeds,
    rows: RowTypes,
    exact: bool | None,
    seed: int,
    options: RunOptions,
) -> Sequence[PartTraffic]:
    """Return the traffic of each part of a directory."""
    types, caches = partition._types, plan.of_core(rows)
    if exact or (exact is None and plan.is_cheap_to_count(len(seeds.ids), partition.num_edges or 0)):
        fanouts = [hop[0] for hop in plan.hops] if types is None else plan.hops
        epoch = Epoch(seeds.rows, fanouts, plan.batch_size, types)
        return counted(partition, seeds, epoch, plan.caches, rows, seed, options)
    return partition._topology.traffic(
        seeds.rows,
        plan.hops,
        batch_size=plan.batch_size,
        caches=caches,
        row_bytes=rows.worth,
        types=types,
        options=options,
    )


def _partition(given: Any, graph: Graph | None) -> VertexPartition:
    """Open what is given."""
    given = partition_given(given, graph)
    if not isinstance(given, VertexPartition):
        raise ParameterError("partition: batches are of vertices. Pass a partition of the vertices")
    return given


@dataclass(frozen=True)
class PartCount:
    """Counts of a part, with the names of ``_core.PartTraffic``: by type, and by cache and type."""

    seeds: int
    rows: Sequence[float]
    remote: Sequence[float]
    cached: Sequence[Sequence[int]]
    saved: Sequence[Sequence[float]]


def counted(
    partition: VertexPartition,
    seeds: Seeds,
    epoch: Epoch,
    caches: Sequence[CacheSize],
    rows: RowTypes,
    seed: int,
    options: RunOptions,
) -> list[PartCount]:
    """Return the traffic of each part in epoch 0 of the loader of that seed, with one rank per part."""
    of_loader = EpochOptions(batch_size=epoch.batch_size, seed=seed, shuffle=True)
    threads = _threads(len(partition), options)
    sampled = SampledEpochs.of_seeds(partition, seeds, epoch.fanouts, partition.k, of_loader, threads)
    return [_counted(partition, part, sampled, epoch, caches, rows, options) for part in range(partition.k)]


def _counted(
    partition: VertexPartition,
    part: int,
    sampled: SampledEpochs,
    epoch: Epoch,
    caches: Sequence[CacheSize],
    rows: RowTypes,
    options: RunOptions,
) -> PartCount:
    topology = partition._topology
    starts = [topology.starts] if epoch.types is None else epoch.types.starts
    own_rows = [each[part : part + 2] for each in starts]
    is_kept = [np.zeros((len(caches), each[-1] if any(caches) else 0), np.bool_) for each in starts]
    if any(caches):
        scores = epoch.expected_steps(topology, np.arange(partition.k) == part, options)
        worth = rows.worth[0] if epoch.types is None else of_each_row(epoch.types, rows.worth)
        for index, cache in enumerate(caches):
            held = most_needed_of_others(topology, part, cache, scores, worth)
            for masks, kept in zip(is_kept, rows_by_type(epoch.types, held), strict=True):
                masks[index, kept] = True
    needed, remote = np.zeros((2, len(starts)), np.int64)
    saved, steps = np.zeros((len(caches), len(starts)), np.int64), len(sampled.deal)
    for step, of_types in enumerate(sampled.rows_of_types(0, part)):
        for number, (found, bounds, masks) in enumerate(zip(of_types, own_rows, is_kept, strict=True)):
            own = slice(*np.searchsorted(found, bounds))
            needed[number] += len(found)
            remote[number] += len(found) - (own.stop - own.start)
            if any(caches):
                saved[:, number] += np.count_nonzero(masks[:, found], axis=1)
        if options.progress is not None:
            options.progress("batches", part * steps + step + 1, partition.k * steps)
    count = int(np.count_nonzero(sampled.deal.ranks == part))
    cached = np.stack([np.count_nonzero(masks, axis=1) for masks in is_kept], axis=1)
    return PartCount(count, needed.tolist(), remote.tolist(), cached.tolist(), saved.tolist())


def _threads(n: int, options: RunOptions) -> int:
    """Return how many threads may sample, each with the memory of a sampler, beside a byte per vertex of a mask."""
    budget = options.memory_limit or _core.memory_budget()
    each = _core.sampler_memory(n)
    fitting = (budget - n) // max(each, 1)
    if fitting < 1:
        raise MemoryBudgetError(
            f"samples of {n:,} vertices need {sized(n + each)}, but the memory limit is {sized(budget)}. Raise it"
        )
    return int(min(options.threads or _core.default_threads(), fitting))
