"""``sancus``: start one worker with a block of rows for each part of a vertex partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ...core import parameters
from ...core.parameters import StrPath
from ..config import Call, Options
from ..data import Dataset
from ..full_graph import launch
from ..full_graph.part import Tools
from ..full_graph.trial import try_model
from ..memory import MORE_PARTS, Need, full_batch, graph_bytes, number_bytes, weights, widths
from ..scores import Task
from ..trainer import Blocks as BlockRows
from ..trainer import Trainer
from .blocks import Blocks
from .part import part_of
from .rows import ROWS
from .staleness import checked


class Driver(launch.Driver):
    """Starts one worker for each part of the vertices."""

    dataset: Dataset

    def __init__(self, trainer: Trainer, source: StrPath, call: Call) -> None:
        blocks = trainer.exchange
        assert isinstance(blocks, BlockRows)
        rows = parameters.choice("rows", blocks.rows, ROWS)
        how = {"rows": rows, **checked(blocks.max_age, blocks.max_change, blocks.period)}
        dataset = Dataset(source)
        super().__init__(trainer, call, dataset, dataset.partition.k)
        self.how = how

    def try_model(self) -> None:
        """Refuse a model that cannot be trained over parts."""
        refuse(self.task, self.options)

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts."""
        return {"parts": self.workers, "halo_rf": self.dataset.manifest.get("summary", {}).get("halo_rf")}

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes: its rows, sums of the features, activations, rows of others, and copies."""
        dataset, options, task, how = self.dataset, self.options, self.task, self.how
        parts, boundary = dataset.partition.parts, how["rows"] == "boundary"
        n = max(part.num_inner for part in parts)
        edges = max(int(part.indptr[part.num_inner]) for part in parts)
        others = max(part.halo_sizes[0] for part in parts) if boundary else n
        copied = others if boundary else len(dataset.partition)
        hidden = [width for width, _ in widths(options, task)][1:]
        bounded = any(value is not None for name, value in how.items() if name != "rows")
        return [
            Need("the rows of a part", graph_bytes(options, n, edges, task.features), MORE_PARTS),
            Need("sums of its features", 2 * number_bytes(options) * n * task.features, MORE_PARTS),
            Need("activations", full_batch(options, task, n, n, edges), "a smaller hidden="),
            Need("rows of another part", 12 * others * max([task.features, *hidden]), MORE_PARTS),
            Need("copies of rows", 4 * copied * sum(hidden) * bounded, 'rows="boundary", or no bound'),
            weights(options, task),
        ], ()


def refuse(task: Task, options: Options) -> None:
    """Refuse a model that cannot be trained. It is tried on two vertices and the edges between them."""
    none = torch.empty(0, dtype=torch.int64)
    shape = (2, task.classes) if task.multilabel else (2,)
    two = Blocks(
        index=0,
        sizes=[2],
        vertices=torch.arange(2),
        degree=torch.ones(2, dtype=torch.int64),
        edges={0: (np.arange(3), np.array([1, 0]))},
        halo=0,
        features=torch.ones(2, task.features),
        labels=torch.zeros(shape),
        splits={"train": none, "val": none, "test": none},
    )
    part = part_of(two, task, 1, options, {"rows": "all"}, Tools.alone())
    part.begin(0)
    try_model(task, options, part.layers)
