"""The data that a partition directory holds beside the partition, as :meth:`fastpart.VertexPartition.save` takes it."""

from typing import Any, TypedDict

from ..core.options import Options
from ..core.parameters import FeatureDtype


class SavedData(TypedDict, total=False):
    """Data of vertices and edges, and what of it each part holds."""

    features: Any
    feature_dtype: FeatureDtype | None
    standardise: bool
    labels: Any
    splits: Any
    split: int | None
    edge_features: Any
    times: Any
    edge_times: Any
    halo_hops: int
    halo_features: bool
    edge_splits: Any


class SaveOptions(SavedData, Options, total=False):
    """Keywords of ``save``."""

    restore: Any


SAVE_DEFAULTS: SavedData = {"halo_hops": 1, "halo_features": False, "standardise": False}
"""Defaults other than None."""
