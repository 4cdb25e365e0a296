"""Typed graphs of all kinds of relations, and what their parts hold by definition."""

from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import fastpart as fp
from fastpart.graphs.sidecars import Sidecar
from fastpart.graphs.types import TypedRanges

REVERSE = [True, False, "merged"]


@dataclass
class Typed:
    """Types (name, n), relations (name, source, target, reverse, records by rows of their types), and parts."""

    types: list
    relations: list
    parts: list = field(default_factory=list)
    k: int = 1
    directedness: str = "undirected"

    def __post_init__(self):
        sizes = [n for _, n in self.types]
        self.n = sum(sizes)
        self.first = dict(
            zip([name for name, _ in self.types], accumulate(sizes[:-1], initial=0), strict=True)
        )
        self.records = [
            (self.first[source] + u, self.first[target] + v)
            for _, source, target, _, pairs in self.relations
            for u, v in pairs
        ]
        self.m = len(self.records)
        self.of_record = [number for number, each in enumerate(self.relations) for _ in each[4]]
        self.edge_types = [each[:3] for each in self.relations]
        self.edge_types += [
            (f"rev_{name}", target, source)
            for name, source, target, reverse, _ in self.relations
            if reverse is True
        ]

    def graph(self, folder):
        """Write the graph into a folder, and open it."""
        file = Path(folder) / "g.bin"
        np.array(self.records, np.uint32).reshape(-1, 2).tofile(file)
        types = [{"name": name, "n": n} for name, n in self.types]
        relations = [
            {"name": name, "source": source, "target": target, "m": len(pairs), "reverse": reverse}
            for name, source, target, reverse, pairs in self.relations
        ]
        typed = TypedRanges.of(types, relations, self.n, self.m, self.directedness)
        Sidecar("u32", self.n, self.m, self.directedness, typed=typed).write(file)
        return fp.open_graph(file)

    def saved(self, folder, **options):
        """Save the partition, and open it."""
        folder = Path(folder)
        fp.VertexPartition(self.parts, self.k).save(folder / "parts", graph=self.graph(folder), **options)
        return fp.open_partition(folder / "parts")

    def edges(self):
        """Return all directed edges: (edge type, record, id, source, target), in the order of a row."""
        names = [name for name, _, _ in self.edge_types]
        edges = []
        for record, (u, v) in enumerate(self.records):
            number = self.of_record[record]
            name, _, _, reverse, _ = self.relations[number]
            edges.append((number, record, record, u, v))
            if reverse is True:
                edges.append((names.index(f"rev_{name}"), record, self.m + record, v, u))
            elif reverse == "merged" and u != v:
                edges.append((number, record, self.m + record, v, u))
        return sorted(edges)

    def range_of(self, name):
        """Return the vertices of a type."""
        return range(self.first[name], self.first[name] + dict(self.types)[name])


@st.composite
def typed_graphs(draw, most_types=4, most_relations=5):
    """Return graphs with empty types, empty relations, loops and parallel records, and parts of their vertices."""
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=most_types))
    types = [(f"t{place}", size) for place, size in enumerate(sizes)]
    count = draw(st.integers(2 if len(types) == 1 else 1, most_relations))
    relations = []
    for place in range(count):
        (source, a), (target, b) = draw(st.sampled_from(types)), draw(st.sampled_from(types))
        pairs = st.tuples(st.integers(0, max(a - 1, 0)), st.integers(0, max(b - 1, 0)))
        records = draw(st.lists(pairs, max_size=8 if a and b else 0))
        reverse = draw(st.sampled_from(REVERSE if source == target else REVERSE[:2]))
        relations.append((f"r{place}", source, target, reverse, records))
    k = draw(st.integers(1, 4))
    parts = draw(st.lists(st.integers(0, k - 1), min_size=sum(sizes), max_size=sum(sizes)))
    return Typed(types, relations, parts, k, draw(st.sampled_from(["undirected", "directed", "symmetric"])))


def authors(**more):
    """Return a small graph of authors, fields and papers with every kind of relation."""
    relations = [
        ("about", "paper", "field", True, [(0, 0), (1, 0), (1, 1), (3, 1)]),
        ("cites", "paper", "paper", "merged", [(0, 1), (2, 2), (3, 0), (0, 1)]),
        ("extends", "paper", "paper", True, [(1, 0), (3, 3), (2, 0)]),
        ("praises", "author", "author", False, [(0, 1), (1, 1)]),
        ("writes", "author", "paper", True, [(0, 0), (1, 1), (2, 2), (0, 3), (1, 0)]),
    ]
    types = [("author", 3), ("field", 2), ("paper", 4), ("venue", 0)]
    return Typed(types, relations, [0, 1, 0, 0, 1, 0, 1, 1, 0], 2, **more)
