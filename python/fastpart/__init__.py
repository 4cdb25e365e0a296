"""Partition graphs larger than memory for distributed GNN training.

Examples
--------
>>> import numpy as np, fastpart as fp
>>> graph = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]], dtype=np.uint32)
>>> p = fp.spring(graph, k=2)
>>> p.loads
array([3, 3])
>>> fp.evaluate(graph, p).summary.columns[-4:]
['cut_ratio', 'vertex_balance', 'edge_balance', 'halo_rf']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import _core

__version__: str = _core.__version__

from . import train
from .clustering import cluster
from .errors import (
    CapacityError,
    CapacityWarning,
    EdgeFileChangedError,
    FastpartError,
    GraphFormatError,
    GraphWarning,
    InternalError,
    MemoryBudgetError,
    ParameterError,
    TrainingError,
)
from .graph import Graph, open_graph
from .graph_info import info
from .homes import home_parts
from .metrics import evaluate
from .options import Options, config
from .partitioners import builtin as _builtin
from .partitioners import custom
from .partitioners.builtin import *  # noqa: F403
from .partitioners.choosing import partition
from .partitions import EdgePartition, VertexPartition
from .results import Clustering, Evaluation

if TYPE_CHECKING:
    from . import export, generate, loading
    from . import pyg as pyg
    from . import report as report
    from . import store as store
    from .comparing import Comparison, compare, open_comparison
    from .converting import convert
    from .edge_splits import EdgeSplits, split_edges
    from .expected import expected_cut
    from .ordering import Ordering, order
    from .report.partitions import draw
    from .store import open_partition
    from .traffic import Traffic, predict_traffic

_LATER = {
    "Comparison": "comparing",
    "EdgeSplits": "edge_splits",
    "Ordering": "ordering",
    "Traffic": "traffic",
    "compare": "comparing",
    "convert": "converting",
    "draw": "report.partitions",
    "expected_cut": "expected",
    "open_comparison": "comparing",
    "open_partition": "store",
    "order": "ordering",
    "predict_traffic": "traffic",
    "split_edges": "edge_splits",
}
"""Names that are imported on first use, and their modules."""

_MODULES = ("export", "generate", "loading", "pyg", "report", "store")
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
    "loading",
    "open_comparison",
    "open_graph",
    "open_partition",
    "order",
    "partition",
    "predict_traffic",
    "split_edges",
    "store",
    "train",
]
__all__ += _builtin.__all__  # which type checkers can follow
_SHADOWING = ("hash", "random")
"""Partitioners that ``from fastpart import *`` leaves out, for the builtin and the module of these names."""
__all__.remove("hash")
__all__.remove("random")
