"""What a user plugs in as an object: a network, a loss, and what makes an optimizer and a scheduler.

Workers get it by cloudpickle, which also takes lambdas and what a notebook defines. It goes from the process of the
user to its workers, and is never stored.
"""

from __future__ import annotations

import base64
import importlib
import pickle
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ...errors import ParameterError

PLUGGED = ("loss", "optimizer", "scheduler", "metrics")
"""The parameters that take objects alone. A model may be named instead."""


def plugged(name: str, value: Any) -> Callable[..., Any] | None:
    """Check an object of the user."""
    if value is None or (callable(value) and not _is_optimizer(value)):
        return value
    example = {
        "loss": "a callable(outputs, labels), such as torch.nn.functional.cross_entropy",
        "optimizer": "a callable(weights), such as lambda weights: torch.optim.AdamW(weights, lr=0.001)",
        "scheduler": "a callable(optimizer), such as lambda optimizer: "
        "torch.optim.lr_scheduler.StepLR(optimizer, 10)",
    }
    raise TypeError(f"{name}: expected {example[name]}, got {type(value).__name__}")


def metrics_of(value: Any) -> dict[str, Any] | None:
    """Check the metrics of the user, by name."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"metrics: expected names and callables(outputs, labels), got {type(value).__name__}")
    for name, metric in value.items():
        if not name.isidentifier() or name in ("accuracy", "f1", "mrr", "auc", "rmse", "mae"):
            raise ParameterError(f"metrics: {name!r} is no free name for a column. Choose another one")
        if not callable(metric):
            raise TypeError(
                f"metrics: {name} is a {type(metric).__name__}. Pass a callable(outputs, labels), or a metric of "
                "torchmetrics"
            )
    return dict(value)


def _is_optimizer(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.optim.Optimizer)


def is_network(model: object) -> bool:
    """Return whether a model is a network already. Each worker trains a copy of it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def name_of(value: object) -> str:
    """Return the name of an object for files and errors."""
    if isinstance(value, Mapping):
        return ", ".join(value)
    return value if isinstance(value, str) else str(getattr(value, "__qualname__", type(value).__name__))


def pickled(objects: Mapping[str, Any]) -> str | None:
    """Return text that :func:`unpickled` reads in another process. None without objects."""
    if not objects:
        return None
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ModuleNotFoundError:
        names = ", ".join(f"{name}=" for name in objects)
        raise ModuleNotFoundError(
            f"{names}: workers get it by cloudpickle, which is not installed: pip install 'fastpart[train]'",
            name="cloudpickle",
        ) from None
    content = {}
    for name, value in objects.items():
        try:
            content[name] = cloudpickle.dumps(value)
        except Exception as error:  # what it holds may raise anything
            raise ParameterError(
                f"{name}: other processes cannot get {name_of(value)} ({type(error).__name__}: {error}). Do not use "
                "open files, locks or connections in it"
            ) from error
    return base64.b64encode(pickle.dumps(content)).decode()


def unpickled(text: str | None) -> dict[str, Any]:
    """Return the objects that the process of the user has sent."""
    content = {} if text is None else pickle.loads(base64.b64decode(text))
    return {name: pickle.loads(value) for name, value in content.items()}
