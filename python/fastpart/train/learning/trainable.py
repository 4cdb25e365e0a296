"""The loss, the optimizer, the learning rate and the network of a training, which users may make."""

from __future__ import annotations

import copy
import inspect
import io
import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import FastpartError, ParameterError, arg, code
from ...runtime.environment import found
from ...runtime.reporting import describe
from ..models import build, example, is_made
from ..models.scores import Task
from ..options import Options
from ..plugged import ModelSource, import_path, in_notebook, is_network, name_of, pickled, refuse_unguarded
from .metrics import refuse_unfit_metrics
from .normalisation import BatchNorm, synchronise

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
