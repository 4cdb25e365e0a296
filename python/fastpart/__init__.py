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

from .errors import FastpartError

if TYPE_CHECKING:
    from . import algorithms as algorithms
    from . import datasets as datasets
    from . import errors as errors
    from . import export, generate, loading, store, train
    from . import options as options
    from . import pyg as pyg
    from . import report as report
    from . import typing as typing
    from .core.options import Options as Options
    from .core.options import config
    from .graphs.convert import convert
    from .graphs.graph import Graph
    from .graphs.ingest import ingest
    from .graphs.opening import open_graph
    from .graphs.splits import split_edges
    from .measures.compare import compare, open_comparison
    from .measures.doctor import doctor
    from .measures.evaluate import evaluate
    from .measures.info import info
    from .measures.traffic import predict_traffic
    from .partitions.clustering import cluster
    from .partitions.homes import home_parts
    from .partitions.order import order
    from .partitions.partition import EdgePartition, VertexPartition
    from .partitions.partitioners.builtin import edges_of, grem, multilevel, refine, sigma, spring, update
    from .partitions.partitioners.choosing import partition
    from .store import open_partition

_LATER = {
    "EdgePartition": "partitions.partition",
    "Graph": "graphs.graph",
    "Options": "core.options",
    "VertexPartition": "partitions.partition",
    "cluster": "partitions.clustering",
    "compare": "measures.compare",
    "config": "core.options",
    "convert": "graphs.convert",
    "doctor": "measures.doctor",
    "evaluate": "measures.evaluate",
    "home_parts": "partitions.homes",
    "info": "measures.info",
    "ingest": "graphs.ingest",
    "open_comparison": "measures.compare",
    "open_graph": "graphs.opening",
    "open_partition": "store",
    "order": "partitions.order",
    "partition": "partitions.partitioners.choosing",
    "predict_traffic": "measures.traffic",
    "split_edges": "graphs.splits",
    **dict.fromkeys(
        ("edges_of", "grem", "multilevel", "refine", "sigma", "spring", "update"),
        "partitions.partitioners.builtin",
    ),
}
"""Names that are imported on first use, and their modules. So an import of the package takes no time."""

_MODULES = (
    "algorithms",
    "datasets",
    "errors",
    "export",
    "generate",
    "loading",
    "options",
    "pyg",
    "report",
    "store",
    "train",
    "typing",
)
"""Modules that are imported on first use."""

_MOVED = {
    "algorithms": "bytegnn custom dbh expected_cut fennel greedy hash hdrf hep ldg random refennel reldg two_phase",
    "errors": "CapacityError CapacityWarning ClusterError EdgeFileChangedError GraphFormatError GraphWarning "
    "InternalError MemoryBudgetError ParameterError TrainingError",
    "report": "draw",
    "store": "restore",
    "typing": "Clustering Comparison EdgeSplits Evaluation Ordering Traffic",
}
"""Modules, and the names in them that were here before."""


_COMMUNITIES = (
    "fp.cluster(graph) finds clusters, which are many and small, and fp.partition(graph, k) k balanced parts. For "
    "communities use leidenalg or networkx"
)

_INSTEAD = {
    **dict.fromkeys(("communities", "detect", "leiden", "louvain"), _COMMUNITIES),
    **dict.fromkeys(
        ("plot", "show"), "Partitions and comparisons draw themselves: fp.partition(graph, k).plot()"
    ),
    **dict.fromkeys(
        ("load", "open", "read"),
        'fp.open_graph(source) opens a graph, fp.open_partition("parts") a partition directory',
    ),
    **dict.fromkeys(("save", "write"), 'Partitions save themselves: fp.partition(graph, k).save("parts")'),
    **dict.fromkeys(("loader", "predict"), "It is a method of what fp.open_partition and fp.train return"),
    **dict.fromkeys(
        ("metis", "part_graph", "kaminpar", "mtkahypar"),
        'fp.compare(graph, k, ["metis", "partition"]) runs other partitioners, fp.partition(graph, k) our own',
    ),
}
"""Words that users try, and what to use."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _LATER:
        value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
        return value
    from .core.calls import no_attribute

    raise no_attribute(__name__, name, __dir__())


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})


__all__ = [
    "EdgePartition",
    "FastpartError",
    "Graph",
    "VertexPartition",
    "cluster",
    "compare",
    "config",
    "convert",
    "doctor",
    "edges_of",
    "evaluate",
    "export",
    "generate",
    "grem",
    "home_parts",
    "info",
    "ingest",
    "loading",
    "multilevel",
    "open_comparison",
    "open_graph",
    "open_partition",
    "order",
    "partition",
    "predict_traffic",
    "refine",
    "sigma",
    "split_edges",
    "spring",
    "store",
    "train",
    "update",
]
