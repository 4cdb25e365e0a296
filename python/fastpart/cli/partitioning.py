"""The verbs that make partitions. What they find is kept before anything else is tried."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from tempfile import gettempdir
from typing import Any

from .. import _core
from ..core.inputs import archive_and_name, weights_of
from ..core.notes import log
from ..core.options import NAMES, RunOptions
from ..core.parameters import parts, regular, shown, sized
from ..core.protocols import listed
from ..core.system import free_bytes
from ..errors import ParameterError
from ..graphs import conversion_cache
from ..graphs.given_splits import training_vertices
from ..graphs.graph import Graph
from ..graphs.graph_directory import GraphDirectory
from ..machines.partitioning import Place
from ..machines.starting import at_place
from ..measures.evaluate import evaluate as measure
from ..partitions.part_files import MANIFEST
from ..partitions.partition import Partition
from ..partitions.partitioners import PARTITIONERS, builtin, choosing, items_of
from ..partitions.partitioners.choice import VOLUME_BALANCE
from ..partitions.partitioners.common import ALL, TRAIN, WouldRun, rehearsed
from ..partitions.results import Evaluation
from ..partitions.saved import SavedData
from ..store import partial, restore, saving
from .call import REQUIRED, Call, read
from .commands import open_input
from .config import options_file, save_options

_UNASKED = {"graph", "out", "checkpoints", "shared", *NAMES}
"""Parameters that do not decide which partition is found."""


def partition(call: Call) -> None:
    """``fastpart partition``."""
    named = call["algorithm"]
    function = PARTITIONERS[named] if named else choosing.partition
    if call["dry_run"]:
        _rehearse(call, named or "partition", lambda graph, given: function(graph, **given))
    else:
        _make(call, named or "partition", lambda graph, given: function(graph, **given))


def succeed(call: Call) -> None:
    """``fastpart refine``, ``fastpart update`` and ``fastpart edges-of``."""
    name = call.name.replace("-", "_")
    _make(call, name, lambda graph, given: getattr(builtin, name)(graph=graph, **given))


Make = Callable[[Graph, dict[str, Any]], Partition]


def _make(call: Call, algorithm: str, make: Make) -> None:
    """Make a partition with the options of an algorithm, print its measures, and save it."""
    target, form = saving.output(call["out"]) if call["out"] else (None, "")
    for name, does in {"resume": "goes on to", "overwrite": "replaces"}.items():
        if call[name] and target is None:
            raise ParameterError(f"--{name}: {does} an output. Name it with -o")
    with at_place(call["cluster"], call["shared"]) as place:
        _make_at(place, call, algorithm, make, target, form)


def _make_at(
    place: Place | None, call: Call, algorithm: str, make: Make, target: Path | None, form: str
) -> None:
    of = items_of(algorithm, call.values)
    data = _data(call, form)
    saving.check_data(data, target, form, of, graph=True)
    _check_more(call, form)
    _check_relation_weights(call, algorithm, of)
    graph = open_input(call)
    if call["balance_on_ratio"] is not None and call["balance_on"] is None and not training_vertices(graph):
        raise ParameterError("--balance-on-ratio: has no effect without --balance-on")
    in_place = target is not None and form == "npy" and of == "edges"  # the parts never need to be in memory
    kept = None
    if target is not None:
        saving.refuse_unwritable(target, form, graph)
        kept = partial.of_partition(target)
        _refuse_other_results(call, kept, target, None if in_place else kept.found())
    at = saving.at(place)
    given = call.of(algorithm, "out") | at
    if "balance_on" in given:
        given["balance_on"] = _weights(given["balance_on"], graph)
    contents, measured = None, dict[str, Any]()
    if form == "directory":
        with call.run() as run:
            contents, measured = saving.Beside.of(data, graph, of, run)
        assert target is not None
        saving.refuse_loss(target, form, contents, bool(call["overwrite"]))
    # Labels and splits belong to vertices. The directory of an edge partition holds them, but no measure of them.
    unmeasured = ("labels", "splits", "split") if form == "directory" and of == "edges" else ()

    def evaluation_of(result: Partition) -> Evaluation:
        return measure(graph, result, **(call.of("evaluate", "partition", *unmeasured) | measured | at))

    if target is None or kept is None:
        result, pace = _timed(make, graph, given)
        evaluation = evaluation_of(result)
    elif in_place:
        result, pace = _timed(make, graph, given | {"out": target})
        with partial.noting(
            lambda: f"The partition is complete in {shown(call['out'])}. `fastpart evaluate` measures it"
        ):
            evaluation = evaluation_of(result)
    else:
        result, pace = _kept(call, algorithm, kept, graph, lambda: _timed(make, graph, given))
        with kept.named(_how(call)):
            evaluation = evaluation_of(result)
            if call["restore"] is not None:
                restore(result, target, graph=call["restore"])
            else:
                with call.run() as run:
                    saving.write(
                        result, target, form, run, evaluation, graph, contents, place, options_file(call)
                    )
        kept.remove()
        if call["export"] is not None:
            _export(call, target)
    if target is not None and form != "directory":
        save_options(call, target)
    print(evaluation.to_json() if call["json"] else evaluation)
    if not (call["json"] or call["quiet"]):
        chosen = result.parameters.get("chosen")
        print(f"\n{chosen['algorithm'] if chosen else algorithm}: {pace}")
        if chosen:
            print(f"chosen: {chosen['because']}")
        if target is not None:
            print(f"saved to {shown(target)}")
        if call["export"] is not None and target is not None:
            print(f"saved to {shown(_exported(call, target))}")


def _rehearse(call: Call, algorithm: str, make: Make) -> None:
    """Do the command up to its partitioner, or to the refusal, and print what would run."""
    if call["cluster"] is not None:
        raise ParameterError(
            "--dry-run: shows a run on this machine. `fastpart info --cluster` has the costs there"
        )
    if call["resume"]:
        raise ParameterError(
            "--dry-run: does not go with --resume, which runs no partitioner. Leave one of them out"
        )
    opened: list[Graph] = []

    def begin(graph: Graph, given: dict[str, Any]) -> Partition:
        opened.append(graph)
        return make(graph, {name: value for name, value in given.items() if name != "checkpoints"})

    with conversion_cache.unkept() as conversions, rehearsed():
        try:
            _make(call, algorithm, begin)
        except WouldRun as run:
            (graph,) = opened
            facts = _rehearsal(call, run, graph, sum(conversions))
            call.tell(facts, listed(_lines(facts)))


def _rehearsal(call: Call, run: WouldRun, graph: Graph, converted: int) -> dict[str, Any]:
    """Return the algorithms that would run, with the memory and the space on disks that they need."""
    k, symmetric = parts(call["k"]), graph.directedness == "symmetric"
    with call.run() as options:
        limit = options.memory_limit or _core.memory_budget()
        estimates = _core.memory_estimates(graph._source, k, symmetric, options)
        needed = {name: estimates.get(name.partition(":")[0]) for name in run.algorithms}
        plan = None
        if "multilevel" in needed:
            volume = call.values.get("volume_balance", None if call["algorithm"] else VOLUME_BALANCE)
            plans = _core.multilevel_plans(graph._source, k, symmetric, volume, None, options)
            plan = ([each for each in plans if each.memory <= limit] or plans[:1])[-1]
            needed["multilevel"] = plan.memory
        disks = {"temporary files": (plan.files if plan else None, options.tmp_dir or Path(gettempdir()))}
    if converted:
        disks["conversion"] = (converted, conversion_cache.home())
    if call["out"]:
        disks["output"] = (None, Path(call["out"]))
    return {
        "algorithms": run.algorithms,
        "because": run.because,
        "left_out": run.left_out,
        "of": items_of(call["algorithm"] or "partition", call.values),
        "k": k,
        "n": graph.num_vertices,
        "m": graph.num_edges,
        "directedness": graph.directedness,
        "memory": needed,
        "adjacency": estimates["adjacency"],
        "memory_limit": limit,
        "path": plan and plan.path,
        "disks": {
            name: {"folder": str(folder), "bytes": count, "free": free_bytes(folder)}
            for name, (count, folder) in disks.items()
        },
    }


def _lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts of a rehearsal as lines."""
    yield "graph", f"{facts['n']:,} vertices, {facts['m']:,} edges, {facts['directedness']}"
    yield "parts", f"{facts['k']:,} of the {facts['of']}"
    yield "would run", ", ".join(facts["algorithms"]) + (f": {facts['because']}" if facts["because"] else "")
    for name, why in facts["left_out"].items():
        yield "left out", f"{name}: {why.partition('. ')[0]}"
    for name, needed in facts["memory"].items():
        if name == "multilevel":
            yield "memory", f"{name} needs {sized(needed)}, its adjacency included, with path {facts['path']}"
        elif needed is not None:
            yield "memory", f"{name} needs {sized(needed)}, and the adjacency if it reads that"
    yield "adjacency", f"{sized(facts['adjacency'])} of memory"
    yield "memory limit", sized(facts["memory_limit"])
    for name, disk in facts["disks"].items():
        size = "" if disk["bytes"] is None else f"{sized(disk['bytes'])} in "
        free = "" if disk["free"] is None else f", where {sized(disk['free'])} are free"
        yield name, f"{size}{shown(disk['folder'])}{free}"
    yield "", "Nothing was written."


def _check_more(call: Call, form: str) -> None:
    """Refuse other outputs than those that --restore and --export work on."""
    if call["restore"] is not None:
        if form != "parquet":
            raise ParameterError("--restore: needs -o with a .parquet, which gets the ids beside the parts")
        GraphDirectory.of(call["restore"])
    if call["export"] is not None and form != "directory":
        raise ParameterError("--export: needs -o with a partition directory, which is exported")
    if call["export"] is not None:
        import_module("fastpart.export.common").require(call["export"])


def _exported(call: Call, target: Path) -> Path:
    """Return where the format of a training system goes: beside the partition directory."""
    return target.with_name(f"{target.name}-{call['export']}")


def _export(call: Call, target: Path) -> None:
    """Write the partition directory in the format of a training system."""
    with partial.noting(
        lambda: f"The partition is complete in {shown(target)}. `fastpart export` exports it"
    ):
        over = {"overwrite": True} if call["overwrite"] and call["export"] != "text" else {}
        getattr(import_module("fastpart.export"), call["export"])(target, _exported(call, target), **over)


def _check_relation_weights(call: Call, algorithm: str, of: str) -> None:
    """Refuse factors that nothing reads, and say so if only the measures do."""
    if call["relation_weights"] is None:
        return
    if of == "edges":
        raise ParameterError("--relation-weights: needs a partition of the vertices. Leave it out")
    if "relation_weights" not in read(algorithm):
        log.info(
            "--relation-weights: %s does not read weights. They count in the weighted cut only. multilevel reads them",
            algorithm,
        )


def _timed(make: Make, graph: Graph, given: dict[str, Any]) -> tuple[Partition, str]:
    """Make a partition, and say what it cost."""
    start = time.perf_counter()
    result = make(graph, given)
    seconds = time.perf_counter() - start
    pace = f", {graph.num_edges / seconds / 1e6:.1f} M edges/s" if graph.num_edges else ""
    files = (result.costs or {}).get("files", 0)
    return result, f"{seconds:.2f} s{pace}" + (f", {sized(files)} of temporary files" if files else "")


# Results that are kept.


def _kept(
    call: Call, algorithm: str, kept: partial.Partial, graph: Graph, make: Callable[[], tuple[Partition, str]]
) -> tuple[Partition, str]:
    """Return the partition that an earlier command kept, or make it and keep it, and say what it cost."""
    with call.run() as run:
        asked = _asked(call, algorithm, run)
        if call["resume"]:
            now = asked | _identity(graph, graph.identify(run)[1])
            found = partial.resume_partition(kept, now, graph, run)
            if found is not None:
                return found, f"resumed from {shown(kept.folder)}"
    result, pace = make()
    with call.run() as run:
        partial.keep_partition(kept, result, asked | _identity(graph, result.checksum), run)
    return result, pace


def _refuse_other_results(
    call: Call, kept: partial.Partial, target: Path, found: dict[str, Any] | None
) -> None:
    """Refuse to make again what an earlier command has kept, and to resume what is not there but complete."""
    if found is not None and not (call["resume"] or call["overwrite"]):
        text = (
            f"holds the partition of an unfinished command ({found.get('algorithm')}, k={found.get('k')}). Add "
            "--resume to go on from it, or --overwrite to begin anew"
        )
        raise FileExistsError(errno.EEXIST, text, str(kept.folder))
    if (
        found is None
        and call["resume"]
        and target.exists()
        and not (target.is_dir() and not any(target.iterdir()))
    ):
        text = (
            f"exists, and there is no {shown(kept.folder)} to go on from. Leave out --resume to make it anew and "
            "replace it"
        )
        raise FileExistsError(errno.EEXIST, text, str(target))


def _how(call: Call) -> str:
    verb = call.name.replace("_", "-")
    command = f"fastpart {verb} {shown(call['file'])} ... --resume -o {shown(call['out'])}"
    return f"To go on from there, add --resume to the same command: {command}"


def _identity(graph: Graph, checksum: str | None) -> dict[str, Any]:
    """Return what tells the graph from others."""
    n, m, directedness, weights = graph._sizes()
    known = {"n": n, "m": m, "directedness": directedness, "checksum": checksum, "weights": weights}
    return {f"the graph's {name}": value for name, value in known.items()}


def _asked(call: Call, algorithm: str, run: RunOptions) -> dict[str, Any]:
    """Return the algorithm and its parameters. Files count by their content."""
    asked: dict[str, Any] = {"--algorithm": algorithm}
    for name, option in read(algorithm).items():
        if name in _UNASKED:
            continue
        value = call[name]
        if value is None:
            value = None if option.default is REQUIRED else option.default
        elif option.is_file:
            words = value if isinstance(value, list) else [value]
            types = [word for word in words if _names_type(word)] if name == "balance_on" else []
            value = types + _content([word for word in words if word not in types], run)
        asked[name if name == "partition" else option.flag] = value
    return asked


def _content(names: list[str], run: RunOptions) -> list[str]:
    """Return the checksums of files, and of the vertices of a partition directory."""
    files, inside = [], []
    for text in names:
        name, array = archive_and_name(text)
        known = [Path(name) / MANIFEST, Path(name) / "assignment.npy"]
        files += known if os.path.isdir(name) else [Path(name)]
        inside += [array] if array else []
    checksums = [checksum for _, checksum in _core.hash_files([regular(file) for file in files], run)]
    return checksums + inside


# Values that the options name.


_TYPE = "type:"
"""What precedes the name of a type of vertices in ``--balance-on``."""

_ONLY = "vertices"
"""Stands for no bound in ``--balance-on`` beside that on all vertices."""

_ALONE = (ALL, TRAIN, _ONLY)
"""Words of ``--balance-on`` that no others stand beside."""


def _names_type(word: str) -> bool:
    """Return whether a word of ``--balance-on`` stands for vertices of types."""
    return word in _ALONE or word.startswith(_TYPE)


def _weights(words: str | list[str], graph: Graph) -> Any:
    """Return what ``--balance-on`` names, with commas between: files of arrays and types. A single one is no list."""
    names = words if isinstance(words, list) else [words]
    for word in _ALONE:
        if word in names and len(names) > 1:
            raise ParameterError(
                f"--balance-on: {word} stands alone. Name types as {_TYPE}NAME beside others"
            )
    if names == [_ONLY]:
        return []
    n, ids = graph.num_vertices, graph._id_tables
    bounds = [name.removeprefix(_TYPE) if _names_type(name) else weights_of(name, n, ids) for name in names]
    return bounds if len(bounds) > 1 or names[0] in (_TYPE + ALL, _TYPE + TRAIN) else bounds[0]


def _data(call: Call, form: str) -> SavedData:
    """Return the data to store in a partition directory. Other formats use labels and splits for the measures only."""
    measured = () if form == "directory" else ("labels", "splits", "split")
    return SavedData.checked(call.of("save", *measured))
