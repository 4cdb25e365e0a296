"""The options of loaders and plans, each documented once, and what functions of partitions have in common.

The groups without descriptions only say which parameters users may pass in objects. Functions describe these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, cast

from ..core import parameters
from ..core.cache_size import CacheSize
from ..core.option_groups import Accepts, Count, OptionGroup, Seed, Size, Within
from ..core.options import RunOptions
from ..core.parameters import CacheCriterion, RowsIo, StrPath
from ..errors import ParameterError
from ..machines.engine import Engine

Sampling = Literal["uniform", "weighted", "labor"]

Temporal = Literal["uniform", "last"]

Remote = Literal["maps", "messages"]

EdgeKey = tuple[str, str, str]
"""Type of the sources, name of the relation, and type of the targets, as PyG writes it."""

Fanouts = Sequence[int] | Mapping[str, Sequence[int]] | Mapping[EdgeKey, Sequence[int]]


def _cache(name: str, value: Any) -> CacheSize | None:
    return None if value is None else CacheSize.of(value)


@dataclass(frozen=True, kw_only=True)
class BoundOptions(OptionGroup):
    """The bounds of partitioners, which :func:`fastpart.multilevel` describes."""

    together: ClassVar = {
        "bounds": "balance min_balance volume_balance balance_on balance_on_ratio sizes fixed connected on_infeasible"
    }

    balance: float | None = None
    min_balance: float | None = None
    volume_balance: float | None = None
    balance_on: Any = None
    balance_on_ratio: float = 1.05
    sizes: Sequence[float] | None = None
    fixed: Any = None
    connected: bool = False
    on_infeasible: Literal["warn", "error"] = "warn"


@dataclass(frozen=True, kw_only=True)
class PlaceOptions(OptionGroup):
    """Where and how long a partition is made or saved, which :func:`fastpart.partition` describes."""

    together: ClassVar = {"run": "time_limit checkpoints cluster shared overwrite"}

    time_limit: float | None = None
    checkpoints: StrPath | None = None
    cluster: str | Engine | None = None
    shared: StrPath | None = None
    overwrite: bool = False


@dataclass(frozen=True, kw_only=True)
class HopOptions(OptionGroup):
    """Fanouts, seeds and rows of batches, which :meth:`Loadable.loader` describes."""

    together: ClassVar = {"batches": "fanouts input", "fetching": "plan row_bytes"}

    fanouts: Fanouts | None = None
    input: str | None = None
    plan: StrPath | None = None
    row_bytes: int | Mapping[str, int] | None = None


@dataclass(frozen=True, kw_only=True)
class SeedOptions(OptionGroup):
    """The seeds of each step.

    Parameters
    ----------
    batch_size : int
        Seeds of a step on all ranks together.
    shuffle : bool, optional
        Permute the seeds in every epoch. Default: only those of "train".
    drop_last : bool
        Leave out the last step if it has fewer than ``batch_size`` seeds.
    """

    together: ClassVar = {"batches": "batch_size shuffle drop_last"}
    batch_size: Count = 1000
    shuffle: bool | None = None
    drop_last: bool = False


@dataclass(frozen=True, kw_only=True)
class RankOptions(OptionGroup):
    """Who loads.

    Parameters
    ----------
    rank, world_size : int, optional
        This rank, and the number of ranks. Rank r takes the parts p with ``p * world_size // k == r``. Default:
        those of ``torch.distributed`` if it is initialized, else one rank.
    """

    together: ClassVar = {"run": "rank world_size"}
    rank: int | None = None
    world_size: int | None = None


@dataclass(frozen=True, kw_only=True)
class SamplingOptions(OptionGroup):
    """How neighbours are sampled.

    Parameters
    ----------
    sampling : {"uniform", "weighted", "labor"}
        Probabilities of in-edges: all subsets alike, in proportion to ``weights``, or by LABOR-0,
        which gives fewer distinct sources.
    weights : array or path of a .npy, optional
        One number per record, shape (m,), for ``sampling="weighted"``. Both directions of an undirected record have
        its weight.
    seed : int
        Seed of the order and of all samples.
    merged : bool
        A vertex occurs once in a batch, as in PyG, instead of once in a level. Losses then depend on the partition.
    """

    together: ClassVar = {"batches": "sampling weights merged"}
    sampling: Sampling = "uniform"
    weights: Any = None
    seed: Seed = 0
    merged: bool = False


@dataclass(frozen=True, kw_only=True)
class TemporalOptions(OptionGroup):
    """Samples that do not look ahead.

    Parameters
    ----------
    temporal : {"uniform", "last"}, optional
        Sample only what was there before the time of a seed, in every hop: in-edges whose time, the later one of their
        own and of their source's, is strictly earlier. All subsets alike, or the latest ones, of equal times those of
        later records. What has no time was always there. Default: times do not count.
    input_time : array, optional
        A time for each seed, for ``temporal``: whole numbers, in the order of the ids that are passed. A vertex may be
        a seed several times. Default: the times that the directory has.
    """

    together: ClassVar = {"batches": "temporal input_time"}
    temporal: Temporal | None = None
    input_time: Any = None


@dataclass(frozen=True, kw_only=True)
class FetchingOptions(OptionGroup):
    """Where features come from.

    Parameters
    ----------
    remote : {"maps", "messages"}, optional
        How a rank gets features of parts of other ranks: from their files, or from the ranks by messages. Default:
        messages for parts whose features are not on this machine.
    timeout : float
        Seconds to wait for messages of another rank. Then an error is raised.
    io : {"mmap", "direct"}, optional
        How files of features are read: from maps, or past the page cache, 128 reads at a time. It never changes a
        batch. Default: ``"direct"`` if the files are larger than the memory that is left. File systems that refuse
        direct reads, as tmpfs does, are mapped.
    cache : float or str, optional
        How many rows of other parts a rank holds in memory: a share of the rows of its parts, from 0 to 1, or a size
        with its unit for each of its parts, such as ``"200M"``. It never changes a batch. Rows that are read from
        files are only counted as cached. Default: the rows that :meth:`~fastpart.VertexPartition.save_cache` listed, if
        others come by messages.
        With features of in-edges, as much again is for these: those of the vertices that need them most, over types by
        relation.
    cache_by : {"access", "degree", "links", "halo"}
        Which rows: those in the most batches by :func:`fastpart.predict_traffic`, those of the highest in-degree,
        those with the most edges into the part, or all that have such an edge, for any ``cache``.
    device : torch.device or str, optional
        Where the tensors of a batch are. Default: the CPU.
    resident : int or str, optional
        Memory on ``device`` for features, in bytes or as text such as ``"4G"``. Rows of the rank's parts and those
        that it caches stay there, the most accessed if not all fit. Only the others are copied for each batch. It
        never changes a batch. Default: half of the free memory of a GPU, and 0 on the CPU.
    """

    together: ClassVar = {"fetching": "remote io cache cache_by resident", "run": "timeout device"}
    remote: Remote | None = None
    timeout: Annotated[float, parameters.positive] = 1800.0
    io: RowsIo | None = None
    cache: Annotated[CacheSize | None, Accepts(float | str | None, _cache)] = None
    cache_by: CacheCriterion = "access"
    device: Any = None
    resident: Size = None


@dataclass(frozen=True, kw_only=True)
class MakingOptions(OptionGroup):
    """How batches are made.

    Parameters
    ----------
    edge_ids : bool
        Give ``e_id`` and ``edge_attr``. Without them batches are made faster.
    ahead : int
        Batches that are made ahead of their use, in threads. 0 makes each when it is asked for. Rows of other ranks
        come for so many batches at a time. What several of them need is sent once.
    threads : int
        Threads that make them.
    scheduled : bool
        Make batches as ByteGNN does: as small tasks of several batches at a time, launched as fast as they are
        used. The free memory bounds how many wait for their use, not ``ahead``. It never changes a batch.
    neighbourhood : callable, optional
        A sampler of your own, for ``scheduled=True``: ``neighbourhood(seeds, epoch, step)`` gets the rows of the
        seeds, as in ``Batch.rows``, and returns a :class:`fastpart.loading.Sample` with a hop for each of
        ``fanouts``. Several threads call it. In a graph with types it gets the rows of the seeds of each type, and all
        fields of the sample are lists, by type or relation.
    trace : fastpart.loading.Trace, optional
        Gets who did what when, for ``scheduled=True``. ``trace.save("trace.json")`` writes it for Chrome's trace
        viewer.
    """

    together: ClassVar = {
        "batches": "edge_ids neighbourhood",
        "fetching": "ahead",
        "run": "threads scheduled trace",
    }
    edge_ids: bool = True
    ahead: Annotated[int, Within(0, 2**10)] = 2
    threads: Annotated[int, Within(1, 2**10)] = 1
    scheduled: bool = False
    neighbourhood: Callable[[Any, int, int], Any] | None = None
    trace: Any = None


@dataclass(frozen=True, kw_only=True)
class EpochOptions(SeedOptions, SamplingOptions, TemporalOptions):
    """What decides the batches of an epoch."""


@dataclass(frozen=True, kw_only=True)
class LoaderOptions(EpochOptions, RankOptions, FetchingOptions, MakingOptions):
    """The options of loaders."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions(EpochOptions, RunOptions):
    """What decides the batches of a plan, and how it is made."""


Negatives = int | str | Mapping[str, Any]
"""A number of uniform negatives, numbers by kind, or a kind, which then has its default number."""


@dataclass(frozen=True, kw_only=True)
class NegativeOptions(OptionGroup):
    """The negatives of each edge.

    Parameters
    ----------
    negatives : int, str or mapping
        Negatives of each edge: a number of uniform ones, or numbers of the kinds uniform, degree and batch with a table
        of hard ones, such as ``{"uniform": 8, "batch": 8, "hard": table}``. A kind alone has its default number.
        ``"uniform"``: from all vertices alike. ``"degree"``: from all by the number of their edges, among those of the
        loader or the training, to the power of 0.75 (as in word2vec). ``"batch"``: ends of other edges of the step, of
        all ranks, so that frequent targets are frequent negatives. ``"hard"``: from a table of wrong targets.
    num_hard_negatives : int
        How many of the targets in the table of ``"hard"`` negatives an edge gets, with replacement.
    """

    together: ClassVar = {"batches": "negatives num_hard_negatives"}
    negatives: Negatives = 1
    num_hard_negatives: Annotated[int, Within(1, 2**16)] = 8

    usual: ClassVar[Mapping[str, int | str]] = {"uniform": 1, "degree": 1, "batch": 1, "local": 1}
    """The kinds in the order of the negatives, with their default numbers."""

    complete: ClassVar[tuple[str, ...]] = ()
    """The kinds whose number may be "all"."""

    most: ClassVar[int] = 2**16

    def __post_init__(self) -> None:
        """Replace all forms of ``negatives`` by numbers by kind, without zeros, and the table of hard ones."""
        super().__post_init__()
        given: Any = self.negatives
        if given == "all" and self.complete:
            given = {"uniform": "all"}
        elif isinstance(given, str):
            given = {given: self.usual[parameters.choice("negatives", given, self.usual)]}
        elif not isinstance(given, Mapping):
            given = {"uniform": parameters.integer("negatives", given, 0, self.most)}
        for kind in given:
            parameters.choice("negatives", kind, (*self.usual, "hard"))
        found = {kind: self._number(kind, given[kind]) for kind in self.usual if kind in given}
        found = {kind: number for kind, number in found.items() if number}
        if (hard := given.get("hard")) is not None:
            found["hard"] = os.fsdecode(hard) if isinstance(hard, os.PathLike | bytes) else hard
        object.__setattr__(self, "negatives", found)

    def _number(self, kind: str, number: Any) -> int | str:
        if isinstance(number, str) and kind in self.complete:
            return parameters.choice(f"negatives: {kind}", number, ("all",))
        return parameters.integer(f"negatives: {kind}", number, 0, self.most)

    @property
    def numbers(self) -> dict[str, Any]:
        """Numbers of negatives by kind, without the hard ones."""
        kinds = cast("dict[str, Any]", self.negatives)
        return {kind: number for kind, number in kinds.items() if kind != "hard"}

    @property
    def hard(self) -> Any:
        """The table of hard negatives, or its file. None: there is none."""
        return cast("dict[str, Any]", self.negatives).get("hard")

    def refuse_only_hard(self) -> None:
        """Refuse a training that has no negatives where the table has none."""
        if not self.numbers:
            kinds = ", ".join(map(repr, self.usual))
            raise ParameterError(
                f"negatives: an edge needs some that are in no table. Pass a number of them, or one of {kinds}"
            )


@dataclass(frozen=True, kw_only=True)
class LinkOptions(NegativeOptions, LoaderOptions):
    """The options of loaders of edges.

    Parameters
    ----------
    negatives
        They have the source of their positive. There is also ``"local"``: from the parts of this rank, which needs no
        rows of other parts, but is biased: negatives are near their sources, and depend on the partition. The table of
        ``"hard"`` is an array of ids of sources and wrong targets, of shape (rows, 2). Where it has no targets of a
        source, or only ends of the edge, uniform ones take their place.
    """
