"""``distgnn``: full batches over parts of the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...method_options import DistGNNOptions
from ...registry import Method

if TYPE_CHECKING:
    from ....partitions.partition import PartitionSource
    from ...runs.trained import TrainedModel

METHOD = Method(
    "distgnn",
    DistGNNOptions,
    driver="fastpart.train.methods.distgnn.driver:Driver",
    worker="fastpart.train.methods.distgnn.worker:Worker",
    over="edges",
    without={
        **dict.fromkeys(("batch_size", "fanouts", "target"), ""),
        "workers": "it starts one worker for each part. Partition into as many parts as there are workers",
    },
    per_part=True,
)


@METHOD.keywords
def distgnn(source: PartitionSource, options: DistGNNOptions) -> TrainedModel:
    """Train with full batches over parts of the edges, one process for each part.

    Every edge is in one process. A vertex with edges in several processes has a copy in each. One copy is its root, the
    others are leaves. In each layer the leaves send the sums over their edges to the root. The root adds them and sends
    the totals back. Gradients go the same way. So with ``delay=0`` loss and gradients equal those of the whole graph in
    one process up to rounding, including dropout (except dropout of attention).

    Parameters
    ----------
    source : path or partition
        A partition directory of edges, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``.
    delay : int
        0: every layer waits for the totals (cd-0 in the paper). r > 0, at most 1,000: one r-th of the vertices takes
        part in each epoch, and messages have r epochs to arrive (cd-r). The other vertices use the edges in their
        process. Sums over the features are made once and are always exact.
    exchange : {"always", "never"}
        ``"never"``: no messages in training (0c in the paper).
    model
        Models with attention send more messages and need ``delay=0`` or ``exchange="never"``. ``clustergcn`` and
        ``graphsaint`` learn from samples and are refused.
    epochs
        Every epoch is one step.
    resume
        The checkpoint does not hold delayed messages. After a resume the delay begins without messages, as in the first
        epoch.

    Returns
    -------
    TrainedModel
        ``history`` has for each epoch the ``seconds`` of the slowest worker, and as means over the workers
        ``aggregation_seconds`` (sums over edges), ``exchange_seconds`` (messages about vertices, with waiting),
        ``synchronising_seconds`` (gradients of weights, with waiting) and ``dense_seconds`` (the rest).
        ``remote_bytes`` is what all workers sent to each other in the step, without the gradients of the weights, and
        ``evaluation_bytes`` what they sent for the scores. ``worker_bytes`` is the largest anonymous memory of a
        worker. The first epoch includes the sums over the features. ``summary`` adds ``replication_factor``,
        ``peak_bytes`` (largest resident memory of a worker), and ``per_worker``. :attr:`TrainedModel.workers` is the
        latter as a table.

    Raises
    ------
    ParameterError
        An invalid parameter, a model that this method cannot train, or a directory without features, labels or splits.
    TrainingError
        A worker died. The text names it and its signal or exit code, and quotes the end of its stderr.

    Notes
    -----
    A worker holds the features of its copies, their sums, and the activations of all layers. That is about the memory
    of :func:`fastpart.train.full` times the replication factor, divided by the number of parts. Messages need 16 MB for
    each peer at a time. Delayed messages stay in memory until they are used.

    Scores are exact. They take one pass over the whole graph after each epoch.

    Under ``torchrun`` the calling process is the worker of the part of its rank. On several machines that see the same
    ``source`` and ``out``, run ``torchrun --nnodes 4 --rdzv-endpoint HOST:29500 -m fastpart train distgnn parts/ -o
    run/`` on each of them. The traffic is neither encrypted nor authenticated: use a private network.

    References
    ----------
    Md et al., "DistGNN: Scalable Distributed Training for Large-Scale Graph Neural Networks", SC 2021. The paper leaves
    out the messages of the gradients in the backward pass. Here they are sent.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    >>> labels = np.arange(12) // 6
    >>> splits = {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
    >>> stored = fp.algorithms.hdrf(ring, k=2).save(
    ...     folder, graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> fp.train.distgnn(folder, epochs=20).summary["test_accuracy"]
    1.0
    """
    return METHOD.train(source, options)
