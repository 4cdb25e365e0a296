"""``distgnn`` and ``sancus``: one worker for each part of a partition directory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ....errors import FastpartError, ParameterError, arg
from ....partitions.partition import PartitionSource
from ....runtime.environment import found
from ....runtime.reporting import describe
from ...jobs import driver
from ...learning.trainable import refuse_untrainable
from ...memory import MORE_PARTS, Need, full_batch, graph_bytes, number_bytes, weights
from ...models import NEIGHBOUR, build, sampling_of
from ...models.scores import Task
from ...options import Options, TrainOptions
from ...registry import Method
from .exchange import Exchange, Tools
from .worker import EXCHANGES


def try_model(task: Task, options: Options, exchange: type[Exchange]) -> None:
    """Run the model forward and backward on a graph of two vertices, in this process.

    Raises
    ------
    ParameterError
        The method cannot train the model. The text says why.
    """
    if sampling_of(options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model!r} needs sampled graphs, but this method uses full batches. Train it with sdt or "
            "full, or use graphsage, which has the same layers"
        )
    two = exchange.part.of_two(task)
    messages = exchange(two, options, Tools.alone())
    messages.begin(0)
    expected = (two.num_own, task.classes)
    with torch.random.fork_rng(devices=[]):
        network = build(task, options)
        refuse_untrainable(network, options.model)
        try:
            logits = network(messages.layers, two.features)
            shape = tuple(logits.shape) if isinstance(logits, Tensor) else None
            if shape == expected:
                logits.sum().backward()
        except (FastpartError, MemoryError):
            raise
        except Exception as error:  # a model of the user may raise anything
            raise ParameterError(
                f"model: {options.model!r} cannot be trained over parts: {describe(error)}. Its layers may use only "
                "the methods of fastpart.train.graphs.neighbourhood.Neighbourhood"
            ) from None
    if shape != expected:
        what = f"a {type(logits).__name__}" if shape is None else f"rows of shape {shape}"
        raise ParameterError(
            f"model: {options.model!r} must return a tensor of shape {expected}, one row per vertex, got {what}"
        )


class Driver(driver.Driver):
    """Starts one worker for each part."""

    synchronised = True

    def __init__(self, method: Method, source: PartitionSource, options: TrainOptions) -> None:
        self._exchange = exchange = EXCHANGES[method.over]
        dataset = exchange.dataset(source).without_edge_features()
        super().__init__(method, options, dataset, dataset.partition.k)
        dataset.refuse_categories(
            f"{method.name} exchanges the sums of the features once, and learned rows change in every step"
        )
        self.decisive = {name: getattr(options, name) for name in exchange.decisive}

    def refuse(self) -> None:
        """Refuse what cannot be trained. The model is tried on two vertices and the edges between them."""
        super().refuse()
        try_model(self.task, self.options, self._exchange)
        if (ranks := found()) is not None and ranks.size != self.workers:
            raise ParameterError(
                f"source: {self.workers} parts for {ranks.size} processes. Start one process per part: --nnodes times "
                "--nproc-per-node of torchrun"
            )

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and messages."""
        return self._exchange.summary(self.options, self.dataset)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes: its part, the sums of the features, activations, and messages."""
        options, task, parts = self.options, self.task, self.dataset.partition.parts
        rows = max(part.num_inner for part in parts)
        edges = max(int(part.indptr[part.num_inner]) for part in parts)
        return [
            Need(self._exchange.held, graph_bytes(options, rows, edges, task.features), MORE_PARTS),
            Need("sums of its features", 2 * number_bytes(options) * rows * task.features, MORE_PARTS),
            Need("activations", full_batch(options, task, rows, rows, edges), f"a smaller {arg('hidden')}"),
            *self._exchange.needs(self.dataset, options, rows),
            weights(options, task),
        ], ()
