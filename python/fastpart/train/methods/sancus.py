"""``sancus``: full batches over blocks of rows, with broadcasts that are skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..method_options import SancusOptions
from ..registry import Method

if TYPE_CHECKING:
    from ...partitions.partition import PartitionSource
    from ..runs.trained import TrainedModel

METHOD = Method(
    "sancus",
    SancusOptions,
    driver="fastpart.train.methods.distgnn.driver:Driver",
    worker="fastpart.train.methods.distgnn.worker:Worker",
    without={
        **dict.fromkeys(("batch_size", "fanouts", "target"), ""),
        "workers": "it starts one worker for each part. Partition into as many parts as there are workers",
    },
    per_part=True,
)


@METHOD.keywords
def sancus(source: PartitionSource, options: SancusOptions) -> TrainedModel:
    """Train with full batches over blocks of rows, one process for each part, and skip broadcasts.

    Every process holds the rows of the vertices of its part. In each layer the processes broadcast their rows one after
    another, and the others sum those that their edges need. A broadcast is skipped while the copies of the others are
    recent or close enough, as ``max_age``, ``max_change`` or ``period`` says. Without such a bound, loss and gradients
    equal those of the whole graph in one process up to rounding, including dropout.

    Parameters
    ----------
    source : path or partition
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``.
    max_age : int, optional
        Largest age of a copy, in epochs (the paper's eps_a). Parts are broadcast at different times. So copies have
        different ages, and about 1 / (``max_age`` + 1) of the parts are broadcast in each epoch. 0 is exact.
    max_change : float, optional
        Largest relative distance of a copy from the rows, ``norm(rows - copies) / norm(copies)`` (eps_h). A part is
        broadcast in a layer when its copies are farther. Dropout alone moves the rows by ``sqrt(2 * dropout)``, which
        is 1 by default. 0 is exact.
    period : int, optional
        Epochs from one broadcast of all rows to the next (eps_e + 1). 1 is exact. At most one of ``max_age``,
        ``max_change`` and ``period`` may be given.
    rows : {"all", "boundary"}
        The rows that others receive. ``"all"``: every process with an edge from a part receives all its rows. The
        bytes depend on the number of parts and hardly on the partition. ``"boundary"``: each process receives the
        rows that it has edges from, so a good cut saves bytes. The results are the same.
    model
        Models with attention are refused: SANCUS needs layers that are products of matrices, where the matrix of the
        edges never changes. ``clustergcn`` and ``graphsaint`` learn from samples and are refused, too.
    epochs
        Every epoch is one step.
    resume
        The checkpoint does not hold copies. After a resume all rows are broadcast.

    Returns
    -------
    TrainedModel
        ``history`` has for each epoch ``broadcasts`` and ``skipped``, the numbers of parts that were broadcast or not
        in all layers but the first. Parts that no other part has edges from are not counted. It has the ``seconds`` of
        the slowest worker, and as means over the workers ``aggregation_seconds`` (sums over edges),
        ``exchange_seconds`` (messages about vertices, with waiting), ``synchronising_seconds`` (gradients of weights,
        with waiting) and ``dense_seconds`` (the rest). ``remote_bytes`` is what all workers sent to each other in the
        step, without the gradients of the weights, and ``evaluation_bytes`` what they sent for the scores.
        ``worker_bytes`` is the largest anonymous memory of a worker. ``summary`` adds ``halo_rf``, ``peak_bytes``
        (largest resident memory of a worker), and ``per_worker``. :attr:`TrainedModel.workers` is the latter as a
        table.

    Raises
    ------
    ParameterError
        An invalid parameter, a model that this method cannot train, or a directory without features, labels or splits.
    TrainingError
        A worker died. The text names it and its signal or exit code, and quotes the end of its stderr.

    Notes
    -----
    Features never change. The sums of the first layer are computed once, from one broadcast in the first epoch.
    Gradients go the same way back, except to rows that were not broadcast, because copies are constants.

    A worker holds the rows of its part in all layers and, with ``rows="all"``, the rows of one other part at a time, or
    with ``"boundary"`` the rows of its halo. With a bound it also keeps the copies in each layer but the first: those
    of all parts that it has edges from, or of its halo.

    Scores are exact. They take one pass over the whole graph after each epoch, with all rows broadcast.

    Under ``torchrun`` the calling process is the worker of the part of its rank. On several machines that see the same
    ``source`` and ``out``, run ``torchrun --nnodes 4 --rdzv-endpoint HOST:29500 -m fastpart train sancus parts/ -o
    run/`` on each of them. The traffic is neither encrypted nor authenticated: use a private network.

    References
    ----------
    Peng et al., "SANCUS: Staleness-Aware Communication-Avoiding Full-Graph Decentralized Training in Large-Scale Graph
    Neural Networks", VLDB 2022, and section 4.3 of its extended version, where the bounds are definitions 1 to 3. There
    eps_h bounds the difference itself, and gradients are clipped. Here the bound is relative, and they are not.

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
    >>> trained = fp.train.sancus(folder, max_age=1, epochs=20)
    >>> trained.summary["test_accuracy"]
    1.0
    >>> sum(trained.history["broadcasts"]), sum(trained.history["skipped"])
    (21, 19)
    """
    return METHOD.train(source, options)
