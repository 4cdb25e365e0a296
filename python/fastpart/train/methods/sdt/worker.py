"""The worker: rounds of training on its parts, one in memory at a time. Each ends with the mean over all workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ....core.system import anonymous_bytes
from ....loading import sum_gradients
from ...data.dataset import Dataset
from ...inference.inference import Inference
from ...jobs.job import Place
from ...learning.batches import Batch
from ...learning.learner import Learner, batches_of, losses, train_epoch
from ...learning.local_graph import LocalGraph
from ...learning.trainable import refuse_batch_norm
from ...memory import fitting
from ...method_options import SDTOptions
from ...models.scores import unscored
from ...ranks import Clock, barrier, copy_from_first, device, of_all, rank, total, world_size
from .averaging import Mean, PartState, moments_of, named, put_moments, put_weights, weights_of
from .sizing import of_a_part

LOADING = "loading"
"""The timed step of reading a part."""


class Parts:
    """The parts ``rank``, ``rank + world``, ... of a dataset.

    A single part stays in memory. Several parts are loaded one after another.

    Attributes
    ----------
    numbers : list of int
        The parts.
    """

    def __init__(self, dataset: Dataset, rank: int, world: int, clock: Clock) -> None:
        self.numbers = list(range(rank, dataset.partition.k, world))
        self._dataset, self._clock = dataset, clock
        self._only: LocalGraph | None = None

    def load(self, number: int) -> LocalGraph:
        """Return one of the parts."""
        if self._only is not None:
            return self._only
        with self._clock.timed(LOADING):
            local = self._dataset.part(number, device())
        if len(self.numbers) == 1:
            self._only = local
        return local

    def __iter__(self) -> Iterator[LocalGraph]:
        return map(self.load, self.numbers)


COMPUTE, AVERAGING = "compute", "averaging"
STEPS = (COMPUTE, AVERAGING, LOADING)
"""The timed steps of a round."""


def copies_of(dataset: Dataset, average: str, workers: int) -> int:
    """Return how many copies of the network are trained: one in each worker, or one on each part."""
    return workers if average == "gradients" else sum(map(bool, dataset.train_counts))


class Worker:
    """A worker.

    Attributes
    ----------
    network : torch.nn.Module
        The network. After each round its weights are equal in all workers.
    """

    open = Dataset

    def __init__(self, dataset: Dataset, options: SDTOptions, place: Place, state: dict[str, Any]) -> None:
        self._dataset, self._options = dataset, of_a_part(options, dataset)
        self._clock = Clock()
        self._parts = Parts(dataset, rank(), world_size(), self._clock)
        self.learner = Learner(dataset.task, options, {}, device())
        self.network, self._optimizer = self.learner.network, self.learner.optimizer
        refuse_batch_norm(self.network, copies_of(dataset, options.average, world_size()))
        self._weights, self._moments = weights_of(self.network), moments_of(self._optimizer)
        self._of_parts = {number: PartState.new(options.seed, number) for number in self._parts.numbers}
        fits = fitting(dataset, options, place.free_bytes)
        self._inference = Inference(
            dataset,
            self._parts.numbers,
            place.scratch,
            options.layers,
            fits=fits,
            free_bytes=place.free_bytes,
        )
        self._memory = 0
        self._gathered: dict[int, Any] = {}
        if state:
            self._weights = named(state["weights"], list(self._weights))
            self._moments = named(state["moments"], [])
            self.learner.put_rates({"epochs": 0, **state})
            self._of_parts = {
                number: PartState.of(state["of_parts"][number]) for number in self._parts.numbers
            }
        put_weights(self.network, self._weights)

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train some epochs on each part, average, and return the row."""
        barrier()
        start = time.perf_counter()
        self._clock.read()
        train = self._by_gradients if self._options.average == "gradients" else self._by_weights
        loss, count, sent = train(epochs)
        seconds, spent = time.perf_counter() - start, self._clock.read()
        self.learner.end_epochs(epochs)
        self._gather()
        memory = max(self._memory, anonymous_bytes())
        of = of_all({"loss": loss, "count": count, "seconds": seconds, "bytes": memory})
        times = of_all({f"{step}_seconds": spent[step] for step in STEPS})
        return {
            "loss": (of["loss"].sum() / of["count"].sum()).item(),
            "seconds": of["seconds"].max().item() / epochs,
            **{name: each.mean().item() / epochs for name, each in times.items()},
            "remote_bytes": sent * world_size() // epochs,
            "worker_bytes": int(of["bytes"].max()),
            **(self._scores("val") if scored else unscored(self._dataset.task, self._options.metrics)),
        }

    def _by_weights(self, epochs: int) -> tuple[float, float, int]:
        """Train a copy of the network on each part, and average the copies."""
        weights, moments = Mean(), Mean()
        loss, count = 0.0, 0.0
        for number in self._parts.numbers:
            weight = self._dataset.train_counts[number]
            if not weight:
                continue
            local, mine = self._parts.load(number), self._of_parts[number]
            with self._clock.timed(COMPUTE), mine.random() as generator:
                put_weights(self.network, self._weights)
                put_moments(self._optimizer, self._moments if mine.moments is None else mine.moments)
                for _ in range(epochs):
                    lost, seen = train_epoch(self.learner, local, self._options, generator)
            loss, count = loss + lost, count + seen
            weights.add(weights_of(self.network), weight)
            if self._options.average_moments:
                moments.add(moments_of(self._optimizer), weight)
            else:
                mine.moments = moments_of(self._optimizer)
            self._memory = max(self._memory, anonymous_bytes())
        self.learner.forget_losses()  # those of copies, each on its part
        with self._clock.timed(AVERAGING):
            self._weights = weights.of_all(self._weights)
            sent = sum(tensor.numel() for tensor in self._weights.values())
            if self._options.average_moments:
                self._moments = moments.of_all(self._moments)
                sent += sum(tensor.numel() for tensor in self._moments.values())
            put_weights(self.network, self._weights)
        return loss, count, 8 * sent

    def _by_gradients(self, epochs: int) -> tuple[float, float, int]:
        """Sum the gradients of all workers in every step."""
        put_moments(self._optimizer, self._moments)
        self.network.train()
        parameters = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        loss, count, sent = 0.0, 0.0, 0
        for _ in range(epochs):
            loss, count = 0.0, 0.0
            steps = self._steps()
            while True:
                with self._clock.timed(COMPUTE):
                    step = next(steps, None)
                    self._optimizer.zero_grad()
                    lost, seen = self._accumulate(step() if step else iter(()))
                with self._clock.timed(AVERAGING):
                    counts = total(torch.tensor([seen, float(step is not None)], dtype=torch.float64))
                    if counts[1] == 0:
                        break
                    sum_gradients(parameters)
                    for parameter in parameters:
                        parameter.grad /= counts[0].item()
                        sent += parameter.numel() * parameter.element_size()
                self.learner.step(lost / counts[0].item())
                loss, count = loss + lost, count + seen
        copy_from_first(self.network.buffers())
        self._weights, self._moments = weights_of(self.network), moments_of(self._optimizer)
        return loss, count, sent

    def _steps(self) -> Iterator[Callable[[], Iterator[tuple[LocalGraph, Batch]]]]:
        """Yield the batches of each step: those of all parts for full batches, else one batch of one part."""

        def of_part(number: int) -> Iterator[tuple[LocalGraph, Batch]]:
            local = self._parts.load(number)
            with self._of_parts[number].random() as generator:
                for batch in batches_of(local, self._options, generator):
                    yield local, batch
            self._memory = max(self._memory, anonymous_bytes())

        trained = [number for number in self._parts.numbers if self._dataset.train_counts[number]]
        if self._options.batch_size is None:
            yield lambda: (pair for number in trained for pair in of_part(number))
            return
        for number in trained:
            for pair in of_part(number):
                yield lambda pair=pair: iter([pair])  # type: ignore[misc]

    def _accumulate(self, pairs: Iterator[tuple[LocalGraph, Batch]]) -> tuple[float, float]:
        """Add up the gradients of the summed losses. Return the sum, and what it is divided by."""
        loss, count = 0.0, 0.0
        for local, batch in pairs:
            summed, divisor = losses(self.learner, local, batch)
            summed.backward()
            loss, count = loss + summed.item(), count + divisor
        return loss, count

    def state(self) -> dict[str, Any]:
        """Return what a resume needs. After a round, rank 0 has the states of all workers."""
        return {
            "weights": self._weights,
            "moments": self._moments,
            "of_parts": self._gathered,
            **self.learner.rates(),
        }

    def _gather(self) -> None:
        """Send the states of all parts to rank 0."""
        mine = {number: asdict(state) for number, state in self._of_parts.items()}
        all_of_them: list[Any] | None = [None] * world_size() if rank() == 0 else None
        dist.gather_object(mine, all_of_them)
        self._gathered = {number: state for states in all_of_them or () for number, state in states.items()}

    def final(self, best: dict[str, Tensor]) -> dict[str, float]:
        """Return the scores of the best weights."""
        self.network.load_state_dict(best)
        return self._scores("val", "test")

    def _scores(self, *splits: str) -> dict[str, float]:
        return self._inference.scores(self.network, self._options.metrics, splits)
