"""The result of a sampler: nodes by level, and a CSR over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError
from ..partitions.types import EdgeKey


class SampledArrays(Protocol):
    """A batch of the core, or a :class:`Sample` with ids."""

    @property
    def rows(self) -> npt.NDArray[np.uint32]: ...  # noqa: D102
    @property
    def n_id(self) -> npt.NDArray[np.int64]: ...  # noqa: D102
    @property
    def indptr(self) -> npt.NDArray[np.int32]: ...  # noqa: D102
    @property
    def indices(self) -> npt.NDArray[np.int32]: ...  # noqa: D102
    @property
    def e_id(self) -> npt.NDArray[np.int64] | None: ...  # noqa: D102
    @property
    def edge_rows(self) -> npt.NDArray[np.int64] | None: ...  # noqa: D102
    @property
    def num_sampled_nodes(self) -> list[int]: ...  # noqa: D102
    @property
    def num_sampled_edges(self) -> list[int]: ...  # noqa: D102
    @property
    def seed_time(self) -> npt.NDArray[np.int64] | None: ...  # noqa: D102
    @property
    def features(self) -> npt.NDArray[Any] | None: ...  # noqa: D102
    @property
    def edge_features(self) -> npt.NDArray[Any] | None: ...  # noqa: D102


@dataclass(frozen=True, eq=False, kw_only=True)
class Sample:
    """The neighbourhood of some seeds, as a sampler of your own returns it.

    In a graph with types every field is a list. Fields of nodes have an entry for each type of ``loader.types``, and
    fields of in-edges for each relation of ``loader.edge_types``. Rows count within the type. Sources are places among
    the nodes of their type.
    ``edge_rows`` and features are left out.

    Attributes
    ----------
    rows : numpy.ndarray
        uint32: row of each node, level by level. Those of level 0 are the seeds.
    indptr, indices : numpy.ndarray
        int32: the sources of node i are the nodes ``indices[indptr[i]:indptr[i + 1]]``. Nodes of the last level have
        no sources, and no place in ``indptr``.
    num_sampled_nodes, num_sampled_edges : list of int
        Nodes of each level, and in-edges of the nodes of each level but the last.
    e_id : numpy.ndarray, optional
        int64: id of each in-edge. Without it there are no features of in-edges.
    edge_rows : numpy.ndarray, optional
        int64: row of each in-edge in the directory: its place in its part, behind the in-edges of the parts before it.
        The loader finds them.
    n_id : numpy.ndarray
        int64: original id of each node. The loader finds them.
    features : numpy.ndarray, optional
        A row per node. The loader reads them.
    edge_features : numpy.ndarray, optional
        A row per in-edge. The loader reads them.
    seed_time : numpy.ndarray, optional
        int64: time of the seed that each node belongs to. Only temporal samplers of the core give it.
    """

    rows: npt.NDArray[np.uint32]
    indptr: npt.NDArray[np.int32]
    indices: npt.NDArray[np.int32]
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]
    e_id: npt.NDArray[np.int64] | None = None
    edge_rows: npt.NDArray[np.int64] | None = None
    n_id: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    features: npt.NDArray[Any] | None = None
    edge_features: npt.NDArray[Any] | None = None
    seed_time: npt.NDArray[np.int64] | None = None


_ARRAYS = {
    "rows": np.uint32,
    "indptr": np.int32,
    "indices": np.int32,
    "n_id": np.int64,
    "e_id": np.int64,
    "edge_rows": np.int64,
}
OF_NODES = ("rows", "n_id", "num_sampled_nodes")
_OPTIONAL = ("e_id", "edge_rows")
_COUNTS = ("num_sampled_nodes", "num_sampled_edges")


def refuse_other_types(sample: object, types: int | None = None, relations: int = 0) -> None:
    """Raise an error unless what a user's function returned has the fields of a sample.

    In a graph with types the fields are lists. ``types`` and ``relations`` are the numbers of their entries.
    """
    for name, dtype in _ARRAYS.items():
        found = getattr(sample, name, None)
        if found is None and name in _OPTIONAL:
            continue
        for each in _entries(name, found, types, relations):
            if not isinstance(each, np.ndarray) or each.dtype != dtype or each.ndim != 1:
                raise _refusal(name, f"no array of {np.dtype(dtype)} and one dimension")
    for name in _COUNTS:
        for found in _entries(name, getattr(sample, name, None), types, relations):
            if not isinstance(found, list | tuple) or not all(
                isinstance(count, int | np.integer) and count >= 0 for count in found
            ):
                raise _refusal(name, "no list of counts")
    for name in ("features", "edge_features"):
        features = getattr(sample, name, None)
        if features is not None and (types is not None or not isinstance(features, np.ndarray)):
            raise _refusal(name, "no array, and not None" if types is None else "not None")


def _entries(name: str, value: Any, types: int | None, relations: int) -> list[Any]:
    """Return the entries of a field. In a graph without types the field is its only entry."""
    if types is None or (name == "n_id" and isinstance(value, np.ndarray) and not len(value)):
        return [value]
    count = types if name in OF_NODES else relations
    if not isinstance(value, list | tuple) or len(value) != count:
        raise _refusal(
            name, f"no list with an entry for each of {count} {'types' if name in OF_NODES else 'relations'}"
        )
    return list(value)


def entries_of(sample: SampledArrays) -> dict[str, Any]:
    """Return the fields of a :class:`Sample` that a batch or the result of a user's function has."""
    return {each.name: getattr(sample, each.name, None) for each in fields(Sample)}


def _refusal(name: str, what: str) -> ParameterError:
    return ParameterError(
        f"neighbourhood: {name} of the sample it returned is {what}. Return a fastpart.loading.Sample"
    )


def refuse_broken(sample: SampledArrays, seeds: npt.NDArray[np.uint32], hops: int) -> None:
    """Raise an error unless the sample of a user's function is a batch of these seeds."""
    levels, edges = list(sample.num_sampled_nodes), list(sample.num_sampled_edges)
    _refuse(
        f"num_sampled_nodes and num_sampled_edges: expected {hops + 1} and {hops} numbers, one per level and hop"
        if (len(levels), len(edges)) != (hops + 1, hops)
        else _wrong_nodes(sample.rows, seeds, levels, sample.n_id)
        or _wrong_edges(
            sample.indptr,
            sample.indices,
            levels,
            edges,
            len(sample.rows),
            sample.e_id,
            getattr(sample, "edge_rows", None),
        )
        or (
            f"features: expected None, or a row for each of the {len(sample.rows)} nodes"
            if sample.features is not None and sample.features.shape[:1] != sample.rows.shape
            else None
        )
    )


def refuse_broken_by_type(
    sample: Any,
    seeds: Sequence[npt.NDArray[np.uint32]],
    hops: int,
    types: list[str],
    relations: list[EdgeKey],
) -> None:
    """Raise an error unless the sample of a user's function is a batch of the seeds of each type."""
    if any(len(each) != hops + 1 for each in sample.num_sampled_nodes) or any(
        len(each) != hops for each in sample.num_sampled_edges
    ):
        _refuse(f"num_sampled_nodes and num_sampled_edges: expected {hops + 1} and {hops} numbers of each")
    ids = sample.n_id if len(sample.n_id) else [np.empty(0, np.int64)] * len(types)
    for name, *of_type in zip(types, sample.rows, seeds, sample.num_sampled_nodes, ids, strict=True):
        _refuse(_wrong_nodes(*of_type), f" of {name!r}")
    for number, (source, name, target) in enumerate(relations):
        of_edges = (sample.indptr[number], sample.indices[number])
        levels, edges = sample.num_sampled_nodes[types.index(target)], sample.num_sampled_edges[number]
        e_id = None if sample.e_id is None else sample.e_id[number]
        sources = len(sample.rows[types.index(source)])
        _refuse(_wrong_edges(*of_edges, list(levels), list(edges), sources, e_id), f" of {name!r}")


def _refuse(broken: str | None, of: str = "") -> None:
    if broken:
        name, colon, rest = broken.partition(":")
        raise ParameterError(f"neighbourhood: the sample it returned has wrong {name}{of}{colon}{rest}")


def _wrong_nodes(
    rows: npt.NDArray[np.uint32],
    seeds: npt.NDArray[np.uint32],
    levels: Sequence[int],
    n_id: npt.NDArray[np.int64],
) -> str | None:
    """Return what is wrong about the nodes of a sample, or of one type."""
    return (
        f"rows: expected as many as nodes, {sum(levels)}, got {len(rows)}"
        if sum(levels) != len(rows)
        else "rows: the first are not the seeds"
        if not np.array_equal(rows[: levels[0]], seeds)
        else f"n_id: expected none, or one for each of the {len(rows)} nodes"
        if len(n_id) not in (0, len(rows))
        else None
    )


def _wrong_edges(
    indptr: npt.NDArray[np.int32],
    indices: npt.NDArray[np.int32],
    levels: list[int],
    edges: list[int],
    sources: int,
    e_id: npt.NDArray[np.int64] | None,
    edge_rows: npt.NDArray[np.int64] | None = None,
) -> str | None:
    """Return what is wrong about the in-edges of a sample, or of one relation, given the nodes of its targets."""
    targets = sum(levels[:-1])
    return (
        f"indptr: expected {targets + 1} numbers that ascend from 0 to the number of in-edges"
        if len(indptr) != targets + 1
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or np.any(np.diff(indptr) < 0)
        else f"indices: a source is not one of the {sources} nodes"
        if len(indices) and not 0 <= indices.min() <= indices.max() < sources
        else f"num_sampled_edges: expected in-edges of each level, {hop_edges}, got {edges}"
        if (hop_edges := _edges_of(indptr, levels)) != edges
        else f"e_id: expected None, or one for each of the {len(indices)} in-edges"
        if e_id is not None and len(e_id) != len(indices)
        else f"edge_rows: expected None, or one for each of the {len(indices)} in-edges"
        if edge_rows is not None and len(edge_rows) != len(indices)
        else None
    )


def _edges_of(indptr: npt.NDArray[np.int32], levels: list[int]) -> list[int]:
    """Return the in-edges of the nodes of each level but the last."""
    bounds = np.cumsum([0, *levels[:-1]])
    return np.diff(indptr[bounds]).tolist()
