"""What reads the specimens of :mod:`specimens_of_work`, and returns what it made of them."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from readers import READERS, command, everything, reads
from specimens import N
from specimens_of_work import BATCHES, cache_in

import fastpart as fp
from fastpart.graphs.ingest.stages import job
from fastpart.machines.tasks import TaskFiles, work

__all__ = ["READERS"]


@reads("ingested", "schema.yaml tables*")
def tables_ingested(folder: Path, out: Path) -> None:
    fp.ingest(folder / "schema.yaml", out / "graph")


@reads("ingested", "tables*", share=0.2)
def tables_guessed(folder: Path, out: Path) -> None:
    command("ingest", "--guess", folder / "tables", "-o", out / "s.yaml")


@reads("ingested", "graph*")
def graph_directory(folder: Path, out: Path) -> None:
    graph = fp.open_graph(folder / "graph")
    graph.degrees()
    repr(graph), graph.weights, fp.info(graph)
    p = fp.spring(graph, 2)
    p.save(out / "parts", graph=graph)
    everything(fp.open_partition(out / "parts"))
    command("info", folder / "graph")


@reads("ingested", "graph* y.npy")
def restored(folder: Path, out: Path) -> None:
    graph = folder / "graph"
    fp.store.restore(fp.VertexPartition(np.arange(N) % 2, 2), graph=graph, out=out / "p")
    fp.store.restore(folder / "y.npy", graph=graph, column="y", out=out / "y")


@reads("ingested", "graph*", share=0.3)
def vocabulary(folder: Path, out: Path) -> None:
    fp.ingest(folder / "schema.yaml", out / "graph", vocabulary=folder / "graph")


@reads("ingested", "graph* parts*", share=0.5, in_place=True)
def followed(folder: Path, out: Path) -> None:
    p = fp.update(folder / "graph", folder / "parts")
    p.save(folder / "parts", graph=folder / "graph", overwrite=True)
    everything(fp.open_partition(folder / "parts"))


@reads("ingested", "parts*")
def parts_with_ids(folder: Path, out: Path) -> None:
    everything(fp.open_partition(folder / "parts"))
    fp.open_partition(folder / "parts", verify=True)


@contextmanager
def small_units() -> Iterator[None]:
    """Read tables in units of the size that the specimen has."""
    job.ROWS, rows = 50, job.ROWS
    try:
        yield
    finally:
        job.ROWS = rows


@reads("interrupted", ".graph.ingest*", in_place=True, strict=True)
def ingest_resumed(folder: Path, out: Path) -> Any:
    with small_units():
        fp.ingest(folder / "schema.yaml", folder / "graph")
    return folder / "graph"


@reads("interrupted", ".graph.ingest*", share=0.3, in_place=True, strict=True)
def ingest_restarted(folder: Path, out: Path) -> Any:
    with small_units():
        fp.ingest(folder / "schema.yaml", folder / "graph", restart=True)
    return folder / "graph"


@reads("conversions", "cache*", in_place=True, strict=True)
def conversion_opened(folder: Path, out: Path) -> Any:
    with cache_in(folder):
        graph = fp.open_graph(folder / "g.csv")
        return [graph.degrees(), graph.num_edges, fp.spring(graph, 3).assignment]


@reads("conversions", "cache*", share=0.3, in_place=True)
def conversions_listed(folder: Path, out: Path) -> None:
    with cache_in(folder):
        command("conversions")
        command("conversions", "--clear")


@reads("tasks", "shared*", in_place=True, strict=True)
def tasks_run(folder: Path, out: Path) -> Any:
    return [work(folder / "shared", task=number) for number in range(2)] and folder / "shared"


@reads("tasks", "shared*", share=0.5, in_place=True, strict=True)
def tasks_begun_again(folder: Path, out: Path) -> Any:
    p, shared, found = fp.VertexPartition(np.arange(N, dtype=np.uint32) % 2, 2), folder / "shared", []

    def command() -> None:
        try:
            found.append(str(fp.evaluate(folder / "g.npy", p, cluster=TaskFiles(shared, 2), shared=shared)))
        except Exception as error:
            found.append(error)

    threading.Thread(target=command, daemon=True).start()
    while not found:
        for number in range(2):
            work(shared, task=number)
        time.sleep(0.01)
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


@reads("planned", "packed*", torch=True, strict=True)
def batches_of_a_plan(folder: Path, out: Path) -> Any:
    return list(_batches(folder, plan=folder / "packed"))


@reads("planned", "parts*", torch=True, share=0.5)
def batches_with_a_cache(folder: Path, out: Path) -> Any:
    return list(_batches(folder, cache=0.3))


def _batches(folder: Path, **given: Any) -> Iterator[Any]:
    vertices, batches = BATCHES["vertices"], {key: BATCHES[key] for key in ("fanouts", "batch_size", "seed")}
    with closing(fp.open_partition(folder / "parts").loader(vertices, **batches, **given)) as loader:
        for epoch in range(2):
            loader.set_epoch(epoch)
            for batch in islice(loader, 4):
                yield batch.n_id.numpy()
                yield batch.x.numpy()


@reads("configured", "options.toml")
def options_read(folder: Path, out: Path) -> None:
    words = ("--labels", folder / "g.bin.labels.npy", "--splits", folder / "s.npz")
    command("partition", folder / "g.bin", "-o", out / "p.npy", "--config", folder / "options.toml", *words)
