"""Partition without choosing an algorithm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack, overload

import numpy.typing as npt

from ... import _core
from ...core import parameters
from ...core.folders import refuse_links
from ...core.inputs import splits_of, train_of
from ...core.option_groups import OptionObject
from ...core.options import Options, RunOptions, run_options, with_options
from ...core.outputs import owning
from ...core.parameters import Of, StrPath, fanouts_of
from ...core.vertex_tables import InOrder, numbers_of_vertices
from ...errors import ParameterError, arg
from ...graphs.given_splits import training_vertices
from ...graphs.graph import Graph, weighted_by_relation
from ...graphs.opening import open_graph
from ...graphs.weights import checked_relation_weights
from ...machines.engine import Engine
from ...machines.starting import at_place
from ..loader_options import BoundOptions, HopOptions, PlaceOptions, SeedOptions
from ..partition import EdgePartition, VertexPartition
from .choice import VOLUME_BALANCE, Request, choose
from .common import SAVED_AFTERWARDS, npy

_OBJECTIVES = {"vertices": ("cut", "halo", "traffic"), "edges": ("replication",)}
_BALANCE = {"vertices": 1.03, "edges": 1.05}


@overload
def partition(
    graph: Any,
    k: int,
    of: Literal["vertices"] = "vertices",
    *,
    objective: Literal["cut", "halo", "traffic"] | None = None,
    effort: Literal["fast", "default", "best"] = "default",
    balance: float | None = None,
    volume_balance: float | None = VOLUME_BALANCE,
    machines: Sequence[int] | None = None,
    sizes: Sequence[float] | None = None,
    fixed: npt.ArrayLike | StrPath | None = None,
    connected: bool = False,
    splits: Any = None,
    split: int | None = None,
    fanouts: Sequence[int] | None = None,
    batch_size: int = 1000,
    relation_weights: Mapping[str, float] | None = None,
    time_limit: float | None = None,
    checkpoints: StrPath | None = None,
    cluster: str | Engine | None = None,
    shared: StrPath | None = None,
    seed: int = 0,
    bounds: OptionObject | None = None,
    batches: OptionObject | None = None,
    run: OptionObject | None = None,
    **options: Unpack[Options],
) -> VertexPartition: ...
@overload
def partition(
    graph: Any,
    k: int,
    of: Literal["edges"],
    *,
    objective: Literal["replication"] | None = None,
    effort: Literal["fast", "default", "best"] = "default",
    balance: float | None = None,
    time_limit: float | None = None,
    checkpoints: StrPath | None = None,
    seed: int = 0,
    out: StrPath | None = None,
    bounds: OptionObject | None = None,
    batches: OptionObject | None = None,
    run: OptionObject | None = None,
    **options: Unpack[Options],
) -> EdgePartition: ...
@with_options(groups=[BoundOptions, HopOptions, SeedOptions, PlaceOptions, RunOptions])
def partition(
    graph: Any,
    k: int,
    of: Of = "vertices",
    *,
    objective: Literal["cut", "halo", "traffic", "replication"] | None = None,
    effort: Literal["fast", "default", "best"] = "default",
    balance: float | None = None,
    volume_balance: float | None = VOLUME_BALANCE,
    machines: Sequence[int] | None = None,
    sizes: Sequence[float] | None = None,
    fixed: npt.ArrayLike | StrPath | None = None,
    connected: bool = False,
    splits: Any = None,
    split: int | None = None,
    fanouts: Sequence[int] | None = None,
    batch_size: int = 1000,
    relation_weights: Mapping[str, float] | None = None,
    time_limit: float | None = None,
    checkpoints: StrPath | None = None,
    cluster: str | Engine | None = None,
    shared: StrPath | None = None,
    seed: int = 0,
    out: StrPath | None = None,
    bounds: OptionObject | None = None,
    batches: OptionObject | None = None,
    run: OptionObject | None = None,
    **options: Unpack[Options],
) -> VertexPartition | EdgePartition:
    """Partition a graph with the algorithm that fits the effort, the memory and the time.

    Vertices are partitioned by :func:`fastpart.multilevel`, which has the lowest cut of all algorithms here. Where the
    graph does not fit in memory, its largest levels lie in temporary files. Edges are partitioned in two ways, and the
    result is the partition with fewer replicas. Where degrees are skewed, both ways are
    :func:`fastpart.algorithms.hep`, with ``tau=10`` and 100, from 17 parts on with 100 only. On other graphs one way is
    ``hep`` with ``tau=100``, the other :func:`fastpart.edges_of` from a multilevel partition with even volumes.
    ``chosen`` in ``parameters`` of the result says what was chosen and why. The algorithm gives the same partition
    anywhere if it is called with the other parameters.

    Parameters
    ----------
    graph : path, array or Graph
        What :func:`open_graph` accepts.
    k : int
        Number of parts, 1 to 2**20. More parts than there are items leave parts empty, with a warning.
    of : {"vertices", "edges"}
        Partition the vertices or the edge records.
    objective : {"cut", "halo", "traffic", "replication"}, optional
        What is minimised. For vertices "cut" (the default), edges between parts, or "halo", copies of
        vertices in the parts of their neighbours, or "traffic", rows that training on mini-batches fetches from other
        parts. For edges "replication", the parts in which a vertex has edges.
    effort : {"fast", "default", "best"}
        How much work to do. "fast" is ``multilevel(effort="fast")`` for vertices, or
        :func:`fastpart.algorithms.refennel` in two passes where the levels do not fit the memory limit, with a warning.
        For edges it is :func:`fastpart.algorithms.hep`. "default" is described above. "best" improves the
        partition in rounds as long as they gain, and runs every other algorithm of :func:`fastpart.compare` within the
        same cap. The best of all is the result.
    balance : float, optional
        A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices, or ``ceil(balance * m / k)`` records.
        Default: 1.03 for vertices and 1.05 for edges.
    volume_balance : float, optional
        A ratio >= 1: no part gets a volume, the sum of its degrees + 1, above ``ceil(volume_balance * (2 m + n) / k)``,
        where m counts edges without loops. A worker that trains on a part computes and stores in proportion to its
        volume. A warning says if that cannot be kept. With None, or k, volumes are not bounded, which cuts 1 to 4 %
        fewer edges. Only for vertices.
    machines : list of int, optional
        How many parts each machine has, as ``[8, 8]``. Their sum is k. Few edges between machines then come first, and
        few between the parts of a machine second. Only for vertices.
    sizes : list of float, optional
        How large each part is to be relative to the others, as ``[2, 1, 1]``: k numbers above 0. A part of share s gets
        at most ``ceil(balance * n * s / sum of sizes)`` vertices. By default all are equal. Only for vertices.
    fixed : array of integers, shape (n,), or path of a .npy, optional
        The part that each vertex must be in, or -1 where it is free. Or a table with ids and parts, which leaves all
        other vertices free. Only for vertices.
    connected : bool
        Move fragments of parts to the parts around them, as far as the bounds allow, so that parts are connected. A
        warning says how many fragments stay. Only for vertices.
    splits : mapping, or path of a .npz or a table, optional
        ``train``: vertex ids, or a bool mask of length n. For ``objective="traffic"``, which needs it.
    split : int, optional
        Which row of ``train_masks`` of shape (s, n) to use.
    fanouts : sequence of int, optional
        In-edges per vertex in each hop, from the seeds on. For ``objective="traffic"``. Default: 10, 10.
    batch_size : int
        Seeds of a step on all ranks, for ``objective="traffic"``.
    relation_weights : mapping of str to float, optional
        Factors by relation of a typed graph, as ``{"cites": 2.0}``. They multiply the weights of the records, which are
        1 if there are none. A relation that is not named has the factor 1. Only for vertices.
    time_limit : float, optional
        Seconds that this should take. If they are too few for the multilevel partitioner by its own prediction, "fast"
        is taken, with a warning. Where several algorithms are compared, only the last may begin after half of it. With
        ``effort="best"`` no further round begins after it.
    checkpoints : path, optional
        A folder for what has been found so far, if levels lie in temporary files. A run that was killed goes on from
        there when it is called again, and gives the same partition. See :func:`fastpart.multilevel`.
    cluster : str, optional
        The Ray cluster whose machines make the partition together: its address, or "auto" for ``RAY_ADDRESS`` or the
        one that runs here. "tasks" leaves tasks in ``shared`` for ``fastpart work``, without Ray. The bits are those of
        :func:`multilevel` with ``path="two_levels"`` and the ``sample`` that stands in ``parameters``, for any number
        of machines. One machine is faster for every graph that fits it. Only for vertices. A run that was killed goes
        on when it is called again.
    shared : path, optional
        A folder that all machines of the cluster see. Needed with ``cluster``.
    seed : int, optional
        Seed, 0 to 2**64 - 1. The same seed gives the same partition for any number of threads.
    out : path of a .npy, optional
        File for the parts of the records. They are then mapped from it and need no memory. Only for edges.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    VertexPartition or EdgePartition
        By ``of``, with ``assignment``, ``loads`` and ``cap``. ``algorithm`` is the one that was chosen.
        ``parameters["chosen"]`` is a dict: ``algorithm`` with what sets it apart, the ``effort`` asked for,
        ``because``, the measures of all that were ``compared``, and why others were ``left_out``.

    Warns
    -----
    UserWarning
        The memory limit or the time limit led to an algorithm of less effort.
    CapacityWarning
        A part has a volume above the bound, because a vertex alone has more, or because streams do not bound volumes.

    Raises
    ------
    MemoryBudgetError
        Not even a stream fits into the memory limit.
    ParameterError, TypeError
        An invalid parameter. The text says what is valid.

    See Also
    --------
    multilevel : Vertices, with bounds on weights. It bounds volumes only if it is asked to.
    edges_of : Edges, from any partition of the vertices.
    compare : Run several algorithms, and see their measures.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    >>> p = fp.partition(two_triangles, 2)
    >>> p.cut_ratio
    0.14285714285714285
    >>> p.algorithm, p.parameters["chosen"]["because"]
    ('multilevel', 'it is what effort="default" takes, all in memory')
    >>> fp.partition(two_triangles, 2, of="edges", balance=1.2).rf
    1.1666666666666667

    Notes
    -----
    ``objective="traffic"`` weights each edge by how often uniform sampling is expected to sample it, by the access
    probabilities of :func:`predict_traffic` as if all seeds were in one part, and looks for a cut of small weight.
    The bounds are those of "cut".

    If a typed graph lies in a graph directory with a training split of some type, no part gets more than 1.05 times its
    share of the training vertices of that type, where the algorithm knows such bounds. The log says so, and
    ``bounded_types`` of the result. Training vertices of other graphs are not balanced. :func:`multilevel` does that,
    with ``balance_on=``.
    """
    k = parameters.parts(k)
    of = parameters.choice("of", of, ("vertices", "edges"))
    effort = parameters.choice("effort", effort, ("fast", "default", "best"))
    goal = parameters.choice("objective", objective or _OBJECTIVES[of][0], _OBJECTIVES[of])
    if time_limit is not None and not parameters.number("time_limit", time_limit) >= 0:
        raise ParameterError(f"time_limit: {time_limit} is not a number of seconds of 0 or more")
    opened = open_graph(graph, **options)
    if of == "vertices" and out is not None:
        raise ParameterError(f"out: needs {arg('of', 'edges')}. {SAVED_AFTERWARDS}")
    if of == "edges" and machines is not None:
        raise ParameterError(f"machines: needs {arg('of', 'vertices')}")
    known = None
    if fixed is not None:
        n, ids = opened.num_vertices, opened._id_tables
        known = InOrder(numbers_of_vertices("fixed", fixed, n, ids, missing=-1))
    given_shares = {"sizes": sizes, "fixed": known, "connected": connected or None}
    shares = {name: value for name, value in given_shares.items() if value is not None}
    if of == "edges" and shares:
        raise ParameterError(
            f"{next(iter(shares))}: needs {arg('of', 'vertices')}. Leave it out, or partition the vertices"
        )
    if relation_weights is not None and (of == "edges" or goal == "traffic"):
        raise ParameterError(
            f'relation_weights: needs {arg("of", "vertices")} and another objective than "traffic"'
        )
    factors = checked_relation_weights(opened.relations, relation_weights)
    if of == "edges" and volume_balance not in (None, VOLUME_BALANCE):
        raise ParameterError(
            f"volume_balance: needs {arg('of', 'vertices')}. Edge partitions bound the records of a part with balance"
        )
    request = Request(
        graph=_weighted_by_samples(opened, k, (splits, split, fanouts, batch_size), options)
        if goal == "traffic"
        else weighted_by_relation(opened, factors, run_options(**options)),
        k=k,
        of=of,
        objective="cut" if goal == "traffic" else goal,  # of the weights
        effort=effort,
        balance=parameters.ratio("balance", _BALANCE[of] if balance is None else balance),
        volume_balance=None
        if of == "edges" or volume_balance is None
        else parameters.ratio("volume_balance", volume_balance),
        machines=machines,
        shares=shares,
        checkpoints=checkpoints,
        seed=parameters.seed(seed),
        trained=training_vertices(opened) if of == "vertices" else {},
        options=options,
    )
    if cluster is not None and (goal != "cut" or time_limit is not None or checkpoints is not None):
        raise ParameterError(
            f"cluster: a cluster takes {arg('objective', 'cut')} only, and neither time_limit nor checkpoints. It "
            "keeps "
            "what is done in the folder shared"
        )
    target = None if out is None else npy(out, opened)
    folder = None if checkpoints is None else parameters.path("checkpoints", checkpoints)
    try:
        with owning(out=target, checkpoints=folder), at_place(cluster, shared) as place:
            if folder is not None:
                refuse_links(folder, [each.name for each in folder.glob("checkpoint*")])
            partition = choose(request, time_limit, target) if place is None else request.on(place)
        if goal == "traffic":
            partition.parameters["chosen"]["objective"] = goal
        if factors is not None:
            partition.parameters["relation_weights"] = factors
        if request.graph is not opened:
            partition.graph = opened  # without the weights
            vars(partition).pop("_measures", None)
        return partition  # type: ignore[return-value]
    finally:
        if opened is not graph:  # the partition keeps the graph, but not its adjacency
            opened._source.forget_csr()


def _weighted_by_samples(graph: Graph, k: int, given: tuple[Any, ...], options: Options) -> Graph:
    """Return the graph with a weight for each record: how often training samples it."""
    splits, split, fanouts, batch_size = given
    if splits is None:
        raise ParameterError(
            f"splits: {arg('objective', 'traffic')} depends on the training vertices. Pass {arg('splits')} with train"
        )
    if graph._weights is not None:
        raise ParameterError(
            f'objective: "traffic" makes weights of the records of its own. Open the graph with {arg("weights", False)}'
        )
    weights = _core.sampling_weights(
        graph._source,
        k,
        train_of(splits_of(splits, graph.num_vertices, split, graph._id_tables)),
        fanouts_of((10, 10) if fanouts is None else fanouts),
        directedness=graph.directedness,
        relations=graph._directions,
        batch_size=parameters.integer("batch_size", batch_size, 1, 2**31 - 1),
        options=run_options(**options),
    )
    return graph._with_weights(weights, run_options(**options))
