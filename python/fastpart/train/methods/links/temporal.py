"""What link prediction with temporal samples asks of a directory: all of its edges came before the held-out pairs."""

from __future__ import annotations

import numpy as np

from ....core.parameters import shown
from ....errors import ParameterError, code
from ....loading.timed_edges import times_of
from ....partitions.loader_options import TemporalOptions
from .dataset import LinkDataset


def refuse_look_ahead(dataset: LinkDataset) -> None:
    """Raise an error if training edges have no times, or scores from all edges would look ahead."""
    partition, given = dataset.partition, TemporalOptions(temporal="uniform")
    for relation in dataset.predicted:
        times_of("train", dataset.pairs("train", relation), partition, given, relation[1])
    if not any(dataset.count_of(split) for split in ("val", "test")):
        return
    since = dataset.held_out_from
    if since is None:
        raise ParameterError(
            f"temporal: the held-out pairs in {shown(dataset.path)} were not split by time, so that scores would look "
            "ahead. Split the edges with "
            + code(
                "splits = fastpart.split_edges(graph, times=times)",
                "`fastpart split-edges GRAPH TRAIN --times TIMES`",
            )
        )
    for part in partition.parts:
        late = any(rows.times is not None and np.any(rows.times >= since) for rows in part._by_relation)
        sources = dataset.topology.rows_of(part.vertices[np.unique(part.indices)])
        if late or np.any(partition._times.of_rows(sources) >= since):
            raise ParameterError(
                f"temporal: part {part.index} of {shown(dataset.path)} has an edge, or the source of one, that came at "
                f"{since} or later, where the held-out pairs begin. Save "
                + code(
                    "splits.graph of fastpart.split_edges(graph, times=times) with edge_times=splits.edge_times",
                    "the TRAIN of `fastpart split-edges GRAPH TRAIN --times TIMES` with --edge-times TRAIN.times.npy",
                )
            )
