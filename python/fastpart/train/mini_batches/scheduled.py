"""``bytegnn``: training on mini-batches that are made by scheduled tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ...core import parameters
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...loading.cached_rows import CacheCriterion
from ..config import Training, trains
from ..jobs.group import Device
from ..models import NEIGHBOUR, sampling_of
from ..trained import TrainedModel
from .start import Precision, SamplingRule, start


@trains
def bytegnn(
    source: StrPath,
    *,
    batch_size: int | None = 1000,
    fanouts: Sequence[int] | None = None,
    sampling: SamplingRule = "uniform",
    workers: int | None = None,
    device: Device = "cpu",
    precision: Precision = "float32",
    ahead: int = 2,
    cache: float | None = None,
    cache_by: CacheCriterion = "access",
    resident: int | str | None = None,
    timeout: float = 1800.0,
    trace: StrPath | None = None,
    out: StrPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **training: Unpack[Training],
) -> TrainedModel:
    """Train on mini-batches that are made by scheduled tasks, as ByteGNN makes them.

    Batches, losses and weights are those of :func:`fastpart.train.sampled`. What differs is when batches are made.
    Each is a graph of small tasks: seeds, their neighbourhoods, and pieces of the features. Idle threads take tasks of
    the earliest batch first, and launch another batch as soon as its score says so: the longer since the last launch,
    the less busy the processors and the fewer batches wait, the higher. So batches that take long are begun early, and
    none are made that only take memory. It gains where batches differ in cost and processors have time left, as beside
    a GPU. Where all processors are busy with training, there is nothing to gain.

    Parameters
    ----------
    source, batch_size, fanouts, sampling, workers, device, precision, cache, cache_by, resident, timeout
        As in :func:`fastpart.train.sampled`.
    model, hidden, layers, heads, dropout, lr, weight_decay, epochs, patience, seed, out, resume, overwrite
        As in :func:`fastpart.train.full`. The model takes sampled neighbours.
    ahead : int
        Rows of parts of other workers come for so many batches at a time. How many batches are made ahead is up to the
        score, as long as they take no more than a quarter of the free memory.
    trace : path, optional
        A .json for who did what when, and who waited for what. ``chrome://tracing`` and Perfetto show it.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. All workers share the threads. Each trains and makes batches with its own.
    on_epoch
        As in :func:`fastpart.train.full`.

    Returns
    -------
    TrainedModel
        As from :func:`fastpart.train.sampled`.

    Raises
    ------
    ParameterError
        As :func:`fastpart.train.sampled`, or a model that trains on sampled graphs.
    TrainingError
        A worker died. The text names it and its signal or exit code, and quotes the end of its stderr.
    GraphFormatError
        A damaged directory or checkpoint.

    Notes
    -----
    A batch is launched when ``gap * (101 - 101 ** utilisation) * making / (training * queue)`` is at least 10. The gap
    counts from the last launch, in steps of training. The utilisation is that of the worker's processors since then.
    Making and training are mean seconds of a batch. An empty queue counts as 1. Without a batch under way the next one
    is launched at once.

    References
    ----------
    Zheng et al., "ByteGNN: Efficient Graph Neural Network Training at Large Scale", PVLDB 15(6), 2022, section 4.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    >>> labels = np.arange(12) // 6
    >>> splits = {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
    >>> fp.VertexPartition(labels, k=2).save(
    ...     folder, graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> fp.train.bytegnn(folder, epochs=20, workers=1, trace=folder + "/trace.json").summary["test_accuracy"]
    1.0
    """
    given = {**training, "batch_size": batch_size, "fanouts": fanouts}
    how = {
        "sampling": sampling,
        "precision": precision,
        "ahead": ahead,
        "cache": cache,
        "cache_by": cache_by,
        "resident": resident,
    }
    target = None if trace is None else parameters.path("trace", trace)
    if target is not None and target.suffix != ".json":
        raise ParameterError(
            f"trace: {parameters.shown(target)} is no .json file. Choose a name that ends with .json"
        )
    started = start("bytegnn", source, given, how, workers, device, scheduled=True, traced=target is not None)
    if sampling_of(started.options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {started.options.model} trains on sampled graphs, which are not scheduled. Train it with sampled"
        )
    return started.train(out, resume, overwrite, timeout, target)
