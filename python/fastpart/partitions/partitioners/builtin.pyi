# Written by `make stubs`. Do not edit.
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Unpack, overload

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core.options import Options
from ...core.parameters import StrPath
from ...machines.partitioning import Place
from ..partition import EdgePartition, Partition, VertexPartition

__all__: list[str] = [
    "bytegnn",
    "dbh",
    "edges_of",
    "fennel",
    "greedy",
    "grem",
    "hash",
    "hdrf",
    "hep",
    "ldg",
    "multilevel",
    "random",
    "refennel",
    "refine",
    "reldg",
    "sigma",
    "spring",
    "two_phase",
    "update",
]

ALGORITHMS: dict[str, _core.Algorithm]
PARTITIONERS: dict[str, Callable[..., Partition]]
SUCCESSORS: dict[str, _core.Algorithm]

def on_machines(algorithm: str, place: Place, graph: Any, k: int, **given: Any) -> Partition: ...

def spring(
    graph: Any,
    k: int,
    *,
    balance: float = 1.05,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    seed: int = 0,
    passes: int = 1,
    batch: int | None = None,
    strict: bool = True,
    degrees: npt.NDArray[np.uint32] | None = None,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
@overload
def sigma(
    graph: Any,
    k: int,
    *,
    of: Literal["vertices"] = "vertices",
    objective: Literal["multi", "cut"] = "multi",
    balance: float | None = None,
    volume_balance: float = 1.1,
    tau: float = 0.5,
    gamma: float = 2.5,
    balance_weight: float = 1.0,
    bands: int = 8,
    strict: bool = True,
    refine: bool = False,
    batch: int | None = None,
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> VertexPartition: ...
@overload
def sigma(
    graph: Any,
    k: int,
    *,
    of: Literal["edges"],
    objective: Literal["multi", "cut"] = "multi",
    balance: float | None = None,
    volume_balance: float = 1.1,
    tau: float = 0.5,
    gamma: float = 2.5,
    balance_weight: float = 1.0,
    bands: int = 8,
    strict: bool = True,
    refine: bool = False,
    batch: int | None = None,
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> EdgePartition: ...
def grem(
    graph: Any,
    k: int,
    *,
    chunk: float | int = 0.1,
    passes: int = 1,
    revise: bool = True,
    faithful: bool = False,
    balance: float = 1.0,
    refine: bool = False,
    order: Literal["random", "file"] = "random",
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
def multilevel(
    graph: Any,
    k: int,
    *,
    balance: float = 1.03,
    min_balance: float | None = None,
    volume_balance: float | None = None,
    balance_on: npt.ArrayLike | Sequence[npt.ArrayLike | str] | None = None,
    balance_on_ratio: float = 1.05,
    sizes: Sequence[float] | None = None,
    fixed: npt.ArrayLike | StrPath | None = None,
    connected: bool = False,
    objective: Literal["cut", "halo"] = "cut",
    machines: Sequence[int] | None = None,
    effort: Literal["default", "quick", "fast", "best"] = "default",
    time_limit: float | None = None,
    rounds: int | None = None,
    path: Literal["memory", "one_level", "two_levels"] | None = None,
    sample: float | None = None,
    checkpoints: StrPath | None = None,
    seed: int = 0,
    relation_weights: Mapping[str, float] | None = None,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
@overload
def random(
    graph: Any,
    k: int,
    *,
    of: Literal["vertices"] = "vertices",
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> VertexPartition: ...
@overload
def random(
    graph: Any,
    k: int,
    *,
    of: Literal["edges"],
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> EdgePartition: ...
def hash(
    graph: Any,
    k: int,
    *,
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
def ldg(
    graph: Any,
    k: int,
    *,
    balance: float = 1.03,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    batch: int | None = None,
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
def fennel(
    graph: Any,
    k: int,
    *,
    balance: float = 1.1,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    batch: int | None = None,
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
def reldg(
    graph: Any,
    k: int,
    *,
    balance: float = 1.03,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    passes: int = 10,
    batch: int | None = None,
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
def refennel(
    graph: Any,
    k: int,
    *,
    balance: float = 1.1,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    passes: int = 10,
    batch: int | None = None,
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
def bytegnn(
    graph: Any,
    k: int,
    *,
    splits: Any | None = None,
    split: int | None = None,
    hops: int = 2,
    weights: Sequence[float] = (0.3333333333333333, 0.3333333333333333, 0.3333333333333333),
    rule: Literal["balanced", "paper"] = "balanced",
    balance: float = 1.03,
    split_balance: float = 1.05,
    seed: int = 0,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
def dbh(
    graph: Any,
    k: int,
    *,
    seed: int = 0,
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> EdgePartition: ...
def two_phase(
    graph: Any,
    k: int,
    *,
    scoring: Literal["linear", "hdrf"] = "linear",
    balance: float = 1.05,
    seed: int = 0,
    batch: int | None = None,
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> EdgePartition: ...
def greedy(
    graph: Any,
    k: int,
    *,
    balance: float = 1.1,
    seed: int = 0,
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> EdgePartition: ...
def hdrf(
    graph: Any,
    k: int,
    *,
    balance: float = 1.1,
    balance_weight: float = 1.0,
    seed: int = 0,
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> EdgePartition: ...
def hep(
    graph: Any,
    k: int,
    *,
    balance: float = 1.05,
    tau: float | Literal["fit"] = 10.0,
    refine: bool = False,
    seed: int = 0,
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> EdgePartition: ...
def refine(
    graph: Any,
    partition: Partition | npt.ArrayLike | StrPath,
    *,
    k: int | None = None,
    balance: float | None = None,
    min_balance: float | None = None,
    volume_balance: float | None = None,
    balance_on: npt.ArrayLike | Sequence[npt.ArrayLike | str] | None = None,
    balance_on_ratio: float | None = None,
    sizes: Sequence[float] | None = None,
    fixed: npt.ArrayLike | StrPath | None = None,
    connected: bool | None = None,
    objective: Literal["cut", "halo"] | None = None,
    machines: Sequence[int] | None = None,
    time_limit: float | None = None,
    rounds: int | None = None,
    seed: int = 0,
    relation_weights: Mapping[str, float] | None = None,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
def update(
    graph: Any,
    partition: Partition | npt.ArrayLike | StrPath,
    *,
    k: int | None = None,
    moves: float = 0.05,
    balance: float | None = None,
    min_balance: float | None = None,
    volume_balance: float | None = None,
    balance_on: npt.ArrayLike | Sequence[npt.ArrayLike | str] | None = None,
    balance_on_ratio: float | None = None,
    sizes: Sequence[float] | None = None,
    fixed: npt.ArrayLike | StrPath | None = None,
    connected: bool | None = None,
    machines: Sequence[int] | None = None,
    seed: int = 0,
    relation_weights: Mapping[str, float] | None = None,
    on_infeasible: Literal["warn", "error"] = "warn",
    **options: Unpack[Options],
) -> VertexPartition: ...
def edges_of(
    graph: Any,
    partition: Partition | npt.ArrayLike | StrPath,
    *,
    k: int | None = None,
    balance: float = 1.05,
    balance_weight: float = 1.0,
    bands: int = 8,
    passes: int = 5,
    seed: int = 0,
    out: StrPath | None = None,
    **options: Unpack[Options],
) -> EdgePartition: ...
