"""The parameters of all training methods, checked in one place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from .. import parameters
from ..errors import ParameterError
from .model_source import ModelSource, import_path

MOST = 2**31 - 1
"""Largest accepted count."""

FANOUT = 10
"""Default number of neighbours that are sampled of each vertex per layer."""


@dataclass(frozen=True)
class Options:
    """Parameters of the model and of its training.

    Attributes
    ----------
    model : str or callable
        A name in ``fastpart.train.models.MODELS``, an import path ``module:Class`` or ``file.py:Class``, or the class.
    hidden, layers, heads : int
        Width of hidden layers (per head), number of layers, heads of attention.
    dropout : float
        Share of the outputs of each hidden layer that is dropped in training.
    lr, weight_decay : float
        Learning rate and weight decay of Adam.
    epochs : int
        Maximum number of epochs.
    batch_size : int or None
        Training vertices per step. None: all at once.
    fanouts : tuple of int
        Neighbours sampled per layer in mini-batches, first layer first; -1 takes all.
    patience : int or None
        Training ends after so many epochs without a better validation score.
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
    def of(cls, given: dict[str, Any]) -> Options:
        """Check the parameters of a user."""
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
        if not (isinstance(given["model"], str) or callable(given["model"])):
            raise TypeError(f"model: expected a name or a class, got {type(given['model']).__name__}")
        return cls(**values)

    def to_json(self) -> str:
        """Return text that :meth:`from_json` reads in another process."""
        return json.dumps({**asdict(self), "model": import_path(self.model)})

    def identity(self) -> str:
        """Return :meth:`to_json`, or text like it if no other process finds the model."""
        try:
            return self.to_json()
        except ParameterError:
            return json.dumps(
                {**asdict(self), "model": getattr(self.model, "__qualname__", repr(self.model))}
            )

    @classmethod
    def from_json(cls, text: str) -> Options:
        """Return what :meth:`to_json` wrote."""
        values = json.loads(text)
        return cls(**{**values, "fanouts": tuple(values["fanouts"])})


NAMES = tuple(field.name for field in fields(Options))


def _fanouts(given: Sequence[int] | None, layers: int) -> tuple[int, ...]:
    if given is None or (isinstance(given, tuple | list) and not given):
        return (FANOUT,) * layers
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise TypeError(f"fanouts: expected one integer per layer, got {type(given).__name__}")
    fanouts = tuple(parameters.integer("fanouts", fanout, -1, MOST) for fanout in given)
    if len(fanouts) != layers:
        raise ParameterError(f"fanouts: {len(fanouts)} numbers for {layers} layers")
    return fanouts
