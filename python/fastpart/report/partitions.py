"""Plots of single partitions: sizes of the parts against the cap, what lies between them, and small graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.calls import called_well
from ..core.parameters import StrPath, one_line
from ..measures.evaluate import DENSE_PARTS
from ..partitions.results import Evaluation
from .figures import FEW_COLOURS, Figure, colours, plotted
from .panels import heat
from .text import LIGHT, number

if TYPE_CHECKING:
    from ..graphs.graph import Graph
    from ..partitions.partition import Partition

MOST_BARS = 128
"""With more parts, the bars have no gaps."""

MOST_LETTERS = 60
"""Most letters of a name that are shown. Of a longer one, the first letters are shown."""

MOST_DRAWN = 20_000, 300_000, 64
"""Graphs of at most so many vertices and records, in at most so many parts, are drawn. It takes seconds."""

MOST_LINES = 30_000
"""Of more edges, a random sample is shown. It takes a second, and more would only make the paper grey."""

_COLOURS = ("series2", "series1")


class _Row(NamedTuple):
    """The picture of one partition. ``sizes`` are stacked. Counts on the right are a matrix or one per part."""

    title: str
    unit: str
    sizes: dict[str, npt.NDArray[Any]]
    cap: int | npt.NDArray[Any] | None
    right: npt.NDArray[Any] | None = None


@called_well
def draw(evaluations: Mapping[str, Evaluation], out: StrPath | None = None) -> Figure:
    """Draw the parts of several evaluations, one row each.

    On the left are the sizes of the parts and the cap. On the right is the cut matrix of a vertex partition of up to
    4,096 parts, or the replicas in the parts of an edge partition.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Evaluations by the title of their row.
    out : path, optional
        A ``.svg``, ``.png`` or ``.pdf``. It appears as a whole.

    Returns
    -------
    matplotlib.figure.Figure
        Notebooks show it.

    Raises
    ------
    ParameterError
        Another suffix.
    OSError
        With path and errno. The old file is intact.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile, pathlib
    >>> graph = np.array([[0, 1], [1, 2], [2, 3]])
    >>> picture = pathlib.Path(tempfile.mkdtemp()) / "parts.svg"
    >>> figure = fp.report.draw({"path": fp.evaluate(graph, [0, 0, 1, 1])}, picture)
    """
    if not isinstance(evaluations, Mapping) or not all(
        isinstance(each, Evaluation) for each in evaluations.values()
    ):
        raise TypeError(
            "evaluations: expected evaluations by the title of their row, such as {'parts': fp.evaluate(graph, p)}, "
            f"got {type(evaluations).__name__}"
        )
    return plotted(lambda: _figure([_row_of(title, each) for title, each in evaluations.items()]), out)


def plot_partition(partition: Partition, out: StrPath | None = None) -> Figure:
    """Plot a partition: the sizes of its parts, and with the graph also its measures and, if it is small, the graph."""
    title = f"{one_line(partition.algorithm, MOST_LETTERS)}, k = {partition.k:,}"
    graph = partition.graph
    if graph is None:
        row = _Row(title, partition._items, {partition._items: partition.loads}, partition.cap)
        return plotted(lambda: _figure([row]), out)
    row = _row_of(title, partition._measures)
    sizes = (graph.num_vertices, graph.num_edges, partition.k)
    if graph.num_edges == 0 or any(size > most for size, most in zip(sizes, MOST_DRAWN, strict=True)):
        return plotted(lambda: _figure([row]), out)
    return plotted(lambda: _with_graph(row, partition, graph), out)


def _row_of(title: str, evaluation: Evaluation) -> _Row:
    title = one_line(title, MOST_LETTERS)
    parts, summary = evaluation.parts, evaluation.summary.row(0, named=True)
    caps = parts["cap"]
    cap = caps[0] if len(set(caps)) == 1 else caps.to_numpy()
    if evaluation.of == "edges":
        measures = f"replication factor {summary['rf']:.2f}, edge balance {summary['edge_balance']:.2f}"
        sizes = {"records": parts["edges"].to_numpy()}
        return _Row(f"{title}: {measures}", "records", sizes, cap, parts["replicas"].to_numpy())
    measures = (
        f"cut {summary['cut_ratio']:.3f}, halo replication {summary['halo_rf']:.2f}, "
        f"edge balance {summary['edge_balance']:.2f}"
    )
    sizes = {name: parts[name].to_numpy() for name in ("vertices", "halo")}
    matrix: Any = evaluation.cut_matrix if evaluation.k <= DENSE_PARTS else None
    return _Row(f"{title}: {measures}", "vertices", sizes, cap, matrix)


def _figure(rows: list[_Row]) -> Figure:
    figure = Figure(8.4, 2.9 * max(1, len(rows)))
    for place, row in zip(figure.subfigures(max(1, len(rows)), squeeze=False).ravel(), rows, strict=False):
        _draw_row(place, row)
    return figure


def _draw_row(place: Any, row: _Row) -> None:
    place.suptitle(row.title)
    if row.right is None:
        _bars(place.subplots(), row.unit, row.sizes, row.cap)
        return
    left, right = place.subplots(1, 2, width_ratios=(3, 2))
    _bars(left, row.unit, row.sizes, row.cap)
    if row.right.ndim == 1:
        _bars(right, "vertices", {"replicas": row.right}, None)
    else:
        _matrix(place, right, row.right)


def _with_graph(row: _Row, partition: Partition, graph: Graph) -> Figure:
    """Draw the graph below the row."""
    figure = Figure(8.4, 2.9 + 6.0)
    above, below = figure.subfigures(2, squeeze=False, height_ratios=(2.9, 6.0)).ravel()
    _draw_row(above, row)
    _coloured(below.subplots(), partition, graph)
    return figure


def _coloured(axes: Any, partition: Partition, graph: Graph) -> None:
    """Draw the graph, coloured by part."""
    graph._check_unchanged()
    pairs = graph._source.block(0, graph.num_edges).astype(np.int64)
    places = layout(pairs, graph.num_vertices)
    shown = np.random.default_rng(0).permutation(len(pairs))[:MOST_LINES]
    pairs, part_of = pairs[shown], partition.assignment
    line = {"linewidth": 0.3, "alpha": min(0.7, 40 / len(pairs) ** 0.5), "rasterized": True}
    dots = {"s": min(20.0, max(2.0, 8000 / len(places))), "linewidths": 0, "zorder": 3, "rasterized": True}
    of_vertices = partition._items == "vertices"
    if of_vertices:
        u, v = part_of[pairs.T]
        _lines(axes, places[pairs[u != v]], color=LIGHT["faint"], **line)
        inside = np.where(u == v, u, -1)
    else:
        axes.scatter(*places.T, color=LIGHT["faint"], **dots)
        inside = part_of[shown]
    for part, colour in enumerate(colours(partition.k)):
        _lines(axes, places[pairs[inside == part]], color=colour, **line)
        some = places[part_of == part] if of_vertices else places[:0]
        axes.scatter(*some.T, color=colour, label=f"part {part}", **dots)
    if partition.k <= len(FEW_COLOURS):
        axes.legend(loc="upper right", markerscale=(20.0 / dots["s"]) ** 0.5)
    axes.set_aspect("equal")
    axes.axis("off")


def _lines(axes: Any, ends: npt.NDArray[np.float64], **style: Any) -> None:
    """Draw edges, of whose ends the places are known, as one line with gaps."""
    gap = np.full((len(ends), 1, 2), np.nan)
    axes.plot(*np.concatenate([ends, gap], axis=1).reshape(-1, 2).T, **style)


def _bars(
    axes: Any, unit: str, sizes: dict[str, npt.NDArray[Any]], cap: int | npt.NDArray[Any] | None
) -> None:
    """Stack the sizes of each part."""
    bottom: npt.NDArray[Any] = np.zeros(len(next(iter(sizes.values()))), np.int64)
    for (name, counts), colour in zip(sizes.items(), _COLOURS, strict=False):
        top = bottom + counts
        if len(counts) <= MOST_BARS:
            axes.bar(np.arange(len(counts)), counts, 0.85, bottom, label=name, color=LIGHT[colour])
        else:
            edges = np.arange(len(counts) + 1) - 0.5
            axes.stairs(top, edges, baseline=bottom, fill=True, label=name, color=LIGHT[colour])
        bottom = top
    line = {"color": LIGHT["cap"], "linewidth": 1, "linestyle": "--"}
    if isinstance(cap, np.ndarray):
        axes.stairs(cap, np.arange(len(cap) + 1) - 0.5, baseline=None, label="cap", **line)
    elif cap is not None:
        axes.axhline(cap, label=f"cap {cap:,}", **line)
    axes.set(xlabel="part", ylabel=unit, xmargin=0.01)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(False, axis="x")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderpad=0.2)


def _matrix(figure: Any, axes: Any, matrix: npt.NDArray[np.int64]) -> None:
    known = matrix[matrix > 0]
    least, most = (int(known.min()), int(known.max())) if known.size else (0, 0)
    image = heat(axes, matrix, least, most)
    axes.set(xlabel="part", ylabel="part", title="records between parts (log scale)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True, nbins=5)
    bar = figure.colorbar(image, ax=axes)
    if most:  # a locator of powers of 10 finds one tick, or none
        bar.set_ticks(np.unique(np.geomspace(least, most, 4).round()))
    bar.ax.yaxis.set_major_formatter(number)
    bar.ax.minorticks_off()


ROUNDS = 150
GRID = 128
"""Points of the grid along each axis. Vertices that are nearer than two points hardly push each other."""

MIDDLE = 0.05
"""How strong the middle pulls. Less leaves more paper between components."""

_Floats = npt.NDArray[np.float64]


def layout(pairs: npt.NDArray[Any], n: int) -> _Floats:
    """Return the places of n vertices, of shape (n, 2). Edges have shape (m, 2)."""
    u, v = pairs.astype(np.int64).T
    mass = (1 + np.bincount(u, minlength=n) + np.bincount(v, minlength=n)).astype(np.float64)
    places: _Floats = np.random.default_rng(0).standard_normal((n, 2)) * n**0.5
    waves = _waves()
    for round_ in range(ROUNDS):
        spring = places[u] - places[v]
        pulls = [np.bincount(v, along, n) - np.bincount(u, along, n) for along in spring.T]
        move = _pushes(places, mass, waves) - MIDDLE * places + np.stack(pulls, axis=1) / mass[:, None]
        length = np.maximum(np.hypot(*move.T), 1e-12)
        longest = 0.1 * np.ptp(places, axis=0).max() * (1 - round_ / ROUNDS)  # moves become shorter
        places += move * (np.minimum(length, longest) / length)[:, None] / 2
    return places


def _waves() -> npt.NDArray[np.complex128]:
    """Return the transform of the field of a mass in the origin. The grid is twice as large, so that nothing wraps."""
    along = np.fft.fftfreq(2 * GRID, 1 / (2 * GRID))
    x, y = np.meshgrid(along, along, indexing="ij")
    squared = x * x + y * y + 0.25
    return np.fft.rfft2(np.stack([x, y]) / squared)


def _pushes(places: _Floats, mass: _Floats, waves: npt.NDArray[np.complex128]) -> _Floats:
    """Return the acceleration of each vertex by all masses."""
    size = max(float(np.ptp(places, axis=0).max()), 1e-12) / (GRID - 1.001)
    where = (places - places.min(axis=0)) / size
    cells = where.astype(np.int64)
    near = where - cells
    corners = [
        (
            cells[:, 0] + right,
            cells[:, 1] + up,
            np.abs(1 - right - near[:, 0]) * np.abs(1 - up - near[:, 1]),
        )
        for right in (0, 1)
        for up in (0, 1)
    ]
    width = 2 * GRID
    spread = sum(np.bincount(x * width + y, share * mass, width * width) for x, y, share in corners)
    field = np.fft.irfft2(waves * np.fft.rfft2(np.reshape(spread, (width, width))), s=(width, width))
    acceleration: _Floats = sum(
        (field[:, x, y] * share for x, y, share in corners), np.zeros((2, len(places)))
    )
    return acceleration.T / size
