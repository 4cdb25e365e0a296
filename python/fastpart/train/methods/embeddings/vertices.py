"""Rows of vertices that facts are scored by: they are learned, or an encoder returns them from sampled neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ....core.pairs import among, keys_of, undirected_keys
from ....loading import Loader, TypedBatch, dropout
from ....loading.remote import exchange_of
from ....loading.rows.owners import Embeddings
from ....loading.rows.sources import Counts
from ....loading.sample import SampledArrays
from ....partitions.loader_options import LoaderOptions
from ....partitions.seeds import Seeds, Steps
from ....partitions.types import of_type
from ...data.learned_rows import EmbeddingTable, LearnedRows, numbers_of_rows
from ...graphs.rows import layers_of
from ...inference.inference import Inference
from ...jobs.job import Place
from ...learning.learner import Learner
from ...learning.metrics import BROKEN, is_better
from ...method_options import EmbeddingOptions
from ...models import TypedNetwork, takes_edge_attr
from ...models.scores import TypedTask
from ...ranks import device, rank, world_size
from .dataset import FactDataset
from .steps import FactSteps, Step

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FactEpoch(Steps):
    """The steps of an epoch.

    Attributes
    ----------
    made : list of Step
    """

    made: list[Step]


class FactLoader(Loader):
    """A loader whose batches are neighbourhoods of the vertices of a step of facts, of any types.

    Parameters
    ----------
    dataset : FactDataset
        A typed graph.
    steps : FactSteps
        The facts of this rank.
    options : EmbeddingOptions
        The options of the training.
    edge_attr : bool
        Whether batches have the features of in-edges.
    """

    def __init__(
        self,
        dataset: FactDataset,
        steps: FactSteps,
        options: EmbeddingOptions,
        edge_attr: bool = False,
    ) -> None:
        self._of_facts, self._dataset = steps, dataset
        names = ("ahead", "timeout", "io", "cache", "cache_by")
        given = {"edge_ids": edge_attr, "seed": options.seed, "batch_size": steps.size}
        of_loader = LoaderOptions.checked(given | {name: getattr(options, name) for name in names})
        fanouts = options.relation_fanouts or options.fanouts
        super().__init__(dataset.partition, "train", fanouts=fanouts, options=of_loader)

    def _seeds_of(self, vertices: Any, partition: Any, given: Any) -> Seeds:
        self.input = self.types[0]
        targets = self._dataset.facts("train")[:, 1]
        self.vertices = np.unique(targets)
        return Seeds(targets, self._topology.rows_of(np.ascontiguousarray(targets)), None)

    def _dealt(self, order: Ids, epoch: int) -> Steps:
        made = list(self._of_facts.epoch(epoch))
        offsets = np.concatenate([[0], np.cumsum([len(step.rows) for step in made])]).astype(np.int64)
        rows = np.concatenate([np.empty(0, np.uint32), *(step.rows for step in made)]).astype(np.uint32)
        sizes = np.array([len(step.facts) for step in made], np.int64)
        return FactEpoch(
            positions=np.empty(0, np.int64),
            offsets=np.zeros(len(made) + 1, np.int64),
            global_sizes=sizes,
            seeds=rows,
            seed_offsets=offsets,
            seed_times=None,
            made=made,
        )

    def _batch(
        self, arrays: SampledArrays, x: Any, steps: Steps, epoch: int, step: int
    ) -> tuple[Step, TypedBatch]:
        assert isinstance(steps, FactEpoch)
        made = steps.made[step]
        steps.made[step] = Step(step, made.rows[:0], [], 0.0, made.facts[:0])  # it is not needed again
        return made, without_facts(super()._batch(arrays, x, steps, epoch, step), made.facts, self._dataset)


def without_facts(batch: TypedBatch, facts: Ids, dataset: FactDataset) -> TypedBatch:
    """Return a batch without the in-edges that say one of some facts, in either direction."""
    typed = dataset.typed
    assert typed is not None
    number_of, stay = {name: number for number, name in enumerate(typed.names)}, {}
    for key, edge_type in zip(batch.indices_dict, typed.edge_types, strict=True):
        of_relation = facts[facts[:, 2] == number_of[edge_type.relation.name]]
        if not len(of_relation):
            continue
        number = undirected_keys if edge_type.relation.reverse == "merged" else keys_of
        ends, known = batch._ends(key), np.unique(number(of_relation[:, 0], of_relation[:, 1]))
        stay[key] = ~among(number(*(ends[::-1] if edge_type.reversed else ends)), known)
    return batch._without(stay)


class VertexRows(Protocol):
    """The rows of the vertices. All workers call its methods together."""

    def epoch(self, number: int) -> Iterator[tuple[Step, Any]]:
        """Yield the steps of an epoch, with what :meth:`inputs` needs of each."""

    def inputs(self, step: Step, made: Any) -> Any:
        """Fetch what a step needs of other workers."""

    def rows(self, step: Step, made: Any, inputs: Any) -> Tensor:
        """Return the rows of the vertices of a step, in the order of ``step.rows``."""

    def update(self, inputs: Any) -> None:
        """Change learned rows by the gradients of the last inputs."""

    def stored(self, part: int) -> npt.NDArray[Any]:
        """Return the rows of the inner vertices of a part of this worker, for scores."""

    def before_scores(self) -> None:
        """Prepare :meth:`stored`."""

    def follow(self, score: float) -> None:
        """Keep the learned rows if the score is the best so far."""

    def read_counts(self) -> dict[str, int]:
        """Return what messages there were since the last call."""

    def read_seconds(self) -> dict[str, float]:
        """Return the seconds of making batches since the last call, by what was done."""

    def store(self) -> None:
        """Save learned rows before a checkpoint."""

    def state(self) -> dict[str, Any]:
        """Return what a resume needs beside the files."""

    def load(self, state: Any) -> None:
        """Go on from a :meth:`state`."""

    def finish(self) -> None:
        """Set the learned rows of the best epoch."""

    def close(self) -> None:
        """End the connections to other workers."""


class LearnedVertices:
    """A learned row for each vertex, without an encoder. A worker owns those of its parts."""

    def __init__(
        self,
        dataset: FactDataset,
        options: EmbeddingOptions,
        place: Place,
        steps: FactSteps,
        owners: Ids,
        learner: Learner,
    ) -> None:
        self._dataset, self._options, self._steps, self._learner = dataset, options, steps, learner
        out, topology, self._device = place.out, dataset.topology, learner.device
        own = np.flatnonzero(owners == rank())
        parts, width = range(own[0], own[-1] + 1), options.width
        numbers = numbers_of_rows(learner.dtype)
        self._table = EmbeddingTable(topology, parts, width, options.seed, options.lr, out, numbers)
        self._exchange = exchange_of(topology.starts, owners, world_size(), options.timeout)
        self._counts, self._best = Counts(), BROKEN
        self._embeddings = Embeddings(self._table, self._exchange, self._counts)

    def epoch(self, number: int) -> Iterator[tuple[Step, None]]:
        """Yield the steps of an epoch."""
        self._table.at_rate(float(self._learner.optimizer.param_groups[0]["lr"]))
        return ((step, None) for step in self._steps.epoch(number))

    def inputs(self, step: Step, made: None) -> Tensor:
        """Fetch the rows of a step."""
        return torch.from_numpy(self._embeddings.rows(step.rows)).requires_grad_()

    def rows(self, step: Step, made: None, inputs: Tensor) -> Tensor:
        """Return the rows of a step with dropout."""
        ids = torch.from_numpy(self._dataset.topology.ids_of(step.rows)).to(self._device)
        options = self._options
        return dropout(
            inputs.to(self._device), options.dropout, ids, options.seed, self._learner.epochs, step.number
        )

    def update(self, inputs: Tensor) -> None:
        """Change the rows by the gradients of the last inputs."""
        gradient = torch.zeros_like(inputs) if inputs.grad is None else inputs.grad
        self._embeddings.update(gradient.numpy())

    def before_scores(self) -> None:
        """Nothing is to be prepared."""

    def stored(self, part: int) -> npt.NDArray[Any]:
        """Return the rows of a part of this worker."""
        return self._table.of_part(part)

    def follow(self, score: float) -> None:
        """Keep the rows of the best epoch, which is decided as in the history."""
        if is_better(score, self._best):
            self._best = score
            self._table.keep_best()

    def read_counts(self) -> dict[str, int]:
        """Return the bytes of messages since the last call."""
        return {"remote_bytes": self._counts.read()["remote_bytes"]}

    def read_seconds(self) -> dict[str, float]:
        """Return nothing: no threads make batches."""
        return {}

    def store(self) -> None:
        """Save the rows of this worker, before a checkpoint."""
        self._table.save()

    def state(self) -> dict[str, Any]:
        """Return what a resume needs beside the files of the rows."""
        return {"best": self._best, "embeddings": self._table.state}

    def load(self, state: Any) -> None:
        """Go on from a :meth:`state` and the files that were saved before it."""
        self._best = state["best"]
        self._table.load(state["embeddings"])

    def finish(self) -> None:
        """Set the rows of the best epoch."""
        self._table.put_best()

    def close(self) -> None:
        """End the connections to other workers."""
        self._exchange.close()


class EncodedVertices:
    """The rows of an encoder. Types without features have learned rows as its inputs."""

    def __init__(
        self,
        dataset: FactDataset,
        options: EmbeddingOptions,
        place: Place,
        steps: FactSteps,
        owners: Ids,
        learner: Learner,
    ) -> None:
        assert isinstance(dataset.task, TypedTask)
        self._dataset, self._task, self._learner, self._steps = dataset, dataset.task, learner, steps
        self._types, self._own = dataset.partition._rows_by_type, np.flatnonzero(owners == rank()).tolist()
        edge_attr = takes_edge_attr(learner.network.encoder)
        self._loader = FactLoader(dataset, steps, options, edge_attr)
        self._loader.keep(device(), options.resident)
        self._loader.limit(place.free_bytes)
        self._learned: LearnedRows | None = None
        if self._task.learned:
            numbers = numbers_of_rows(learner.dtype)
            out = place.out
            given = dataset.partition, self._task.learned, owners, options.hidden, options.seed
            self._learned = LearnedRows(*given, options.lr, out, options.timeout, numbers)
        self._inference = Inference(
            dataset,
            self._own,
            place.scratch,
            options.layers,
            self._loader.fetching,
            seconds=options.timeout,
        )
        self._stored: dict[int, npt.NDArray[Any]] = {}

    def epoch(self, number: int) -> Iterator[tuple[Step, TypedBatch]]:
        """Yield the steps of an epoch with the neighbourhoods of their vertices."""
        self._loader.set_epoch(number)
        batches: Iterator[Any] = iter(self._loader)
        return batches

    def inputs(self, step: Step, made: TypedBatch) -> dict[str, Tensor]:
        """Return the rows that the encoder reads."""
        where, dtype = self._learner.device, self._learner.dtype
        x = {name: rows.to(where, dtype) for name, rows in made.x_dict.items()}
        return x if self._learned is None else {**x, **self._learned.inputs(made.rows_dict, where)}

    def rows(self, step: Step, made: TypedBatch, inputs: dict[str, Tensor]) -> Tensor:
        """Return the rows of the vertices of a step, which may be of several types, in their order."""
        encoded = self._learner.network.encoder.encode(layers_of(made, self._learner.device), inputs)
        numbers = self._types.locate(step.rows)[0]
        places, first = np.empty(len(numbers), np.int64), 0
        for number, name in enumerate(self._task.types):
            those = np.flatnonzero(numbers == number)
            places[those] = first + np.arange(len(those))  # the seeds of a type come in this order
            first += len(encoded[name]) if name in encoded else 0
        rows = torch.cat([encoded[name] for name in self._task.types if name in encoded])
        return rows[torch.from_numpy(places).to(rows.device)]

    def update(self, inputs: Any) -> None:
        """Change learned rows by the gradients of the last inputs."""
        if self._learned is not None:
            self._learned.step()

    def before_scores(self) -> None:
        """Compute the rows of the vertices of own parts from all neighbours. All workers call it."""
        if self._learned is not None:
            self._inference.put_inputs(self._learned.of_part)
        partition, encoder = self._dataset.partition, self._learner.network.encoder
        assert isinstance(encoder, TypedNetwork)
        for part in self._own:
            shape = partition.parts[part].num_inner, self._task.classes
            self._stored[part] = np.zeros(shape, numbers_of_rows(self._learner.dtype))
        every: dict[str, Any] = dict.fromkeys(self._task.returned)
        for name, (part, places, found) in self._inference.outputs_of_types(encoder, every):
            first = of_type(partition, name)[part].first_inner
            self._stored[part][first + places] = found.cpu().to(self._learner.dtype).numpy()

    def stored(self, part: int) -> npt.NDArray[Any]:
        """Return the rows of the vertices of a part. Types that are no end of a relation have zeros."""
        return self._stored.pop(part)

    def follow(self, score: float) -> None:
        """Keep the learned rows if the score is the best so far."""
        if self._learned is not None:
            self._learned.follow(score)

    def read_counts(self) -> dict[str, int]:
        """Return the rows and bytes of batches since the last call."""
        counts = self._loader.fetching.read_counts()
        if self._learned is not None:
            counts["remote_bytes"] += self._learned.counts.read()["remote_bytes"]
        return counts

    def read_seconds(self) -> dict[str, float]:
        """Return the seconds of making batches since the last call."""
        return self._loader.read_seconds()

    def store(self) -> None:
        """Save learned rows before a checkpoint."""
        if self._learned is not None:
            self._learned.save()

    def state(self) -> Any:
        """Return what a resume needs beside the files."""
        return None if self._learned is None else self._learned.state()

    def load(self, state: Any) -> None:
        """Go on from a :meth:`state`."""
        if self._learned is not None:
            self._learned.load(state)

    def finish(self) -> None:
        """Set the learned rows of the best epoch."""
        if self._learned is not None:
            self._learned.put_best()

    def close(self) -> None:
        """End the connections to other workers."""
        self._loader.close()
        if self._learned is not None:
            self._learned.close()
