"""The batch of a worker in each step: edges of a relation, negatives, and sampled neighbours of their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ....core.pairs import mixed
from ....loading import LinkBatch, LinkLoader, TypedLinkBatch
from ....partitions.seeds import owner_of
from ....partitions.types import ONLY_RELATION, ONLY_TYPE, EdgeKey
from ...data.dataset import Dataset
from ...graphs.rows import layers_of
from ...method_options import EdgeOptions, LinkOptions
from ...ranks import device
from ..sampled import steps
from ..sampled.steps import degrees_of, edge_fetching_of, starts_of


@dataclass(kw_only=True)
class Step(steps.Step):
    """The pairs of a step that one worker computes. There may be none. ``count`` is the number of pairs of all workers.

    Attributes
    ----------
    relation : int
        Number of the relation among those that are predicted.
    types : tuple of str
        The types of the sources and of the targets.
    ends : torch.Tensor
        Source and target of each pair, as rows of the encoder's output for their types.
    y : torch.Tensor
        1 for positives, 0 for negatives.
    """

    ends: Tensor
    relation: int = 0
    types: tuple[str, str] = (ONLY_TYPE, ONLY_TYPE)

    def moved(self, move: Callable[[Tensor], Tensor]) -> Self:
        """Return the step with tensors that were moved."""
        return replace(super().moved(move), ends=move(self.ends))

    @property
    def tensors(self) -> list[Tensor]:
        """All that :meth:`moved` moves."""
        return [*super().tensors, self.ends]


class Links:
    """Edges to train on, with negatives and sampled neighbours. Each relation has steps of its own.

    An epoch has the steps of all relations, in an order that depends on seed and epoch only.
    """

    def __init__(
        self,
        dataset: Dataset,
        options: LinkOptions | EdgeOptions,
        free_bytes: int,
        edge_attr: bool,
        edges: Any = "train",
        relations: Sequence[EdgeKey] = (ONLY_RELATION,),
        hard: dict[EdgeKey, Any] | None = None,
    ) -> None:
        more, numbers = dict[str, Any](), dict[str, Any]()
        if isinstance(options, LinkOptions):
            more = {name: getattr(options, name) for name in ("num_hard_negatives", "temporal")}
            numbers = options.numbers
        self._topology, self._seed = dataset.topology, options.seed
        self._starts, self._loaders = starts_of(dataset), list[Any]()
        kept = None if options.resident is None else options.resident // len(relations)
        for relation in relations:
            loader = dataset.partition.link_loader(
                edges,
                relation=None if relation == ONLY_RELATION else relation,
                fanouts=dataset.fanouts(options),
                batch_size=options.batch_size or dataset.num_train,
                seed=options.seed,
                edge_ids=edge_attr,
                ahead=options.ahead,
                timeout=options.timeout,
                io=options.io,
                cache=options.cache,
                cache_by=options.cache_by,
                negatives={**numbers, "hard": (hard or {}).get(relation)},
                **more,
            )
            assert isinstance(loader, LinkLoader)
            loader.keep(device(), kept)
            loader.limit(free_bytes // len(relations))
            self._loaders.append(loader)
        self.fetching, self.edge_fetching = self._loaders[0].fetching, edge_fetching_of(self._loaders[0])

    def read_seconds(self) -> dict[str, float]:
        """Return what making the batches took since the last call, in all threads."""
        return _summed([loader.read_seconds() for loader in self._loaders])

    def own_rows(self, step: Step, owned: npt.NDArray[np.bool_]) -> int:
        """Return how many rows of a step are of own parts."""
        owners = (owner_of(rows, self._starts[name]) for name, rows in step.inputs.items())
        return sum(int(np.count_nonzero(owned[each])) for each in owners)

    def read_counts(self) -> dict[str, int]:
        """Return what the steps needed since the last call, and what was read for them."""
        return _summed([loader.read_counts() for loader in self._loaders])

    def close(self) -> None:
        """End the connections to other workers."""
        for loader in self._loaders:
            loader.close()

    def epoch(self, number: int) -> Iterator[Step]:
        """Yield the steps of an epoch."""
        for loader in self._loaders:
            loader.set_epoch(number)
        batches = [iter(loader) for loader in self._loaders]
        return (self._step(next(batches[relation]), relation) for relation in self._order(number))

    def _order(self, epoch: int) -> list[int]:
        """Return the relation of each step of an epoch."""
        relations = np.repeat(np.arange(len(self._loaders)), list(map(len, self._loaders)))
        key = mixed(mixed(np.uint64(self._seed)) ^ np.uint64(epoch))
        order = np.argsort(mixed(np.arange(len(relations), dtype=np.uint64) ^ key))
        return relations[order].tolist()

    def _step(self, batch: LinkBatch | TypedLinkBatch, relation: int) -> Step:
        common = {
            "y": batch.edge_label,
            "rows": torch.arange(len(batch.edge_label)),
            "count": batch.global_size * self._loaders[relation].pairs_of_edge,
            "ends": batch.edge_label_index,
            "relation": relation,
        }
        if isinstance(batch, TypedLinkBatch):
            return Step(
                graphs=layers_of(batch, device()),
                inputs=batch.rows_dict,
                x={name: rows.float() for name, rows in batch.x_dict.items()},
                types=(batch.relation[0], batch.relation[2]),
                **common,
            )
        return Step(
            graphs=layers_of(batch, device(), degrees_of(batch, self._topology)),
            inputs={ONLY_TYPE: batch.rows},
            x={} if batch.x is None else {ONLY_TYPE: batch.x.float()},
            **common,
        )


def _summed(counts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the sums of numbers by name."""
    return {name: sum(each[name] for each in counts) for name in counts[0]}
