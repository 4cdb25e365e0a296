"""What a call names as a cluster, as a place."""

from __future__ import annotations

from ..core.parameters import StrPath, path
from ..errors import ParameterError
from .engine import Engine, Threads
from .partitioning import Place


def place_of(cluster: str | Engine, shared: StrPath | None) -> Place:
    """Return the place that a call names."""
    if shared is None:
        raise ParameterError("shared: name a folder that all machines of the cluster see")
    if not isinstance(cluster, Threads):
        raise ParameterError("cluster: not an engine")
    return Place(cluster, path("shared", shared))
