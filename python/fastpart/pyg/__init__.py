"""A partition directory for PyG's own loaders: a feature store, a graph store and a sampler. And ``ClusterData``.

:meth:`fastpart.VertexPartition.loader` is simpler and faster. Use these where a program is built around
``NodeLoader`` or ``LinkLoader`` of ``torch_geometric.loader``. Vertices have their original ids everywhere. In a graph
with types, ids count within a type and within a relation, as in ``HeteroData``.
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch_geometric") is None:
    raise ModuleNotFoundError(
        "fastpart.pyg needs PyG, which is not installed: pip install 'fastpart[train]' torch_geometric",
        name="torch_geometric",
    )

from ..core.calls import called_well
from ..core.options import taking
from ..partitions.loader_options import Fanouts, HopOptions, SamplingOptions
from ..partitions.partition import VertexPartition
from ..partitions.seeds import sampling_of
from .clusters import ClusterData
from .features import PartitionEdges, PartitionFeatures, edges_by_relation, rows_by_group
from .sampling import PartitionSampler

__all__ = ["ClusterData", "feature_store", "graph_store", "sampler"]


@called_well
def feature_store(partition: VertexPartition) -> PartitionFeatures:
    """Return what PyG's loaders read features from.

    Parameters
    ----------
    partition : VertexPartition
        Opened from a directory that was saved with ``graph=``.

    Returns
    -------
    torch_geometric.data.FeatureStore
        ``x``, ``y``, ``time``, ``train_mask``, ``val_mask`` and ``test_mask`` as far as they were saved, by original
        id. Rows are read through maps of the files. Nothing is loaded as a whole. In a graph with types the group of an
        attribute is a type. ``edge_attr`` and ``time`` of edges have the relation as their group, as
        ``("author", "writes", "paper")``, and are read by the ids in ``e_id`` of a batch.

    Raises
    ------
    FastpartError
        The partition does not come from such a directory.

    Examples
    --------
    See :func:`sampler`.
    """
    _stored(partition)
    return PartitionFeatures(rows_by_group(partition))


@called_well
def graph_store(partition: VertexPartition) -> PartitionEdges:
    """Return what PyG's loaders read edges from.

    Parameters
    ----------
    partition : VertexPartition
        Opened from a directory that was saved with ``graph=`` and ``halo_hops`` of at least 1.

    Returns
    -------
    torch_geometric.data.GraphStore
        ``get_edge_index`` copies all in-edges, 8 to 16 bytes each. In a graph with types it copies those of one
        relation. Reverse relations, as ``("paper", "rev_writes", "author")``, are there, too. :func:`sampler` does not
        need it.

    Raises
    ------
    FastpartError
        The partition does not come from such a directory.

    Examples
    --------
    See :func:`sampler`.
    """
    _stored(partition)
    return PartitionEdges(edges_by_relation(partition))


@taking(SamplingOptions, defaults={"merged": True}, groups=[HopOptions])
def sampler(partition: VertexPartition, fanouts: Fanouts, *, options: SamplingOptions) -> PartitionSampler:
    """Return a sampler for ``NodeLoader`` and ``LinkLoader`` of ``torch_geometric.loader``. It does not need pyg-lib.

    Parameters
    ----------
    partition : VertexPartition
        Opened from a directory that was saved with ``graph=`` and ``halo_hops`` of at least 1.
    fanouts : sequence of int, or mapping of them
        In-edges to sample per vertex in each hop. -1 takes all. In a graph with types, so many of each relation. A
        mapping has a sequence for each relation, by its name or as ``("paper", "cites", "paper")``. It leaves out those
        that are not sampled.

    Returns
    -------
    torch_geometric.sampler.BaseSampler
        It samples anew in every call. The same calls in the same order give the same batches.

    Raises
    ------
    FastpartError
        The partition does not come from such a directory.
    ParameterError
        A parameter is out of its range.

    Examples
    --------
    >>> import fastpart as fp, numpy as np, tempfile, torch
    >>> from torch_geometric.loader import NodeLoader
    >>> ring = np.array([[v, (v + 1) % 6] for v in range(6)])
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> p = fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2)
    >>> stored = p.save(folder, graph=ring, features=np.eye(6, dtype=np.float32))
    >>> loader = NodeLoader(
    ...     (fp.pyg.feature_store(stored), fp.pyg.graph_store(stored)),
    ...     node_sampler=fp.pyg.sampler(stored, [2, 2]),
    ...     input_nodes=torch.arange(6),
    ...     batch_size=3,
    ... )
    >>> [(batch.batch_size, batch.x.shape[1], batch.n_id[:3].tolist()) for batch in loader]
    [(3, 6, [0, 1, 2]), (3, 6, [3, 4, 5])]

    In a graph with types, ``input_nodes=("paper", torch.arange(6))`` names the type of the seeds, and
    ``edge_label_index=(("author", "writes", "paper"), pairs)`` of ``LinkLoader`` the relation to predict.
    """
    _stored(partition)
    return PartitionSampler(partition, fanouts, sampling_of(partition, options))


def _stored(partition: object) -> None:
    """Refuse what has no in-edges of all vertices."""
    if not isinstance(partition, VertexPartition):
        raise TypeError(f"partition: expected a VertexPartition, got {type(partition).__name__}")
    partition.refuse_without_edges()
