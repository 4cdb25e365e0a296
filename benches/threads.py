"""Processor time that a partition spends on one thread, which bounds how much more threads help.

    python benches/threads.py [SCALE]

Threads of the pool are called ``fastpart-0`` and so on. All other threads run what is sequential. So two cores suffice
to measure it. With a sequential share of s, no number of threads is more than 1 / s times as fast as one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median
from threading import Event, Thread
from time import process_time

import fastpart as fp

RUNS = 3
LOOK_SECONDS = 0.002


class Threads:
    """Processor seconds of the process, and of the threads that are none of the pool.

    A thread that ended between two looks has its time up to the last look.
    """

    def __enter__(self) -> Threads:
        self._of: dict[str, tuple[str, int]] = {}
        self._over, self._before = Event(), process_time()
        self._look()
        self._first = dict(self._of)
        self._watch = Thread(target=self._watching)
        self._watch.start()
        return self

    def _watching(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        for task in Path("/proc/self/task").iterdir():
            try:
                name = (task / "comm").read_text().strip()
                self._of[task.name] = name, int((task / "schedstat").read_text().split()[0])
            except OSError:  # it has ended
                continue

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watch.join()
        mine = {self._watch.native_id}
        of = {task: (name, ns - self._first.get(task, ("", 0))[1]) for task, (name, ns) in self._of.items()}
        watched = sum(ns for task, (_, ns) in of.items() if int(task) in mine) / 1e9
        self.seconds = process_time() - self._before - watched
        pool = sum(ns for name, ns in of.values() if name.startswith("fastpart-")) / 1e9
        others = sum(ns for task, (name, ns) in of.items() if int(task) not in mine) / 1e9 - pool
        self.sequential = others


def graphs(folder: Path, scale: int) -> dict[str, fp.Graph]:
    n, side = 1 << scale, 1 << scale // 2
    return {
        "planted": fp.generate.planted(folder / "planted.bin", n=n // 2, m=10 * n, classes=64),
        "R-MAT": fp.generate.rmat(folder / "rmat.bin", n=n, m=16 * n),
        "grid": fp.generate.grid(folder / "grid.bin", rows=side, columns=side),
    }


def measured(graph: fp.Graph, threads: int, effort: str) -> tuple[float, float]:
    with Threads() as took:
        fp.multilevel(graph, 16, threads=threads, effort=effort)
    return took.sequential / took.seconds, took.seconds


def main() -> None:
    scale = int(sys.argv[1]) if len(sys.argv) > 1 else 18
    with tempfile.TemporaryDirectory() as folder:
        print(f"k = 16, scale {scale}, median of {RUNS}\n\ngraph    effort   1 thread  2 threads  sequential")
        for name, graph in graphs(Path(folder), scale).items():
            graph.identify()
            for effort in ("fast", "quick", "default"):
                one = median(measured(graph, 1, effort)[1] for _ in range(RUNS))
                share, both = sorted(measured(graph, 2, effort) for _ in range(RUNS))[RUNS // 2]
                print(f"{name:8s} {effort:8s} {one:6.2f} s   {both:6.2f} s      {share:5.1%}", flush=True)


if __name__ == "__main__":
    main()
