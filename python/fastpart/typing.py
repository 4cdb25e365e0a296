"""Classes of results, for annotations."""

from .graphs.ingest.problems import Problems
from .graphs.splits import EdgeSplits
from .measures.compare import Comparison
from .measures.traffic import Traffic
from .partitions.order import Ordering
from .partitions.results import Clustering, Evaluation

__all__ = ["Clustering", "Comparison", "EdgeSplits", "Evaluation", "Ordering", "Problems", "Traffic"]


def __dir__() -> list[str]:
    return __all__
