"""``embeddings``: knowledge graph embeddings, with edge splits of a graph with types or without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...method_options import EmbeddingOptions
from ...registry import Method

if TYPE_CHECKING:
    from ....partitions.partition import PartitionSource
    from .trained import TrainedEmbeddings

METHOD = Method(
    "embeddings",
    EmbeddingOptions,
    driver="fastpart.train.methods.embeddings.driver:Driver",
    worker="fastpart.train.methods.embeddings.worker:Worker",
    types=True,
    result="fastpart.train.methods.embeddings.trained:opened",
    network="fastpart.train.methods.links.decoders:noted_relation_network",
    defaults={"batch_size": 1000, "lr": 0.003, "dropout": 0.3, "weight_decay": 0.0, "epochs": 30},
    without={
        "target": "",
        "model": "pass encoder, or leave it out",
        "plan": "a plan is of batches of vertices",
        "baselines": "its scores are ranks of vertices, which a class or a mean does not give",
        "loss": "pass objective",
        "metrics": "its scores are MRR and Hits@k",
        "labels": "facts are edges, which edge_splits deals out",
        "splits": "facts are edges, which edge_splits deals out",
    },
    compared=False,
)


@METHOD.keywords
def embeddings(source: PartitionSource, options: EmbeddingOptions) -> TrainedEmbeddings:
    """Learn a row of each vertex and of each relation that tell edges from others: knowledge graph embeddings.

    Without an encoder the rows of vertices are learned, and features are not read. With one, a network over typed
    graphs returns them from features and sampled neighbours. In every step each training edge is compared with others
    that have another target, and with others that have another source. The other ends are of the type that the relation
    leads to. All edges of a step share them, so that logits are products of matrices.

    Every worker takes the training edges whose target is in its parts. A row of a vertex belongs to the worker of its
    part. Rows of relations are alike in all workers. Samples are functions of seed, epoch and step. So the losses are
    the same for any partition, any number of parts and any number of workers, up to rounding.

    Parameters
    ----------
    source : path or partition
        A partition directory of vertices, saved with ``graph=`` and ``edge_splits=``. A graph without types counts as
        one of a single relation.
    edge_splits : EdgeSplits or path, optional
        For a partition in memory, as ``features``.
    width : int
        Numbers in a learned row of a vertex. With an encoder the rows have the width ``hidden``.
    encoder : str, callable or torch.nn.Module, optional
        A model of graphs with types, as ``model`` of :func:`fastpart.train.sampled`: rgcn, rgat, hgt, heterosage or
        your own ``TypedNetwork``. Types without features have learned rows as its inputs. The edges of a step are left
        out of the neighbours that are sampled for it, in both directions. Default: none.
    decoder : {"distmult", "complex", "rotate", "dot", "mlp"}
        How an edge is scored. ``"distmult"``: the sum of the products of source, relation and target (Yang et al.
        2015). ``"complex"``: the same of complex numbers (Trouillon et al. 2016). ``"rotate"``: minus the distance of
        the target from the source rotated by the relation (Sun et al. 2019), which takes no product of matrices and so
        about 50 times as long. ``"dot"``: the inner product, whatever the relation. ``"mlp"``: a perceptron over the
        products of ``"distmult"``.
    reciprocal : bool
        Each relation has one row to predict targets with and another one to predict sources with (Lacroix et al. 2018).
    objective : {"softmax", "binary", "self_adversarial"}
        ``"softmax"``: cross entropy of the edge among its negatives, which Ruffinelli et al. 2020 found the best.
        ``"binary"``: cross entropy of the edge, and the mean of that of its negatives. ``"self_adversarial"``: the
        same, but negatives are weighted by the softmax of their logits (Sun et al. 2019).
    negatives
        The edges of a step share them: samples of each type, with replacement. ``"batch"`` alone, or a number
        ``"all"``, takes the ends of all edges of the step. ``"all"`` alone takes all vertices of the type ("1vsAll").
        The true end of an edge is never one of its negatives. The table of ``"hard"`` is a path: of a ``.npy`` with
        rows of source and wrong target, in a graph with types also the number of the relation, or of an ``.npz`` with
        such pairs by relation. It is for targets, and none take the place of those that it lacks.
    relation_weights : mapping, optional
        Factors of the losses of relations, by name. Default: 1.
    candidates : int, optional
        Vertices of a type that each validation and test pair is ranked among, sampled once. Default: all.
    ahead : int
        Batches of an encoder that are made ahead of their use.
    hidden
        Without an encoder it, ``layers``, ``heads`` and ``fanouts`` say nothing, and neither do ``io``, ``cache`` and
        ``resident`` about features.
    dropout
        Here it drops numbers of the rows of vertices and relations. Those of a vertex are the same in a step.
    batch_size
        Here it counts training edges.
    lr
        The rows of vertices follow ``scheduler``, too, but have an Adam of their own without ``weight_decay`` and
        ``clip``.
    patience
        Here the score is the filtered MRR of validation.

    Returns
    -------
    TrainedEmbeddings
        ``history`` has ``val_filtered_mrr`` and ``val_mrr``. ``remote_bytes`` counts messages about rows of vertices
        and their gradients. ``summary`` has MRR, Hits@1, Hits@3 and Hits@10 of validation and test, raw and filtered,
        of the epoch with the best ``val_filtered_mrr``.

    Raises
    ------
    ParameterError
        An invalid parameter, or a directory without edge splits.
    TrainingError
        A worker died. The text names it and its signal or exit code, and quotes the end of its stderr.
    GraphFormatError
        A damaged directory, table or checkpoint.

    Notes
    -----
    Scores are exact. Both ends of a pair are ranked among all vertices of their types, and the scores are means over
    both. Filtered ranks leave out other vertices that are right by any split (Bordes et al. 2013). Equal logits count
    half: the rank is 1 + higher + equal / 2. Logits are computed in blocks.

    An encoder computes the scores from all neighbours. The edges that it is trained on are among these.

    A worker holds 150 bytes per edge of all splits, and 5 numbers per number of the rows of its parts.

    References
    ----------
    Ruffinelli, Broscheit and Gemulla, "You CAN Teach an Old Dog New Tricks! On Training Knowledge Graph Embeddings",
    ICLR 2020.

    Examples
    --------
    >>> import numpy as np, fastpart as fp, tempfile
    >>> ring = np.array([[v, (v + step) % 60] for v in range(60) for step in (1, 2, 3)])
    >>> splits = fp.split_edges(ring)
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> stored = fp.multilevel(splits.graph, k=2).save(folder, graph=splits.graph, edge_splits=splits)
    >>> given = {"width": 16, "epochs": 30, "batch_size": 32, "lr": 0.05, "dropout": 0}
    >>> trained = fp.train.embeddings(folder, **given, workers=1)
    >>> trained.embeddings.shape, bool(trained.summary["test_filtered_mrr"] > 0.2)
    ((60, 16), True)
    """
    return METHOD.train(source, options)
