"""The loader of typed graphs: the batches of a rank, epoch by epoch."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ... import _core
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...measures.ranking import Epoch, rows_by_type
from ...partitions.loader_options import Fanouts, LoaderOptions
from ...partitions.partition import VertexPartition
from ...partitions.sampling import sampling_of
from ...partitions.seeds import Seeds, Steps, owner_of
from ...partitions.temporal import loaded_seeds
from ...partitions.types import EdgeKey, edge_keys, of_type, relation_fanouts, type_names
from ..agreement import refuse_other_directories
from ..cached_rows import cached_rows_of
from ..loader import Loader
from ..remote import RowFiles, fetching_of
from ..rows.resident import device_bytes
from .batch import TypedBatch
from .edge_features import TypedEdgeFeatures
from .fetching import TypedFetching

_ONLY_PLAIN = ("scheduled", "neighbourhood", "trace")
"""Parameters of loaders that are for graphs without types."""


class TypedSource:
    """Threads of the core. Each makes a whole batch, as long as no more than ``ahead`` wait for their use."""

    def __init__(
        self,
        sampler: _core.Sampler[_core.TypedSampledBatch],
        fetching: TypedFetching,
        ahead: int,
        threads: int,
    ) -> None:
        self._sampler, self._fetching, self._ahead, self._threads = sampler, fetching, ahead, threads
        self._free_bytes: int | None = None

    def limit(self, free_bytes: int) -> None:
        """Let batches take no more bytes before they are used. One is always made."""
        self._free_bytes = free_bytes

    def batches(self, steps: Steps, epoch: int) -> Generator[_core.TypedSampledBatch]:
        """Yield the batches of the steps of an epoch."""
        made = self._sampler.batches(
            steps.seeds,
            steps.seed_offsets,
            times=steps.seed_times,
            epoch=epoch,
            features=self._fetching.with_batches,
            ahead=self._ahead,
            max_bytes=self._free_bytes,
            threads=self._threads,
        )
        with closing(made):
            yield from made

    def read_seconds(self) -> dict[str, float]:
        """Return the seconds of ``sampling`` and ``fetching`` since the last call, of all threads."""
        return dict(zip(("sampling", "fetching"), self._sampler.read_seconds(), strict=True))


class TypedLoader(Loader):
    """Mini-batches of one rank of a typed graph. :meth:`fastpart.VertexPartition.loader` makes it.

    It is a :class:`Loader` whose batches are a :class:`TypedBatch` each.

    Attributes
    ----------
    input : str
        The type of the seeds.
    types : list of str
        All types.
    edge_types : list of tuple of str
        All relations: type of the sources, name, type of the targets.
    fanouts : list of list of int
        In-edges per vertex and relation, hop by hop. -1 takes all.
    fetching : TypedFetching
        Where the features of each type come from: ``loader.fetching.of_type["paper"].here = source`` replaces files.
    """

    fetching: TypedFetching  # type: ignore[assignment]  # one for each type
    fanouts: list[list[int]]  # type: ignore[assignment]  # of each relation
    _source: TypedSource  # type: ignore[assignment]

    def __init__(
        self,
        partition: VertexPartition,
        vertices: Any,
        *,
        fanouts: Fanouts,
        options: LoaderOptions,
        input: str | None = None,
        plan: StrPath | None = None,
    ) -> None:
        for name, value in {**{name: getattr(options, name) for name in _ONLY_PLAIN}, "plan": plan}.items():
            if value:
                raise ParameterError(f"{name}: it is for graphs without types. Leave it out")
        self.types, self.edge_types = type_names(partition), edge_keys(partition)
        self._types, self._rows_by_type = partition._types, partition._rows_by_type
        super().__init__(partition, vertices, fanouts=fanouts, options=options, input=input)  # type: ignore[arg-type]  # of relations
        self._of_edges = TypedEdgeFeatures(partition) if options.edge_ids else None

    def _take_fanouts(self, fanouts: Any, partition: VertexPartition) -> None:
        self.fanouts = relation_fanouts(fanouts, self.edge_types)

    def _seeds_of(self, vertices: Any, partition: VertexPartition, options: LoaderOptions) -> Seeds:
        seeds = loaded_seeds(vertices, partition, options, self._given_input)
        self.input, self.vertices = seeds.type, seeds.ids
        return seeds

    def _fetching_of(  # type: ignore[override]  # one for each type
        self, partition: VertexPartition, owners: npt.NDArray[np.int64], options: LoaderOptions
    ) -> TypedFetching:
        together = options.rank is None and self.world_size > 1
        if together:
            refuse_other_directories(partition.manifest or {})
        fetching = TypedFetching(
            {
                name: fetching_of(
                    RowFiles(of_type(partition, name), "features", self._topology, starts),
                    owners,
                    self.rank,
                    options,
                    together,
                )
                for name, starts in zip(self.types, self._rows_by_type.starts, strict=True)
            }
        )
        if options.cache is not None or fetching.by_messages:
            rows = cached_rows_of(partition, self._own, options, self._epoch_of())
            for of_name, ids in zip(fetching.of_type.values(), rows_by_type(self._types, rows), strict=True):
                if of_name.here is not None:
                    of_name.keep_cached(ids)
        return fetching

    def _epoch_of(self) -> Epoch:
        return Epoch(self._seeds.rows, self.fanouts, self.batch_size, self._types)

    def _source_of(self, partition: VertexPartition, options: LoaderOptions) -> TypedSource:  # type: ignore[override]
        how = sampling_of(partition, options)
        sampler = _core.Sampler(
            self._topology, self.fanouts, types=self._types, edge_ids=options.edge_ids, **how
        )
        return TypedSource(sampler, self.fetching, options.ahead, options.threads)

    def keep(self, device: torch.device, memory: int | None) -> None:
        """Keep rows of features on a device, as :meth:`Loader.keep` does: the most accessed of all types."""
        left = device_bytes(device, memory)
        if not left:
            return
        scores = self._epoch_of().expected_steps(self._topology, self._own)
        rows = np.argsort(-scores, kind="stable").astype(np.uint32)
        numbers, of_type_rows = self._rows_by_type.locate(rows)
        sizes = np.array(list(self.fetching.row_bytes.values()))[numbers]
        here = self._own[owner_of(rows, self._topology.starts)]
        for number, fetching in enumerate(self.fetching.of_type.values()):
            here |= (numbers == number) & np.isin(of_type_rows, fetching.cached.ids)
        wanted = (sizes > 0) & here
        fits = wanted & (np.cumsum(sizes * wanted) <= left)
        for number, fetching in enumerate(self.fetching.of_type.values()):
            kept = np.sort(of_type_rows[fits & (numbers == number)])
            if len(kept):
                fetching.keep_resident(kept, device)

    def read_seconds(self) -> dict[str, float]:
        """Return what making the batches took since the last call, as :meth:`Loader.read_seconds` does."""
        seconds = self._source.read_seconds()
        return {**seconds, "fetching": seconds["fetching"] + self.fetching.read_seconds()}

    def _edge_fetching_of(self, *_: Any) -> None:
        return None

    def _batch(  # type: ignore[override]  # by type
        self, arrays: _core.TypedSampledBatch, x: dict[str, Any], steps: Steps, epoch: int, step: int
    ) -> TypedBatch:
        positions = steps.positions[steps.offsets[step] : steps.offsets[step + 1]]
        labels = self._seeds.labels

        def by_type(values: list[Any]) -> dict[str, Any]:
            return dict(zip(self.types, map(_tensor, values), strict=True))

        def by_relation(values: list[Any]) -> dict[Any, Any]:
            return dict(zip(self.edge_types, map(_tensor, values), strict=True))

        return TypedBatch(
            input_type=self.input,
            x_dict={
                name: rows if isinstance(rows, Tensor) else torch.from_numpy(rows) for name, rows in x.items()
            },
            y=None if labels is None else torch.from_numpy(labels[positions]),
            n_id_dict=by_type(arrays.n_id),
            indptr_dict=by_relation(arrays.indptr),
            indices_dict=by_relation(arrays.indices),
            seed_time_dict={} if arrays.seed_time is None else by_type(arrays.seed_time),
            e_id_dict={} if arrays.e_id is None else by_relation(arrays.e_id),
            edge_attr_dict=self._edge_attr(arrays),
            rows_dict=dict(zip(self.types, arrays.rows, strict=True)),
            num_sampled_nodes_dict=dict(zip(self.types, arrays.num_sampled_nodes, strict=True)),
            num_sampled_edges_dict=dict(zip(self.edge_types, arrays.num_sampled_edges, strict=True)),
            input_id=torch.from_numpy(positions),
            batch_size=len(positions),
            global_size=int(steps.global_sizes[step]),
            seed=self.seed,
            epoch=epoch,
            step=step,
        )

    def _edge_attr(self, arrays: _core.TypedSampledBatch) -> dict[EdgeKey, Tensor]:
        if self._of_edges is None:
            return {}
        return {key: torch.from_numpy(rows) for key, rows in self._of_edges.of_sample(arrays).items()}

    def __repr__(self) -> str:
        return (
            f"<TypedLoader: {len(self._seeds.ids)} vertices of {self.input} in {len(self)} steps of {self.batch_size}, "
            f"{len(self.fanouts)} hops over {len(self.edge_types)} relations, rank {self.rank} of {self.world_size}>"
        )


def _tensor(array: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(array)
