"""The stage that samples: threads of the core make one batch after the other, or scheduled tasks make several."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import ParameterError, arg
from ..partitions.loader_options import LoaderOptions
from ..partitions.partition import VertexPartition
from ..partitions.seeds import Steps, TypeVertices, sampling_of
from ..partitions.types import Fanouts, edge_keys, type_names
from .edge_rows import EdgeFetching, with_edge_rows
from .fetching import NodeFetching
from .sample import (
    Sample,
    SampledArrays,
    entries_of,
    refuse_broken,
    refuse_broken_by_type,
    refuse_other_types,
)
from .scheduler import BatchState, Launching, Pieces, Run, Scheduler, operators
from .trace import Trace

Rows = npt.NDArray[np.uint32]

Neighbourhood = Callable[[Rows, int, int], SampledArrays]
"""A sampler: returns the batch of some seeds, given as rows, in a step of an epoch."""

_PIECE_BYTES = 1 << 22
"""Features that one task reads."""

_SHARE = 4
"""Batches take one part in so many of the memory that is free."""


def free_memory() -> int:
    """Return the bytes that batches of a process may take before they are used, unless it was told otherwise."""
    return _core.memory_budget() // _SHARE // int(os.environ.get("LOCAL_WORLD_SIZE", 1))


class SequentialSource:
    """Threads of the core. Each makes a whole batch, as long as no more than ``ahead`` wait for their use."""

    def __init__(
        self,
        sampler: _core.Sampler[Any],
        fetching: NodeFetching,
        ahead: int,
        threads: int,
        of_edges: EdgeFetching | None = None,
    ) -> None:
        self._sampler, self._fetching, self._ahead, self._threads = sampler, fetching, ahead, threads
        self._of_edges = of_edges
        self._free_bytes: int | None = None

    def limit(self, free_bytes: int) -> None:
        """Let batches take no more bytes before they are used. One is always made."""
        self._free_bytes = free_bytes

    def batches(self, steps: Steps, epoch: int) -> Generator[SampledArrays]:
        """Yield the batches of the steps of an epoch."""
        made = self._sampler.batches(
            steps.seeds,
            steps.seed_offsets,
            times=steps.seed_times,
            epoch=epoch,
            features=self._fetching.with_batches,
            edge_features=_files_of(self._of_edges),
            pack=self._fetching.pack_of(epoch),
            ahead=self._ahead,
            max_bytes=self._free_bytes,
            threads=self._threads,
        )
        with closing(made):
            yield from made

    def read_seconds(self) -> dict[str, float]:
        """Return the seconds of ``sampling`` and ``fetching`` since the last call, of all threads."""
        return dict(zip(("sampling", "fetching"), self._sampler.read_seconds(), strict=True))


class ScheduledSource:
    """Tasks of several batches at a time, launched by their score."""

    def __init__(
        self,
        neighbourhood: Neighbourhood,
        topology: _core.Topology,
        fetching: NodeFetching,
        threads: int,
        trace: Trace | None,
        of_edges: EdgeFetching | None = None,
    ) -> None:
        self._neighbourhood, self._topology, self._fetching = neighbourhood, topology, fetching
        self._of_edges = of_edges
        here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
        self._scheduler = Scheduler(
            threads,
            Launching(max(1.0, _core.default_threads() / here)),
            free_memory(),
            _bytes_of,
            trace,
        )

    def limit(self, free_bytes: int) -> None:
        """Launch batches only as long as they fit the given memory."""
        self._scheduler.free_bytes = free_bytes

    def batches(self, steps: Steps, epoch: int) -> Generator[SampledArrays]:
        """Yield the batches of the steps of an epoch."""
        pieces = [steps.seeds[begin:end] for begin, end in pairwise(steps.seed_offsets)]
        return self.run(len(pieces), epoch, lambda making: pieces[making.step], lambda making: making["seed"])

    def run(self, steps: int, epoch: int, seed: Run, roots: Run, **before: Run) -> Generator[SampledArrays]:
        """Yield the batches of operators: ``seed``, those ``before``, the neighbourhood of ``roots``, and features."""

        def neighbourhood(making: BatchState) -> SampledArrays:
            sampled = self._neighbourhood(roots(making), epoch, making.step)
            if not len(sampled.n_id) and isinstance(sampled, Sample):
                sampled = replace(sampled, n_id=self._topology.ids_of(sampled.rows))
            return sampled

        pack = self._fetching.pack_of(epoch)

        def features(making: BatchState) -> Pieces:
            files, of_edges = self._fetching.with_batches, _files_of(self._of_edges)
            return with_features(making["neighbourhood"], files, of_edges, pack, making.step)

        return self._scheduler.batches(operators(seed, neighbourhood, features, **before), steps)

    def read_seconds(self) -> dict[str, float]:
        """Return the seconds of ``sampling`` and ``fetching`` since the last call, of all tasks."""
        seconds = self._scheduler.seconds
        fetching = seconds.pop("features", 0.0)
        sampling = sum(seconds.values())
        seconds.clear()
        return {"sampling": sampling, "fetching": fetching}


Source = SequentialSource | ScheduledSource
"""Makes the batches of an epoch one after the other."""


def source_of(
    partition: VertexPartition,
    fanouts: Fanouts,
    fetching: NodeFetching,
    of_edges: EdgeFetching | None,
    options: LoaderOptions,
) -> Source:
    """Return what makes the batches of a loader."""
    topology, custom, trace = partition._topology, options.neighbourhood, options.trace
    edge_rows = of_edges is not None and not partition.is_typed
    how = sampling_of(partition, options) | {"edge_ids": options.edge_ids, "edge_rows": edge_rows}
    sampler = _core.Sampler(topology, fanouts, types=partition._types, **how)
    if options.scheduled:
        if options.temporal is not None:
            raise ParameterError(
                "scheduled: temporal samples are not scheduled. Leave out scheduled or temporal"
            )
        num_records = int((partition.manifest or {})["m"]) if edge_rows else None
        neighbourhood = neighbourhood_of(sampler, custom, len(fanouts), partition, num_records)
        return ScheduledSource(neighbourhood, topology, fetching, options.threads, trace, of_edges)
    if custom is not None or trace is not None:
        raise ParameterError(f"neighbourhood, trace: they need {arg('scheduled', True)}")
    return SequentialSource(sampler, fetching, options.ahead, options.threads, of_edges)


def _files_of(of_edges: EdgeFetching | None) -> _core.Features | None:
    return None if of_edges is None else of_edges.with_batches


def neighbourhood_of(
    sampler: _core.Sampler[Any],
    custom: Neighbourhood | None,
    hops: int,
    partition: VertexPartition,
    num_records: int | None,
) -> Neighbourhood:
    """Return the sampler of a user, checked, or the one of the core. Given m, samples have the rows of in-edges."""
    if custom is None:
        return lambda seeds, epoch, step: sampler.sample(seeds, epoch=epoch, step=step)
    if not callable(custom):
        raise TypeError(
            f"neighbourhood: expected a callable(seeds, epoch, step), got {type(custom).__name__}"
        )

    def checked(seeds: Rows, epoch: int, step: int) -> SampledArrays:
        sample = custom(seeds, epoch, step)
        refuse_other_types(sample)
        refuse_broken(sample, seeds, hops)
        return sample if num_records is None else with_edge_rows(sample, partition._topology, num_records)

    return _by_type(custom, hops, partition) if partition.is_typed else checked


def _by_type(custom: Callable[[Any, int, int], Any], hops: int, partition: VertexPartition) -> Neighbourhood:
    """Return the sampler of a user for a graph with types, checked. It gets the seeds of each type."""
    types, relations = type_names(partition), edge_keys(partition)
    vertices = [TypeVertices(partition, name) for name in types]

    def checked(seeds: Rows, epoch: int, step: int) -> SampledArrays:
        numbers, within = partition._rows_by_type.locate(seeds)
        of_types = [within[numbers == number] for number in range(len(types))]
        sample = custom(of_types, epoch, step)
        refuse_other_types(sample, len(types), len(relations))
        refuse_broken_by_type(sample, of_types, hops, types, relations)
        ids = [of.ids_of(rows) for of, rows in zip(vertices, sample.rows, strict=True)]
        found: SampledArrays = Sample(**{**entries_of(sample), "n_id": ids})
        return found

    return checked


def with_features(
    sampled: SampledArrays,
    features: _core.Features | list[_core.Features | None] | None,
    edge_features: _core.Features | None,
    pack: _core.Pack | list[_core.Pack | None] | None = None,
    step: int = 0,
) -> Pieces:
    """Return a batch with its features, which are read in pieces or, given a pack of the step, from there."""
    calls: list[Callable[[], Any]] = []
    read: dict[str, Any] = {}
    if isinstance(features, list):
        packs = pack if isinstance(pack, list) else [None] * len(features)
        of_types = list(zip(features, sampled.rows, packs, strict=True))
        read["features"] = [None if of is None else of.empty(len(rows)) for of, rows, _ in of_types]
        for (of, rows, planned), x in zip(of_types, read["features"], strict=True):
            calls += [] if of is None else _gathers(of, rows, x, planned, step)
    elif features is not None:
        assert not isinstance(pack, list)
        x = read["features"] = features.empty(len(sampled.rows))
        calls += _gathers(features, sampled.rows, x, pack, step)
    if edge_features is not None and sampled.edge_rows is not None:
        x = read["edge_features"] = edge_features.empty(len(sampled.edge_rows))
        calls += _gathers(edge_features, sampled.edge_rows, x)
    return Pieces(calls, Sample(**{**entries_of(sampled), **read}) if read else sampled)


def _gathers(
    features: _core.Features,
    rows: npt.NDArray[Any],
    x: npt.NDArray[Any],
    pack: _core.Pack | None = None,
    step: int = 0,
) -> list[Callable[[], Any]]:
    """Return calls that each read some of the rows, or one that reads them all from their pack."""
    if pack is not None:
        return [partial(features.gather, rows, x, pack=pack, step=step)]
    size = max(1, _PIECE_BYTES // max(x.nbytes // max(len(x), 1), 1))
    pieces = (slice(begin, begin + size) for begin in range(0, len(x), size))
    return [partial(features.gather, rows[piece], x[piece]) for piece in pieces]


def _bytes_of(sampled: SampledArrays) -> int:
    entries = (each if isinstance(each, list) else [each] for each in entries_of(sampled).values())
    return sum(each.nbytes for each in chain.from_iterable(entries) if isinstance(each, np.ndarray))
