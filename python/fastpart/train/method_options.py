"""The options of each training method that differ from those of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from ..core import parameters
from ..core.option_groups import FOUND, Accepts, Count, Size, Within
from ..core.parameters import NegativeRule, StrPath
from ..errors import ParameterError, arg
from .options import (
    InputRows,
    Sampling,
    Scored,
    Scores,
    Temporal,
    TrainOptions,
    cache_size,
    model_source,
    name_of_a,
    not_below_0,
)
from .plugged import ModelSource

Order = Literal["global", "parts"]
Policy = Literal["static", "lru"]
Average = Literal["weights", "gradients"]
Exchange = Literal["always", "never"]
RowsSent = Literal["all", "boundary"]
DecoderName = Literal["dot", "mlp", "distmult", "complex", "rotate"]
PairDecoderName = Literal["cosine", "dot", "mlp"]
PoolRule = Literal["uniform", "degree", "batch", "all"]
Objective = Literal["softmax", "binary", "self_adversarial"]


@dataclass(frozen=True, kw_only=True)
class SampledOptions(TrainOptions, Scored, Sampling, InputRows, Temporal):
    """The options of ``sampled``."""

    together: ClassVar = {"fetching": "ahead"}
    ahead: Annotated[int, Within(0, 2**10)] = 2

    def __post_init__(self) -> None:
        """Refuse a second rule beside that of temporal samples."""
        super().__post_init__()
        if self.temporal is not None and self.sampling != "uniform":
            raise ParameterError(
                f"sampling: {arg(f'temporal={self.temporal!r}')} says how neighbours are sampled. Leave out "
                f"{arg(f'sampling={self.sampling!r}')}"
            )


def _trace(name: str, value: Any) -> Path | None:
    """Return the file for who did what when."""
    target = None if value is None else parameters.path(name, value)
    if target is not None and target.suffix != ".json":
        raise ParameterError(
            f"{name}: {parameters.shown(target)} is no .json file. Choose a name that ends with .json"
        )
    return target


@dataclass(frozen=True, kw_only=True)
class ByteGNNOptions(TrainOptions, Scored, Sampling, InputRows):
    """The options of ``bytegnn``."""

    together: ClassVar = {"fetching": "ahead", "run": "trace"}
    ahead: Annotated[int, Within(0, 2**10)] = 2
    trace: Annotated[Path | None, Accepts(StrPath | None, _trace)] = None


@dataclass(frozen=True, kw_only=True)
class ArmadaOptions(TrainOptions, Scored, Sampling):
    """The options of ``armada``."""

    together: ClassVar = {"fetching": "cache ahead"}
    batch_workers: Annotated[int, Within(1, 1 << 12)] = 1
    compute_workers: Annotated[int, Within(1, 1 << 12)] | None = None
    order: Order = "global"
    hold: int | None = None
    cache: Annotated[float | str, cache_size] = 0.0
    policy: Policy = "static"
    ahead: Annotated[int, Within(1, 2**10)] = 2
    settings: Annotated[str, FOUND] = ""


@dataclass(frozen=True, kw_only=True)
class DistDGLOptions(TrainOptions):
    """The options of ``distdgl``."""

    trainers_per_part: Annotated[int, Within(1, 1 << 10)] = 1
    samplers: Annotated[int, Within(0, 1 << 10)] = 0
    ip_config: StrPath | None = None


def _parts(name: str, value: Any) -> Any:
    if isinstance(value, str):
        return parameters.choice(name, value, ("auto",))
    return None if value is None else parameters.parts(value)


@dataclass(frozen=True, kw_only=True)
class SDTOptions(TrainOptions):
    """The options of ``sdt``."""

    average: Average = "weights"
    average_every: int = 1
    average_moments: bool = True
    parts: Annotated[int | Literal["auto"] | None, _parts] = None
    memory_per_worker: Size = None

    def __post_init__(self) -> None:
        """Refuse more epochs between two averages than there are."""
        super().__post_init__()
        parameters.integer("average_every", self.average_every, 1, self.epochs)

    @property
    def epochs_per_round(self) -> int:
        """Epochs of a row of the history."""
        return self.average_every


@dataclass(frozen=True, kw_only=True)
class DistGNNOptions(TrainOptions):
    """The options of ``distgnn``."""

    delay: Annotated[int, Within(0, 1000)] = 0
    exchange: Exchange = "always"

    def __post_init__(self) -> None:
        """Refuse a delay of messages that are not sent."""
        super().__post_init__()
        if self.exchange == "never" and self.delay:
            raise ParameterError(
                f"delay: {self.delay}, but {arg('exchange', 'never')} sends no messages. Leave one of them out"
            )


_EXACT = {"max_age": 0, "max_change": 0, "period": 1}
"""The least value of each bound. With it all rows are broadcast in every epoch."""


@dataclass(frozen=True, kw_only=True)
class SancusOptions(TrainOptions):
    """The options of ``sancus``."""

    max_age: Annotated[int, Within(0, 2**31 - 1)] | None = None
    max_change: Annotated[float, not_below_0] | None = None
    period: Annotated[int, Within(1, 2**31 - 1)] | None = None
    rows: RowsSent = "all"

    def __post_init__(self) -> None:
        """Refuse several bounds. One that is exact is none."""
        super().__post_init__()
        given = [name for name in _EXACT if getattr(self, name) is not None]
        if len(given) > 1:
            raise ParameterError(
                f"{', '.join(given)}: only one bound on staleness is possible. Pass one of them"
            )
        for name in given:
            if getattr(self, name) == _EXACT[name]:
                object.__setattr__(self, name, None)


def _relations(name: str, value: Any) -> tuple[str, ...] | None:
    """Return the names of relations. One may be given without a list."""
    if value is None:
        return None
    names = (value,) if isinstance(value, str) else tuple(value)
    if not names or not all(isinstance(each, str) for each in names):
        raise ParameterError(f"{name}: expected the name of a relation, or a list of names, got {value!r}")
    return names


@dataclass(frozen=True, kw_only=True)
class LinkOptions(TrainOptions, Temporal, InputRows):
    """The options of ``links``."""

    together: ClassVar = {
        "batches": "negatives num_negatives hard_negatives num_hard_negatives",
        "fetching": "ahead",
    }
    relation: Annotated[tuple[str, ...] | None, Accepts(str | Sequence[str] | None, _relations)] = None
    decoder: PairDecoderName = "cosine"
    negatives: NegativeRule = "uniform"
    num_negatives: Annotated[int, Within(1, 2**16)] = 1
    hard_negatives: StrPath | None = None
    num_hard_negatives: Annotated[int, Within(1, 2**16)] = 8
    embeddings: Annotated[int, Within(1, 2**16)] | None = None
    candidates: Count = 1000
    ahead: Annotated[int, Within(0, 2**10)] = 2

    @property
    def negatives_of_edge(self) -> int:
        """Most negatives that an edge is compared with."""
        return self.num_negatives + (0 if self.hard_negatives is None else self.num_hard_negatives)


@dataclass(frozen=True, kw_only=True)
class EdgeOptions(TrainOptions, InputRows):
    """The options of ``edges``."""

    together: ClassVar = {"fetching": "ahead"}
    relation: Annotated[str | None, name_of_a("relation")] = None
    ahead: Annotated[int, Within(0, 2**10)] = 2

    @property
    def labelled(self) -> str | None:
        """The name of what has the labels, if the user said it: a relation."""
        return self.relation

    @property
    def scores(self) -> Scores:
        """How an epoch is scored: exactly, of all validation records."""
        return "exact"


@dataclass(frozen=True, kw_only=True)
class EmbeddingOptions(TrainOptions, InputRows):
    """The options of ``embeddings``."""

    together: ClassVar = {
        "batches": "negatives num_negatives hard_negatives num_hard_negatives",
        "fetching": "ahead",
    }
    width: Annotated[int, Within(1, 2**16)] = 100
    encoder: Annotated[ModelSource, model_source] | None = None
    decoder: DecoderName = "distmult"
    reciprocal: bool = False
    objective: Objective = "softmax"
    negatives: PoolRule = "uniform"
    num_negatives: Annotated[int, Within(1, 2**24)] = 512
    hard_negatives: StrPath | None = None
    num_hard_negatives: Annotated[int, Within(1, 2**16)] = 8
    relation_weights: Mapping[str, float] | None = None
    candidates: Count | None = None
    ahead: Annotated[int, Within(0, 2**10)] = 2
    encoded: Annotated[bool, FOUND] = False

    @property
    def row_width(self) -> int:
        """Width of the rows that the decoder gets."""
        return self.hidden if self.encoded else self.width
