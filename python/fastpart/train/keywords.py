"""The keyword parameters that training methods share, each documented once, without torch.

A method takes those of its typed dictionary under the decorator :func:`.preset.preset`, which writes them into its
signature and its docstring.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, get_args

from ..core.options import Options as CallOptions
from ..core.parameters import CacheCriterion, RowsIo, StrPath
from ..partitions.loader_options import Fanouts
from .plugged.model_source import ModelSource

OnEpoch = Callable[[dict[str, Any]], object]
"""Called with each new row of the history."""

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = get_args(Device)

Precision = Literal["float32", "float64", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

Scores = Literal["exact", "sampled", "none"]
SCORES: tuple[Scores, ...] = get_args(Scores)

SamplingRule = Literal["uniform", "labor"]
SAMPLING_RULES: tuple[SamplingRule, ...] = get_args(SamplingRule)

TemporalRule = Literal["uniform", "last"]
TEMPORAL_RULES: tuple[TemporalRule, ...] = get_args(TemporalRule)


class Learning(TypedDict, total=False):
    """The model and its training.

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
    device : {"cpu", "cuda"}
        Where the workers compute. ``"cuda"`` gives each a GPU of its machine, and they communicate through NCCL. It
        ran on one GPU, never on several.
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
    """

    model: ModelSource
    hidden: int
    layers: int
    heads: int
    dropout: float
    loss: Callable[..., Any] | None
    optimizer: Callable[..., Any] | None
    scheduler: Callable[..., Any] | None
    clip: float | None
    lr: float
    weight_decay: float
    precision: Precision
    device: Device
    epochs: int
    eval_every: int
    metrics: Mapping[str, Any] | None
    patience: int | None


class Batches(TypedDict, total=False):
    """The size of mini-batches.

    Parameters
    ----------
    batch_size : int, optional
        Training vertices per step, of all workers together. None: all at once.
    fanouts : sequence of int, or mapping of them, optional
        Neighbours to sample per vertex in each hop, from the training vertices on. -1 takes all. Default: 10 each. In a
        graph with types, so many of each relation, or a mapping with a sequence for each relation that is sampled, as
        ``{"cites": [10, 5], "writes": [5, 5]}``.
    """

    batch_size: int | None
    fanouts: Fanouts | None


class Training(Learning, CallOptions, total=False):
    """What all methods take.

    Parameters
    ----------
    seed : int
        Seed of weights, dropout and samples.
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
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. The threads are torch's, and all workers share them. The step of ``progress``
        is "epoch". The memory limit is for all processes of the training on this machine. What they need is stated
        before the start.
    """

    seed: int | None
    out: StrPath | None
    resume: bool
    overwrite: bool
    on_epoch: OnEpoch | None
    callbacks: Sequence[Any] | None
    workers: int | None
    timeout: float


class Scored(TypedDict, total=False):
    """How a method validates that never computes the whole graph in a step.

    Parameters
    ----------
    scores : {"exact", "sampled", "none"}
        Scores of an epoch. ``"exact"``: of all validation vertices, with all neighbours. A layer computes the vertices
        that the next one needs, all of them unless few are validated. ``"sampled"``: of at most 8,192 validation
        vertices, the same in every epoch, with twice as many sampled neighbours as in training. Test scores at the end
        are exact. ``"none"``: there are no scores, and the last epoch counts as the best.
    """

    scores: Scores


class Sampling(TypedDict, total=False):
    """How neighbours are sampled.

    Parameters
    ----------
    sampling : {"uniform", "labor"}
        How neighbours are sampled: ``"uniform"`` without replacement, or ``"labor"`` (LABOR-0), which samples the same
        neighbours for many vertices and so fetches fewer rows, with as many neighbours on average.
    """

    sampling: SamplingRule


class Temporal(TypedDict, total=False):
    """Samples that do not look ahead.

    Parameters
    ----------
    temporal : {"uniform", "last"}, optional
        Sample only what was there before the time of a vertex or edge that is trained on, as for
        :meth:`fastpart.VertexPartition.loader`. Times come from the directory. Default: times do not count.
    """

    temporal: TemporalRule | None


class InputRows(TypedDict, total=False):
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

    io: RowsIo | None
    plan: StrPath | None
    cache: float | str | None
    cache_by: CacheCriterion
    resident: int | str | None


class BatchTraining(Training, Batches, total=False):
    """Parameters of methods that may train on mini-batches."""


class OfType(TypedDict, total=False):
    """The vertices with labels in a graph with types.

    Parameters
    ----------
    target : str, optional
        Their type. Default: the only one with labels and training vertices.
    """

    target: str | None


class ScoredTraining(BatchTraining, Scored, OfType, total=False):
    """Parameters of methods that never compute the whole graph in a step."""


class SampledTraining(ScoredTraining, Sampling, InputRows, total=False):
    """Parameters of ``sampled`` and its like."""


class TemporalTraining(SampledTraining, Temporal, total=False):
    """Parameters of ``sampled``."""


class LinkTraining(BatchTraining, Temporal, InputRows, total=False):
    """Parameters of ``links``."""


class EmbeddingTraining(BatchTraining, InputRows, total=False):
    """Parameters of ``embeddings``."""


class ReceivedTraining(ScoredTraining, Sampling, total=False):
    """Parameters of ``armada``."""


class ComparisonTraining(Learning, Batches, CallOptions, total=False):
    """Parameters of the comparison of methods, except for seeds."""


DEFAULTS: dict[str, Any] = {
    "resume": False,
    "overwrite": False,
    "timeout": 1800.0,
    "device": "cpu",
    "scores": "exact",
    "sampling": "uniform",
    "cache_by": "access",
}
"""Defaults of the parameters of a run that are not None. Those of the model are in :mod:`.config`."""
