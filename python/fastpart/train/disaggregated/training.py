"""The compute worker: steps on batches that others make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ...partitions.seeds import Ids
from ..data import Dataset
from ..jobs.worker import Place
from ..method_options import ArmadaOptions
from ..mini_batches import training
from ..mini_batches.steps import Step, StepSource
from .received import Piece, ReceivedSteps


@dataclass
class Pieces:
    """The batches of a step."""

    pieces: list[Piece]
    count: float


class Worker(training.Worker):
    """A compute worker. Its weights are those of all others."""

    def _source(self, dataset: Dataset, options: ArmadaOptions, place: Place, owners: Ids) -> StepSource:
        self._received = ReceivedSteps(dataset, Path(options.settings), owners)
        return self._received

    def _timed(self) -> Iterator[Any]:
        pieces: list[Piece] = []
        for piece in super()._timed():
            assert isinstance(piece, Piece)
            pieces.append(piece)
            if piece.last:
                yield Pieces(pieces, piece.count)
                pieces = []

    def _losses(self, step: Any) -> float:
        loss, seed = 0.0, torch.initial_seed()
        for piece in step.pieces:
            if len(piece.rows):
                torch.manual_seed(seed)  # a vertex drops the same entries in every batch of a step
                loss += self._backward(piece)
        return loss

    def _pieces(self, step: Any) -> list[Step]:
        return list(step.pieces)

    def _counts(self, local: int) -> dict[str, int]:
        return self._received.read_counts()

    def close(self) -> None:
        """Leave the receiver."""
        self._received.close()
        if self._sampled is not None:
            self._sampled.close()
