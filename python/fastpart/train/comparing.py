"""Comparison of training methods and partitioners."""

from __future__ import annotations

import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import polars as pl

from ..core import parameters
from ..core.calls import full_signature
from ..core.frames import before_polars_threads
from ..core.ids import of_name
from ..core.inputs import labels_of
from ..core.options import RunOptions, taking
from ..core.parameters import Of
from ..core.vertex_tables import InOrder
from ..errors import CapacityWarning, ParameterError
from ..graphs.graph import Graph
from ..graphs.graph_directory import found_in
from ..graphs.opening import open_graph
from ..measures.ratios import ratio
from ..measures.traffic import predict_traffic
from ..partitions import partitioners as known_partitioners
from ..partitions.partition import VertexPartition
from ..partitions.saved import SavedData
from ..store.loading import open_partition
from ..store.manifest import read_manifest
from .options import KeptOptions, Options, TrainOptions
from .plugged import import_dgl
from .registry import names, of

if TYPE_CHECKING:
    from .runs.trained import TrainedModel


def compared() -> dict[str, Of | None]:
    """Return the methods that are compared, and the items of their parts. The reference ignores parts."""
    known = map(of, names())
    return {method.name: method.over for method in known if method.compared}


DEFAULTS: dict[Of, tuple[str, ...]] = {
    "vertices": ("spring", "sigma", "grem", "random"),
    "edges": ("sigma", "hdrf", "dbh", "random"),
}
"""Default partitioners by the items of the parts."""

ITEMS: tuple[Of, ...] = get_args(Of)


@dataclass(frozen=True)
class Pairing:
    """A partitioner with its parameters, and the methods that train over its partition."""

    partitioner: str
    of: Of
    parameters: Mapping[str, Any]
    methods: list[str]


def planned(methods: Sequence[str], partitioners: Sequence[str] | None) -> list[Pairing]:
    """Return the pairings. For the reference alone, one partition suffices."""
    plan = []
    for name in dict.fromkeys(_names(methods, partitioners)):
        for items in ITEMS:
            given = _parameters_for(name, items)
            those = [method for method in methods if compared()[method] == items]
            if given is not None and (partitioners is not None or name in DEFAULTS[items]):
                plan.append(Pairing(name, items, given, those))
    if not plan:
        raise ParameterError("partitioners: the list is empty. Name at least one")
    if all(compared()[method] is None for method in methods):
        return plan[:1]
    plan = [each for each in plan if each.methods]
    _refuse_useless(methods, partitioners, plan)
    return plan


def _names(methods: Sequence[str], partitioners: Sequence[str] | None) -> list[str]:
    if partitioners is not None:
        known = tuple(known_partitioners.PARTITIONERS)
        return [parameters.choice("partitioners", name, known) for name in partitioners]
    wanted = {compared()[method] or "vertices" for method in methods}
    return [name for items in ITEMS if items in wanted for name in DEFAULTS[items]]


def _parameters_for(name: str, items: str) -> Mapping[str, Any] | None:
    """Return the parameters with which a partitioner makes parts of these items. None if it cannot."""
    variants = ({}, *known_partitioners.VARIANTS.get(name, ()))
    return next((given for given in variants if known_partitioners.items_of(name, given) == items), None)


def _refuse_useless(
    methods: Sequence[str], partitioners: Sequence[str] | None, plan: Sequence[Pairing]
) -> None:
    """Refuse a partitioner that no method can use, and a method for which no partitioner makes parts."""
    for name in partitioners or ():
        if name not in {each.partitioner for each in plan}:
            items = known_partitioners.items_of(name, {})
            fitting = ", ".join(method for method, over in compared().items() if over == items)
            raise ParameterError(
                f"partitioners: {name} makes parts of {items}, but no method trains over these. Add one that does "
                f"({fitting})"
            )
    for method in methods:
        over = compared()[method]
        if over is not None and not any(method in each.methods for each in plan):
            fitting = ", ".join(
                name for name in known_partitioners.PARTITIONERS if _parameters_for(name, over) is not None
            )
            raise ParameterError(
                f"methods: {method} trains over parts of {over}, but no partitioner makes these. Add one that does "
                f"({fitting})"
            )


BATCH = 1000
"""Default number of training vertices of a step."""

_MOST = 2**31 - 1

COLUMNS = {
    "method": pl.String,
    "partitioner": pl.String,
    "k": pl.Int64,
    "cut_ratio": pl.Float64,
    "replication_factor": pl.Float64,
    "halo_rf": pl.Float64,
    "label_skew": pl.Float64,
    "test_accuracy": pl.Float64,
    "spread": pl.Float64,
    "test_f1": pl.Float64,
    "seconds_per_epoch": pl.Float64,
    "idle_share": pl.Float64,
    "remote_bytes": pl.Int64,
    "worker_bytes": pl.Int64,
    "peak_bytes": pl.Int64,
}


_WITHOUT = {
    **dict.fromkeys([each.name for each in fields(KeptOptions) if each.name != "device"], ""),
    **dict.fromkeys(("seed", "target"), ""),
    "metrics": "its table has the columns that all methods have. Train with a method to measure more",
}


@taking(TrainOptions, defaults={"batch_size": BATCH}, without=_WITHOUT, groups=[SavedData])
def compare(
    graph: Any,
    k: int,
    *,
    features: Any = None,
    labels: Any = None,
    splits: Any = None,
    split: int | None = None,
    methods: Sequence[str] = ("sampled", "sdt", "full"),
    partitioners: Sequence[str] | None = None,
    seeds: int = 3,
    options: TrainOptions,
) -> pl.DataFrame:
    """Train with several methods over the partitions of several partitioners.

    Parameters
    ----------
    graph : path, array or Graph
        The graph, as :func:`fastpart.open_graph` accepts it.
    k : int
        Number of parts.
    features, labels, splits, split
        As :meth:`fastpart.VertexPartition.save` takes them. Those of a graph directory need not be given.
    methods : sequence of {"full", "sampled", "bytegnn", "armada", "sdt", "distgnn", "sancus", "distdgl"}
        Some of ``"sampled"``, ``"bytegnn"``, ``"armada"``, ``"sdt"``, ``"sancus"`` and ``"distdgl"``, which train over
        parts of vertices, ``"distgnn"``, which trains over parts of edges, and ``"full"``, which needs no parts and
        runs once per seed.
    partitioners : sequence of str, optional
        Names of partitioners. Each method trains over the partitioners that make the parts it needs. ``"sigma"`` and
        ``"random"`` make parts of vertices and of edges. Default: ``"spring"``, ``"sigma"``, ``"grem"`` and
        ``"random"``. For ``"distgnn"``: ``"sigma"``, ``"hdrf"``, ``"dbh"`` and ``"random"``.
    seeds : int
        Number of trainings of each pair, with the seeds 0, 1, ...
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. The step of ``progress`` is "training".
    batch_size
        It counts the vertices of all parts together, so all methods make the same number of steps. All at once means
        far fewer steps per epoch. ``"distgnn"`` and ``"sancus"`` always make one step per epoch. To compare equal
        numbers of steps, use ``batch_size=None``.

    Returns
    -------
    polars.DataFrame
        One row per method and partitioner: ``method, partitioner, k, cut_ratio, replication_factor, halo_rf,
        label_skew``, then the mean of ``test_accuracy`` and ``test_f1`` over the seeds, ``spread`` (largest minus
        smallest test accuracy), and the medians of ``seconds_per_epoch``, ``idle_share`` (of that time, in which
        workers do not compute), ``remote_bytes`` (sent by all processes per epoch: features, averaged weights, or rows
        and sums), ``worker_bytes`` (largest anonymous memory of a process) and ``peak_bytes`` (peak memory of a
        process, with mapped files). Columns that do not apply are null.

        Over a typed graph also, for each type, ``halo_rf_paper``: its vertices and their copies in halos by its
        vertices, and for ``"sampled"`` ``remote_rows_paper``: the rows that :func:`fastpart.predict_traffic` expects an
        epoch to fetch, without a cache.

    Raises
    ------
    ParameterError
        An unknown method or partitioner, a partitioner whose parts no method can use, or a method for which no
        partitioner makes parts.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    >>> labels = np.arange(12) // 6
    >>> table = fp.train.compare(
    ...     ring, 2, features=np.eye(2, dtype=np.float32)[labels], labels=labels,
    ...     splits={"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]},
    ...     methods=["full"], seeds=1, epochs=20,
    ... )
    >>> table["test_accuracy"].to_list()
    [1.0]
    """
    chosen = [parameters.choice("methods", name, compared()) for name in methods]
    plan, references = planned(chosen, partitioners), [name for name in chosen if of(name).over is None]
    parts, count = parameters.parts(k), parameters.integer("seeds", seeds, 1, 1000)
    run, shared = options.run, {"device", *(each.name for each in fields(Options))}
    training = {name: value for name, value in options.given.items() if name in shared}
    if "distdgl" in chosen:
        import_dgl()
    functions: dict[str, Callable[..., TrainedModel]] = {method: of(method).function for method in chosen}
    given = _for_methods(functions, training)
    opened = open_graph(graph, **vars(replace(run, progress=None)))
    saved = {"features": features, "labels": labels, "splits": splits, "split": split}
    _check_data(opened, saved)
    total = count * (sum(len(each.methods) for each in plan) + len(references))
    done = 0
    rows = []
    running = {**vars(run), "progress": None}

    def trainings(method: str, folder: Path) -> list[TrainedModel]:
        nonlocal done
        results = []
        for seed in range(count):
            results.append(functions[method](folder, **given[method], **running, seed=seed))
            done += 1
            if run.progress is not None:
                run.progress("training", done, total)
        return results

    with tempfile.TemporaryDirectory(prefix="fastpart-", dir=run.tmp_dir) as base:
        for each in plan:
            folder = Path(base) / f"{each.of}-{each.partitioner}"
            measured = _save(opened, each, parts, folder, saved, replace(run, progress=None))
            for method in each.methods:
                runs = trainings(method, folder)
                row = _row(method, each.partitioner, parts, measured, runs)
                rows.append(row | _of_types(method, folder, runs[0].options, run))
        rows += [_row(method, None, None, {}, trainings(method, folder)) for method in references]
    before_polars_threads("train")
    more: dict[str, type[pl.DataType]] = {
        name: pl.Float64 for row in rows for name in row if name not in COLUMNS
    }
    return pl.DataFrame(rows, schema=COLUMNS | more, orient="row")


def _check_data(graph: Graph, given: Mapping[str, Any]) -> None:
    """Refuse a graph without labels, or with targets of a regression."""
    found = given if graph.directory is None else found_in(graph.directory, graph._typed) | _said(given)
    for name in ("features", "labels", "splits"):
        if found.get(name) is None:
            raise ParameterError(f"{name}: there are none. Pass {name}=")
    labels = found["labels"]
    of_types = labels if graph.types is not None and isinstance(labels, Mapping) else {"": labels}
    sizes = {each.name: each.n for each in graph.types or ()}
    for name, each in of_types.items():
        ids = of_name(graph._id_tables, name) if name else graph._id_tables
        each = each if given.get("labels") is not None else InOrder(each)
        if labels_of(each, sizes.get(name, graph.num_vertices), ids).dtype.kind == "f":
            raise ParameterError(
                "labels: they are targets of a regression, but this table has accuracies. Train with each method, and "
                "compare the summaries"
            )


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def _of_types(method: str, folder: Path, trained: Options, run: RunOptions) -> dict[str, float]:
    """Return the halo of each type in a directory of a typed graph, and its traffic if the method fetches rows."""
    stored = open_partition(folder)
    if not isinstance(stored, VertexPartition) or not stored.is_typed:
        return {}
    columns = {}
    for number, each in enumerate(stored.parts[0].types or ()):
        halo = sum(sum(hop[number] for hop in part.num_halo_of_type or ()) for part in stored.parts)
        columns[f"halo_rf_{each.name}"] = ratio(each.n + halo, each.n, empty=1.0)
    if method == "sampled":
        fanouts, size = trained.relation_fanouts or trained.fanouts, trained.batch_size or _MOST
        options = vars(replace(run, progress=None))
        traffic = predict_traffic(folder, fanouts, size, cache=0, **options)
        rows = [] if traffic.types is None else traffic.types.rows(named=True)
        columns |= {f"remote_rows_{row['type']}": round(row["remote_rows"], 1) for row in rows}
    return columns


def _for_methods(
    functions: Mapping[str, Callable[..., TrainedModel]], training: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the parameters that each method takes."""
    taken = {method: set(full_signature(function).parameters) for method, function in functions.items()}
    if useless := sorted(set(training) - set().union(*taken.values())):
        raise ParameterError(f"{useless[0]}: no method takes this parameter ({', '.join(functions)})")
    given = {"batch_size": BATCH, "baselines": False, **training}  # no column is of them
    return {
        method: {name: value for name, value in given.items() if name in names}
        for method, names in taken.items()
    }


def _save(
    graph: Graph, pairing: Pairing, k: int, folder: Path, saved: Mapping[str, Any], run: RunOptions
) -> Mapping[str, Any]:
    """Partition, save the partition, and return its measures."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)
        partitioner = known_partitioners.PARTITIONERS[pairing.partitioner]
        given = dict(pairing.parameters)
        if known_partitioners.needs_splits(pairing.partitioner):
            given |= {name: saved[name] for name in ("splits", "split")}
        partition = partitioner(graph, k=k, **given, **vars(run))
        partition.save(folder, graph=graph, **saved, **vars(run))
    summary: Mapping[str, Any] = read_manifest(folder)["summary"]
    return summary


def _row(
    method: str,
    partitioner: str | None,
    k: int | None,
    measured: Mapping[str, Any],
    runs: Sequence[TrainedModel],
) -> dict[str, Any]:
    accuracies = [run.summary["test_accuracy"] for run in runs]

    def median(name: str) -> Any:
        values: list[Any] = [run.summary.get(name) for run in runs]
        return None if None in values else statistics.median(values)

    whole = {name: median(name) for name in ("remote_bytes", "worker_bytes", "peak_bytes")}
    return {
        "method": method,
        "partitioner": partitioner,
        "k": k,
        "replication_factor": measured.get("rf"),
        **{name: measured.get(name) for name in ("cut_ratio", "halo_rf", "label_skew")},
        "test_accuracy": statistics.fmean(accuracies),
        "spread": max(accuracies) - min(accuracies),
        "test_f1": statistics.fmean(run.summary["test_f1"] for run in runs),
        **{name: median(name) for name in ("seconds_per_epoch", "idle_share")},
        **{name: None if value is None else int(value) for name, value in whole.items()},
    }
