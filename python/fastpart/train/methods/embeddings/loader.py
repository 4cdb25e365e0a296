"""Sampled neighbours of the vertices of facts, of several types, without the facts of the step among the in-edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.pairs import among, keys_of, undirected_keys
from ....loading import Loader, TypedBatch
from ....loading.sample import SampledArrays
from ....partitions.loader_options import LoaderOptions
from ....partitions.seeds import Seeds, Steps
from ...method_options import EmbeddingOptions
from .dataset import FactDataset
from .steps import FactSteps, Step

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FactEpoch(Steps):
    """The steps of an epoch.

    Attributes
    ----------
    made : list of Step
    """

    made: list[Step]


class FactLoader(Loader):
    """A loader whose batches are neighbourhoods of the vertices of a step of facts, of any types.

    Parameters
    ----------
    dataset : FactDataset
        A typed graph.
    steps : FactSteps
        The facts of this rank.
    options : EmbeddingOptions
        The options of the training.
    edge_attr : bool
        Whether batches have the features of in-edges.
    """

    def __init__(
        self,
        dataset: FactDataset,
        steps: FactSteps,
        options: EmbeddingOptions,
        edge_attr: bool = False,
    ) -> None:
        self._of_facts, self._dataset = steps, dataset
        names = ("ahead", "timeout", "io", "cache", "cache_by")
        given = {"edge_ids": edge_attr, "seed": options.seed, "batch_size": steps.size}
        of_loader = LoaderOptions.checked(given | {name: getattr(options, name) for name in names})
        fanouts = options.relation_fanouts or options.fanouts
        super().__init__(dataset.partition, "train", fanouts=fanouts, options=of_loader)

    def _seeds_of(self, vertices: Any, partition: Any, given: Any) -> Seeds:
        self.input = self.types[0]
        targets = self._dataset.facts("train")[:, 1]
        self.vertices = np.unique(targets)
        return Seeds(targets, self._topology.rows_of(np.ascontiguousarray(targets)), None)

    def _dealt(self, order: Ids, epoch: int) -> Steps:
        made = list(self._of_facts.epoch(epoch))
        offsets = np.concatenate([[0], np.cumsum([len(step.rows) for step in made])]).astype(np.int64)
        rows = np.concatenate([np.empty(0, np.uint32), *(step.rows for step in made)]).astype(np.uint32)
        sizes = np.array([len(step.facts) for step in made], np.int64)
        return FactEpoch(
            positions=np.empty(0, np.int64),
            offsets=np.zeros(len(made) + 1, np.int64),
            global_sizes=sizes,
            seeds=rows,
            seed_offsets=offsets,
            seed_times=None,
            made=made,
        )

    def _batch(
        self, arrays: SampledArrays, x: Any, steps: Steps, epoch: int, step: int
    ) -> tuple[Step, TypedBatch]:
        assert isinstance(steps, FactEpoch)
        made = steps.made[step]
        steps.made[step] = Step(step, made.rows[:0], [], 0.0, made.facts[:0])  # it is not needed again
        return made, without_facts(super()._batch(arrays, x, steps, epoch, step), made.facts, self._dataset)


def without_facts(batch: TypedBatch, facts: Ids, dataset: FactDataset) -> TypedBatch:
    """Return a batch without the in-edges that say one of some facts, in either direction."""
    typed = dataset.typed
    assert typed is not None
    number_of, stay = {name: number for number, name in enumerate(typed.names)}, {}
    for key, edge_type in zip(batch.indices_dict, typed.edge_types, strict=True):
        of_relation = facts[facts[:, 2] == number_of[edge_type.relation.name]]
        if not len(of_relation):
            continue
        number = undirected_keys if edge_type.relation.reverse == "merged" else keys_of
        ends, known = batch._ends(key), np.unique(number(of_relation[:, 0], of_relation[:, 1]))
        stay[key] = ~among(number(*(ends[::-1] if edge_type.reversed else ends)), known)
    return batch._without(stay)
