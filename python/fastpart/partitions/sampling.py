"""How neighbours are sampled."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.rows import rows_of
from ..errors import ParameterError
from .loadable import Sampling, SamplingOptions
from .partition import VertexPartition


def sampling_of(partition: VertexPartition, given: SamplingOptions) -> dict[str, Any]:
    """Check how neighbours are sampled, and return it as the sampler of the core takes it."""
    return {
        "kind": parameters.choice("sampling", given["sampling"], get_args(Sampling)),
        "weights": _weights_of(given.get("weights"), partition),
        "seed": parameters.seed(given["seed"]),
        "merged": parameters.flag("merged", given["merged"]),
    }


def _weights_of(weights: Any, partition: VertexPartition) -> npt.NDArray[Any] | None:
    """Return one weight per record as contiguous float32 or float64. None stays None."""
    if weights is None:
        return None
    rows, m = rows_of("weights", weights), partition.num_edges or 0
    if rows.shape != (m,):
        raise ParameterError(f"weights: expected one per record, of shape ({m},), got {rows.shape}")
    array = rows.read(0, m)
    return np.ascontiguousarray(array, np.float32 if array.dtype == np.float32 else np.float64)
