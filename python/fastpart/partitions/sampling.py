"""How neighbours are sampled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.rows import rows_of
from ..errors import ParameterError, arg
from .loader_options import Sampling, Temporal
from .partition import VertexPartition


def sampling_of(partition: VertexPartition, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check how neighbours are sampled, and return it as the sampler of the core takes it."""
    return {
        "kind": parameters.choice("sampling", given["sampling"], get_args(Sampling)),
        "weights": _weights_of(given.get("weights"), partition),
        "seed": parameters.seed(given["seed"]),
        "merged": parameters.flag("merged", given["merged"]),
        **_temporal_of(partition, given),
    }


def _temporal_of(partition: VertexPartition, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the sampler of the core takes for temporal samples. Nothing, unless the user wants them."""
    if given.get("temporal") is None:
        return {}
    temporal = parameters.choice("temporal", given["temporal"], get_args(Temporal))
    if given["sampling"] != "uniform":
        raise ParameterError(
            f"sampling: {arg(f'temporal={temporal!r}')} says how neighbours are sampled. "
            f"Leave out {arg('sampling=' + repr(given['sampling']))}"
        )
    return {"times": partition._times, "temporal": temporal}


def _weights_of(weights: Any, partition: VertexPartition) -> npt.NDArray[Any] | None:
    """Return one weight per record as contiguous float32 or float64. None stays None."""
    if weights is None:
        return None
    rows, m = rows_of("weights", weights), partition.num_edges or 0
    if rows.shape != (m,):
        raise ParameterError(f"weights: expected one per record, of shape ({m},), got {rows.shape}")
    array = rows.read(0, m)
    return np.ascontiguousarray(array, np.float32 if array.dtype == np.float32 else np.float64)
