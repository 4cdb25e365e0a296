"""``ClusterData`` of PyG with parts of :func:`fastpart.multilevel`."""

from __future__ import annotations

import os
from typing import Literal

import torch
from torch_geometric import loader
from torch_geometric.data import Data

from ..core.parameters import shown
from ..errors import ParameterError
from ..graphs.opening import open_graph
from ..partitions.partitioners.builtin import multilevel

SMALLEST = 0.5
"""The least number of vertices of a part, of the mean. Batches of no vertices have losses that are no numbers."""


class ClusterData(loader.ClusterData):
    """``torch_geometric.loader.ClusterData``, partitioned by :func:`fastpart.multilevel`. It needs no pyg-lib.

    Take it in the place of PyG's, with the same ``ClusterLoader``. Parts have 0.5 to 1.03 times the mean number of
    vertices, and none is empty where there are as many vertices. The parts depend on the graph and ``num_parts`` only.

    Parameters
    ----------
    data : torch_geometric.data.Data
        A graph without types. Its ``edge_index`` has shape (2, edges). Directions do not matter for the parts.
    num_parts : int
        Number of parts, 1 to 2**20.
    recursive : bool
        Accepted and ignored: there is one scheme.
    save_dir : str, optional
        A folder in which the parts are kept and found again. Parts of another graph are refused.
    filename : str, optional
        The name of the file in it. Default: ``fastpart.pt``, so that parts of METIS are not taken for ours.
    log : bool
        Accepted and ignored: nothing is printed.
    keep_inter_cluster_edges : bool
        Whether an item has the edges to other parts, too.
    sparse_format : {"csr", "csc"}
        How edges are sorted. It does not change the parts.

    Raises
    ------
    ParameterError
        ``save_dir`` holds the parts of another graph.
    MemoryBudgetError
        The graph does not fit into the memory limit.

    Examples
    --------
    >>> import fastpart as fp, torch
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.loader import ClusterLoader
    >>> ring = torch.stack([torch.arange(12), torch.arange(12).roll(-1)])
    >>> data = Data(x=torch.eye(12), edge_index=torch.cat([ring, ring.flip(0)], dim=1))
    >>> clusters = fp.pyg.ClusterData(data, num_parts=4)
    >>> [(cluster.num_nodes, cluster.num_edges) for cluster in clusters]
    [(3, 4), (3, 4), (3, 4), (3, 4)]
    >>> [batch.num_nodes for batch in ClusterLoader(clusters, batch_size=2)]
    [6, 6]
    """

    def __init__(
        self,
        data: Data,
        num_parts: int,
        recursive: bool = False,
        save_dir: str | None = None,
        filename: str | None = None,
        log: bool = True,
        keep_inter_cluster_edges: bool = False,
        sparse_format: Literal["csr", "csc"] = "csr",
    ) -> None:
        super().__init__(
            data,
            num_parts,
            recursive,
            save_dir,
            filename or "fastpart.pt",
            False,
            keep_inter_cluster_edges,
            sparse_format,
        )
        if save_dir is not None:
            self._refuse_other_graph(data, save_dir, filename or "fastpart.pt")

    def _refuse_other_graph(self, data: Data, save_dir: str, filename: str) -> None:
        """Refuse parts that were found and are not those of the edges of ``data``."""
        kept, edges = self.partition, data.edge_index
        same = len(kept.node_perm) == data.num_nodes and len(kept.edge_perm) == edges.shape[1]
        if same:
            ends = edges.cpu()[:, kept.edge_perm.cpu()]
            sorted_by, other = ends if kept.sparse_format == "csr" else ends.flip(0)
            nodes = kept.node_perm.cpu()
            same = torch.equal(nodes.repeat_interleave(kept.indptr.cpu().diff()), sorted_by) and torch.equal(
                nodes[kept.index.cpu()], other
            )
        if not same:
            raise ParameterError(
                f"save_dir: {shown(os.path.join(save_dir, filename))} holds the parts of another graph. Choose another "
                "folder or filename, or remove the file"
            )

    def _metis(self, edge_index: torch.Tensor, num_nodes: int) -> torch.Tensor:
        """Return the part of each vertex. PyG calls this where it would call METIS."""
        graph = open_graph(edge_index.cpu(), num_vertices=num_nodes, layout="edge_index")
        smallest = SMALLEST if self.num_parts <= num_nodes else None
        partition = multilevel(graph, self.num_parts, min_balance=smallest)
        return torch.tensor(partition.assignment, dtype=torch.int64, device=edge_index.device)
