"""What the verbs do: each calls the public function of its name and prints the result."""

from __future__ import annotations

import argparse
import inspect
import json
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from .. import generate as generators
from .. import store
from ..converting import convert as convert_file
from ..errors import ParameterError
from ..graph import Graph, Sidecar, open_graph
from ..graph_info import info as graph_info
from ..inputs import weights_of
from ..metrics import evaluate as measure
from ..options import run_options
from ..parameters import from_text, shown
from ..partitioners import PARTITIONERS, items_of
from .progress import progress_bar

Options = argparse.Namespace

_COMMON = (
    "graph", "k", "balance", "balance_on", "balance_on_ratio", "seed", "degrees", "out", "threads", "memory_limit",
    "progress",
)  # fmt: skip


def generate(options: Options, rest: list[str]) -> None:
    """``fastpart generate``."""
    _refuse_rest(rest)
    model = getattr(generators, options.model)
    taken = set(inspect.signature(model).parameters)
    given = {
        name: getattr(options, name) for name in ("n", "m", "seed", "classes", "features", "rows", "columns")
    }
    given = {name: value for name, value in given.items() if value is not None}
    if unknown := [name for name in given if name not in taken]:
        raise ParameterError(f"{_flags(unknown)}: not for `generate {options.model}`")
    needed = {"n", "m"} if "n" in taken else {"rows", "columns"}
    if missing := sorted(needed - set(given)):
        raise ParameterError(f"{_flags(missing)}: needed by `generate {options.model}`")
    with progress_bar(options) as running:
        model(options.out, **given, **running)
    _print_sidecar(options, Path(options.out), {})


def _flags(names: list[str]) -> str:
    return ", ".join(f"--{name}" for name in names)


def convert(options: Options, rest: list[str]) -> None:
    """``fastpart convert``."""
    _refuse_rest(rest)
    with progress_bar(options) as running:
        converted = convert_file(
            options.input,
            options.out,
            format=options.format,
            relabel=options.relabel,
            drop_loops=options.drop_loops,
            dedup=options.dedup,
            shuffle=options.shuffle,
            seed=options.seed,
            swap=options.swap,
            dtype=options.dtype,
            layout=options.layout,
            num_vertices=options.num_vertices,
            directedness=options.directedness,
            **running,
        )
    facts = {"n": converted.num_vertices, "m": converted.num_edges, "directedness": converted.directedness}
    _print_sidecar(options, Path(options.out), {**facts, "loops": converted.identify()[0]})


def info(options: Options, rest: list[str]) -> None:
    """``fastpart info``."""
    _refuse_rest(rest)
    with progress_bar(options) as running:
        facts = graph_info(open_input(options, running), **running)
    if options.json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        text = (
            ", ".join(f"{key} {item:,}" for key, item in value.items()) if isinstance(value, dict) else value
        )
        print(f"{name:16} {text:,}" if isinstance(text, int) else f"{name:16} {text}")


def partition(options: Options, rest: list[str]) -> None:
    """``fastpart partition``."""
    if options.algorithm not in PARTITIONERS:
        raise ParameterError(
            f"--algorithm: unknown {options.algorithm!r}; known are {', '.join(PARTITIONERS)}"
        )
    function = PARTITIONERS[options.algorithm]
    given = function_parameters(function, rest) | _named_parameters(function, options)
    target, form = store.output(options.out) if options.out else (None, "")
    extras = _extras(options, form)
    of = items_of(options.algorithm, given)
    extras.check(target, form, of, graph=True)
    with progress_bar(options) as running:
        graph = open_input(options, running)
        if target is not None:
            store.refuse_unwritable(target, form, graph)
        if "balance_on" in given:
            given["balance_on"] = weights_of(options.balance_on, graph.num_vertices)
        run = run_options(**running)
        contents = extras.open(graph, run.memory_limit) if form == "directory" else None
        in_place = target is not None and form == "npy" and of == "edges"
        if in_place:  # the parts never need to be in memory
            given["out"] = target
        start = time.perf_counter()
        result = function(graph, options.k, seed=options.seed, **given, **running)
        seconds = time.perf_counter() - start
        evaluation = measure(graph, result, options.labels, options.splits, split=options.split, **running)
        if target is not None and not in_place:
            store.write(result, target, form, run, evaluation, graph, contents)
    print(evaluation.to_json() if options.json else evaluation)
    if not (options.json or options.quiet):
        pace = f", {graph.num_edges / seconds / 1e6:.1f} M edges/s" if graph.num_edges else ""
        print(f"\n{options.algorithm}: {seconds:.2f} s{pace}")
        if target is not None:
            print(f"saved to {shown(target)}")


def _named_parameters(function: Any, options: Options) -> dict[str, Any]:
    """Return the parameters that have options of their own, if they are given and the function has them."""
    names = ("balance", "balance_on", "balance_on_ratio")
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    if "balance_on_ratio" in given and "balance_on" not in given:
        raise ParameterError("--balance-on-ratio: belongs to --balance-on")
    foreign = [name for name in given if name not in inspect.signature(function).parameters]
    if foreign:
        raise ParameterError(f"--{foreign[0].replace('_', '-')}: {function.__name__} has no such parameter")
    return given


def _extras(options: Options, form: str) -> store.Extras:
    """What a partition directory is asked to hold; labels and splits are for the measures, too."""
    measured = {name: getattr(options, name) for name in ("labels", "splits", "split")}
    return store.Extras(
        features=options.features,
        edge_features=options.edge_features,
        halo_hops=options.halo_hops,
        halo_features=options.halo_features,
        **(measured if form == "directory" else {}),
    )


def evaluate(options: Options, rest: list[str]) -> None:
    """``fastpart evaluate``."""
    _refuse_rest(rest)
    with progress_bar(options) as running:
        graph = open_input(options, running)
        result = store.open_partition(options.partition, graph, k=options.k, of=options.of, **running)
        evaluation = measure(graph, result, options.labels, options.splits, split=options.split, **running)
    print(evaluation.to_json() if options.json else evaluation)


def open_input(options: Options, running: dict[str, Any]) -> Graph:
    """Open the edges that a command line names."""
    return open_graph(
        options.file,
        dtype=options.dtype,
        num_vertices=options.num_vertices,
        directedness=options.directedness,
        io=options.io,
        layout=options.layout,
        max_vertices=options.max_vertices,
        **running,
    )


def _print_sidecar(options: Options, out: Path, more: dict[str, Any]) -> None:
    sidecar = Sidecar.read(out)
    facts = {"out": str(out), **(vars(sidecar) if sidecar else {}), **more}
    if options.json:
        print(json.dumps(facts))
    elif not options.quiet:
        beside = f"; sidecar {shown(Sidecar.beside(out).name)}" if sidecar else ""
        print(f"{shown(out)}: n = {facts['n']:,}, m = {facts['m']:,}, {facts['directedness']}{beside}")


def _refuse_rest(rest: list[str]) -> None:
    if rest:
        raise ParameterError(f"unknown argument {rest[0]!r}")


def function_parameters(
    function: Any, rest: list[str], common: Collection[str] = _COMMON, called: str | None = None
) -> dict[str, Any]:
    """Read ``--name value`` or ``--name=value`` as parameters of the function, which refusals call ``called``."""
    known = {
        name: parameter
        for name, parameter in inspect.signature(function, eval_str=True).parameters.items()
        if name not in common
    }
    given: dict[str, Any] = {}
    words = iter(rest)
    for word in words:
        flag, equals, value = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        if not flag.startswith("--") or name not in known:
            valid = ", ".join("--" + name.replace("_", "-") for name in known)
            raise ParameterError(
                f"unknown argument {word!r}; {called or function.__name__} also takes {valid}"
            )
        value = value if equals else next(words, "")
        given[name] = from_text(flag, value, str(known[name].annotation))
    return given
