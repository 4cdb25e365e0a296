"""What partitions cost the training over them: methods and partitioners beside one another."""

from __future__ import annotations

import json
import statistics
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from .. import parameters
from .. import partitioners as known_partitioners
from ..edges import Edges, open_edges
from ..errors import CapacityWarning, ParameterError
from ..forks import before_polars_threads
from ..parameters import Progress
from .centralized import full
from .config import MOST, Options
from .distributed import distdgl
from .model_averaging import sdt
from .trained import Trained

METHODS: dict[str, Callable[..., Trained]] = {"full": full, "distdgl": distdgl, "sdt": sdt}
"""What trains over parts of the vertices, and the reference."""

PARTITIONERS = ("spring", "sigma", "grem", "random")

BATCH = 1000
"""Training vertices of a part in a step, unless told otherwise."""

COLUMNS = {
    "method": pl.String,
    "partitioner": pl.String,
    "k": pl.Int64,
    "cut_ratio": pl.Float64,
    "halo_rf": pl.Float64,
    "label_skew": pl.Float64,
    "test_accuracy": pl.Float64,
    "spread": pl.Float64,
    "test_f1": pl.Float64,
    "seconds_per_epoch": pl.Float64,
    "remote_bytes": pl.Int64,
    "worker_bytes": pl.Int64,
}


def compare(
    edges: Any,
    k: int,
    *,
    features: Any,
    labels: Any,
    splits: Any,
    split: int | None = None,
    methods: Sequence[str] = ("distdgl", "sdt", "full"),
    partitioners: Sequence[str] = PARTITIONERS,
    seeds: int = 3,
    threads: int | None = None,
    progress: Progress | None = None,
    **training: Any,
) -> pl.DataFrame:
    """Train by several methods over the parts of several partitioners.

    Parameters
    ----------
    edges : path, array or Edges
        The graph, as :func:`fastpart.open_edges` accepts it.
    k : int
        Number of parts.
    features, labels, splits, split
        As :meth:`fastpart.VertexPartition.save` takes them.
    methods : sequence of str
        Some of ``"distdgl"``, ``"sdt"`` and ``"full"``; the last knows no parts and runs once per seed.
    partitioners : sequence of str
        Names of partitioners of vertices.
    seeds : int
        Trainings of each kind, with the seeds 0, 1, ...
    threads : int, optional
        As the methods take it.
    progress : callable, optional
        Called as ``progress("training", done, total)``; an exception in it ends the comparison.
    **training
        Other parameters of :func:`fastpart.train.full`, for all methods. ``batch_size`` (1000) counts the training
        vertices of a part in a step; ``"full"`` takes k times as many, so that all make as many steps. None: all at
        once; then the same number of epochs is far fewer steps.

    Returns
    -------
    polars.DataFrame
        One row per method and partitioner: ``method, partitioner, k, cut_ratio, halo_rf, label_skew``, then the mean of
        ``test_accuracy`` and ``test_f1`` over the seeds, ``spread`` (largest less smallest test accuracy), the medians
        of ``seconds_per_epoch``, ``remote_bytes`` (per epoch, of all processes: features fetched from other parts, or
        weights that are averaged) and ``worker_bytes`` (largest anonymous memory of a process). What does not apply is
        null.

    Raises
    ------
    ParameterError
        An unknown method or partitioner, or one of edges.

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
    chosen = [parameters.choice("methods", name, METHODS) for name in methods]
    parts_by = [_vertex_partitioner(name) for name in partitioners]
    parts, count = parameters.parts(k), parameters.integer("seeds", seeds, 1, 1000)
    if unknown := sorted(set(training) - set(Options.__dataclass_fields__) | set(training) & {"seed"}):
        raise ParameterError(f"{unknown[0]}: not a parameter that all methods take")
    opened = open_edges(edges, threads=threads)
    over_parts = [method for method in chosen if method != "full"]
    total = count * (len(over_parts) * len(parts_by) + ("full" in chosen))
    done = 0
    rows = []
    saved = {"features": features, "labels": labels, "splits": splits, "split": split}

    def trainings(method: str, folder: Path) -> list[Trained]:
        nonlocal done
        found = []
        for seed in range(count):
            given = {**_for_method(method, parts, training), "seed": seed, "threads": threads}
            found.append(METHODS[method](folder, **given))
            done += 1
            if progress is not None:
                progress("training", done, total)
        return found

    with tempfile.TemporaryDirectory(prefix="fastpart-") as base:
        for name in parts_by if over_parts else parts_by[:1]:
            folder = Path(base) / name
            measured = _save(opened, name, parts, folder, saved)
            rows += [_row(method, name, parts, measured, trainings(method, folder)) for method in over_parts]
        if "full" in chosen:
            rows.append(_row("full", None, None, {}, trainings("full", folder)))
    before_polars_threads("train")
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")


def _vertex_partitioner(name: object) -> str:
    known = tuple(known_partitioners.PARTITIONERS)
    chosen = parameters.choice("partitioners", name, known)
    if known_partitioners.kind_of(chosen, {}) != "vertex":
        raise ParameterError(
            f"partitioners: {chosen} makes parts of edges; these methods train over parts of vertices"
        )
    return chosen


def _for_method(method: str, k: int, training: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a method: with steps of full batches, centralized training would seem to learn less."""
    size = training.get("batch_size", BATCH)
    if method == "full" and size is not None:
        size = k * parameters.integer("batch_size", size, 1, MOST // k)
    return {**training, "batch_size": size}


def _save(edges: Edges, name: str, k: int, folder: Path, saved: Mapping[str, Any]) -> Mapping[str, Any]:
    """Save a partition; return what was measured of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CapacityWarning)
        known_partitioners.PARTITIONERS[name](edges, k=k).save(folder, edges=edges, **saved)
    metrics: Mapping[str, Any] = json.loads((folder / "manifest.json").read_bytes())["metrics"]
    return metrics


def _row(
    method: str, partitioner: str | None, k: int | None, measured: Mapping[str, Any], runs: Sequence[Trained]
) -> dict[str, Any]:
    accuracies = [run.totals["test_accuracy"] for run in runs]

    def median(name: str) -> Any:
        values: list[Any] = [run.totals.get(name) for run in runs]
        return None if None in values else statistics.median(values)

    whole = {name: median(name) for name in ("remote_bytes", "worker_bytes")}
    return {
        "method": method,
        "partitioner": partitioner,
        "k": k,
        **{name: measured.get(name) for name in ("cut_ratio", "halo_rf", "label_skew")},
        "test_accuracy": statistics.fmean(accuracies),
        "spread": max(accuracies) - min(accuracies),
        "test_f1": statistics.fmean(run.totals["test_f1"] for run in runs),
        "seconds_per_epoch": median("seconds_per_epoch"),
        **{name: None if value is None else int(value) for name, value in whole.items()},
    }
