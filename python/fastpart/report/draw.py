"""Plots of evaluations, drawn by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..metrics import DENSE_PARTS
from ..parameters import StrPath, path
from ..results import Evaluation


def draw(evaluations: dict[str, Evaluation], out: StrPath) -> None:
    """Draw part loads and cut matrices, one row per evaluation, into a PNG, SVG or PDF.

    Parameters
    ----------
    evaluations : dict of str to Evaluation
        Evaluations of vertex partitions by the title of their row.
    out : path
        The picture. The suffix decides the format.

    Raises
    ------
    ModuleNotFoundError
        Without matplotlib: ``pip install 'fastpart[plot]'``.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile, pathlib
    >>> graph = np.array([[0, 1], [1, 2], [2, 3]])
    >>> picture = pathlib.Path(tempfile.mkdtemp()) / "parts.svg"
    >>> fp.draw({"path": fp.evaluate(graph, [0, 0, 1, 1])}, picture)
    """
    target = path("out", out)
    if target.suffix not in (".png", ".svg", ".pdf"):
        raise ParameterError(f"out: unknown suffix {target.suffix!r}. Use .png, .svg or .pdf")
    for title, evaluation in evaluations.items():
        of, k = evaluation.summary.select("of", "k").row(0)
        if of != "vertices" or k > DENSE_PARTS:
            raise ParameterError(
                f"evaluations: {title!r} has {k} parts of {of}. Only vertex partitions of up to {DENSE_PARTS:,} parts "
                "can be drawn"
            )
    figure = new_figure(figsize=(11, 3.4 * max(1, len(evaluations))), layout="constrained")
    axes = figure.subplots(max(1, len(evaluations)), 2, squeeze=False, width_ratios=(3, 2))
    for (loads, matrix), (title, evaluation) in zip(axes, evaluations.items(), strict=False):
        _draw_loads(loads, title, evaluation)
        _draw_matrix(figure, matrix, evaluation)
    save_figure(figure, target)


def _draw_loads(axis: Any, title: str, evaluation: Evaluation) -> None:
    parts, summary = evaluation.parts, evaluation.summary.row(0, named=True)
    place = np.arange(len(parts))
    axis.bar(place, parts["vertices"], 0.85, label="vertices", color="#3b6ea5")
    axis.bar(place, parts["halo"], 0.85, bottom=parts["vertices"], label="halo", color="#b8cfe5")
    cap = parts["cap"][0]
    if cap is not None:
        axis.axhline(cap, color="#c0392b", linewidth=1, linestyle="--", label=f"cap {cap}")
    axis.set(xlabel="part", ylabel="vertices", xmargin=0.01)
    axis.set_title(
        f"{title}: cut {summary['cut_ratio']:.3f}, halo replication {summary['halo_rf']:.2f}, "
        f"edge balance {summary['edge_balance']:.2f}",
        fontsize=10,
    )
    axis.legend(fontsize=8, loc="lower right")


def _draw_matrix(figure: Any, axis: Any, evaluation: Evaluation) -> None:
    matrix: Any = evaluation.cut_matrix
    image = axis.imshow(np.log10(matrix + 1.0), cmap="viridis", vmin=0, interpolation="nearest")
    axis.set(xlabel="part", ylabel="part")
    axis.set_title("records between parts", fontsize=10)
    bar = figure.colorbar(image, ax=axis)
    ticks = np.arange(0, np.log10(matrix.max(initial=1) + 1.0) + 1e-9)
    bar.set_ticks(ticks, labels=[f"{10**tick:,.0f}" for tick in ticks])


def new_figure(**options: Any) -> Any:
    """Return a figure of matplotlib, or say that it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}. Plots need matplotlib: pip install 'fastpart[plot]'") from None
    return Figure(**options)


def save_figure(figure: Any, target: Path) -> None:
    """Write a figure atomically. The suffix decides the format."""
    import io

    from .. import _core

    buffer = io.BytesIO()
    figure.savefig(buffer, format=target.suffix[1:], dpi=150)
    _core.write_file(target, buffer.getvalue())
