"""The graphs of a comparison: what is measured on each, and the traffic that is predicted on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...core.frames import pl
from ...core.inputs import labels_of, train_of
from ...core.notes import log
from ...core.options import RunOptions
from ...core.parameters import shown
from ...core.vertex_tables import InOrder
from ...errors import ParameterError, arg
from ...graphs.given_splits import typed_splits
from ...graphs.graph import Graph
from ...graphs.opening import open_graph
from ...partitions.partition import EdgePartition, Partition
from ..sampling_plan import RowTypes, SamplingPlan, directory_bytes, edge_keys_of, traffic_of
from ..traffic import of_input, summed


class Predicted(NamedTuple):
    """The traffic of a partition: columns of its row, and those of its types."""

    row: dict[str, float]
    types: list[pl.Series]


Prediction = Callable[[Partition], Predicted]


@dataclass(frozen=True)
class Subject:
    """A graph of a comparison.

    Attributes
    ----------
    name : str
        Its name in tables: that of the file, or "graph". No two have the same.
    graph : Graph
        Open.
    measured : mapping
        ``labels`` and ``splits`` for :func:`fastpart.evaluate`.
    predict : callable
        Predicts the traffic of a partition.
    """

    name: str
    graph: Graph
    measured: Mapping[str, Any]
    predict: Prediction

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes, for the row of a failed run."""
        return {"n": self.graph.num_vertices, "m": self.graph.num_edges, "loops": self.graph.identify()[0]}

    def facts(self, run: RunOptions) -> dict[str, Any]:
        """Return name, sizes and checksum. This also reads the file into the page cache."""
        checksum = self.graph.identify(run)[1]
        if self.graph.weights is not None:
            log.info(
                "the records are weighted. multilevel and the peers read weights, the others count each record once"
            )
        return {"name": self.name, **self.sizes, "checksum": checksum}


def subjects_of(
    source: Any, measured: tuple[Any, Any, Any], traffic: tuple[Any, ...], run: RunOptions
) -> list[Subject]:
    """Open the graph, or each of several. ``measured`` is labels, splits and the number of the split."""
    sources = source if _several(source) else [source]
    if len(sources) > 1:
        for name, given in zip(("labels", "splits"), measured, strict=False):
            if given is not None:
                raise ParameterError(f"{name}: they are those of one graph. Compare the graphs one by one")
    subjects: list[Subject] = []
    for each in sources:
        opened = open_graph(each, **vars(run))
        name = shown(Path(opened.path).name) if opened.path else "graph"
        alike = sum(name == other.name.partition(" #")[0] for other in subjects)
        subjects.append(_subject(f"{name} #{alike + 1}" if alike else name, opened, measured, traffic, run))
    return subjects


def _several(source: Any) -> bool:
    """Return whether a list holds graphs, rather than the edges of one."""
    return (
        isinstance(source, list | tuple)
        and bool(source)
        and all(
            isinstance(each, str | os.PathLike | Graph) or len(getattr(each, "shape", ())) == 2
            for each in source
        )
    )


def _subject(
    name: str, graph: Graph, measured: tuple[Any, Any, Any], traffic: tuple[Any, ...], run: RunOptions
) -> Subject:
    labels, splits, split = measured
    of_graph = {
        "labels": None if labels is None else labels_of(labels, graph.num_vertices, graph._id_tables),
        "splits": typed_splits(graph, splits, split) or None,
    }
    predict = _prediction(graph, of_graph["splits"], traffic, run)
    measured_ = {key: None if each is None else InOrder(each) for key, each in of_graph.items()}
    return Subject(name, graph, measured_, predict)


def _prediction(graph: Graph, splits: Any, given: tuple[Any, ...], run: RunOptions) -> Prediction:
    """Return what predicts the columns of the traffic of a partition."""
    fanouts, batch_size, cache, row_bytes, input = given
    if fanouts is None:
        return lambda partition: Predicted({}, [])
    if not splits:
        raise ParameterError(
            f"splits: the traffic of training depends on its vertices. Pass {arg('splits')} with train"
        )
    train = of_input(splits, graph, input)
    train_of(train)
    caches = cache if isinstance(cache, Iterable) and not isinstance(cache, str) else [cache]
    plan = SamplingPlan.of(fanouts, batch_size, caches, edge_keys_of(graph))
    names = None if graph.types is None else [each.name for each in graph.types]
    rows = RowTypes.of(names, row_bytes, directory_bytes(graph))

    def predict(partition: Partition) -> Predicted:
        if isinstance(partition, EdgePartition):
            return Predicted({}, [])
        found = traffic_of(graph, partition, train, plan, rows, run)
        columns = {}
        types: list[pl.Series] = []
        for index, size in enumerate(plan.caches):
            traffic = summed(found, plan, index, rows)
            end = f"_{size}" if size else ""
            columns[f"remote_rows{end}"] = float(round(traffic.fetched_rows))
            if traffic.fetched_mb is not None:
                columns[f"remote_mb{end}"] = traffic.fetched_mb
            if traffic.types is not None:
                types += _of_types(traffic.types, end)
        return Predicted(columns, types)

    return predict


def _of_types(traffic: pl.DataFrame, end: str) -> list[pl.Series]:
    """Return the columns of the traffic of each type, with this end of their names."""
    fetched = (traffic["remote_rows"] - traffic["saved_rows"]).round()
    columns = [fetched.rename(f"remote_rows{end}")]
    if traffic["fetched_mb"].null_count() < len(traffic):
        columns.append(traffic["fetched_mb"].rename(f"remote_mb{end}"))
    return columns
