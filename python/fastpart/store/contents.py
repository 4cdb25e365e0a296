"""The data that a partition directory holds beside the partition, checked before any work."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.inputs import labels_of, match_vertices, splits_of
from ..core.options import Options
from ..core.parameters import FeatureDtype, shown
from ..core.rows import Rows, rows_of
from ..errors import ParameterError
from ..graphs.graph import Graph
from ..graphs.splits import Pairs
from ..partitions.saved import SAVE_DEFAULTS, SavedData
from .coding import Features, stored_features
from .edge_splits import held_out_of

HALO_HOPS = (0, 1, 2)


@dataclass(frozen=True)
class Contents:
    """Rows to distribute over the parts, one per vertex, or one per record for ``edge_features`` and ``edge_times``."""

    features: Features | None
    edge_features: Rows | None
    labels: Rows | None
    masks: Mapping[str, Rows]
    halo_hops: int
    halo_features: bool
    times: Rows | None = None
    edge_times: Rows | None = None
    held_out: Mapping[str, Pairs] | None = None
    """Pairs of vertices to validate and to test on. None without edge splits."""


class Extras(dict[str, Any]):
    """The arguments about the data in a directory, by name. See :func:`fastpart.store.save`."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> tuple[Extras, Options]:
        """Tell these arguments from the options of a call."""
        names = SavedData.__annotations__
        extras = {**dict.fromkeys(names), **SAVE_DEFAULTS} | {
            name: given[name] for name in names if name in given
        }
        return cls(extras), cast(Options, {name: given[name] for name in given if name not in names})

    def check(self, target: Path | None, form: str, of: str, *, graph: bool) -> None:
        """Refuse parameters that contradict each other, the output, its format or the type of the partition."""
        if parameters.integer("halo_hops", self["halo_hops"], 0, 2**31) not in HALO_HOPS:
            raise ParameterError(f"halo_hops: {self['halo_hops']} is not one of 0, 1, 2")
        for name in ("halo_features", "standardise"):
            parameters.flag(name, self[name])
        for name in self._given():
            if form != "directory":
                raise ParameterError(
                    f"{name}: needs a partition directory. Choose an output without a suffix or with a trailing /"
                )
            if not graph:
                raise ParameterError(f"{name}: needs graph=, since this partition does not know its graph")
            if name.startswith("halo_") and of == "edges":
                raise ParameterError(f"{name}: the parts of an edge partition have no halo")
        if self["edge_splits"] is not None and (of == "edges" or self["halo_hops"] < 1):
            raise ParameterError(
                "edge_splits: links are trained over parts of the vertices, saved with halo_hops=1 or 2"
            )
        if self["feature_dtype"] is not None:
            parameters.choice("feature_dtype", self["feature_dtype"], get_args(FeatureDtype))
        for name in ("halo_features", "feature_dtype", "standardise"):
            if self[name] and self["features"] is None:
                raise ParameterError(f"{name}: there are no features. Pass features=")
        if self["standardise"] and self["splits"] is None:
            raise ParameterError("standardise: takes the statistics of the training vertices. Pass splits=")
        if target is not None:
            self._refuse_inside(target)

    def _given(self) -> Iterator[str]:
        """Yield the names of arguments that differ from their defaults."""
        for name, value in self.items():
            default = SAVE_DEFAULTS.get(name)
            if not (value is default or (name.startswith("halo_") and value == default)):
                yield name

    def measured(self) -> dict[str, Any]:
        """Return what the measures of a partition take."""
        return {name: self[name] for name in ("labels", "splits", "split")}

    def _refuse_inside(self, target: Path) -> None:
        """Refuse files that replacing the target would delete."""
        folder = target.resolve()
        for name, value in self.items():
            if isinstance(value, np.memmap):
                value = value.filename
            if isinstance(value, str | bytes | os.PathLike):
                file = parameters.path(name, value)
                if Path(os.path.realpath(file)).is_relative_to(
                    folder
                ):  # resolve() fails where links form a circle
                    raise ParameterError(
                        f"{name}: {shown(file)} lies in the output directory and would be deleted. Move it, or "
                        "choose another output"
                    )

    def open(self, graph: Graph, memory_limit: int | None) -> Contents:
        """Open all files, and refuse those that do not fit the graph."""
        n, m, ids = graph.num_vertices, graph.num_edges, graph._id_tables
        given = edge_features = features = None
        if self["features"] is not None:
            given = rows_of("features", self["features"], memory_limit, fields=True)
            match_vertices("features", len(given), n)
        if self["edge_features"] is not None:
            edge_features = rows_of("edge_features", self["edge_features"], memory_limit)
            _match_records("edge_features", len(edge_features), m)
        times, edge_times = self._times("times", memory_limit), self._times("edge_times", memory_limit)
        if times is not None:
            match_vertices("times", len(times), n)
        if edge_times is not None:
            _match_records("edge_times", len(edge_times), m)
        labels = None if self["labels"] is None else rows_of("labels", labels_of(self["labels"], n, ids))
        masks = {} if self["splits"] is None else _masks(splits_of(self["splits"], n, self["split"], ids), n)
        if given is not None:
            train = masks.get("train", np.zeros(n, np.bool_)) if self["standardise"] else None
            features = stored_features(given, self["feature_dtype"], train)
        held_out = None if self["edge_splits"] is None else held_out_of(self["edge_splits"], n)
        hops, halo_features = self["halo_hops"], self["halo_features"]
        splits = {name: rows_of(name, mask) for name, mask in masks.items()}
        return Contents(
            features, edge_features, labels, splits, hops, halo_features, times, edge_times, held_out
        )

    def _times(self, name: str, memory_limit: int | None) -> Rows | None:
        """Open times, one whole number per row."""
        if self[name] is None:
            return None
        rows = rows_of(name, self[name], memory_limit)
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


def _match_records(name: str, rows: int, m: int) -> None:
    """Refuse rows of another number than m."""
    if rows != m:
        raise ParameterError(f"{name}: {rows} rows for {m} records. Expected one row per record")


def _masks(splits: Mapping[str, npt.NDArray[np.int64]], n: int) -> dict[str, npt.NDArray[np.bool_]]:
    masks = {name: np.zeros(n, dtype=np.bool_) for name in splits}
    for name, ids in splits.items():
        masks[name][ids] = True
    return masks
