"""The facts of a worker in each step, with the negatives that they share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ....core.pairs import distinct, mixed
from ....loading.negatives import HardNegatives
from ....partitions.seeds import owner_of
from ...method_options import EmbeddingOptions
from .dataset import FactDataset
from .pools import Pools

Ids = npt.NDArray[np.int64]
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
        self._pools = Pools(dataset, self._facts, options.negatives, options.num_negatives, options.seed)
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
