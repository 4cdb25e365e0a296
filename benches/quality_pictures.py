"""Pictures of the table of ``make quality``: cut against time in one plot, and heat maps of all graphs.

``quality.py`` draws them into target/quality/; docs/pictures/ has copies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl
from matplotlib.colors import LinearSegmentedColormap, LogNorm

from fastpart.report.figures import LIGHT, Figure, plotted
from fastpart.report.text import DARK, number

PEERS = {
    "heistream": "HeiStream",
    "buffcut": "BuffCut",
    "metis": "METIS",
    "kaminpar": "KaMinPar",
    "kaminpar:preset=eco": "KaMinPar eco",
    "kaminpar:preset=strong": "KaMinPar strong",
    "kaminpar:preset=terapart": "KaMinPar terapart",
    "mtkahypar": "Mt-KaHyPar",
    "mtkahypar:preset=quality": "Mt-KaHyPar quality",
    "mtkahypar:preset=deterministic": "Mt-KaHyPar deterministic",
    "mtkahypar:preset=deterministic_quality": "Mt-KaHyPar deterministic quality",
}
"""How peers call themselves."""

LESS_IS_BETTER = LinearSegmentedColormap.from_list("less", ["#2f74b5", "#ffffff", "#b5652f"])
WIDEST = 2.0
"""Ratios beyond it, or below its inverse, have the strongest colour."""

SIZE = 7.5
"""Size of the names of points."""

Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""

CELL = 0.42, 0.19
"""Width and height of a cell of a heat map, in inches."""


def cut_and_time(means: pl.DataFrame, path: Path) -> None:
    """Plot how often METIS's cut is ours against the time per edge, from the geometric means over the graphs."""
    known = means.drop_nulls(["cut", "ns_per_edge"]).filter(pl.col("algorithm") != "multilevel files")
    rows = known.select("algorithm", pl.col("ns_per_edge") / 1000, 1 / pl.col("cut")).rows()
    figure = plotted(lambda: _points(rows), None)
    svg = figure.content("svg", transparent=True).decode()
    path.write_text(svg.replace("<defs>", f"<style>{_dark()}</style>\n <defs>", 1))


def _dark() -> str:
    """Return rules that give a picture the colours of dark paper where the browser asks for them."""
    rules = [
        f'[style*="{what}: {colour}"] {{ {what}: {DARK[name]} !important }}'
        for name, colour in LIGHT.items()
        for what in ("fill", "stroke")
    ]
    return f"@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}"


def heat_map(
    ratios: Mapping[tuple[str, str, int], float], algorithms: Sequence[str], title: str, path: Path
) -> None:
    """Plot a ratio for each graph (rows), algorithm and number of parts (columns)."""
    plotted(lambda: _cells(ratios, algorithms, title), path)


def _points(rows: Sequence[tuple[str, float, float]]) -> Figure:
    figure = Figure(5.0, 4.2)  # as wide as a phone can show
    axes = figure.subplots()
    axes.set(xscale="log", xlabel="seconds per million edges, 1 thread", ylabel="METIS's cut / cut")
    axes.set_title("Best is the top left: few cut edges, soon", loc="left")
    seconds = [x for _, x, _ in rows]
    axes.set_xlim(min(seconds) / 1.5, max(seconds) * 1.5)
    axes.set_ylim(0, 1.1 * max(y for _, _, y in rows))
    axes.xaxis.set_major_formatter(number)
    axes.minorticks_off()
    figure.draw_without_rendering()  # now a point has its place on the paper
    scale = 72 / figure.dpi
    places = [tuple(axes.transData.transform((x, y)) * scale) for _, x, y in rows]
    left, right = (axes.bbox.x0 * scale, axes.bbox.x1 * scale)
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in places]
    for (name, x, y), place in zip(rows, places, strict=True):
        peer = name in PEERS
        colour = LIGHT["series5" if peer else "series3"]
        axes.plot(x, y, "s" if peer else "o", color=colour, markersize=5)
        label = PEERS.get(name, name)
        offset, box = _free(place, SIZE * len(label) * (0.58 if peer else 0.66), taken, left, right)
        taken.append(box)
        axes.annotate(
            label, (x, y), offset, textcoords="offset points", color=colour, fontsize=SIZE, ha="center", va="center",
            fontweight="normal" if peer else "bold",
        )  # fmt: skip
    return figure


def _free(
    place: tuple[float, ...], width: float, taken: Sequence[Box], left: float, right: float
) -> tuple[tuple[float, float], Box]:
    """Return the middle of a label of this width, as seen from its point, and its box: the first free place."""
    found = []
    for up in (0, 10, -10, 18, -18, 27, -27, 36, -36):
        for along in (width / 2 + 7, -width / 2 - 7, 0, width / 4, -width / 4):
            x = min(max(place[0] + along, left + width / 2), right - width / 2)
            y = place[1] + up
            box = (x - width / 2, y - SIZE * 0.6, x + width / 2, y + SIZE * 0.6)
            meets = sum(_meet(box, other) for other in taken)
            found.append((meets, len(found), (x - place[0], up), box))
    _, _, offset, box = min(found)
    return offset, box


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _cells(ratios: Mapping[tuple[str, str, int], float], algorithms: Sequence[str], title: str) -> Figure:
    graphs = list(dict.fromkeys(graph for graph, _, _ in ratios))
    columns = [(name, k) for name in algorithms for k in sorted({k for _, each, k in ratios if each == name})]
    values = np.array([[ratios.get((graph, *column), np.nan) for column in columns] for graph in graphs])
    width, height = CELL
    figure = Figure(2.0 + width * len(columns), 1.1 + height * len(graphs))
    axes = figure.subplots()
    axes.grid(False)
    axes.set_title(title, loc="left", pad=26)
    scale = LogNorm(1 / WIDEST, WIDEST)
    axes.imshow(np.clip(values, 1 / WIDEST, WIDEST), norm=scale, cmap=LESS_IS_BETTER, aspect="auto")
    for (y, x), value in np.ndenumerate(values):
        if np.isfinite(value):
            axes.text(x, y, _short(value), ha="center", va="center", fontsize=7)
    axes.set_yticks(range(len(graphs)), graphs, color=LIGHT["text"])
    axes.set_xticks(range(len(columns)), [str(k) for _, k in columns])
    axes.tick_params(length=0)
    _headings(axes, [name for name, _ in columns])
    return figure


def _headings(axes: Any, names: Sequence[str]) -> None:
    """Write each algorithm over its columns, with a line before it."""
    for name in dict.fromkeys(names):
        first, count = names.index(name), names.count(name)
        label = fill(PEERS.get(name, name), max(7 * count, 13))
        axes.annotate(
            label, (first + (count - 1) / 2, 1), (0, 5), xycoords=("data", "axes fraction"),
            textcoords="offset points", ha="center", annotation_clip=False, fontsize=8,
        )  # fmt: skip
        if first:
            axes.axvline(first - 0.5, color=LIGHT["faint"], linewidth=1)


def _short(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 9.95 else f"{ratio:.0f}"
