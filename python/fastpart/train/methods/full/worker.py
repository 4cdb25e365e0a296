"""The only worker: epochs over the whole graph in memory."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import Tensor

from ....core.system import anonymous_bytes
from ...data.dataset import AnyDataset, open_dataset
from ...jobs.job import Place
from ...learning.learner import Learner, train_epoch
from ...learning.metrics import Scores
from ...models.scores import unscored
from ...options import TrainOptions


class Worker:
    """The worker.

    Attributes
    ----------
    network : torch.nn.Module
        The network.
    """

    open = staticmethod(open_dataset)

    def __init__(
        self,
        dataset: AnyDataset[Any],
        options: TrainOptions,
        place: Place,
        state: dict[str, Any],
    ) -> None:
        self._task, self._options = dataset.task, options
        self._local = local = dataset.whole(torch.device(options.device))
        self.learner = Learner(dataset.task, options, state, local.device)
        features, dtype = local.features, self.learner.dtype
        local.features = (
            {name: rows.to(dtype) for name, rows in features.items()}
            if dataset.has_types
            else features.to(dtype)
        )
        self.network = self.learner.network
        self._random = torch.Generator().manual_seed(options.seed)
        if state:
            self._random.set_state(state["order"])

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train one epoch and return its row. ``epochs`` is always 1."""
        start = time.perf_counter()
        loss, seen = train_epoch(self.learner, self._local, self._options, self._random)
        self.learner.end_epochs()
        seconds = time.perf_counter() - start
        return {
            "loss": loss / max(seen, 1),
            **(self._scores("val") if scored else unscored(self._task, self._options.metrics)),
            "seconds": seconds,
            "remote_bytes": 0,
            "worker_bytes": anonymous_bytes(),
        }

    def state(self) -> dict[str, Any]:
        """Return what a resume needs."""
        return {**self.learner.state(), "order": self._random.get_state()}

    def final(self, best: dict[str, Tensor]) -> dict[str, float]:
        """Return the scores of the best weights."""
        self.learner.put(best)
        return self._scores("val", "test")

    @torch.no_grad()
    def _scores(self, *splits: str) -> dict[str, float]:
        """Return the scores of some splits, from all neighbours."""
        local = self._local
        self.network.eval()
        logits = self.network([local.graph] * self._options.layers, local.features)
        scores = Scores(self._task, self._options.metrics, splits)
        for split in splits:
            ids = local.splits[split]
            scores.add(split, logits[ids], local.labels[ids])
        return scores.of_all()
