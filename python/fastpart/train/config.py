"""The parameters of all training methods, checked in one place."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from .. import _core
from ..core import parameters
from ..core.options import RunOptions
from ..core.parameters import StrPath
from ..errors import ParameterError
from .keywords import DEVICES, PRECISIONS, SCORES, Device, OnEpoch, Precision, Scores
from .plugged.model_source import ModelSource, checked, import_path, refuse_nested
from .plugged.notebooks import in_notebook, text_of
from .plugged.objects import PLUGGED, is_network, metrics_of, name_of, pickled, plugged, unpickled

MOST = 2**31 - 1
"""Largest accepted count."""

FANOUT = 10
"""Default number of sampled neighbours per vertex and layer."""


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
    precision : str
        Numbers that layers compute with.
    epochs : int
        Maximum number of epochs.
    batch_size : int or None
        Training vertices per step. None: all at once.
    fanouts : tuple of int
        Neighbours to sample per vertex in each hop, from the training vertices on. -1 takes all. In a typed graph, so
        many of each relation.
    relation_fanouts : mapping of tuple or None
        Those of each relation by its name, if they differ. Then ``fanouts`` are the largest of each hop.
    target : str or None
        The type of the vertices with labels in a typed graph.
    patience : int or None
        Number of epochs without a better validation score after which training ends.
    seed : int
        Seed of weights, dropout and samples.
    loss, optimizer, scheduler : callable or None
        What the user plugs in. See :class:`.keywords.Learning`.
    clip : float or None
        Largest norm of the gradients.
    metrics : mapping or None
        What the user measures beside accuracy and micro-F1.
    eval_every : int
        Epochs from one validation to the next.
    """

    model: ModelSource = "graphsage"
    hidden: int = 64
    layers: int = 2
    heads: int = 4
    dropout: float = 0.5
    lr: float = 0.01
    weight_decay: float = 5e-4
    precision: Precision = "float32"
    epochs: int = 100
    batch_size: int | None = None
    fanouts: tuple[int, ...] = ()
    relation_fanouts: Mapping[str, tuple[int, ...]] | None = None
    target: str | None = None
    patience: int | None = None
    seed: int = 0
    loss: Callable[..., Any] | None = None
    optimizer: Callable[..., Any] | None = None
    scheduler: Callable[..., Any] | None = None
    clip: float | None = None
    eval_every: int = 1
    metrics: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Check the arguments of a user. Other names are ignored."""
        given = {name: given.get(name, default) for name, default in DEFAULTS.items()}
        values = dict(given)
        for name in ("hidden", "layers", "heads", "epochs", "eval_every"):
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
        values["precision"] = parameters.choice("precision", given["precision"], PRECISIONS)
        values["seed"] = parameters.seed(given["seed"])
        values["clip"] = None if given["clip"] is None else parameters.positive("clip", given["clip"])
        for name in ("loss", "optimizer", "scheduler"):
            values[name] = plugged(name, given[name])
        values["metrics"] = metrics_of(given["metrics"])
        values |= _fanouts(given["fanouts"], values["layers"])
        if given["target"] is not None and not isinstance(given["target"], str):
            raise TypeError(f"target: expected the name of a type, got {type(given['target']).__name__}")
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

    @property
    def objects(self) -> dict[str, Any]:
        """What the user plugs in, by name: a network, a loss, and what makes an optimizer and a scheduler."""
        found = {name: getattr(self, name) for name in PLUGGED if getattr(self, name) is not None}
        return found | ({"model": self.model} if is_network(self.model) else {})

    def to_json(self) -> str:
        """Return text that :meth:`from_json` reads in another process of this training. It is never stored."""
        objects = self.objects
        model = {} if "model" in objects else {"model": import_path(self.model)}
        return json.dumps({**vars(self), **dict.fromkeys(objects), **model, "objects": pickled(objects)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what :meth:`to_json` wrote."""
        values = json.loads(text)
        objects = unpickled(values.pop("objects"))
        return cls(**{**values, **_of_json(values), **objects})

    def stored(self) -> dict[str, Any]:
        """Return what a file can hold. What the user plugs in is only named."""
        try:
            model = import_path(self.model)
        except ParameterError:
            model = name_of(self.model)
        named = {name: name_of(value) for name, value in self.objects.items()}
        return {**vars(self), **named, "model": model}

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> Self:
        """Return what :meth:`stored` returned, without what the user has plugged in."""
        known = {name: value for name, value in values.items() if name not in PLUGGED}
        fanouts = known.get("relation_fanouts") or known.get("fanouts") or None
        cls.of({**known, "fanouts": fanouts, "model": cls.model})
        return cls(**{**known, **_of_json(values)})


DEFAULTS: dict[str, Any] = {
    **{field.name: field.default for field in fields(Options) if field.name != "relation_fanouts"},
    "fanouts": None,
}
"""Parameters of a method and their defaults."""


def report_of(training: Mapping[str, Any], run: RunOptions, epochs: int) -> OnEpoch:
    """Return a function that tells the user about each new row of the history."""
    on_epoch = training.get("on_epoch")
    if on_epoch is not None and not callable(on_epoch):
        raise TypeError(f"on_epoch: expected a callable(row), got {type(on_epoch).__name__}")
    told = [on_epoch, *methods_of(training.get("callbacks"), "on_epoch")]
    stepped = methods_of(training.get("callbacks"), "on_step")

    def report(row: dict[str, Any]) -> None:
        row = dict(row)
        if run.progress is not None:
            run.progress("epoch", row["epoch"] + 1, epochs)
        losses = row.pop("steps", ())
        for step, loss in enumerate(losses):
            for each in stepped:
                each({"epoch": row["epoch"], "step": step, "loss": loss})
        for each in filter(None, told):
            each(dict(row))

    return report


CALLED = ("on_step", "on_epoch", "on_end")
"""Methods of callbacks."""


def methods_of(callbacks: Any, name: str) -> list[Callable[..., object]]:
    """Return a method of each object of the user that has it: ``on_step``, ``on_epoch`` or ``on_end``."""
    if callbacks is None:
        return []
    if not isinstance(callbacks, Sequence) or isinstance(callbacks, str):
        raise TypeError(f"callbacks: expected a list of objects, got {type(callbacks).__name__}")
    for each in callbacks:
        if isinstance(each, type):
            raise TypeError(f"callbacks: {each.__name__} is a class. Pass an object of it")
        if not any(callable(getattr(each, method, None)) for method in CALLED):
            raise TypeError(f"callbacks: a {type(each).__name__} has none of {', '.join(CALLED)}")
    return [method for each in callbacks if callable(method := getattr(each, name, None))]


@dataclass(frozen=True)
class Call:
    """The checked parameters that a user gave to a method, but for those of the method alone.

    Attributes
    ----------
    given : mapping
        All of them, as they were given.
    options, run
        Those of the model and its training, and those of the run.
    report : callable
        Tells the user about each new row of the history.
    """

    given: Mapping[str, Any]
    options: Options
    run: RunOptions
    report: OnEpoch

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Check the parameters."""
        refuse_nested()
        options, run = Options.of(given), RunOptions.of(given)
        return cls(given, options, run, report_of(given, run, options.epochs))

    @property
    def out(self) -> StrPath | None:
        """The folder of the history."""
        return self.given["out"]

    @property
    def resume(self) -> bool:
        """Whether to continue from the checkpoint there."""
        return parameters.flag("resume", self.given["resume"])

    @property
    def overwrite(self) -> bool:
        """Whether to remove the training there."""
        return parameters.flag("overwrite", self.given["overwrite"])

    @property
    def scores(self) -> Scores:
        """How epochs are scored."""
        scores = parameters.choice("scores", self.given["scores"], SCORES)
        if scores == "none" and self.options.patience is not None:
            raise ParameterError(
                'patience: with scores="none" no epoch is better than another. Leave it out, or use scores="sampled"'
            )
        return scores

    @property
    def steps(self) -> bool:
        """Whether a callback wants the losses of steps."""
        return bool(methods_of(self.given["callbacks"], "on_step"))

    @property
    def device(self) -> Device:
        """Where workers compute."""
        return parameters.choice("device", self.given["device"], DEVICES)

    @property
    def timeout(self) -> float:
        """Seconds that workers wait for each other."""
        return parameters.positive("timeout", self.given["timeout"])

    @property
    def workers(self) -> int | None:
        """How many processes the user asked for."""
        asked = self.given["workers"]
        return None if asked is None else parameters.integer("workers", asked, 1, 1 << 12)


def _fanouts(given: Any, layers: int) -> dict[str, Any]:
    """Return the fanouts of each hop, and those of each relation by its name."""
    if given is None or (isinstance(given, tuple | list) and not given):
        return {"fanouts": (FANOUT,) * layers}
    if not isinstance(given, Mapping):
        return {"fanouts": _of_layers(given, layers)}
    of_relations = {
        str(name[1] if isinstance(name, tuple) and len(name) == 3 else name): _of_layers(each, layers)
        for name, each in given.items()
    }
    if not of_relations:
        raise ParameterError("fanouts: no relation is named. Name those to sample")
    hops = zip(*of_relations.values(), strict=True)
    most = tuple(-1 if -1 in of_hop else max(of_hop) for of_hop in hops)
    return {"fanouts": most, "relation_fanouts": of_relations}


def _of_layers(given: Any, layers: int) -> tuple[int, ...]:
    fanouts = parameters.fanouts_of(given)
    if len(fanouts) != layers:
        raise ParameterError(f"fanouts: {len(fanouts)} numbers for {layers} layers")
    return fanouts


def _of_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return fanouts that a file holds as they were."""
    of_relations = values.get("relation_fanouts")
    return {
        "fanouts": tuple(values["fanouts"]),
        "relation_fanouts": of_relations and {name: tuple(each) for name, each in of_relations.items()},
    }
