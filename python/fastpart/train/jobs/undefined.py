"""Losses and scores that are NaN or infinite are told once, with the row of features that they come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from ...core.finite import not_finite
from ...errors import GraphFormatError, GraphWarning, arg, code, warn
from ...partitions.part_files import Array
from ...partitions.part_rows import TypeData
from ..data import AnyDataset
from ..models import may_take_edges
from ..plugged.model_source import ModelSource
from .loop import Report

Name = Callable[[int], str]

_BLOCK_BYTES = 32 << 20
"""Numbers that are looked at at a time."""


class Undefined:
    """Warns of the first loss or score of a training that is not finite.

    ``dataset`` is what is trained on, None if there is only an export of it. Those of its features that the ``model``
    takes are read after such a number was found. Without a model rows are learned, and no features are read.
    """

    def __init__(self, dataset: AnyDataset[Any] | None, model: ModelSource | None) -> None:
        self._dataset, self._model, self._told = dataset, model, False

    def watched(self, report: Report) -> Report:
        """Return a report of epochs that warns."""

        def reported(row: dict[str, Any]) -> None:
            self._look(f"epoch {row['epoch']}", row, ["loss", *self._scores("val")])
            report(row)

        return reported

    def end(self, summary: Mapping[str, Any]) -> None:
        """Look at the scores of the best epoch."""
        self._look("the best epoch", summary, [*self._scores("val"), *self._scores("test")])

    def _scores(self, split: str) -> list[str]:
        """Return the scores that are numbers if all outputs are. A split without vertices has none."""
        if self._dataset is not None and not self._dataset.count_of(split):
            return []
        return [f"{split}_{name}" for name in ("accuracy", "rmse", "mrr")]

    def _look(self, when: str, row: Mapping[str, Any], names: Iterable[str]) -> None:
        """Warn if one of these numbers is not finite."""
        values = ((name, row.get(name)) for name in names)
        found = [name for name, value in values if value is not None and not math.isfinite(value)]
        if found and not self._told:
            self._told = True
            are = "is" if len(found) == 1 else "are"
            warn(f"{when}: {' and '.join(found)} {are} NaN or infinite. {self._cause()}", GraphWarning)

    def _cause(self) -> str:
        """Return what they come from, and what to do about it."""
        lower = f"lower {code('lr', '--lr')}, or clip gradients with {arg('clip')}"
        if self._model is None:
            return lower.capitalize()
        if self._dataset is None:
            return f"Look for such numbers in the features, {lower}"
        for where, rows, name in _rows_of(self._dataset, self._model):
            step = max(1, _BLOCK_BYTES // max(rows[:1].nbytes, 1))
            for start in range(0, len(rows), step):
                wrong = not_finite(np.asarray(rows[start : start + step]))
                if len(wrong):
                    return (
                        f"The {where} of {name(start + int(wrong[0]))} have such numbers. Replace them, and save the "
                        "partition again"
                    )
        return f"All features are finite: {lower}"


def _rows_of(dataset: AnyDataset[Any], model: ModelSource) -> Iterator[tuple[str, Array, Name]]:
    """Yield the features of vertices and of edges in each part, and what names the item of a row.

    Those on other machines are left out, and so are those with 8 bits per number, which are finite.
    """
    of_edges = dataset.has_types or may_take_edges(model, dataset.task)
    types, relations = dataset.types.values(), dataset.relations.values()
    for part in dataset.partition.parts:
        for data in [parts[part.index] for parts in types]:
            if data.row_type("features") is not None and data.coding("features") is None:
                with suppress(GraphFormatError, OSError):
                    yield "features", data.features, partial(_vertex, part.index, data)
        for data in [parts[part.index] for parts in relations if of_edges]:
            if data.row_type("edge_features") is not None and data.coding("edge_features") is None:
                with suppress(GraphFormatError, OSError):
                    yield "edge features", data.edge_features, partial(_edge, part.index, data)


def _vertex(part: int, data: Any, row: int) -> str:
    if not isinstance(data, TypeData):  # of an edge partition
        return f"vertex {data.vertices[row]} in part {part}"
    of = f" of type {data.type.name!r}" if data.type.name else ""
    return f"vertex {data.inner[row] - data.type.first}{of} in part {part}"


def _edge(part: int, data: Any, row: int) -> str:
    sources, targets, _ = data.in_edges()
    return f"the edge from vertex {sources[row]} to {targets[row]} in part {part}"
