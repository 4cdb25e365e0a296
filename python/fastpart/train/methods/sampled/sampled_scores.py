"""Scores from sampled neighbours, for graphs on which exact ones take longer than an epoch, or look ahead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from ....partitions.seeds import seeds_of
from ...data.dataset import Dataset
from ...graphs.rows import alone
from ...inference.inference import numbers_of
from ...jobs.job import Place
from ...learning.metrics import Scores
from ...method_options import ArmadaOptions, ByteGNNOptions, SampledOptions
from ...ranks import device
from .steps import LoaderSteps, on_device

VERTICES = 1 << 13
"""At most so many validation vertices. The standard error of an accuracy is half a percent then."""

WIDER = 2
"""So many times the neighbours of training in each hop."""


WHOLE = 32
"""Vertices of a batch with all of their neighbours."""


class SampledScores:
    """The scores of some vertices with sampled neighbours: the same in every epoch, whatever parts and workers.

    Each worker samples for those of its own parts. Batches are smaller than in training, so that they take no more
    memory.

    Parameters
    ----------
    dataset, options, place
        What is trained, how, and where.
    edge_attr : bool
        Whether the network takes features of edges.
    split : str
        The vertices.
    most : int, optional
        At most so many of them. None: all.
    whole : bool
        With all neighbours instead of some. Only temporal samples are small enough, and have no other way.

    Attributes
    ----------
    fetching : NodeFetching
        Where the features come from.
    """

    def __init__(
        self,
        dataset: Dataset,
        options: SampledOptions | ByteGNNOptions | ArmadaOptions,
        place: Place,
        edge_attr: bool,
        split: str = "val",
        most: int | None = VERTICES,
        whole: bool = False,
    ) -> None:
        self._task, self._metrics, self._device = dataset.task, options.metrics, device()
        self._split = split
        chosen = np.sort(np.random.default_rng(options.seed).permutation(_known(dataset, split))[:most])
        size = (options.batch_size or dataset.num_train) // WIDER ** len(options.fanouts)
        loader = dataset.partition.loader(
            chosen,
            fanouts=(_all if whole else _wider)(dataset.fanouts(options)),
            input=dataset.target,
            batch_size=max(1, min(WHOLE if whole else size, len(chosen))),
            seed=options.seed,
            sampling=options.sampling,
            temporal=options.temporal if isinstance(options, SampledOptions) else None,
            edge_ids=edge_attr,
            timeout=options.timeout,
            io=None if isinstance(options, ArmadaOptions) else options.io,
        )
        self._steps = LoaderSteps(dataset, loader)
        self.fetching = self._steps.fetching
        self._steps.limit(place.free_bytes)

    def close(self) -> None:
        """End the connections to other workers."""
        self._steps.close()

    @torch.no_grad()
    def scores(self, network: nn.Module, inputs: Callable[[Any], Any]) -> dict[str, float]:
        """Return accuracy, micro-F1 and the metrics of the user, the same in all processes.

        ``inputs`` returns the input rows of a step. All processes call it as often.
        """
        network.eval()
        scores = Scores(self._task, self._metrics, (self._split,))
        for step in on_device(self._steps.epoch(0), self._device):
            step.x = inputs(step)
            if len(step.rows):
                where = numbers_of(network)
                x = alone({name: rows.to(**where) for name, rows in step.x.items()})
                logits = network(step.graphs, x)[step.rows]
                scores.add(self._split, logits, self._task.targets(step.y))
        return scores.of_all()


def _known(dataset: Dataset, split: str) -> npt.NDArray[np.int64]:
    """Return the labelled vertices of a split, none if there is no such split."""
    if split not in dataset.known.get("splits", []):
        return np.empty(0, np.int64)
    return seeds_of(split, dataset.partition, dataset.target).ids


def _all(fanouts: Any) -> Any:
    """Return fanouts of each hop, or of each relation, with all neighbours where there were any."""
    if isinstance(fanouts, Mapping):
        return {name: _all(each) for name, each in fanouts.items()}
    return [-1 if fanout else 0 for fanout in fanouts]


def _wider(fanouts: Any) -> Any:
    """Return fanouts of each hop, or of each relation, times :data:`WIDER`."""
    if isinstance(fanouts, Mapping):
        return {name: _wider(each) for name, each in fanouts.items()}
    return [fanout if fanout < 0 else WIDER * fanout for fanout in fanouts]
