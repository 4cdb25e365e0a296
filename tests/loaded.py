"""Partition directories to load from, and a network in plain torch."""

import numpy as np
import torch
import torch.nn.functional as F

import fastpart as fp
from attributed import attributed

PARTITIONERS = {
    "multilevel": lambda graph, k: fp.multilevel(graph, k),
    "spring": lambda graph, k: fp.spring(graph, k),
    "hash": lambda graph, k: fp.algorithms.hash(graph, k),
}


def stored(folder, k, name="hash", **options):
    """Save the graph by a partitioner, and open it."""
    graph, rows = attributed(**options)
    PARTITIONERS[name](graph, k).save(folder, **rows)
    return fp.open_partition(folder)


class Sage(torch.nn.Module):
    """GraphSAGE on blocks, in plain torch, with dropout by vertex."""

    def __init__(self, width=6, hidden=8, classes=3, layers=2):
        super().__init__()
        torch.manual_seed(0)
        sizes = [width, *[hidden] * (layers - 1), classes]
        self.own = torch.nn.ModuleList(map(torch.nn.Linear, sizes, sizes[1:])).double()
        self.near = torch.nn.ModuleList(map(torch.nn.Linear, sizes, sizes[1:])).double()

    def forward(self, batch, share=0.5):
        h = batch.x
        for layer, block in enumerate(batch.blocks()):
            sources, targets = block.edge_index
            sums = torch.zeros(block.num_targets, h.shape[1], dtype=h.dtype).index_add_(
                0, targets, h[sources]
            )
            mean = sums / block.indptr.diff().clamp(min=1).unsqueeze(1)
            h = self.own[layer](h[: block.num_targets]) + self.near[layer](mean)
            if layer + 1 < len(self.own):
                h = batch.dropout(F.relu(h), share, layer)
        return h


def trained(batches_of_ranks, steps):
    """Train with all ranks in this process. Return the loss of every step."""
    model = Sage()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _, batches in zip(range(steps), batches_of_ranks, strict=False):
        optimizer.zero_grad()
        total = sum(
            F.cross_entropy(model(batch), batch.y, reduction="sum") / batch.global_size for batch in batches
        )
        total.backward()
        optimizer.step()
        losses.append(total.item())
    return np.array(losses)


def endless(loaders):
    """Yield the batches of all ranks step by step, epoch after epoch."""
    while True:
        yield from zip(*loaders, strict=True)
