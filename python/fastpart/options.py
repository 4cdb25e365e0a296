"""Options of functions with many parameters, by what they are about: one object instead of several keywords.

``p.loader(fanouts=[5], fetching=Fetching(cache=0.2))`` is ``p.loader(fanouts=[5], cache=0.2)``.
An object may be passed to several functions, and holds only what was given: each function has its own defaults for the
rest. A function refuses fields that it does not take, and a keyword that is also in an object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .core.option_groups import option_object
from .core.options import Options, RunOptions
from .graphs.opening import open_graph
from .graphs.sources import RecordOptions
from .measures.traffic import predict_traffic
from .partitions import loader_options as loaders
from .partitions.partition import VertexPartition
from .partitions.partitioners.builtin import multilevel
from .partitions.partitioners.choosing import partition
from .partitions.saved import SavedData
from .train import options as trainings


def _docs(function: Callable[..., Any]) -> str:
    """Return the docs of all keywords of a function."""
    text: str = getattr(function, "full_doc", "")
    return text


_RUN = inspect.cleandoc(Options.__doc__ or "").replace("Attributes\n", "Parameters\n")

Data = option_object("Data", [SavedData], [_docs(VertexPartition.save)])
Records = option_object("Records", [RecordOptions], [_docs(open_graph)])
Bounds = option_object("Bounds", [loaders.BoundOptions], [_docs(multilevel)])
Network = option_object("Network", [trainings.Options])
Learning = option_object("Learning", [trainings.Options, trainings.Scored, trainings.KeptOptions])
Batches = option_object(
    "Batches",
    [loaders.HopOptions, loaders.LinkOptions, trainings.Options],
    [_docs(VertexPartition.loader)],
)
Fetching = option_object(
    "Fetching",
    [loaders.LoaderOptions, loaders.HopOptions],
    [_docs(VertexPartition.loader), _docs(predict_traffic)],
)
Run = option_object(
    "Run",
    [RunOptions, loaders.PlaceOptions, trainings.KeptOptions, loaders.LoaderOptions],
    [_RUN, _docs(partition), _docs(VertexPartition.save)],
)

__all__ = ["Batches", "Bounds", "Data", "Fetching", "Learning", "Network", "Records", "Run"]


def __dir__() -> list[str]:
    return __all__
