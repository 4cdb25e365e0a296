"""``sdt``: start workers for a partition directory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Unpack, get_args

from ... import _core
from ...core import parameters
from ...core.options import RunOptions
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...runtime.environment import found
from ..config import BatchTraining, options_of, report_of, trains
from ..data import Dataset
from ..jobs.launch import launching
from ..trainable import refuse_before_workers
from ..trained import TrainedModel
from .regroup import regrouped
from .sizing import Sizes, needs, parts_for
from .training import copies_of

Average = Literal["weights", "gradients"]
AVERAGES: tuple[Average, ...] = get_args(Average)


@trains
def sdt(
    source: StrPath,
    *,
    workers: int | None = None,
    average: Average = "weights",
    average_every: int = 1,
    average_moments: bool = True,
    parts: int | Literal["auto"] | None = None,
    memory_per_worker: int | str | None = None,
    timeout: float = 1800.0,
    out: StrPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **training: Unpack[BatchTraining],
) -> TrainedModel:
    """Train a copy of the model on every part with its halo, and average the copies.

    Workers never exchange features or neighbours. They exchange only the weights, once per ``average_every`` epochs.
    With more parts than workers each worker trains its parts one after another and holds one at a time.

    Parameters
    ----------
    source : path
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``. Features
        of the halo are read from the other parts unless the directory was saved with ``halo_features=True``.
    model, hidden, layers, heads, dropout, lr, weight_decay, epochs, batch_size, fanouts, patience, seed
        As in :func:`fastpart.train.full`. ``batch_size`` counts vertices of each part.
    workers : int, optional
        Number of processes. Default: one per CPU, at most one per part.
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
    out, resume, overwrite
        As in :func:`fastpart.train.full`. New parts are stored there, too.
    timeout : float
        Seconds that workers wait for each other, as at the end of a round. Then training ends with an error that names
        the one that hangs.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. All workers share the threads. The step of ``progress`` is "epoch".
    on_epoch
        As in :func:`fastpart.train.full`.

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
    >>> fp.VertexPartition(labels, k=2).save(
    ...     folder, graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> fp.train.sdt(folder, epochs=20, workers=1).summary["test_accuracy"]
    1.0
    """
    options, run = options_of(training)
    how = {
        "average": parameters.choice("average", average, AVERAGES),
        "average_every": parameters.integer("average_every", average_every, 1, options.epochs),
        "moments": parameters.flag("average_moments", average_moments),
    }
    report = report_of(training, run, options.epochs)
    asked = None if workers is None else parameters.integer("workers", workers, 1, 1 << 12)
    wanted = _Parts(parts, parameters.memory_size(memory_per_worker))
    dataset = Dataset(source)
    count = asked or run.threads or _core.default_threads() if (ranks := found()) is None else ranks.size
    with launching(out, resume, overwrite, run, report, timeout, workers=asked) as launch:
        sizes = launch.once(lambda: wanted.of(dataset, count, run))
        given = dataset
        if sizes.parts != dataset.partition.k:
            launch.begin("sdt", options, how, dataset, dataset.task)  # refuses before it partitions
            folder = launch.once(lambda: regrouped(given, sizes.parts, launch.folder, run).path.absolute())
            dataset = Dataset(folder)
        if ranks is None:
            count = min(count, dataset.partition.k)
        refuse_before_workers(dataset.task, options, copies_of(dataset, average, count))
        facts, needed = _facts(dataset, sizes, count), needs(dataset, options, count)
        return launch.train("sdt", options, how, dataset, count, facts, needed, source=given)


@dataclass(frozen=True)
class _Parts:
    """The arguments about the parts."""

    number: int | str | None
    budget: int | None

    def of(self, dataset: Dataset, workers: int, run: RunOptions) -> Sizes:
        """Return the number of parts."""
        number = self.number
        if isinstance(number, str):
            parameters.choice("parts", number, ("auto",))
            if self.budget is None:
                raise ParameterError(
                    'parts: "auto" depends on the memory of a worker. Pass memory_per_worker'
                )
            return parts_for(dataset, self.budget, workers, run)
        number = dataset.partition.k if number is None else parameters.parts(number)
        return Sizes.given(dataset, number, self.budget)


def _facts(dataset: Dataset, sizes: Sizes, workers: int) -> dict[str, Any]:
    measured = dataset.manifest.get("summary", {})
    return {
        "parts": dataset.partition.k,
        "halo_rf": measured.get("halo_rf"),
        "label_skew": measured.get("label_skew"),
        "workers": workers,
        "sizing": sizes.explained,
    }
