"""Loggers of trainings: pass them as ``callbacks=`` of a method. Each imports its library when it is made."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any

from .. import _core
from ..core import parameters
from ..core.parameters import StrPath, shown
from ..core.parsing import Count, json_object
from ..errors import GraphFormatError, ParameterError

if TYPE_CHECKING:
    from .runs.trained import TrainedModel

__all__ = ["JsonLines", "MLflow", "TensorBoard", "WandB"]


def __dir__() -> list[str]:
    return __all__


class JsonLines:
    """Write the history to a file with a JSON object for each epoch, which can be read while training.

    A training that goes on appends its epochs. Those that it repeats, since they came after the last checkpoint, take
    the place of the earlier ones, and so do those of another training. NaN and infinity become null.

    Parameters
    ----------
    file : path
        The file, by convention ``.jsonl``. Its folder must exist.

    Raises
    ------
    ParameterError
        The file holds something else.

    Examples
    --------
    >>> from fastpart.train.loggers import JsonLines
    >>> train = lambda parts: fp.train.sampled(parts, callbacks=[JsonLines("metrics.jsonl")])
    """

    def __init__(self, file: StrPath) -> None:
        self._file = parameters.path("log", file)
        self._begun = False
        self._earlier = self._read()

    def _read(self) -> list[tuple[int, str]]:
        """Return the lines so far with their epochs. The last one may have been cut off."""
        there = parameters.regular(self._file).exists()
        lines = self._file.read_text("utf-8", "replace").splitlines() if there else []
        found = []
        for place, line in enumerate(lines):
            try:
                found.append((json_object(self._file, line, {"epoch": Count})["epoch"], line))
            except GraphFormatError:
                if not place or place + 1 < len(lines):
                    raise ParameterError(
                        f"log: line {place + 1} of {shown(self._file)} is no epoch. Name another file"
                    ) from None
        return found

    def on_epoch(self, row: Mapping[str, Any]) -> None:
        """Append an epoch."""
        if not self._begun:
            kept = [f"{line}\n" for epoch, line in self._earlier if epoch < row["epoch"]]
            _core.write_file(self._file, "".join(kept).encode())
            self._begun = True
        known = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()
        }
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(known) + "\n")


class TensorBoard:
    """Write the history to event files of TensorBoard (``pip install tensorboard``).

    Parameters
    ----------
    folder : path
        A folder for the event files. It is made if it does not exist.

    Examples
    --------
    >>> from fastpart.train.loggers import TensorBoard
    >>> train = lambda parts: fp.train.sampled(parts, callbacks=[TensorBoard("runs/first")])
    """

    def __init__(self, folder: StrPath) -> None:
        _library("tensorboard")
        writer = import_module("torch.utils.tensorboard").SummaryWriter
        self._writer = writer(str(parameters.path("folder", folder)))

    def on_epoch(self, row: Mapping[str, Any]) -> None:
        """Write the numbers of an epoch."""
        for name, value in _numbers(row).items():
            self._writer.add_scalar(name, value, row["epoch"])
        self._writer.flush()

    def on_end(self, trained: TrainedModel) -> None:
        """Write the numbers of the summary, and close the file."""
        for name, value in _numbers(trained.summary).items():
            self._writer.add_scalar(f"summary/{name}", value, trained.summary["epochs"])
        self._writer.close()


class WandB:
    """Log to Weights & Biases (``pip install wandb``).

    Parameters
    ----------
    **init
        Arguments of ``wandb.init``, such as ``project`` or ``mode="offline"``.

    Examples
    --------
    >>> from fastpart.train.loggers import WandB
    >>> train = lambda parts: fp.train.sampled(parts, callbacks=[WandB(project="products")])
    """

    def __init__(self, **init: Any) -> None:
        self._run = _library("wandb").init(**init)

    def on_epoch(self, row: Mapping[str, Any]) -> None:
        """Log the numbers of an epoch."""
        self._run.log(_numbers(row), step=row["epoch"])

    def on_end(self, trained: TrainedModel) -> None:
        """Log options and summary, and finish the run."""
        self._run.config.update(_plain(vars(trained.options)))
        self._run.summary.update(_numbers(trained.summary))
        self._run.finish()


class MLflow:
    """Log to MLflow (``pip install mlflow-skinny``).

    Parameters
    ----------
    tracking_uri : str, optional
        Where to: a folder or a server. Default: what ``mlflow.set_tracking_uri`` was told.
    **run
        Arguments of ``mlflow.start_run``, such as ``run_name``.

    Examples
    --------
    >>> from fastpart.train.loggers import MLflow
    >>> train = lambda parts: fp.train.sampled(parts, callbacks=[MLflow(run_name="first")])
    """

    def __init__(self, tracking_uri: str | None = None, **run: Any) -> None:
        self._mlflow = _library("mlflow")
        if tracking_uri is not None:
            self._mlflow.set_tracking_uri(tracking_uri)
        self._mlflow.start_run(**run)

    def on_epoch(self, row: Mapping[str, Any]) -> None:
        """Log the numbers of an epoch."""
        self._mlflow.log_metrics(_numbers(row), step=row["epoch"])

    def on_end(self, trained: TrainedModel) -> None:
        """Log options and summary, and end the run."""
        self._mlflow.log_params(_plain(vars(trained.options)))
        summary = {f"summary.{name}": value for name, value in _numbers(trained.summary).items()}
        self._mlflow.log_metrics(summary)
        self._mlflow.end_run()


_LOGGERS: dict[str, Callable[[str], Any]] = {
    "jsonl": JsonLines,
    "tensorboard": TensorBoard,
    "wandb": lambda project: WandB(project=project),
    "mlflow": MLflow,
}
"""Makes a logger from the text behind its name in the shell."""

_PACKAGES = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow-skinny"}
"""The package of each library, which pip installs."""


def loggers_of(given: str | Mapping[str, str]) -> list[Any]:
    """Return the loggers of ``--log``: a file of JSON lines, or where to by logger. Missing ones are refused first."""
    targets = given if isinstance(given, Mapping) else {"jsonl": given}
    for name in targets:
        parameters.choice("log", name, _LOGGERS)
    for name in targets.keys() & _PACKAGES.keys():
        _library(name)
    return [_LOGGERS[name](target) for name, target in targets.items()]


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(
            f"{name} is not installed, which this logger writes with: pip install {_PACKAGES[name]}",
            name=name,
        ) from None


def _numbers(row: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in row.items() if isinstance(value, Real) and name != "epoch"}


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that have a value that a logger can show."""
    return {name: value for name, value in options.items() if isinstance(value, str | Real | tuple)}
