"""The in-edges of batches as rows of the directory, where their features are."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .ahead import ended
from .fetching import Fetching
from .sample import Sample, SampledArrays, entries_of

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class InEdges:
    """The in-edges of a batch, of which features are fetched as those of its nodes are.

    Attributes
    ----------
    batch : SampledArrays
        The batch.
    """

    batch: SampledArrays

    @property
    def rows(self) -> Ids:
        """Row of each in-edge. None without ids."""
        rows = self.batch.edge_rows
        return np.empty(0, np.int64) if rows is None else rows

    @property
    def features(self) -> npt.NDArray[Any] | None:
        """Their features, if they were read already."""
        return self.batch.edge_features


def with_edge_features(
    fetching: Fetching, sampled: Iterator[SampledArrays], together: int, steps: int
) -> Generator[SampledArrays]:
    """Yield the batches with the features of their in-edges. See :meth:`.fetching.Fetching.filled`."""
    views = (InEdges(batch) for batch in sampled)
    with ended(sampled), closing(fetching.filled(views, together, steps)) as filled:
        for edges, features in filled:
            batch = edges.batch
            if batch.edge_rows is None or features is batch.edge_features:
                yield batch
            else:
                yield Sample(**{**entries_of(batch), "edge_features": features})


def with_edge_rows(sample: SampledArrays, topology: _core.Topology, num_records: int) -> SampledArrays:
    """Return the sample of a user's function with the rows of its in-edges, found by their ids, if it has these."""
    if getattr(sample, "edge_rows", None) is not None or sample.e_id is None:
        return sample
    counts = np.diff(sample.indptr)
    targets = np.repeat(sample.rows[: len(counts)], counts)
    edge_rows = topology.edge_rows_of(targets, sample.e_id, num_records)
    return Sample(**{**entries_of(sample), "edge_rows": edge_rows})
