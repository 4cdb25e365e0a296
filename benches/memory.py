"""Print what partitioners take beside what they state, by threads, hubs and parts, or how address limits end them.

memory.py peaks [--of two_levels,refine] [--threads 1,2,8,32] [--parts 4,65536] [--hubs 0,32] [--n N] [--m M]
memory.py sweep [--threads 2] [--step 4]

``peaks``: the growth of the anonymous memory of a process, with the memory limit that the partitioner states for one
thread. A hub has a quarter of the vertices around it. ``sweep``: each call in a fork whose address space ends ``step``
MB later than that of the one before, until two have succeeded.
"""

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fastpart as fp

PLANS = {
    "memory": {"path": "memory"},
    "one_level": {"path": "one_level", "sample": 0.5},
    "two_levels": {"path": "two_levels", "sample": 0.1},
}
UNITS = {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9}


def graph_of(n: int, m: int, hubs: int, file: Path) -> fp.Graph:
    """Return random edges and hubs."""
    random = np.random.default_rng(1)
    around = [
        np.stack([np.full(n // 4 + 10, hub), random.choice(n, n // 4 + 10, replace=False)], 1)
        for hub in range(hubs)
    ]
    edges = np.concatenate([random.integers(0, n, (m, 2)), *around]).astype(np.uint32)
    edges[edges[:, 0] != edges[:, 1]].tofile(file)
    return fp.open_graph(file, num_vertices=n)


def status(name: str) -> int:
    """Return bytes of the process."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) * 1024 if found else 0


def call_of(what: str, graph: fp.Graph, k: int, threads: int) -> Callable[..., Any]:
    """Return the call that is measured."""
    if what in PLANS:
        return lambda **more: fp.multilevel(graph, k=k, threads=threads, **PLANS[what], **more)
    start = fp.algorithms.hash(graph, k=k, threads=1)
    if what == "refine":
        return lambda **more: fp.refine(start.graph, start, rounds=1, threads=threads, **more)
    return lambda **more: fp.update(graph, start, threads=threads, **more)


def peak(what: str, n: int, m: int, hubs: int, k: int, threads: int) -> None:
    """Print one line."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        call = call_of(what, graph_of(n, m, hubs, Path(folder, "g.bin")), k, threads)
        limit, most, done = 1000, 0, threading.Event()

        def watch(before: int) -> None:
            nonlocal most
            while not done.wait(0.001):
                most = max(most, status("RssAnon") - before)

        for _ in range(8):
            most, done = 0, threading.Event()
            watching = threading.Thread(target=watch, args=(status("RssAnon"),))
            watching.start()
            seconds = time.process_time()
            try:
                call(memory_limit=limit, tmp_dir=folder)
            except fp.errors.MemoryBudgetError as error:
                # What it needs beside what is in use, which is off the budget by then.
                found = re.search(r"needs ([\d.]+) (\w+).*budget is ([\d.]+) (\w+)", str(error))
                if not found:
                    raise
                more = float(found[1]) * UNITS[found[2]] - float(found[3]) * UNITS[found[4]]
                limit += int(more + 0.001 * float(found[1]) * UNITS[found[2]] + 100_000)
                continue
            finally:
                done.set()
                watching.join()
            break
        seconds = time.process_time() - seconds
        mark = "above" if most > limit else "within"
        print(
            f"{what:11} n={n} m={m} hubs={hubs:2} k={k:5} threads={threads:2}: stated {limit / 1e6:7.1f} MB, taken "
            f"{most / 1e6:7.1f} MB, {mark}, {seconds:.1f} s of processor time",
            flush=True,
        )


def calls(graph: fp.Graph, threads: int) -> dict[str, Callable[[], Any]]:
    """Return what is swept, with limits far above what the system allows."""
    start, many = (fp.algorithms.hash(graph, k=k, threads=1) for k in (4, 4096))
    how: dict[str, Any] = {"threads": threads, "memory_limit": 10**10}
    names = ["spring", "ldg", "fennel", "refennel", "reldg", "hdrf", "greedy", "dbh", "hash", "random"]
    found = {
        name: getattr(fp.algorithms, name)
        for name in [*names, "two_phase", "hep"]
        if hasattr(fp.algorithms, name)
    }
    return {
        **{name: lambda of=of: of(graph, k=4, **how) for name, of in found.items()},
        "sigma of vertices": lambda: fp.sigma(graph, k=4, of="vertices", **how),
        "sigma of edges": lambda: fp.sigma(graph, k=4, of="edges", **how),
        "grem, refined": lambda: fp.grem(graph, k=4, chunk=1.0, refine=True, **how),
        "multilevel": lambda: fp.multilevel(graph, k=4, **how),
        "multilevel, best": lambda: fp.multilevel(graph, k=4, effort="best", rounds=1, **how),
        "multilevel, 4096 parts": lambda: fp.multilevel(graph, k=4096, effort="fast", **how),
        "multilevel, halo": lambda: fp.multilevel(graph, k=4, objective="halo", **how),
        "multilevel, connected": lambda: fp.multilevel(graph, k=4, volume_balance=1.1, connected=True, **how),
        "multilevel, two levels": lambda: fp.multilevel(graph, k=4, path="two_levels", **how),
        "multilevel, default budget": lambda: fp.multilevel(graph, k=4, threads=threads),
        "refine": lambda: fp.refine(start.graph, start, rounds=1, **how),
        "refine, 4096 parts": lambda: fp.refine(many.graph, many, rounds=1, **how),
        "refine, halo": lambda: fp.refine(start.graph, start, rounds=1, objective="halo", **how),
        "update": lambda: fp.update(graph, start, **how),
    }


def end_of(call: Callable[[], Any], more: int) -> str:
    """Return how a call ends in a fork that may take ``more`` MB."""
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (status("VmSize") + (more << 20),) * 2)
        signal.alarm(300)
        try:
            call()
        except MemoryError:
            os._exit(4)
        except fp.errors.CapacityError as error:
            os._exit(5 if "cannot start" in str(error) else 6)
        except BaseException:
            os._exit(6)
        os._exit(0)
    ended = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(ended):
        return signal.Signals(os.WTERMSIG(ended)).name
    return {0: "complete", 4: "MemoryError", 5: "no threads"}.get(os.WEXITSTATUS(ended), "another error")


def sweep(threads: int, step: int) -> None:
    """Print how each call ends, by address limit."""
    with tempfile.TemporaryDirectory() as folder:
        graph = graph_of((1 << 17) + 5, 400_000, 6, Path(folder, "g.bin"))
        for name, call in calls(graph, threads).items():
            ends: dict[str, list[int]] = {}
            more = 1
            while len(ends.get("complete", [])) < 2 and more < 400:
                ends.setdefault(end_of(call, more), []).append(more)
                more += step
            told = ", ".join(f"{end} at {at[0]} to {at[-1]} MB" for end, at in ends.items())
            print(f"{name}, {threads} threads: {told}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["peaks", "sweep", "peak"])
    parser.add_argument("--n", type=int, default=1_048_581)
    parser.add_argument("--m", type=int, default=2_000_000)
    for name, default in [("threads", "1,2,8,32"), ("parts", "4,65536"), ("hubs", "0,32")]:
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--of", default="memory,one_level,two_levels,refine,update")
    parser.add_argument("--step", type=int, default=4)
    given = parser.parse_args()
    numbers = {
        name: [int(x) for x in getattr(given, name).split(",")] for name in ("threads", "parts", "hubs")
    }
    if given.what == "sweep":
        for threads in numbers["threads"]:
            sweep(threads, given.step)
        return
    for what in given.of.split(","):
        for hubs in numbers["hubs"]:
            for k in numbers["parts"]:
                for threads in numbers["threads"]:
                    if given.what == "peak":
                        peak(what, given.n, given.m, hubs, k, threads)
                        continue
                    # A process of its own for each: heaps keep what they had.
                    cell = [f"--of={what}", f"--hubs={hubs}", f"--parts={k}", f"--threads={threads}"]
                    size = [f"--n={given.n}", f"--m={given.m}"]
                    subprocess.run([sys.executable, __file__, "peak", *cell, *size], check=True)


if __name__ == "__main__":
    main()
