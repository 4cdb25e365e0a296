"""The options of trainings, each described and checked once, without torch.

The options of a method are one object: what the network is made of and how it learns (:class:`Options`), where the
training is kept and who runs it (:class:`TrainOptions`), and what the method adds in its file in :mod:`.methods`. The
object is passed on whole, to the driver, to the workers and to the model.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from .. import _core
from ..core import parameters
from ..core.option_groups import FOUND, Accepts, Count, OptionGroup, Seed, Within
from ..core.options import RunOptions
from ..core.parameters import CacheCriterion, RowsIo, StrPath
from ..errors import ParameterError, arg
from ..partitions.loader_options import Fanouts
from .plugged import (
    PLUGGED,
    ModelSource,
    checked,
    import_path,
    in_notebook,
    is_network,
    metrics_of,
    name_of,
    pickled,
    plugged,
    text_of,
    unpickled,
)

FANOUT = 10
"""Default number of sampled neighbours per vertex and layer."""

OnEpoch = Callable[[dict[str, Any]], object]
"""Called with each new row of the history."""

Device = Literal["cpu", "cuda"]
Precision = Literal["float32", "float64", "bfloat16"]
Scores = Literal["exact", "sampled", "none"]
SamplingRule = Literal["uniform", "labor"]
Predicted = Literal["classes", "probabilities", "logits", "embeddings"]
TemporalRule = Literal["uniform", "last"]


def _share(name: str, value: Any) -> float:
    share = parameters.number(name, value)
    if not 0 <= share < 1:
        raise ParameterError(f"{name}: {share} is not a share from 0 to below 1")
    return share


def not_below_0(name: str, value: Any) -> float:
    """Return a number of at least 0."""
    number = parameters.number(name, value)
    if not number >= 0:
        raise ParameterError(f"{name}: {number} is below 0")
    return number


def model_source(name: str, value: Any) -> ModelSource:
    """Return a model that can be found. See :func:`.plugged.checked`."""
    return checked(value, name)


def _metrics(name: str, value: Any) -> Mapping[str, Any] | None:
    return metrics_of(value)


def name_of_a(what: str) -> Callable[[str, Any], str | None]:
    """Return what checks the name of a type or a relation, if one is given."""

    def name_or_none(name: str, value: Any) -> str | None:
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name}: expected the name of a {what}, got {type(value).__name__}")
        return value

    return name_or_none


def _fanouts(name: str, value: Any) -> Any:
    """Return checked fanouts. How many there are is checked with the layers."""
    if isinstance(value, Mapping):
        if not value:
            raise ParameterError("fanouts: no relation is named. Name those to sample")
        return {
            str(key[1] if isinstance(key, tuple) and len(key) == 3 else key): parameters.fanouts_of(each)
            for key, each in value.items()
        }
    return () if value is None or (isinstance(value, list) and not value) else parameters.fanouts_of(value)


@dataclass(frozen=True, kw_only=True)
class Options(OptionGroup):
    """The model and its training. Models get it as ``options``.

    Parameters
    ----------
    model : str, callable or torch.nn.Module
        A built-in model (graphsage, graphsage-gcn, gcn, gin, gine, gat, gatv2, transformer, sgc, clustergcn,
        graphsaint, ngnn, and for typed graphs rgcn, rgat, hgt, heterosage), an import path ``module:Class`` or
        ``file.py:Class``, a class that returns a ``torch.nn.Module`` for ``(task, options)``, or such a module, for
        example
        ``torch_geometric.nn.GraphSAGE(100, 64, 2, 16)``. Then ``layers`` is its number of hops. Workers compute the
        statistics of ``torch.nn.BatchNorm1d`` together. ``armada``, ``sdt`` and ``distdgl`` refuse it if they train
        several copies.
    hidden : int
        Width of the hidden layers. With attention, width of each head.
    layers : int
        Number of layers.
    heads : int
        Number of attention heads. Models without attention ignore it.
    dropout : float
        Share of the outputs of each hidden layer that is dropped.
    loss : callable, optional
        Called with outputs and labels, for example ``torch.nn.functional.cross_entropy`` or
        ``torch.nn.CrossEntropyLoss(weight=...)``. It returns one value for each row. One with ``reduction``, as those
        of torch, is asked for ``"none"``. A single value counts as the mean of its rows. The sum over all workers is
        divided by the number of rows, or by their weights if the loss has weights of classes. Default: cross entropy,
        of each class by itself in multi-label tasks.
    optimizer : callable, optional
        Called with the weights of the network, for example ``lambda weights: torch.optim.AdamW(weights, lr=0.001)``.
        Default: Adam with ``lr`` and ``weight_decay``.
    scheduler : callable, optional
        Called with the optimizer, for example ``lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 10)``. It
        steps once in each epoch. Default: the learning rate stays.
    clip : float, optional
        Largest norm of the gradients of all weights together. Larger ones are scaled down to it. Default: no limit.
    lr : float
        Learning rate of Adam.
    weight_decay : float
        Weight decay of Adam.
    precision : {"float32", "float64", "bfloat16"}
        Numbers that the layers compute with. With ``"bfloat16"``, as autocast of torch does: weights, sums over edges
        and losses stay float32.
    epochs : int
        Maximum number of epochs.
    eval_every : int
        Epochs from one validation to the next. Scores of the epochs between are null. The last epoch has some.
    metrics : mapping, optional
        What to measure beside accuracy and micro-F1, by name: callables that take outputs and labels and return one
        value for each row or their mean, or metrics of torchmetrics. The history gets a column ``val_NAME``, the
        summary ``val_NAME`` and ``test_NAME``.
    patience : int, optional
        Number of epochs without a better validation score (micro-F1) after which training ends. It needs validation
        vertices. Without any, the last epoch counts as the best.
    seed : int
        Seed of weights, dropout and samples.
    batch_size : int, optional
        Training vertices per step, of all workers together. None: all at once.
    fanouts : sequence of int, or mapping of them, optional
        Neighbours to sample per vertex in each hop, from the training vertices on. -1 takes all. Default: 10 each. In a
        graph with types, so many of each relation, or a mapping with a sequence for each relation that is sampled, as
        ``{"cites": [10, 5], "writes": [5, 5]}``.
    target : str, optional
        Their type. Default: the only one with labels and training vertices.

    Attributes
    ----------
    relation_fanouts : mapping of tuple or None
        The fanouts of each relation by its name, if they differ. Then ``fanouts`` are the largest of each hop.
    """

    together: ClassVar = {
        "network": "model hidden layers heads dropout precision",
        "learning": "loss optimizer scheduler clip lr weight_decay epochs eval_every metrics patience",
        "batches": "batch_size fanouts target",
    }
    model: Annotated[ModelSource, model_source] = "graphsage"
    hidden: Count = 64
    layers: Count = 2
    heads: Count = 4
    dropout: Annotated[float, _share] = 0.5
    loss: Annotated[Callable[..., Any] | None, plugged] = None
    optimizer: Annotated[Callable[..., Any] | None, plugged] = None
    scheduler: Annotated[Callable[..., Any] | None, plugged] = None
    clip: Annotated[float, parameters.positive] | None = None
    lr: Annotated[float, parameters.positive] = 0.01
    weight_decay: Annotated[float, not_below_0] = 5e-4
    precision: Precision = "float32"
    epochs: Count = 100
    eval_every: Count = 1
    metrics: Annotated[Mapping[str, Any] | None, _metrics] = None
    patience: Count | None = None
    seed: Seed = 0
    batch_size: Count | None = None
    fanouts: Annotated[tuple[int, ...], Accepts(Fanouts | None, _fanouts)] = None  # type: ignore[assignment]  # until __post_init__
    target: Annotated[str | None, name_of_a("type")] = None
    relation_fanouts: Annotated[Mapping[str, tuple[int, ...]] | None, FOUND] = None

    @property
    def labelled(self) -> str | None:
        """The name of what has the labels, if the user said it: a type of vertices."""
        return self.target

    def __post_init__(self) -> None:
        """Give each hop its fanout."""
        super().__post_init__()
        given: Any = self.fanouts
        if (of_relations := self.relation_fanouts) is not None:
            kept = {name: tuple(each) for name, each in of_relations.items()}
            object.__setattr__(self, "relation_fanouts", kept)
        if isinstance(given, Mapping):
            object.__setattr__(self, "relation_fanouts", given)
        elif given:
            given = {"": given}
        for each in (given or {}).values():
            if len(each) != self.layers:
                raise ParameterError(f"fanouts: {len(each)} numbers for {self.layers} layers")
        hops = zip(*given.values(), strict=True) if given else [(FANOUT,)] * self.layers
        most = tuple(-1 if -1 in of_hop else max(of_hop) for of_hop in hops)
        object.__setattr__(self, "fanouts", most)

    @property
    def of_model(self) -> Options:
        """These options without those of a subclass, such as callbacks, which models and results do not keep."""
        return Options(**{each.name: getattr(self, each.name) for each in fields(Options)})

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

    def sent(self) -> dict[str, Any]:
        """Return the fields as JSON, which :meth:`received` reads in another process. They are never stored."""
        objects = self.objects
        model = {} if "model" in objects else {"model": import_path(self.model)}
        values = {
            name: os.fsdecode(each) if isinstance(each, os.PathLike | bytes) else each
            for name, each in vars(self).items()
        }
        return {**values, **dict.fromkeys(objects), **model, "objects": pickled(objects)}

    @classmethod
    def received(cls, values: Mapping[str, Any]) -> Self:
        """Return what :meth:`sent` sent."""
        plain = {name: each for name, each in values.items() if name != "objects"}
        return cls(**{**plain, **unpickled(values["objects"])})

    def stored(self) -> dict[str, Any]:
        """Return what a file can hold of the model and its training. What the user plugs in is only named."""
        try:
            model = import_path(self.model)
        except ParameterError:
            model = name_of(self.model)
        named = {name: name_of(value) for name, value in self.objects.items()}
        return {**{each.name: getattr(self, each.name) for each in fields(Options)}, **named, "model": model}

    @classmethod
    def of_stored(cls, values: Mapping[str, Any]) -> Self:
        """Return what :meth:`stored` returned, without what the user has plugged in."""
        known = {name: value for name, value in values.items() if name not in PLUGGED}
        fanouts = known.pop("relation_fanouts", None) or known.get("fanouts")
        return replace(cls.checked({**known, "fanouts": fanouts, "model": cls.model}), model=values["model"])


CALLED = ("on_step", "on_epoch", "on_end")
"""Methods of callbacks."""


def methods_of(callbacks: Any, name: str) -> list[Callable[..., object]]:
    """Return a method of each object of the user that has it: ``on_step``, ``on_epoch`` or ``on_end``."""
    return [method for each in callbacks or () if callable(method := getattr(each, name, None))]


def _callbacks(name: str, value: Any) -> Sequence[Any] | None:
    if value is None:
        return None
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise TypeError(f"{name}: expected a list of objects, got {type(value).__name__}")
    for each in value:
        if isinstance(each, type):
            raise TypeError(f"{name}: {each.__name__} is a class. Pass an object of it")
        if not any(callable(getattr(each, method, None)) for method in CALLED):
            raise TypeError(f"{name}: a {type(each).__name__} has none of {', '.join(CALLED)}")
    return value


def _on_epoch(name: str, value: Any) -> OnEpoch | None:
    if value is not None and not callable(value):
        raise TypeError(f"{name}: expected a callable(row), got {type(value).__name__}")
    return value


@dataclass(frozen=True, kw_only=True)
class DataOptions(OptionGroup):
    """The data of a partition in memory.

    Parameters
    ----------
    features, labels, splits
        What a partition in memory is saved with, as :meth:`fastpart.VertexPartition.save` takes them. A partition
        directory has its own, and takes none.
    """

    features: Any = None
    labels: Any = None
    splits: Any = None

    @property
    def data(self) -> dict[str, Any]:
        """The data that the user passed, by the parameter of ``save``."""
        given = {name: getattr(self, name, None) for name in DATA}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def without_data(self) -> Self:
        """These options without the data, which are saved by then."""
        return replace(self, **dict.fromkeys(self.data))


PARTS, RUN, GRAPH = "parts", "run", "graph"
"""Names in the folder that a result holds: the partition directory, the training, and the directory of the graph."""

DATA = ("features", "labels", "splits", "edge_splits", "edge_labels", "edge_label_splits")
"""Parameters with the data of a partition in memory. Each method has those that it reads."""


@dataclass(frozen=True, kw_only=True)
class KeptOptions(OptionGroup):
    """Where a training is kept, and who runs it.

    Parameters
    ----------
    device : {"cpu", "cuda"}
        Where the workers compute. ``"cuda"`` gives each a GPU of its machine, and they communicate through NCCL. It
        ran on one GPU, never on several.
    out : path, optional
        A folder for ``checkpoint.pt``, ``best.pt`` (weights only) and ``history.parquet``. ``fastpart-run.json`` lists
        what belongs to the training. All else in the folder stays as it is. Its parent must exist.
    resume : bool
        Continue from the checkpoint in ``out``, if there is one. ``epochs``, ``patience`` and what does not change the
        losses may be different then.
    overwrite : bool
        Remove the training that ``out`` holds. Without this and ``resume`` it is refused.
    on_epoch : callable, optional
        Called with each new row of the history, a dict.
    callbacks : sequence, optional
        Objects with some of ``on_epoch(row)``, which gets each new row of the history, ``on_step(row)``, which gets
        ``epoch``, ``step`` and ``loss`` of all workers for each step of an epoch before that, and ``on_end(trained)``,
        which gets the result. They are called in this process. :mod:`fastpart.train.loggers` has some. Copies that
        ``sdt`` averages and trainers of ``distdgl`` have no steps in common, and report none.
    workers : int, optional
        Number of processes. Default: one per CPU, at most one per part. With GPUs: one per GPU, at most one per part.
    timeout : float
        Seconds that workers wait for each other. Then training ends with an error that names the one that hangs.
    baselines : bool
        Measure in the end what is reached without the network, on the same validation and test items: by the most
        frequent class, by label propagation, and by a perceptron without edges. They take at most 5 % of the time of
        the training, or a second. One that takes longer is left out, and the summary says why.
    """

    together: ClassVar = {
        "run": "device out resume overwrite on_epoch callbacks workers timeout",
        "learning": "baselines",
    }
    device: Device = "cpu"
    out: StrPath | None = None
    resume: bool = False
    overwrite: bool = False
    on_epoch: Annotated[OnEpoch | None, _on_epoch] = None
    callbacks: Annotated[Sequence[Any] | None, _callbacks] = None
    workers: Annotated[int, Within(1, 1 << 12)] | None = None
    timeout: Annotated[float, parameters.positive] = 1800.0
    baselines: bool = True


@dataclass(frozen=True, kw_only=True)
class TrainOptions(Options, DataOptions, KeptOptions, RunOptions):
    """The options of all methods.

    Parameters
    ----------
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. The threads are torch's, and all workers share them. The step of ``progress``
        is "epoch". The memory limit is for all processes of the training on this machine. What they need is stated
        before the start.

    Attributes
    ----------
    given : mapping
        What the user passed, by name.
    """

    given: Annotated[Mapping[str, Any], FOUND] = field(default_factory=dict)

    @property
    def epochs_per_round(self) -> int:
        """Epochs of a row of the history."""
        return 1

    @property
    def reports_steps(self) -> bool:
        """Whether a callback wants the losses of steps."""
        return bool(methods_of(self.callbacks, "on_step"))

    def report(self, row: dict[str, Any]) -> None:
        """Tell the user about a new row of the history."""
        row = dict(row)
        if self.progress is not None:
            self.progress("epoch", row["epoch"] + 1, self.epochs)
        for step, loss in enumerate(row.pop("steps", ())):
            for each in methods_of(self.callbacks, "on_step"):
                each({"epoch": row["epoch"], "step": step, "loss": loss})
        for told in filter(None, [self.on_epoch, *methods_of(self.callbacks, "on_epoch")]):
            told(dict(row))

    def sent(self) -> dict[str, Any]:
        """Return the fields as JSON. What is called in this process stays here."""
        here = replace(self, on_epoch=None, callbacks=None, progress=None, given={})
        return super(TrainOptions, here).sent()


@dataclass(frozen=True, kw_only=True)
class Scored(OptionGroup):
    """How a method validates that never computes the whole graph in a step.

    Parameters
    ----------
    scores : {"exact", "sampled", "none"}
        Scores of an epoch. ``"exact"``: of all validation vertices, with all neighbours. A layer computes the vertices
        that the next one needs, all of them unless few are validated. ``"sampled"``: of at most 8,192 validation
        vertices, the same in every epoch, with twice as many sampled neighbours as in training. Test scores at the end
        are exact. ``"none"``: there are no scores, and the last epoch counts as the best.
    """

    together: ClassVar = {"learning": "scores"}
    scores: Scores = "exact"

    def __post_init__(self) -> None:
        """Refuse patience where no epoch is better than another."""
        super().__post_init__()
        if self.scores == "none" and getattr(self, "patience", None) is not None:
            raise ParameterError(
                f"patience: with {arg('scores', 'none')} no epoch is better than another. Leave it out, or use "
                + arg("scores", "sampled")
            )


@dataclass(frozen=True, kw_only=True)
class Sampling(OptionGroup):
    """How neighbours are sampled.

    Parameters
    ----------
    sampling : {"uniform", "labor"}
        How neighbours are sampled: ``"uniform"`` without replacement, or ``"labor"`` (LABOR-0), which samples the same
        neighbours for many vertices and so fetches fewer rows, with as many neighbours on average.
    """

    together: ClassVar = {"batches": "sampling"}
    sampling: SamplingRule = "uniform"


@dataclass(frozen=True, kw_only=True)
class Temporal(OptionGroup):
    """Samples that do not look ahead.

    Parameters
    ----------
    temporal : {"uniform", "last"}, optional
        Sample only what was there before the time of a vertex or edge that is trained on, as for
        :meth:`fastpart.VertexPartition.loader`. Times come from the directory. Default: times do not count.
    """

    together: ClassVar = {"batches": "temporal"}
    temporal: TemporalRule | None = None


def cache_size(name: str, value: Any) -> float | str | None:
    """Return the size of a cache of rows, as :class:`.CacheSize` takes it."""
    from ..core.cache_size import CacheSize

    return None if value is None else CacheSize.of(value).given


def _resident(name: str, value: Any) -> int | None:
    return parameters.memory_size(value, name, 0)


def _plan(name: str, value: Any) -> str | None:
    return None if value is None else os.path.abspath(value)


@dataclass(frozen=True, kw_only=True)
class InputRows(OptionGroup):
    """How a worker gets rows of features, and which it keeps.

    Parameters
    ----------
    io : {"mmap", "direct"}, optional
        How files of features are read, as for :meth:`fastpart.VertexPartition.loader`: past the page cache by default
        if they are larger than the memory that is left. Losses stay the same.
    cache, cache_by
        Rows of other parts that each worker holds, a share of the rows of its parts or memory with its unit, as for
        :meth:`fastpart.VertexPartition.loader`. Losses stay the same.
    resident : int or str, optional
        Memory on ``device`` for features of each worker, as for :meth:`fastpart.VertexPartition.loader`.
    plan : Plan or path, optional
        A plan of the batches of all workers, from :meth:`fastpart.VertexPartition.plan`, or its folder: features are
        read from what it has packed, which is the fastest where they do not fit in memory. Losses stay the same.
    """

    together: ClassVar = {"fetching": "io plan cache cache_by resident"}
    io: RowsIo | None = None
    plan: Annotated[str | None, Accepts(StrPath | None, _plan)] = None
    cache: Annotated[float | str | None, cache_size] = None
    cache_by: CacheCriterion = "access"
    resident: Annotated[int | None, Accepts(int | str | None, _resident)] = None

    @property
    def keeps(self) -> int:
        """How many tables say which rows are kept: cached ones, and those on the device."""
        return bool(self.cache) + bool(self.resident)


def mixed(*numbers: int) -> int:
    """Return a seed of 63 bits, a hash of all numbers."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
