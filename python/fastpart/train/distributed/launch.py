"""``distdgl``: start servers and trainers for a partition directory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ...core import parameters
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...runtime.environment import refuse_several
from ...runtime.watch import Supervisor
from ..beginning import begin
from ..config import Training, options_of, report_of, trains
from ..following import follow, output_of
from ..history import History
from ..identity import must_agree
from ..libraries import import_dgl
from ..memory import left_by
from ..models import NEIGHBOUR, sampling_of
from ..trainable import refuse_not_importable
from ..trained import TrainedModel
from .exported import Export
from .machines import Machines
from .plan import Plan


@trains
def distdgl(
    source: StrPath,
    *,
    batch_size: int | None = 1000,
    fanouts: Sequence[int] | None = None,
    trainers_per_part: int = 1,
    samplers: int = 0,
    ip_config: StrPath | None = None,
    out: StrPath | None = None,
    resume: bool = False,
    overwrite: bool = False,
    **training: Unpack[Training],
) -> TrainedModel:
    """Train with DGL's distributed engine: mini-batches of sampled neighbours, gradients averaged at every step.

    For each part one server holds the part in shared memory, and ``trainers_per_part`` trainers train. All processes
    run on this machine and use its loopback interface only. With ``ip_config``, each part is on a machine of its own.
    If a process fails, all are stopped.

    Parameters
    ----------
    source : path
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``, or the
        JSON file that :func:`fastpart.export.dgl` wrote for one.
    model, hidden, layers, heads, dropout, lr, weight_decay, epochs, patience, seed, out, resume, overwrite
        As in :func:`fastpart.train.full`. With several parts, two runs with the same seed differ slightly, because
        trainers ask each other for neighbours in no fixed order.
    batch_size : int, optional
        Training vertices per step of each trainer. None: all at once.
    fanouts : sequence of int, optional
        Neighbours to sample per vertex in each hop, from the training vertices on. -1 takes all. Default: 10 each.
    trainers_per_part : int
        Number of trainers that share a part.
    samplers : int
        Processes that sample for each trainer while it computes. 0: the trainer samples.
    ip_config : path, optional
        A file with one line ``ADDRESS PORT`` for each part, in the order of the parts. Make the same call on each of
        these machines, with the same export of the graph. Machine 0 also listens on the two ports above its own.
    out : path, optional
        As in :func:`fastpart.train.full`. With ``ip_config``, resume from the folder of machine 0.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. All trainers on this machine share the threads. The step of ``progress`` is
        "epoch".
    on_epoch
        As in :func:`fastpart.train.full`.

    Returns
    -------
    TrainedModel
        ``history`` adds for each epoch ``sampling_seconds``, ``fetching_seconds`` (features and labels),
        ``compute_seconds`` and ``synchronising_seconds`` (with waiting for the slowest trainer), each the mean over the
        trainers. ``seconds`` is that of the slowest trainer. ``local_bytes`` and ``remote_bytes`` count the features
        that batches read from their own part and from others. ``remote_seeds`` is the share of training vertices that
        moved to a trainer of another part, so that all trainers make equally many steps. To lower it, balance the
        training vertices in the partitioner.

    Raises
    ------
    TrainingError
        A process ended, or was not ready in time. The text names it and its signal or exit code, and quotes the end of
        its stderr.
    ParameterError
        An invalid parameter, a directory without features, labels, splits or halo, or a different number of machines
        than parts. With ``ip_config``, a part without vertices or edges.
    MemoryBudgetError
        The parts do not fit into /dev/shm, or the memory limit does not hold them and the processes.
    GraphFormatError
        A damaged directory or checkpoint.
    ModuleNotFoundError
        Without DGL: ``pip install 'fastpart[dgl]'``. It needs Python 3.11, torch 2.2.1 and numpy 1.

    Notes
    -----
    Each part needs as much of /dev/shm as its files have, and each process 300 to 500 MB in addition. Validation and
    test scores are exact, with all neighbours. Each trainer computes them for its part of the vertices. The traffic
    between machines is neither authenticated nor encrypted: use a private network.

    Examples
    --------
    >>> import fastpart as fp
    >>> trained = fp.train.distdgl("parts", epochs=20, batch_size=1000, fanouts=[15, 10])  # doctest: +SKIP
    >>> trained.history["remote_bytes"].mean()  # doctest: +SKIP
    """
    options, run = options_of({**training, "batch_size": batch_size, "fanouts": fanouts})
    if sampling_of(options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model!r} needs sampled graphs, but distdgl samples neighbours only. Train it with sdt or "
            "full, or use graphsage, which has the same layers"
        )
    trainers_per_part = parameters.integer("trainers_per_part", trainers_per_part, 1, 1 << 10)
    samplers = parameters.integer("samplers", samplers, 0, 1 << 10)
    resume, overwrite = parameters.flag("resume", resume), parameters.flag("overwrite", overwrite)
    report = report_of(training, run, options.epochs)
    refuse_not_importable(options.model)
    if ip_config is None:
        refuse_several("distdgl")
    import_dgl()
    with Supervisor(run.tmp_dir) as group:
        folder = output_of(group, out, resume, overwrite)
        graph = Export.of(source, group.folder, run)
        if ip_config is None:
            machines = Machines.local(graph.parts, group)
        else:
            graph.refuse_empty_parts()
            machines = Machines.listed(ip_config, graph.parts, group)
        graph.refuse_small_memory(machines.here)
        left_by(graph.needs(machines.here, trainers_per_part, samplers, options), run)
        path = parameters.path("source", source)
        begin(folder, resume, options, must_agree("distdgl", options, {}, graph.identity), path, None)
        with folder.kept():
            history = History("distdgl", options, folder, resume)
            plan = Plan(graph, machines, trainers_per_part, samplers, run.threads)
            plan.start(group, history, resume)
            return follow(group, history, report)
