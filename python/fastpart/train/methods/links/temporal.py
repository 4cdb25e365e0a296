"""What link prediction with temporal samples asks of a directory: all of its edges came before the held-out pairs."""

from __future__ import annotations

import numpy as np

from ....core.parameters import shown
from ....errors import ParameterError, code
from ....loading.timed_edges import EarlierVertices, times_of
from ....partitions.loader_options import TemporalOptions
from .dataset import LinkDataset


def refuse_look_ahead(dataset: LinkDataset) -> None:
    """Raise an error if training edges have no times, or scores from all edges would look ahead."""
    times_of("train", dataset.pairs("train"), dataset.partition, TemporalOptions(temporal="uniform"))
    if not any(len(dataset.pairs(split)) for split in ("val", "test")):
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
    timed = EarlierVertices.of_all(dataset.partition).times if "times" in dataset.manifest else None
    for part in dataset.partition.parts:
        late = part.edge_times is not None and bool(np.any(part.edge_times >= since))
        if late or (timed is not None and np.any((timed[part.vertices] >= since)[part.indices])):
            raise ParameterError(
                f"temporal: part {part.index} of {shown(dataset.path)} has an edge, or the source of one, that came at "
                f"{since} or later, where the held-out pairs begin. Save "
                + code(
                    "splits.graph of fastpart.split_edges(graph, times=times) with edge_times=splits.edge_times",
                    "the TRAIN of `fastpart split-edges GRAPH TRAIN --times TIMES` with --edge-times TRAIN.times.npy",
                )
            )
