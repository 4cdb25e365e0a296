"""The outcomes of a comparison, one per algorithm and number of parts, and their table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.frames import pl
from ...partitions.results import same_frames

MATRIX_PARTS = 64
"""Up to this many parts the cut matrix is kept."""

LISTED_PARTS = 1024
"""Up to this many parts the measures of each part are kept."""

SCHEMA = 4

TITLES = {"vertices": "vertex partitions", "edges": "edge partitions"}

MEASURES = {
    "vertices": ("cut_ratio", "vertex_balance", "edge_balance", "halo_rf"),
    "edges": ("rf", "edge_balance", "replica_balance", "halo_rf"),
}
"""The measures that every vertex partition and every edge partition has. Less is better."""

BOUNDED = {"vertices": "vertex_balance", "edges": "edge_balance"}
"""The measure that ``balance`` bounds."""

COST = ("seconds", "edges_per_s", "bytes_per_vertex")

COLUMNS: dict[str, str] = {
    "of": "String",
    "algorithm": "String",
    "k": "Int64",
    "n": "Int64",
    "m": "Int64",
    "loops": "Int64",
    **dict.fromkeys(
        ("cut_ratio", "vertex_balance", "edge_balance", "halo_rf", "rf", "replica_balance"), "Float64"
    ),
}
OPTIONAL = (
    "weighted_cut_ratio",
    "weight_balance",
    "train_balance",
    "val_balance",
    "test_balance",
    "label_skew",
    "type_balance",
)
TRAFFIC = ("remote_rows", "remote_mb")
"""How the names of the columns of predicted traffic begin."""

LAST: dict[str, str] = {
    "above_bound": "Boolean",
    "seconds": "Float64",
    "edges_per_s": "Int64",
    "bytes_per_vertex": "Int64",
    "error": "String",
}

DEVIATIONS = ("cut_ratio_sd", "rf_sd", "seconds_sd")
"""Standard deviations over the seeds, where an algorithm ran with several."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of one run: an algorithm on a graph, for a number of parts, with a seed.

    Attributes
    ----------
    row : dict
        ``graph``, ``algorithm``, ``k``, ``seed`` and the measures. A missing one is null.
    parts : polars.DataFrame or None
        The measures of each part. None above 1,024 parts, after an error, and for all seeds but the first.
    matrix : numpy.ndarray or None
        The cut matrix. None above 64 parts, and for edge partitions.
    types, relations : polars.DataFrame or None
        The measures of each type of vertices and of each relation. None if the graph has no types.
    traceback : str or None
        The traceback of an unexpected error.
    """

    row: dict[str, Any]
    parts: pl.DataFrame | None = None
    matrix: npt.NDArray[np.int64] | None = None
    traceback: str | None = None
    types: pl.DataFrame | None = None
    relations: pl.DataFrame | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Outcome):
            return NotImplemented
        mine, theirs = self._frames, other._frames
        frames = all(same_frames(one, another) for one, another in zip(mine, theirs, strict=True))
        return self.row == other.row and frames and np.array_equal(self.matrix, other.matrix)  # type: ignore[arg-type]

    @property
    def _frames(self) -> tuple[pl.DataFrame | None, ...]:
        return self.parts, self.types, self.relations

    __hash__ = None  # type: ignore[assignment]


def table_of(outcomes: Iterable[Outcome], graphs: bool = False) -> pl.DataFrame:
    """Return one row per outcome, with the name of the graph on request. Columns without any value may be missing."""
    rows = [outcome.row for outcome in outcomes]

    def some(*names: str) -> dict[str, str]:
        return {name: "Float64" for name in names if any(row.get(name) is not None for row in rows)}

    schema = {
        **({"graph": "String"} if graphs else {}),
        **({"seed": "UInt64"} if any("seed" in row for row in rows) else {}),
        **COLUMNS,
        **some(*OPTIONAL),
        **{name: "Float64" for row in rows for name in row if name.startswith(TRAFFIC)},
        **LAST,
        **some(*DEVIATIONS),
    }
    return pl.DataFrame(
        {
            name: pl.Series(name, [row.get(name) for row in rows], getattr(pl, dtype))
            for name, dtype in schema.items()
        }
    )


def types_of(outcomes: Iterable[Outcome]) -> pl.DataFrame | None:
    """Return one row per outcome and type of vertices, or None if no outcome has types. Measures it lacks are null."""
    frames = [
        each.types.select(
            pl.lit(each.row["algorithm"], pl.String).alias("algorithm"),
            pl.lit(each.row["k"], pl.Int64).alias("k"),
            "*",
        )
        for each in outcomes
        if each.types is not None
    ]
    return pl.concat(frames, how="diagonal") if frames else None


RATIOS = ("cut_ratio", "rf", "halo_rf", "seconds", "bytes_per_vertex")
"""Columns whose ratios to those of the baseline are averaged."""

Row = dict[str, Any]


def merged(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """Return one outcome per graph, algorithm and k, in the order of the first runs.

    Measures and seconds are means over the seeds. Balances and memory are the largest. Parts are those of the first
    seed. If a run failed, the outcome is its error.
    """
    runs: dict[tuple[Any, ...], list[Outcome]] = {}
    for outcome in outcomes:
        runs.setdefault(tuple(outcome.row.get(name) for name in ("graph", "algorithm", "k")), []).append(
            outcome
        )
    return tuple(_merged(alike) for alike in runs.values())


def _merged(alike: list[Outcome]) -> Outcome:
    failed = [outcome for outcome in alike if outcome.row.get("error") is not None]
    first = (failed or alike)[0]
    known = {name: value for name, value in first.row.items() if name != "seed"}
    if failed or len(alike) == 1:
        return replace(first, row=known)
    rows = [outcome.row for outcome in alike]
    row = {
        name: _over_seeds(name, [each[name] for each in rows])
        for name in known
        if all(name in each for each in rows)
    }
    if row.get("edges_per_s"):
        row["edges_per_s"] = round(row["m"] / row["seconds"])
    for name in DEVIATIONS:
        if (of := name.removesuffix("_sd")) in row:
            row[name] = statistics.stdev(each[of] for each in rows)
    return replace(first, row=row)


def _over_seeds(name: str, values: list[Any]) -> Any:
    """Return one value of a column for all runs."""
    if name.endswith("_balance") or name in ("above_bound", "bytes_per_vertex"):
        return max(values)
    return statistics.fmean(values) if isinstance(values[0], float) else values[0]


def ratios_of(outcomes: Iterable[Outcome], baseline: str | None) -> pl.DataFrame:
    """Return the geometric means over graphs and k of the measures of each algorithm over those of the baseline.

    Without one, or where it is of the other kind, the first algorithm of the kind is the baseline.
    """
    rows = [outcome.row for outcome in merged(outcomes) if outcome.row.get("error") is None]
    means = []
    for of in MEASURES:
        cells: dict[str, dict[tuple[Any, ...], Row]] = {}
        for row in rows:
            if row["of"] == of:
                cells.setdefault(row["algorithm"], {})[row.get("graph"), row["k"]] = row
        base = baseline if baseline in cells else next(iter(cells), "")
        means += [_ratios(of, name, cells[name], base, cells[base]) for name in cells]
    dtypes = dict.fromkeys(("of", "algorithm", "baseline"), pl.String) | {"cells": pl.Int64}
    return pl.DataFrame(means, schema=dtypes | dict.fromkeys(RATIOS, pl.Float64))


def _ratios(
    of: str, name: str, mine: Mapping[Any, Row], baseline: str, theirs: Mapping[Any, Row]
) -> dict[str, Any]:
    """Return the means of one algorithm, over the cells in which both made a partition."""
    pairs = [(row, theirs[cell]) for cell, row in mine.items() if cell in theirs]
    return {"of": of, "algorithm": name, "baseline": baseline, "cells": len(pairs)} | {
        each: _mean([(a.get(each), b.get(each)) for a, b in pairs]) for each in RATIOS
    }


def _mean(pairs: list[tuple[Any, Any]]) -> float | None:
    """Return the geometric mean of the ratios of positive values, or None if there are none."""
    logs = [math.log(a / b) for a, b in pairs if a and b]
    return math.exp(statistics.fmean(logs)) if logs else None
