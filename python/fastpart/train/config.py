"""The parameters of all training methods, checked in one place."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar

from .. import _core
from ..core import parameters
from ..core.options import Options as CallOptions
from ..core.options import RunOptions, with_options
from ..errors import ParameterError
from .calls import recorded
from .model_source import ModelSource, checked, import_path, refuse_nested
from .notebooks import in_notebook, text_of

MOST = 2**31 - 1
"""Largest accepted count."""

FANOUT = 10
"""Default number of sampled neighbours per vertex and layer."""


class Learning(TypedDict, total=False):
    """Parameters of the model and of its training, documented at :func:`fastpart.train.full`."""

    model: ModelSource
    hidden: int
    layers: int
    heads: int
    dropout: float
    lr: float
    weight_decay: float
    epochs: int
    patience: int | None


class Batches(TypedDict, total=False):
    """Parameters of mini-batches, documented at :func:`fastpart.train.full`."""

    batch_size: int | None
    fanouts: Sequence[int] | None


OnEpoch = Callable[[dict[str, Any]], object]
"""Called with each new row of the history."""


class Training(Learning, CallOptions, total=False):
    """Parameters of all methods."""

    seed: int | None
    on_epoch: OnEpoch | None


class BatchTraining(Training, Batches, total=False):
    """Parameters of methods that may train on mini-batches."""


class ComparisonTraining(Learning, Batches, CallOptions, total=False):
    """Parameters of the comparison of methods, except for seeds."""


@dataclass(frozen=True)
class Options:
    """The checked parameters of a training. Its defaults are those of all methods.

    Attributes
    ----------
    model : str or callable
        A name in ``fastpart.train.models.MODELS``, an import path ``module:Class`` or ``file.py:Class``, or a class.
    hidden, layers, heads : int
        Width of hidden layers (per head), number of layers, attention heads.
    dropout : float
        Share of the outputs of each hidden layer that is dropped in training.
    lr, weight_decay : float
        Learning rate and weight decay of Adam.
    epochs : int
        Maximum number of epochs.
    batch_size : int or None
        Training vertices per step. None: all at once.
    fanouts : tuple of int
        Neighbours to sample per vertex in each hop, from the training vertices on. -1 takes all.
    patience : int or None
        Number of epochs without a better validation score after which training ends.
    seed : int
        Seed of weights, dropout and samples.
    """

    model: ModelSource = "graphsage"
    hidden: int = 64
    layers: int = 2
    heads: int = 4
    dropout: float = 0.5
    lr: float = 0.01
    weight_decay: float = 5e-4
    epochs: int = 100
    batch_size: int | None = None
    fanouts: tuple[int, ...] = ()
    patience: int | None = None
    seed: int = 0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Check the arguments of a user. Other names are ignored."""
        given = {name: given.get(name, default) for name, default in DEFAULTS.items()}
        values = dict(given)
        for name in ("hidden", "layers", "heads", "epochs"):
            values[name] = parameters.integer(name, given[name], 1, MOST)
        for name in ("batch_size", "patience"):
            if given[name] is not None:
                values[name] = parameters.integer(name, given[name], 1, MOST)
        values["dropout"] = parameters.number("dropout", given["dropout"])
        if not 0 <= values["dropout"] < 1:
            raise ParameterError(f"dropout: {values['dropout']} is not a share from 0 to below 1")
        values["lr"] = parameters.positive("lr", given["lr"])
        values["weight_decay"] = parameters.number("weight_decay", given["weight_decay"])
        if not values["weight_decay"] >= 0:
            raise ParameterError(f"weight_decay: {values['weight_decay']} is below 0")
        values["seed"] = parameters.seed(given["seed"])
        values["fanouts"] = _fanouts(given["fanouts"], values["layers"])
        values["model"] = checked(given["model"])
        return cls(**values)

    def importable(self, folder: Path) -> Self:
        """Return options whose model other processes can import. That of a notebook is written to ``model.py``."""
        if not in_notebook(self.model):
            return self
        folder.mkdir(exist_ok=True)
        file = folder / "model.py"
        _core.write_file(file, text_of(self.model).encode())  # type: ignore[arg-type]
        return replace(self, model=f"{file.resolve()}:{self.model.__name__}")  # type: ignore[union-attr]

    def to_json(self) -> str:
        """Return text that :meth:`from_json` reads in another process."""
        return json.dumps({**asdict(self), "model": import_path(self.model)})

    def stored(self) -> dict[str, Any]:
        """Return what a file can hold. A model that cannot be imported again is only named."""
        try:
            model = import_path(self.model)
        except ParameterError:
            model = getattr(self.model, "__qualname__", repr(self.model))
        return {**asdict(self), "model": model}

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what :meth:`to_json` wrote."""
        values = json.loads(text)
        return cls(**{**values, "fanouts": tuple(values["fanouts"])})


DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Options)} | {"fanouts": None}
"""Parameters of a method and their defaults."""


Function = TypeVar("Function", bound=Callable[..., Any])


def trains(function: Function) -> Function:
    """Decorate a training method that takes ``**training: Unpack[Training]`` or ``Unpack[BatchTraining]``."""
    return recorded(with_options(function, defaults=DEFAULTS))


def report_of(training: Mapping[str, Any], run: RunOptions, epochs: int) -> OnEpoch:
    """Return a function that tells the user about each new row of the history."""
    on_epoch = training.get("on_epoch")
    if on_epoch is not None and not callable(on_epoch):
        raise TypeError(f"on_epoch: expected a callable(row), got {type(on_epoch).__name__}")

    def report(row: dict[str, Any]) -> None:
        if run.progress is not None:
            run.progress("epoch", row["epoch"] + 1, epochs)
        if on_epoch is not None:
            on_epoch(dict(row))

    return report


def options_of(training: Mapping[str, Any]) -> tuple[Options, RunOptions]:
    """Return the options of the model and its training, and those of the run."""
    refuse_nested()
    return Options.of(training), RunOptions.of(training)


def _fanouts(given: Sequence[int] | None, layers: int) -> tuple[int, ...]:
    if given is None or (isinstance(given, tuple | list) and not given):
        return (FANOUT,) * layers
    fanouts = parameters.fanouts_of(given)
    if len(fanouts) != layers:
        raise ParameterError(f"fanouts: {len(fanouts)} numbers for {layers} layers")
    return fanouts
