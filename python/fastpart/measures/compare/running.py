"""The comparison: run each entry, measure its partition, and collect the outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from traceback import format_exception
from typing import Any, Unpack

import numpy as np

from ... import _core
from ...core import parameters
from ...core.frames import pl
from ...core.option_groups import OptionObject
from ...core.options import Options, RunOptions, run_options, with_options
from ...core.parameters import Progress, one_line
from ...errors import EdgeFileChangedError, FastpartError, ParameterError
from ...graphs.graph import Graph
from ...partitions.homes import home_parts
from ...partitions.loader_options import Fanouts, FetchingOptions, HopOptions, SeedOptions
from ...partitions.partition import EdgePartition
from ...partitions.partitioners.common import cap_of
from ...partitions.results import Evaluation
from ..evaluate import evaluate
from .comparison import Comparison
from .entries import BALANCE, Entry, Run, Subject, entries_of, subjects_of
from .outcomes import BOUNDED, LISTED_PARTS, MATRIX_PARTS, Outcome
from .peers import Bench
from .provenance import provenance_of


@with_options(groups=[HopOptions, SeedOptions, FetchingOptions, RunOptions])
def compare(
    graph: Any,
    k: int | Iterable[int],
    algorithms: Iterable[Any] | None = None,
    *,
    labels: Any = None,
    splits: Any = None,
    split: int | None = None,
    fanouts: Fanouts | None = None,
    batch_size: int = 1000,
    cache: float | str | Sequence[float | str] = (0, 0.1),
    input: str | None = None,
    row_bytes: int | Mapping[str, int] | None = None,
    balance: float | None = 1.03,
    seed: int = 0,
    seeds: int | Sequence[int] = 1,
    baseline: str | None = None,
    peers: bool | None = None,
    time_limit: float = 600.0,
    on_outcome: Callable[[Comparison], Any] | None = None,
    batches: OptionObject | None = None,
    fetching: OptionObject | None = None,
    run: OptionObject | None = None,
    **options: Unpack[Options],
) -> Comparison:
    """Run partitioners under one bound, one after the other, and measure their partitions and their cost.

    Parameters
    ----------
    graph : path, array or Graph, or list or dict of these
        The graph, as :func:`open_graph` accepts it. In a list of paths, of graphs or of two-dimensional arrays each is
        a graph of its own. A dict also names them: ``{"Cora": graph, "DBLP": "dblp.txt"}``. Pass ``open_graph(files)``
        for one graph in several files.
    k : int or several
        Numbers of parts.
    algorithms : list or dict, optional
        Names of algorithms, partitions and functions. Each element is one of these. The name of a built-in partitioner
        or of a peer (``metis``, ``kaminpar``, ``mtkahypar``, ``heistream``, ``buffcut``). A name with parameters:
        ``"spring:passes=2"`` or ``("spring", {"passes": 2})``. A partition, which is measured at its own k. A
        ``callable(graph, k)`` that returns a partition or an array (one part per vertex or per record). Or ``(label,
        algorithm)``, which gives an algorithm, a partition or a callable this name in tables. A dict does the same:
        ``{"ours": mine, "KaMinPar": "kaminpar:preset=strong"}``. A callable also gets ``balance``, ``seed``,
        ``splits``, ``threads``, ``memory_limit``, ``tmp_dir`` and ``progress`` if it has parameters of these names.
        Default: all built-in partitioners (``bytegnn`` with ``splits`` only), their variants (``of``, ``scoring``), and
        the peers that are installed, also with their presets of highest quality.
    labels, splits, split
        As in :func:`evaluate`, for vertex partitions. Algorithms that take ``splits`` get them, too. They are of one
        graph, so several graphs cannot have any.
    fanouts : sequence of int, or mapping of them, optional
        In-edges per vertex in each hop, from the seeds on. Adds the traffic of training on mini-batches that
        :func:`predict_traffic` predicts for vertex partitions. Needs training vertices.
    batch_size : int
        Seeds of a step on all ranks, for ``fanouts``.
    cache : float or str, or several
        Caches to predict for, each as :func:`predict_traffic` takes it: a share of the rows of a part, or memory with
        its unit. 0 is none.
    input : str, optional
        The type of the seeds in a typed graph, for ``fanouts``. Default: the only one with training vertices.
    row_bytes : int or mapping of str to int, optional
        Bytes of the features of a vertex, or those by type, for ``remote_mb``. Default: those in a graph directory.
    balance : float, optional
        The bound of all algorithms and peers: the largest part over the mean, in vertices, or in records for
        partitions of edges. An algorithm with a ``balance`` of its own (``"spring:balance=1.1"``) keeps that, and a few
        (``random``, ``hash``, ``dbh``) take none. Parts above the bound are marked. None: each algorithm has its own
        default, peers have 1.03, and nothing is marked.
    seed : int, optional
        The seed of all algorithms that take one.
    seeds : int or sequence of int
        Number of runs of each algorithm, with the seeds ``seed``, ``seed + 1``, ..., or the seeds themselves. Tables
        show the mean and the standard deviation of cut (or replication factor) and seconds.
    baseline : str, optional
        The algorithm to which :attr:`Comparison.ratios` relates the others of its kind. Default: the first of each
        kind.
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
        ``.summary`` has one row per algorithm and k: ``of, algorithm, k, n, m, loops``, before these ``graph`` if there
        are several, then the measures of
        :func:`evaluate` (null where they do not apply, and ``halo_rf`` of an edge partition is that of its home parts),
        for a typed graph with ``type_balance``, the worst balance of a type of vertices, and with ``.types``, one row
        per algorithm, k and type with the measures of :func:`evaluate` and the traffic of the type,
        with ``fanouts`` ``remote_rows`` per epoch without a cache, ``remote_rows_0.1`` with a cache of 0.1,
        ``remote_rows_2M`` with one of "2M" and so on, with ``row_bytes`` the same of ``remote_mb``,
        then ``above_bound``: whether a part is above ``balance``, ``seconds, edges_per_s, bytes_per_vertex``, and
        ``error``: why there is no partition, else null. With several
        ``seeds`` a row has means, the largest balances and memory, and the standard deviations ``cut_ratio_sd, rf_sd,
        seconds_sd``. ``.runs`` has a row per seed, and ``.provenance`` says what a paper has to state: versions,
        parameters, machine, date.

    Raises
    ------
    ParameterError, TypeError
        An unknown algorithm or parameter, labels or splits that do not fit, or any of these for several graphs. This
        is raised before anything runs.
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

    A bound is rounded up to whole vertices: ``ceil(balance * n / k)``. KaMinPar and Mt-KaHyPar take ``balance *
    ceil(n / k)``, which may be one more. A part is marked above both.

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
    limits = run_options(**options)
    settings: dict[str, Any] = {
        "balance": None if balance is None else parameters.ratio("balance", balance),
        "seeds": _seeds(seeds, seed),
        "baseline": _baseline(baseline, entries),
        "threads": limits.threads or _core.default_threads(),
        "memory_limit": limits.memory_limit,
        "time_limit": parameters.positive("time_limit", time_limit),
    }
    traffic = (fanouts, batch_size, cache, row_bytes, input)
    subjects = subjects_of(graph, (labels, splits, split), traffic, limits)
    so_far = Comparison((), (), provenance_of(entries, settings))
    for subject in subjects:
        so_far = replace(so_far, graphs=(*so_far.graphs, subject.facts(limits)))
        with Bench(limits, settings["time_limit"], settings["balance"] or BALANCE) as bench:
            for entry, parts, of_run in _runs(entries, wanted, settings["seeds"]):
                outcome = _run(entry, parts, of_run, subject, limits, bench, settings)
                so_far = replace(so_far, outcomes=(*so_far.outcomes, outcome))
                if on_outcome is not None:
                    on_outcome(so_far)
    return so_far


def _seeds(seeds: int | Sequence[int], first: int) -> list[int]:
    """Return the seeds of the runs."""
    start = parameters.seed(first)
    if not isinstance(seeds, Iterable):
        return [(start + i) % 2**64 for i in range(parameters.integer("seeds", seeds, 1, 1000))]
    several = [parameters.integer("seeds", each, 0, 2**64 - 1) for each in seeds]
    if not several or len(set(several)) < len(several):
        raise ParameterError("seeds: name at least one seed, and each once")
    return several


def _baseline(name: str | None, entries: list[Entry]) -> str | None:
    labels = [entry.label for entry in entries]
    if name is not None and name not in labels:
        raise ParameterError(
            f"baseline: no algorithm is called {name!r}. They are {', '.join(labels)}{parameters.meant(name, labels)}"
        )
    return name


def _run(
    entry: Entry,
    k: int,
    seed: int | None,
    subject: Subject,
    run: RunOptions,
    bench: Bench,
    settings: Mapping[str, Any],
) -> Outcome:
    """Run and measure one entry. What it raises becomes the ``error`` of its row."""
    graph, balance, seeds = subject.graph, settings["balance"], settings["seeds"]
    about = f"{entry.label}, k={k}" + (f", seed={seed}" if len(seeds) > 1 and seed is not None else "")
    progress = None if run.progress is None else _LabelledProgress(run.progress, about)
    bench.options = replace(run, progress=progress)
    bench.seed = seeds[0] if seed is None else seed
    options = vars(bench.options)
    shared = options | {"seed": bench.seed, "splits": subject.measured["splits"]}
    row: dict[str, Any] = {"graph": subject.name} | ({} if seed is None else {"seed": seed})
    try:
        result = entry.run(graph, k, shared if balance is None else shared | {"balance": balance}, bench)
        more = {} if isinstance(result.partition, EdgePartition) else subject.measured
        evaluation = evaluate(graph, result.partition, **more, **options)
        outcome = _outcome(entry.label, result, evaluation, _home_halo(graph, result, options))
        columns, of_types = subject.predict(result.partition)
        row |= outcome.row | columns | _above(outcome.row, balance)
        if seed is not None and seed != seeds[0]:
            return Outcome(row)
        if outcome.types is None or not of_types:
            return replace(outcome, row=row)
        return replace(outcome, row=row, types=pl.DataFrame([*outcome.types.get_columns(), *of_types]))
    except Exception as error:  # functions of users and other packages may raise anything
        if isinstance(error, EdgeFileChangedError) or (progress is not None and error is progress.raised):
            raise
        row |= {"of": entry.of, "algorithm": entry.label, "k": k, **subject.sizes, "error": _reason(error)}
        trace = getattr(error, "traceback", None) if _refusal(error) else "".join(format_exception(error))
        return Outcome(row, traceback=trace)


def _runs(entries: list[Entry], wanted: list[int], seeds: list[int]) -> list[tuple[Entry, int, int | None]]:
    """Return the entries to run with number of parts and seed, in the order of the numbers. Partitions have no seed."""
    numbers = dict.fromkeys([*wanted, *(entry.only_k for entry in entries if entry.only_k is not None)])
    return [
        (entry, parts, seed)
        for parts in numbers
        for entry in entries
        if (parts in wanted if entry.only_k is None else entry.only_k == parts)
        for seed in (seeds if entry.only_k is None else [None])
    ]


def _above(row: Mapping[str, Any], balance: float | None) -> dict[str, bool]:
    """Say whether a part is above the bound, however packages round it."""
    if balance is None:
        return {}
    items = row["n"] if row["of"] == "vertices" else row["m"]
    most = round(row[BOUNDED[row["of"]]] * items / row["k"])
    bound = max(cap_of(balance, items, row["k"]), int(balance * -(-items // row["k"]) + 1e-9))
    return {"above_bound": most > bound}


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
