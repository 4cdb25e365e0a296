"""The worker: epochs over its training vertices, one step for each batch of all workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ....core.system import anonymous_bytes
from ....loading import Trace, sum_gradients
from ....loading.trace import save_part
from ....partitions.seeds import rank_of_part
from ...data.dataset import Dataset
from ...data.learned_rows import LearnedRows
from ...graphs.rows import alone
from ...inference.inference import Inference
from ...jobs.job import Place
from ...learning.learner import Learner
from ...learning.trainable import Make
from ...memory import fitting
from ...method_options import ArmadaOptions, ByteGNNOptions, SampledOptions
from ...models import NEIGHBOUR, build, sampling_of, takes_edge_attr
from ...models.scores import unscored
from ...options import Options, mixed
from ...ranks import (
    SYNCHRONISING,
    Clock,
    barrier,
    copy_from_first,
    device,
    of_all,
    rank,
    total,
    world_size,
)
from ...runs.history import score_of
from .sampled_scores import SampledScores
from .steps import Graphs, Neighbours, Step, StepSource, on_device

WorkerOptions = SampledOptions | ByteGNNOptions | ArmadaOptions

COMPUTE, IDLE = "compute", "idle"
STEPS = (COMPUTE, SYNCHRONISING, IDLE)
"""The timed steps of an epoch. Between the others, a worker waits for a batch."""


class Worker:
    """A worker. All workers have the same weights and the same random numbers.

    Where types have no features, their rows are learned beside the weights. A worker has those of its parts.

    Attributes
    ----------
    network : torch.nn.Module
        The network. Its weights are equal in all workers.
    outputs, make
        What computes exact outputs and scores, and what makes the network.
    """

    open = Dataset
    outputs: type[Inference] = Inference
    make: Make = staticmethod(build)
    _options: Options
    _learned: LearnedRows | None = None

    def __init__(self, dataset: Dataset, options: WorkerOptions, place: Place, state: dict[str, Any]) -> None:
        self._task, self._options, self._topology = dataset.task, options, dataset.topology
        owners = rank_of_part(dataset.partition.k, world_size())
        self._owned = owners == rank()
        self._device = device()
        of_learner = state.get("learner", {}) if dataset.task.learned else state
        self.learner = Learner(dataset.task, options, of_learner, self._device, self.make)
        self.network = self.learner.network
        own = np.flatnonzero(self._owned)
        traced = isinstance(options, ByteGNNOptions) and options.trace is not None
        self._folder, self._trace = place.scratch, Trace(rank(), f"worker {rank()}") if traced else None
        self._steps = self._source(dataset, options, place, owners)
        self._inference = self.outputs(
            dataset,
            own.tolist(),
            place.scratch,
            options.layers,
            self._steps.fetching,
            fitting(dataset, options, place.free_bytes),
            place.free_bytes,
            self._steps.edge_fetching,
        )
        self._clock = Clock(self._trace)
        self._scored_by = options.scores
        self._sampled: SampledScores | None = None
        timed = isinstance(options, SampledOptions) and options.temporal is not None
        self._temporal = self._sampler_of_scores(dataset, options, place) if timed else None
        if self._temporal is not None and self._scored_by == "exact" and dataset.num_val:
            self._sampled = self._temporal("val")
        elif self._scored_by == "sampled" and dataset.num_val:
            self._sampled = SampledScores(dataset, options, place, takes_edge_attr(self.network))
        if dataset.task.learned:
            self._learned = LearnedRows(
                dataset.partition,
                dataset.task.learned,
                owners,
                options.hidden,
                options.seed,
                options.lr,
                place.out,
                options.timeout,
                np.float64 if options.precision == "float64" else np.float32,
            )
            if state:
                self._learned.load(state["learned"])

    def _sampler_of_scores(
        self, dataset: Dataset, options: WorkerOptions, place: Place
    ) -> Callable[[str], SampledScores]:
        """Return what samples all vertices of a split for scores that do not look ahead."""
        return partial(
            SampledScores,
            dataset,
            options,
            place,
            takes_edge_attr(self.network),
            most=None,
            whole=self._scored_by == "exact",
        )

    def _source(
        self,
        dataset: Dataset,
        options: Any,
        place: Place,
        owners: npt.NDArray[np.int64],
    ) -> StepSource:
        """Return where the steps come from."""
        if sampling_of(options.model) == NEIGHBOUR:
            return Neighbours(dataset, options, place.free_bytes, takes_edge_attr(self.network), self._trace)
        return Graphs(dataset, options, np.flatnonzero(self._owned), place.scratch, owners, options.io)

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train one epoch, and return its row. ``epochs`` is always 1."""
        self.network.train()
        self._clock.read()
        self._steps.read_counts()  # scores have read rows, too
        barrier()
        start = time.perf_counter()
        loss, count, local = 0.0, 0.0, 0
        for number, step in enumerate(self._timed()):
            seed = mixed(self._options.seed, self.learner.epochs, number)
            torch.manual_seed(seed)  # equal in all workers
            self._weigh(step)
            loss, count, local = (
                loss + self._train(step),
                count + step.count,
                local + self._steps.own_rows(step, self._owned),
            )
        seconds = time.perf_counter() - start
        self.learner.end_epochs()
        spent = self._clock.read()
        rows = of_all(self._counts(local))
        making = self._steps.read_seconds()
        times = of_all(
            {
                f"{step}_seconds": seconds
                for step, seconds in {**making, **{s: spent[s] for s in STEPS}}.items()
            }
        )
        copy_from_first(self.network.buffers())  # models of users may count batches
        of = of_all({"loss": loss / count, "seconds": seconds, "bytes": anonymous_bytes()})
        row = {
            "loss": of["loss"].sum().item(),
            "seconds": of["seconds"].max().item(),
            **{name: each.mean().item() for name, each in times.items()},
            **{name: int(each.sum()) for name, each in rows.items()},
            "worker_bytes": int(of["bytes"].max()),
            **(self._scores() if scored else self._unscored()),
        }
        if self._learned is not None:
            self._learned.follow(score_of(row, self.network.state_dict().values()))
        return row

    def _scores(self) -> Mapping[str, float | None]:
        """Return the validation scores, as the user wants them."""
        if self._scored_by == "none":
            return self._unscored()
        if self._sampled is not None:
            return self._sampled.scores(self.network, self._inputs)
        self._put_inputs()
        return self._inference.scores(self.network, self._options.metrics, ("val",))

    def _unscored(self) -> Mapping[str, None]:
        return unscored(self._task, self._options.metrics)

    def _timed(self) -> Iterator[Step]:
        """Yield the steps of the epoch, and count the time of waiting for them."""
        steps = on_device(self._steps.epoch(self.learner.epochs), self._device)
        while True:
            with self._clock.timed(IDLE):
                step = next(steps, None)
            if step is None:
                return
            yield step

    def _train(self, step: Step) -> float:
        """Make a step, and return the sum of the losses here."""
        if self._learned is not None:
            step.x = self._inputs(step)
        with self._clock.timed(COMPUTE):
            self.learner.optimizer.zero_grad()
            loss = self._losses(step)
        with self._clock.timed(SYNCHRONISING):
            sum_gradients(self.network.parameters())
        with self._clock.timed(COMPUTE):
            self.learner.step(loss / step.count)
        if self._learned is not None:
            with self._clock.timed(SYNCHRONISING):
                self._learned.step()
        return loss

    def _losses(self, step: Step) -> float:
        """Add the gradients of a step, and return the sum of its losses here."""
        return self._backward(step) if len(step.rows) or self.learner.normalises else 0.0

    def _backward(self, step: Step, retain_graph: bool = False) -> float:
        logits = self._logits(step)
        loss = step.weighted(self.learner.criterion.losses(logits, self._labels(step))).sum()
        (loss / step.count).backward(retain_graph=retain_graph)
        return loss.item()

    def _logits(self, step: Any) -> Tensor:
        """Return the outputs of a step that count."""
        return self.learner.outputs(step.graphs, alone(step.x))[step.rows]

    def _weigh(self, step: Any) -> None:
        """Let a step be divided by the weights of its rows in all workers, if they have weights by their classes."""
        if not self.learner.criterion.weighted:
            return
        pieces, mine = self._pieces(step), torch.zeros(1, dtype=torch.float64)
        for piece in pieces:
            weights = self.learner.criterion.weights(piece.y)
            assert weights is not None
            mine += piece.weighted(weights).sum().cpu()
        count = total(mine).item()
        for each in (step, *pieces):
            each.count = count

    def _pieces(self, step: Any) -> list[Step]:
        """Return the batches of a step."""
        return [step]

    def _inputs(self, step: Any) -> dict[str, Tensor]:
        """Return the features of a step, and the learned rows. All workers call it."""
        if self._learned is None:
            found: dict[str, Tensor] = step.x
            return found
        with self._clock.timed(SYNCHRONISING):
            return {**step.x, **self._learned.inputs(step.inputs, self._device)}

    def _put_inputs(self) -> None:
        """Write learned rows for exact outputs, if there are any."""
        if self._learned is not None:
            self._inference.put_inputs(self._learned.of_part)

    def _labels(self, step: Step) -> Tensor:
        return self._task.targets(step.y)

    def _counts(self, local: int) -> dict[str, int]:
        """Return what this worker has counted in the epoch, of which all workers add up."""
        return {"local_rows": local, **self._steps.read_counts()}

    def close(self) -> None:
        """End the connections to other workers."""
        self._steps.close()
        if self._sampled is not None:
            self._sampled.close()
        if self._learned is not None:
            self._learned.close()

    def store(self) -> None:
        """Save the learned rows of this worker, before a checkpoint."""
        if self._learned is not None:
            self._learned.save()

    def state(self) -> dict[str, Any]:
        """Return what a resume needs."""
        if self._learned is None:
            return self.learner.state()
        return {"learner": self.learner.state(), "learned": self._learned.state()}

    def final(self, best: dict[str, Tensor]) -> dict[str, float]:
        """Return the scores of the best weights, and write the learned rows of the best epoch."""
        if self._learned is not None:
            self._learned.put_best()
            self._learned.write()
            self._put_inputs()
        if self._trace is not None:
            save_part(self._trace, self._folder, rank())
        self.learner.put(best)
        if self._scored_by == "none":
            return {}
        if self._temporal is None:
            return self._inference.scores(self.network, self._options.metrics)
        found: dict[str, float] = {}
        for split in ("val", "test"):
            sampled = self._temporal(split)
            found |= sampled.scores(self.network, self._inputs)
            sampled.fetching.close()
        return found
