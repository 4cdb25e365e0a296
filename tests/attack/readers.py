"""What reads a specimen and uses what it read: the functions and verbs that a user would call on its files."""

import inspect
import io
import pickle
from collections.abc import Callable
from contextlib import closing, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from specimens import LEVELS, MODEL, SPLITS, WITH_TORCH, N

import fastpart as fp
from fastpart.cli import main

PARTS = "vertices plain edges links bare schema*"
OF_VERTICES = "vertices plain links schema?_vertices"
ONE_EPOCH = MODEL | {"epochs": 1, "timeout": 60}


@dataclass(frozen=True)
class Reader:
    """A function of the folder of a specimen, and of an empty folder for what it writes."""

    name: str
    read: Callable[[Path, Path], object]
    specimens: tuple[str, ...]
    files: tuple[str, ...]
    """Patterns of the files that it reads, relative to the folder."""
    share: float
    """Of the cases, how many it takes part in: less than 1 for what takes long."""
    torch: bool
    in_place: bool
    """Whether it writes to the folder, so that the next reader needs another copy."""
    strict: bool
    """Whether no change of its files may change in silence what it returns: arrays, text, or a folder that it wrote."""

    def is_of(self, specimen: str) -> bool:
        """Return whether it reads this specimen."""
        return any(fnmatch(specimen, name) for name in self.specimens)

    def takes(self, specimen: str, file: str) -> bool:
        """Return whether it reads this file."""
        return self.is_of(specimen) and any(fnmatch(file, name) for name in self.files)


READERS: list[Reader] = []


def reads(
    specimens: str,
    files: str = "*",
    *,
    share: float = 1,
    torch: bool = False,
    in_place: bool = False,
    strict: bool = False,
) -> Callable[[Any], Any]:
    """Register a reader of the files of some specimens."""

    def register(function: Callable[[Path, Path], object]) -> Callable[[Path, Path], object]:
        if WITH_TORCH or not torch:
            patterns = tuple(specimens.split()), tuple(files.split())
            READERS.append(Reader(function.__name__, function, *patterns, share, torch, in_place, strict))
        return function

    return register


class Refused(Exception):
    """A command ended with another exit code than 0, as it says."""


def command(*words: object) -> None:
    """Run a command. Its refusal must be one line, and no internal error."""
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        code = main([*map(str, words), "-q"])
    if code:
        raise Refused(f"{code}: {said.getvalue()}")


# Graphs


@reads("raw wide relabelled arrays", "*.bin *.bin.json *.bin.weights.npy g.npy index.npy")
def opened(folder: Path, out: Path) -> None:
    for name, how in (
        ("g.bin", {}),
        ("g.bin", {"io": "read"}),
        ("g.npy", {}),
        ("index.npy", {"layout": "edge_index"}),
    ):
        if (folder / name).exists():
            graph = fp.open_graph(folder / name, **how, **_wide(folder))
            fp.info(graph)
            graph.degrees()
            repr(graph), graph.weights, graph == pickle.loads(pickle.dumps(graph))


def _wide(folder: Path) -> dict[str, Any]:
    return {"dtype": "u64"} if folder.name == "wide" else {}


@reads("raw relabelled", "g.bin g.bin.json g.bin.weights.npy")
def partitioned(folder: Path, out: Path) -> None:
    for name in ("spring", "multilevel", "hdrf", "ldg"):
        p = getattr(fp.algorithms, name)(folder / "g.bin", 4)
        p.evaluate()
    fp.sigma(folder / "g.bin", 4, of="edges").save(out / "parts", graph=folder / "g.bin")


@reads("raw", "g.bin* s.npz masks.npz on.npy")
def commands(folder: Path, out: Path) -> None:
    command("info", folder / "g.bin")
    rows = ("--labels", folder / "g.bin.labels.npy", "--features", folder / "g.bin.features.npy")
    command("partition", folder / "g.bin", "-k", 3, "-o", out / "parts", *rows, "--splits", folder / "s.npz")
    command(
        "partition", folder / "g.bin", "-k", 3, "--algorithm", "multilevel", "--balance-on", folder / "on.npy"
    )
    command("partition", folder / "g.bin", "-k", 3, "--splits", folder / "masks.npz", "--split", 1)


@reads("raw relabelled", "g.bin*")
def ordered(folder: Path, out: Path) -> None:
    fp.order(folder / "g.bin", out=out / "o.bin")
    fp.open_graph(out / "o.bin").degrees()


@reads("raw relabelled wide arrays", "*.bin* *.npy")
def rewritten(folder: Path, out: Path) -> None:
    source = folder / ("g.npy" if folder.name == "arrays" else "g.bin")
    for name in ("c.bin", "c.graph", "c.parquet", "c.binedgelist", "c.txt"):
        with suppress(fp.errors.ParameterError):
            fp.convert(source, out / name, **_wide(folder))
    if folder.name == "wide":
        fp.convert(folder / "swapped.bin", out / "swapped", swap=True)


@reads("raw relabelled arrays", "*.bin* g.npy", share=0.3)
def split_and_clustered(folder: Path, out: Path) -> None:
    source = folder / ("g.npy" if folder.name == "arrays" else "g.bin")
    fp.split_edges(source, out=out / "train.bin")
    fp.cluster(source)
    fp.predict_traffic(fp.spring(source, 2), [2, 2], batch_size=16, graph=source, splits=SPLITS)


@reads("text tables")
def converted(folder: Path, out: Path) -> None:
    for file in sorted(folder.glob("g.*")):
        weights = {".tsv": 3, ".parquet": "w"}.get(file.suffix)
        fp.convert(file, out / f"{file.name}.bin", weights=weights)
        fp.spring(out / f"{file.name}.bin", 2)
        fp.convert(file, out / f"{file.name}.dense", relabel=True)


@reads("text", share=0.2)
def convert_command(folder: Path, out: Path) -> None:
    for file in sorted(folder.glob("g.*")):
        command("convert", file, out / f"{file.name}.bin")


@reads("rows tables")
def rows_saved(folder: Path, out: Path) -> None:
    if folder.name == "tables":
        fp.VertexPartition(np.arange(N) % 2, 2).save(
            out / "parts", graph=np.arange(2 * N).reshape(-1, 2) % N, features=folder / "x.parquet"
        )
        return
    p, graph = fp.VertexPartition(np.arange(N) % 2, 2), folder / "g.bin"
    given = {"graph": graph, "splits": folder / "s.npz", "edge_features": folder / "e.npy"}
    p.save(out / "dense", features=folder / "x.npy", labels=folder / "y.npy", **given)
    p.save(out / "sparse", features=folder / "x.npz", labels=folder / "many.npy", **given)
    p.save(out / "masks", graph=graph, splits=folder / "masks.npz", split=1)
    for parts in ("dense", "sparse"):
        everything(fp.open_partition(out / parts))
    fp.evaluate(graph, p, labels=folder / "y.npy", splits=folder / "s.npz")
    fp.algorithms.bytegnn(graph, 2, splits=folder / "s.npz")


# Partitions


@reads("assignments")
def in_files(folder: Path, out: Path) -> None:
    graph = folder / "g.bin"
    for name in ("p.npy", "p.txt", "p.parquet", "e.npy", "e.parquet"):
        p = fp.open_partition(folder / name)
        repr(p), p._repr_html_(), p == p, p.loads
        fp.open_partition(folder / name, graph).evaluate()
        p.save(out / f"again{Path(name).suffix}")
    fp.refine(graph, folder / "p.npy")
    fp.update(graph, folder / "p.txt")
    fp.edges_of(graph, folder / "p.parquet")
    fp.home_parts(graph, fp.open_partition(folder / "e.npy"))
    fp.algorithms.expected_cut(graph, fp.open_partition(folder / "halves.npy"), 0.5)


@reads("assignments", share=0.2, in_place=True)
def files_in_commands(folder: Path, out: Path) -> None:
    for name in ("p.npy", "p.txt", "p.parquet", "e.npy", "e.parquet"):
        command("evaluate", folder / "g.bin", folder / name)
    command("order", folder / "g.bin", "--partition", folder / "p.npy", "-o", out / "o.bin")
    command("update", folder / "g.bin", folder / "p.npy", "-o", folder / "p.npy")


def everything(p: Any) -> None:
    """Ask for all that the parts have, and add it up."""
    for part in p.parts:
        for name, value in inspect.getmembers(type(part)):
            if isinstance(value, property) or type(value).__name__ == "cached_property":
                found = getattr(part, name)
                if isinstance(found, np.ndarray) and found.dtype.kind in "biuf":
                    with np.errstate(all="ignore"):
                        found.sum()
        part.in_edges()
        repr(part), part._repr_html_()
        if part.num_inner and part.num_rows:
            part.in_edges(int(part.vertices[0]))
        for peer in range(p.k) if hasattr(part, "send") else ():
            part.send(peer), part.recv(peer)


@reads(PARTS)
def directories(folder: Path, out: Path) -> None:
    p = fp.open_partition(folder / "parts")
    repr(p), p._repr_html_(), repr(p.loads)
    if "directedness" in p.manifest:
        everything(p)
        with suppress(RecursionError):  # pickle's own, of parameters that are nested deeply
            assert pickle.loads(pickle.dumps(p)) == p
    p.save(out / "again.npy")
    p.save(out / "again.parquet")


@reads("typed")
def typed_directories(folder: Path, out: Path) -> None:
    p = fp.open_partition(folder / "parts")
    everything(p)
    for part in p.parts:
        for each in part.types:
            _members(part.of_type(each.name))
        for each in part.edge_types:
            _members(part.of_relation(each.name))
            part.of_relation(each.name).in_edges()
    fp.open_partition(folder / "parts", verify=True)


def _members(view: Any) -> None:
    for name, value in inspect.getmembers(type(view)):
        if isinstance(value, property) or type(value).__name__ == "cached_property":
            getattr(view, name)


@reads("typed")
def typed_in_use(folder: Path, out: Path) -> None:
    p = fp.open_partition(folder / "parts", folder / "g.bin")
    fp.predict_traffic(p.folder, [2, 2], batch_size=16)
    fp.export.text(folder / "parts", out / "text")
    fp.export.wholegraph(folder / "parts", out / "wholegraph")
    fp.refine(p.graph, p).save(out / "again")


@reads("typed", torch=True)
def typed_with_torch(folder: Path, out: Path) -> None:
    fp.export.pyg(folder / "parts", out / "pyg")


@reads("typed", torch=True)
def typed_stores(folder: Path, out: Path) -> None:
    import torch
    from torch_geometric.loader import NodeLoader

    p = fp.open_partition(folder / "parts")
    features, graph = fp.pyg.feature_store(p), fp.pyg.graph_store(p)
    for edge in graph.get_all_edge_attrs():
        graph.get_edge_index(edge)[0].sum()
    for rows in features.get_all_tensor_attrs():
        features.get_tensor(group_name=rows.group_name, attr_name=rows.attr_name, index=None)
    sampler, seeds = fp.pyg.sampler(p, [2]), ("item", torch.arange(8))
    for batch in NodeLoader((features, graph), node_sampler=sampler, input_nodes=seeds, batch_size=4):
        batch["item"].x.sum()


@reads(PARTS)
def measured(folder: Path, out: Path) -> None:
    p = fp.open_partition(folder / "parts", _graph(folder))
    str(p.evaluate())
    if p.of == "edges":
        fp.home_parts(_graph(folder), p)
        return
    fp.refine(p.graph, p, **_bounds(folder))
    fp.edges_of(p.graph, p)
    if "directedness" in p.manifest:
        fp.predict_traffic(p, [2, 2], batch_size=16, splits={"train": range(8)})


def _bounds(folder: Path) -> dict[str, Any]:
    """The weights that a partition balances and does not keep."""
    return {"balance_on": np.arange(N) % 5} if folder.name == "vertices" else {}


def _graph(folder: Path) -> Path:
    return folder / ("train.bin" if folder.name == "links" else "g.bin")


@reads("vertices plain links edges bare")
def verified(folder: Path, out: Path) -> None:
    if "verify" in inspect.signature(fp.open_partition).parameters:
        fp.open_partition(folder / "parts", verify=True)


@reads("vertices plain bare schema?_vertices", in_place=True)
def updated(folder: Path, out: Path) -> None:
    p = fp.update(_graph(folder), folder / "parts", **_bounds(folder))
    p.save(folder / "parts", graph=_graph(folder), overwrite=True)
    everything(fp.open_partition(folder / "parts"))


@reads(PARTS, "parts/manifest.json parts/assignment.npy parts/part-?????", share=0.5, in_place=True)
def replaced(folder: Path, out: Path) -> None:
    fp.algorithms.hdrf(_graph(folder), 2).save(folder / "parts", graph=_graph(folder), overwrite=True)
    everything(fp.open_partition(folder / "parts"))


@reads("schema*", in_place=True)
def upgraded(folder: Path, out: Path) -> None:
    fp.store.upgrade(folder / "parts")
    everything(fp.open_partition(folder / "parts"))


@reads(PARTS, share=0.2, in_place=True)
def directories_in_commands(folder: Path, out: Path) -> None:
    command("evaluate", _graph(folder), folder / "parts")
    command("upgrade", folder / "parts")


@reads(OF_VERTICES)
def exported(folder: Path, out: Path) -> None:
    fp.export.text(folder / "parts", out / "text")
    fp.export.wholegraph(folder / "parts", out / "wholegraph")


@reads(OF_VERTICES, torch=True)
def exported_with_torch(folder: Path, out: Path) -> None:
    fp.export.glt(folder / "parts", out / "glt")
    fp.export.pyg(folder / "parts", out / "pyg")


@reads("exports", in_place=True)
def exported_again(folder: Path, out: Path) -> None:
    fp.export.text(folder / "parts", folder / "text")
    fp.export.wholegraph(folder / "parts", folder / "wholegraph")


@reads("links", "train.bin*")
def held_out(folder: Path, out: Path) -> None:
    p = fp.VertexPartition(np.arange(N) % 2, 2)
    p.save(out / "parts", graph=folder / "train.bin", edge_splits=folder / "train.bin.splits.npz")
    everything(fp.open_partition(out / "parts"))


@reads("vertices plain edges schema3*", "parts/*.json parts/*.npy", share=0.02)
def drawn(folder: Path, out: Path) -> None:
    fp.report.draw({"it": fp.open_partition(folder / "parts", _graph(folder)).evaluate()}, out / "p.svg")


# Batches and training


@reads(OF_VERTICES, torch=True)
def loaded(folder: Path, out: Path) -> None:
    p = fp.open_partition(folder / "parts")
    with closing(p.loader("train", fanouts=[2, 2], batch_size=8)) as batches:
        for batch in islice(batches, 2):
            _used(batch)
    with closing(
        p.loader([0, 1, 2, 3], fanouts=[2], batch_size=4, resident="1M", cache=0.3, cache_by="links")
    ) as batches:
        for batch in batches:
            _used(batch)


def _used(batch: Any) -> None:
    for name in ("x", "y", "n_id", "e_id", "edge_attr", "edge_index"):
        value = getattr(batch, name, None)
        if value is not None:
            value.double().sum()


@reads("links", torch=True)
def links_loaded(folder: Path, out: Path) -> None:
    p = fp.open_partition(folder / "parts")
    for split in ("train", "val"):
        with closing(p.link_loader(split, fanouts=[2], batch_size=16, negatives="local")) as batches:
            for batch in islice(batches, 2):
                _used(batch)


@reads(OF_VERTICES, torch=True, in_place=True)
def caches(folder: Path, out: Path) -> None:
    fp.open_partition(folder / "parts").save_cache(0.2, fanouts=[2], batch_size=16)


@reads(OF_VERTICES, torch=True)
def stores(folder: Path, out: Path) -> None:
    from torch_geometric.loader import NodeLoader

    p = fp.open_partition(folder / "parts")
    features, graph = fp.pyg.feature_store(p), fp.pyg.graph_store(p)
    for edge in graph.get_all_edge_attrs():
        graph.get_edge_index(edge)[0].sum()
    for tensor in features.get_all_tensor_attrs():
        features.get_tensor(group_name=None, attr_name=tensor.attr_name, index=None)
    import torch

    ids = torch.arange(8)
    for batch in NodeLoader(
        (features, graph), node_sampler=fp.pyg.sampler(p, [2]), input_nodes=ids, batch_size=4
    ):
        batch.x.double().sum()


@reads("vertices plain edges schema?_*", torch=True, share=0.5)
def trained_whole(folder: Path, out: Path) -> None:
    fp.train.full(folder / "parts", **MODEL | {"epochs": 1}, out=out / "run")


@reads("plain trained", "parts*", torch=True, share=0.5)
def predicted(folder: Path, out: Path) -> None:
    model = _model(folder.parents[1] / "pristine" / folder.name)
    model.predict(folder / "parts", out=out / "y.npy")
    model.predict(folder / "parts", what="logits").sum()


@cache
def _model(pristine: Path) -> Any:
    return fp.train.full(pristine / "parts", **MODEL)


@reads("trained", "run*", torch=True, in_place=True, strict=True)
def resumed(folder: Path, out: Path) -> Any:
    model = fp.train.full(folder / "parts", **MODEL, out=folder / "run", resume=True)
    return [model.history.drop("seconds", strict=False), model.predict(folder / "parts")]


@reads("trained", "run*", torch=True, strict=True)
def run_opened(folder: Path, out: Path) -> Any:
    model = fp.train.open(folder / "run")
    str(model), repr(model)
    return model.predict(folder / "parts", what="logits")


@reads("trained", "run*", torch=True, share=0.3, in_place=True)
def run_replaced(folder: Path, out: Path) -> None:
    replace = {"overwrite": True} if "overwrite" in inspect.getdoc(fp.train.full) else {}
    fp.train.full(folder / "parts", **MODEL, out=folder / "run", **replace)


@reads("vertices plain", "parts/*", torch=True, share=0.005)
def sampled_by_processes(folder: Path, out: Path) -> None:
    fp.train.sampled(folder / "parts", **ONE_EPOCH, fanouts=[2, 2], batch_size=16)


@reads("vertices plain", "parts/*", torch=True, share=0.005)
def averaged_by_processes(folder: Path, out: Path) -> None:
    fp.train.sdt(folder / "parts", **ONE_EPOCH)


@reads("vertices plain", "parts/*", torch=True, share=0.005)
def row_blocks_by_processes(folder: Path, out: Path) -> None:
    fp.train.sancus(folder / "parts", **ONE_EPOCH)


@reads("edges", "parts/*", torch=True, share=0.01)
def edges_by_processes(folder: Path, out: Path) -> None:
    fp.train.distgnn(folder / "parts", **ONE_EPOCH)


@reads("links", "parts/*", torch=True, share=0.01)
def links_by_processes(folder: Path, out: Path) -> None:
    fp.train.links(folder / "parts", **ONE_EPOCH, fanouts=[2, 2], batch_size=64)


# What else is kept


@reads("checkpoints", "kept*", in_place=True, strict=True)
def levels_resumed(folder: Path, out: Path) -> Any:
    return fp.multilevel(folder / "g.bin", 4, **LEVELS, checkpoints=folder / "kept").assignment


@reads("comparisons")
def compared(folder: Path, out: Path) -> None:
    comparison = fp.open_comparison(folder / "c.json")
    str(comparison), repr(comparison), comparison._repr_html_()
    comparison.save(out / "again.json")
    comparison.save(out / "table.parquet")


@reads("comparisons", share=0.05)
def reported(folder: Path, out: Path) -> None:
    command("report", folder / "c.json", "-o", out / "r.html")
