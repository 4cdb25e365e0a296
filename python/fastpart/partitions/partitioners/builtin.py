"""The partitioners of the core, one function each. Everything comes from the registry in ``rust/algorithms``.

A function checks its arguments, calls the core, and wraps its result. ``builtin.pyi`` beside this file has the same
signatures for type checkers. ``make stubs`` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ... import _core
from ...core import parameters
from ...core.calls import full_signature
from ...core.inputs import fixed_of, split_bits, splits_of, train_of
from ...core.option_groups import MOST
from ...core.options import NAMES, RunOptions, run_options, with_options
from ...core.outputs import owning
from ...core.vertex_tables import numbers_of_vertices
from ...errors import ParameterError, arg
from ...graphs.graph import weighted_by_relation
from ...graphs.opening import open_graph
from ...graphs.weights import checked_relation_weights
from ...machines.partitioning import Place, partition_on
from ..documents import document, signature
from ..loader_options import BoundOptions, PlaceOptions
from ..partition import Partition
from .common import (
    SAVED_AFTERWARDS,
    Names,
    by_default,
    edge_partition,
    is_none,
    names_types,
    resolved,
    run_core,
    vertex_partition,
)
from .refining import begin

SUCCESSORS: dict[str, _core.Algorithm] = {algorithm.name: algorithm for algorithm in _core.successors()}
"""Algorithms that start from a vertex partition, described as partitioners are."""

ALGORITHMS: dict[str, _core.Algorithm] = {algorithm.name: algorithm for algorithm in _core.algorithms()}
"""The registry's entry of each partitioner."""


def _checked(field: _core.Field, value: Any) -> Any:
    """Return the value of a parameter in its internal form."""
    if value is None and field.default is None:
        return None
    match field.kind:
        case "integer":
            low, high = field.range or (0, 2**63)
            return parameters.integer(field.name, value, low, high)
        case "choice":
            return parameters.choice(field.name, value, tuple(field.words))
        case "seed":
            return parameters.seed(value)
        case "numbers":
            several = parameters.numbers(field.name, value)
            return list(several) if field.default is None else several  # as JSON holds them
        case "partition" | "splits":  # which need the graph
            return value
        case "folder":
            return str(parameters.path(field.name, value))
        case "number_or":
            return parameters.number_or(field.name, value, field.words[0])
        case "fixed":
            return fixed_of(field.name, value)
    return getattr(parameters, field.kind)(field.name, value)  # which has the name of the kind


def _run(algorithm: _core.Algorithm, arguments: Mapping[str, Any], place: Place | None = None) -> Partition:
    """Check the arguments of a call, run the core, here or on a cluster, and wrap its result."""
    options = {name: arguments[name] for name in NAMES}
    given_graph, both = arguments["graph"], {}
    bounded_types = None
    # What starts from a partition has its bounds.
    is_free = arguments.get("balance_on") is None and algorithm.name not in SUCCESSORS
    if algorithm.name in SUCCESSORS:
        arguments, both["origin"] = begin(algorithm.name, arguments, options)
    arguments = _matched(arguments, options)
    if names_types(arguments.get("balance_on")):
        arguments, bounded_types = _with_types(algorithm, arguments, options)
    k = parameters.parts(arguments["k"])
    of = parameters.choice("of", arguments.get("of", algorithm.of[0]), tuple(algorithm.of))
    values = {field.name: _checked(field, arguments[field.name]) for field in algorithm.fields}
    infeasible = parameters.choice("on_infeasible", arguments.get("on_infeasible", "warn"), ("warn", "error"))
    out = arguments.get("out")
    opened = open_graph(arguments["graph"], **options)
    if of == "vertices" and out is not None:
        raise ParameterError(f"out: needs {arg('of', 'edges')}. {SAVED_AFTERWARDS}")
    if not algorithm.reads_weights:
        opened.warn_of_unread_weights(algorithm.name)
    if len(algorithm.of) > 1:
        both["of"] = of
    if is_none(arguments.get("balance_on")) and opened.num_vertices:
        values["balance_on"] = None
    if of == "vertices" and is_free and (bounds := by_default(algorithm, values, opened)):
        values["balance_on"], bounded_types = bounds
    recorded = {
        field.name: values[field.name]
        for field in algorithm.fields
        if field.kind not in ("degrees", "partition", "folder") and field.only in (None, of)
    }
    if values.get("splits") is not None:
        chosen = splits_of(values["splits"], opened.num_vertices, values["split"], opened._id_tables)
        train_of(chosen)
        values["splits"] = split_bits(chosen, opened.num_vertices)
        recorded["splits"] = {name: len(ids) for name, ids in chosen.items()}
    given = {"k": k, **both, **recorded}
    weighted = opened
    if arguments.get("relation_weights") is not None:
        given["relation_weights"] = checked_relation_weights(opened.relations, arguments["relation_weights"])
        weighted = weighted_by_relation(opened, given["relation_weights"], run_options(**options))

    def call(file: Any = None) -> Any:
        if place is not None:
            return partition_on(place, weighted, k, values, run_options(**options))
        return run_core(
            algorithm.name,
            lambda run: _core.partition(
                algorithm.name,
                weighted._source,
                values,
                k=k,
                of=of,
                directedness=opened.directedness,
                out=file,
                options=run,
            ),
            run_options(**options),
        )

    folders = {field.name: values[field.name] for field in algorithm.fields if field.kind == "folder"}
    try:
        if of == "edges":
            return edge_partition(algorithm.name, given, opened, out, call)
        with owning(**{name: Path(folder) for name, folder in folders.items() if folder is not None}):
            result = call()
        return vertex_partition(algorithm.name, given, result, opened, infeasible, bounded_types)
    finally:
        if opened is not given_graph:  # the partition keeps the graph, but not its adjacency
            opened._source.forget_csr()


def _matched(arguments: Mapping[str, Any], options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments with arrays in the place of tables with one row per vertex, in the order of the vertices."""
    given = {name: arguments.get(name) for name in ("balance_on", "fixed")}
    if given["fixed"] is None and (given["balance_on"] is None or names_types([given["balance_on"]])):
        return arguments
    opened = open_graph(arguments["graph"], **options)
    n, ids = opened.num_vertices, opened._id_tables

    def array(name: str, value: Any, missing: int | None = None) -> Any:
        return value if isinstance(value, str) else numbers_of_vertices(name, value, n, ids, missing=missing)

    on, fixed = given["balance_on"], given["fixed"]
    if isinstance(on, list | tuple) and on and not all(isinstance(each, int | float) for each in on):
        given["balance_on"] = [array(f"balance_on[{place}]", each) for place, each in enumerate(on)]
    elif on is not None:
        given["balance_on"] = array("balance_on", on)
    if fixed is not None:
        given["fixed"] = numbers_of_vertices("fixed", fixed, n, ids, missing=-1)
    return {
        **arguments,
        "graph": opened,
        **{name: value for name, value in given.items() if name in arguments},
    }


def _with_types(
    algorithm: _core.Algorithm, arguments: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], Names]:
    """Return the arguments with an open graph and an array for each type that is to be balanced, and the types."""
    several = any(field.kind == "several_weights" for field in algorithm.fields)
    opened = open_graph(arguments["graph"], **options)
    arrays, names = resolved(algorithm.name, arguments["balance_on"], opened, several)
    return {**arguments, "graph": opened, "balance_on": arrays}, names


def on_machines(algorithm: str, place: Place, graph: Any, k: int, **given: Any) -> Partition:
    """Return the partition that a cluster makes. The other arguments are those of the algorithm."""
    bound = full_signature(PARTITIONERS[algorithm]).bind(graph, k, **given)
    bound.apply_defaults()
    return _run(ALGORITHMS[algorithm], bound.arguments, place)


def _function(algorithm: _core.Algorithm) -> Callable[..., Partition]:
    known = signature(algorithm)

    def function(*args: Any, **kwargs: Any) -> Partition:
        try:
            bound = known.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{algorithm.name}() {error}") from None
        bound.apply_defaults()
        if isinstance(bound.arguments["graph"], Partition) and algorithm.name in SUCCESSORS:
            example = f"{algorithm.name}(graph, partition)"  # it once was the other way round
            raise TypeError(f"{algorithm.name}() takes the graph first, as in {example}")
        return _run(algorithm, bound.arguments)

    function.__name__ = function.__qualname__ = algorithm.name
    function.__doc__ = document(algorithm)
    function.__signature__ = known  # type: ignore[attr-defined]
    small = len(known.parameters) < MOST
    return with_options(
        function, groups=[BoundOptions] if small else [BoundOptions, PlaceOptions, RunOptions]
    )


PARTITIONERS: dict[str, Callable[..., Partition]] = {
    name: _function(algorithm) for name, algorithm in ALGORITHMS.items()
}
"""Every partitioner of the core by its name."""

_SUCCEEDING = {name: _function(algorithm) for name, algorithm in SUCCESSORS.items()}
globals().update(PARTITIONERS | _SUCCEEDING)


__all__ = [*_SUCCEEDING, *PARTITIONERS]
