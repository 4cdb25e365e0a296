"""Plots of single partitions: the sizes of the parts against the cap, and what lies between the parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.parameters import StrPath, one_line
from ..measures.evaluate import DENSE_PARTS
from ..partitions.results import Evaluation
from .figures import Figure, plotted
from .look import LIGHT, number
from .panels import heat

if TYPE_CHECKING:
    from ..partitions.partition import Partition

MOST_BARS = 128
"""With more parts, the bars have no gaps."""

MOST_LETTERS = 60
"""Most letters of a name that are shown. Of a longer one, the first letters are shown."""

_COLOURS = ("series2", "series1")


class _Row(NamedTuple):
    """The picture of one partition. ``sizes`` are stacked. Counts on the right are a matrix or one per part."""

    title: str
    unit: str
    sizes: dict[str, npt.NDArray[Any]]
    cap: int | npt.NDArray[Any] | None
    right: npt.NDArray[Any] | None = None


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
    >>> figure = fp.draw({"path": fp.evaluate(graph, [0, 0, 1, 1])}, picture)
    """
    return plotted(lambda: _figure([_row_of(title, each) for title, each in evaluations.items()]), out)


def plot_partition(partition: Partition, out: StrPath | None = None) -> Figure:
    """Plot the sizes of the parts of a partition, for which no graph is needed."""
    title = f"{one_line(partition.algorithm, MOST_LETTERS)}, k = {partition.k:,}"
    row = _Row(title, partition.items, {partition.items: partition.loads}, partition.cap)
    return plotted(lambda: _figure([row]), out)


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
        place.suptitle(row.title)
        if row.right is None:
            _bars(place.subplots(), row.unit, row.sizes, row.cap)
            continue
        left, right = place.subplots(1, 2, width_ratios=(3, 2))
        _bars(left, row.unit, row.sizes, row.cap)
        if row.right.ndim == 1:
            _bars(right, "vertices", {"replicas": row.right}, None)
        else:
            _matrix(place, right, row.right)
    return figure


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
    bar.ax.yaxis.set_major_formatter(number)
    bar.ax.minorticks_off()
