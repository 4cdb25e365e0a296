"""Kill random processes of trainings at random times, and print how each ended: kills.py [KILLS] [SEED]."""

import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import fastpart as fp

PARTS, SAMPLERS = 2, 1
LATEST = 30.0
"""Seconds after the first process has started; training begins after 5 to 15 of them."""


def save_parts(folder):
    n, generator = 2000, np.random.default_rng(0)
    labels = np.arange(n) % 4
    sources = generator.integers(0, n, 8 * n)
    edges = np.stack([sources, (sources + 4 * generator.integers(0, n // 4, 8 * n)) % n], axis=1)
    features = generator.normal(size=(n, 16)).astype(np.float32)
    splits = {"train": np.arange(n // 2), "val": np.arange(n // 2, n)}
    partition = fp.VertexPartition(np.arange(n) % PARTS, PARTS)
    edges = fp.open_graph(edges, num_vertices=n)
    partition.save(folder, graph=edges, features=features, labels=labels, splits=splits)


def descendants(pid):
    try:
        below = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return below + [descendant for child in below for descendant in descendants(child)]


def role(pid):
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return None
    roles = {"distributed.server": "server", "distributed.worker": "trainer", "spawn_main": "sampler"}
    return next((role for text, role in roles.items() if text in command), None)


class Killer(threading.Thread):
    """Kills one process after a while, and remembers all that there were."""

    def __init__(self, delay, choose):
        super().__init__(daemon=True)
        self.delay, self.choose, self.seen, self.killed, self.at = delay, choose, set(), None, None

    def run(self):
        begun = None
        while True:
            now = {pid: role(pid) for pid in descendants(os.getpid())}
            self.seen |= now.keys()
            begun = begun or (time.monotonic() if now else None)
            victims = sorted(pid for pid, what in now.items() if what)
            if begun and victims and time.monotonic() - begun > self.delay:
                victim = self.choose(victims)
                self.killed, self.at = now[victim], time.monotonic()
                os.kill(victim, signal.SIGKILL)
                return
            time.sleep(0.02)


def attempt(folder, generator):
    """Return whether one run ended as it should, and say how."""
    killer = Killer(generator.uniform(0, LATEST), generator.choice)
    killer.start()
    epochs = 0

    def progress(phase, done, total):
        nonlocal epochs
        epochs = done if phase == "epoch" else 0

    try:
        fp.train.distdgl(folder, epochs=10**6, samplers=SAMPLERS, progress=progress)
        cause = "no error"
    except fp.TrainingError as error:
        cause = str(error)
    if killer.at is None:
        print(f"BAD   ended before anything was killed: {cause}", flush=True)
        return False
    seconds = time.monotonic() - killer.at
    time.sleep(0.1)
    alive = [pid for pid in killer.seen if role(pid)]
    left = [name for place in ("/dev/shm", tempfile.gettempdir()) for name in os.listdir(place) if mine(name)]
    good = seconds < 10 and "SIGKILL" in cause and not alive and not left
    first = " ".join(cause.split())[:150]
    print(
        f"{'good' if good else 'BAD '}  {killer.killed:8} killed after {killer.delay:4.1f} s, epoch {epochs:4}; all "
        f"ended {seconds:4.2f} s later; processes left {alive}, files left {left}: {first}",
        flush=True,
    )
    return good


def mine(name):
    return f"fastpart-{os.getpid()}-" in name


def main():
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    generator = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    with tempfile.TemporaryDirectory() as folder:
        save_parts(f"{folder}/parts")
        good = sum(attempt(f"{folder}/parts", generator) for _ in range(kills))
    print(f"{good} of {kills} ended within 10 seconds, with the cause and nothing left")
    sys.exit(good != kills)


if __name__ == "__main__":
    main()
