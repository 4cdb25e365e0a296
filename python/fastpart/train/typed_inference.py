"""Outputs of networks over typed graphs for the vertices of the target, from whole neighbourhoods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from .. import _core
from ..loading import TypedBatch, TypedLoader
from ..loading.rows.files import Files
from ..loading.typed.fetching import TypedFetching
from .blocks import VertexMask
from .data import SPLITS
from .graphs.typed_rows import TypedRows
from .inference import Fits, Outputs, numbers_of
from .learning.metrics import Metrics, Scores
from .ranks import barrier
from .typed_data import TypedDataset

_SEEDS = 1 << 12
"""Vertices that are computed at a time."""


class TypedInference:
    """The outputs of networks for the vertices of the target, part by part, with all in-edges of all hops."""

    def __init__(
        self,
        dataset: TypedDataset,
        parts: list[int],
        folder: Path,
        layers: int,
        fetching: TypedFetching | None = None,
        fits: Fits | None = None,
        free_bytes: int = 0,
    ) -> None:
        self._dataset, self._parts, self._layers, self._folder = dataset, parts, layers, folder
        self._learned: dict[str, Files] = {}

    def put_inputs(self, of_part: Callable[[str, int], npt.NDArray[Any]]) -> None:
        """Take the learned rows of the types without features. All processes call it before outputs.

        ``of_part`` returns those of the inner vertices of a type in a part of this process.
        """
        partition, types = self._dataset.partition, self._dataset.task.types
        for name in self._dataset.task.learned:
            for number in self._parts:
                np.save(self._inputs(name, number), of_part(name, number))
        barrier()
        for name in self._dataset.task.learned:
            files = [self._inputs(name, number) for number in range(partition.k)]
            starts = partition._types.starts[types.index(name)]
            rows = _core.Features(files, partition._topology, starts=starts)
            self._learned[name] = Files(rows, rows.dtype, tuple(rows.row_shape))

    def _inputs(self, name: str, part: int) -> Path:
        return self._folder / f"inputs-{name}-{part}.npy"

    @torch.no_grad()
    def scores(
        self, network: nn.Module, metrics: Metrics | None = None, splits: tuple[str, ...] = SPLITS[1:]
    ) -> dict[str, float]:
        """Return accuracy, micro-F1 and the metrics of the user for each split, the same in all processes."""
        dataset = self._dataset
        scores = Scores(dataset.task, metrics, splits)
        known = {}
        for number in self._parts:
            part = dataset.partition.parts[number]
            masks = np.zeros((len(splits), dataset.labelled(part).num_inner), bool)
            for mask, ids in zip(masks, map(dataset.splits(part).get, splits), strict=True):
                mask[ids] = True
            known[number] = dataset.labels(part), masks
        for number, vertices, logits in self.outputs(network, lambda part: known[part][1].any(axis=0)):
            labels, masks = known[number]
            for split, mask in zip(splits, masks, strict=True):
                those = torch.from_numpy(np.flatnonzero(mask[vertices]))
                scores.add(split, logits[those], labels[torch.from_numpy(vertices)[those]])
        return scores.of_all()

    @torch.no_grad()
    def outputs(
        self, network: nn.Module, wanted: VertexMask | None = None, layers: int | None = None
    ) -> Iterator[Outputs]:
        """Yield a part of this process, some inner vertices of the target by their place, and their outputs."""
        network.eval()
        where = numbers_of(network)
        for number in self._parts:
            part = self._dataset.partition.parts[number].of_type(self._dataset.target)
            mask = np.ones(part.num_inner, bool) if wanted is None else wanted(number)
            chosen = np.flatnonzero(mask)
            if not len(chosen):
                continue
            loader = self._dataset.partition.loader(
                part.inner[chosen],
                fanouts=[-1] * self._layers,
                input=self._dataset.target,
                batch_size=_SEEDS,
                rank=0,
                world_size=1,
            )
            assert isinstance(loader, TypedLoader)
            for name, rows in self._learned.items():
                loader.fetching.of_type[name].here = rows
            for batch in loader:
                assert isinstance(batch, TypedBatch)
                x: dict[str, Tensor] = {name: each.to(**where) for name, each in batch.x_dict.items()}
                logits = network(TypedRows.by_layer(batch, where.get("device", torch.device("cpu"))), x)
                places: npt.NDArray[Any] = chosen[batch.input_id.numpy()]
                yield number, places, logits[: batch.batch_size].cpu()
