"""From a partition directory to servers and trainers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from ... import parameters
from ...errors import ParameterError
from ...parameters import StrPath
from ..config import Training, options_of, trains
from ..following import follow, output_of
from ..history import History
from ..models import NEIGHBOUR, sampling
from ..supervisor import Supervisor
from ..trained import Trained
from .exported import Exported
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
    **training: Unpack[Training],
) -> Trained:
    """Train with DGL's distributed engine: mini-batches of sampled neighbours, gradients averaged at every step.

    For each part there is one server, which holds it in shared memory, and ``trainers_per_part`` trainers. All of them
    run on this machine, talking over its loopback interface only; or, with ``ip_config``, each part on a machine of its
    own. As soon as one process fails, all are ended.

    Parameters
    ----------
    source : path
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``; or the
        JSON file that :func:`fastpart.export.dgl` made of one.
    model, hidden, layers, heads, dropout, lr, weight_decay, epochs, patience, seed, out, resume
        As in :func:`fastpart.train.full`. Trainers that ask each other for neighbours do so in no fixed order: with
        several parts, two runs with the same seed differ slightly.
    batch_size : int, optional
        Training vertices per step of each trainer; None: all of them at once.
    fanouts : sequence of int, optional
        Neighbours sampled per layer, first layer first; -1 takes all. Default: 10 each.
    trainers_per_part : int
        Trainers that share a part.
    samplers : int
        Processes that sample for each trainer while it computes; 0: it samples itself.
    ip_config : path, optional
        A file with one line ``ADDRESS PORT`` for each part, in their order: the same call is made on each of these
        machines, with the same export of the graph. Machine 0 also listens on the two ports above its own.
    out : path, optional
        With ``ip_config``, that of machine 0 is the one to resume from.
    threads, tmp_dir, progress
        As in :class:`fastpart.Options`. The threads are those of all trainers on this machine together. The step that
        ``progress`` hears of is "epoch".

    Returns
    -------
    Trained
        Its ``history`` have for each epoch also ``sampling_seconds``, ``fetching_seconds`` (features and labels),
        ``compute_seconds`` and ``synchronising_seconds`` (waiting for the slowest trainer included), each the mean over
        the trainers, while ``seconds`` is that of the slowest; ``local_bytes`` and ``remote_bytes`` of features that
        batches took from their own and from other parts; and ``remote_seeds``, the share of training vertices that a
        trainer of another part took over, so that all trainers do equally many steps: balance them in the partitioner.

    Raises
    ------
    TrainingError
        A process ended, or was not ready in time. The text says which, how, and what it said last.
    ParameterError
        A parameter that cannot be; a directory without features, labels, splits or halo; machines that are not one for
        each part; with ``ip_config``, a part without vertices or edges.
    MemoryBudgetError
        The parts do not fit into /dev/shm.
    GraphFormatError
        A damaged directory or checkpoint.

    Notes
    -----
    Each part takes as much of /dev/shm as its files, and each process 300 to 500 MB besides. Validation and test scores
    are exact, with all neighbours, each trainer on its share of the vertices. The traffic between machines is neither
    authenticated nor encrypted: it belongs on a private network.

    Examples
    --------
    >>> import fastpart as fp
    >>> trained = fp.train.distdgl("parts", epochs=20, batch_size=1000, fanouts=[15, 10])  # doctest: +SKIP
    >>> trained.history["remote_bytes"].mean()  # doctest: +SKIP
    """
    options, run = options_of({**training, "batch_size": batch_size, "fanouts": fanouts})
    if sampling(options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model!r} learns from batches that are no samples of neighbours, and the engine makes no "
            "others; train it with sdt or full, or take graphsage here, which has the same layers"
        )
    trainers_per_part = parameters.integer("trainers_per_part", trainers_per_part, 1, 1 << 10)
    samplers = parameters.integer("samplers", samplers, 0, 1 << 10)
    resume = parameters.flag("resume", resume)
    with Supervisor(run.tmp_dir) as group:
        graph = Exported.of(source, group.folder, run)
        if ip_config is None:
            machines = Machines.local(graph.parts, group)
        else:
            graph.refuse_empty_parts()
            machines = Machines.listed(ip_config, graph.parts, group)
        graph.refuse_small_memory(machines.here)
        history = History("distdgl", options, output_of(group, out, resume), resume, graph.identity)
        plan = Plan(graph, machines, trainers_per_part, samplers, run.threads)
        plan.start(group, history, resume)
        return follow(group, history, run.progress)
