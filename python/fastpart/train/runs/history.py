"""The history of a training: one row per epoch, the best weights, and early stopping."""

from __future__ import annotations

import io
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
import polars as pl
from torch import Tensor
from torch.nn.parameter import is_lazy

from ... import _core
from ...core.frames import before_polars_threads
from ...core.parameters import shown
from ...core.parsing import Count, conform
from ...errors import GraphFormatError
from ..learning.metrics import BROKEN, UNSCORED, is_better
from ..options import Options
from .run_folder import BEST, CHECKPOINT, TABLE, RunFolder, Weights, content_of, weights_in

SCORES = {"val_f1": 1, "val_filtered_mrr": 1, "val_mrr": 1, "val_rmse": -1}
"""Validation scores that decide which epoch is the best, and whether more is better: the first that a training has."""

SAVE_SECONDS = 5.0
"""Least seconds between two checkpoints, because writing one may take longer than an epoch."""


class History:
    """The epochs so far. Checkpoints are saved in the folder.

    Attributes
    ----------
    method, options
        Name and options of the training.
    rows : list of dict
        One per epoch: ``epoch``, ``loss``, ``val_accuracy``, ``val_f1``, ``seconds``, and columns of the method.
    best : dict of torch.Tensor
        Weights of the epoch with the best validation score, of :data:`SCORES`. Without one, of the last epoch.
    state : dict
        State of the method in the checkpoint that is resumed. Empty for a new training.
    """

    def __init__(self, method: str, options: Options, folder: RunFolder, resume: bool) -> None:
        self.method, self.options, self.folder = method, options, folder
        self.rows: list[dict[str, Any]] = []
        self.best: Weights = {}
        self.best_epoch = -1
        self.state: dict[str, Any] = {}
        self._best_score = BROKEN
        self._saved_at = -math.inf
        self._saved = True
        if resume:
            self._resume()

    @property
    def first_epoch(self) -> int:
        """The next epoch."""
        return self.rows[-1]["epoch"] + 1 if self.rows else 0

    def next(self, most: int) -> tuple[int, bool]:
        """Return the number of epochs of the next round, at most so many, and whether scores follow it."""
        done, last, every = self.first_epoch, self.options.epochs, self.options.eval_every
        after = min(done + most, last)
        return after - done, after == last or after // every > done // every

    @property
    def over(self) -> bool:
        """Whether all epochs are done, or the score has not improved for too long."""
        patience = self.options.patience
        improved = self.best_epoch if math.isfinite(self._best_score) else -1
        stale = patience is not None and self.first_epoch - 1 - improved >= patience
        scored = bool(self.rows) and any(self.rows[-1].get(name) is not None for name in SCORES)
        return self.first_epoch >= self.options.epochs or (scored and stale)

    def add(
        self, row: Mapping[str, Any], weights: Callable[[], Mapping[str, Tensor]], epochs: int = 1
    ) -> None:
        """Add a row for one epoch or several. ``weights`` is called if the score is the best so far."""
        self.rows.append({"epoch": self.first_epoch + epochs - 1, **row})
        if is_better(score_of(row), self._best_score):
            best = weights()
            score = score_of(row, best.values())
            if is_better(score, self._best_score):
                self.best = {name: tensor.detach().clone() for name, tensor in best.items()}
                self.best_epoch, self._best_score = self.first_epoch - 1, score
        self._saved = False

    @property
    def unsaved(self) -> bool:
        """Whether there are epochs that the checkpoint does not have."""
        return not self._saved

    @property
    def due(self) -> bool:
        """Whether a checkpoint is to be saved after this epoch."""
        return self.unsaved and time.monotonic() - self._saved_at > SAVE_SECONDS

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Name the checkpoint if its :attr:`state` cannot be used."""
        try:
            yield
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise GraphFormatError(f"{self._checkpoint}: not a checkpoint of fastpart ({error})") from None

    def frame(self) -> pl.DataFrame:
        """Return the rows as a table."""
        return _frame(self.rows)

    def save(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write the checkpoint, the best weights and the rows so far, unless they are there.

        ``state`` returns what a resume needs of the method.
        """
        if self._saved:
            return
        content = {
            "rows": json.dumps(self.rows),
            "best": self.best,
            "best_epoch": self.best_epoch,
            "state": state(),
        }
        self.folder.write({CHECKPOINT: content_of(content), BEST: content_of(self.best)})
        buffer = io.BytesIO()
        _frame(self.rows).write_parquet(buffer)
        _core.write_file(self.folder.path / TABLE, buffer.getvalue())
        self._saved_at, self._saved = time.monotonic(), True

    def reread(self) -> History:
        """Return this history with the epochs that another process saved in the folder."""
        self.folder = RunFolder(self.folder.path, self.folder.temporary)
        self._resume()
        return self

    def finish(self, task: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
        """Note the result of the training in its folder."""
        self.folder.update(task=dict(task), summary=dict(summary))

    @property
    def _checkpoint(self) -> str:
        return shown(self.folder.path / CHECKPOINT)

    def _resume(self) -> None:
        if not self.folder.has_checkpoint:
            return
        content = weights_in(self.folder.read(CHECKPOINT), self.folder.path / CHECKPOINT)
        if (self.folder.path / BEST).exists():
            self.folder.read(BEST)
        try:
            self.rows, self.best = json.loads(content["rows"]), content["best"]
            self.best_epoch, self.state = content["best_epoch"], content["state"]
            conform({"rows": self.rows}, {"rows": list[_Row]})
        except (KeyError, TypeError, ValueError):
            raise GraphFormatError(f"{self._checkpoint}: not a checkpoint of fastpart") from None
        best = (score_of(row) for row in self.rows if row["epoch"] == self.best_epoch)
        self._best_score = next(best, BROKEN)


class _Row(msgspec.Struct):
    """What every row of a history has."""

    epoch: Count
    loss: float
    seconds: float


def score_of(row: Mapping[str, Any], weights: Iterable[Tensor] = ()) -> float:
    """Return the validation score of an epoch, as :func:`.is_better` takes it. More is better.

    Without a score the epoch is broken if its ``weights`` are not finite: its loss is that of the weights before.
    """
    scores = (sign * row[name] for name, sign in SCORES.items() if row.get(name) is not None)
    score = next(scores, UNSCORED)
    if not math.isfinite(row["loss"]):
        return BROKEN
    if math.isfinite(score):
        return score
    known = (each for each in weights if not is_lazy(each) and each.is_floating_point())
    return UNSCORED if all(bool(each.isfinite().all()) for each in known) else BROKEN


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    before_polars_threads("train")
    return pl.DataFrame(rows, infer_schema_length=None)
