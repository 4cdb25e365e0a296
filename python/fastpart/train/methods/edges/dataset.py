"""A partition directory with labels of edges. Each record counts once, in the part of its target."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ....core.inputs import EDGE_LABEL_SPLITS, EDGE_LABELS
from ....core.parameters import shown
from ....graphs.graph_directory import Embedded
from ....partitions.part_rows import RelationData
from ....partitions.parts import VertexPartData
from ....partitions.seeds import owner_of
from ....partitions.stored_graph import refuse_without_edges
from ....partitions.types import edge_types, key_of, of_type, rows_of_relation
from ...data.dataset import saving, the_only, width_of
from ...models.scores import Task
from ..links.dataset import RelationDataset

Ids = npt.NDArray[np.int64]


class Records:
    """The records of a relation whose target is an inner vertex of a part, with the attributes of vertices of a part.

    Attributes
    ----------
    of : RelationData
        The in-edges of the relation.
    places : numpy.ndarray
        int64: the in-edge of the relation in the part that has the direction of each record.
    num_inner : int
        Their number.
    """

    def __init__(self, of: RelationData, m: int) -> None:
        self.of, self.places = of, np.flatnonzero(of.edge_ids[: of.num_of_inner] < m)
        self.num_inner = len(self.places)

    @property
    def ids(self) -> Ids:
        """Numbers of the records in their relation."""
        return self.of.edge_ids[self.places] - self.of.type.relation.first

    def ends(self, places: Ids) -> Ids:
        """Return the ids of source and target of in-edges of the relation, of shape (in-edges, 2)."""
        part = self.of._part
        in_part = self.of.edges[places]
        targets = np.searchsorted(part.indptr, in_part, side="right") - 1
        return np.stack([part.vertices[part.indices[in_part]], part.vertices[targets]], axis=1)

    def __getattr__(self, name: str) -> Any:
        """Return ``labels``, ``train``, ``val`` or ``test``, a row for each record, None without such rows."""
        if name not in ("labels", "train", "val", "test"):
            raise AttributeError(name)
        rows = getattr(self.of, EDGE_LABELS if name == "labels" else f"edge_label_{name}")
        return None if rows is None else rows[self.places]


@dataclass(frozen=True, eq=False)
class Supervision:
    """The records to train on, in their order, which no partition changes.

    Attributes
    ----------
    pairs : numpy.ndarray
        int64, of shape (records, 2): source and target.
    parts, places : numpy.ndarray
        Part of the target of each, and place of the record among the in-edges of the relation in the part.
    labels : torch.Tensor
        The labels.
    """

    pairs: Ids
    parts: Ids
    places: Ids
    labels: Tensor


class LabelledEdges(RelationDataset):
    """A partition of the vertices with labels of edges. Its ``task`` is to tell these from both ends of an edge.

    Attributes
    ----------
    key : tuple of str
        The relation whose records have the labels. A graph without types has one, whose names are empty.
    records : Relation
        Its records.
    """

    item = "record"

    def _take_target(self, target: str | None) -> None:
        """Find the relation of the records with labels."""
        name = self._labelled_relation() if self.has_types and target is None else target
        number = self.relation(name)
        of = edge_types(self.partition)[number]
        self.key, self.records = key_of(of), of.relation
        self._entry = self.manifest["relations"][number] if self.has_types else self.manifest

    def _labelled_relation(self) -> str:
        """Return the relation that has labels and records to train on."""
        known = self.manifest["relations"]
        found = [
            each["name"]
            for each in known
            if EDGE_LABELS in each and "train" in each.get(EDGE_LABEL_SPLITS, [])
        ]
        nothing = (
            f"source: no relation in {shown(self.path)} has labels and training records. Save the partition with "
            + saving([EDGE_LABELS, EDGE_LABEL_SPLITS], known[0]["name"])
        )
        return the_only(found, "relation", "records", nothing)

    def _refuse_incomplete(self) -> None:
        needed = [EDGE_LABELS] if self.has_types else ["features", EDGE_LABELS]
        missing = [name for name in needed if name not in self._entry]
        if "train" not in self.known["splits"]:
            missing.append(EDGE_LABEL_SPLITS)
        self._refuse_missing(missing, self.records.name)
        refuse_without_edges(self.partition, "source")

    def _task(self) -> Task:
        if not self.has_types:
            return super()._task()
        return self.task_of_ends([self.key], **self._outputs())

    def _edge_width(self) -> int:
        """Return the width of the features of the records."""
        row = rows_of_relation(self.partition.parts[0], self.records.name).row_type("edge_features")
        return 0 if row is None else math.prod(row[1])

    @property
    def known(self) -> Mapping[str, Any]:
        """The entry of the manifest that describes the labels of the records."""
        return {"splits": self._entry.get(EDGE_LABEL_SPLITS, [])}

    def labelled(self, part: VertexPartData) -> Records:
        """Return the records of a part."""
        return Records(rows_of_relation(part, self.records.name), int(self.manifest["m"]))

    def ids_of(self, part: VertexPartData, places: Ids) -> Ids:
        """Return the numbers of records in their relation."""
        return self.labelled(part).ids[places]

    def inputs_of(self, part: VertexPartData, places: Ids) -> npt.NDArray[np.float32] | None:
        """Return the features of both ends of records, and those of the records, beside each other."""
        records = self.labelled(part)
        ends = records.ends(records.places[places])
        rows = [
            self._features_of(name, ids)
            for name, ids in zip(self.key[::2], np.ascontiguousarray(ends.T), strict=True)
        ]
        attributes = attributes_of(records.of, records.places[places])
        known = [
            *(each for each in rows if each is not None),
            *([] if attributes is None else [attributes.numpy()]),
        ]
        return np.concatenate(known, axis=1) if known else None

    def _features_of(self, name: str, ids: Ids) -> npt.NDArray[np.float32] | None:
        """Return the features of vertices of a type, if it has some. Codes of categories are left out."""
        parts, starts = of_type(self.partition, name), self.topology.starts
        if parts[0].stored_features is None:
            return None
        numbers = np.delete(
            np.arange(width_of((parts[0].row_type("features") or (0, ()))[1])),
            [each.place for each in self.task.categories.get(name, {}).values()],
        )
        found, rows = np.empty((len(ids), len(numbers)), np.float32), self.topology.rows_of(ids)
        owners = owner_of(rows, starts)
        for owner in np.flatnonzero(np.bincount(owners, minlength=1)).tolist():
            those, of = np.flatnonzero(owners == owner), parts[owner]
            local = (rows[those].astype(np.int64) - (int(starts[owner]) + of.first_inner)).astype(np.int32)
            found[those] = of.features_of(local)[:, numbers]
        return found

    @property
    def codes(self) -> Embedded:
        """Nothing: codes are left out."""
        return {}

    @cached_property
    def supervision(self) -> Supervision:
        """The records to train on."""
        pieces: list[tuple[Ids, Ids, Ids, Ids]] = []
        labels = []
        for part in self.partition.parts:
            chosen = self.splits(part)["train"].numpy()
            records = self.labelled(part)
            places = records.places[chosen]
            pieces.append(
                (records.ids[chosen], records.ends(places), np.full(len(places), part.index), places)
            )
            labels.append(self.labels(part)[chosen])
        ids, pairs, parts, places = (np.concatenate(each) for each in zip(*pieces, strict=True))
        order = np.argsort(ids)
        return Supervision(pairs[order], parts[order], places[order], torch.cat(labels)[order])


def attributes_of(rows: RelationData, places: Ids) -> Tensor | None:
    """Return the features of in-edges of a relation in a part, if there are any."""
    found = rows.edge_features_of(places)
    if found is None:
        return None
    return torch.from_numpy(np.asarray(found, np.float32).reshape(len(found), math.prod(found.shape[1:])))
