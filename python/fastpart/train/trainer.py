"""A training as four choices: which batches, where they are made, what workers exchange, how their weights agree.

The methods of ``fastpart.train`` are presets of them. Nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from ..core.options import with_options
from ..core.parameters import CacheCriterion, NegativeRule, Of, RowsIo, StrPath, no_parameter
from ..errors import ParameterError
from ..runtime.environment import found
from .config import DEFAULTS as OF_MODEL
from .config import Call, methods_of
from .keywords import DEFAULTS as OF_RUN
from .keywords import BatchTraining, SamplingRule, ScoredTraining, TemporalRule, Training
from .libraries import import_torch

if TYPE_CHECKING:
    from ..partitions.partition import PartitionSource

DecoderName = Literal["dot", "mlp", "distmult", "complex", "rotate"]
PairDecoderName = Literal["cosine", "dot", "mlp"]
PoolRule = Literal["uniform", "degree", "batch", "all"]
Objective = Literal["softmax", "binary", "self_adversarial"]
Order = Literal["global", "parts"]
Policy = Literal["static", "lru"]
Exchange = Literal["always", "never"]
RowsSent = Literal["all", "boundary"]
Average = Literal["weights", "gradients"]

# Which batches.


@dataclass(frozen=True)
class Whole:
    """The whole graph, or the whole part of a worker, in one step."""


@dataclass(frozen=True)
class Neighbours:
    """Training vertices with sampled neighbours. Models may ask for clusters or walks (SAINT) instead."""

    sampling: SamplingRule = "uniform"
    temporal: TemporalRule | None = None


@dataclass(frozen=True)
class Pairs:
    """Pairs of vertices: training edges, and negatives for each, with sampled neighbours."""

    negatives: NegativeRule = "uniform"
    num_negatives: int = 1
    decoder: PairDecoderName = "cosine"
    candidates: int = 1000
    temporal: TemporalRule | None = None


@dataclass(frozen=True)
class Facts:
    """Training edges with their relations, and one sample of negatives for all edges of a step."""

    width: int = 100
    encoder: Any = None
    decoder: DecoderName = "distmult"
    reciprocal: bool = False
    objective: Objective = "softmax"
    negatives: PoolRule = "uniform"
    num_negatives: int = 512
    hard_negatives: Any = None
    num_hard_negatives: int = 8
    relation_weights: Mapping[str, float] | None = None
    candidates: int | None = None


# Where they are made.


@dataclass(frozen=True)
class Here:
    """In the worker, when a step begins."""


@dataclass(frozen=True)
class Ahead:
    """In threads of the worker, so many batches ahead of their use."""

    batches: int = 2


@dataclass(frozen=True)
class Scheduled:
    """In small tasks of the worker, launched by a score (ByteGNN). Rows come for so many batches at a time."""

    batches: int = 2
    trace: StrPath | None = None


@dataclass(frozen=True)
class BatchWorkers:
    """In processes of their own, so many steps ahead of their use (Armada)."""

    batch_workers: int = 1
    compute_workers: int | None = None
    order: Order = "global"
    hold: int | None = None
    ahead: int = 2


@dataclass(frozen=True)
class DGLServers:
    """By DGL: a server for each part, and samplers for each trainer (DistDGL)."""

    trainers_per_part: int = 1
    samplers: int = 0
    ip_config: StrPath | None = None


# What workers exchange.


@dataclass(frozen=True)
class Nothing:
    """Nothing but weights."""


@dataclass(frozen=True)
class InputRows:
    """Rows of features that batches need, beside those that a worker keeps, and rows that are learned."""

    cache: float | str | None = None
    cache_by: CacheCriterion = "access"
    resident: int | str | None = None
    io: RowsIo | None = None
    plan: StrPath | None = None
    policy: Policy = "static"
    embeddings: int | None = None


@dataclass(frozen=True)
class Totals:
    """Sums over the edges of each worker, added up at one copy of each vertex, now or late (DistGNN)."""

    delay: int = 0
    exchange: Exchange = "always"


@dataclass(frozen=True)
class Blocks:
    """Rows of whole parts in each layer, skipped while the copies are recent or close enough (SANCUS)."""

    rows: RowsSent = "all"
    max_age: int | None = None
    max_change: float | None = None
    period: int | None = None


def sampled_by(training: Mapping[str, Any]) -> tuple[Neighbours, InputRows, dict[str, Any]]:
    """Return the choices of workers that sample, by the parameters of a user, and the parameters that are left."""
    rest = dict(training)
    rows = InputRows(*map(rest.pop, ("cache", "cache_by", "resident", "io", "plan")))
    return Neighbours(rest.pop("sampling"), rest.pop("temporal", None)), rows, rest


def paired_by(training: Mapping[str, Any], pairs: Pairs) -> tuple[Pairs, dict[str, Any]]:
    """Return the choice of pairs, by the parameters of a user, and the parameters that are left."""
    rest = dict(training)
    return replace(pairs, temporal=rest.pop("temporal")), rest


# How weights agree.


@dataclass(frozen=True)
class Alone:
    """One process trains."""


@dataclass(frozen=True)
class GradientSum:
    """Gradients of all workers are added up in every step."""


@dataclass(frozen=True)
class ModelAverage:
    """Copies of the model, one for each part, are averaged after some epochs (SDT-GNN)."""

    of: Average = "weights"
    every: int = 1
    moments: bool = True
    parts: int | Literal["auto"] | None = None
    memory_per_worker: int | str | None = None


DEFAULTS = {**OF_MODEL, **OF_RUN}

Choices = tuple[type, type, type, type]


class Method(NamedTuple):
    """A combination that can be trained.

    Attributes
    ----------
    name : str
        Its name.
    room : str
        The package below ``fastpart.train`` with the class ``Driver`` of its module ``launch``. Workers that fastpart
        starts are of the class ``Worker`` of its module ``training``, or ``typed_training`` for a graph with types.
    over : {"vertices", "edges"} or None
        The items of the parts that it trains over. None: it ignores them.
    keywords : type
        The typed dictionary of its other parameters.
    without : mapping
        Those that it does not take, and why.
    """

    name: str
    room: str
    over: Of | None
    keywords: type
    without: Mapping[str, str] = MappingProxyType({})


_PER_PART = {
    "workers": "it starts one worker for each part. Partition into as many parts as there are workers"
}
_ALONE = {
    "workers": "it trains in one process. Train with sampled, or with sdt, to have several",
    "timeout": "it trains in one process, which waits for no other",
}
_OWN = {
    "workers": "batches are made and computed by different processes: pass batch_workers, compute_workers"
}
_RANKED = {
    "metrics": "its scores are MRR, Hits@k and AUC",
    "plan": "a plan is of batches of vertices",
}
_EMBEDDED = {
    "model": "pass encoder, or leave it out",
    "plan": "it is for graphs without types",
    "loss": "pass objective",
    "metrics": "its scores are MRR and Hits@k",
}
_DGL = {
    "workers": "DGL starts trainers for each part: pass trainers_per_part",
    "device": "DGL's servers are for CPUs. Train with sampled on GPUs",
    "timeout": "DGL decides how long its processes wait for each other",
}

METHODS: dict[Choices, Method] = {
    (Neighbours, Here, Nothing, Alone): Method("full", "centralized", None, BatchTraining, _ALONE),
    (Neighbours, Ahead, InputRows, GradientSum): Method(
        "sampled", "mini_batches", "vertices", ScoredTraining
    ),
    (Neighbours, Scheduled, InputRows, GradientSum): Method(
        "bytegnn", "mini_batches", "vertices", ScoredTraining
    ),
    (Neighbours, BatchWorkers, InputRows, GradientSum): Method(
        "armada", "disaggregated", "vertices", ScoredTraining, _OWN
    ),
    (Neighbours, DGLServers, InputRows, GradientSum): Method(
        "distdgl", "distributed", "vertices", BatchTraining, _DGL
    ),
    (Neighbours, Here, Nothing, ModelAverage): Method("sdt", "model_averaging", "vertices", BatchTraining),
    (Whole, Here, Totals, GradientSum): Method("distgnn", "full_graph", "edges", Training, _PER_PART),
    (Whole, Here, Blocks, GradientSum): Method("sancus", "full_graph", "vertices", Training, _PER_PART),
    (Pairs, Ahead, InputRows, GradientSum): Method(
        "links", "link_prediction", "vertices", BatchTraining, _RANKED
    ),
    (Facts, Ahead, InputRows, GradientSum): Method(
        "embeddings", "facts", "vertices", BatchTraining, _EMBEDDED
    ),
}

WITHOUT = {method.name: method.without for method in METHODS.values()}
"""The parameters that each method does not take, and why."""

ROOMS = {method.name: f"{__package__}.{method.room}" for method in METHODS.values()}
"""The package of each method."""

OVER = {method.name: method.over for method in METHODS.values()}
"""The items of the parts of each method."""


@dataclass(frozen=True)
class Trainer:
    """The description of a training: four choices. The methods of ``fastpart.train`` are descriptions with a name.

    Attributes
    ----------
    batches : Neighbours, Whole, Pairs or Facts
        Which batches there are.
    made : Here, Ahead, Scheduled, BatchWorkers or DGLServers
        Where batches are made.
    exchange : Nothing, InputRows, Totals or Blocks
        What workers send each other about vertices.
    sync : Alone, GradientSum or ModelAverage
        How the weights of the workers agree.

    Raises
    ------
    ParameterError
        The choices do not fit together.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> from fastpart.train import trainer
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    >>> labels = np.arange(12) // 6
    >>> splits = {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
    >>> fp.VertexPartition(labels, k=2).save(
    ...     folder, graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> sancus = fp.train.Trainer(
    ...     trainer.Whole(), trainer.Here(), trainer.Blocks(max_age=1), trainer.GradientSum()
    ... )
    >>> sancus.method, sancus.train(folder, epochs=20).summary["test_accuracy"]
    ('sancus', 1.0)
    """

    batches: Neighbours | Whole | Pairs | Facts
    made: Here | Ahead | Scheduled | BatchWorkers | DGLServers
    exchange: Nothing | InputRows | Totals | Blocks
    sync: Alone | GradientSum | ModelAverage

    def __post_init__(self) -> None:
        if self._choices not in METHODS:
            known = "; ".join(", ".join(each.__name__ for each in choices) for choices in METHODS)
            raise ParameterError(
                f"Trainer: {', '.join(each.__name__ for each in self._choices)} do not fit together. These do: {known}"
            )

    @property
    def _choices(self) -> Choices:
        return type(self.batches), type(self.made), type(self.exchange), type(self.sync)

    @property
    def method(self) -> str:
        """The name of the method with these choices."""
        return METHODS[self._choices].name

    @partial(with_options, defaults=DEFAULTS)
    def train(self, source: PartitionSource, **training: Unpack[ScoredTraining]) -> Any:
        """Train over a partition directory, with the parameters that all methods of these choices share.

        Parameters
        ----------
        source : path
            A partition directory, as the method takes it.
        **training
            As for the method. What it does not take is refused.

        Returns
        -------
        TrainedModel or TrainedLinks
            As from the method.
        """
        name, _, _, keywords, without = METHODS[self._choices]
        taken = [each for each in keywords.__annotations__ if each not in without]
        given: dict[str, Any] = {**training}
        if unknown := [each for each in given if each not in taken]:
            raise no_parameter(name, unknown[0], taken, without.get(unknown[0], ""))
        import_torch()
        launch = import_module(f"{ROOMS[name]}.launch")
        given = {each: given.get(each, DEFAULTS.get(each)) for each in keywords.__annotations__}
        ended = methods_of(given["callbacks"], "on_end")
        ranks = found()
        trained = launch.Driver(self, source, Call.of(given)).train()
        if ranks is None or ranks.rank == 0:
            for end in ended:
                end(trained)
        return trained
