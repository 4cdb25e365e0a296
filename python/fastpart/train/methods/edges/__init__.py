"""``edges``: classification of edges, and regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...method_options import EdgeOptions
from ...registry import Method

if TYPE_CHECKING:
    from ....partitions.partition import PartitionSource
    from .trained import TrainedEdges

METHOD = Method(
    "edges",
    EdgeOptions,
    driver="fastpart.train.methods.edges.driver:Driver",
    worker="fastpart.train.methods.edges.worker:Worker",
    types=True,
    result="fastpart.train.methods.edges.trained:opened",
    network="fastpart.train.methods.edges.trained:noted_network",
    defaults={"batch_size": 1000},
    without={"target": "", "plan": "a plan is of batches of vertices"},
    compared=False,
)


@METHOD.keywords
def edges(source: PartitionSource, options: EdgeOptions) -> TrainedEdges:
    """Train to tell the labels of edges: their classes, or numbers.

    Every worker takes the training records whose target is in its parts. The encoder, a graph neural network over
    sampled neighbours, gives each end a row. The head, a perceptron with one hidden layer, takes the rows of source and
    target and the features of the edge, if there are any. Edges of a batch are left out of the neighbours that are
    sampled for it. Gradients are added in every step. So the losses are the same for any partition, any number of
    parts and any number of workers, up to rounding.

    Parameters
    ----------
    source : path or partition
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``edge_labels=`` and
        ``edge_label_splits=``. Models that take features of edges get them as in :func:`fastpart.train.sampled`.
    edge_labels, edge_label_splits : optional
        For a partition in memory, as ``features``.
    relation : str, optional
        The relation whose records have the labels, in a graph with types. Default: the only one with labels and records
        to train on.
    ahead : int
        Batches that are made ahead of their use.
    hidden
        The rows of the encoder and the hidden layer of the head also have this width.
    batch_size
        Here it counts training records.

    Returns
    -------
    TrainedEdges
        ``history`` and ``summary`` have the columns of :func:`fastpart.train.sampled`. Accuracy, micro-F1 and metrics
        are of records. ``predict(source, edges=...)`` returns a class for each record, or a number.

    Raises
    ------
    ParameterError
        An invalid parameter, a directory without features, labels of edges or their splits, or an unknown relation.
    TrainingError
        A worker died. The text names it and its signal or exit code, and quotes the end of its stderr.
    GraphFormatError
        A damaged directory or checkpoint.

    Notes
    -----
    Each record counts once, in its own direction: its source comes first. Scores are exact, with all neighbours of both
    ends. Records to validate and to test on are edges of the graph, and so are neighbours in training. Only their
    labels are held out.

    A worker holds its batches, the network, 90 bytes per training record of all workers, and 40 per in-edge of its
    parts.

    Under ``torchrun`` the calling process is one of the workers, as with :func:`fastpart.train.sampled`. All machines
    must see ``out``: rows of vertices for the scores go through files there.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    >>> sides = np.arange(12) // 6
    >>> crosses = (sides[ring[:, 0]] != sides[ring[:, 1]]).astype(int)
    >>> splits = {"train": [0, 2, 3, 5, 7, 11], "val": [1, 8], "test": [4, 9]}
    >>> features = np.eye(2, dtype=np.float32)[sides]
    >>> stored = fp.VertexPartition(sides, k=2).save(
    ...     folder, graph=ring, features=features, edge_labels=crosses, edge_label_splits=splits
    ... )
    >>> trained = fp.train.edges(folder, epochs=40, dropout=0, workers=1)
    >>> trained.predict(folder, edges=[4, 9]), trained.summary["test_accuracy"]
    (array([0, 0]), 1.0)
    """
    return METHOD.train(source, options)
