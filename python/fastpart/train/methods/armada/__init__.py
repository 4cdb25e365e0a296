"""``armada``: mini-batches that other processes make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...method_options import ArmadaOptions
from ...registry import Method

if TYPE_CHECKING:
    from ....partitions.partition import PartitionSource
    from ...runs.trained import TrainedModel

METHOD = Method(
    "armada",
    ArmadaOptions,
    driver="fastpart.train.methods.armada.driver:Driver",
    worker="fastpart.train.methods.armada.worker:Worker",
    types=True,
    defaults={"batch_size": 1000},
    without={
        "workers": "batches are made and computed by different processes: pass batch_workers, compute_workers",
    },
)


@METHOD.keywords
def armada(source: PartitionSource, options: ArmadaOptions) -> TrainedModel:
    """Train on mini-batches that other processes make.

    Batch workers sample and read features. They need no GPU. Compute workers train. There may be as many of each as
    are needed to keep the others busy. A coordinator deals the parts to the batch workers, in every epoch anew. If a
    batch worker is killed or hangs, the others continue its work, and the results stay the same.

    Parameters
    ----------
    source : path or partition
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``.
    batch_workers : int
        Processes that make batches.
    compute_workers : int, optional
        Processes that train. Each computes an equal part of every step. Default: 1.
    order : {"global", "parts"}
        ``"global"``: the batches of :func:`fastpart.train.sampled`, for any numbers of workers. The batch workers
        map all parts. ``"parts"``, as in the paper: a batch worker has ``hold`` parts in memory, samples over the edges
        between these, and reads each part once per epoch. So the batches depend on the parts, ``batch_workers`` and
        ``hold``.
        A graph with types takes ``"global"``.
    hold : int, optional
        Parts that a batch worker holds at a time with ``order="parts"``. Default: as many as fit the memory.
    cache : float or str
        Rows of features that the compute workers of a machine cache: a share of the rows of a part of mean size, from 0
        to 1, or memory with its unit, such as ``"200M"``. Batch workers do not send them again. Losses stay the same.
        In a graph with types it is the same share of each type that has features.
    policy : {"static", "lru"}
        Which rows these are: those that the most batches are predicted to have, or those that were used last, as in the
        paper. With ``"lru"`` each batch worker manages an equal part of the cache.
    ahead : int
        Steps that are made ahead of their use. Batch workers wait when there are so many.
    model
        The model samples neighbours. Graphs with types take models for types.

    Returns
    -------
    TrainedModel
        ``history`` adds for each epoch ``idle_seconds`` (waiting for batches), ``compute_seconds`` and
        ``synchronising_seconds``, each the mean over the compute workers. ``sampling_seconds`` and
        ``fetching_seconds`` (rows of features) are the mean over the batch workers. ``remote_rows`` counts the rows of
        features that batch workers sent, ``cached_rows`` those that they did not send because of the cache, and
        ``remote_bytes`` the bytes of all messages. ``ungrouped_bytes`` is what they would have been with a message for
        each compute worker. ``fetched_rows`` counts rows of parts of other batch workers. ``worker_bytes`` and
        ``batch_worker_bytes`` are the memory of the largest worker of each kind. ``summary`` adds ``parts``,
        ``batch_workers``, ``compute_workers``, ``halo_rf`` and ``label_skew``.

    Raises
    ------
    ParameterError
        An invalid parameter, or a directory without features, labels, splits or halo.
    MemoryBudgetError
        A part, the cache or the steps that are made ahead do not fit the memory.
    TrainingError
        A compute worker, the receiver or the last batch worker died. The text names it and its signal or exit code,
        and quotes the end of its stderr.
    GraphFormatError
        A damaged directory or checkpoint.

    Notes
    -----
    All processes run on this machine and talk through its loopback interface. Under ``torchrun`` the calling process is
    one of the compute workers, leave out ``compute_workers``, and pass ``out``. Each machine has a receiver then, and
    the batch workers are dealt to the machines, which all have the directory.

    The batches of a step for all compute
    workers come as one message, in which each row of features is once. A receiver puts it into /dev/shm, where the
    compute workers take their batches. It keeps up to ``ahead`` steps there. Compute workers read the files of the
    directory for validation and test scores only, which are exact.

    References
    ----------
    Waleffe et al., "Armada: Memory-Efficient Distributed Training of Large-Scale Graph Neural Networks", 2025,
    sections 3 and 5.

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
    >>> fp.train.armada(folder, epochs=20, batch_workers=2, compute_workers=1).summary["test_accuracy"]
    1.0
    """
    return METHOD.train(source, options)
