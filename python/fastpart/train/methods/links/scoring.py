"""Scores of a link predictor: rows of vertices from whole neighbourhoods, and exact ranks among candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor, nn

from .... import _core
from ....core.pairs import hashed, keys_of, mixed
from ....loading.negatives import AllVertices
from ....loading.timed_edges import EarlierVertices
from ....partitions.partition import VertexPartition
from ....partitions.seeds import owner_of
from ....partitions.types import ONLY_TYPE, EdgeKey, of_type, range_of_type
from ...data.dataset import Dataset
from ...inference.hops import VertexMask
from ...inference.inference import Fits, Inference, Outputs
from ...models import TypedNetwork
from ...models.scores import TypedTask
from ...ranks import barrier, total, world_size
from . import ranking
from .dataset import LinkDataset, Pairs
from .decoders import LinkNetwork, PairDecoder
from .ranking import Answers

_BLOCK = 256
"""Positives at a time."""

_LOGITS = 1 << 17
"""Logits at a time, about."""

Float = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class StoredEncodings:
    """The rows of an encoder in files, one for each part and type."""

    def __init__(self, of_types: Sequence[_core.Features | None], partition: VertexPartition) -> None:
        self._of_types, self._rows_by_type = of_types, partition._rows_by_type

    def gather(self, rows: npt.NDArray[np.uint32]) -> Float:
        """Return the rows of vertices, given by their rows in the topology."""
        if len(self._of_types) == 1 and self._of_types[0] is not None:
            return self._of_types[0].gather(rows)
        numbers, within = self._rows_by_type.locate(rows)
        width = next(each.row_shape[0] for each in self._of_types if each is not None)
        found = np.empty((len(rows), width), np.float32)
        for number in np.unique(numbers):
            those, of_type = np.flatnonzero(numbers == number), self._of_types[number]
            assert of_type is not None
            found[those] = of_type.gather(within[those])
        return found


class Encodings(Inference):
    """The rows that an encoder has for vertices.

    Parameters
    ----------
    dataset, parts, folder, layers, fetching, fits, free_bytes, edge_fetching
        As in :class:`~fastpart.train.inference.inference.Inference`.
    learned : bool
        Whether the inputs of a graph without types have learned rows. Then :meth:`put_inputs` writes them before each
        use.
    """

    def __init__(
        self,
        dataset: Dataset,
        parts: list[int],
        folder: Path,
        layers: int,
        fetching: Any = None,
        fits: Fits | None = None,
        free_bytes: int = 0,
        edge_fetching: Any = None,
        learned: bool = False,
    ) -> None:
        super().__init__(dataset, parts, folder, layers, fetching, fits, free_bytes, edge_fetching)
        if learned:
            self._learned = (ONLY_TYPE,)

    def encoded(self, encoder: nn.Module, wanted: Mask) -> Iterator[tuple[str, Outputs]]:
        """Yield rows of the wanted vertices, a mask by row of the topology, with the name of their type."""
        returned = self._task.returned if isinstance(self._task, TypedTask) else (ONLY_TYPE,)
        masks = {name: self._of_type(name, wanted) for name in returned}
        if isinstance(encoder, TypedNetwork):
            yield from self.outputs_of_types(encoder, masks)
        else:
            for found in self.outputs(encoder, masks[ONLY_TYPE]):
                yield ONLY_TYPE, found

    def _of_type(self, name: str, wanted: Mask) -> VertexMask:
        """Return the part of a mask that is about a type."""
        starts, parts = self._topology.starts, self._parts[name]

        def mask(part: int) -> Mask:
            first = starts[part] + parts[part].first_inner
            return wanted[first : first + parts[part].num_inner]

        return mask

    @contextmanager
    def stored(self, encoder: nn.Module, wanted: Mask) -> Iterator[StoredEncodings]:
        """Yield the rows of the wanted vertices, a mask with at least one, from files that all processes see."""
        files = list[Path]()
        for name, found in groupby(self.encoded(encoder, wanted), lambda each: each[0]):
            files += self._save("encoded", name, (outputs for _, outputs in found))
        barrier()
        yield StoredEncodings([self._encoded_of(name) for name in self._names], self._partition)
        barrier()
        for file in files:
            file.unlink()

    def _encoded_of(self, name: str) -> _core.Features | None:
        files = self._files(name, "encoded")
        starts = self._vertices[name].starts if name else None
        return _core.Features(files, self._topology, starts=starts) if any(files) else None


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs of a relation in a split whose targets are in the parts of this process.

    Attributes
    ----------
    relation : int
        Number of the relation among those that are predicted.
    pairs, negatives : numpy.ndarray
        int64: ids of both ends of each pair, and of a negative target.
    candidates : numpy.ndarray
        int64: the vertices that targets are ranked among, which ascend.
    answers : Answers
        The candidates that are right for a source, by any split.
    """

    relation: int
    pairs: Pairs
    negatives: Ids
    candidates: Ids
    answers: Answers


@dataclass(frozen=True, eq=False)
class _Split:
    """The pairs of a split whose targets are in the parts of this process.

    Attributes
    ----------
    of_relations : list of _Pairs
        The pairs of each relation that has some in any process.
    wanted : numpy.ndarray
        Mask of the vertices that the scores of all processes need, by row of the topology.
    """

    of_relations: list[_Pairs]
    wanted: Mask


class Scorer:
    """Ranks the pairs of a split. All processes call it together, each for the targets of its parts.

    Parameters
    ----------
    dataset : LinkDataset
        The graph and the pairs, of the relations that are predicted.
    rows : Encodings
        The encoder's rows of vertices.
    own : numpy.ndarray
        Mask of the parts of this process.
    candidates : int
        Number of vertices that each positive's target is ranked among, the same for all of a type. All if there are no
        more.
    seed : int
        Seed of the candidates, and of the negatives of the AUC.
    temporal : bool
        Whether both are vertices that were there before the held-out pairs.
    """

    def __init__(
        self,
        dataset: LinkDataset,
        rows: Encodings,
        own: npt.NDArray[np.bool_],
        candidates: int,
        seed: int,
        temporal: bool = False,
    ) -> None:
        self._rows, self._dataset, self._own = rows, dataset, own
        self._count, self._seed, self._temporal = candidates, seed, temporal
        self._known: dict[str, _Split] = {}

    def _earlier(self, relation: EdgeKey) -> EarlierVertices | None:
        """Return the targets of a relation in the order of their times. None: times do not count, or they have none."""
        parts = of_type(self._dataset.partition, relation[2])
        if not self._temporal or parts[0].times is None:
            return None
        vertices = range_of_type(self._dataset.partition, relation[2])
        return EarlierVertices(parts, vertices, relation[0] == relation[2])

    def _candidates(self, name: str, earlier: EarlierVertices | None) -> Ids:
        """Return the vertices of a type that targets are ranked among."""
        vertices = range_of_type(self._dataset.partition, name)
        ids = np.arange(vertices.start, vertices.stop)
        order = np.argsort(mixed(ids.astype(np.uint64) ^ mixed(np.uint64(self._seed))))
        if earlier is not None and self._dataset.held_out_from is not None:
            order = order[earlier.times[order] < self._dataset.held_out_from]
        return np.sort(ids[order[: self._count]])

    def _split(self, name: str) -> _Split:
        """Return what is known of a split."""
        if name not in self._known:
            topology = self._dataset.topology
            wanted, of_relations = np.zeros(topology.num_vertices, bool), list[_Pairs]()
            for number, relation in enumerate(self._dataset.predicted):
                pairs = self._dataset.pairs(name, relation)
                if not len(pairs):
                    continue
                earlier = self._earlier(relation)
                negatives = self._negatives(pairs, relation, earlier)
                candidates = self._candidates(relation[2], earlier)
                for ids in (pairs[:, 0], pairs[:, 1], negatives, candidates):
                    wanted[self._places(ids)] = True
                mine = self._own[owner_of(self._places(pairs[:, 1]), topology.starts)]
                answers = self._answers(relation, candidates)
                of_relations.append(_Pairs(number, pairs[mine], negatives[mine], candidates, answers))
            self._known[name] = _Split(of_relations, wanted)
        return self._known[name]

    def _answers(self, relation: EdgeKey, candidates: Ids) -> Answers:
        """Return which candidates are right for each source."""
        known = self._dataset.known_pairs(relation, candidates)
        return Answers(np.column_stack([known, np.zeros(len(known), np.int64)]), 0, 1)

    def _negatives(self, pairs: Pairs, relation: EdgeKey, earlier: EarlierVertices | None) -> Ids:
        """Return a negative target of each pair. Without a third vertex there is none."""
        targets, one_type = range_of_type(self._dataset.partition, relation[2]), relation[0] == relation[2]
        if len(targets) <= 1 + one_type:
            return pairs[:, 1]
        random = hashed(keys_of(pairs[:, 0], pairs[:, 1]), 1, self._seed)
        before = np.full((len(pairs), 1), self._dataset.held_out_from or 0)
        vertices = earlier or AllVertices(targets, one_type)
        return vertices.others(random, pairs[:, :1], pairs[:, 1:], before)[:, 0]

    def _places(self, ids: Ids) -> npt.NDArray[np.uint32]:
        """Return the row of each vertex in the topology."""
        return self._dataset.topology.rows_of(np.ascontiguousarray(ids))

    @torch.no_grad()
    def scores(self, network: LinkNetwork, split: str) -> dict[str, float]:
        """Return ``mrr``, ``hits@k``, ``filtered_mrr``, ``filtered_hits@k`` and ``auc``, the same in all processes.

        Ranks are those of the pairs of all relations. The AUC compares logits of one relation, and is the mean over the
        pairs.
        """
        network.eval()
        known = self._split(split)
        sums = torch.zeros(2, ranking.COUNTS, dtype=torch.float64)
        if not known.of_relations:
            return ranking.raw_and_filtered(sums) | {"auc": math.nan}
        below = torch.zeros(2, dtype=torch.float64)
        with self._rows.stored(network.encoder, known.wanted) as stored:
            for each in known.of_relations:
                decoder = deepcopy(network.decoder_of(each.relation)).to("cpu", torch.float64)
                found, logits = self._ranked(decoder, each, stored)
                sums += found
                below += _below(logits)
        return ranking.raw_and_filtered(total(sums)) | {"auc": float(below[0] / below[1])}

    def _ranked(self, decoder: PairDecoder, known: _Pairs, stored: StoredEncodings) -> tuple[Tensor, Tensor]:
        """Return the tallies of the ranks of pairs of a relation, and the logits of these and of their negatives."""

        def rows_of(ids: Ids) -> Tensor:
            return torch.from_numpy(stored.gather(self._places(ids))).double()

        sums, logits = torch.zeros(2, ranking.COUNTS, dtype=torch.float64), [torch.empty(2, 0)]
        candidates = torch.from_numpy(known.candidates), rows_of(known.candidates)
        for start in range(0, len(known.pairs), _BLOCK):
            block = slice(start, start + _BLOCK)
            pairs, negatives = known.pairs[block], rows_of(known.negatives[block])
            sources, targets = rows_of(pairs[:, 0]), rows_of(pairs[:, 1])
            both = torch.stack([decoder(sources, each).float() for each in (targets, negatives)])
            answers = known.answers.of(pairs[:, 0], np.zeros(len(pairs), np.int64))
            found = ranks_among(decoder, torch.from_numpy(pairs), sources, both[0], *candidates, answers)
            sums += torch.stack([ranking.tally(ranks) for ranks in found])
            logits.append(both)
        return sums, torch.cat(logits, 1)


def ranks_among(
    decoder: PairDecoder,
    pairs: Tensor,
    sources: Tensor,
    positives: Tensor,
    candidates: Tensor,
    heads: Tensor,
    answers: tuple[Ids, Ids],
) -> Tensor:
    """Return the raw and the filtered rank of each pair's target among candidates that are no ends of the pair.

    Filtered ranks leave out candidates that are right for the source by any split (Bordes et al. 2013).

    Logits are computed in float64 and rounded to float32, so that equal rows have equal logits. The order of additions,
    and with it the last digits, depends on the place in a product.

    Parameters
    ----------
    decoder : torch.nn.Module
        Scores the pairs.
    pairs, candidates : torch.Tensor
        Ids of both ends of each pair, and of the candidates, which ascend.
    sources, heads : torch.Tensor
        float64: rows of the encoder for the sources and for the candidates.
    positives : torch.Tensor
        float32: logits of the pairs.
    answers : tuple of numpy.ndarray
        Places of pairs, and candidates that are right for them.

    Returns
    -------
    torch.Tensor
        float64, of shape (2, pairs).
    """
    found = torch.ones(2, len(pairs), dtype=torch.float64)
    places, right = map(torch.from_numpy, answers)
    step = max(_LOGITS // max(len(pairs), 1), 1)
    for ids, rows in zip(candidates.split(step), heads.split(step), strict=True):
        logits = decoder.against(sources, rows).float()
        counted = (ids != pairs[:, :1]) & (ids != pairs[:, 1:])
        found[0] += ranking.ahead(positives, logits, counted)
        at = torch.searchsorted(ids, right).clamp(max=len(ids) - 1)
        here = ids[at] == right
        counted[places[here], at[here]] = False
        found[1] += ranking.ahead(positives, logits, counted)
    return found


def _below(logits: Tensor) -> Tensor:
    """Return the sum over all positives of the share of negatives below each, and the number of positives.

    Their quotient is the AUC. ``logits`` are those of positives and of negatives here.
    """
    negatives: list[Tensor] = [logits[1]] * world_size()
    if world_size() > 1:
        dist.all_gather_object(negatives, logits[1])
    shares = ranking.below(logits[0], torch.cat(negatives))
    return total(torch.tensor([shares.sum(), len(shares)], dtype=torch.float64))
