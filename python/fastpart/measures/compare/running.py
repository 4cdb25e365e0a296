"""The comparison: run each entry, measure its partition, and collect the outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from traceback import format_exception
from typing import Any, NamedTuple, Unpack

import numpy as np

from ... import _core
from ...core import parameters
from ...core.frames import pl
from ...core.inputs import labels_of, train_of
from ...core.notes import log
from ...core.options import Options, RunOptions, run_options, with_options
from ...core.parameters import Progress, one_line, shown
from ...errors import EdgeFileChangedError, FastpartError, ParameterError
from ...graphs.graph import Graph
from ...graphs.opening import open_graph
from ...graphs.typed_splits import typed_splits
from ...partitions.homes import home_parts
from ...partitions.loader_options import Fanouts
from ...partitions.partition import EdgePartition, Partition
from ...partitions.results import Evaluation
from ..evaluate import evaluate
from ..row_types import RowTypes, directory_bytes
from ..sampling_plan import SamplingPlan, edge_keys_of, traffic_of
from ..traffic import of_input, summed
from .comparison import Comparison
from .entries import Entry, Run, entries_of
from .outcomes import LISTED_PARTS, MATRIX_PARTS, Outcome
from .peers import Bench


@with_options
def compare(
    graph: Any,
    k: int | Iterable[int],
    algorithms: Iterable[Any] | None = None,
    *,
    labels: Any = None,
    splits: Any = None,
    split: int | None = None,
    fanouts: Fanouts | None = None,
    batch_size: int = 1024,
    cache: float | Sequence[float] = (0, 0.1),
    input: str | None = None,
    row_bytes: int | Mapping[str, int] | None = None,
    seed: int | None = 0,
    peers: bool | None = None,
    time_limit: float = 600.0,
    on_outcome: Callable[[Comparison], Any] | None = None,
    **options: Unpack[Options],
) -> Comparison:
    """Run partitioners on one graph, one after the other, and measure their partitions and their cost.

    Parameters
    ----------
    graph : path, array or Graph
        The graph, as :func:`open_graph` accepts it.
    k : int or several
        Numbers of parts.
    algorithms : list, optional
        Names of algorithms, partitions and functions. Each element is one of these. The name of a built-in
        partitioner or of a peer (``metis``, ``kaminpar``, ``mtkahypar``, ``heistream``). A name with parameters:
        ``"spring:passes=2"`` or ``("spring", {"passes": 2})``. A partition, which is measured at its own k. A
        ``callable(graph, k)`` that returns a partition or an array (one part per vertex or per record). Or ``(label,
        partition)``, ``(label, callable)``. A callable also gets ``seed``, ``splits``, ``threads``, ``memory_limit``,
        ``tmp_dir`` and ``progress`` if it has parameters of these names. Default: all built-in partitioners
        (:func:`bytegnn` with ``splits`` only), their variants (``of``, ``scoring``), and the peers that are
        installed.
    labels, splits, split
        As in :func:`evaluate`, for vertex partitions. Algorithms that take ``splits`` get them, too.
    fanouts : sequence of int, or mapping of them, optional
        In-edges per vertex in each hop, from the seeds on. Adds the traffic of training on mini-batches that
        :func:`predict_traffic` predicts for vertex partitions. Needs training vertices.
    batch_size : int
        Seeds of a step on all ranks, for ``fanouts``.
    cache : float or several
        Caches to predict for, each as a share of the rows of a part. 0 is none.
    input : str, optional
        The type of the seeds in a typed graph, for ``fanouts``. Default: the only one with training vertices.
    row_bytes : int or mapping of str to int, optional
        Bytes of the features of a vertex, or those by type, for ``remote_mb``. Default: those in a graph directory.
    seed : int, optional
        The seed of all algorithms that take one.
    peers : bool, optional
        True adds the installed peers to the named algorithms. False leaves them out.
    time_limit : float
        Seconds after which a run of a peer is killed.
    on_outcome : callable, optional
        Called after each run with the comparison so far, for example to save it. Its exceptions end the comparison.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. A peer that takes more memory is killed.

    Returns
    -------
    Comparison
        ``.summary`` has one row per algorithm and k: ``of, algorithm, k, n, m, loops``, then the measures of
        :func:`evaluate` (null where they do not apply, and ``halo_rf`` of an edge partition is that of its home parts),
        for a typed graph with ``type_balance``, the worst balance of a type of vertices, and with ``.types``, one row
        per algorithm, k and type with the measures of :func:`evaluate` and the traffic of the type,
        with ``fanouts`` ``remote_rows`` per epoch without a cache, ``remote_rows_0.1`` with a cache of 0.1 and so on,
        with ``row_bytes`` the same of ``remote_mb``, then
        ``seconds, edges_per_s, bytes_per_vertex``, and ``error``: why there is no partition, else null.

    Raises
    ------
    ParameterError, TypeError
        An unknown algorithm or parameter, or labels or splits that do not fit. This is raised before anything runs.
    EdgeFileChangedError
        The file changed during the comparison.

    Notes
    -----
    An algorithm that cannot run gets a row with the reason in ``error``. The others continue. If the reason is a
    defect, the outcome also has its ``traceback``, which the report shows.

    ``seconds`` is the wall time of the call. The graph is open and was read once before. Caches such as the adjacency
    are cleared before each run, so every algorithm pays its full cost. ``bytes_per_vertex`` is the largest growth of
    the process's anonymous memory during the call, sampled every millisecond, divided by n. It includes the result and
    fixed buffers, so it means little below some 100,000 vertices. Mapped files do not count, not even temporary ones.

    A peer gets the simple graph (parallel records merged into a weight, loops dropped) in CSR form. Weights of records
    are added up, and halved until their sum is below 2**30. Its seconds are
    those of the call alone, without making and loading that graph. Its memory includes the graph.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
    >>> def halves(graph, k):
    ...     return np.arange(graph.num_vertices) * k // graph.num_vertices
    >>> fp.compare(graph, 2, ["spring", halves]).summary["algorithm", "cut_ratio", "halo_rf"].rows()
    [('spring', 0.0, 1.0), ('halves', 0.0, 1.0)]
    """
    wanted = [parameters.parts(one) for one in ([k] if not isinstance(k, Iterable) else k)]
    entries = entries_of(algorithms, peers, with_splits=splits is not None)
    run = run_options(**options)
    limit = parameters.positive("time_limit", time_limit)
    seed = parameters.seed(seed)
    opened = open_graph(graph, **options)
    n = opened.num_vertices
    measured = {
        "labels": None if labels is None else labels_of(labels, n, opened._id_tables),
        "splits": typed_splits(opened, splits, split) or None,
    }
    predict = _prediction(opened, measured["splits"], (fanouts, batch_size, cache, row_bytes, input), run)
    if opened.weights is not None:
        log.info(
            "the records are weighted. multilevel and the peers read weights, the others count each record once"
        )
    loops, checksum = opened.identify(run)  # this also reads the file into the page cache
    facts = {
        "name": shown(Path(opened.path).name) if opened.path else "graph",
        "n": n,
        "m": opened.num_edges,
        "loops": loops,
        "checksum": checksum,
        "threads": run.threads or _core.default_threads(),
    }
    with Bench(run, seed, limit) as bench:
        so_far = Comparison(facts, ())
        for entry, parts in _runs(entries, wanted):
            outcome = _run(entry, parts, opened, run, bench, measured, predict)
            so_far = Comparison(facts, (*so_far.outcomes, outcome))
            if on_outcome is not None:
                on_outcome(so_far)
    return so_far


class Predicted(NamedTuple):
    """The traffic of a partition: columns of its row, and those of its types."""

    row: dict[str, float]
    types: list[pl.Series]


Prediction = Callable[[Partition], Predicted]


def _prediction(graph: Graph, splits: Any, given: tuple[Any, ...], run: RunOptions) -> Prediction:
    """Return what predicts the columns of the traffic of a partition."""
    fanouts, batch_size, cache, row_bytes, input = given
    if fanouts is None:
        return lambda partition: Predicted({}, [])
    if not splits:
        raise ParameterError(
            "splits: the traffic of training depends on its vertices. Pass splits= with train"
        )
    train = of_input(splits, graph, input)
    train_of(train)
    shares = cache if isinstance(cache, Iterable) else [cache]
    plan = SamplingPlan.of(fanouts, batch_size, shares, edge_keys_of(graph))
    names = None if graph.types is None else [each.name for each in graph.types]
    rows = RowTypes.of(names, row_bytes, directory_bytes(graph))

    def predict(partition: Partition) -> Predicted:
        if isinstance(partition, EdgePartition):
            return Predicted({}, [])
        found = traffic_of(graph, partition, train, plan, rows, run)
        columns = {}
        types: list[pl.Series] = []
        for index, share in enumerate(plan.caches):
            traffic = summed(found, plan, index, rows)
            end = f"_{share:g}" if share else ""
            columns[f"remote_rows{end}"] = float(round(traffic.fetched_rows))
            if traffic.fetched_mb is not None:
                columns[f"remote_mb{end}"] = traffic.fetched_mb
            if traffic.types is not None:
                types += _of_types(traffic.types, end)
        return Predicted(columns, types)

    return predict


def _of_types(traffic: pl.DataFrame, end: str) -> list[pl.Series]:
    """Return the columns of the traffic of each type, with this end of their names."""
    fetched = (traffic["remote_rows"] - traffic["saved_rows"]).round()
    columns = [fetched.rename(f"remote_rows{end}")]
    if traffic["fetched_mb"].null_count() < len(traffic):
        columns.append(traffic["fetched_mb"].rename(f"remote_mb{end}"))
    return columns


def _run(
    entry: Entry,
    k: int,
    graph: Graph,
    run: RunOptions,
    bench: Bench,
    measured: Mapping[str, Any],
    predict: Prediction,
) -> Outcome:
    """Run and measure one entry. What it raises becomes the ``error`` of its row."""
    progress = None if run.progress is None else _LabelledProgress(run.progress, f"{entry.label}, k={k}")
    bench.options = replace(run, progress=progress)
    options = vars(bench.options)
    try:
        result = entry.run(graph, k, options | {"seed": bench.seed, "splits": measured["splits"]}, bench)
        more = {} if isinstance(result.partition, EdgePartition) else measured
        evaluation = evaluate(graph, result.partition, **more, **options)
        outcome = _outcome(entry.label, result, evaluation, _home_halo(graph, result, options))
        columns, of_types = predict(result.partition)
        outcome.row.update(columns)
        if outcome.types is None or not of_types:
            return outcome
        return replace(outcome, types=pl.DataFrame([*outcome.types.get_columns(), *of_types]))
    except Exception as error:  # functions of users and other packages may raise anything
        if isinstance(error, EdgeFileChangedError) or (progress is not None and error is progress.raised):
            raise
        sizes = {"n": graph.num_vertices, "m": graph.num_edges, "loops": graph.identify(run)[0]}
        row = {"of": entry.of, "algorithm": entry.label, "k": k, **sizes, "error": _reason(error)}
        trace = getattr(error, "traceback", None) if _refusal(error) else "".join(format_exception(error))
        return Outcome(row, traceback=trace)


def _runs(entries: list[Entry], wanted: list[int]) -> list[tuple[Entry, int]]:
    """Return the entries to run with their numbers of parts, in the order of these numbers."""
    numbers = dict.fromkeys([*wanted, *(entry.only_k for entry in entries if entry.only_k is not None)])
    return [
        (entry, parts)
        for parts in numbers
        for entry in entries
        if (parts in wanted if entry.only_k is None else entry.only_k == parts)
    ]


def _home_halo(graph: Graph, result: Run, options: Mapping[str, Any]) -> float | None:
    """Return the halo replication factor of the home parts of an edge partition."""
    if not isinstance(result.partition, EdgePartition):
        return None
    homes = home_parts(graph, result.partition, **options)
    return float(evaluate(graph, homes, **options).summary["halo_rf"][0])


def _outcome(label: str, result: Run, evaluation: Evaluation, home_halo: float | None) -> Outcome:
    row = evaluation.summary.row(0, named=True) | {"algorithm": label}
    row.pop("components", None)  # the parts have them, and the table stays narrow
    if home_halo is not None:
        row["halo_rf"] = home_halo
    if result.seconds is not None:
        row["seconds"] = result.seconds
    if result.seconds and row["m"]:
        row["edges_per_s"] = round(row["m"] / result.seconds)
    if result.memory is not None and row["n"]:
        row["bytes_per_vertex"] = -(-result.memory // row["n"])
    parts: pl.DataFrame | None = evaluation.parts if row["k"] <= LISTED_PARTS else None
    matrix = evaluation.cut_matrix if row["k"] <= MATRIX_PARTS else None
    matrix = matrix if isinstance(matrix, np.ndarray) else None
    return Outcome(row, parts, matrix, types=evaluation.types, relations=evaluation.relations)


class _LabelledProgress:
    """A progress callback that puts the algorithm before the name of a step, and keeps the exception it raised."""

    def __init__(self, progress: Progress, label: str) -> None:
        self.progress, self.label = progress, label
        self.raised: Exception | None = None

    def __call__(self, phase: str, done: int, total: int) -> None:
        try:
            self.progress(f"{self.label}: {phase}", done, total)
        except Exception as error:
            self.raised = error
            raise


def _reason(error: Exception) -> str:
    text = one_line(error)
    return text if _refusal(error) and text else f"{type(error).__name__}: {text}".rstrip(": ")


def _refusal(error: Exception) -> bool:
    return isinstance(error, FastpartError | MemoryError)
