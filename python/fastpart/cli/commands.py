"""The verbs that do not partition and train. Each calls the public function of its name."""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Set
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core, store
from .. import generate as generators
from ..core.notes import log
from ..core.parameters import TABLES, in_folder, output, shown, sized
from ..errors import FastpartError, GraphFormatError, ParameterError
from ..generate.tables import MARKER as LAKE
from ..graphs import conversion_cache
from ..graphs.convert import convert as convert_file
from ..graphs.graph import Graph
from ..graphs.graph_directory import GraphDirectory
from ..graphs.opening import open_graph
from ..graphs.sidecars import Sidecar
from ..graphs.splits import split_edges as split_graph_edges
from ..machines.tasks import work as work_on
from ..measures.compare import Comparison, open_comparison
from ..measures.compare import compare as run_comparison
from ..measures.compare.comparison import FILES, REPORTS
from ..measures.compare.entries import entries_of
from ..measures.doctor import doctor as find_facts
from ..measures.evaluate import evaluate as measure
from ..measures.facts import is_partition_directory
from ..measures.info import info as graph_info
from ..partitions.clustering import cluster as find_clusters
from ..partitions.order import order as order_vertices
from ..partitions.partition import VertexPartition, read_partition
from ..store import partial, saving
from .call import Call, flag
from .config import save_options
from .verbs import OF_TRAINING

if TYPE_CHECKING:
    from ..graphs.ingest import Problems


def generate(call: Call) -> None:
    """``fastpart generate``."""
    made = getattr(generators, call.name)(call["out"], **call.of(f"generate.{call.name}", "out"))
    if call.name == "typed":
        _print_tables(call, made)
    else:
        _print_sidecar(call, {})


def _print_tables(call: Call, schema: Path) -> None:
    """Print what tables hold, and what reads them."""
    facts = {name: json.loads((schema.parent / LAKE).read_bytes())[name] for name in ("types", "relations")}
    lines = [
        f"{name}: {', '.join(f'{key} {size:,}' for key, size in sizes.items())}"
        for name, sizes in facts.items()
    ]
    call.tell(
        {"schema": str(schema), **facts},
        "\n".join([*lines, f"Next: fastpart ingest {shown(schema)} -o graph/"]),
    )


def convert(call: Call) -> None:
    """``fastpart convert``."""
    converted = convert_file(**call.of("convert", "weights"), **_weights_option(call))
    facts = {"n": converted.num_vertices, "m": converted.num_edges, "directedness": converted.directedness}
    weights = f", {converted._weights}" if converted._weights else ""
    _print_sidecar(call, {**facts, "loops": converted.identify()[0]}, weights)


def ingest(call: Call) -> None:
    """``fastpart ingest``."""
    if call["guess"]:
        _refuse_others(call, {"schema", "out", "guess", "quiet", "debug", "json"}, "leave it out, or --guess")
        _print_guess(call)
        return
    from ..graphs.ingest import ingest as ingest_tables

    if call["check"]:
        _print_problems(call, ingest_tables(**call.of("ingest")))
        return
    if call["out"] is None:
        raise ParameterError("-o: name the folder of the graph")
    graph = ingest_tables(**call.of("ingest"))
    described = GraphDirectory(Path(call["out"])).content
    facts = {"out": call["out"], "n": graph.num_vertices, "m": graph.num_edges}
    lines = [
        f"{shown(call['out'])}: n = {graph.num_vertices:,}, m = {graph.num_edges:,}, {graph.directedness}"
    ]
    lines += [f"  {each['name']:24} {each['n']:>15,} vertices" for each in described["types"]]
    for each in described["relations"]:
        dropped = each.get("nulls", 0) + each.get("missing", 0)
        more = f", {dropped:,} dropped" if dropped else ""
        lines.append(
            f"  {each['name']:24} {each['m']:>15,} edges from {each['source']} to {each['target']}{more}"
        )
    described.pop("schema")
    call.tell(facts | described, "\n".join(lines))


def _print_problems(call: Call, found: Problems) -> None:
    """Print what a check has found. Problems are an error."""
    if call["json"] or not found:
        call.tell({"problems": found.to_frame().to_dicts()}, found)
    else:
        print("\n".join(map(str, found)))
    if found:
        raise GraphFormatError(
            f"{shown(call['schema'])}: {len(found):,} problem{'s' if len(found) > 1 else ''}"
        )


def _print_guess(call: Call) -> None:
    """Print a guessed schema, or write it to a file that does not exist yet."""
    from ..graphs.ingest.guess import guess, in_doubt

    text = guess(call["schema"])
    doubt = in_doubt(text.split("\n"))
    facts = {"out": call["out"], "in_doubt": doubt, "schema": text}
    if call["out"] is None:
        print(json.dumps(facts) if call["json"] else text.removesuffix("\n"))
        return
    try:
        with Path(call["out"]).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ParameterError(f"-o: {shown(call['out'])} exists. Name another file, or remove it") from None
    todo = "look over the lines with `# ?`, then run" if doubt else "no line is in doubt. Next:"
    call.tell(facts, f"{shown(call['out'])}: {todo} `fastpart ingest {shown(call['out'])} -o graph/`")


def split_edges(call: Call) -> None:
    """``fastpart split-edges``."""
    splits = split_graph_edges(open_input(call), **call.of("split_edges"))
    held_out = {"val": len(splits.val), "test": len(splits.test)}
    _print_sidecar(call, held_out, f", {held_out['val']:,} val and {held_out['test']:,} test pairs")


def info(call: Call) -> None:
    """``fastpart info``."""
    of_training = {name: call[name] for name in OF_TRAINING if name in call.values}
    if call["train"]:
        _refuse_others(
            call, {"file", "train", "json", "quiet", "debug", *of_training}, "leave it out, or --train"
        )
        facts = graph_info(call["file"], train=of_training)
        print(json.dumps(facts) if call["json"] else facts)
        return
    _refuse_others(call, call.values.keys() - of_training, "pass --train, too, and a partition directory")
    if is_partition_directory(call["file"]):
        _refuse_others(call, {"file", "json", "quiet", "debug"}, "leave it out, or name the graph")
        facts = graph_info(call["file"])
    else:
        facts = graph_info(open_input(call), **call.of("info"))
    print(json.dumps(facts) if call["json"] else facts)


def doctor(call: Call) -> None:
    """``fastpart doctor``."""
    facts = find_facts()  # with the options of the call, which are configured
    print(json.dumps(facts) if call["json"] else facts)


def _refuse_others(call: Call, known: Set[str], remedy: str) -> None:
    """Refuse options that have no meaning here."""
    for name in sorted(call.values.keys() - known):
        raise ParameterError(f"{flag(name)}: {remedy}")


def evaluate(call: Call) -> None:
    """``fastpart evaluate``."""
    target = output_file(call["out"], (".json", *TABLES)) if call["out"] else None
    graph = open_input(call)
    if target is not None:
        saving.refuse_unwritable(target, "file", graph)
    result = store.open_partition(call["partition"], graph, **call.of("open_partition"))
    evaluation = measure(graph, result, **call.of("evaluate", "partition"))
    print(evaluation.to_json() if call["json"] else evaluation, flush=True)
    if target is not None:
        evaluation.save(target)
        save_options(call, target)
        if not (call["json"] or call["quiet"]):
            print(f"\nsaved to {shown(target)}")


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
        save_options(call, target)
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
    call.tell({"format": call.name, "out": str(written)}, f"saved to {shown(written)}")


def plan(call: Call) -> None:
    """``fastpart plan``."""
    stored = read_partition(call["source"], of="vertices", name="source")
    assert isinstance(stored, VertexPartition)
    made = stored.plan(**call.of("plan", "pack"), pack=call["out"])
    told = {"workers": made.workers.to_dicts(), "ways": made.ways.to_dicts()}
    call.tell({"source": call["source"], "out": call["out"], "epochs": made.epochs, **told}, made)


def restore(call: Call) -> None:
    """``fastpart restore``."""
    store.restore(graph=call["graph"], **call.of("restore", "graph"))
    written = Path(call["out"])
    call.tell({"result": call["result"], "out": str(written)}, f"saved to {shown(written)}")


def upgrade(call: Call) -> None:
    """``fastpart upgrade``."""
    source, upgraded = call["source"], store.upgrade(call["source"])
    schema = (store.open_partition(source).manifest or {})["schema"]
    text = f"{shown(source)}: {'rewritten to' if upgraded else 'already'} schema {schema}"
    call.tell({"source": source, "schema": schema, "upgraded": upgraded}, text)


def work(call: Call) -> None:
    """``fastpart work``."""
    ran = work_on(call["shared"], task=call["task"])
    if call["json"]:
        print(json.dumps({"task": call["task"], "ran": ran}))
    elif not call["quiet"] and ran:
        print(f"task {call['task']} is done")


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


def conversions(call: Call) -> None:
    """``fastpart conversions``."""
    found = list(conversion_cache.entries())
    total = sum(entry.bytes for entry in found)
    if call["clear"]:
        _, total = conversion_cache.clear()
    if call["json"]:
        listed = [
            {"folder": str(each.folder), "sources": each.sources, "bytes": each.bytes} for each in found
        ]
        print(json.dumps({"entries": listed, "bytes": total, "cleared": bool(call["clear"])}))
        return
    for entry in found if not call["quiet"] else ():
        print(f"{sized(entry.bytes):>10}  {', '.join(map(shown, entry.sources)) or shown(entry.folder)}")
    print(f"{sized(total):>10}  {'removed' if call['clear'] else 'in all'}")


def open_input(call: Call, file: str | None = None) -> Graph:
    """Open the graph that a command line names, or this one of several."""
    named = call["file"] if file is None else file
    graph = open_graph(named, **call.of("open_graph", "weights"), **_weights_option(call))
    if graph._weights is not None:
        log.info("%s: the records have %s", shown(named), graph._weights)
    return graph


def output_file(out: str, suffixes: tuple[str, ...]) -> Path:
    """Return the output. Refuse one that cannot be written before any work is done."""
    target = in_folder(output(out, suffixes))
    saving.refuse_unwritable(target, "file", None)
    return target


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
    beside = f", sidecar {shown(Sidecar.beside(out).name)}" if sidecar else ""
    sizes = f"n = {facts['n']:,}, m = {facts['m']:,}, {facts['directedness']}"
    call.tell(facts, f"{shown(out)}: {sizes}{weights}{beside}")


def compare(call: Call) -> None:
    """``fastpart compare``."""
    target = output_file(call["out"], FILES) if call["out"] else None
    entries_of(call["algorithms"], call["peers"])  # refuses a wrong name before the graph is read
    graphs = [open_input(call, file) for file in (call["file"], *call["others"])]
    if target is None:
        comparison = run_comparison(graphs, **_parameters(call))
    else:
        for graph in graphs:
            saving.refuse_unwritable(target, "file", graph)
        comparison = _kept_and_saved(call, graphs, target)
        save_options(call, target)
    print(comparison.to_json(parts=False) if call["json"] else comparison)
    if target is not None and not (call["json"] or call["quiet"]):
        print(f"\nsaved to {shown(target)}")
    reasons = [outcome.row.get("error") for outcome in comparison.outcomes]
    if all(reasons):
        raise FastpartError(f"no algorithm returned a partition. The first error: {reasons[0]}")


def _parameters(call: Call) -> dict[str, Any]:
    """Return the parameters of the comparison. A single number of ``--seeds`` is their number."""
    given = call.of("compare")
    match given.get("seeds"):
        case [count]:
            given["seeds"] = count
    return given


def _kept_and_saved(call: Call, graphs: list[Graph], target: Path) -> Comparison:
    """Compare, keep each outcome beside the output as soon as it is there, and write the output."""
    kept = partial.Partial(target, "comparison.json")
    file = shown(kept.folder / kept.marker)
    use = f"`fastpart report {file} -o OUT` shows what was measured"
    if kept.found() is not None:
        text = f"holds the rows of an unfinished comparison. {use}. Remove the folder to compare anew"
        raise FileExistsError(errno.EEXIST, text, str(kept.folder))

    def keep(so_far: Comparison) -> None:
        kept.write(json.loads(so_far.to_json()), f"{len(so_far.outcomes)} outcomes")

    with kept.named(use):
        comparison = run_comparison(graphs, on_outcome=keep, **_parameters(call))
        comparison.save(target)
    kept.remove()
    return comparison


def report(call: Call) -> None:
    """``fastpart report``."""
    target = output_file(call["out"], REPORTS)
    if call["partitions"]:
        comparison = _compare_saved(call, target)
    else:
        if Path(call["file"]).suffix != ".json":
            raise ParameterError(
                f"{shown(call['file'])} is not a comparison. Name a .json that `fastpart compare -o` wrote, or this "
                "graph and then its partitions"
            )
        comparison = open_comparison(call["file"])
    comparison.report(target)
    if not call["quiet"]:
        print(f"saved to {shown(target)}")


def _compare_saved(call: Call, target: Path) -> Comparison:
    """Measure the partitions in files. Each is named like its file."""
    graph = open_input(call)
    saving.refuse_unwritable(target, "file", graph)
    named = [
        (shown(name.rstrip("/")), store.open_partition(name, graph, **call.of("open_partition")))
        for name in call["partitions"]
    ]
    return run_comparison(graph, [], named, balance=None, **call.of("evaluate"))
