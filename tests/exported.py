"""Partitions to export, and what every system must find in them."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import fastpart as fp
from strategies import assignments, edge_lists


@dataclass
class Case:
    """A graph with everything that training reads, and a partition of its vertices."""

    n: int
    records: np.ndarray
    kind: str
    parts: list
    k: int
    halo_hops: int = 1
    full: bool = True

    def __post_init__(self):
        random = np.random.default_rng(self.n)
        self.features = random.random((self.n, 3), np.float32)
        self.labels = random.integers(-1, 4, self.n)
        masks = random.integers(0, 2, (3, self.n)).astype(bool)
        self.masks = dict(zip(("train", "val", "test"), masks, strict=True))
        self.edge_features = random.integers(0, 99, (len(self.records), 2))

    def save(self, folder):
        """Save the partition directory."""
        contents = {
            "features": self.features,
            "labels": self.labels,
            "splits": self.masks,
            "edge_features": self.edge_features,
        }
        edges = fp.open_graph(self.records, num_vertices=self.n, directedness=self.kind)
        partition = fp.VertexPartition(self.parts, self.k)
        partition.save(folder, graph=edges, halo_hops=self.halo_hops, **(contents if self.full else {}))
        return folder

    def directed_edges(self):
        """Return {id: (source, destination)} from the definition."""
        m = len(self.records)
        edges = {r: (int(u), int(v)) for r, (u, v) in enumerate(self.records)}
        if self.kind == "undirected":
            edges |= {m + r: (v, u) for r, (u, v) in list(edges.items()) if u != v}
        return edges

    def in_neighbours(self):
        """Return the sorted sources of the in-edges of each vertex."""
        found = [[] for _ in range(self.n)]
        for u, v in self.directed_edges().values():
            found[v].append(u)
        return [sorted(sources) for sources in found]

    def members(self, i):
        """Return the vertices of a part."""
        return [v for v, part in enumerate(self.parts) if part == i]


@st.composite
def cases(draw):
    """Return cases with loops, parallel edges, isolated vertices, empty parts, k = 1 and k > n."""
    n, records = draw(edge_lists(8, 25))
    parts, k = draw(assignments(n, max_k=6))
    kind = draw(st.sampled_from(["undirected", "symmetric", "directed"]))
    return Case(n, records, kind, parts, k, draw(st.integers(1, 2)), draw(st.booleans()))


def triangles(k=2, **options):
    """Return two triangles joined by one edge, with a loop and a parallel edge; vertex 6 is isolated."""
    records = [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [5, 5], [4, 3]]
    return Case(7, np.array(records, np.uint32), "undirected", [v % k for v in range(7)], k, **options)
