"""Code that all partitioners share.

It wraps the result of the core, warns of empty parts and raised caps, and bounds the vertices of types and their
training vertices, which ``balance_on=`` names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core import parameters
from ...core.inputs import SPLITS
from ...core.notes import log
from ...core.options import RunOptions
from ...core.outputs import Owner, folder_beside
from ...core.parameters import meant
from ...errors import CapacityError, CapacityWarning, ParameterError, arg, code, warn
from ...graphs.given_splits import training_vertices
from ...graphs.graph import Graph
from ..partition import EdgePartition, Partition, VertexPartition
from .refining import NONE

ALL = "types"
"""Stands for all types that have vertices."""

TRAIN = "train"
"""Stands for the training vertices of all types that have any."""

_TRAINING = ":train"
"""What follows the name of a type in that of a bound on its training vertices."""

MOST = 7
"""Bounds at most, beside that on the vertices of all types."""

Names = tuple[str | None, ...]
"""What each bound is on: a type, or its training vertices. None: an array of weights."""


def names_types(given: Any) -> bool:
    """Return whether a bound is given by the name of a type."""
    return isinstance(given, str) or (
        isinstance(given, list | tuple) and any(isinstance(each, str) for each in given)
    )


def training_of(name: str) -> str:
    """Return the name of a bound on the training vertices of a type."""
    return name + _TRAINING


def is_none(given: Any) -> bool:
    """Return whether the caller wants no bounds, which an empty list says."""
    return isinstance(given, list | tuple) and not given


def resolved(name: str, given: Any, graph: Graph, several: bool) -> tuple[Any, Names]:
    """Return ``balance_on`` with an array in the place of each name of a type, and the names.

    ``several``: whether the algorithm ``name`` takes more than one bound.
    """
    if graph.types is None:
        named = repr(given) if isinstance(given, str) else "a name"
        raise ParameterError(
            f"balance_on: {named} stands for a type of vertices, but the graph has no types. Pass an array of weights"
        )
    if isinstance(given, str) and given in (ALL, TRAIN):
        given = _all_types(graph) if given == ALL else _all_trained(graph)
        if several and len(given) > MOST:
            raise ParameterError(
                f"balance_on: the graph has {len(given)} types with vertices, but there can be {MOST} bounds. Name the "
                f"types to bound, as in {arg(f'balance_on=[{given[0]!r}, {given[1]!r}]')}"
            )
    if isinstance(given, str):
        return _mask(graph, given), (given,)
    if not several:
        if len(given) != 1:
            raise ParameterError(
                f"balance_on: {name} takes one bound, not {len(given)}. Name one type, or use multilevel"
            )
        return _mask(graph, given[0]), (given[0],)
    arrays = [_mask(graph, each) if isinstance(each, str) else np.asarray(each) for each in given]
    return arrays, tuple(each if isinstance(each, str) else None for each in given)


def by_default(
    algorithm: _core.Algorithm, values: Mapping[str, Any], graph: Graph
) -> tuple[Any, Names] | None:
    """Return the bounds where the caller gives none: on training vertices of types, if the graph directory has any.

    The log says what is bounded, and what is not. ``values`` are the parameters of the algorithm.
    """
    sizes = {name: len(ids) for name, ids in training_vertices(graph).items()}
    if not sizes:
        return None
    kinds = {field.name: field.kind for field in algorithm.fields}
    names = sorted(sizes, key=lambda name: -sizes[name])[: _most(kinds, values)]
    left = [name for name in sizes if name not in names]
    if names:
        log.info(
            "balance_on: bounds the training vertices of %s in each part, since the graph directory has a training "
            f"split. {arg('balance_on', [])} leaves that out",
            _listed(names),
        )
    if left and "splits" not in kinds:
        log.info("%s does not bound the training vertices of %s", algorithm.name, _listed(left))
    if not names:
        return None
    masks = [_mask(graph, training_of(name)).astype(np.uint32) for name in names]
    return masks if len(masks) > 1 else masks[0], tuple(training_of(name) for name in names)


def _most(kinds: Mapping[str, str], values: Mapping[str, Any]) -> int:
    """Return how many bounds on weights an algorithm takes, with these values of its other parameters."""
    match kinds.get("balance_on"):
        case "several_weights":
            return MOST - (values.get("volume_balance") is not None)
        case "weights" if values.get("strict", True):
            return 1
    return 0


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _all_types(graph: Graph) -> list[str]:
    return [each.name for each in graph.types or () if each.n]


def _all_trained(graph: Graph) -> list[str]:
    trained = training_vertices(graph)
    if not trained:
        raise ParameterError(
            f"balance_on: {TRAIN!r} stands for the training vertices of a graph directory, and there are none. Pass an "
            "array of weights"
        )
    return [training_of(name) for name in trained]


def _mask(graph: Graph, name: str) -> npt.NDArray[np.bool_]:
    """Return which vertices are of a type, or are its training vertices."""
    types = {each.name: each.range for each in graph.types or ()}
    mask = np.zeros(graph.num_vertices, bool)
    of, is_trained = name.removesuffix(_TRAINING), name not in types and name.endswith(_TRAINING)
    if (of if is_trained else name) not in types:
        raise ParameterError(
            f"balance_on: the graph has no type {name!r}. The types are {', '.join(types)}{meant(name, types)}"
        )
    if not is_trained:
        mask[types[name].start : types[name].stop] = True
        return mask
    trained = training_vertices(graph)
    if of not in trained:
        raise ParameterError(
            f"balance_on: {name!r} stands for training vertices, but the graph directory has none of type {of!r}. Pass "
            "an array of weights"
        )
    mask[trained[of]] = True
    return mask


_READS = {"start", "scan", "weights", "degrees", "checksum", "adjacency", "sort"}
"""Phases of the core until the adjacency of the graph is there. All algorithms require their memory by then."""

_REHEARSED: ContextVar[bool] = ContextVar("fastpart.rehearsed", default=False)


class WouldRun(Exception):
    """An algorithm of a rehearsal has begun, and was stopped.

    Attributes
    ----------
    algorithms : list of str
        Its name, or those of several of which the best partition would be the result.
    because : str
        Why it was chosen, or an empty text.
    left_out : dict
        Algorithms that would not run, and why.
    """

    def __init__(
        self, algorithms: list[str], because: str = "", left_out: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(*algorithms)
        self.algorithms, self.because, self.left_out = algorithms, because, dict(left_out or {})


@contextmanager
def rehearsed() -> Iterator[None]:
    """Let partitioners raise :class:`WouldRun` in the block when they begin, or the refusal of a run.

    The core refuses parameters and memory as in a run, since it is one. It reads the graph, because its adjacency is
    memory in use for the last check. A small graph may be partitioned before the core can be stopped.
    """
    token = _REHEARSED.set(True)
    try:
        yield
    finally:
        _REHEARSED.reset(token)


def run_core(algorithm: str, call: Callable[[RunOptions], Any], options: RunOptions) -> Any:
    """Return what the core returns. In a rehearsal, raise :class:`WouldRun` when it begins."""
    if not _REHEARSED.get():
        return call(options)

    def stop(phase: str, *_: int) -> None:
        if phase not in _READS:
            raise WouldRun([algorithm])

    call(replace(options, progress=stop))
    raise WouldRun([algorithm])


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
    graph.remember(result.graph.loops, result.graph.checksum)
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
            f"k={partition.k} parts for {len(partition)} {partition.items}. At least {empty} parts are empty"
        )
        warn(text, CapacityWarning)


def _infeasible(what: str, on_infeasible: str) -> None:
    if on_infeasible == "error":
        raise CapacityError(what)
    warn(what, CapacityWarning)
