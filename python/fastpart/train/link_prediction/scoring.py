"""Scores of a link predictor: rows of vertices from whole neighbourhoods, and exact ranks among candidates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor, nn

from ... import _core
from ...core.pairs import hashed, keys_of, mixed
from ...loading.fetching import Fetching
from ...loading.negatives import AllVertices
from ...loading.timed_edges import EarlierVertices
from ...partitions.seeds import owner_of
from ...partitions.types import ONLY_TYPE
from ..data import Dataset
from ..inference import Fits, Inference
from ..ranks import barrier, total, world_size
from . import ranking
from .dataset import LinkDataset, Pairs
from .decoders import LinkNetwork, PairDecoder

_BLOCK = 256
"""Positives at a time."""

_LOGITS = 1 << 17
"""Logits at a time, about."""

Float = npt.NDArray[np.float32]


class Encodings(Inference):
    """The rows that an encoder has for vertices.

    Parameters
    ----------
    dataset, parts, folder, layers, fetching, fits, free_bytes, edge_fetching
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
        fits: Fits | None = None,
        free_bytes: int = 0,
        edge_fetching: Fetching | None = None,
        learned: bool = False,
    ) -> None:
        super().__init__(dataset, parts, folder, layers, fetching, fits, free_bytes, edge_fetching)
        if learned:
            self._learned = (ONLY_TYPE,)

    def put(self, part: int, inputs: Float) -> None:
        """Write the inputs of the vertices of a part."""
        file = self._file(ONLY_TYPE, "inputs", part)
        if file is not None:
            np.save(file, inputs)

    def _inputs(self, names: Iterable[str]) -> dict[str, _core.Features | None]:
        if self._learned:
            barrier()
        return super()._inputs(names)

    @contextmanager
    def stored(self, encoder: nn.Module, wanted: npt.NDArray[np.bool_]) -> Iterator[_core.Features]:
        """Yield the rows of the wanted vertices, a mask with at least one, from files that all processes see."""
        starts = self._topology.starts
        found = self.outputs(encoder, lambda part: wanted[starts[part] : starts[part + 1]])
        files = self._save("encoded", ONLY_TYPE, found)
        barrier()
        yield _core.Features(self._files(ONLY_TYPE, "encoded"), self._topology)
        barrier()
        for file in files:
            file.unlink()


@dataclass(frozen=True, eq=False)
class _Split:
    """The pairs of a split whose targets are in the parts of this process.

    Attributes
    ----------
    pairs, negatives : numpy.ndarray
        int64: ids of both ends of each pair, and of a negative target.
    wanted : numpy.ndarray
        Mask of the vertices that the scores of all processes need, by row of the topology.
    """

    pairs: Pairs
    negatives: npt.NDArray[np.int64]
    wanted: npt.NDArray[np.bool_]


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
        Seed of the candidates, and of the negatives of the AUC.
    known : EarlierVertices, optional
        Then both are vertices that were there before the held-out pairs.
    """

    def __init__(
        self,
        dataset: LinkDataset,
        rows: Encodings,
        own: npt.NDArray[np.bool_],
        candidates: int,
        seed: int,
        known: EarlierVertices | None = None,
    ) -> None:
        self._rows, self._dataset, self._own, self._seed = rows, dataset, own, seed
        ids = np.arange(len(dataset.partition), dtype=np.uint64)
        order = np.argsort(mixed(ids ^ mixed(np.uint64(seed))))
        self._vertices: AllVertices | EarlierVertices = known or AllVertices(range(len(ids)))
        if known is not None and dataset.held_out_from is not None:
            order = order[known.times[order] < dataset.held_out_from]
        self._candidates = np.sort(order[:candidates])
        self._known: dict[str, _Split | None] = {}

    def _split(self, name: str) -> _Split | None:
        """Return what is known of a split. None if it has no pairs in any process."""
        if name not in self._known:
            pairs, topology = self._dataset.pairs(name), self._dataset.topology
            n, random = topology.num_vertices, hashed(keys_of(pairs[:, 0], pairs[:, 1]), 1, self._seed)
            # Without a third vertex there is no negative.
            before = np.full((len(pairs), 1), self._dataset.held_out_from or 0)
            sides = pairs[:, :1], pairs[:, 1:]
            negatives = self._vertices.others(random, *sides, before)[:, 0] if n > 2 else pairs[:, 1]
            wanted = np.zeros(n, bool)
            for ids in (pairs[:, 0], pairs[:, 1], negatives, self._candidates):
                wanted[self._places(ids)] = True
            mine = self._own[owner_of(self._places(pairs[:, 1]), topology.starts)]
            self._known[name] = _Split(pairs[mine], negatives[mine], wanted) if len(pairs) else None
        return self._known[name]

    def _places(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
        """Return the row of each vertex in the topology."""
        return self._dataset.topology.rows_of(np.ascontiguousarray(ids))

    @torch.no_grad()
    def scores(self, network: LinkNetwork, split: str) -> dict[str, float]:
        """Return ``mrr``, ``hits@k`` and ``auc`` of a split, the same in all processes."""
        network.eval()
        known = self._split(split)
        if known is None:
            return ranking.scores(torch.zeros(ranking.COUNTS)) | {"auc": math.nan}
        decoder = deepcopy(network.decoder).to("cpu", torch.float64)
        sums, logits = torch.zeros(ranking.COUNTS, dtype=torch.float64), [torch.empty(2, 0)]
        with self._rows.stored(network.encoder, known.wanted) as stored:

            def rows_of(ids: npt.NDArray[np.int64]) -> Tensor:
                return torch.from_numpy(stored.gather(self._places(ids))).double()

            candidates = torch.from_numpy(self._candidates), rows_of(self._candidates)
            for start in range(0, len(known.pairs), _BLOCK):
                block = slice(start, start + _BLOCK)
                pairs, negatives = known.pairs[block], rows_of(known.negatives[block])
                sources, targets = rows_of(pairs[:, 0]), rows_of(pairs[:, 1])
                both = torch.stack([decoder(sources, each).float() for each in (targets, negatives)])
                found = ranks_among(decoder, torch.from_numpy(pairs), sources, both[0], *candidates)
                sums += ranking.tally(found)
                logits.append(both)
        return ranking.scores(total(sums)) | {"auc": _auc(torch.cat(logits, 1))}


def ranks_among(
    decoder: PairDecoder, pairs: Tensor, sources: Tensor, positives: Tensor, candidates: Tensor, heads: Tensor
) -> Tensor:
    """Return the rank of each pair's target among candidates that are no ends of the pair.

    Logits are computed in float64 and rounded to float32, so that equal rows have equal logits. The order of additions,
    and with it the last digits, depends on the place in a product.

    Parameters
    ----------
    decoder : torch.nn.Module
        Scores the pairs.
    pairs, candidates : torch.Tensor
        Ids of both ends of each pair, and of the candidates.
    sources, heads : torch.Tensor
        float64: rows of the encoder for the sources and for the candidates.
    positives : torch.Tensor
        float32: logits of the pairs.
    """
    found = torch.ones(len(pairs), dtype=torch.float64)
    step = max(_LOGITS // max(len(pairs), 1), 1)
    for ids, rows in zip(candidates.split(step), heads.split(step), strict=True):
        counted = (ids != pairs[:, :1]) & (ids != pairs[:, 1:])
        found += ranking.ahead(positives, decoder.against(sources, rows).float(), counted)
    return found


def _auc(logits: Tensor) -> float:
    """Return the AUC of all processes, given the logits of positives and of negatives here."""
    negatives: list[Tensor] = [logits[1]] * world_size()
    if world_size() > 1:
        dist.all_gather_object(negatives, logits[1])
    shares = ranking.below(logits[0], torch.cat(negatives))
    count = total(torch.tensor([shares.sum(), len(shares)], dtype=torch.float64))
    return float(count[0] / count[1])
