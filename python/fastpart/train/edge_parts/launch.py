"""``distgnn``: start one worker for each part of an edge partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
import torch

from ...core.parameters import StrPath
from ..config import Options, Training, options_of, report_of, trains
from ..edge_data import EdgeDataset
from ..full_graph.launch import train
from ..full_graph.part import Tools
from ..full_graph.trial import try_model
from ..full_graph.wire import Lists
from ..jobs.group import Device
from ..jobs.launch import launching
from ..memory import MORE_PARTS, Need, full_batch, graph_bytes, weights, widths
from ..scores import Task
from ..trainable import refuse_before_workers
from ..trained import TrainedModel
from .local import Copies
from .part import Exchange, checked, part_of


@trains
def distgnn(
    source: StrPath,
    *,
    delay: int = 0,
    exchange: Exchange = "always",
    device: Device = "cpu",
    timeout: float = 1800.0,
    out: StrPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **training: Unpack[Training],
) -> TrainedModel:
    """Train with full batches over parts of the edges, one process for each part.

    Every edge is in one process. A vertex with edges in several processes has a copy in each. One copy is its root, the
    others are leaves. In each layer the leaves send the sums over their edges to the root. The root adds them and sends
    the totals back. Gradients go the same way. So with ``delay=0`` loss and gradients equal those of the whole graph in
    one process up to rounding, including dropout (except dropout of attention).

    Parameters
    ----------
    source : path
        A partition directory of edges, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``.
    model, hidden, layers, heads, dropout, lr, weight_decay, epochs, patience, seed
        As in :func:`fastpart.train.full`. Every epoch is one step. Models with attention send more messages and need
        ``delay=0`` or ``exchange="never"``. ``clustergcn`` and ``graphsaint`` learn from samples and are refused.
    delay : int
        0: every layer waits for the totals (cd-0 in the paper). r > 0, at most 1,000: one r-th of the vertices takes
        part in each epoch, and messages have r epochs to arrive (cd-r). The other vertices use the edges in their
        process. Sums over the features are made once and are always exact.
    exchange : {"always", "never"}
        ``"never"``: no messages in training (0c in the paper).
    device : {"cpu", "cuda"}
        Where the processes compute. ``"cuda"`` gives each a GPU of its machine, and they communicate through NCCL. This
        path is written, but was never run.
    out, resume, overwrite
        As in :func:`fastpart.train.full`. The checkpoint does not hold delayed messages. After a resume the delay
        begins without messages, as in the first epoch.
    timeout : float
        Seconds that workers wait for each other. Then training ends with an error that names the one that hangs.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. All processes share the threads. The step of ``progress`` is "epoch".
    on_epoch
        As in :func:`fastpart.train.full`.

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
    >>> fp.hdrf(ring, k=2).save(
    ...     folder, graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> fp.train.distgnn(folder, epochs=20).summary["test_accuracy"]
    1.0
    """
    options, run = options_of(training)
    how = checked(delay, exchange)
    report = report_of(training, run, options.epochs)
    dataset = EdgeDataset(source)
    refuse_before_workers(dataset.task, options, dataset.partition.k)
    _try(dataset.task, options, how)
    measured = dataset.manifest.get("summary", {})
    summary = {
        "delay": how["delay"],
        "exchange": how["exchange"],
        "parts": dataset.partition.k,
        "replication_factor": measured.get("rf"),
    }
    launch = launching(out, resume, overwrite, run, report, timeout, device)
    return train("distgnn", options, how, dataset, summary, needs(dataset, options, how), launch)


def needs(dataset: EdgeDataset, options: Options, how: Mapping[str, Any]) -> list[Need]:
    """Return what each worker takes: its part, the sums of the features, activations, and messages under way."""
    task, parts = dataset.task, dataset.partition.parts
    n, edges = max(len(part.vertices) for part in parts), max(part.num_edges for part in parts)
    late = sum(out for _, out in widths(options, task)) * 4 * 8 * n if how["delay"] else 0
    return [
        Need("a part of the edges", graph_bytes(n, edges, task.features), MORE_PARTS),
        Need("sums of its features", 8 * n * task.features, MORE_PARTS),
        Need("activations", full_batch(options, task, n, n, edges), "a smaller hidden="),
        Need("messages under way", late, "delay=0"),
        weights(options, task),
    ]


def _try(task: Task, options: Options, how: dict[str, Any]) -> None:
    """Try the model on two vertices and the edges between them."""
    none = torch.empty(0, dtype=torch.int64)
    shape = (2, task.classes) if task.multilabel else (2,)
    two = Copies(
        num_roots=2,
        vertices=torch.arange(2),
        degree=torch.ones(2, dtype=torch.int64),
        indptr=np.arange(3),
        indices=np.array([1, 0], np.int32),
        features=torch.ones(2, task.features),
        labels=torch.zeros(shape),
        splits={"train": none, "val": none, "test": none},
        up=Lists([none]),
        down=Lists([none]),
    )
    part = part_of(two, task, 1, options, how, Tools.alone())
    part.begin(0)
    try_model(task, options, part.layers)
