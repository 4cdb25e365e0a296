"""Runs of several seeds as one row, and rows of several graphs as one ratio."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...core.frames import pl
from .outcomes import DEVIATIONS, MEASURES, Outcome

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
