"""``links``: link prediction, and training without labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...method_options import LinkOptions
from ...registry import Method

if TYPE_CHECKING:
    from ....partitions.partition import PartitionSource
    from .trained import TrainedLinks

METHOD = Method(
    "links",
    LinkOptions,
    driver="fastpart.train.methods.links.driver:Driver",
    worker="fastpart.train.methods.links.worker:Worker",
    types=True,
    result="fastpart.train.methods.links.trained:opened",
    network="fastpart.train.methods.links.decoders:noted_network",
    defaults={"batch_size": 1000},
    without={
        "target": "",
        "metrics": "its scores are MRR, Hits@k and AUC",
        "plan": "a plan is of batches of vertices",
        "baselines": "its scores are ranks of vertices, which a class or a mean does not give",
    },
    compared=False,
)


@METHOD.keywords
def links(source: PartitionSource, options: LinkOptions) -> TrainedLinks:
    """Train to tell edges from other pairs of vertices: link prediction, and training without labels.

    Every worker takes the training edges whose target is in its parts. The encoder, a graph neural network over sampled
    neighbours, gives each end a row, and the decoder gives each pair of rows a logit. Edges of a batch are left out of
    the neighbours that are sampled for it. Gradients are added in every step. So the losses are the same for any
    partition, any number of parts and any number of workers, up to rounding, except with ``"local"`` negatives.

    Parameters
    ----------
    source : path or partition
        A partition directory of vertices, saved with ``graph=`` and ``edge_splits=``. It needs no labels, and no
        features if ``embeddings`` is given, or if it is of a graph with types.
    relation : str or sequence of str, optional
        The relations whose edges are predicted, in a graph with types. Default: all that have edges to train on. An
        epoch has the steps of each, in an order that depends on the seed. Each has a decoder of its own.
    decoder : {"cosine", "dot", "mlp"}
        How a pair is scored: by the cosine of the angle between both rows with a learned scale and offset, by their
        inner product, or by a perceptron over their elementwise product. With large features, inner products are so
        large at first that training may fail.
    negatives
        They have the source of their edge. There is also ``"local"``: from the parts of the worker, which is biased.
        The table of ``"hard"`` is a path: of a ``.npy`` with rows of source and wrong target, in a graph with types
        also the number of the relation, or of an ``.npz`` with such pairs by relation. Where it has no targets of a
        source, or only ends of the edge, uniform ones take their place.
    embeddings : int, optional
        Width of a learnable row of each vertex, the encoder's input behind the features, if there are any. The worker
        that owns a part has its rows. Only rows that a step used are changed, by Adam. Without it, types without
        features have learned rows as wide as ``hidden``.
    candidates : int
        Vertices that the target of each validation and test pair is ranked among, of its type, sampled once. All if
        there are no more.
    ahead : int
        Batches that are made ahead of their use.
    edge_splits : EdgeSplits or path, optional
        For a partition in memory, as ``features``.
    hidden
        The rows of the encoder have this width, too.
    batch_size
        Here it counts training edges, of one relation in each step.
    patience
        Here the score is the validation MRR.

    Returns
    -------
    TrainedLinks
        ``history`` has the columns of :func:`fastpart.train.sampled`, with ``val_mrr``. ``remote_bytes`` also counts
        messages about learned rows and their gradients. ``summary`` has MRR, Hits@1, Hits@3, Hits@10, raw and filtered,
        and AUC of validation and test, of the epoch with the best ``val_mrr``.

    Raises
    ------
    ParameterError
        An invalid parameter, a directory without edge splits, or one without features if there are no ``embeddings``.
    TrainingError
        A worker died. The text names it and its signal or exit code, and quotes the end of its stderr.
    GraphFormatError
        A damaged directory or checkpoint.

    Notes
    -----
    Scores are exact, with all neighbours of the training graph. The target of a pair is ranked among the candidates
    except both ends of the pair. Equal logits count half: the rank is 1 + higher + equal / 2. Other neighbours of the
    source count like all candidates (the "raw" setting). Filtered ranks leave out candidates that are linked to the
    source by any split (Bordes et al. 2013). AUC compares all positives with one uniform negative each. Scores of a
    graph with types are those of the pairs of all relations together. AUC compares logits of one relation.

    A worker holds its batches, the network, 50 bytes per training edge of all workers, and 16 bytes per number of the
    learned rows of its parts. While an epoch begins it takes about 100 bytes more per edge and negative of its own.

    With ``temporal`` each edge is trained on with what was there before its first record, and its negatives are
    vertices that were there. Scores stay exact, and do not look ahead: the held-out pairs must be split by time
    (``fastpart.split_edges(graph, times=...)``), so that all edges of the directory came before them. Candidates are
    the vertices that were there before. In a graph with types the relations that are predicted need times.

    Learned rows are saved with the checkpoints, in ``embeddings`` in the output folder. A resumed training equals one
    that was never interrupted, bit for bit.

    Under ``torchrun`` the calling process is one of the workers, as with :func:`fastpart.train.sampled`. All machines
    must see ``out``: learned rows, and rows of vertices for the scores, go through files there.

    References
    ----------
    Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017, section 3.2.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> ring = np.array([[v, (v + step) % 60] for v in range(60) for step in (1, 2, 3)])
    >>> splits = fp.split_edges(ring)
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> stored = fp.multilevel(splits.graph, k=2).save(folder, graph=splits.graph, edge_splits=splits)
    >>> trained = fp.train.links(folder, embeddings=16, hidden=16, dropout=0, epochs=40, workers=1)
    >>> trained.embeddings.shape, bool(trained.summary["test_auc"] > 0.7)
    ((60, 16), True)
    """
    return METHOD.train(source, options)
