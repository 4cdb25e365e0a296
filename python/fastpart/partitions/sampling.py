"""How neighbours are sampled."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.rows import rows_of
from ..errors import ParameterError, arg
from .loader_options import SamplingOptions, TemporalOptions
from .partition import VertexPartition


def sampling_of(partition: VertexPartition, options: SamplingOptions) -> dict[str, Any]:
    """Return how neighbours are sampled, as the sampler of the core takes it."""
    how = {
        "kind": options.sampling,
        "weights": _weights_of(options.weights, partition),
        "seed": options.seed,
        "merged": options.merged,
    }
    if not isinstance(options, TemporalOptions) or options.temporal is None:
        return how
    if options.sampling != "uniform":
        raise ParameterError(
            f"sampling: {arg(f'temporal={options.temporal!r}')} says how neighbours are sampled. "
            f"Leave out {arg(f'sampling={options.sampling!r}')}"
        )
    return {**how, "times": partition._times, "temporal": options.temporal}


def _weights_of(weights: Any, partition: VertexPartition) -> npt.NDArray[Any] | None:
    """Return one weight per record as contiguous float32 or float64. None stays None."""
    if weights is None:
        return None
    rows, m = rows_of("weights", weights), partition.num_edges or 0
    if rows.shape != (m,):
        raise ParameterError(f"weights: expected one per record, of shape ({m},), got {rows.shape}")
    array = rows.read(0, m)
    return np.ascontiguousarray(array, np.float32 if array.dtype == np.float32 else np.float64)
