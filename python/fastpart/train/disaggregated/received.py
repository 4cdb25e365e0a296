"""The batches of a compute worker, from the receiver of its machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ...loading.fetching import Fetching
from ...loading.remote import RowFiles, fetching_of
from ...partitions.loader_options import FetchingOptions
from ...partitions.seeds import Ids, seeds_of
from ...partitions.types import ONLY_TYPE
from ..data import Dataset
from ..graphs.rows import Rows
from ..mini_batches.steps import Step
from ..ranks import device, rank, world_size
from .buffers import GroupReader
from .messages import Array, Kind, Message
from .receiver import COUNTS, MAKING, MEMORY
from .rendezvous import address_of, connect
from .settings import Settings


@dataclass(kw_only=True)
class Piece(Step):
    """A batch of a step. ``last`` tells that the step has no more."""

    last: bool


class ReceivedSteps:
    """The steps of a compute worker."""

    def __init__(self, dataset: Dataset, file: Path, owners: Ids) -> None:
        settings = Settings.load(file)
        self._topology, self._rank = dataset.topology, rank()
        seeds = seeds_of("train", dataset.partition)
        assert seeds.labels is not None
        order = np.argsort(seeds.rows)
        self._sorted, self._labels = seeds.rows[order], seeds.labels[order]
        self._link, _ = connect(address_of(file.parent), settings, {"compute worker": self._rank})
        self._link.limit(settings.timeout, settings.timeout)
        first = dataset.partition.parts[0]
        row, self._coding = first.stored_type("features"), first.coding("features")
        self._edge_coding = first.coding("edge_features")
        assert row is not None
        self._none = np.empty((0, *row[1]), row[0])
        self._counts: Counter[str] = Counter()
        self._making: Counter[str] = Counter()
        self._batch_workers, self._worker_bytes = settings.batch_workers, 0
        # Scores read all features from files here.
        self.fetching = fetching_of(
            RowFiles.of_vertices(dataset.partition), owners, self._rank, FetchingOptions(remote="maps")
        )
        self.edge_fetching: Fetching | None = None

    def own_rows(self, step: Any, owned: npt.NDArray[np.bool_]) -> int:
        """Return 0: batch workers count rows."""
        return 0

    def epoch(self, number: int) -> Iterator[Piece]:
        """Yield the batches of an epoch."""
        self._link.send({"kind": Kind.EPOCH, "epoch": number})
        for _ in range(self._next(Kind.EPOCH).content["steps"]):
            content = self._next(Kind.STEP).content
            self._worker_bytes = max(self._worker_bytes, content["counts"].pop(MEMORY, 0))
            self._making.update({name: content["counts"].pop(name, 0) for name in MAKING})
            self._counts.update(content["counts"])
            pieces = [
                self._piece(group, *batch, content["count"])
                for group in (GroupReader(*piece) for piece in content["pieces"])
                for batch in group.batches(self._rank)
            ] or [self._empty(content["count"])]
            self._link.send({"kind": Kind.USED, "step": content["step"]})
            pieces[-1].last = True
            yield from pieces

    def _next(self, kind: str) -> Message:
        message = self._link.receive()
        assert message.kind == kind
        return message

    def _piece(self, group: GroupReader, levels: list[int], arrays: list[Array], count: int) -> Piece:
        """Return a batch, with copies of what is in shared memory."""
        places, indptr, indices, *of_edges = arrays
        edges = None if not of_edges else torch.from_numpy(self._decoded_edges(np.array(of_edges[0])))
        rows = group.rows[places]
        whole = Rows(
            np.array(indptr),
            np.array(indices),
            lambda: torch.from_numpy(self._topology.degrees_of(rows)),
            torch.from_numpy(self._topology.ids_of(rows)),
            sources=len(rows),
            device=device(),
            edge_attr=edges,
        )
        return self._made(whole.by_layer(levels), rows, levels[0], count, group.x[places])

    def _decoded_edges(self, rows: Array) -> Array:
        return rows if self._edge_coding is None else self._edge_coding.decode(rows)

    def _empty(self, count: int) -> Piece:
        """Return no batch, for a step with fewer training vertices than compute workers."""
        return self._made([], np.empty(0, np.uint32), 0, count, self._none)

    def _made(self, graphs: list[Any], inputs: Array, targets: int, count: int, x: Array) -> Piece:
        return Piece(
            graphs=graphs,
            inputs={ONLY_TYPE: inputs},
            rows=torch.arange(targets),
            count=count,
            x={ONLY_TYPE: torch.from_numpy(x if self._coding is None else self._coding.decode(x))},
            y=torch.from_numpy(self._labels[np.searchsorted(self._sorted, inputs[:targets])]),
            last=False,
        )

    def read_counts(self) -> dict[str, Any]:
        """Return the counts of the epoch on this machine, in its first compute worker. The others have zeros."""
        counts, self._counts = self._counts, Counter()
        return {name: counts[name] for name in COUNTS} | {MEMORY: self._worker_bytes * (self._rank == 0)}

    def read_seconds(self) -> dict[str, float]:
        """Return what batch workers spent on batches since the last call, so that the mean of all ranks is theirs."""
        seconds, self._making = self._making, Counter()
        return {name: seconds[name] / 1e9 * world_size() / self._batch_workers for name in MAKING}

    def close(self) -> None:
        """Leave the receiver."""
        self._link.close()
