"""Rows of a partition directory by id, as PyG's loaders ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import FeatureStore, TensorAttr

from .. import _core
from ..errors import FastpartError
from ..partitions.part_files import PartFiles
from ..partitions.partition import VertexPartition
from ..partitions.types import EdgeKey

Ids = npt.NDArray[np.int64]
Group = str | EdgeKey | None
"""What PyG calls the group of rows: a type, a relation, or None in a graph without types."""

_SPLITS = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}


class VertexRows:
    """Rows of all vertices by id. Files are mapped when they are asked for.

    Attributes
    ----------
    names : dict of str
        Name of the file of each attribute.
    """

    _of_files: ClassVar = {"x": "features", "y": "labels", "time": "times"}

    def __init__(self, partition: VertexPartition) -> None:
        self._partition = partition
        manifest = self._parts()[0]._manifest
        splits = manifest.get("splits", [])
        self.names = {name: file for name, file in self._of_files.items() if file in manifest}
        self.names |= {name: file for name, file in _SPLITS.items() if file in splits}
        self._files: dict[str, _core.Features] = {}

    def __len__(self) -> int:
        return len(self._partition)

    def _parts(self) -> Sequence[PartFiles]:
        return self._partition.parts

    @property
    def starts(self) -> Ids:
        """First row of each part, and the number of rows."""
        return self._partition._topology.starts

    def rows_of(self, ids: Ids) -> npt.NDArray[Any]:
        """Return the row of each id in the files of the parts, one behind the other."""
        return self._partition._topology.rows_of(ids)

    def read(self, name: str, rows: npt.NDArray[Any]) -> Tensor:
        """Return some rows of an attribute."""
        if name not in self._files:
            file, topology, parts = self.names[name], self._partition._topology, self._parts()
            files = [part._file(f"{file}.npy") for part in parts]
            features, coding = _core.Features(files, topology, starts=self.starts), parts[0].coding(file)
            self._files[name] = features if coding is None else features.decoded(coding.core)
        return torch.from_numpy(self._files[name].gather(rows))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_files": {}}


class PartitionFeatures(FeatureStore):
    """Rows of a partition directory, read-only. See :func:`fastpart.pyg.feature_store`.

    ``groups`` has those of each type and relation, or only None in a graph without types.
    """

    def __init__(self, groups: Mapping[Any, VertexRows]) -> None:
        super().__init__()
        self._groups: dict[Group, VertexRows] = dict(groups)

    def _of(self, attr: TensorAttr) -> VertexRows | None:
        rows = self._groups.get(None if None in self._groups else attr.group_name)
        return rows if rows is not None and attr.attr_name in rows.names else None

    def _get_tensor(self, attr: TensorAttr) -> Tensor | None:
        return self._multi_get_tensor([attr])[0]

    def _multi_get_tensor(self, attrs: list[TensorAttr]) -> list[Tensor | None]:
        found: list[Tensor | None] = []
        known: dict[Any, npt.NDArray[Any]] = {}  # loaders ask for all attributes of the same vertices
        for attr in attrs:
            of, key = self._of(attr), (attr.group_name, id(attr.index))
            if of is not None and key not in known:
                known[key] = of.rows_of(_ids_of(attr, len(of)))
            found.append(None if of is None else of.read(attr.attr_name, known[key]))
        return found

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...] | None:
        of = self._of(attr)
        if of is None:
            return None
        return (len(of), *of.read(attr.attr_name, np.zeros(0, np.uint32)).shape[1:])

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """Return one attribute per array that was saved."""
        return [
            TensorAttr(group_name=group, attr_name=name)
            for group, rows in self._groups.items()
            for name in rows.names
        ]

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        raise FastpartError("feature_store: a partition directory is read-only")

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        raise FastpartError("feature_store: a partition directory is read-only")

    def __repr__(self) -> str:
        names = (
            name if group is None else f"{group}: {name}"
            for group, rows in self._groups.items()
            for name in rows.names
        )
        return f"PartitionFeatures({', '.join(names)})"


def _ids_of(attr: TensorAttr, count: int) -> Ids:
    """Return the ids that an attribute asks for, of so many."""
    index = slice(None) if not attr.is_set("index") or attr.index is None else attr.index
    ids = np.arange(count)[index] if isinstance(index, slice) else np.asarray(index)
    ids = np.flatnonzero(ids) if ids.dtype == np.bool_ else ids.astype(np.int64)
    return np.ascontiguousarray(ids.reshape(-1))
