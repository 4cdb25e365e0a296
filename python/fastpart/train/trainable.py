"""Refuse what cannot be trained, before workers start for it."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout

import torch
from torch import nn

from ..errors import ParameterError
from ..runtime.environment import found
from .config import Options
from .model_source import ModelSource, import_path, refuse_unguarded
from .models import build
from .notebooks import in_notebook
from .scores import Task


def refuse_before_workers(
    task: Task, options: Options, copies: int, make: Callable[[Task, Options], nn.Module] = build
) -> None:
    """Raise an error if workers cannot import the model, make its network or train ``copies`` of it at a time.

    The processes of a launcher find out by themselves: they make the network anyway.
    """
    if found() is not None:
        return
    refuse_not_importable(options.model)
    with torch.random.fork_rng(devices=[]), redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # workers tell what it says
        network = make(task, options)
    refuse_untrainable(network, options.model)
    refuse_batch_norm(network, copies)


def refuse_not_importable(model: ModelSource) -> None:
    """Raise an error if workers cannot import a model, or would run the script of the user again."""
    if not in_notebook(model):
        import_path(model)
    refuse_unguarded(model)


def refuse_untrainable(network: nn.Module, model: ModelSource) -> None:
    """Raise an error if a network has nothing to learn."""
    if not any(weight.requires_grad for weight in network.parameters()):
        raise ParameterError(f"model: {model!r} has no weights to train")


def refuse_batch_norm(network: nn.Module, copies: int) -> None:
    """Raise an error if several copies of a network would normalise batches, each by the statistics of its own.

    Statistics of all copies together would not help: vertices that several of them sample would count more than once,
    so the result would still depend on the number of copies.
    """
    if copies == 1:
        return
    for name, module in network.named_modules():
        if (
            isinstance(module, nn.modules.batchnorm._BatchNorm)
            or getattr(module, "running_mean", None) is not None
        ):
            raise ParameterError(
                f"model: its layer {name!r}, a {type(module).__name__}, normalises by statistics of a batch. Each of "
                f"the {copies} copies that train would use those of its own vertices, and results would be wrong for "
                "the others. Use torch.nn.LayerNorm, or train one copy, with fastpart.train.full or with workers=1"
            )
