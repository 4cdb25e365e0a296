"""The loader: the batches of a rank, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from ..core import parameters
from ..core.calls import called_well
from ..core.parameters import StrPath
from ..errors import ParameterError, arg
from ..measures.accesses import Epoch, by_score, rows_by_type
from ..partitions.loader_options import Fanouts, LoaderOptions
from ..partitions.partition import VertexPartition
from ..partitions.seeds import Deal, Seeds, Steps, given_rank, loaded_seeds, rank_of_part
from ..partitions.stored_graph import refuse_without_edges
from ..partitions.types import edge_keys, fanouts_of, type_names
from .ahead import ended
from .batch import Batch, TypedBatch
from .cached_rows import cached_rows_of
from .edge_rows import EdgeFetching
from .fetching import Fetching, FilledBatch, NodeFetching
from .making import free_memory, source_of
from .planning.building import planned_types
from .planning.windows import PlannedRows, planned_for
from .remote import fetching_of, refuse_other_directories
from .row_files import RowFiles
from .rows.sources import device_bytes
from .sample import SampledArrays

if TYPE_CHECKING:
    from .batch import LoadedBatch

_EDGE_COUNTS = {
    "rows": "edge_rows",
    "remote_rows": "remote_edge_rows",
    "remote_bytes": "remote_edge_bytes",
    "cached_rows": "cached_edge_rows",
    "read_bytes": "edge_read_bytes",
}
"""Names of counts, and what they are called where they are those of in-edges."""


class Loader:
    """Mini-batches of one rank. See :meth:`fastpart.VertexPartition.loader`, which makes it.

    Iterating over it gives the batches of an epoch, each a :class:`Batch`, or a :class:`TypedBatch` in a graph with
    types. Iterating again gives the next epoch.

    A batch goes through four stages: :meth:`seeds`, :meth:`sample`, :meth:`fetch` and :meth:`to_device`. Assign a
    callable with the same parameters to replace one of them: ``loader.to_device = mine``.

    Attributes
    ----------
    vertices : numpy.ndarray
        int64: ids of all seeds of all ranks, in the order that ``input_id`` counts.
    input : str
        The type of the seeds. A graph without types has one, whose name is empty.
    types : list of str
        All types.
    edge_types : list of tuple of str
        All relations: type of the sources, name, type of the targets.
    fanouts : tuple of int, or list of list of int
        In-edges per vertex in each hop. In a graph with types in each hop per vertex and relation. -1 takes all.
    batch_size : int
        Seeds of a step on all ranks. The last step of an epoch may have fewer.
    seed : int
        Seed of the order and of all samples.
    rank, world_size : int
        This rank, and the number of ranks.
    device : torch.device or None
        Where the tensors of a batch are. None: the CPU.
    fetching : NodeFetching
        Where features come from. Before the first batch, ``loader.fetching.here = source`` replaces the files by
        another :class:`fastpart.loading.rows.RowSource` of the same rows. In a graph with types
        ``loader.fetching.of_type["paper"].here = source`` replaces those of a type.
    edge_fetching : EdgeFetching or None
        Where features of in-edges come from. None if the directory has none, or with ``edge_ids=False``.
    """

    _items = "vertices"
    input: str
    vertices: npt.NDArray[np.int64]

    def __init__(
        self,
        partition: VertexPartition,
        vertices: Any,
        *,
        fanouts: Fanouts,
        options: LoaderOptions,
        plan: StrPath | None = None,
        input: str | None = None,
    ) -> None:
        refuse_without_edges(partition)
        self._given_input = input
        self.types, self.edge_types = type_names(partition), edge_keys(partition)
        self._types, self._rows_by_type = partition._types, partition._rows_by_type
        self.fanouts = fanouts_of(fanouts, partition)
        self.rank, self.world_size = _ranks(options.rank, options.world_size)
        self.device = None if options.device is None else torch.device(options.device)
        self._ahead = options.ahead
        self._epoch = 0
        self._topology = partition._topology
        self._seeds = self._seeds_of(vertices, partition, options)
        owners = rank_of_part(partition.k, self.world_size)
        self._own = owners == self.rank
        self._deal = Deal.of(self._seeds, self._topology.starts, owners, vertices, options)
        self.batch_size, self.seed = self._deal.batch_size, self._deal.seed
        together = options.rank is None and self.world_size > 1
        if together:
            refuse_other_directories(partition.manifest or {})
        fetch = partial(fetching_of, owners=owners, rank=self.rank, options=options, together=together)
        self.fetching = self._fetching_of(partition, fetch, options)
        if plan is not None:
            self._read_planned(partition, vertices, fanouts, plan, options)
        self.edge_fetching = self._edge_fetching_of(partition, fetch, options)
        self._source = source_of(partition, self.fanouts, self.fetching, self.edge_fetching, options)
        self.limit(free_memory())
        if plan is None and (self.device is not None or options.resident is not None):
            self.keep(self.device or torch.device("cpu"), options.resident)

    def _fetching_of(
        self, partition: VertexPartition, fetch: Callable[[RowFiles], Fetching], options: LoaderOptions
    ) -> NodeFetching:
        files = RowFiles.of_types(partition)
        fetching = NodeFetching({name: fetch(files[name]) for name in self.types})
        if options.cache is not None or fetching.by_messages:
            rows = cached_rows_of(partition, self._own, options, self._epoch_of())
            by_type = rows_by_type(self._types, rows)
            for of_type, cached in zip(fetching.of_type.values(), by_type, strict=True):
                if of_type.here is not None:
                    of_type.keep_cached(cached)
        return fetching

    def _edge_fetching_of(
        self, partition: VertexPartition, fetch: Callable[[RowFiles], Fetching], options: LoaderOptions
    ) -> EdgeFetching | None:
        """Return where the features of in-edges come from. An in-edge is in the part of its target."""
        fetching = EdgeFetching(partition, fetch) if options.edge_ids else None
        if fetching is None or not fetching.of_relation:
            return None
        if options.cache is not None:
            fetching.keep_cached(partition, self._own, options.cache, self._epoch_of())
        return fetching

    def _read_planned(
        self,
        partition: VertexPartition,
        vertices: Any,
        fanouts: Fanouts,
        plan: StrPath,
        options: LoaderOptions,
    ) -> None:
        """Let features come from what a plan has packed."""
        for name in ("resident", "neighbourhood"):
            if getattr(options, name) is not None:
                raise ParameterError(
                    f"{name}: a loader with {arg('plan')} does not take it. Leave out one of them"
                )
        found, sampled = planned_for(
            plan, partition, vertices, fanouts, self.world_size, options, options.threads, self.input
        )
        self.fetching.read_planned(PlannedRows(found, sampled, self.rank, planned_types(partition)))

    def use_until(self, epochs: int) -> None:
        """Say how many epochs are going to be used, so that those beyond a plan are packed before they begin."""
        if self.fetching.planned is not None:
            self.fetching.planned.end = epochs

    def _seeds_of(self, vertices: Any, partition: VertexPartition, options: LoaderOptions) -> Seeds:
        """Return what steps are made of. A subclass may make them of other things than vertices."""
        seeds = loaded_seeds(vertices, partition, options, self._given_input)
        self.input, self.vertices = seeds.type, seeds.ids
        return seeds

    def _epoch_of(self) -> Epoch:
        rows = self._seeds.rows if self._seeds.times is None else np.unique(self._seeds.rows)
        return Epoch(rows, self.fanouts, self.batch_size, self._types)

    @called_well
    def keep(self, device: torch.device, memory: int | None) -> None:
        """Keep rows of features on a device, of own parts and cached ones: of all types the most accessed that fit.

        Parameters
        ----------
        device : torch.device
            Where they stay, and where ``x`` of the batches is from then on.
        memory : int or None
            Bytes. None: half of the free memory of a GPU, and 0 on the CPU.
        """
        free, fetchings = device_bytes(device, memory), self.fetching.of_type.values()
        row_bytes = np.array(self.fetching.row_bytes)
        if not free or not row_bytes.any():
            return
        rows = np.arange(self._topology.num_vertices, dtype=np.uint32)
        types, of_types = self._rows_by_type.locate(rows)
        wanted = np.repeat(self._own, np.diff(self._topology.starts))
        for number, fetching in enumerate(fetchings):
            if len(fetching.cached.ids):
                wanted |= (types == number) & np.isin(of_types, fetching.cached.ids)
        rows = rows[wanted & (row_bytes > 0)[types]]
        if row_bytes[types[rows]].sum() > free:
            rows = by_score(rows, self._epoch_of().expected_steps(self._topology, self._own))
            rows = np.sort(rows[np.cumsum(row_bytes[types[rows]]) <= free])
        for number, fetching in enumerate(fetchings):
            kept = of_types[rows[types[rows] == number]]
            if len(kept):
                fetching.keep_resident(kept, device)

    def limit(self, free_bytes: int) -> None:
        """Let batches take no more bytes before they are used, and as many while their memory waits to be used again.

        It does not change batches, only how many of them are made ahead. One is always made.
        """
        self._source.limit(free_bytes)
        self._topology.keep_at_most(free_bytes)

    def __len__(self) -> int:
        """Steps of an epoch, the same on every rank."""
        return len(self._deal)

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration that of an epoch, as after a restart."""
        self._epoch = parameters.integer("epoch", epoch, 0, 2**63 - 1)

    def read_counts(self) -> dict[str, int]:
        """Return what the batches since the last call needed, and what was read for them.

        Returns
        -------
        dict of int
            ``rows``: rows of features, each once for a batch. ``remote_rows``: those of parts of other ranks, each once
            for all batches that are fetched together. ``remote_bytes``: their bytes or, if they came by messages, those
            of the messages. ``cached_rows``: rows of other ranks found in the cache, which are no ``remote_rows``.
            ``read_bytes``: bytes that files of features were read for, also for other ranks: whole blocks of 4 KiB with
            direct reads, or each node's row from maps, where the system decides what it reads. With features of
            in-edges, ``edge_rows``, ``remote_edge_rows``, ``remote_edge_bytes``, ``cached_edge_rows`` and
            ``edge_read_bytes`` are those of in-edges, of all relations together.
        """
        counts = self.fetching.read_counts()
        if self.edge_fetching is not None:
            found = self.edge_fetching.read_counts()
            counts |= {of_edges: found[name] for name, of_edges in _EDGE_COUNTS.items()}
        return counts

    def read_seconds(self) -> dict[str, float]:
        """Return what making the batches took since the last call, in all threads.

        Returns
        -------
        dict of float
            ``sampling`` and ``fetching`` (rows of features), in seconds.
        """
        seconds = self._source.read_seconds()
        own = self.fetching.read_seconds()
        if self.edge_fetching is not None:
            own += self.edge_fetching.read_seconds()
        return {**seconds, "fetching": seconds["fetching"] + own}

    def close(self) -> None:
        """End the connections to other ranks, if there are any. There are no batches after it."""
        self.fetching.close()
        if self.edge_fetching is not None:
            self.edge_fetching.close()

    def __iter__(self) -> Iterator[LoadedBatch]:
        epoch = self._epoch
        self._epoch += 1
        return self._batches(epoch)

    def _batches(self, epoch: int) -> Iterator[Any]:
        steps = self._dealt(self.seeds(epoch), epoch)
        with ended(self.sample(steps, epoch)) as sampled, ended(self.fetch(sampled)) as fetched:
            for step, (arrays, x) in enumerate(fetched):
                yield self.to_device(self._batch(arrays, x, steps, epoch, step))

    def seeds(self, epoch: int) -> npt.NDArray[np.int64]:
        """Stage 1: return the order of an epoch.

        Returns
        -------
        numpy.ndarray
            int64: positions of seeds among those of the loader, the same on all ranks. Each ``batch_size`` of them are
            a step. A rank takes those of its parts.
        """
        return self._deal.order(epoch)

    @called_well
    def sample(self, steps: Steps, epoch: int) -> Generator[SampledArrays]:
        """Stage 2: yield a neighbourhood for each step, for example a :class:`Sample`.

        Parameters
        ----------
        steps : Steps
            Step i of this rank has the seeds ``steps.seeds[steps.seed_offsets[i] : steps.seed_offsets[i + 1]]``.
        epoch : int
            Number of the epoch.
        """
        return self._source.batches(steps, epoch)

    def fetch(self, sampled: Iterator[SampledArrays]) -> Generator[FilledBatch]:
        """Stage 3: yield each neighbourhood with the features of its nodes, an array or a tensor."""
        together = max(self._ahead, 1)
        if self.edge_fetching is not None:
            sampled = self.edge_fetching.filled(sampled, together, len(self))
        return self.fetching.filled(sampled, together, len(self))

    def to_device(self, batch: Any) -> Any:
        """Stage 4: return a batch on the device."""
        return batch if self.device is None else batch.to(self.device)

    def _dealt(self, order: npt.NDArray[np.int64], epoch: int) -> Steps:
        """Return what this rank takes of the items of an epoch, given their order on all ranks."""
        return self._deal.steps(order, self.rank)

    def _batch(self, arrays: SampledArrays, x: Any, steps: Steps, epoch: int, step: int) -> Any:
        return (Batch if self._types is None else TypedBatch)(**self._entries(arrays, x, steps, epoch, step))

    def _entries(self, arrays: Any, x: Any, steps: Steps, epoch: int, step: int) -> dict[str, Any]:
        """Return what a batch holds, by its name."""
        positions = steps.positions[steps.offsets[step] : steps.offsets[step + 1]]
        labels, types, relations = self._seeds.labels, self.types, self.edge_types
        named = _only if self._types is None else _named
        entries = {
            "x": named(types, x, _tensor),
            "n_id": named(types, arrays.n_id),
            "indptr": named(relations, arrays.indptr),
            "indices": named(relations, arrays.indices),
            "seed_time": named(types, arrays.seed_time),
            "e_id": named(relations, arrays.e_id),
            "edge_attr": named(relations, getattr(arrays, "edge_features", None), _tensor),
            "rows": named(types, arrays.rows, np.asarray),
            "num_sampled_nodes": named(types, arrays.num_sampled_nodes, list),
            "num_sampled_edges": named(relations, arrays.num_sampled_edges, list),
        }
        if self._types is not None:
            entries = {f"{name}_dict": value for name, value in entries.items()} | {"input_type": self.input}
        return entries | {
            "y": None if labels is None else torch.from_numpy(labels[positions]),
            "input_id": torch.from_numpy(positions),
            "batch_size": len(positions),
            "global_size": int(steps.global_sizes[step]),
            "seed": self.seed,
            "epoch": epoch,
            "step": step,
        }

    def __repr__(self) -> str:
        of, fanouts = "", f"fanouts {list(self.fanouts)}"
        if self._types is not None:
            of, fanouts = (
                f" of {self.input}",
                f"{len(self.fanouts)} hops over {len(self.edge_types)} relations",
            )
        return (
            f"<{type(self).__name__}: {len(self._seeds.ids)} {self._items}{of} in {len(self)} steps of "
            f"{self.batch_size}, {fanouts}, rank {self.rank} of {self.world_size}>"
        )


@called_well
def loader(partition: VertexPartition, vertices: Any = "train", **given: Any) -> Loader:
    """Return a loader, as :meth:`fastpart.VertexPartition.loader` documents."""
    return partition.loader(vertices, **given)


def _tensor(rows: Any) -> Tensor:
    return rows if isinstance(rows, Tensor) else torch.from_numpy(rows)


def _named(names: Sequence[Any], values: Any, change: Any = torch.from_numpy) -> dict[Any, Any]:
    """Return the values of all types or relations by name, or of those that have one."""
    if values is None:
        return {}
    if isinstance(values, dict):
        return {name: change(value) for name, value in values.items()}
    return dict(zip(names, map(change, values), strict=True))


def _only(names: Sequence[Any], value: Any, change: Any = torch.from_numpy) -> Any:
    """Return the value of the only type or relation."""
    return None if value is None else change(value)


def _ranks(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Return this rank and the number of ranks: those of ``torch.distributed`` unless given."""
    given = given_rank(rank, world_size)
    if given is not None:
        return given
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1
