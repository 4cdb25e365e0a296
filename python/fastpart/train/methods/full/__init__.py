"""``full``: centralized training, the reference without parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...options import TrainOptions
from ...registry import Method

if TYPE_CHECKING:
    from ....partitions.partition import PartitionSource
    from ...runs.trained import TrainedModel

METHOD = Method(
    "full",
    TrainOptions,
    driver="fastpart.train.methods.full.driver:Driver",
    worker="fastpart.train.methods.full.worker:Worker",
    over=None,
    types=True,
    without={
        "workers": "it trains in one process. Train with sampled, or with sdt, to have several",
        "timeout": "it trains in one process, which waits for no other",
    },
    launched=False,
)


@METHOD.keywords
def full(source: PartitionSource, options: TrainOptions) -> TrainedModel:
    """Train on the whole graph in one process.

    This is the reference for methods that train over parts. Models and options are the same.

    Parameters
    ----------
    source : path or partition
        A partition directory of vertices or of edges, saved with ``graph=``, ``features=``, ``labels=`` and
        ``splits=``. The result does not depend on the parts. In a graph with types all types need features.
    batch_size
        Default: all at once, with all neighbours. Graphs with types take nothing else. Models that train on sampled
        graphs (``clustergcn``, ``graphsaint``) by default take about a tenth in each graph.

    Returns
    -------
    TrainedModel
        With the weights of the epoch with the best validation score.

    Raises
    ------
    ParameterError
        An invalid parameter, or a directory without features, labels or splits.
    GraphFormatError
        A damaged directory or checkpoint.
    MemoryBudgetError
        The memory limit does not hold the training. The text says what needs how much.

    Notes
    -----
    The process holds the graph, the features and the activations of all vertices. With mini-batches it holds the
    activations of a batch, but evaluation still needs those of all vertices. Scores are exact, with all neighbours.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    >>> labels = np.arange(12) // 6
    >>> splits = {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
    >>> stored = fp.VertexPartition(labels, k=2).save(
    ...     folder, graph=ring, features=np.eye(2, dtype=np.float32)[labels], labels=labels, splits=splits
    ... )
    >>> fp.train.full(folder, epochs=20).summary["test_accuracy"]
    1.0
    """
    return METHOD.train(source, options)
