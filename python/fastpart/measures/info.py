"""Facts about a graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core import parameters
from ..core.options import Options, RunOptions, run_options, with_options
from ..errors import ParameterError
from ..graphs.graph import Graph
from ..graphs.graph_directory import GraphDirectory
from ..graphs.opening import open_graph
from ..machines import starting
from ..partitions.partitioners.choice import VOLUME_BALANCE
from ..partitions.partitioners.speed import slowness
from .facts import RATES, GraphFacts, PartitionFacts, TrainingFacts, is_partition_directory, partition_facts

_QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1.0)


_OF_TRAINING = "it is a parameter of a training. Pass train={{{name!r}: ...}} and a partition directory"


@partial(
    with_options,
    without={name: _OF_TRAINING.format(name=name) for name in ("fanouts", "batch_size", "workers", "model")},
)
def info(
    graph: Any,
    k: int = 64,
    cluster: int | str | None = None,
    train: bool | Mapping[str, Any] = False,
    **options: Unpack[Options],
) -> GraphFacts | PartitionFacts | TrainingFacts:
    """Describe a graph, and what partitions of it would cost, or a partition directory.

    Parameters
    ----------
    graph : path, array or Graph
        The graph, as :func:`open_graph` accepts it, or a partition directory.
    k : int
        Number of parts that the estimates suppose. Those of a partition directory are what they are.
    cluster : int, "auto" or str, optional
        What :func:`partition` would take on a cluster: on so many machines, or on those of a Ray cluster that runs, as
        :func:`partition` names it. None says nothing of it.
    train : bool or mapping
        What an epoch of ``fastpart.train.sampled`` over a partition directory would read, what its workers take, and
        which way to read features pays. A mapping has parameters of the training, such as ``{"fanouts": [15, 10]}``.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    GraphFacts
        A dict, which prints as tables: ``n``, ``m``, ``loops``, ``directedness``, ``types`` and ``relations`` (only of
        typed graphs: a dict of each, as the sidecar lists it), ``weights`` (only of weighted records: min, max, sum and
        scale, see :func:`open_graph`), ``features`` (only of a graph directory: for each type and relation with
        features its name, ``width`` and ``dtype``, and ``columns``, the columns of the table that they are made of,
        each with its ``first`` place and its ``width``), ``isolated`` (vertices without a non-loop record),
        ``mean_degree``, ``degrees`` (quantiles, by name), ``checksum``, ``k``, and ``memory``, the bytes that each
        algorithm, and :func:`refine`, would need, by name. Algorithms that read the neighbours of vertices need
        ``memory["adjacency"]`` in addition. The first call builds the adjacency, and the :class:`Graph` keeps it. The
        part of it that exceeds half of the memory limit lies in temporary files and is not counted. ``plans`` says how
        :func:`partition` works with each memory limit. A larger one never leads to a worse plan. With ``cluster`` also
        ``cluster``, what a partition there takes.

    PartitionFacts
        Of a partition directory. A dict, which prints as tables: ``of``, ``k``, ``algorithm`` and ``parameters`` (with
        the seed), ``n``, ``m``, ``loops``, ``checksum`` and ``directedness`` of its graph, ``halo_hops``, the versions
        ``fastpart`` and ``schema`` that it was written with, the path of its ``input``, its ``bytes`` and ``files``,
        ``data`` (what is stored for vertices and edges, or for each type and relation), ``parts`` (vertices, halo,
        edges and bytes of each), and ``summary``, the measures of its writing. Nothing is measured anew. What is not
        known is None.

    TrainingFacts
        With ``train``. A dict, which prints as text: the parameters that count, ``reads`` (rows of features of an
        epoch, and their bytes), ``stored`` (the features in their files), ``disk`` (what it does in a second),
        ``needs`` (what each worker takes), ``limit``, ``needed`` and ``left`` (bytes of memory), ``ways`` (bytes and
        seconds of each way to read the features), ``advice``, and ``refusal``, why the training would not begin.
        Epoch 0 is sampled, and the disk is measured for a second.

    Raises
    ------
    ParameterError
        ``k`` or ``cluster`` is invalid, or there is no such cluster. With ``train``, a parameter of the training is.
    GraphFormatError
        The directory is damaged. :func:`fastpart.store.verify` also reads the content of its files.

    Notes
    -----
    ``plans`` is a list of dicts, which ``polars.DataFrame`` takes. Each has the least ``memory`` limit (bytes) that
    leads to it, ``path`` and ``sample`` as :func:`multilevel` takes them, where the ``adjacency`` lies ("memory" or
    "files"), the bytes of temporary ``files`` at most, the bytes ``read`` and ``written`` if no page cache helps, and
    ``seconds``: if the page cache holds all files, and with disks of 2, 0.5 and 0.2 GB/s without a page cache. Seconds
    are predictions for the default bounds. The first call measures the speed of the machine for a second, and keeps it
    in the cache folder of the user. Expect 30 % more or less on a machine that does nothing else.

    ``cluster`` is a dict: the number of ``machines``, the ``sample`` that :func:`partition` takes there, bytes of
    ``memory`` that each machine needs, bytes that the folder ``shared`` needs at most, and bytes of ``messages``. Each
    message counts once, and goes to all other machines. ``one_machine`` is the plan for this machine alone, within its
    memory limit, or None if it is too small. A partition has the bytes that were sent in ``costs``. Where many edges
    are cut, expect 20 % more or less. Where parts are easy to find, as in road networks, a third is sent.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> facts = fp.info(np.array([[0, 1], [1, 2], [2, 2]]))
    >>> facts["loops"], facts["degrees"]["max"]
    (1, 2)
    >>> import tempfile
    >>> p = fp.partition(np.array([[0, 1], [1, 2]]), k=2)
    >>> parts = tempfile.mkdtemp()
    >>> stored = p.save(f"{parts}/parts")
    >>> fp.info(f"{parts}/parts")["parts"][0]["vertices"] > 0
    True
    """
    parts = parameters.parts(k)
    if train or isinstance(train, Mapping):
        if cluster is not None:
            raise ParameterError("cluster: a training has no estimates of it. Leave it out")
        return _of_training(graph, train, options)
    if is_partition_directory(graph):
        if cluster is not None:
            raise ParameterError(
                "cluster: a partition directory has no estimates. Leave it out, or name the graph"
            )
        return partition_facts(graph)
    opened = open_graph(graph, **options)
    degrees = opened.degrees(**options)
    loops, checksum = opened.identify()
    limits = run_options(**options)
    n, isolated = opened.num_vertices, int(np.count_nonzero(degrees == 0))
    plans = _plans(opened, parts, degrees, limits)
    there = {}
    if cluster is not None:
        there = starting.costs(opened, parts, VOLUME_BALANCE, cluster, n - isolated, plans, limits)
    quantiles = np.quantile(degrees, _QUANTILES, method="lower") if n else np.zeros(len(_QUANTILES))
    names = ("min", "25%", "50%", "75%", "90%", "99%", "99.9%", "max")
    described = {
        "n": n,
        "m": opened.num_edges,
        "loops": loops,
        "directedness": opened.directedness,
        **({} if opened._typed is None else opened._typed.content),
        **({"weights": opened._weights.facts} if opened._weights else {}),
        **_features(opened),
        "isolated": isolated,
        "mean_degree": round(2 * (opened.num_edges - loops) / n, 3) if n else 0.0,
        "degrees": {name: int(value) for name, value in zip(names, quantiles, strict=True)},
        "checksum": checksum,
        "k": parts,
        "memory": _core.memory_estimates(opened._source, parts, opened.directedness == "symmetric", limits),
        "plans": plans,
        **({"cluster": there} if there else {}),
    }
    return GraphFacts(described)


def _of_training(source: Any, train: bool | Mapping[str, Any], options: Options) -> TrainingFacts:
    """Return what a training over a partition directory would read and take."""
    from ..train.plugged import import_torch

    import_torch()
    from ..train.costs import costs

    if not isinstance(train, bool | Mapping):
        raise TypeError(
            f"train: expected True or parameters of the training by name, got {type(train).__name__}"
        )
    found = costs(source, **{**options, **(train if isinstance(train, Mapping) else {})})
    return TrainingFacts.of(found.rows(), str(found))


def _features(graph: Graph) -> dict[str, Any]:
    """Return the features that lie in the directory of a graph, if it has one."""
    if graph.directory is None:
        return {}
    found = GraphDirectory(graph.directory).features
    return {"features": found} if found else {}


def _plans(graph: Graph, k: int, degrees: npt.NDArray[np.uint32], limits: RunOptions) -> list[dict[str, Any]]:
    """Return how the multilevel partitioner works with each memory limit, within the default bounds."""
    plans = _core.multilevel_plans(
        graph._source, k, graph.directedness == "symmetric", VOLUME_BALANCE, degrees, limits
    )
    slower = slowness()
    return [
        {
            "memory": plan.memory,
            "path": plan.path,
            "sample": None if plan.path == "memory" else plan.sample,
            "adjacency": "files" if plan.outside else "memory",
            "files": plan.files,
            "read": plan.read,
            "written": plan.written,
            "seconds": {
                name: round(
                    plan.seconds * slower + (plan.read + plan.written if rate else 0) / (rate or 1), 3
                )
                for name, rate in RATES.items()
            },
        }
        for plan in plans
    ]
