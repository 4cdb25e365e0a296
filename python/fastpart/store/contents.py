"""The data that a partition directory holds beside the partition, opened and checked before any work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.ids import Ids, of_name
from ..core.inputs import labels_of, labels_of_records, match_records, splits_of, splits_of_records
from ..core.options import RunOptions
from ..core.outputs import held
from ..core.rows import Rows, rows_of
from ..core.vertex_rows import rows_of_records, rows_of_vertices
from ..errors import FastpartError, ParameterError
from ..graphs.embedded_columns import embedded_beside
from ..graphs.held_out import Pairs
from ..graphs.types import TypedRanges
from ..partitions.saved import SavedData
from .coding import Features, stored_features
from .edge_splits import held_out_from, held_out_of


@dataclass(frozen=True)
class Contents:
    """Rows to distribute over the parts, one per vertex, or one per record.

    Those of a typed graph lie in ``of_types`` and ``of_relations``.
    """

    halo_hops: int
    halo_features: bool
    features: Features | None = None
    labels: Rows | None = None
    masks: Mapping[str, Rows] = field(default_factory=dict)
    times: Rows | None = None
    edge_features: Features | None = None
    edge_labels: Rows | None = None
    edge_masks: Mapping[str, Rows] = field(default_factory=dict)
    edge_times: Rows | None = None
    held_out: Mapping[str, Pairs] | None = None
    """Pairs of vertices to validate and to test on. None without edge splits."""
    held_out_from: int | None = None
    """Their earliest time. None if they were not split by time."""
    of_types: Mapping[str, Contents] = field(default_factory=dict)
    of_relations: Mapping[str, Contents] = field(default_factory=dict)

    @property
    def members(self) -> dict[str, npt.NDArray[np.int64]]:
        """The vertices in each split."""
        return {name: np.flatnonzero(mask.read(0, len(mask))) for name, mask in self.masks.items()}

    def splits_of(self, typed: TypedRanges) -> dict[str, npt.NDArray[np.int64]]:
        """Return the vertices of all types in each split."""
        found: dict[str, list[npt.NDArray[np.int64]]] = {}
        for each in typed.types:
            for name, ids in self.of_types[each.name].members.items():
                found.setdefault(name, []).append(each.first + ids)
        return {name: np.concatenate(ids) for name, ids in found.items()}


def holds(contents: Contents | None) -> list[str]:
    """Return what a partition directory with such contents holds, in words. None: the assignment only."""
    if contents is None:
        return []
    types = [{"name": name, **_entries(each)} for name, each in contents.of_types.items()]
    relations = [{"name": name, **_entries(each)} for name, each in contents.of_relations.items()]
    return held({"num_directed_edges": True, **_entries(contents), "types": types, "relations": relations})


def _entries(contents: Contents) -> dict[str, Any]:
    """Return the entries of a manifest that say what is stored."""
    return {
        "features": contents.features is not None,
        "halo_features": contents.halo_features and contents.features is not None,
        "labels": contents.labels is not None,
        "splits": contents.masks,
        "times": contents.times is not None,
        "edge_features": contents.edge_features is not None,
        "edge_labels": contents.edge_labels is not None,
        "edge_label_splits": contents.edge_masks,
        "edge_times": contents.edge_times is not None,
        "edge_splits": contents.held_out is not None,
    }


class Given:
    """The options about data, complete. ``ids`` are those that the vertices had in tables."""

    def __init__(self, given: SavedData, options: RunOptions, ids: Ids) -> None:
        self._given, self._options, self._ids = given, options, ids
        self._shape: dict[str, Any] = {name: getattr(given, name) for name in ("halo_hops", "halo_features")}

    def open(self, n: int, m: int) -> Contents:
        """Open the data of a plain graph."""
        given = self._given.edge_splits
        held_out = None if given is None else held_out_of(given, n)
        rows = self._of_vertices(self._given, n, self._ids) | self._of_edges(self._given, m)
        since = None if given is None else held_out_from(given)
        return Contents(**self._shape, **rows, held_out=held_out, held_out_from=since)

    def open_typed(self, typed: TypedRanges) -> Contents:
        """Open the data of each type and relation."""
        of_types, of_relations = dict[str, Contents](), dict[str, Contents]()
        for each in typed.types:
            with _About("type", each.name) as about:
                rows = self._of_vertices(self._of(each.name), each.n, of_name(self._ids, each.name), about)
            of_types[each.name] = Contents(**self._shape, **rows)
        for relation in typed.relations:
            with _About("relation", relation.name) as about:
                rows = self._of_edges(self._of(relation.name), relation.m, about)
            of_relations[relation.name] = Contents(**self._shape, **rows)
        given, n = self._given.edge_splits, sum(each.n for each in typed.types)
        held_out = None if given is None else held_out_of(given, n, typed)
        return Contents(**self._shape, of_types=of_types, of_relations=of_relations, held_out=held_out)

    def _of(self, name: str) -> SavedData:
        """Return the options for a type or a relation."""
        of: dict[str, Any] = {
            key: value.get(name) for key, value in vars(self._given).items() if isinstance(value, Mapping)
        }
        return replace(self._given, **of)

    def _of_vertices(self, given: SavedData, n: int, ids: Ids, about: str = "") -> dict[str, Any]:
        opened: Rows | None = None
        if given.features is not None:
            opened = rows_of_vertices("features", given.features, n, ids, self._options, fields=True)
            if len(opened.shape) == 1 and not opened.dtype.names:
                raise ParameterError(
                    f"features: shape {opened.shape}, expected one row per vertex. Give a single feature the shape "
                    f"({n}, 1)"
                )
        labels = None if given.labels is None else rows_of("labels", labels_of(given.labels, n, ids))
        splits = {} if given.splits is None else splits_of(given.splits, n, given.split, ids, about)
        masks = _masks(splits, n)
        times = None
        if given.times is not None:
            times = _whole("times", rows_of_vertices("times", given.times, n, ids, self._options))
        features = None
        if opened is not None:
            train = None
            if given.standardise:  # a type without splits is standardised as a whole
                train = masks.get("train", np.zeros(n, np.bool_)) if masks else np.ones(n, np.bool_)
            embedded = embedded_beside(given.features)
            features = stored_features(opened, given.feature_dtype, train, embedded=embedded)
        return {
            "features": features,
            "labels": labels,
            "masks": {name: rows_of(name, mask) for name, mask in masks.items()},
            "times": times,
        }

    def _of_edges(self, given: SavedData, m: int, about: str = "") -> dict[str, Any]:
        edge_features = None
        if given.edge_features is not None:
            rows = self._of_records("edge_features", given.edge_features, m)
            edge_features = stored_features(rows, given.edge_feature_dtype, None, "edge_features")
        times = None
        if given.edge_times is not None:
            times = _whole("edge_times", self._of_records("edge_times", given.edge_times, m))
        labels = None
        if given.edge_labels is not None:
            labels = rows_of("edge_labels", labels_of_records(given.edge_labels, m))
        splits = {}
        if given.edge_label_splits is not None:
            splits = splits_of_records(given.edge_label_splits, m, about)
        masks = {name: rows_of(name, mask) for name, mask in _masks(splits, m).items()}
        return {
            "edge_features": edge_features,
            "edge_labels": labels,
            "edge_masks": masks,
            "edge_times": times,
        }

    def _of_records(self, name: str, given: Any, m: int) -> Rows:
        """Return one row per record. Records have no ids, so the order of the rows is theirs."""
        rows = rows_of_records(name, given, self._options)
        match_records(name, len(rows), m)
        return rows


def _whole(name: str, rows: Rows) -> Rows:
    """Return times, one whole number per row."""
    if rows.dtype.kind not in "iu" or rows.dtype == np.uint64:
        raise TypeError(f"{name}: expected whole numbers of int64, got {rows.dtype}")
    if rows.shape[1:] not in ((), (1,)):
        raise ParameterError(f"{name}: shape {rows.shape}, expected one number per row")
    read = rows.read
    return Rows(
        rows.shape[:1],
        np.dtype(np.int64),
        lambda start, stop: read(start, stop).reshape(-1).astype(np.int64),
    )


class _About:
    """Adds to errors in the block which type or relation they are about. Warnings there begin with the same words."""

    def __init__(self, what: str, name: str) -> None:
        self._about = f"{what} {name!r}: "

    def __enter__(self) -> str:
        return self._about

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, FastpartError | TypeError) and error.args:
            error.args = (f"{self._about}{error.args[0]}", *error.args[1:])


def _masks(splits: Mapping[str, npt.NDArray[np.int64]], n: int) -> dict[str, npt.NDArray[np.bool_]]:
    masks = {name: np.zeros(n, dtype=np.bool_) for name in splits}
    for name, ids in splits.items():
        masks[name][ids] = True
    return masks
