"""Full-batch training. Every process trains on its part of the graph, with one step per epoch."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ....core.system import anonymous_bytes, resident_bytes
from ....loading import sum_gradients
from ....partitions.partition import PartitionSource
from ...data.dataset import AnyDataset, open_dataset
from ...jobs.job import Place
from ...learning.learner import Learner
from ...learning.metrics import Scores
from ...learning.normalisation import synchronised
from ...models.scores import unscored
from ...options import TrainOptions
from ...ranks import AGGREGATION, EXCHANGE, SYNCHRONISING, copy_from_first, of_all
from .exchange import Exchange, Tools
from .staleness import BlocksExchange
from .totals import TotalsExchange

EXCHANGES: Mapping[str | None, type[Exchange]] = {
    exchange.dataset.of: exchange for exchange in (TotalsExchange, BlocksExchange)
}
"""By the items of the parts."""

STEPS = (AGGREGATION, EXCHANGE, SYNCHRONISING)
"""The timed steps of an epoch. The rest is dense computation."""

MEASURED = (*(f"{step}_seconds" for step in STEPS), "dense_seconds", "sent_bytes", "received_bytes")
"""Columns of each worker and epoch."""


class Worker:
    """A worker. All workers have the same weights and the same random numbers.

    The loss of a worker is the sum over its own training vertices, divided by the number of all training vertices. So
    the gradients of all workers add up to that of the whole graph.

    Attributes
    ----------
    network : torch.nn.Module
        The network. Its weights are equal in all workers.
    """

    @staticmethod
    def open(source: PartitionSource, target: str | None = None) -> AnyDataset[Any]:
        """Open a directory. Features of edges are left out: the in-edges of a vertex may be in several parts."""
        return open_dataset(source, target).without_edge_features()

    def __init__(self, dataset: Any, options: TrainOptions, place: Place, state: dict[str, Any]) -> None:
        tools, exchange = Tools.of_group(options.timeout), EXCHANGES[dataset.of]
        self._task, self._metrics = dataset.task, options.metrics
        self._wire, self._clock, self._device = tools.wire, tools.clock, tools.device
        self._part = part = exchange.part.load(dataset, self._wire.rank, self._device)
        self._exchange = exchange(part, options, tools)
        self.learner = Learner(self._task, options, state, self._device)
        self.network = self.learner.network
        for layer in synchronised(self.network):
            layer.rows, layer.own = len(part.features), part.num_own
        part.features = part.features.to(self.learner.dtype)
        weights = self.learner.criterion.weights(part.labels[part.splits["train"]])
        self._divisor = (
            dataset.num_train if weights is None else self._wire.total(weights.double().sum().view(1)).item()
        )
        self._memory = 0
        self._measured: list[Tensor] = []

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train one epoch, and return its row. ``epochs`` is always 1."""
        self._begin()
        start = time.perf_counter()
        loss = self._step()
        seconds = time.perf_counter() - start
        spent = self._clock.read()
        self.learner.end_epochs()
        dense = seconds - sum(spent.values())
        mine = [*(spent[step] for step in STEPS), dense, self._wire.sent, self._wire.received]
        measured = of_all(dict(zip(MEASURED, mine, strict=True)))
        self._measured.append(torch.stack(list(measured.values()), 1))
        most = of_all({"seconds": seconds, "bytes": self._memory})
        copy_from_first(self.network.buffers())  # models of users may count batches
        scores, sent = self._scored(("val",)) if scored else (unscored(self._task, self._metrics), 0)
        return {
            "loss": loss,
            **scores,
            "seconds": most["seconds"].max().item(),
            **{name: each.mean().item() for name, each in measured.items() if name.endswith("_seconds")},
            "remote_bytes": int(measured["sent_bytes"].sum()),
            "evaluation_bytes": sent,
            "worker_bytes": int(most["bytes"].max()),
            **self._exchange.row(),
        }

    def _begin(self) -> None:
        self._exchange.begin(self.learner.epochs)
        # A worker that starts late is awaited here, so that its delay does not count.
        self._wire.total(torch.zeros(1, device=self._device))
        self._wire.sent = self._wire.received = 0
        self._clock.read()

    def _step(self) -> float:
        """Make a step, and return the mean loss over all training vertices."""
        part = self._part
        self.network.train()
        self.learner.optimizer.zero_grad()
        logits = self.learner.outputs(self._exchange.layers, part.features)
        ids = part.splits["train"]
        loss = self.learner.criterion.losses(logits[ids], part.labels[ids]).sum() / self._divisor
        self._memory = max(self._memory, anonymous_bytes())
        loss.backward()
        with self._clock.timed(SYNCHRONISING):
            sum_gradients(self.network.parameters())
            total = self._wire.total(loss.detach().view(1))
        self.learner.step(total.item() / self._wire.size)
        self._memory = max(self._memory, anonymous_bytes())
        return total.item()

    @torch.no_grad()
    def _scored(self, splits: tuple[str, ...]) -> tuple[dict[str, float], int]:
        """Return the scores of some splits from one pass over the whole graph, and the bytes that it sent."""
        part = self._part
        self._wire.sent = 0
        self.network.eval()
        logits = self.network(self._exchange.exact, part.features)
        scores = Scores(self._task, self._metrics, splits)
        for split in splits:
            ids = part.splits[split]
            scores.add(split, logits[ids], part.labels[ids])
        sent = self._wire.total(torch.tensor([self._wire.sent], dtype=torch.float64, device=self._device))
        found = scores.of_all()
        self._clock.read()
        return found, int(sent)

    def state(self) -> dict[str, Any]:
        """Return what a resume needs."""
        return self.learner.state()

    def final(self, best: dict[str, Tensor]) -> dict[str, Any]:
        """Return the scores of the best weights, and one row for each worker."""
        self.learner.put(best)
        scores, _ = self._scored(("val", "test"))
        counts = of_all({**self._part.facts, "peak_bytes": resident_bytes(peak=True)})
        columns = {name: of.long() for name, of in counts.items()}
        peaks = columns.pop("peak_bytes")
        columns |= {**self._typical(), "peak_bytes": peaks}
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        workers = [{"worker": rank, **dict(zip(columns, row, strict=True))} for rank, row in enumerate(rows)]
        return {**scores, "peak_bytes": int(peaks.max()), "per_worker": workers}

    def _typical(self) -> dict[str, Tensor]:
        """Return columns of the workers: median seconds and mean bytes over the epochs after the first."""
        if not self._measured:
            return {name: torch.zeros(self._wire.size) for name in MEASURED}
        epochs = torch.stack(self._measured[1:] or self._measured).unbind(2)
        return {
            name: of.median(0).values if name.endswith("_seconds") else of.mean(0).long()
            for name, of in zip(MEASURED, epochs, strict=True)
        }

    def close(self) -> None:
        """Receive pending messages."""
        self._exchange.close()
