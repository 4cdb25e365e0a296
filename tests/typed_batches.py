"""Batches of typed graphs by a slow sampler, and the graphs that they are taken from."""

from dataclasses import dataclass, field

import numpy as np
import torch

from fastpart.loading import TypedBatch
from fastpart.train.models.scores import TypedTask


@dataclass
class Small:
    """A typed graph in memory: sizes and features by type, and pairs (source, target) by relation."""

    sizes: dict
    edges: dict
    x: dict
    edge_attr: dict = field(default_factory=dict)

    def task(self, target, classes=3, **more):
        """Return the task of classifying vertices of a type."""
        widths = {name: self.x[name].shape[1] if name in self.x else 0 for name in self.sizes}
        edge_widths = {key[1]: each.shape[1] for key, each in self.edge_attr.items()}
        return TypedTask(
            widths[target],
            classes,
            False,
            types=tuple(self.sizes),
            edge_types=tuple(self.edges),
            widths=widths,
            edge_widths=edge_widths,
            returned=(target,),
            **more,
        )

    def batch(self, target, seeds, hops, fanout=-1, rng=None):
        """Return a batch of seeds of a type. ``fanout`` in-edges of each relation are taken, -1 all."""
        nodes = {name: [] for name in self.sizes}
        nodes[target] = list(seeds)
        counts = {name: [len(each)] for name, each in nodes.items()}
        edges = {key: [] for key in self.edges}
        edge_counts = {key: [] for key in self.edges}
        frontier = {name: list(range(len(each))) for name, each in nodes.items()}
        for _ in range(hops):
            before = {name: len(each) for name, each in nodes.items()}
            for key, pairs in self.edges.items():
                taken = 0
                for place in frontier[key[2]]:
                    into = [e for e, (_, v) in enumerate(pairs) if v == nodes[key[2]][place]]
                    if 0 <= fanout < len(into):
                        into = sorted(rng.choice(into, fanout, replace=False))
                    for edge in into:
                        u = pairs[edge][0]
                        if u not in nodes[key[0]]:
                            nodes[key[0]].append(u)
                        edges[key].append((nodes[key[0]].index(u), place, edge))
                        taken += 1
                edge_counts[key].append(taken)
            frontier = {name: list(range(before[name], len(each))) for name, each in nodes.items()}
            for name, each in frontier.items():
                counts[name].append(len(each))
        return self._batch(target, len(seeds), nodes, edges, counts, edge_counts)

    def _batch(self, target, size, nodes, edges, counts, edge_counts):
        first = dict(zip(self.sizes, np.cumsum([0, *self.sizes.values()]), strict=False))
        indptr, indices, e_id = {}, {}, {}
        for key, found in edges.items():
            found = np.array(found, np.int64).reshape(-1, 3)
            ends = np.bincount(found[:, 1], minlength=len(nodes[key[2]]))
            indptr[key] = torch.from_numpy(np.concatenate(([0], np.cumsum(ends))).astype(np.int32))
            indices[key] = torch.from_numpy(found[:, 0].astype(np.int32))
            e_id[key] = torch.from_numpy(found[:, 2])
        return TypedBatch(
            input_type=target,
            x_dict={name: x[torch.tensor(nodes[name], dtype=torch.int64)] for name, x in self.x.items()},
            y=None,
            n_id_dict={
                name: torch.tensor(each, dtype=torch.int64) + int(first[name]) for name, each in nodes.items()
            },
            indptr_dict=indptr,
            indices_dict=indices,
            seed_time_dict={},
            e_id_dict=e_id,
            edge_attr_dict={key: each[e_id[key]] for key, each in self.edge_attr.items()},
            rows_dict={name: np.array(each, np.uint32) for name, each in nodes.items()},
            num_sampled_nodes_dict=counts,
            num_sampled_edges_dict=edge_counts,
            input_id=torch.arange(size),
            batch_size=size,
            global_size=max(size, 1),
            seed=0,
            epoch=0,
            step=0,
        )


def small(seed=0, dtype=torch.float64, topic="field.of study"):
    """Return a graph with a type without vertices, one without features, relations without edges and of one type."""
    rng = np.random.default_rng(seed)
    sizes = {"author": 5, topic: 3, "paper": 7, "venue": 0}
    records = {
        ("author", "writes", "paper"): 12,
        ("paper", "cites", "paper"): 15,
        ("paper", "about", topic): 6,
        ("paper", "retracts", "paper"): 0,
        ("venue", "holds", "paper"): 0,
        ("paper", "rev_writes", "author"): 8,
        (topic, "rev_about", "paper"): 6,
    }
    edges = {
        key: [(int(rng.integers(sizes[key[0]])), int(rng.integers(sizes[key[2]]))) for _ in range(count)]
        for key, count in records.items()
    }
    make = torch.Generator().manual_seed(seed)
    widths = {"author": 4, topic: 2, "paper": 3, "venue": 2}
    x = {name: torch.randn(sizes[name], width, dtype=dtype, generator=make) for name, width in widths.items()}
    cites = ("paper", "cites", "paper")
    edge_attr = {cites: torch.randn(15, 2, dtype=dtype, generator=make)}
    return Small(sizes, edges, x, edge_attr)
