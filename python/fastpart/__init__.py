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

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import _core

__version__: str = _core.__version__

from . import generate, store, train
from .clustering import cluster
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
from .options import Options, config
from .partition import EdgePartition, VertexPartition
from .partitioners import builtin as _builtin
from .partitioners import custom
from .partitioners.builtin import *  # noqa: F403
from .results import Clustering, Evaluation, upward
from .store import open_partition

if TYPE_CHECKING:
    from . import export
    from .comparing import Comparison, compare
    from .report.draw import draw

_LATER = {"Comparison": "comparing", "compare": "comparing", "draw": "report", "export": "", "report": ""}
"""Names that are imported when somebody asks for them, and the modules that have them."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_LATER[name] or name}")
    value = globals()[name] = getattr(module, name) if _LATER[name] else module
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def _report(name: str) -> Callable[..., Any]:
    """Return a function of the reports, which are imported by its first call."""
    return lambda *args: getattr(import_module(f"{__name__}.report"), name)(*args)


upward |= {"evaluate": evaluate, "save": store.save}
upward |= {name: _report(name) for name in ("evaluation_text", "comparison_text", "write_report")}

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
    "Options",
    "ParameterError",
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
    "open_graph",
    "open_partition",
    "store",
    "train",
]
__all__ += _builtin.__all__  # which type checkers can follow
