"""Rows of vertices that an encoder over types returns, from sampled neighbours, and from all for scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ....loading import TypedBatch
from ....partitions.types import of_type
from ...graphs.rows import layers_of
from ...inference.inference import Inference
from ...jobs.job import Place
from ...learned_rows import LearnedRows, numbers_of_rows
from ...learning.learner import Learner
from ...method_options import EmbeddingOptions
from ...models import TypedNetwork, takes_edge_attr
from ...models.scores import TypedTask
from ...ranks import device, rank
from .dataset import FactDataset
from .loader import FactLoader
from .steps import FactSteps, Step

Ids = npt.NDArray[np.int64]


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
        return iter(self._loader)

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
