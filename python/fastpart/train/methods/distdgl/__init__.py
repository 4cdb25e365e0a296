"""``distdgl``: mini-batches by the distributed engine of DGL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...method_options import DistDGLOptions
from ...registry import Method

if TYPE_CHECKING:
    from ....partitions.partition import PartitionSource
    from ...runs.trained import TrainedModel

METHOD = Method(
    "distdgl",
    DistDGLOptions,
    driver="fastpart.train.methods.distdgl.driver:Driver",
    defaults={"batch_size": 1000},
    without={
        "target": "",
        "workers": "DGL starts trainers for each part: pass trainers_per_part",
        "device": "DGL's servers are for CPUs. Train with sampled on GPUs",
        "timeout": "DGL decides how long its processes wait for each other",
    },
    launched=False,
)


@METHOD.keywords
def distdgl(source: PartitionSource, options: DistDGLOptions) -> TrainedModel:
    """Train with DGL's distributed engine: mini-batches of sampled neighbours, gradients averaged at every step.

    For each part one server holds the part in shared memory, and ``trainers_per_part`` trainers train. All processes
    run on this machine and use its loopback interface only. With ``ip_config``, each part is on a machine of its own.
    If a process fails, all are stopped.

    Parameters
    ----------
    source : path or partition
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``, or the
        JSON file that :func:`fastpart.export.dgl` wrote for one.
    trainers_per_part : int
        Number of trainers that share a part.
    samplers : int
        Processes that sample for each trainer while it computes. 0: the trainer samples.
    ip_config : path, optional
        A file with one line ``ADDRESS PORT`` for each part, in the order of the parts. Make the same call on each of
        these machines, with the same export of the graph. Machine 0 also listens on the two ports above its own.
    seed
        With several parts, two runs with the same seed differ slightly, because trainers ask each other for neighbours
        in no fixed order.
    out
        With ``ip_config``, resume from the folder of machine 0.

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
    return METHOD.train(source, options)
