"""The compute worker: steps on batches that others make, from the receiver of its machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ....loading.batch import Batch, TypedBatch
from ....loading.fetching import Fetching, NodeFetching
from ....loading.remote import fetching_of
from ....loading.row_files import RowFiles
from ....partitions.coding import Coding
from ....partitions.loader_options import FetchingOptions
from ....partitions.seeds import Ids, TypeVertices, seeds_of
from ....partitions.types import edge_keys, of_relation, of_type, type_names
from ...data.dataset import Dataset
from ...jobs.job import Place
from ...learning.batches import VertexRows
from ...method_options import ArmadaOptions
from ...ranks import rank, world_size
from ..sampled import worker as sampled
from ..sampled.steps import Step, StepSource, step_of
from .groups import GroupReader, Layout, Sample
from .messages import Array, Kind, Message
from .receiver import COUNTS, MAKING, MEMORY
from .rendezvous import Settings, address_of, connect


@dataclass
class Pieces:
    """The batches of a step, each sampled by itself. A step of few training vertices may have none."""

    pieces: list[Step]
    count: float
    types: list[str]

    def moved(self, move: Callable[[Tensor], Tensor]) -> Pieces:
        """Return the batches with tensors that were moved."""
        return replace(self, pieces=[piece.moved(move) for piece in self.pieces])

    @property
    def inputs(self) -> dict[str, VertexRows]:
        """Row of each input among those of its type, of one batch after the other."""
        none = np.empty(0, np.uint32)
        return {
            name: np.concatenate([none, *(piece.inputs[name] for piece in self.pieces)])
            for name in self.types
        }

    @property
    def x(self) -> dict[str, Tensor]:
        """Nothing: each batch has its features."""
        return {}

    @x.setter
    def x(self, learned: dict[str, Tensor]) -> None:
        """Deal learned rows to the batches."""
        for name, rows in learned.items():
            counts = [len(piece.inputs[name]) for piece in self.pieces]
            of_pieces = (
                torch.unsafe_split_with_sizes(rows, counts) if counts else []
            )  # models may change them
            for piece, its_rows in zip(self.pieces, of_pieces, strict=True):
                piece.x = {**piece.x, name: its_rows}

    @property
    def tensors(self) -> list[Tensor]:
        """All that :meth:`moved` moves."""
        return [*chain.from_iterable(piece.tensors for piece in self.pieces)]


class ReceivedSteps:
    """The steps of a compute worker."""

    def __init__(self, dataset: Dataset, file: Path, owners: Ids) -> None:
        settings, partition = Settings.load(file), dataset.partition
        self._topology, self._rank, self._seed = dataset.topology, rank(), settings.seed
        self._typed, self._target, self._layout = (
            partition.is_typed,
            dataset.target,
            Layout.of(partition, settings.edge_features),
        )
        self._types, self._keys = type_names(partition), edge_keys(partition)
        self._vertices = [TypeVertices(partition, name) for name in self._types]
        self._codings = [of_type(partition, name)[0].coding("features") for name in self._types]
        self._edge_codings = [of_relation(partition, key[1])[0].coding("edge_features") for key in self._keys]
        seeds = seeds_of("train", partition, dataset.target or None)
        assert seeds.labels is not None
        _, rows = partition._rows_by_type.locate(seeds.rows)
        order = np.argsort(rows)
        self._sorted, self._labels = rows[order], seeds.labels[order]
        self._link, _ = connect(address_of(file.parent), settings, {"compute worker": self._rank})
        self._link.limit(settings.timeout, settings.timeout)
        self._counts: Counter[str] = Counter()
        self._making: Counter[str] = Counter()
        self._batch_workers, self._worker_bytes = settings.batch_workers, 0
        # Scores read all features from files here.
        options = FetchingOptions(remote="maps")
        self.fetching = NodeFetching(
            {
                name: fetching_of(files, owners, self._rank, options)
                for name, files in RowFiles.of_types(partition).items()
            }
        )
        self.edge_fetching: Fetching | None = None

    def own_rows(self, step: Any, owned: npt.NDArray[np.bool_]) -> int:
        """Return 0: batch workers count rows."""
        return 0

    def epoch(self, number: int) -> Iterator[Pieces]:
        """Yield the batches of each step of an epoch."""
        self._link.send({"kind": Kind.EPOCH, "epoch": number})
        for _ in range(self._next(Kind.EPOCH).content["steps"]):
            content = self._next(Kind.STEP).content
            self._worker_bytes = max(self._worker_bytes, content["counts"].pop(MEMORY, 0))
            self._making.update({name: content["counts"].pop(name, 0) for name in MAKING})
            self._counts.update(content["counts"])
            which = {"global_size": content["count"], "epoch": number, "step": content["step"]}
            pieces = [
                step_of(self._batch(group, sample, which), self._topology)
                for group in (GroupReader(self._layout, *piece) for piece in content["pieces"])
                for sample in group.batches(self._rank)
            ]
            self._link.send({"kind": Kind.USED, "step": content["step"]})
            yield Pieces(pieces, content["count"], self._types)

    def _next(self, kind: str) -> Message:
        message = self._link.receive()
        assert message.kind == kind
        return message

    def _batch(self, group: GroupReader, sample: Sample, which: dict[str, int]) -> Batch | TypedBatch:
        """Return a batch, with copies of what is in shared memory."""
        types = dict(zip(self._types, range(len(self._types)), strict=True))
        rows = [of_group[places] for of_group, places in zip(group.rows, sample.rows, strict=True)]
        x = {
            name: _decoded(group.x[number][sample.rows[number]], self._codings[number])
            for name, number in types.items()
            if self._layout.row_bytes[number]
        }
        of_edges = zip(self._keys, sample.edge_features, self._edge_codings, strict=True)
        by_name: dict[str, dict[Any, Any]] = {
            "x": x,
            "n_id": {
                name: torch.from_numpy(self._vertices[number].ids_of(rows[number]))
                for name, number in types.items()
            },
            "rows": {name: rows[number] for name, number in types.items()},
            "indptr": self._copied(sample.indptr),
            "indices": self._copied(sample.indices),
            "edge_attr": {
                key: _decoded(np.array(features), coding)
                for key, features, coding in of_edges
                if features is not None
            },
            "seed_time": {},
            "e_id": {},
            "num_sampled_nodes": dict(zip(self._types, sample.levels, strict=True)),
            "num_sampled_edges": dict(zip(self._keys, sample.edges, strict=True)),
        }
        seeds = by_name["rows"][self._target][: by_name["num_sampled_nodes"][self._target][0]]
        positions = np.searchsorted(self._sorted, seeds)
        others: dict[str, Any] = {
            "y": torch.from_numpy(self._labels[positions]),
            "input_id": torch.from_numpy(positions),
            "batch_size": len(seeds),
            "seed": self._seed,
            **which,
        }
        if self._typed:
            return TypedBatch._of(by_name, input_type=self._target, **others)
        return Batch._of(by_name, **others)

    def _copied(self, of_relations: list[npt.NDArray[np.int32]]) -> dict[Any, Tensor]:
        return {
            key: torch.from_numpy(np.array(each)) for key, each in zip(self._keys, of_relations, strict=True)
        }

    def read_counts(self) -> dict[str, Any]:
        """Return the counts of the epoch on this machine, in its first compute worker. The others have zeros."""
        counts, self._counts = self._counts, Counter()
        return {name: counts[name] for name in COUNTS} | {MEMORY: self._worker_bytes * (self._rank == 0)}

    def read_seconds(self) -> dict[str, float]:
        """Return what batch workers spent on batches since the last call, so that the mean of all ranks is theirs."""
        seconds, self._making = self._making, Counter()
        return {name: seconds[name] / 1e9 * world_size() / self._batch_workers for name in MAKING}

    def close(self) -> None:
        """Leave the receiver."""
        self._link.close()


def _decoded(rows: Array, coding: Coding | None) -> Tensor:
    return torch.from_numpy(rows if coding is None else coding.decode(rows))


class Worker(sampled.Worker):
    """A compute worker. Its weights are those of all others."""

    def _source(self, dataset: Dataset, options: ArmadaOptions, place: Place, owners: Ids) -> StepSource:
        return ReceivedSteps(dataset, Path(options.settings), owners)

    def _losses(self, step: Any) -> float:
        loss, seed = 0.0, torch.initial_seed()
        for piece in step.pieces:
            torch.manual_seed(seed)  # a vertex drops the same entries in every batch of a step
            loss += self._backward(piece, retain_graph=self._learned is not None)  # batches share these rows
        return loss

    def _pieces(self, step: Any) -> list[Step]:
        return list(step.pieces)

    def _counts(self, local: int) -> dict[str, int]:
        return self._steps.read_counts()
