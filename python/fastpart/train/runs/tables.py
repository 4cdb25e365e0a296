"""Predictions as tables: how their columns are called, and what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..models.scores import Task
from ..options import Predicted
from .predicting import answers_of

_ROWS = 1 << 16
"""Rows of logits in memory at a time."""


def column_of(what: Predicted, task: Task, texts: Sequence[Any] | None = None) -> str | list[str]:
    """Return the name of the column of outputs. Probabilities have one for each class, by its text or its number."""
    if what == "probabilities":
        known = dict(enumerate(texts or ()))
        return [f"probability_{known.get(number, number)}" for number in range(task.classes)]
    if what == "classes":
        return "prediction" if task.regression else "class"
    return {"logits": "logits", "embeddings": "embedding"}[what]


def answers_with_chances(logits: npt.NDArray[Any], task: Task) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of classes and their probabilities, or that of the numbers of a regression.

    Logits may be the map of a file. A block of them is in memory at a time.
    """
    answers, chances = [], []
    for start in range(0, max(len(logits), 1), _ROWS):
        block = torch.from_numpy(np.array(logits[start : start + _ROWS]))
        answers.append(answers_of(block, task.defined(block), task))
        if not task.regression:
            chance = block.sigmoid() if task.multilabel else block.softmax(1).amax(1)
            chances.append(chance.numpy())
    columns = {str(column_of("classes", task)): np.concatenate(answers)}
    return columns | ({"probability": np.concatenate(chances)} if chances else {})
