"""The optimizer of a network and the scheduler of its learning rate, which the user may make."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn

from ...errors import FastpartError, ParameterError
from ...runtime.reporting import describe
from ..options import Options

Parameters = Iterable[nn.Parameter]


def optimizer_of(weights: Parameters, options: Options) -> torch.optim.Optimizer:
    """Return the optimizer of a network: Adam, or what the user makes."""
    if options.optimizer is None:
        return torch.optim.Adam(weights, lr=options.lr, weight_decay=options.weight_decay)
    optimizer = _made("optimizer", options.optimizer, weights)
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ParameterError(
            f"optimizer: it returned a {type(optimizer).__name__}, not a torch.optim.Optimizer. Pass a function, such "
            "as lambda weights: torch.optim.AdamW(weights, lr=0.001)"
        )
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ParameterError(
            "optimizer: LBFGS evaluates the loss several times in a step, which no method does"
        )
    return optimizer


def scheduler_of(optimizer: torch.optim.Optimizer, options: Options) -> Any:
    """Return the scheduler of the learning rate that the user makes, if any. It steps once in each epoch."""
    if options.scheduler is None:
        return None
    scheduler = _made("scheduler", options.scheduler, optimizer)
    if isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau) or not hasattr(scheduler, "step"):
        raise ParameterError(
            f"scheduler: it returned a {type(scheduler).__name__}. Return one that steps once in each epoch without a "
            "score, such as torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)"
        )
    return scheduler


def _made(name: str, make: Callable[[Any], Any], given: Any) -> Any:
    """Return what a function of the user makes."""
    try:
        return make(given)
    except (FastpartError, MemoryError):
        raise
    except Exception as error:  # it may raise anything
        raise ParameterError(f"{name}: it cannot be made: {describe(error)}") from error
