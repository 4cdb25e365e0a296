"""Bytes that Armada's groups and cache save, and the speed-up of a second batch worker.

    python benches/armada.py OUT [bytes | speed] ...

"planted" and "rmat" are generated in OUT: 1 M vertices, 16 M edges, 100 features, a tenth of the vertices to train on,
in 8 parts. The first two tables count the bytes of the messages of an epoch, without sending them. The last one runs
batch workers and a receiver as processes. The compute step sleeps and uses no processor.
"""

import os
import secrets
import sys
import time
from pathlib import Path

import numpy as np

import fastpart as fp
from fastpart.runtime.watch import Supervisor
from fastpart.train.methods.armada.driver import started
from fastpart.train.methods.armada.graphs import MappedParts
from fastpart.train.methods.armada.groups import Grouping, GroupReader
from fastpart.train.methods.armada.messages import Kind, framed
from fastpart.train.methods.armada.rendezvous import Settings, Source, address_of, connect

N, M, K, WIDTH, COMPUTE = 1 << 20, 16_000_000, 8, 100, 4


def stored(out: Path, name: str) -> Path:
    """Return the parts of a graph. Make them before if they are not there."""
    folder = out / f"{name}-parts"
    if folder.exists():
        return folder
    train = np.random.default_rng(3).choice(N, N // 10, replace=False)
    given = {"splits": {"train": train}, "labels": np.zeros(N, np.int64)}
    if name == "planted":
        graph = fp.generate.planted(out / "planted.bin", n=N, m=M, features=WIDTH, seed=1)
        features = out / "planted.bin.features.npy"
    else:
        graph = fp.generate.rmat(out / "rmat.bin", n=N, m=M, seed=1)
        features = out / "rmat.features.npy"
        np.lib.format.open_memmap(features, "w+", np.float32, (N, WIDTH)).flush()
    fp.algorithms.hash(graph, K).save(folder, graph=graph, features=features, **given)
    return folder


def settings_of(parts: Path, **given) -> Settings:
    default = {
        "sampling": "uniform",
        "seed": 0,
        "order": "global",
        "hold": 0,
        "cache": 0.0,
        "policy": "static",
        "ahead": 2,
        "batch_workers": 1,
        "compute_workers": COMPUTE,
        "first": 0,
        "local_workers": given.get("compute_workers", COMPUTE),
        "timeout": 300.0,
        "token": secrets.token_hex(16),
    }
    return Settings(source=str(parts), **{**default, **given})


class MessageCounter:
    """The messages of a batch worker of several, by their length."""

    def __init__(self, source: Source, worker: int) -> None:
        self._source, self._graph = source, MappedParts(source.partition, source.sampling)
        self._grouping = Grouping(source.num_rows, source.layout.row_bytes, source.indexes(worker))

    def step(self, epoch, number: int, step: int, slices) -> np.ndarray:
        """Return bytes, bytes of messages of one batch each, rows, and rows that are sent."""
        works = epoch.work(step, slices, self._source.settings.compute_workers)
        seeds = self._source.schedule.seeds.rows
        samples = [self._graph.sample(seeds[work.positions], number, step) for work in works]
        group = self._grouping.group(samples, [work.compute_worker for work in works])
        (sent,), ((rows, *_),), (row_bytes,) = group.sent, group.of_types, self._source.layout.row_bytes
        size = len(framed(group.content, [])) + sum(array.nbytes for array in group.arrays([sent[:0]]))
        return np.array([size + len(sent) * row_bytes, group.content["ungrouped"], len(rows), len(sent)])


def counted(source: Source, epochs: int = 1, steps: int | None = None) -> np.ndarray:
    """Return the counts of the last of some epochs."""
    workers = [MessageCounter(source, worker) for worker in range(source.settings.batch_workers)]
    for number in range(epochs):
        epoch = source.schedule.epoch(number)
        owners = epoch.owners(range(len(workers)))
        total = np.zeros(4, np.int64)
        for step in range(min(epoch.steps, steps or epoch.steps)):
            for worker, counts in enumerate(workers):
                total += counts.step(
                    epoch, number, step, [seed_slice for seed_slice in owners if owners[seed_slice] == worker]
                )
    return total


def grouping(out: Path) -> None:
    """Print the bytes of groups over those of single batches."""
    print("| graph | fanouts | batch | ungrouped MB per step | grouped MB per step | share |")
    print("|---|---|---:|---:|---:|---:|")
    for name in ("planted", "rmat"):
        for fanouts in ((15, 10, 5), (10, 10)):
            for batch_size in (1000, 4000):
                source = Source(settings_of(stored(out, name), fanouts=fanouts, batch_size=batch_size))
                steps = 10
                size, alone, *_ = counted(source, steps=steps)
                cells = (name, ",".join(map(str, fanouts)), f"{batch_size:,}", f"{alone / steps / 1e6:.1f}")
                print(f"| {' | '.join(cells)} | {size / steps / 1e6:.1f} | {size / alone:.3f} |", flush=True)


def caching(out: Path) -> None:
    """Print how many rows a cache of a tenth of all rows saves, and how many it was predicted to save."""
    print("| graph | fanouts | policy | batch workers | % saved | predicted | measured / predicted |")
    print("|---|---|---|---:|---:|---:|---:|")
    for name in ("planted", "rmat"):
        for fanouts in ((10, 10), (15, 10, 5)):
            for policy, workers in (("static", 1), ("static", 2), ("lru", 1)):
                given = {"fanouts": fanouts, "batch_size": 4000, "batch_workers": workers, "policy": policy}
                source = Source(settings_of(stored(out, name), cache=0.1 * K, **given))
                _, _, rows, sent = counted(source, epochs=2)  # the cache is full after the first one
                saved = 1 - sent / rows
                cells = [
                    name,
                    ",".join(map(str, fanouts)),
                    policy,
                    str(workers),
                    f"{100 * saved:.1f}",
                    "",
                    "",
                ]
                if policy == "static" and workers == 1:
                    share = predicted(source)
                    cells[5:] = f"{100 * share:.1f}", f"{saved / share:.3f}"
                print(f"| {' | '.join(cells)} |", flush=True)


def predicted(source: Source) -> float:
    """Return the share of the rows that the cache is predicted to save."""
    settings, rows = source.settings, source.schedule.seeds.rows
    given = {"num_seeds": len(rows), "batch_size": settings.batch_size}
    heat = source.topology.accesses(rows, list(settings.fanouts), **given)
    return float(heat[source.most_accessed()[0]].sum() / heat.sum())


def speed(out: Path) -> None:
    """Print the seconds per step of one and of two batch workers, with a compute step that sleeps."""
    print(
        "| sampling | batch | cache | batch workers | ms per step | times faster | processor ms of each, receiver |"
    )
    print("|---|---|---:|---:|---:|---:|---:|")
    parts = stored(out, "planted")
    for sampling, batch_size, cache in (
        ("labor", 1000, "400M"),
        ("labor", 4000, "200M"),
        ("uniform", 4000, 0.0),
    ):
        times = []
        for workers in (1, 2):
            given = {"fanouts": (10, 10), "batch_size": batch_size, "cache": cache, "sampling": sampling}
            wall, *processor = seconds(settings_of(parts, compute_workers=1, batch_workers=workers, **given))
            times.append(wall)
            cells = [
                sampling,
                f"{batch_size:,}",
                str(cache),
                str(workers),
                f"{1e3 * wall:.0f}",
                f"{times[0] / wall:.2f}",
            ]
            cells.append(f"{1e3 * max(processor[:-1]):.0f}, {1e3 * processor[-1]:.0f}")
            print(f"| {' | '.join(cells)} |", flush=True)


def seconds(settings: Settings, sleep: float = 0.005) -> list[float]:
    """Return the seconds per step of the second epoch, and processor seconds of batch workers and the receiver."""
    with Supervisor() as group:
        file = started(group, settings)
        link, _ = connect(address_of(file.parent), settings, {"compute worker": 0})
        layout = Source(settings).layout
        for number in range(2):
            pids = [child.process.pid for child in group._children]
            before = [time.perf_counter(), *map(processor_seconds, pids)]
            link.send({"kind": Kind.EPOCH, "epoch": number})
            steps = link.receive().content["steps"]
            for step in range(steps):
                for piece in link.receive().content["pieces"]:
                    GroupReader(layout, *piece)
                link.send({"kind": Kind.USED, "step": step})
                time.sleep(sleep)
            after = [time.perf_counter(), *map(processor_seconds, pids)]
        link.close()
    return [(end - start) / steps for start, end in zip(before, after, strict=True)]


def processor_seconds(pid: int) -> float:
    """Return the time that a process had a processor."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


TABLES = {"bytes": (grouping, caching), "speed": (speed,)}


def main(out: Path, names: list[str]) -> None:
    out.mkdir(exist_ok=True)
    for name in names or TABLES:
        for table in TABLES[name]:
            table(out)
            print()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
