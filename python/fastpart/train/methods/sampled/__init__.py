"""``sampled``: mini-batches of sampled neighbours, over all parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...method_options import SampledOptions
from ...registry import Method

if TYPE_CHECKING:
    from ....partitions.partition import PartitionSource
    from ...runs.trained import TrainedModel

METHOD = Method(
    "sampled",
    SampledOptions,
    driver="fastpart.train.methods.sampled.driver:Driver",
    worker="fastpart.train.methods.sampled.worker:Worker",
    types=True,
    defaults={"batch_size": 1000},
)


@METHOD.keywords
def sampled(source: PartitionSource, options: SampledOptions) -> TrainedModel:
    """Train on mini-batches of sampled neighbours over all parts.

    Every worker maps the edges of all parts, takes the training vertices of its own parts, and fetches the features
    that its batches need. Gradients are added in every step and divided by the training vertices of the whole batch.
    The sample of a vertex depends on the seed, the step and the vertex, not on parts or workers. So the losses
    are the same for any partition, any number of parts and any number of workers, up to rounding.

    Parameters
    ----------
    source : path or partition
        A partition directory of vertices, saved with ``graph=``, ``features=``, ``labels=`` and ``splits=``.
    ahead : int
        Batches that are made ahead of their use. Rows of parts of other workers come for so many batches at a time.
        A row that several of them need is counted once. Between machines it is sent once.
    model
        ``gatv2``, ``transformer``, ``gine`` and models with ``forward(x, edge_index, edge_attr)`` take features of
        edges, if the directory has any.
    cache, cache_by
        Models of sampled graphs (``clustergcn``, ``graphsaint``) have no use for ``fanouts``, ``sampling``, ``ahead``,
        ``cache`` and ``resident``.
    device
        Features that fit stay there, the others are copied while the batch before computes.

    Returns
    -------
    TrainedModel
        ``history`` adds for each epoch ``compute_seconds``, ``synchronising_seconds`` (gradients, with waiting for the
        slowest worker) and ``idle_seconds`` (waiting for batches), and what threads spent on batches meanwhile:
        ``sampling_seconds`` and ``fetching_seconds`` (rows of features). Each is the mean over the workers.
        ``rows`` counts rows of features, each once for a batch, and ``read_bytes`` the bytes that files of features
        were read for: whole blocks of 4 KiB with direct reads, and each node's row from maps, where the system decides
        what it reads. ``remote_rows`` counts rows of features of parts of other workers, each once for all
        batches that are made ahead together, and ``remote_bytes`` their bytes or, between machines, those of the
        messages. ``local_rows`` counts rows of the worker's own parts, ``cached_rows`` those that the
        cache held. With features of edges, ``edge_rows``, ``remote_edge_rows``, ``remote_edge_bytes``,
        ``cached_edge_rows`` and ``edge_read_bytes`` count those of in-edges. ``summary`` adds ``parts``, ``workers``,
        ``halo_rf`` and ``label_skew``.

    Raises
    ------
    ParameterError
        An invalid parameter, or a directory without features, labels, splits or halo.
    TrainingError
        A worker died. The text names it and its signal or exit code, and quotes the end of its stderr.
    GraphFormatError
        A damaged directory or checkpoint.

    Notes
    -----
    A worker holds its batches and the network. Edges and features stay in files, which the workers of a machine share
    in the page cache. Scores are exact, with all neighbours. They are computed layer by layer.

    With ``temporal``, scores come from such samples, too. ``scores="exact"`` are of all vertices of a split, with all
    in-edges that were there before the time of each, and take long where vertices have many. With ``scores="sampled"``
    test scores at the end are of all test vertices, sampled. :meth:`TrainedModel.predict` ignores times: it predicts
    with all edges of a directory. Models that need in-degrees of the whole graph (gcn, gin, sgc, graphsage-gcn) are
    refused, since these count later edges. ``ClusterGCN`` and ``GraphSAINT`` sample graphs, which have no times.

    Under ``torchrun`` the calling process is one of the workers, as with :func:`fastpart.train.sdt`. All machines must
    have the directory, each with ``features.npy`` of the parts of its workers at least. Features of other parts come by
    messages. If torchrun restarts the workers, they continue from the checkpoint in ``out``. Processes of a Slurm
    step, of MPI, and of a process group that you have initialised train in the same way.

    References
    ----------
    Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017, section 3.1.
    Balin and Catalyurek, "Layer-Neighbor Sampling", NeurIPS 2023.

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
    >>> fp.train.sampled(folder, epochs=20, workers=1).summary["test_accuracy"]
    1.0
    """
    return METHOD.train(source, options)
