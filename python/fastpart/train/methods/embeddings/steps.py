"""The facts of a worker in each step, the negatives that they share, and the losses of facts against negatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from ....core.pairs import distinct, hashed, mixed
from ....loading.negatives import ByDegree, HardNegatives
from ....partitions.seeds import owner_of
from ...method_options import EmbeddingOptions, Objective
from .dataset import FactDataset

OBJECTIVES: tuple[Objective, ...] = get_args(Objective)


def losses_of(objective: Objective, positives: Tensor, negatives: Tensor, offset: Tensor) -> Tensor:
    """Return the loss of each fact.

    Parameters
    ----------
    objective : {"softmax", "binary", "self_adversarial"}
        The name of the loss.
    positives : torch.Tensor
        Logits of the facts, of shape (facts,).
    negatives : torch.Tensor
        Logits of the negatives of each, of shape (facts, negatives). Those that do not count are minus infinity.
    offset : torch.Tensor
        What is added to logits that are not compared with each other.
    """
    if objective == "softmax":
        return torch.logsumexp(torch.cat([positives.unsqueeze(1), negatives], 1), 1) - positives
    positives, negatives = positives + offset, negatives + offset
    counted = negatives.detach() > -torch.inf
    if objective == "binary":
        weights = counted / counted.sum(1, keepdim=True).clamp(min=1)
    else:
        weights = torch.nan_to_num(torch.softmax(negatives.detach(), 1))
    wrong = (weights * F.softplus(negatives)).sum(1)
    return (F.softplus(-positives) + wrong) / 2


Ids = npt.NDArray[np.int64]


class Pools:
    """Vertices of a type that take the place of the true end of each fact of a step.

    Parameters
    ----------
    dataset : FactDataset
        The types.
    facts : numpy.ndarray
        int64, of shape (facts, 3): the facts to train on.
    numbers : dict
        How many there are of each kind. "all" of "uniform" are all vertices of the type, and "all" of "batch" are all
        ends of the facts of the step. Other numbers of them are samples with replacement.
    seed : int
        Seed of the sample.
    """

    def __init__(self, dataset: FactDataset, facts: Ids, numbers: dict[str, Any], seed: int) -> None:
        self._facts, self._numbers, self._seed = facts, numbers, seed
        self.of_relation = [dataset.ends(end)[:, 0] for end in (0, 1)]
        self._last = {int(first): int(last) for end in (0, 1) for first, last in dataset.ends(end)}
        if "degree" in numbers:
            ends = facts[:, :2].reshape(-1)
            self._by_degree = {
                first: ByDegree(ends, range(first, last)) for first, last in self._last.items()
            }

    def of(self, first: int, end: int, positions: Ids, epoch: int, step: int) -> Ids:
        """Return the vertices of the type that begins with ``first``, to take the place of this end.

        ``positions`` are those of the facts of all workers in the step.
        """
        counts = [0 if number == "all" else number for number in self._numbers.values()]
        random = hashed(np.array([step], np.uint64), sum(counts), self._seed, epoch, first, end)[0]
        pieces, last, found = np.split(random, np.cumsum(counts)[:-1]), self._last[first], list[Ids]()
        for (kind, number), piece in zip(self._numbers.items(), pieces, strict=True):
            if kind == "degree":
                found.append(self._by_degree[first].of(piece))
            elif kind == "batch":
                facts = self._facts[positions]
                ends = distinct(facts[self.of_relation[end][facts[:, 2]] == first, end])
                found.append(
                    ends if number == "all" else ends[(piece % np.uint64(len(ends))).astype(np.int64)]
                )
            elif number == "all":
                found.append(np.arange(first, last))
            else:
                found.append(first + (piece % np.uint64(last - first)).astype(np.int64))
        return np.concatenate(found)


RowIds = npt.NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Group:
    """Facts of a step whose ends of one side are of one type, with the vertices that take the place of these.

    Attributes
    ----------
    end : int
        The end that is asked for: 0 is the source, 1 the target.
    anchors, others, pool : torch.Tensor
        int64: places of the other ends, of the true ends and of the negatives among the rows of the step.
    relations : torch.Tensor
        int64: relation of each fact.
    ids : numpy.ndarray
        int64: the true ends.
    pool_ids : numpy.ndarray
        int64: the negatives.
    weights : torch.Tensor
        Factor of the loss of each fact.
    hard, counted : torch.Tensor or None
        Places of negatives of each fact, of shape (facts, count), and which of them count.
    """

    end: int
    anchors: Tensor
    others: Tensor
    pool: Tensor
    relations: Tensor
    ids: Ids
    pool_ids: Ids
    weights: Tensor
    hard: Tensor | None = None
    counted: Tensor | None = None

    @property
    def clash(self) -> Tensor:
        """Mask of shape (facts, negatives): which negatives are the true end."""
        return torch.from_numpy(self.ids[:, None] == self.pool_ids)


@dataclass(frozen=True, eq=False)
class Step:
    """What a worker computes in a step. There may be no groups.

    Attributes
    ----------
    number : int
        Number of the step in the epoch.
    rows : numpy.ndarray
        uint32: rows of the vertices that it needs, ascending.
    groups : list of Group
    count : float
        Weights of the losses of all workers.
    facts : numpy.ndarray
        int64, of shape (facts, 3): the facts of all workers.
    """

    number: int
    rows: RowIds
    groups: list[Group]
    count: float
    facts: Ids


class FactSteps:
    """The facts to train on, step by step. Those of a step are the same for any partition.

    Parameters
    ----------
    dataset : FactDataset
        The facts.
    options : Options
        ``batch_size`` counts the facts of a step of all workers.
    owned : numpy.ndarray
        Mask of the parts of this worker. It takes the facts whose targets they hold.
    hard : numpy.ndarray or None
        int64, of shape (rows, 3): the table of hard negatives.

    Attributes
    ----------
    size : int
        Facts of a step of all workers.
    """

    def __init__(
        self,
        dataset: FactDataset,
        options: EmbeddingOptions,
        owned: npt.NDArray[np.bool_],
        hard: Ids | None,
    ) -> None:
        self._facts, self._topology, self._seed = dataset.facts("train"), dataset.topology, options.seed
        rows = self._topology.rows_of(np.ascontiguousarray(self._facts[:, 1]))
        self._own = owned[owner_of(rows, self._topology.starts)]
        self.size = options.batch_size or len(self._facts)
        self._pools = Pools(dataset, self._facts, options.numbers, options.seed)
        given = options.relation_weights or {}
        self._weights = np.ones(dataset.num_relations)
        for name, weight in given.items():
            self._weights[dataset.relation(name)] = weight
        self._hard = None
        if hard is not None:
            relations, count = dataset.num_relations, options.num_hard_negatives
            self._hard = HardNegatives.of(hard, relations, count, options.seed)

    def epoch(self, number: int) -> Iterator[Step]:
        """Yield the steps of an epoch."""
        key = mixed(mixed(np.uint64(self._seed)) ^ np.uint64(number))
        order = np.argsort(mixed(np.arange(len(self._facts), dtype=np.uint64) ^ key))
        for step, start in enumerate(range(0, len(order), self.size)):
            yield self._step(order[start : start + self.size], number, step)

    def _step(self, positions: Ids, epoch: int, step: int) -> Step:
        of_all = self._weights[self._facts[positions, 2]].sum()
        chosen = positions[self._own[positions]]
        facts, drafts, ids = self._facts[chosen], [], []
        for end in (1, 0):
            types = self._pools.of_relation[end][facts[:, 2]]
            for first in distinct(types).tolist():
                those = np.flatnonzero(types == first)
                pool = self._pools.of(first, end, positions, epoch, step)
                hard = None
                if self._hard is not None and end == 1:
                    hard = self._hard.of_facts(facts[those], chosen[those], epoch)
                drafts.append((end, facts[those], pool, hard))
                ids += [
                    facts[those, 0],
                    facts[those, 1],
                    pool,
                    *([] if hard is None else [hard[0].reshape(-1)]),
                ]
        wanted = np.concatenate([np.empty(0, np.int64), *ids])
        rows, places = np.unique(self._topology.rows_of(wanted), return_inverse=True)
        pieces = iter(torch.from_numpy(places).split([len(each) for each in ids]))
        groups = [self._group(*draft, pieces) for draft in drafts]
        return Step(step, rows.astype(np.uint32), groups, 2 * float(of_all), self._facts[positions])

    def _group(self, end: int, facts: Ids, pool: Ids, hard: Any, pieces: Iterator[Tensor]) -> Group:
        both, negatives = (next(pieces), next(pieces)), next(pieces)
        return Group(
            end,
            both[1 - end],
            both[end],
            negatives,
            torch.from_numpy(facts[:, 2]),
            facts[:, end],
            pool,
            torch.from_numpy(self._weights[facts[:, 2]]),
            None if hard is None else next(pieces).view(len(facts), -1),
            None if hard is None else torch.from_numpy(hard[1]),
        )
