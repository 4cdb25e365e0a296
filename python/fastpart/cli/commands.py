"""The verbs. Each calls the public function of its name and prints the result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from .. import _core, store
from .. import generate as generators
from ..clustering import cluster as find_clusters
from ..converting import convert as convert_file
from ..edge_splits import split_edges as split_graph_edges
from ..errors import ParameterError
from ..graph import Graph, open_graph
from ..graph_info import RATES
from ..graph_info import info as graph_info
from ..inputs import weights_of
from ..metrics import evaluate as measure
from ..notes import log
from ..ordering import order as order_vertices
from ..parameters import memory_size, shown
from ..partitioners import PARTITIONERS, builtin, choosing, items_of
from ..partitions import Partition
from ..sidecars import Sidecar
from ..store import saving
from ..store.contents import Extras
from .call import Call


def generate(call: Call) -> None:
    """``fastpart generate``."""
    getattr(generators, call.name)(call["out"], **call.of(f"generate.{call.name}", "out"))
    _print_sidecar(call, {})


def convert(call: Call) -> None:
    """``fastpart convert``."""
    converted = convert_file(**call.of("convert", "weights"), **_weights_option(call))
    facts = {"n": converted.num_vertices, "m": converted.num_edges, "directedness": converted.directedness}
    weights = f", {converted._weights}" if converted._weights else ""
    _print_sidecar(call, {**facts, "loops": converted.identify()[0]}, weights)


def split_edges(call: Call) -> None:
    """``fastpart split-edges``."""
    splits = split_graph_edges(open_input(call), **call.of("split_edges"))
    held = {"val": len(splits.val), "test": len(splits.test)}
    _print_sidecar(call, held, f", {held['val']:,} val and {held['test']:,} test pairs")


def info(call: Call) -> None:
    """``fastpart info``."""
    facts = graph_info(open_input(call), **call.of("info"))
    if call["json"]:
        print(json.dumps(facts))
        return
    plans = facts.pop("plans")
    for name, value in facts.items():
        text = (
            ", ".join(f"{key} {item:,}" for key, item in value.items()) if isinstance(value, dict) else value
        )
        print(f"{name:16} {text:,}" if isinstance(text, int) else f"{name:16} {text}")
    _print_plans(plans)


def _print_plans(plans: list[dict[str, Any]]) -> None:
    """Print what ``multilevel`` costs with each memory limit."""
    disks = " / ".join(list(RATES)[1:])
    print(f"\nmultilevel by memory limit; seconds with all files in the page cache / with a disk of {disks}")
    row = "{:>12} {:11} {:>7} {:>15} {:>10}  {}".format
    print(row("memory from", "path", "sample", "files (at most)", "read", "seconds"))
    for plan in plans:
        memory, files, read = (_gigabytes(plan[name]) for name in ("memory", "files", "read"))
        seconds = " / ".join(f"{value:.3g}" for value in plan["seconds"].values())
        print(row(memory, plan["path"], plan["sample"] or "", files, read, seconds))


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.3g} GB" if count >= 1e9 else f"{count / 1e6:.3g} MB"


def partition(call: Call) -> None:
    """``fastpart partition``."""
    named = call["algorithm"]
    function = PARTITIONERS[named] if named else choosing.partition
    _make(call, named or "partition", lambda graph, given: function(graph, **given))


def refine(call: Call) -> None:
    """``fastpart refine``."""
    _make(call, "refine", lambda graph, given: builtin.refine(graph=graph, **given))


def update(call: Call) -> None:
    """``fastpart update``."""
    _make(call, "update", lambda graph, given: builtin.update(graph=graph, **given))


def edges_of(call: Call) -> None:
    """``fastpart edges-of``."""
    _make(call, "edges_of", lambda graph, given: builtin.edges_of(graph=graph, **given))


def _make(call: Call, algorithm: str, make: Callable[[Graph, dict[str, Any]], Partition]) -> None:
    """Make a partition with the options of an algorithm, print its measures, and save it."""
    target, form = saving.output(call["out"]) if call["out"] else (None, "")
    of = items_of(algorithm, call.values)
    extras = _extras(call, form)
    extras.check(target, form, of, graph=True)
    if call["balance_on_ratio"] is not None and call["balance_on"] is None:
        raise ParameterError("--balance-on-ratio: has no effect without --balance-on")
    graph = open_input(call)
    if target is not None:
        saving.refuse_unwritable(target, form, graph)
    given = call.of(algorithm, "out")
    if "balance_on" in given:
        given["balance_on"] = _weights(given["balance_on"], graph.num_vertices)
    limit = memory_size(call.running.get("memory_limit"))
    contents = extras.open(graph, limit) if form == "directory" else None
    in_place = target is not None and form == "npy" and of == "edges"
    if in_place:  # the parts never need to be in memory
        given["out"] = target
    start = time.perf_counter()
    result = make(graph, given)
    seconds = time.perf_counter() - start
    # Labels and splits belong to vertices. The directory of an edge partition holds them, but no measure of them.
    unmeasured = ("labels", "splits", "split") if form == "directory" and of == "edges" else ()
    evaluation = measure(graph, result, **call.of("evaluate", "partition", *unmeasured))
    if target is not None and not in_place:
        with call.run() as run:
            saving.write(result, target, form, run, evaluation, graph, contents)
    print(evaluation.to_json() if call["json"] else evaluation)
    if not (call["json"] or call["quiet"]):
        pace = f", {graph.num_edges / seconds / 1e6:.1f} M edges/s" if graph.num_edges else ""
        files = (result.costs or {}).get("files", 0)
        taken = f", {_gigabytes(files)} of temporary files" if files else ""
        chosen = result.parameters.get("chosen")
        print(f"\n{chosen['algorithm'] if chosen else algorithm}: {seconds:.2f} s{pace}{taken}")
        if chosen:
            print(f"chosen: {chosen['because']}")
        if target is not None:
            print(f"saved to {shown(target)}")


def _weights(files: str | list[str], n: int) -> Any:
    """What the files of ``--balance-on`` hold, with commas between them; one file is no list."""
    names = files if isinstance(files, list) else [files]
    arrays = [weights_of(name, n) for name in names]
    return arrays if len(arrays) > 1 else arrays[0]


def _extras(call: Call, form: str) -> Extras:
    """Return what to store in a partition directory. In other formats, labels and splits are only for the measures."""
    measured = () if form == "directory" else ("labels", "splits", "split")
    held = call.of("save", *measured)
    return Extras(**{name: held[name] for name in Extras.__dataclass_fields__ if name in held})


def evaluate(call: Call) -> None:
    """``fastpart evaluate``."""
    graph = open_input(call)
    result = store.open_partition(call["partition"], graph, **call.of("open_partition"))
    evaluation = measure(graph, result, **call.of("evaluate", "partition"))
    print(evaluation.to_json() if call["json"] else evaluation)


def cluster(call: Call) -> None:
    """``fastpart cluster``."""
    target, form = saving.output(call["out"]) if call["out"] else (None, "npy")
    if form != "npy":
        raise ParameterError(f"-o: {shown(call['out'])} does not end with .npy. Clusters are saved as .npy")
    graph = open_input(call)
    if target is not None:
        saving.refuse_unwritable(target, form, graph)
    start = time.perf_counter()
    clustering = find_clusters(graph, **call.of("cluster"))
    seconds = time.perf_counter() - start
    if target is not None:
        with call.run() as run:
            _core.write_npy(target, clustering.assignment, run)
    facts = {
        "method": clustering.method,
        "n": clustering.num_vertices,
        "m": clustering.num_edges,
        "clusters": clustering.num_clusters,
        "largest": int(clustering.sizes.max(initial=0)),
        "largest_volume": int(clustering.volumes.max(initial=0)),
        **clustering.caps,
        "modularity": clustering.modularity,
        "seconds": seconds,
    }
    if call["json"]:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        text = (
            f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else value
        )
        print(f"{name:16} {'none' if text is None else text}")
    if target is not None and not call["quiet"]:
        print(f"saved to {shown(target)}")


def order(call: Call) -> None:
    """``fastpart order``."""
    ordering = order_vertices(open_input(call), **call.of("order"))
    before, after = round(ordering.bytes_per_entry_before, 4), round(ordering.bytes_per_entry, 4)
    _print_sidecar(call, {"bytes_per_entry_before": before, "bytes_per_entry": after})
    if not (call["json"] or call["quiet"]):
        print(f"{after:.2f} bytes per entry of a packed adjacency, {before:.2f} before")


def export(call: Call) -> None:
    """``fastpart export``."""
    function = getattr(import_module("fastpart.export"), call.name)
    written = function(**call.of(f"export.{call.name}"))
    if call["json"]:
        print(json.dumps({"format": call.name, "out": str(written)}))
    elif not call["quiet"]:
        print(f"saved to {shown(written)}")


def upgrade(call: Call) -> None:
    """``fastpart upgrade``."""
    source, upgraded = call["source"], store.upgrade(call["source"])
    if call["json"]:
        print(json.dumps({"source": source, "schema": store.SCHEMA, "upgraded": upgraded}))
    elif not call["quiet"]:
        print(f"{shown(source)}: {'rewritten to' if upgraded else 'already'} schema {store.SCHEMA}")


def verify(call: Call) -> None:
    """``fastpart verify``."""
    found = store.verify(call["source"])
    if call["json"]:
        print(json.dumps({"source": call["source"], **asdict(found)}))
        return
    for name in found.foreign:
        log.info("%s was not written by fastpart, and not compared", shown(name))
    if not call["quiet"]:
        print(
            f"{shown(call['source'])}: {found.files:,} files with {found.bytes:,} bytes are as they were written"
        )


def open_input(call: Call) -> Graph:
    """Open the graph that a command line names."""
    graph = open_graph(call["file"], **call.of("open_graph", "weights"), **_weights_option(call))
    if graph._weights is not None:
        log.info("%s: the records have %s", shown(call["file"]), graph._weights)
    return graph


def _weights_option(call: Call) -> dict[str, Any]:
    """Return ``--weights``, where "no" leaves them out."""
    given = call["weights"]
    if isinstance(given, list):  # those of a score, which belong to the partitioner
        return {}
    return {} if given is None else {"weights": False if given == "no" else given}


def _print_sidecar(call: Call, more: dict[str, Any], weights: str = "") -> None:
    out = Path(call["out"])
    sidecar = Sidecar.read(out)
    facts = {"out": str(out), **(sidecar.content if sidecar else {}), **more}
    if call["json"]:
        print(json.dumps(facts))
    elif not call["quiet"]:
        beside = f", sidecar {shown(Sidecar.beside(out).name)}" if sidecar else ""
        print(
            f"{shown(out)}: n = {facts['n']:,}, m = {facts['m']:,}, {facts['directedness']}{weights}{beside}"
        )
