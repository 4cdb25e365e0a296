"""Refuse what cannot be trained, before workers start for it."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout

import torch
from torch import Tensor, nn

from ...errors import FastpartError, ParameterError, arg, code
from ...runtime.environment import found
from ...runtime.reporting import describe
from ..models import build, example, is_made
from ..options import Options
from ..plugged.model_source import ModelSource, import_path, refuse_unguarded
from ..plugged.notebooks import in_notebook
from ..plugged.objects import is_network, name_of, pickled
from ..scores import Task
from .criterion import refuse_unfit_loss
from .metrics import refuse_unfit_metrics
from .normalisation import BatchNorm, synchronise
from .optimizers import optimizer_of, scheduler_of

Make = Callable[[Task, Options], nn.Module]
"""Returns the network of a task."""

Example = tuple[Tensor, Tensor]
"""Some outputs and their labels."""


def refuse_before_workers(
    task: Task,
    options: Options,
    copies: int,
    make: Make = build,
    rows: Example | None = None,
    synchronised: bool = False,
    of_model: Task | None = None,
) -> None:
    """Raise an error if workers cannot get what the user plugs in, or it cannot be trained.

    The processes of a launcher find out by themselves: they have it anyway.
    """
    if found() is None:
        refuse_not_importable(options.model)
        refuse_unfit(task, options, copies, make, rows, synchronised, of_model)
        pickled(options.objects)


def refuse_unfit(
    task: Task,
    options: Options,
    copies: int = 1,
    make: Make = build,
    rows: Example | None = None,
    synchronised: bool = False,
    of_model: Task | None = None,
) -> None:
    """Raise an error if what the user plugs in does not make a training, or not one of so many copies at a time.

    ``rows`` are outputs and labels, if not those of the task. ``synchronised`` copies normalise batches together.
    ``of_model`` is the task of the model, if it is only a part of the network.
    """
    with torch.random.fork_rng(devices=[]), redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # workers tell what it says
        network = make(task, options)
        refuse_untrainable(network, options.model)
        if synchronised:
            synchronise(network)
        refuse_batch_norm(network, copies)
        if options.optimizer is not None or options.scheduler is not None:
            # Only then: to make any optimizer, torch imports 70 MB more.
            scheduler_of(optimizer_of(network.parameters(), options), options)
        if is_made(options.model):
            _refuse_unfit_network(build(of_model or task, options), of_model or task, options)
        if options.loss is not None:
            refuse_unfit_loss(options.loss, *(rows or task.example()))
        refuse_unfit_metrics(options.metrics, task, copies)


def _refuse_unfit_network(network: nn.Module, task: Task, options: Options) -> None:
    """Raise an error if a network of the user cannot be called, or returns other rows than the task needs."""
    takes = "(x_dict, edge_index_dict)" if task.target else "(x, edge_index)"
    name, (two, x) = name_of(options.model), example(task, options.hidden)
    try:
        outputs = network.eval()([two] * options.layers, x)
    except (FastpartError, MemoryError):
        raise
    except Exception as error:  # it may raise anything
        raise ParameterError(
            f"model: {name} cannot be called with {task.features} features: {describe(error)}. Its forward takes "
            f"{takes}, or (graphs, x)"
        ) from error
    shape = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if shape != (2, task.classes):
        raise ParameterError(
            f"model: {name} returned {shape} for 2 vertices, but there are {task.classes} outputs to learn. Give its "
            "last layer that width"
        )


def refuse_not_importable(model: ModelSource) -> None:
    """Raise an error if workers cannot import a model, or would run the script of the user again."""
    if not (in_notebook(model) or is_network(model)):
        import_path(model)
    refuse_unguarded(model)


def refuse_untrainable(network: nn.Module, model: ModelSource) -> None:
    """Raise an error if a network has nothing to learn."""
    if not any(weight.requires_grad for weight in network.parameters()):
        raise ParameterError(f"model: {model!r} has no weights to train")


def refuse_batch_norm(network: nn.Module, copies: int) -> None:
    """Raise an error if several copies of a network would normalise batches, each by the statistics of its own."""
    if copies == 1:
        return
    for name, module in network.named_modules():
        if not isinstance(module, BatchNorm) and (
            isinstance(module, nn.modules.batchnorm._BatchNorm)
            or getattr(module, "running_mean", None) is not None
        ):
            raise ParameterError(
                f"model: its layer {name!r}, a {type(module).__name__}, normalises by statistics of a batch. Each of "
                f"the {copies} copies that train would use those of its own vertices, and results would be wrong for "
                "the others. Use torch.nn.LayerNorm, or train one copy, with "
                f"{code('fastpart.train.full', '`fastpart train full`')} or with {arg('workers', 1)}. "
                "Copies of torch.nn.BatchNorm1d normalise together in sampled, bytegnn, links, distgnn and sancus"
            )
