"""A partition directory with edge splits. It needs no labels, and no features where rows are learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.inputs import arrays_of
from ....core.pairs import among
from ....core.parameters import StrPath, path, shown
from ....core.parsing import mapped
from ....errors import ParameterError, code
from ....graphs.given_splits import pairs_of
from ....graphs.types import TypedRanges
from ....loading.links import edges_of
from ....partitions.part_rows import typed_of
from ....partitions.stored_graph import refuse_without_edges
from ....partitions.types import ONLY_RELATION, EdgeKey, edge_keys, rows_of_type, type_names
from ...data.dataset import Dataset, categories_of, task_over_types
from ...method_options import LinkOptions
from ...models.scores import Task, TypedTask

Pairs = npt.NDArray[np.int64]

ENDS = ("source", "target")


class RelationDataset(Dataset):
    """A partition of the vertices whose relations are known by name. A graph without types has one, number 0."""

    propagates = False

    @cached_property
    def typed(self) -> TypedRanges | None:
        """The types and relations. None: there are none."""
        return typed_of(self.manifest)

    @property
    def num_relations(self) -> int:
        """Number of relations, without the reverse ones."""
        return 1 if self.typed is None else len(self.typed.relations)

    def relation(self, name: str | None) -> int:
        """Return the number of a relation. None is the only one of a graph without types."""
        names: list[Any] = [None] if self.typed is None else self.typed.names
        if name not in names:
            known = f"There are {', '.join(map(str, names[:10]))}"
            remedy = "It holds a graph without types. Leave it out" if self.typed is None else known
            raise ParameterError(f"relation: {name!r} is no relation of {shown(self.path)}. {remedy}")
        return names.index(name)

    def task_of_ends(self, keys: Iterable[EdgeKey], **outputs: Any) -> TypedTask:
        """Return the task of a network over types that returns rows of those at the ends of some relations."""
        ends = {name for source, _, target in keys for name in (source, target)}
        returned = tuple(name for name in type_names(self.partition) if name in ends)
        return task_over_types(self.partition, returned, **outputs)


class LinkDataset(RelationDataset):
    """A partition of the vertices with edge splits. Its ``task`` has the width of the features and no classes.

    Attributes
    ----------
    predicted : tuple of tuple
        The relations whose edges are predicted.
    """

    predicted: tuple[EdgeKey, ...] = (ONLY_RELATION,)

    def predict(self, relation: Sequence[str] | None) -> None:
        """Choose the relations whose edges are predicted. None: all that have edges to train on."""
        named = None if relation is None else set(map(self.relation, relation))
        if self.typed is None:
            return
        keys, counts = edge_keys(self.partition), self._counts("train")
        numbers = sorted(np.flatnonzero(counts).tolist() if named is None else named)
        for number in numbers:
            if not counts[number]:
                raise ParameterError(f"relation: {keys[number][1]!r} has no edges to train on")
        self.predicted = tuple(keys[number] for number in numbers)

    @property
    def num_train(self) -> int:
        """Number of edges to train on, of the relations that are predicted."""
        return self.count_of("train")

    def count_of(self, split: str) -> int:
        """Return how many edges a split has, of the relations that are predicted."""
        if self.typed is None or self.predicted == (ONLY_RELATION,):
            return int(self.manifest["edge_splits"].get(split, 0))
        return int(sum(self._counts(split)[self.relation(name)] for _, name, _ in self.predicted))

    def _counts(self, split: str) -> Pairs:
        """Return how many edges of each relation a split has."""
        if split not in self._known_counts:
            self._known_counts[split] = np.bincount(self.facts(split)[:, 2], minlength=self.num_relations)
        return self._known_counts[split]

    @cached_property
    def _known_counts(self) -> dict[str, Pairs]:
        return {}

    @property
    def held_out_from(self) -> int | None:
        """The earliest time of the held-out pairs, if they were split by time."""
        since = self.manifest.get("held_out_from")
        return None if since is None else int(since)

    def facts(self, split: str) -> Pairs:
        """Return source, target and relation of each pair of a split, ordered by target, source and relation."""
        if split not in self.manifest["edge_splits"]:
            return np.empty((0, 3), np.int64)
        pairs = edges_of(split, self.partition)
        if self.typed is None:
            return np.column_stack([pairs, np.zeros(len(pairs), np.int64)])
        return np.ascontiguousarray(pairs[np.lexsort((pairs[:, 2], pairs[:, 0], pairs[:, 1]))])

    def true_facts(self) -> Pairs:
        """Return all facts that are true: the facts of all splits, both ways where a relation has no direction."""
        facts = np.concatenate([self.facts(split) for split in ("train", "val", "test")])
        if self.typed is None:
            undirected = np.array([self.manifest["directedness"] != "directed"])
        else:
            undirected = np.array([each.reverse == "merged" for each in self.typed.relations])
        back = facts[undirected[facts[:, 2]]][:, [1, 0, 2]]
        return np.concatenate([facts, back])

    def known_pairs(self, relation: EdgeKey, targets: Pairs) -> Pairs:
        """Return the pairs of a relation in any split with one of some targets, which ascend.

        A pair counts both ways where the relation has no direction. One part is read at a time.
        """
        undirected = self.manifest["directedness"] != "directed"
        if self.typed is not None:
            undirected = self.typed.relations[self.relation(relation[1])].reverse == "merged"
        found = [np.empty((0, 2), np.int64)]
        for part in self.partition.parts:
            for split in self.manifest["edge_splits"]:
                pairs = getattr(part, f"edge_{split}")
                if self.typed is not None:
                    pairs = pairs[pairs[:, 2] == self.relation(relation[1]), :2]
                found.append(pairs[among(pairs[:, 1], targets)])
                if undirected:
                    found.append(pairs[among(pairs[:, 0], targets)][:, ::-1])
        return np.concatenate(found)

    def pairs(self, split: str, relation: EdgeKey = ONLY_RELATION) -> Pairs:
        """Return the pairs of a relation in a split, none if the directory does not have it."""
        if self.typed is None:
            known = split in self.manifest["edge_splits"]
            return edges_of(split, self.partition) if known else np.empty((0, 2), np.int64)
        facts = self.facts(split)
        return np.ascontiguousarray(facts[facts[:, 2] == self.relation(relation[1]), :2])

    def hard_negatives(self, given: StrPath | None) -> Pairs | None:
        """Return the table of hard negatives of a file, checked: source, target and relation of each row."""
        if given is None:
            return None
        name = "negatives: hard"
        file = path(name, given)
        table: Any = mapped(file) if file.suffix == ".npy" else dict(arrays_of(name, file))
        pairs = pairs_of(name, table, len(self.partition), self.typed)
        if not len(pairs):
            raise ParameterError(f"{name}: the table has no rows. Leave it out")
        return pairs if self.typed else np.column_stack([pairs, np.zeros(len(pairs), np.int64)])

    def _take_target(self, target: str | None) -> None:
        """Take graphs with types and without."""

    def _refuse_incomplete(self) -> None:
        if "train" not in self.manifest.get("edge_splits", {}):
            raise ParameterError(
                f"source: {shown(self.path)} holds no edge splits. Split the edges with "
                + code(
                    "splits = fastpart.split_edges(graph), partition splits.graph, and save the partition with "
                    "p.save(DIR, graph=splits.graph, edge_splits=splits)",
                    "`fastpart split-edges GRAPH TRAIN`, then run `fastpart partition TRAIN -o DIR --edge-splits "
                    "TRAIN.splits.npz`",
                )
            )
        if not self.num_train:
            raise ParameterError(f"source: {shown(self.path)} has no edges to train on")
        refuse_without_edges(self.partition, "source")

    def _task(self) -> Task:
        if self.has_types:
            return task_over_types(
                self.partition, tuple(type_names(self.partition)), classes=0, multilabel=False
            )
        row = self.partition.parts[0].row_type("features")
        if row is not None and len(row[1]) != 1:
            raise ParameterError(
                f"source: expected features of shape (n, width), got (n, {', '.join(map(str, row[1]))})"
            )
        return Task(
            0 if row is None else row[1][0], 0, multilabel=False, categories=categories_of(self.manifest)
        )

    def encoder_task(self, options: LinkOptions) -> Task:
        """Return what an encoder is made for: its ``classes`` are the width of the rows that it returns.

        In a graph with types it returns those of the types at the ends of the relations that are predicted.
        """
        known = self.task
        if not isinstance(known, TypedTask):
            width = known.features + (options.embeddings or 0)
            return replace(known, features=width, classes=options.hidden)
        outputs = {"classes": options.hidden, "embeddings": options.embeddings or 0, "multilabel": False}
        return self.task_of_ends(self.predicted, **outputs)

    def features_of(self, name: str, index: int) -> Iterator[npt.NDArray[np.float32]]:
        """Yield the features of the inner vertices of a type in a part, if there are any."""
        features = rows_of_type(self.partition.parts[index], name).features
        if features is not None:
            yield np.asarray(features, np.float32)


def digest_of(table: Pairs | None) -> str | None:
    """Return a digest of a table of hard negatives."""
    return None if table is None else blake2b(table.tobytes(), digest_size=16).hexdigest()
