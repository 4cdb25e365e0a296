"""Kill or stop random ranks of trainings at random times, and print how each ended: kills.py METHOD [EVENTS] [SEED].

METHOD is "sampled", "sdt", "distgnn" or "sancus" (workers of one supervisor), "messages" (``sampled`` under torchrun,
each rank with the features of its own parts only), or "distdgl" (servers, trainers and samplers, killed but not
stopped).
"""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fastpart as fp

PARTS = 3

RANK = """
import os, sys, fastpart as fp
folder, timeout = f"{sys.argv[1]}/rank{os.environ['RANK']}", float(sys.argv[2])
fp.train.sampled(folder, out=sys.argv[3], epochs=10**6, batch_size=200, threads=1, timeout=timeout)
"""

SHARED_MEMORY = "/dev/shm"


@dataclass(frozen=True)
class Method:
    """How to train, and what has to be printed and when.

    Attributes
    ----------
    command : str
        What Python runs. ``{parts}`` stands for the folder of the parts, ``{out}`` for that of the output.
    roles : dict
        What the processes are, by a part of their command lines.
    signals : dict
        What each event has to say. ``{rank}`` stands for the rank that it hit.
    within : float
        Seconds from the event to the end.
    latest : float
        Events come so many seconds after the first process, at the latest.
    """

    command: str
    roles: dict[str, str]
    signals: dict[signal.Signals, str]
    within: float
    latest: float


MANY = "--epochs 1000000 --quiet"


def supervised(arguments):
    return Method(
        f"-m fastpart train {arguments} --timeout 3 {MANY}",
        {"jobs.process": "worker"},
        {
            signal.SIGKILL: "worker {rank} was killed by SIGKILL",
            signal.SIGSTOP: "worker {rank} hangs: .* It is stopped",
        },
        15,
        15,
    )


METHODS = {
    "sampled": supervised(f"sampled {{parts}}/whole --workers {PARTS} --batch-size 200"),
    "sdt": supervised(f"sdt {{parts}}/whole --workers {PARTS}"),
    "distgnn": supervised("distgnn {parts}/edges"),
    "sancus": supervised("sancus {parts}/whole"),
    "messages": Method(
        f"-m torch.distributed.run --standalone --nproc-per-node {PARTS} {{parts}}/rank.py {{parts}} 4 {{out}}",
        {"\0-u\0": "rank"},
        {
            signal.SIGKILL: r"rank +: {rank} \(.*Signal 9 \(SIGKILL\) received",
            signal.SIGSTOP: "rank {rank}: (no answer|did not come) to the other ranks",
        },
        30,  # nobody misses a rank before the others have imported torch
        25,
    ),
    "distdgl": Method(
        f"-m fastpart train distdgl {{parts}}/whole --samplers 1 {MANY}",
        {"distdgl.server": "server", "distdgl.worker": "trainer", "spawn_main": "sampler"},
        {signal.SIGKILL: "SIGKILL"},
        10,
        30,
    ),
}


def save_parts(folder):
    """Save parts of vertices and of edges, and for each rank a copy with the features of its own part only."""
    n, generator = 2000, np.random.default_rng(0)
    labels = np.arange(n) % 4
    sources = generator.integers(0, n, 8 * n)
    edges = np.stack([sources, (sources + 4 * generator.integers(0, n // 4, 8 * n)) % n], axis=1)
    features = generator.normal(size=(n, 16)).astype(np.float32)
    splits = {"train": np.arange(n // 2), "val": np.arange(n // 2, n)}
    rows = {"features": features, "labels": labels, "splits": splits}
    edges = fp.open_graph(edges, num_vertices=n)
    fp.VertexPartition(np.arange(n) % PARTS, PARTS).save(folder / "whole", graph=edges, **rows)
    fp.algorithms.hdrf(edges, PARTS).save(folder / "edges", graph=edges, **rows)
    for rank in range(PARTS):
        shutil.copytree(folder / "whole", folder / f"rank{rank}")
        for part in set(range(PARTS)) - {rank}:
            (folder / f"rank{rank}" / f"part-{part:05d}" / "features.npy").unlink()
    (folder / "rank.py").write_text(RANK)


def descendants(pid):
    try:
        below = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return below + [descendant for child in below for descendant in descendants(child)]


def read(pid, name):
    """Return a file of a process, which is empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def role(pid, roles):
    command = read(pid, "cmdline")
    return next((role for text, role in roles.items() if text in command), None)


class Event(threading.Thread):
    """A signal to one process below another after a while. Remembers all processes that there were."""

    def __init__(self, root, method, number, generator):
        super().__init__(daemon=True)
        self.root, self.method, self.number = root, method, number
        self.delay, self.choose = generator.uniform(0, method.latest), generator.choice
        self.seen, self.hit, self.rank, self.at = {root}, None, None, None
        self.over = False

    def run(self):
        begun = None
        while not self.over:
            now = descendants(self.root)
            self.seen.update(now)
            victims = sorted(pid for pid in now if role(pid, self.method.roles))
            begun = begun or (time.monotonic() if victims else None)
            if self.at is None and victims and time.monotonic() - begun > self.delay:
                self._strike(self.choose(victims), victims)
            time.sleep(0.02)

    def _strike(self, pid, victims):
        self.hit = role(pid, self.method.roles)
        rank = re.search(r"(?:^|\0)RANK=(\d+)", read(pid, "environ"))
        # A copy of the server of workers has its variables elsewhere, but copies begin in the order of their ranks.
        self.rank, self.at = rank[1] if rank else str(victims.index(pid)), time.monotonic()
        os.kill(pid, self.number)


def attempt(method, parts, generator):
    """Return whether one run ended as it should, and say how."""
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder, "tmp")
        tmp.mkdir()
        words = [word.format(parts=parts, out=f"{folder}/out") for word in method.command.split()]
        environment = {**os.environ, "TMPDIR": str(tmp), "OMP_NUM_THREADS": "1"}
        started = subprocess.Popen(
            [sys.executable, *words],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment,
        )  # fmt: skip
        event = Event(started.pid, method, generator.choice(list(method.signals)), generator)
        event.start()
        printed, _ = started.communicate()
        ended = time.monotonic()
        event.over = True
        event.join()
        time.sleep(0.1)
        left = [
            name for place in (SHARED_MEMORY, tmp) for name in os.listdir(place) if is_of(name, event.seen)
        ]
    return judged(method, event, ended, printed, left)


def is_of(name, seen):
    match = re.search(r"fastpart-(\d+)-", name)
    return match is not None and int(match[1]) in seen


def judged(method, event, ended, printed, left):
    """Print how a run ended, and return whether that is as it should be."""
    alive = [pid for pid in event.seen if role(pid, method.roles)]
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    if event.at is None:
        print(f"BAD   ended before anything was hit: {printed[-500:]}", flush=True)
        return False
    seconds = ended - event.at
    named = re.search(method.signals[event.number].format(rank=event.rank), printed, re.DOTALL)
    good = seconds < method.within and named and not alive and not left
    print(
        f"{'good' if good else 'BAD '}  {event.number.name} to {event.hit} {event.rank} after {event.delay:4.1f} s; "
        f"all ended {seconds:4.1f} s later; processes left {alive}, files left {left}",
        flush=True,
    )
    if not good:
        print(printed[-3000:], flush=True)
    return bool(good)


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in METHODS:
        sys.exit(__doc__)
    method, events = METHODS[sys.argv[1]], int(sys.argv[2]) if len(sys.argv) > 2 else 30
    generator = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    with tempfile.TemporaryDirectory() as folder:
        save_parts(Path(folder))
        good = sum(attempt(method, folder, generator) for _ in range(events))
    print(
        f"{good} of {events} ended within {method.within:g} seconds, with the rank, the cause and nothing left"
    )
    sys.exit(good != events)


if __name__ == "__main__":
    main()
