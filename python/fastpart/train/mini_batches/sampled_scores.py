"""Validation scores from sampled neighbours, for graphs on which exact ones take longer than an epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from ...partitions.seeds import seeds_of
from ..config import Options
from ..data import Dataset
from ..inference import numbers_of
from ..learning.metrics import Scores
from ..ranks import device
from .steps import LoadedSteps
from .transfer import on_device

VERTICES = 1 << 13
"""At most so many validation vertices. The standard error of an accuracy is half a percent then."""

WIDER = 2
"""So many times the neighbours of training in each hop."""


class SampledScores(LoadedSteps):
    """The scores of validation vertices with sampled neighbours: the same in every epoch, whatever parts and workers.

    Each worker samples for those of its own parts. Batches are smaller than in training, so that they take no more
    memory.
    """

    def __init__(self, dataset: Dataset, options: Options, how: dict[str, Any], edge_attr: bool) -> None:
        self._task, self._metrics, self._device = dataset.task, options.metrics, device()
        known = seeds_of("val", dataset.partition.parts, dataset.topology, dataset.manifest["splits"]).ids
        chosen = np.sort(np.random.default_rng(options.seed).permutation(known)[:VERTICES])
        size = (options.batch_size or dataset.num_train) // WIDER ** len(options.fanouts)
        loader = dataset.partition.loader(
            chosen,
            fanouts=[fanout if fanout < 0 else WIDER * fanout for fanout in options.fanouts],
            batch_size=max(1, min(size, len(chosen))),
            seed=options.seed,
            sampling=how["sampling"],
            edge_ids=edge_attr,
            timeout=how["timeout"],
            io=how.get("io"),
        )
        super().__init__(dataset, loader)
        self._loader.limit(how["free_bytes"])

    @torch.no_grad()
    def scores(self, network: nn.Module) -> dict[str, float]:
        """Return accuracy, micro-F1 and the metrics of the user, the same in all processes."""
        network.eval()
        scores = Scores(self._task, self._metrics, ("val",))
        for step in on_device(self.epoch(0), self._device):
            if len(step.rows):
                logits = network(step.graphs, step.x.to(**numbers_of(network)))[step.rows]
                scores.add("val", logits, self._task.targets(step.y))
        return scores.of_all()
