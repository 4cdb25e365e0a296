"""A network, its loss and its optimizer, and how they train on a graph in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..graphs.kernels import CPU
from ..models import NEIGHBOUR, build, sampling_of
from ..models.scores import Task
from ..options import Options
from ..ranks import copy_from_first, total, world_size
from .batches import Batch, VertexRows, batches
from .local_graph import LocalGraph
from .normalisation import synchronise, synchronised
from .trainable import (
    Criterion,
    Loss,
    Make,
    optimizer_of,
    refuse_batch_norm,
    refuse_untrainable,
    scheduler_of,
)

PRECISIONS = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}
"""Types of numbers that layers compute with."""


class Learner:
    """The network of a process, its optimizer, and how many epochs it has trained. It begins with the values of rank 0.

    ``loss`` is that of the method, if it is not that of the task. A loss of the user takes its place.

    Attributes
    ----------
    network : torch.nn.Module
        The network.
    criterion : Criterion
        The loss.
    optimizer : torch.optim.Optimizer
        The optimizer of its weights.
    device : torch.device
        Where it computes.
    dtype : torch.dtype
        Type of weights and losses.
    normalises : bool
        Whether the network has layers that ask all workers for statistics. Then each must compute every step.
    epochs : int
        Number of epochs so far.
    """

    def __init__(
        self,
        task: Task,
        options: Options,
        state: dict[str, Any],
        device: torch.device | None = None,
        make: Make = build,
        loss: Loss | None = None,
    ) -> None:
        torch.manual_seed(options.seed)
        self.device = device or CPU
        self._precision = PRECISIONS[options.precision]
        self.dtype = torch.promote_types(self._precision, torch.float32)
        self.network = make(task, options).to(device, self.dtype)
        refuse_untrainable(self.network, options.model)
        if world_size() > 1:
            synchronise(self.network)
        refuse_batch_norm(self.network, world_size())
        self.criterion = Criterion(options.loss or loss or task.losses, device, self.dtype)
        self.optimizer = optimizer_of(self.network.parameters(), options)
        self._scheduler = scheduler_of(self.optimizer, options)
        self._clip = options.clip
        self._losses: list[float] = []
        self._of_round: list[float] = []
        self.normalises = bool(synchronised(self.network))
        self.epochs = 0
        if state:
            self._restore(state)
        # Models of users may draw weights from elsewhere than torch, and so differ in each process.
        copy_from_first([*self.network.parameters(), *self.network.buffers()])

    def _restore(self, state: dict[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["adam"])
        self.put_rates(state)
        torch.set_rng_state(state["random"])

    def computing(self) -> AbstractContextManager[Any]:
        """Return a block in which layers compute with the numbers that the user wants."""
        mixed = self._precision == torch.bfloat16
        return torch.autocast(self.device.type, self._precision) if mixed else nullcontext()

    def outputs(self, graphs: Sequence[Any], x: Tensor | Mapping[str, Tensor]) -> Tensor:
        """Return the outputs of the network in training, as losses take them. Rows may be given by type."""
        rows = x.to(self.dtype) if isinstance(x, Tensor) else {name: x[name].to(self.dtype) for name in x}
        with self.computing():
            outputs: Tensor = self.network(graphs, rows)
        return outputs.to(self.dtype)

    def step(self, loss: float) -> None:
        """Change the weights by their gradients, which are those of all workers.

        ``loss`` is the share of this worker in the mean loss of the step.
        """
        self._losses.append(loss)
        if self._clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self._clip)
        self.optimizer.step()

    def losses_of_all(self) -> list[float]:
        """Return the loss of each step of the last epochs. All workers call it, after equally many steps."""
        if not self._of_round:
            return []
        summed: list[float] = total(torch.tensor(self._of_round, dtype=torch.float64)).tolist()
        return summed

    def forget_losses(self) -> None:
        """Forget the losses of the steps so far."""
        self._losses.clear()

    def end_epochs(self, epochs: int = 1) -> None:
        """Count some epochs, and let the learning rate follow."""
        self.epochs += epochs
        self._of_round, self._losses = self._losses, []
        if self._scheduler is not None:
            for _ in range(epochs):
                self._scheduler.step()

    def state(self) -> dict[str, Any]:
        """Return what continues it: weights, optimizer, random numbers of torch, epochs."""
        return {
            "network": self.network.state_dict(),
            "adam": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
            **self.rates(),
        }

    def rates(self) -> dict[str, Any]:
        """Return the epochs, and what continues the scheduler of the learning rates."""
        if self._scheduler is None:
            return {"epochs": self.epochs}
        rates = [float(group["lr"]) for group in self.optimizer.param_groups]
        return {"epochs": self.epochs, "rates": rates, "scheduler": self._scheduler.state_dict()}

    def put_rates(self, state: dict[str, Any]) -> None:
        """Go on from a result of :meth:`rates`."""
        self.epochs = state["epochs"]
        if self._scheduler is not None:
            self._scheduler.load_state_dict(state["scheduler"])
            for group, rate in zip(self.optimizer.param_groups, state["rates"], strict=True):
                group["lr"] = rate

    def put(self, weights: dict[str, Tensor]) -> nn.Module:
        """Set the weights, and return the network."""
        self.network.load_state_dict(weights)
        return self.network


def batches_of(local: LocalGraph, options: Options, generator: torch.Generator) -> Iterator[Batch]:
    """Yield the batches of one epoch over a graph in memory. Each has at least one target.

    The same state of ``generator`` and number of threads give the same batches.
    """
    seeds = local.splits["train"]
    if not len(seeds):
        return
    if options.batch_size is None and sampling_of(options.model) == NEIGHBOUR:
        rows = seeds.numpy().astype(np.uint32)
        yield Batch([local.graph] * options.layers, None, seeds, rows, len(seeds))
        return
    seed = int(torch.randint(2**62, (), generator=generator))
    yield from (batch for batch in batches(local.field, options, seed) if len(batch.targets))


def losses(learner: Learner, local: LocalGraph, batch: Batch) -> tuple[Tensor, float]:
    """Return the sum of the weighted losses of the targets of a batch, and what it is divided by."""
    inputs = local.features if batch.inputs is None else local.features[_index(batch.inputs)]
    logits, labels = learner.outputs(batch.graphs, inputs), local.labels[_index(batch.targets)]
    weights = learner.criterion.weights(labels)
    count = batch.count if weights is None else batch.weighted(weights).sum().item()
    return batch.weighted(learner.criterion.losses(logits[batch.rows], labels)).sum(), count


def _index(rows: VertexRows) -> Tensor:
    return torch.from_numpy(rows.astype(np.int64))


def train_epoch(
    learner: Learner, local: LocalGraph, options: Options, generator: torch.Generator
) -> tuple[float, float]:
    """Train one epoch. Return the sum of the losses, and what it is divided by."""
    learner.network.train()
    loss, count = 0.0, 0.0
    for batch in batches_of(local, options, generator):
        total, divisor = losses(learner, local, batch)
        learner.optimizer.zero_grad()
        (total / divisor).backward()
        learner.step(total.item() / divisor)
        loss, count = loss + total.item(), count + divisor
    return loss, count
