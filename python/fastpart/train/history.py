"""The history of a training: one row per epoch, the best weights, and early stopping."""

from __future__ import annotations

import io
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import torch
from torch import Tensor

from .. import _core, parameters
from ..errors import GraphFormatError, ParameterError
from ..forks import before_polars_threads
from ..parameters import StrPath, shown
from .config import Options
from .validation import is_better

Weights = dict[str, Tensor]

CHECKPOINT, BEST, TABLE, PLOT = "checkpoint.pt", "best.pt", "history.parquet", "history.svg"

SCORES = ("val_f1", "val_mrr")
"""Validation scores that decide which epoch is the best. A method has one of them."""

SAVE_SECONDS = 5.0
"""Least seconds between two checkpoints, because writing one may take longer than an epoch."""


class History:
    """The epochs so far. With an ``out`` folder, checkpoints are saved there.

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

    def __init__(
        self,
        method: str,
        options: Options,
        out: StrPath | None,
        resume: bool,
        graph: Mapping[str, Any],
        how: Mapping[str, Any] | None = None,
    ) -> None:
        self.method, self.options = method, options
        self.rows: list[dict[str, Any]] = []
        self.best: Weights = {}
        self.best_epoch = -1
        self.state: dict[str, Any] = {}
        self._best_score = -math.inf
        self._identity = json.dumps([method, graph.get("checksum"), graph.get("n"), options.identity(), how])
        self.out = None if out is None else _folder(out)
        self._saved_at = -math.inf
        self._saved = True
        if resume:
            self._resume()

    @property
    def first_epoch(self) -> int:
        """The next epoch."""
        return self.rows[-1]["epoch"] + 1 if self.rows else 0

    @property
    def over(self) -> bool:
        """Whether all epochs are done, or the score has not improved for too long."""
        patience = self.options.patience
        stale = patience is not None and self.first_epoch - 1 - self.best_epoch >= patience
        return self.first_epoch >= self.options.epochs or (bool(self.rows) and stale)

    def add(
        self,
        row: Mapping[str, Any],
        weights: Callable[[], Mapping[str, Tensor]],
        state: Callable[[], dict[str, Any]],
        epochs: int = 1,
    ) -> None:
        """Add a row for one epoch or several.

        ``weights`` and ``state`` return the current weights and the state for a resume. They are called if needed: the
        weights if the score is the best so far, the state if a checkpoint is due.
        """
        score = _score(row)
        self.rows.append({"epoch": self.first_epoch + epochs - 1, **row})
        if is_better(score, self._best_score):
            self._best_score = self._best_score if math.isnan(score) else score
            self.best_epoch = self.first_epoch - 1
            self.best = {name: tensor.detach().clone() for name, tensor in weights().items()}
        self._saved = False
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            self.save(state)

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Name the checkpoint if its :attr:`state` cannot be used."""
        try:
            yield
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            file = shown((self.out or Path()) / CHECKPOINT)
            raise GraphFormatError(f"{file}: not a checkpoint of fastpart ({error})") from None

    def frame(self) -> pl.DataFrame:
        """Return the rows as a table."""
        return _frame(self.rows)

    def save(self, state: Callable[[], dict[str, Any]]) -> None:
        """Write the checkpoint, the best weights and the rows so far, each atomically, unless they are there."""
        if self.out is None or self._saved:
            return
        content = {
            "identity": self._identity,
            "rows": json.dumps(self.rows),
            "best": self.best,
            "best_epoch": self.best_epoch,
            "state": state(),
        }
        _write(self.out / CHECKPOINT, content)
        _write(self.out / BEST, self.best)
        buffer = io.BytesIO()
        _frame(self.rows).write_parquet(buffer)
        _core.write_file(self.out / TABLE, buffer.getvalue())
        self._saved_at, self._saved = time.monotonic(), True

    def reread(self) -> History:
        """Return this history with the epochs that another process saved in the output folder."""
        self._resume()
        return self

    def _resume(self) -> None:
        if self.out is None:
            raise ParameterError("resume: needs out=, the folder to resume from")
        file = self.out / CHECKPOINT
        if not file.exists():
            return
        content = load_weights(file)
        try:
            if content["identity"] != self._identity:
                raise ParameterError(
                    f"resume: {shown(file)} is of another method, graph or options. Choose another output, or use the "
                    "same options"
                )
            self.rows, self.best = json.loads(content["rows"]), content["best"]
            self.best_epoch, self.state = content["best_epoch"], content["state"]
        except (KeyError, TypeError, json.JSONDecodeError):
            raise GraphFormatError(f"{shown(file)}: not a checkpoint of fastpart") from None
        scores = list(map(_score, self.rows))
        self._best_score = max((score for score in scores if not math.isnan(score)), default=-math.inf)


def _score(row: Mapping[str, Any]) -> float:
    """Return the validation score of an epoch, NaN if it has none."""
    return next((row[name] for name in SCORES if name in row), math.nan)


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    before_polars_threads("train")
    return pl.DataFrame(rows, infer_schema_length=None)


def load_weights(file: StrPath) -> dict[str, Any]:
    """Load a ``.pt`` of tensors, numbers and text. Nothing in it is executed."""
    path = parameters.regular(parameters.path("file", file))
    content = io.BytesIO(path.read_bytes())
    try:
        loaded = torch.load(content, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # torch may raise anything on damaged bytes
        raise GraphFormatError(f"{shown(path)}: holds no weights ({error})") from None
    if not isinstance(loaded, dict):
        raise GraphFormatError(f"{shown(path)}: holds no weights")
    return loaded


def _write(file: Path, content: dict[str, Any]) -> None:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    _core.write_file(file, buffer.getvalue())


def _folder(out: StrPath) -> Path:
    folder = parameters.path("out", out)
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"out: {shown(folder)} is not a directory")
    folder.mkdir(exist_ok=True)
    return folder
