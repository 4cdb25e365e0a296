"""The loss of a training: one value for each row, that of the task or that of the user."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import FastpartError, ParameterError
from ...runtime.reporting import describe

Loss = Callable[..., Tensor]


class Criterion:
    """The losses of the targets of a step.

    A step divides their sum, over all workers, by the number of its targets or by the sum of their weights. So a loss
    has to be one value for each row. A loss of the user that has ``reduction``, as those of torch, is asked for
    ``"none"``. Several values of a row count by their mean. A single one counts as the mean of the rows that it is of.

    Parameters
    ----------
    loss : callable
        Takes outputs and labels.
    device : torch.device, optional
        Where they are.
    dtype : torch.dtype
        Numbers of the outputs.
    """

    def __init__(
        self, loss: Loss, device: torch.device | None = None, dtype: torch.dtype = torch.float32
    ) -> None:
        self._weights: Tensor | None = None
        if isinstance(loss, nn.Module):
            loss = copy.deepcopy(loss).to(device, dtype)
            if hasattr(loss, "reduction"):
                loss.reduction = "none"
            if isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss):
                self._weights = loss.weight
        elif _reduces(loss):
            loss = partial(loss, reduction="none")
        self._loss = loss

    @property
    def weighted(self) -> bool:
        """Whether rows have weights by their classes."""
        return self._weights is not None

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each row."""
        losses = self._loss(outputs, labels.to(outputs.dtype) if labels.is_floating_point() else labels)
        if not isinstance(losses, Tensor):
            raise ParameterError(f"loss: it returned a {type(losses).__name__}, not a tensor")
        if losses.ndim == 0:
            return losses.expand(len(outputs))
        if len(losses) != len(outputs):
            raise ParameterError(
                f"loss: it returned a tensor of shape {tuple(losses.shape)} for {len(outputs)} rows. Return one value "
                "for each row, or their mean"
            )
        return losses if losses.ndim == 1 else losses.flatten(1).mean(1)

    def weights(self, labels: Tensor) -> Tensor | None:
        """Return the weight of each row, by its class. None: all count 1."""
        return None if self._weights is None else self._weights[labels]


def refuse_unfit_loss(loss: Loss, outputs: Tensor, labels: Tensor) -> None:
    """Raise an error if a loss of the user cannot be computed for outputs and labels like these, or differentiated."""
    try:
        losses = Criterion(loss).losses(outputs.requires_grad_(), labels)
    except (FastpartError, MemoryError):
        raise
    except Exception as error:  # it may raise anything
        raise ParameterError(
            f"loss: it cannot be called with outputs of shape {tuple(outputs.shape)} and labels of shape "
            f"{tuple(labels.shape)}: {describe(error)}"
        ) from error
    if not losses.requires_grad:
        raise ParameterError("loss: it has no gradient. Compute it from the outputs with functions of torch")


def _reduces(loss: Any) -> bool:
    """Return whether a function takes ``reduction``."""
    try:
        return "reduction" in inspect.signature(loss).parameters
    except (TypeError, ValueError):  # some callables have no signature
        return False
