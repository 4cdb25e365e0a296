"""Measurements that criterion does not make: memory, a billion edges, Ctrl-C, and the GIL. Run it with `make bench`.

`FASTPART_BENCH_BILLION=0` leaves out the file of a billion edges (8 GB under target/).
"""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median

import fastpart as fp

TARGET = Path(__file__).resolve().parents[1] / "target"


def rss_anon() -> int:
    """Bytes of anonymous memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no RssAnon in /proc/self/status")


class Peak:
    """Peak of the anonymous memory above what there was at the start, sampled by a thread."""

    def __enter__(self) -> "Peak":
        self.base = self.peak = rss_anon()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while not self.over.wait(0.002):
            self.peak = max(self.peak, rss_anon())

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        self.bytes = self.peak - self.base


def graph(name: str, n: int, m: int) -> fp.Graph:
    file = TARGET / name
    if not file.exists():
        start = time.perf_counter()
        fp.generate.rmat(file, n=n, m=m)
        print(f"generate rmat    n={n:,} m={m:,}: {time.perf_counter() - start:.1f} s")
    return fp.open_graph(file)


def measure(graph: fp.Graph, threads: int) -> None:
    graph.identify()  # the file into the page cache, its map into the page tables
    with Peak() as memory:
        start = time.perf_counter()
        partition = fp.spring(graph, k=8, threads=threads)
        seconds = time.perf_counter() - start
    n, m = graph.num_vertices, graph.num_edges
    extra = (memory.bytes - 32 * n) / 1e6
    print(
        f"spring k=8       n={n:,} m={m:,} threads={threads}: {seconds:.1f} s, {m / seconds / 1e6:.1f} M edges/s, "
        f"RssAnon +{memory.bytes / 1e6:.0f} MB = 32 bytes per vertex {extra:+.1f} MB, "
        f"loads up to {partition.loads.max():,}"
    )


def gil_pace(graph: fp.Graph) -> None:
    """Compare how often a Python thread ticks beside a sleeping main thread and beside spring()."""

    def ticks_during(work: object) -> float:
        over, count = threading.Event(), 0

        def tick() -> None:
            nonlocal count
            while not over.is_set():
                sum(range(2000))
                count += 1

        thread = threading.Thread(target=tick)
        start = time.perf_counter()
        thread.start()
        work()  # type: ignore[operator]
        over.set()
        thread.join()
        return count / (time.perf_counter() - start)

    alone = median(ticks_during(lambda: time.sleep(1)) for _ in range(3))
    beside = median(ticks_during(lambda: fp.spring(graph, k=8, threads=1)) for _ in range(3))
    print(
        f"GIL              another Python thread keeps {beside / alone:.0%} of its pace beside spring(threads=1)"
    )


def interrupts(graph: fp.Graph) -> None:
    """Time from SIGINT to KeyboardInterrupt, in a child, at several moments of a call."""
    child = (
        "import sys, time, fastpart as fp\n"
        "graph = fp.open_graph(sys.argv[1])\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    while True:\n"
        "        p = fp.spring(graph, k=8)\n"
        "        fp.evaluate(graph, p)\n"
        "except KeyboardInterrupt:\n"
        "    print(time.time(), flush=True)\n"
    )
    waits = []
    for moment in (0.05, 0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.1):
        with subprocess.Popen(
            [sys.executable, "-c", child, graph.path], stdout=subprocess.PIPE, text=True
        ) as process:
            process.stdout.readline()
            time.sleep(moment)
            sent = time.time()
            process.send_signal(signal.SIGINT)
            waits.append(float(process.stdout.readline()) - sent)
    print(
        f"Ctrl-C           answered after {median(waits):.3f} s (median of {len(waits)}), {max(waits):.3f} s at most"
    )


def main() -> None:
    TARGET.mkdir(exist_ok=True)
    middle = graph("rmat-64000000.bin", 1 << 22, 64_000_000)
    for threads in (1, 2):
        measure(middle, threads)
    gil_pace(middle)
    interrupts(middle)
    if os.environ.get("FASTPART_BENCH_BILLION") != "0":
        measure(graph("rmat-1000000000.bin", 1 << 25, 1_000_000_000), 2)


if __name__ == "__main__":
    main()
