"""``sdt``: copies of the model on every part with its halo, averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...method_options import SDTOptions
from ...registry import Method

if TYPE_CHECKING:
    from ....partitions.partition import PartitionSource
    from ...runs.trained import TrainedModel

METHOD = Method(
    "sdt",
    SDTOptions,
    driver="fastpart.train.methods.sdt.driver:Driver",
    worker="fastpart.train.methods.sdt.worker:Worker",
    types=True,
)


@METHOD.keywords
def sdt(source: PartitionSource, options: SDTOptions) -> TrainedModel:
    """Train a copy of the model on every part with its halo, and average the copies.

    Workers never exchange features or neighbours. They exchange only the weights, once per ``average_every`` epochs.
    With more parts than workers each worker trains its parts one after another and holds one at a time.

    Parameters
    ----------
    source : path or partition
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``. Features
        of the halo are read from the other parts unless the directory was saved with ``halo_features=True``. If the
        graph has types, all of them need features, and ``parts`` and ``batch_size`` are left out.
    average : {"weights", "gradients"}
        ``"weights"``: average the weights after ``average_every`` epochs. ``"gradients"``: average the gradients of all
        workers in every step. With full batches and ``halo_hops`` not below ``layers`` that is centralized training.
    average_every : int
        Epochs that each copy trains between two averages of the weights.
    average_moments : bool
        Average Adam's moments together with the weights. Without this, parts with different labels lose accuracy.
    parts : int or "auto", optional
        Partition again into this number of parts, with the partitioner of ``source``. ``"auto"``: as many as
        ``memory_per_worker`` requires. ``TrainedModel.summary["sizing"]`` has the numbers. Default: the parts of
        ``source``.
    memory_per_worker : int or str, optional
        Memory of a worker, in bytes or as "4G". Two thirds of it are left for the computation.
    batch_size
        Each part takes an equal share of it.
    out
        New parts are stored there, too.

    Returns
    -------
    TrainedModel
        ``history`` has one row per round: ``loss`` (of its last epoch), ``seconds`` per epoch, and as means over the
        workers ``compute_seconds``, ``averaging_seconds`` and ``loading_seconds``. ``remote_bytes`` is what all workers
        sent per epoch, ``worker_bytes`` the largest anonymous memory of a worker. ``summary`` adds ``parts``,
        ``workers``, ``halo_rf``, ``label_skew`` and ``sizing``.

    Raises
    ------
    ParameterError
        An invalid parameter, or a directory without features, labels or splits.
    MemoryBudgetError
        No number of parts fits ``memory_per_worker``.
    TrainingError
        A worker died. The text names it and its signal or exit code, and quotes the end of its stderr.

    Notes
    -----
    Under ``torchrun`` the calling process is one of the workers. On several machines that see the same ``source`` and
    ``out``, run ``torchrun --nnodes 2 --rdzv-endpoint HOST:29500 -m fastpart train sdt parts/ -o run/`` on each of
    them. The traffic is neither encrypted nor authenticated: use a private network.

    Averages are weighted by training vertices. Parts without any are skipped. Halo vertices are never targets. Scores
    are exact, with all neighbours. They are computed layer by layer over the parts.

    References
    ----------
    Huang et al., "SDT-GNN: Streaming-based Distributed Training Framework for Graph Neural Networks", section III-D.
    "CATGNN: Cost-Efficient and Scalable Distributed Training for Graph Neural Networks", section 3.3.

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
    >>> fp.train.sdt(folder, epochs=20, workers=1).summary["test_accuracy"]
    1.0
    """
    return METHOD.train(source, options)
