"""``bytegnn``: mini-batches that are made by scheduled tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..method_options import ByteGNNOptions
from ..registry import Method

if TYPE_CHECKING:
    from ...partitions.partition import PartitionSource
    from ..runs.trained import TrainedModel

METHOD = Method(
    "bytegnn",
    ByteGNNOptions,
    driver="fastpart.train.methods.sampled.driver:Driver",
    worker="fastpart.train.methods.sampled.worker:Worker",
    types=True,
    defaults={"batch_size": 1000},
)


@METHOD.keywords
def bytegnn(source: PartitionSource, options: ByteGNNOptions) -> TrainedModel:
    """Train on mini-batches that are made by scheduled tasks, as ByteGNN makes them.

    Batches, losses and weights are those of :func:`fastpart.train.sampled`. What differs is when batches are made.
    Each is a graph of small tasks: seeds, their neighbourhoods, and pieces of the features. Idle threads take tasks of
    the earliest batch first, and launch another batch as soon as its score says so: the longer since the last launch,
    the less busy the processors and the fewer batches wait, the higher. So batches that take long are begun early, and
    none are made that only take memory. It gains where batches differ in cost and processors have time left, as beside
    a GPU. Where all processors are busy with training, there is nothing to gain.

    Parameters
    ----------
    source : path or partition
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``.
    ahead : int
        Rows of parts of other workers come for so many batches at a time. How many batches are made ahead is up to the
        score, as long as they take no more than a quarter of the free memory.
    trace : path, optional
        A .json for who did what when, and who waited for what. ``chrome://tracing`` and Perfetto show it.
    model
        The model takes sampled neighbours. Graphs with types take models for types.

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
    >>> stored = fp.VertexPartition(labels, k=2).save(
    ...     folder, graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> fp.train.bytegnn(folder, epochs=20, workers=1, trace=folder + "/trace.json").summary["test_accuracy"]
    1.0
    """
    return METHOD.train(source, options)
