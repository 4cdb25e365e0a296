"""Code that all partitioners share: wrap the result of the core, and warn of empty parts and raised caps."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core import parameters
from ...core.inputs import SPLITS
from ...core.outputs import Owner, folder_beside
from ...errors import CapacityError, CapacityWarning, ParameterError, code, warn
from ...graphs.graph import Graph
from ..partition import EdgePartition, Partition, VertexPartition
from .refining import NONE
from .type_bounds import Names

SAVED_AFTERWARDS = code(
    "Save a vertex partition with .save(...)", "A partition of the vertices is saved with -o, to any name"
)
"""What to do for ``out``, to which only edge partitions are written while they are made."""

AnyPartition = TypeVar("AnyPartition", VertexPartition, EdgePartition)


def vertex_partition(
    algorithm: str,
    given: Mapping[str, Any],
    result: _core.VertexResult,
    graph: Graph,
    on_infeasible: str = "warn",
    bounded_types: Names | None = None,
) -> VertexPartition:
    """Wrap a vertex partition of the core.

    ``given`` holds the checked parameters, and ``bounded_types`` the types in ``balance_on``, if there are any.
    """
    weights = given.get("balance_on")
    if weights is not None:
        arrays = weights if isinstance(weights, list) else [weights]
        names = bounded_types or (None,) * len(arrays)
        shown = [name or _shown(each) for name, each in zip(names, arrays, strict=True)]
        given = {**given, "balance_on": shown if isinstance(weights, list) else shown[0]}
    if given.get("fixed") is not None:
        given = {**given, "fixed": _shown_fixed(given["fixed"])}
    partition = _wrapped(VertexPartition, algorithm, given, result, result.assignment, graph)
    partition.bounded_types = bounded_types
    volume = None if result.volume_cap is None else (result.volume_nominal or 0, result.volume_cap)
    alone = not result.weight_caps
    if result.dealt:
        _infeasible(
            "the caps left no part for some vertex, so all vertices were assigned by weight alone. Raise "
            + ("balance or volume_balance" if volume else "balance or balance_on_ratio"),
            on_infeasible,
        )
    if volume and not (result.dealt and alone):
        remedy = ". Fewer parts or a higher volume_balance avoid that"
        _refuse_raised("volume_balance", " (sum of degree + 1)", *volume, on_infeasible, remedy)
    for index, (nominal, cap) in enumerate(zip(result.weight_nominals, result.weight_caps, strict=True)):
        if "splits" in given:
            name, unit = "split_balance", f" {SPLITS[index]} vertices"
        elif bounded_types and bounded_types[index] is not None:
            name, unit = "balance_on", f" vertices of type {bounded_types[index]!r}"
        else:
            name, unit = (
                f"balance_on[{index}]" if isinstance(weights, list) else "balance_on",
                " (sum of weights)",
            )
        _refuse_raised(name, unit, nominal, cap, on_infeasible)
    return partition


def _shown(weights: npt.NDArray[np.uint32]) -> str:
    return f"array of {len(weights)} weights, sum {weights.sum(dtype=np.uint64)}"


def _shown_fixed(parts: npt.NDArray[np.uint32]) -> str:
    return f"array of {len(parts)} parts, {np.count_nonzero(parts != NONE)} vertices fixed"


def _refuse_raised(
    name: str, unit: str, nominal: Any, cap: Any, on_infeasible: str, remedy: str = ""
) -> None:
    of_parts = (
        [(None, nominal, cap)] if isinstance(cap, int) else list(zip(count(), nominal, cap, strict=False))
    )
    raised = [(part, asked, kept) for part, asked, kept in of_parts if kept > asked]
    if not raised:
        return
    part, asked, kept = raised[0]
    if part is None:
        what = f"the parts cannot be kept within {asked}{unit}. The cap was raised to {kept}"
    else:
        more = f", and {len(raised) - 1} others" if len(raised) > 1 else ""
        what = f"part {part} cannot be kept within {asked}{unit}. Its cap was raised to {kept}{more}"
    _infeasible(f"{name}: {what}{remedy}", on_infeasible)


def edge_partition(
    algorithm: str,
    given: Mapping[str, Any],
    graph: Graph,
    out: parameters.StrPath | None,
    call: Callable[[Path | None], _core.EdgeResult],
) -> EdgePartition:
    """Run ``call`` with the file for the parts, if ``out`` is given, and wrap the edge partition."""
    if out is None:
        result = call(None)
        assignment = result.assignment
    else:
        target = npy(out, graph)
        with Owner(target), folder_beside(target) as folder:
            file = folder / target.name
            result = call(file)
            with file.open("rb") as written:
                os.fsync(written.fileno())
            os.replace(file, target)
        assignment = np.load(target, mmap_mode="r", allow_pickle=False)
    return _wrapped(EdgePartition, algorithm, given, result, assignment, graph)


def _wrapped(
    type_: type[AnyPartition],
    algorithm: str,
    given: Mapping[str, Any],
    result: _core.VertexResult | _core.EdgeResult,
    assignment: Any,
    graph: Graph,
) -> AnyPartition:
    """Wrap a result with its parameters, and issue its warnings."""
    partition = type_._of_result(algorithm, {**given, **result.chosen}, result, assignment)
    partition.graph = graph
    graph._remember(result.graph.loops, result.graph.checksum)
    for warning in result.warnings:
        warn(warning, UserWarning)
    _warn_of_empty_parts(partition)
    return partition


def npy(out: parameters.StrPath, graph: Graph) -> Path:
    """Return the file for the parts. Refuse one that cannot be written."""
    target = parameters.path("out", out)
    if target.suffix != ".npy":
        raise ParameterError(
            f"out: {parameters.shown(target)} does not end with .npy, the format of the parts"
        )
    if parameters.in_folder(target).exists():
        if not target.is_file():
            raise ParameterError(
                f"out: {parameters.shown(target)} is not a regular file. Choose another name"
            )
        if graph.path is not None and target.samefile(graph.path):
            raise ParameterError(f"out: {parameters.shown(target)} is the input. Choose another name")
    return Path(os.path.realpath(target))


def cap_of(balance: float, items: int, k: int) -> int:
    """Return the most items of a part."""
    return int(np.ceil(min(balance, k) * items / k))


def _warn_of_empty_parts(partition: Partition) -> None:
    if partition.k > len(partition) > 0:
        empty = partition.k - len(partition)
        text = (
            f"k={partition.k} parts for {len(partition)} {partition._items}. At least {empty} parts are empty"
        )
        warn(text, CapacityWarning)


def _infeasible(what: str, on_infeasible: str) -> None:
    if on_infeasible == "error":
        raise CapacityError(what)
    warn(what, CapacityWarning)
