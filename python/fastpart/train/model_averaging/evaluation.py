"""Exact scores over all parts, layer by layer, with one part in memory."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor, nn

from .. import predict
from ..data import SPLITS, Dataset, LocalGraph
from ..models import Network
from ..rows import Rows
from ..scores import score
from .loading import Parts


class Evaluation:
    """Scores of a network.

    The output of a layer for all vertices goes to a file that all workers map, with 4 bytes per vertex and number.
    """

    def __init__(self, dataset: Dataset, parts: Parts, folder: Path, layers: int) -> None:
        self._dataset, self._parts, self._folder, self._layers = dataset, parts, folder, layers
        self._whole: LocalGraph | None = None

    @torch.no_grad()
    def scores(self, network: nn.Module, splits: tuple[str, ...] = SPLITS[1:]) -> dict[str, float]:
        """Return accuracy and micro-F1 of each split, the same at all workers."""
        network.eval()
        tallies = (
            self._layerwise(network, splits)
            if isinstance(network, Network)
            else self._at_once(network, splits)
        )
        dist.all_reduce(tallies)
        return {
            f"{split}_{name}": value
            for split, tally in zip(splits, tallies, strict=True)
            for name, value in score(tally).items()
        }

    def _layerwise(self, network: Network, splits: tuple[str, ...]) -> Tensor:
        task = self._dataset.task
        below: npt.NDArray[Any] | None = None
        width = task.features
        files = []
        tallies = torch.zeros(len(splits), 4, dtype=torch.float64)
        for index in range(len(network.layers)):
            last = index == len(network.layers) - 1
            width = _width(network, index, width)
            here = None if last else self._map(index, width)
            for local in self._parts:
                x = local.features if below is None else torch.from_numpy(below[local.vertices])
                rows = network.layer(index, local.inner(), x)
                if here is not None:
                    here[local.vertices[: local.num_inner]] = rows.numpy()
                    continue
                for tally, split in zip(tallies, splits, strict=True):
                    ids = local.splits[split]
                    tally += task.tally(rows[ids], local.labels[ids])
            dist.barrier()
            if here is not None:
                files.append(self._file(index))
            below = here
        dist.barrier()
        if dist.get_rank() == 0:
            for file in files:
                file.unlink()
        return tallies

    def _file(self, index: int) -> Path:
        return self._folder / f"layer-{index}.npy"

    def _map(self, index: int, width: int) -> npt.NDArray[Any]:
        file = self._file(index)
        if dist.get_rank() == 0:
            shape = (len(self._dataset.partition), width)
            np.lib.format.open_memmap(file, "w+", np.dtype(np.float32), shape)
        dist.barrier()
        mapped: npt.NDArray[Any] = np.lib.format.open_memmap(file, "r+")
        return mapped

    def _at_once(self, network: nn.Module, splits: tuple[str, ...]) -> Tensor:
        """Score a network without separate layers: one worker evaluates it on the whole graph."""
        tallies = torch.zeros(len(splits), 4, dtype=torch.float64)
        if dist.get_rank() == 0:
            self._whole = self._whole or self._dataset.whole()
            logits = predict.logits(network, self._whole, self._layers)
            for tally, split in zip(tallies, splits, strict=True):
                ids = self._whole.splits[split]
                tally += self._dataset.task.tally(logits[ids], self._whole.labels[ids])
        return tallies


def _width(network: Network, index: int, width: int) -> int:
    """Return the output width of a layer for rows of ``width``."""
    one = Rows(np.array([0, 1]), np.array([0]), torch.ones(1, dtype=torch.int64))
    with contextlib.suppress(RuntimeError):
        return int(network.layer(index, one, torch.zeros(1, width)).shape[1])
    raise TypeError(f"{type(network).__name__}: layer {index} takes no rows of width {width}")
