"""Analysis of a comparison over all instances: performance profiles, and the signed-rank test.

An instance is a graph with a number of parts. Its value is the mean over the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ...core.frames import pl
from ...core.parameters import meant
from ...errors import ParameterError
from .outcomes import MEASURES, Outcome, Row, merged

Instance = tuple[str, int]
"""A graph and a number of parts."""

Values = dict[str, dict[Instance, float]]
"""The value of each instance, by algorithm. It is infinite where the algorithm failed or broke the bound."""

_NO_MEASURES = ("k", "n", "m", "loops", "edges_per_s", "above_bound")


def measures_of(outcomes: Iterable[Outcome]) -> list[str]:
    """Return the measures that some outcome has and of which less is better, those of quality first."""
    names = {
        name
        for outcome in outcomes
        for name, value in outcome.row.items()
        if isinstance(value, int | float) and name not in (*_NO_MEASURES, "seed") and not name.endswith("_sd")
    }
    first = [name for of in MEASURES for name in MEASURES[of]]
    return sorted(names, key=lambda name: (first.index(name) if name in first else len(first), name))


def checked_measure(outcomes: Sequence[Outcome], measure: str | None) -> str:
    """Return the measure that was asked for, or the first one."""
    known = measures_of(outcomes)
    if not known:
        raise ParameterError("measure: no algorithm returned a partition, so there is none")
    if measure is not None and measure not in known:
        names = f"{', '.join(known)}{meant(str(measure), known)}"
        raise ParameterError(f"measure: the comparison has no {measure!r}. Its measures are {names}")
    return known[0] if measure is None else measure


def rows_with(outcomes: Iterable[Outcome], measure: str) -> list[Row]:
    """Return the rows of all algorithms that have a measure, also those that failed, over all seeds."""
    rows = [outcome.row for outcome in merged(outcomes)]
    kinds = {row["of"] for row in rows if row.get(measure) is not None}
    having = {row["algorithm"] for row in rows if row.get(measure) is not None}
    done = {row["algorithm"] for row in rows if row.get("error") is None}
    return [
        row
        for row in rows
        if row["algorithm"] in having or (row["algorithm"] not in done and row["of"] in (None, *kinds))
    ]


def values_of(outcomes: Iterable[Outcome], measure: str) -> Values:
    """Return the values of a measure."""
    values: Values = {}
    for row in rows_with(outcomes, measure):
        valid = row.get(measure) is not None and not row.get("above_bound")
        values.setdefault(row["algorithm"], {})[row.get("graph", ""), row["k"]] = (
            float(row[measure]) if valid else math.inf
        )
    return values


def profile_of(outcomes: Iterable[Outcome], measure: str) -> pl.DataFrame:
    """Return the performance profile, as :meth:`fastpart.typing.Comparison.profile` documents."""
    values = values_of(outcomes, measure)
    common = sorted(set.intersection(*(set(each) for each in values.values())))
    if not common:
        raise ParameterError(
            "profile: no graph and k was tried by all algorithms. Choose some by select(algorithms=)"
        )
    best = {instance: min(each[instance] for each in values.values()) for instance in common}
    rows: list[tuple[str, float, float]] = []
    for name, mine in values.items():
        ratios = np.sort([_ratio(mine[instance], best[instance]) for instance in common])
        taus = np.unique([1.0, *ratios[np.isfinite(ratios)]])
        rows += [(name, float(tau), float((ratios <= tau).mean())) for tau in taus]
    return pl.DataFrame(rows, ["algorithm", "tau", "fraction"], orient="row")


def _ratio(value: float, best: float) -> float:
    if value == best < math.inf:
        return 1.0
    return value / best if 0 < best < math.inf else math.inf


def signed_ranks_of(outcomes: Iterable[Outcome], measure: str, baseline: str | None) -> pl.DataFrame:
    """Return the tests against the baseline, as :meth:`fastpart.typing.Comparison.signed_rank` documents."""
    values = values_of(outcomes, measure)
    base = next(iter(values)) if baseline is None else baseline
    if base not in values:
        raise ParameterError(
            f"baseline: {base!r} has no {measure}. Those that have it are {', '.join(values)}{meant(base, [*values])}"
        )
    rows = []
    for name, mine in values.items():
        if name != base:
            pairs = _pairs(mine, values[base])
            better, worse = sum(a < b for a, b in pairs), sum(a > b for a, b in pairs)
            p_value = signed_rank([(a - b) / (a + b or 1) for a, b in pairs]) if pairs else None
            rows.append((name, base, len(pairs), better, worse, p_value))
    schema = {"algorithm": pl.String, "baseline": pl.String} | dict.fromkeys(
        ("pairs", "better", "worse"), pl.Int64
    )
    return pl.DataFrame(rows, schema | {"p_value": pl.Float64}, orient="row")


def _pairs(mine: Mapping[Instance, float], theirs: Mapping[Instance, float]) -> list[tuple[float, float]]:
    both = [(mine[each], theirs[each]) for each in mine if each in theirs]
    return [pair for pair in both if all(map(math.isfinite, pair))]


def signed_rank(differences: Sequence[float]) -> float:
    """Return the p-value of Wilcoxon's signed-rank test, two-sided and exact.

    Differences of 0 are dropped, and equal ones share the mean of their ranks. The distribution of the sum of ranks is
    counted over all signs, so it needs no approximation, whatever the number of differences.
    """
    known = np.array([each for each in differences if each != 0])
    sizes, place, counts = np.unique(np.abs(known), return_inverse=True, return_counts=True)
    if not len(sizes):
        return 1.0
    doubled = (2 * np.cumsum(counts) - counts + 1)[place]  # twice the mean rank, which is whole
    chance = np.zeros(doubled.sum() + 1)
    chance[0] = 1.0
    for rank in doubled:
        chance[rank:] = (chance[rank:] + chance[:-rank]) / 2
        chance[:rank] /= 2
    least = min(doubled[known > 0].sum(), doubled[known < 0].sum())
    return min(1.0, 2 * float(chance[: least + 1].sum()))
