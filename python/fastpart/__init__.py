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

from . import _core

__version__: str = _core.__version__

from . import export, generate, report, store, train
from .clustering import cluster
from .comparing import Comparison, compare
from .converting import convert
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
from .expected import expected_cut
from .graph import Graph, open_graph
from .graph_info import info
from .homes import home_parts
from .metrics import evaluate
from .partition import EdgePartition, VertexPartition
from .partitioners import builtin as _builtin
from .partitioners import custom
from .partitioners.builtin import *  # noqa: F403
from .report import draw
from .results import Clustering, Evaluation, upward
from .store import open_partition

upward |= {
    "evaluate": evaluate,
    "save": store.save,
    "evaluation_text": report.evaluation_text,
    "comparison_text": report.comparison_text,
    "write_report": report.write_report,
}

__all__ = [
    "CapacityError",
    "CapacityWarning",
    "Clustering",
    "Comparison",
    "EdgeFileChangedError",
    "EdgePartition",
    "Evaluation",
    "FastpartError",
    "Graph",
    "GraphFormatError",
    "GraphWarning",
    "InternalError",
    "MemoryBudgetError",
    "ParameterError",
    "TrainingError",
    "VertexPartition",
    "cluster",
    "compare",
    "convert",
    "custom",
    "draw",
    "evaluate",
    "expected_cut",
    "export",
    "generate",
    "home_parts",
    "info",
    "open_graph",
    "open_partition",
    "store",
    "train",
]
__all__ += _builtin.__all__  # which type checkers can follow
