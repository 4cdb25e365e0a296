"""A partition directory with labels of edges. Each record counts once, in the part of its target."""

from __future__ import annotations

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
from ....errors import ParameterError, code
from ....partitions.parts import VertexPartData
from ...data import Dataset

Ids = npt.NDArray[np.int64]


class Records:
    """The records whose target is an inner vertex of a part, with the attributes of the vertices of a part.

    Attributes
    ----------
    places : numpy.ndarray
        int64: the in-edge of the part that has the direction of each record.
    num_inner : int
        Their number.
    """

    def __init__(self, part: VertexPartData, m: int) -> None:
        edges = int(part.indptr[part.num_inner])
        self._part, self.places = part, np.flatnonzero(part.edge_ids[:edges] < m)
        self.num_inner = len(self.places)

    @property
    def ids(self) -> Ids:
        """Numbers of the records."""
        return self._part.edge_ids[self.places]

    def __getattr__(self, name: str) -> Any:
        """Return ``labels``, ``train``, ``val`` or ``test``, a row for each record, None without such rows."""
        if name not in ("labels", "train", "val", "test"):
            raise AttributeError(name)
        rows = getattr(self._part, EDGE_LABELS if name == "labels" else f"edge_label_{name}")
        return None if rows is None else rows[self.places]


@dataclass(frozen=True, eq=False)
class Supervision:
    """The records to train on, in their order, which no partition changes.

    Attributes
    ----------
    pairs : numpy.ndarray
        int64, of shape (records, 2): source and target.
    parts, places : numpy.ndarray
        Part of the target of each, and place of the record among the in-edges of the part.
    labels : torch.Tensor
        The labels.
    """

    pairs: Ids
    parts: Ids
    places: Ids
    labels: Tensor


class LabelledEdges(Dataset):
    """A partition of the vertices with labels of edges. Its ``task`` is to tell these from both ends of an edge."""

    item = "record"

    def _take_target(self, target: str | None) -> None:
        if self.has_types:
            raise ParameterError(
                f"source: {shown(self.path)} holds a graph with types. Edges are classified in graphs without types"
            )

    def _refuse_incomplete(self) -> None:
        missing = [name for name in ("features", EDGE_LABELS) if name not in self.manifest]
        if "train" not in self.manifest.get(EDGE_LABEL_SPLITS, []):
            missing.append(EDGE_LABEL_SPLITS)
        if missing:
            given = ", ".join(f"{name}=..." for name in missing)
            options = " ".join(f"--{name.replace('_', '-')} FILE" for name in missing)
            raise ParameterError(
                f"source: {shown(self.path)} holds no {', no '.join(missing)}. Save the partition with "
                + code(f"p.save(DIR, graph=..., {given})", f"`fastpart partition GRAPH -o DIR {options}`")
            )
        self.partition.refuse_without_edges("source")

    @property
    def known(self) -> Mapping[str, Any]:
        """The entries of the manifest that describe labelled records."""
        return {"labels": self.manifest[EDGE_LABELS], "splits": self.manifest[EDGE_LABEL_SPLITS]}

    def labelled(self, part: VertexPartData) -> Any:
        """Return the records of a part."""
        return Records(part, int(self.manifest["m"]))

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
                (records.ids[chosen], ends_of(part, places), np.full(len(places), part.index), places)
            )
            labels.append(self.labels(part)[chosen])
        ids, pairs, parts, places = (np.concatenate(each) for each in zip(*pieces, strict=True))
        order = np.argsort(ids)
        return Supervision(pairs[order], parts[order], places[order], torch.cat(labels)[order])

    def attributes(self, part: VertexPartData, places: Ids) -> Tensor | None:
        """Return the features of some in-edges of a part, if there are any."""
        rows, width = part.edge_features_of(places), self.task.edge_features
        return None if rows is None else torch.from_numpy(np.asarray(rows, np.float32).reshape(-1, width))


def ends_of(part: VertexPartData, places: Ids) -> Ids:
    """Return the ids of source and target of some in-edges of a part, of shape (in-edges, 2)."""
    targets = np.searchsorted(part.indptr, places, side="right") - 1
    return np.stack([part.vertices[part.indices[places]], part.vertices[targets]], axis=1)
