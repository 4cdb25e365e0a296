"""Partition graphs larger than memory for distributed GNN training.

Examples
--------
>>> import numpy as np, fastpart as fp
>>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]], dtype=np.uint32)
>>> p = fp.spring(graph, k=2)
>>> p.loads
array([3, 3])
>>> fp.evaluate(graph, p).summary.columns[-5:]
['cut_ratio', 'vertex_balance', 'edge_balance', 'halo_rf', 'components']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import _core

__version__: str = _core.__version__

from .errors import (
    CapacityError,
    CapacityWarning,
    ClusterError,
    EdgeFileChangedError,
    FastpartError,
    GraphFormatError,
    GraphWarning,
    InternalError,
    MemoryBudgetError,
    ParameterError,
    TrainingError,
)

if TYPE_CHECKING:
    from . import compat as compat
    from . import datasets as datasets
    from . import export, generate, loading, train
    from . import pyg as pyg
    from . import report as report
    from . import store as store
    from .core.options import Options, config
    from .graphs.convert import convert
    from .graphs.graph import Graph
    from .graphs.ingest import ingest
    from .graphs.opening import open_graph
    from .graphs.splits import EdgeSplits, split_edges
    from .measures.compare import Comparison, compare, open_comparison
    from .measures.evaluate import evaluate
    from .measures.expected import expected_cut
    from .measures.info import info
    from .measures.traffic import Traffic, predict_traffic
    from .partitions.clustering import cluster
    from .partitions.homes import home_parts
    from .partitions.order import Ordering, order
    from .partitions.partition import EdgePartition, VertexPartition
    from .partitions.partitioners import builtin as _builtin
    from .partitions.partitioners.builtin import *  # noqa: F403
    from .partitions.partitioners.choosing import partition
    from .partitions.partitioners.custom import custom
    from .partitions.results import Clustering, Evaluation
    from .report.partitions import draw
    from .store import open_partition, restore

_ALGORITHMS = [algorithm.name for algorithm in (*_core.successors(), *_core.algorithms())]

_LATER = {
    "Clustering": "partitions.results",
    "Comparison": "measures.compare",
    "EdgePartition": "partitions.partition",
    "EdgeSplits": "graphs.splits",
    "Evaluation": "partitions.results",
    "Graph": "graphs.graph",
    "Options": "core.options",
    "Ordering": "partitions.order",
    "Traffic": "measures.traffic",
    "VertexPartition": "partitions.partition",
    "cluster": "partitions.clustering",
    "compare": "measures.compare",
    "config": "core.options",
    "convert": "graphs.convert",
    "custom": "partitions.partitioners.custom",
    "draw": "report.partitions",
    "evaluate": "measures.evaluate",
    "expected_cut": "measures.expected",
    "home_parts": "partitions.homes",
    "info": "measures.info",
    "ingest": "graphs.ingest",
    "open_comparison": "measures.compare",
    "open_graph": "graphs.opening",
    "open_partition": "store",
    "order": "partitions.order",
    "partition": "partitions.partitioners.choosing",
    "predict_traffic": "measures.traffic",
    "restore": "store",
    "split_edges": "graphs.splits",
    **dict.fromkeys(_ALGORITHMS, "partitions.partitioners.builtin"),
}
"""Names that are imported on first use, and their modules. So an import of the package takes no time."""

_MODULES = ("compat", "datasets", "export", "generate", "loading", "pyg", "report", "store", "train")
"""Modules that are imported on first use."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *_SHADOWING, "__version__"})


__all__ = [
    "CapacityError",
    "CapacityWarning",
    "ClusterError",
    "Clustering",
    "Comparison",
    "EdgeFileChangedError",
    "EdgePartition",
    "EdgeSplits",
    "Evaluation",
    "FastpartError",
    "Graph",
    "GraphFormatError",
    "GraphWarning",
    "InternalError",
    "MemoryBudgetError",
    "Options",
    "Ordering",
    "ParameterError",
    "Traffic",
    "TrainingError",
    "VertexPartition",
    "cluster",
    "compare",
    "config",
    "convert",
    "custom",
    "draw",
    "evaluate",
    "expected_cut",
    "export",
    "generate",
    "home_parts",
    "info",
    "ingest",
    "loading",
    "open_comparison",
    "open_graph",
    "open_partition",
    "order",
    "partition",
    "predict_traffic",
    "restore",
    "split_edges",
    "store",
    "train",
]
if TYPE_CHECKING:
    __all__ += _builtin.__all__
else:
    __all__ += _ALGORITHMS
_SHADOWING = ("hash", "random")
"""Partitioners that ``from fastpart import *`` leaves out, for the builtin and the module of these names."""
__all__.remove("hash")
__all__.remove("random")
