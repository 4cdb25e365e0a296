"""The begin of a training that is kept: what it is goes to its folder, and another one is not resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...core.parsing import damaged
from ..learning.trainable import Make
from ..models import build
from ..models.scores import Task
from ..options import TrainOptions
from ..plugged import MODELS, PLUGGED
from .identity import refuse_difference
from .run_folder import CHECKPOINT, MARKER, RunFolder, refuse_other_shapes, weights_in

NOT_KEPT = frozenset(
    {"source", "out", "resume", "overwrite", "model", "progress", "on_epoch", "callbacks", "trace", *PLUGGED}
)
"""Arguments of this call only: objects, and those that :meth:`.TrainedModel.resume` sets itself."""


def begin(
    folder: RunFolder,
    resume: bool,
    options: TrainOptions,
    must: Mapping[str, Any],
    source: Path,
    task: Task | None,
    make: Make = build,
) -> None:
    """Begin a training, or go on with it.

    Raises
    ------
    ParameterError
        The training to go on with is another one, or its weights do not fit into the model.
    """
    going_on = resume and folder.has_checkpoint
    if going_on:
        with damaged(folder.path / MARKER, "not the list of a training"):
            refuse_difference(folder.path, folder.content.get("must_agree", {}), must)
        if task is not None and options.model not in MODELS:
            refuse_other_model(folder, lambda: make(task, options))
    folder.begin(
        going_on,
        must_agree=dict(must),
        may_change={"source": os.path.abspath(source), "arguments": _arguments(options.given)},
        options=options.stored(),
        task=None if task is None else task.stored(),
    )


def refuse_other_model(folder: RunFolder, make: Callable[[], nn.Module]) -> None:
    """Refuse a model that cannot take the weights of the checkpoint."""
    best = weights_in(folder.read(CHECKPOINT), folder.path / CHECKPOINT).get("best", {})
    with torch.random.fork_rng(devices=[]):
        refuse_other_shapes(make(), best, folder.path)


def _arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the call that a file can hold, so that the training can go on with them."""
    return {name: _plain(value) for name, value in given.items() if name not in NOT_KEPT}


def _plain(value: Any) -> Any:
    """Return a value that JSON has: the text of a path, and Python's numbers for those of numpy."""
    if isinstance(value, os.PathLike):
        return os.path.abspath(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value
