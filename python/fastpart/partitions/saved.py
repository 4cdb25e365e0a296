"""The data that a partition directory holds beside the partition, as :meth:`fastpart.VertexPartition.save` takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ..core import parameters
from ..core.option_groups import OptionGroup
from ..core.options import RunOptions
from ..core.parameters import FeatureDtype
from ..errors import ParameterError

HALO_HOPS = (0, 1, 2)


def _hops(name: str, value: Any) -> int:
    hops = parameters.integer(name, value, 0, 2**31)
    if hops not in HALO_HOPS:
        raise ParameterError(f"{name}: {hops} is not one of 0, 1, 2")
    return hops


@dataclass(frozen=True, kw_only=True)
class SavedData(OptionGroup):
    """Data of vertices and edges, and what of it each part holds. :meth:`Savable.save` describes it."""

    together: ClassVar = {
        "data": "features feature_dtype standardise labels splits split edge_features edge_feature_dtype edge_labels "
        "edge_label_splits times edge_times halo_hops halo_features edge_splits"
    }
    features: Any = None
    feature_dtype: FeatureDtype | None = None
    standardise: bool = False
    labels: Any = None
    splits: Any = None
    split: int | None = None
    edge_features: Any = None
    edge_feature_dtype: FeatureDtype | None = None
    edge_labels: Any = None
    edge_label_splits: Any = None
    times: Any = None
    edge_times: Any = None
    halo_hops: Annotated[int, _hops] = 1
    halo_features: bool = False
    edge_splits: Any = None


@dataclass(frozen=True, kw_only=True)
class RestoreOptions(OptionGroup):
    """Where the ids come from that the vertices had in tables."""

    restore: Any = None


@dataclass(frozen=True, kw_only=True)
class SaveOptions(SavedData, RestoreOptions, RunOptions):
    """The options of ``save``."""
