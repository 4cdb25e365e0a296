"""Scores of a link predictor: rows of vertices from whole neighbourhoods, and exact ranks among candidates."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor, nn

from ... import _core
from ...loading.fetching import Fetching
from ...loading.negatives import others
from ...loading.seeds import owner_of
from ...pairs import hashed, keys_of, mixed
from ..data import Dataset
from ..inference import Inference
from ..ranks import barrier, total, world_size
from . import ranking
from .dataset import LinkDataset, Pairs
from .decoders import LinkNetwork

_BLOCK = 256
"""Positives at a time."""

_LOGITS = 1 << 16
"""Pairs that a perceptron sees at a time, about."""

Float = npt.NDArray[np.float32]


class Encodings(Inference):
    """The rows that an encoder has for vertices.

    Parameters
    ----------
    dataset, parts, folder, layers, fetching
        As in :class:`~fastpart.train.inference.Inference`.
    learned : bool
        Whether the inputs have learned rows. Then :meth:`put` writes those of a part before each use.
    """

    def __init__(
        self,
        dataset: Dataset,
        parts: list[int],
        folder: Path,
        layers: int,
        fetching: Fetching | None = None,
        learned: bool = False,
    ) -> None:
        super().__init__(dataset, parts, folder, layers, fetching)
        self._learned, self._outputs = learned, layers

    def put(self, part: int, inputs: Float) -> None:
        """Write the inputs of the vertices of a part."""
        np.save(self._inputs(part), inputs)

    def _inputs(self, part: int) -> Path:
        return self._folder / f"inputs-{part}.npy"

    def _features(self) -> _core.Features | None:
        if not self._learned:
            return super()._features()
        barrier()
        return self._opened([self._inputs(part) for part in range(len(self._parts))])

    @contextmanager
    def stored(self, encoder: nn.Module, wanted: npt.NDArray[np.bool_]) -> Iterator[_core.Features | None]:
        """Yield the rows of the wanted vertices, a mask by row of the topology, from files that all processes see."""
        starts = self._topology.starts
        found = self.outputs(encoder, lambda part: wanted[starts[part] : starts[part + 1]])
        files = self._save(self._outputs, found)
        barrier()
        there = [self._file(self._outputs, part) for part in range(len(self._parts))]
        there = [file if file is not None and file.exists() else None for file in there]
        yield _core.Features(there, self._topology) if any(there) else None
        barrier()
        for file in files:
            file.unlink()


class Scorer:
    """Ranks the pairs of a split. All processes call it together, each for the targets of its parts.

    Parameters
    ----------
    dataset : LinkDataset
        The graph and the pairs.
    rows : Encodings
        The encoder's rows of vertices.
    own : numpy.ndarray
        Mask of the parts of this process.
    candidates : int
        Number of vertices that each positive's target is ranked among, the same for all. All if there are no more.
    seed : int
        Of the candidates, and of the negatives of the AUC.
    """

    def __init__(
        self,
        dataset: LinkDataset,
        rows: Encodings,
        own: npt.NDArray[np.bool_],
        candidates: int,
        seed: int,
    ) -> None:
        self._rows, self._dataset, self._own, self._seed = rows, dataset, own, seed
        n = len(dataset.partition)
        ids = np.arange(n, dtype=np.uint64)
        order = np.argsort(mixed(ids ^ mixed(np.uint64(seed))), kind="stable")
        self._candidates = np.sort(order[:candidates])
        self._known: dict[str, tuple[Pairs, npt.NDArray[np.int64]]] = {}

    def _split(self, split: str) -> tuple[Pairs, npt.NDArray[np.int64]]:
        """Return the pairs of all processes, and a negative target for each."""
        if split not in self._known:
            pairs = self._dataset.pairs(split)
            random = hashed(keys_of(pairs[:, 0], pairs[:, 1]), 1, self._seed)
            n = len(self._dataset.partition)
            sources, targets = pairs[:, :1], pairs[:, 1:]
            self._known[split] = pairs, others(random, sources, targets, n)[:, 0] if n > 2 else pairs[:, 1]
        return self._known[split]

    @torch.no_grad()
    def scores(self, network: LinkNetwork, split: str, auc: bool = True) -> dict[str, float]:
        """Return ``mrr``, ``hits@k`` and on request ``auc`` of a split, the same in all processes."""
        network.eval()
        topology = self._dataset.topology
        pairs, negatives = self._split(split)
        if not len(pairs):
            return ranking.scores(torch.zeros(ranking.COUNTS)) | ({"auc": float("nan")} if auc else {})
        wanted = np.zeros(topology.num_vertices, bool)
        for ids in (*pairs.T, self._candidates, *([negatives] if auc else [])):
            wanted[topology.rows_of(np.ascontiguousarray(ids))] = True
        with self._rows.stored(network.encoder, wanted) as stored:
            assert stored is not None

            def rows_of(ids: npt.NDArray[np.int64]) -> Tensor:
                return torch.from_numpy(stored.gather(topology.rows_of(np.ascontiguousarray(ids))))

            owners = owner_of(topology.rows_of(np.ascontiguousarray(pairs[:, 1])), topology.starts)
            mine = self._own[owners]
            candidates = torch.from_numpy(self._candidates)
            sums = torch.zeros(ranking.COUNTS, dtype=torch.float64)
            heads = rows_of(self._candidates)
            logits = [torch.empty(2, 0)]
            for start in range(0, int(mine.sum()), _BLOCK):
                some = pairs[mine][start : start + _BLOCK]
                sources, targets = (rows_of(ids) for ids in some.T)
                ends = torch.from_numpy(some)
                counted = (candidates != ends[:, :1]) & (candidates != ends[:, 1:])
                positives, among = _logits(network, sources, targets, heads)
                sums += ranking.tally(ranking.ranks(positives, among, counted))
                if auc:
                    away = rows_of(negatives[mine][start : start + _BLOCK])
                    logits.append(torch.stack([network.decoder(sources, each) for each in (targets, away)]))
        found = ranking.scores(total(sums))
        return found | ({"auc": _auc(torch.cat(logits, 1))} if auc else {})


def _logits(
    network: LinkNetwork, sources: Tensor, targets: Tensor, candidates: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the logits of the pairs, and of the sources with all candidates.

    Both come from the same products, so that equal rows have equal logits.
    """
    rows = torch.cat([candidates, targets])
    step = max(_LOGITS // max(len(sources), 1), 1)
    both = torch.cat([network.decoder.against(sources, some) for some in rows.split(step)], 1)
    return both[:, len(candidates) :].diagonal(), both[:, : len(candidates)]


def _auc(logits: Tensor) -> float:
    """Return the AUC of all processes, given the logits of positives and of negatives here."""
    negatives: list[Tensor] = [logits[1]] * world_size()
    if world_size() > 1:
        dist.all_gather_object(negatives, logits[1])
    shares = ranking.below(logits[0], torch.cat(negatives))
    count = total(torch.tensor([shares.sum(), len(shares)], dtype=torch.float64))
    return float(count[0] / count[1])
