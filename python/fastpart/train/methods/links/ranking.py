"""Exact ranks of positives among candidates, raw and filtered, and the scores that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ....core.pairs import distinct, mixed
from ...ranks import total
from .decoders import Decoder

HITS = (1, 3, 10)
"""The k of Hits@k."""

COUNTS = 2 + len(HITS)
"""Numbers of :func:`tally`."""


def ahead(positives: Tensor, others: Tensor, counted: Tensor) -> Tensor:
    """Return how many candidates come before each positive. Equal ones count half. Its rank is 1 more.

    It is NaN where a logit is NaN, which no order has a place for.

    Parameters
    ----------
    positives : torch.Tensor
        Logits, of shape (positives,).
    others : torch.Tensor
        Logits of the candidates, of shape (positives, candidates).
    counted : torch.Tensor
        Mask of the candidates that count.
    """
    own = positives.unsqueeze(1)
    higher, equal = (others > own) & counted, (others == own) & counted
    before = higher.sum(1).double() + equal.sum(1).double() / 2
    unknown = positives.isnan() | (others.isnan() & counted).any(1)
    return before.masked_fill(unknown, torch.nan)


def tally(found: Tensor) -> Tensor:
    """Return float64 sums for :func:`scores`, which can be added up over batches and processes."""
    hits = [torch.where(found.isnan(), found, (found <= k).double()).sum() for k in HITS]
    return torch.stack([found.new_tensor(len(found)), (1 / found).sum(), *hits])


def scores(sums: Tensor) -> dict[str, float]:
    """Return MRR and Hits@k from the sums of :func:`tally`, NaN without positives."""
    count, *rest = sums.tolist()
    names = ("mrr", *(f"hits@{k}" for k in HITS))
    return {name: value / count if count else float("nan") for name, value in zip(names, rest, strict=True)}


def raw_and_filtered(sums: Tensor) -> dict[str, float]:
    """Return the scores of raw and of filtered ranks, from their sums."""
    raw, filtered = map(scores, sums)
    return raw | {f"filtered_{name}": value for name, value in filtered.items()}


def below(positives: Tensor, negatives: Tensor) -> Tensor:
    """Return the share of negatives with a lower logit of each positive. Equal ones count half. The mean is the AUC.

    It is NaN where a logit is NaN.
    """
    if negatives.isnan().any():
        return torch.full(positives.shape, torch.nan, dtype=torch.float64)
    ordered = negatives.sort().values
    sides = [torch.searchsorted(ordered, positives, right=right) for right in (False, True)]
    shares = (sides[0] + sides[1]).double() / (2 * max(len(negatives), 1))
    return shares.masked_fill(positives.isnan(), torch.nan)


Ids = npt.NDArray[np.int64]
RowsOf = Callable[[Ids], Tensor]
"""Returns the float64 rows of vertices."""

_FACTS = 256
"""Facts at a time."""

_CANDIDATES = 1 << 14
"""Candidates at a time."""


class Answers:
    """Which vertices answer a question (vertex, relation, ?), or (?, relation, vertex)."""

    def __init__(self, facts: Ids, given: int, relations: int) -> None:
        self._relations = relations
        keys, answers = facts[:, given] * relations + facts[:, 2], facts[:, 1 - given]
        order = np.lexsort((answers, keys))
        self._keys, self._answers = keys[order], answers[order]

    def of(self, anchors: Ids, relations: Ids) -> tuple[Ids, Ids]:
        """Return the answers of some questions: the place of the question of each, and the vertex."""
        keys = anchors * self._relations + relations
        first = np.searchsorted(self._keys, keys)
        counts = np.searchsorted(self._keys, keys, side="right") - first
        places = np.repeat(np.arange(len(keys)), counts)
        within = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        return places, self._answers[np.repeat(first, counts) + within]


@dataclass(frozen=True, eq=False)
class Question:
    """Facts whose ends of one side are of one type, to be ranked among candidates of this type.

    Attributes
    ----------
    facts : numpy.ndarray
        int64, of shape (facts, 3): source, target, relation.
    end : int
        The end that is asked for: 0 is the source, 1 the target.
    candidates : numpy.ndarray
        int64: vertices, ascending.
    """

    facts: Ids
    end: int
    candidates: Ids

    @property
    def anchors(self) -> Ids:
        """The other end of each fact."""
        return self.facts[:, 1 - self.end]


class FilteredScorer:
    """Ranks the facts of a split. Every process ranks those whose targets are in its parts.

    Parameters
    ----------
    known : numpy.ndarray
        int64, of shape (facts, 3): all that is true.
    ends : tuple of numpy.ndarray
        Ranges of the vertices that the source and the target of each relation may be, each of shape (relations, 2).
    candidates : int or None
        How many vertices of a type an end is ranked among, sampled once. None: all.
    seed : int
        Seed of the candidates.
    without_anchors : bool
        Whether an anchor is no candidate, as in a graph without loops.
    """

    def __init__(
        self, known: Ids, ends: tuple[Ids, Ids], candidates: int | None, seed: int, without_anchors: bool
    ) -> None:
        self._answers = [Answers(known, 1 - end, len(ends[0])) for end in (0, 1)]
        self._ends, self._most, self._seed, self._without = ends, candidates, seed, without_anchors

    def scores(self, decoder: Decoder, facts: Ids, rows_of: RowsOf) -> dict[str, float]:
        """Return MRR and Hits@k of both ends of the facts of all processes, raw and filtered. NaN without facts."""
        decoder = decoder.to(torch.float64)
        sums = torch.zeros(2, COUNTS, dtype=torch.float64)
        for question in self._questions(facts):
            sums += torch.stack([tally(1 + each) for each in self._ahead(decoder, question, rows_of)])
        return raw_and_filtered(total(sums))

    def _questions(self, facts: Ids) -> Iterator[Question]:
        for end in (1, 0):
            of_each = self._ends[end][facts[:, 2]]
            for first in distinct(of_each[:, 0]):
                those = of_each[:, 0] == first
                yield Question(facts[those], end, self._candidates(int(first), int(of_each[those][0, 1])))

    def _candidates(self, first: int, last: int) -> Ids:
        ids = np.arange(first, last)
        if self._most is None or self._most >= len(ids):
            return ids
        order = np.argsort(mixed(ids.astype(np.uint64) ^ mixed(np.uint64(self._seed))))
        return np.sort(ids[order[: self._most]])

    @torch.no_grad()
    def _ahead(self, decoder: Decoder, question: Question, rows_of: RowsOf) -> tuple[Tensor, Tensor]:
        """Return how many candidates come before the true end of each fact, raw and filtered. Equal ones count half.

        Logits are computed in float64 and rounded to float32, so that equal rows have equal logits.
        """
        facts = question.facts
        found = torch.zeros(2, len(facts), dtype=torch.float64)
        for start in range(0, len(question.candidates), _CANDIDATES):
            ids = question.candidates[start : start + _CANDIDATES]
            candidates = rows_of(ids)
            for at in range(0, len(facts), _FACTS):
                some = slice(at, at + _FACTS)
                part = Question(facts[some], question.end, ids)
                found[:, some] += self._block(decoder, part, rows_of, candidates)
        return found[0], found[1]

    def _block(self, decoder: Decoder, question: Question, rows_of: RowsOf, candidates: Tensor) -> Tensor:
        facts, ids, end = question.facts, question.candidates, question.end
        relations = torch.from_numpy(facts[:, 2])
        moved = decoder.moved(rows_of(question.anchors), relations, end == 0)
        own = decoder(moved, rows_of(facts[:, end])).float()
        logits = decoder.against(moved, candidates).float()
        higher, equal = logits > own.unsqueeze(1), logits == own.unsqueeze(1)
        ahead = higher.sum(1).double() + equal.sum(1).double() / 2
        unknown = own.isnan() | logits.isnan().any(1)
        ahead = ahead.masked_fill(unknown, torch.nan)

        def without(places: Ids, answers: Ids) -> Tensor:
            """Return what these candidates add to the number of those ahead."""
            at = np.minimum(np.searchsorted(ids, answers), len(ids) - 1)
            here = ids[at] == answers
            rows, columns = torch.from_numpy(places[here]), torch.from_numpy(at[here])
            added = higher[rows, columns].double() + equal[rows, columns].double() / 2
            return torch.zeros(len(facts), dtype=torch.float64).index_add_(0, rows, added)

        every = np.arange(len(facts))
        excluded = [(every, facts[:, end]), *([(every, question.anchors)] if self._without else [])]
        known = self._answers[end].of(question.anchors, facts[:, 2])
        out, both = (
            [np.concatenate(each) for each in zip(*pairs, strict=True)]
            for pairs in (excluded, [*excluded, known])
        )
        code = distinct(both[0] * (1 << 32) + both[1])
        return torch.stack([ahead - without(*out), ahead - without(code >> 32, code & 0xFFFFFFFF)])
