"""``armada``: start batch workers, a receiver and compute workers for a partition directory."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Unpack

from ...core import parameters
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...runtime.environment import found
from ..config import Training, options_of, report_of, trains
from ..data import Dataset
from ..jobs.group import Device
from ..jobs.launch import launching
from ..mini_batches.start import PRECISIONS, SAMPLING_RULES, Precision, SamplingRule
from ..models import NEIGHBOUR, sampling_of
from ..trainable import refuse_before_workers
from ..trained import TrainedModel
from .cache import POLICIES, Policy
from .holding import needs, parts_in_memory
from .processes import joined, started
from .schedule import ORDERS, Order
from .settings import Settings


@trains
def armada(
    source: StrPath,
    *,
    batch_workers: int = 1,
    compute_workers: int | None = None,
    order: Order = "global",
    hold: int | None = None,
    cache: float = 0.0,
    policy: Policy = "static",
    batch_size: int | None = 1000,
    fanouts: Sequence[int] | None = None,
    sampling: SamplingRule = "uniform",
    device: Device = "cpu",
    precision: Precision = "float32",
    ahead: int = 2,
    timeout: float = 1800.0,
    out: StrPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **training: Unpack[Training],
) -> TrainedModel:
    """Train on mini-batches that other processes make.

    Batch workers sample and read features. They need no GPU. Compute workers train. There may be as many of each as
    are needed to keep the others busy. A coordinator deals the parts to the batch workers, in every epoch anew. If a
    batch worker is killed, the others continue its work, and the results stay the same.

    Parameters
    ----------
    source : path
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``.
    model, hidden, layers, heads, dropout, lr, weight_decay, epochs, patience, seed, out, resume, overwrite
        As in :func:`fastpart.train.full`, for models that sample neighbours.
    batch_workers : int
        Processes that make batches.
    compute_workers : int, optional
        Processes that train. Each computes an equal part of every step. Default: 1.
    order : {"global", "parts"}
        ``"global"``: the batches of :func:`fastpart.train.sampled`, for any numbers of workers. The batch workers
        map all parts. ``"parts"``, as in the paper: a batch worker has ``hold`` parts in memory, samples over the edges
        between these, and reads each part once per epoch. So the batches depend on the parts, ``batch_workers`` and
        ``hold``.
    hold : int, optional
        Parts that a batch worker holds at a time with ``order="parts"``. Default: as many as fit the memory.
    cache : float
        Rows of features that the compute workers cache, as a share of all rows. Batch workers do not send them again.
        Losses stay the same.
    policy : {"static", "lru"}
        Which rows these are: those that the most batches are predicted to have, or those that were used last, as in the
        paper. With ``"lru"`` each batch worker manages an equal part of the cache.
    batch_size : int, optional
        Training vertices per step, of all compute workers together. None: all at once.
    fanouts : sequence of int, optional
        Neighbours to sample per vertex in each hop, from the training vertices on. -1 takes all. Default: 10 each.
    sampling, device, precision
        As in :func:`fastpart.train.sampled`.
    ahead : int
        Steps that are made ahead of their use. Batch workers wait when there are so many.
    timeout : float
        Seconds that processes wait for each other. Then training ends with an error that names the one that hangs.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. All compute workers share the threads. A batch worker has one. The step of
        ``progress`` is "epoch".
    on_epoch
        As in :func:`fastpart.train.full`.

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
    >>> fp.VertexPartition(labels, k=2).save(
    ...     folder, graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> fp.train.armada(folder, epochs=20, batch_workers=2, compute_workers=1).summary["test_accuracy"]
    1.0
    """
    options, run = options_of({**training, "batch_size": batch_size, "fanouts": fanouts})
    if sampling_of(options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model!r} needs sampled graphs, but batch workers sample neighbours only. Train it with "
            "sampled, or use graphsage, which has the same layers"
        )
    how: dict[str, Any] = {
        "sampling": parameters.choice("sampling", sampling, SAMPLING_RULES),
        "precision": parameters.choice("precision", precision, PRECISIONS),
        "order": parameters.choice("order", order, ORDERS),
    }
    report = report_of(training, run, options.epochs)
    batch_workers = parameters.integer("batch_workers", batch_workers, 1, 1 << 12)
    if compute_workers is not None:
        compute_workers = parameters.integer("compute_workers", compute_workers, 1, 1 << 12)
    count = compute_workers or 1 if (ranks := found()) is None else ranks.size
    dataset = Dataset(source)
    refuse_before_workers(dataset.task, options, count)
    hold = parts_in_memory(dataset, batch_workers, order, hold, run.memory_limit)
    if order == "parts":
        how |= {"batch_workers": batch_workers, "hold": hold}
    settings = Settings(
        source=os.path.abspath(dataset.path),
        fanouts=options.fanouts,
        batch_size=options.batch_size or dataset.num_train,
        sampling=sampling,
        seed=options.seed,
        order=order,
        hold=hold,
        cache=parameters.share_or_none("cache", cache),
        policy=parameters.choice("policy", policy, POLICIES),
        ahead=parameters.integer("ahead", ahead, 1, 2**10),
        batch_workers=batch_workers,
        compute_workers=count,
        first=0,
        local_workers=count,
        timeout=parameters.positive("timeout", timeout),
        token=secrets.token_hex(16),
    )
    measured = dataset.manifest.get("summary", {})
    summary = {
        "parts": dataset.partition.k,
        "batch_workers": batch_workers,
        "compute_workers": count,
        **{name: measured.get(name) for name in ("halo_rf", "label_skew")},
    }
    with (
        launching(out, resume, overwrite, run, report, timeout, device, compute_workers) as launch,
        ExitStack() as stack,
    ):
        if launch.group is None:
            file = stack.enter_context(joined(settings, run.tmp_dir))
        else:
            file = started(launch.group, settings)
        needed = needs(dataset, options, settings)
        return launch.train("armada", options, how, dataset, count, summary, *needed, settings=str(file))
