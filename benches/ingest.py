"""Ingest beside the join of Polars in memory, alone, and under kills:

    ingest.py [speed|alone|kills] [EDGES] [VERTICES] [IDS] [KILLS or, alone, the memory limit]

IDS is "string" (24 bytes), "int" (with gaps) or "u64" (with gaps). Tables are made in a temporary folder: about 15
bytes per edge. Each way runs in a process of its own. Processor time and anonymous memory are those of that process.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import fastpart as fp

FILES = 20

INGEST = """
import fastpart as fp
ends = {"source": {"v": "src"}, "target": {"v": "dst"}}
schema = {"vertices": {"v": {"files": f"{FOLDER}/v", "id": "id"}}, "relations": {"e": {"files": f"{FOLDER}/e", **ends}}}
fp.ingest(schema, f"{FOLDER}/graph", memory_limit=LIMIT)
"""

JOIN = """
import numpy as np
ids = pl.read_parquet(f"{FOLDER}/v/*.parquet").sort("id").with_row_index("vertex")
edges = pl.scan_parquet(f"{FOLDER}/e/*.parquet")
for end in ("src", "dst"):
    to = ids.lazy().rename({"id": end, "vertex": f"{end}_vertex"})
    edges = edges.join(to, on=end, how="left", maintain_order="left")
pairs = edges.select("src_vertex", "dst_vertex").collect()
pairs.to_numpy().astype("<u4").tofile(f"{FOLDER}/join.bin")
"""

MEASURED = """
import resource, sys, threading, time
import polars as pl
FOLDER, LIMIT = sys.argv[1], sys.argv[2] or None
most = 0

def watch():
    global most
    while True:
        with open("/proc/self/status") as status:
            most = max(most, *(int(line.split()[1]) for line in status if line.startswith("RssAnon")))
        time.sleep(0.05)

threading.Thread(target=watch, daemon=True).start()
%s
usage = resource.getrusage(resource.RUSAGE_SELF)
print(usage.ru_utime + usage.ru_stime, most / 1000)
"""


def ids_of(vertices, form):
    """Return the ids of vertices: scattered, so that their order is not that of the vertices."""
    scattered = vertices.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    if form == "u64":
        return pl.Series(scattered)
    if form == "int":
        return pl.Series((scattered >> np.uint64(24)).astype(np.int64) - (1 << 39))
    column = pl.col("id")
    low, high = (column % 10**10).cast(pl.String), (column // 10**10 % 10**6).cast(pl.String)
    text = pl.concat_str(pl.lit("vertex-"), low.str.zfill(10), pl.lit("-"), high.str.zfill(6))
    return pl.DataFrame({"id": scattered}).select(text).to_series()


def write_tables(folder, n, m, form):
    """Write the tables of an R-MAT."""
    edges = np.memmap(fp.generate.rmat(folder / "g.bin", n=n, m=m, seed=1).path, "<u4", "r").reshape(-1, 2)
    for name in "ve":
        (folder / name).mkdir()
    for number, vertices in enumerate(np.array_split(np.random.default_rng(0).permutation(n), FILES)):
        pl.DataFrame({"id": ids_of(vertices, form)}).write_parquet(folder / "v" / f"{number:03}.parquet")
    for number, pairs in enumerate(np.array_split(edges, FILES)):
        ends = {name: ids_of(np.asarray(pairs[:, side]), form) for side, name in enumerate(("src", "dst"))}
        pl.DataFrame(ends).write_parquet(folder / "e" / f"{number:03}.parquet")
    (folder / "g.bin").unlink()


def measured(code, folder, limit=""):
    """Return processor seconds and anonymous MB of a process that runs the code."""
    out = subprocess.run(
        [sys.executable, "-c", MEASURED % code, folder, limit], check=True, stdout=subprocess.PIPE
    )
    seconds, anonymous = map(float, out.stdout.split())
    return seconds, anonymous


def speed(folder):
    """Print both ways, three times in turn."""
    for _ in range(3):
        ingest, join = measured(INGEST, folder), measured(JOIN, folder)
        same = (folder / "graph" / "edges.bin").read_bytes() == (folder / "join.bin").read_bytes()
        print(
            f"ingest {ingest[0]:.1f} s, {ingest[1]:.0f} MB; join {join[0]:.1f} s, {join[1]:.0f} MB; "
            f"ratio {ingest[0] / join[0]:.2f}; {'same' if same else 'DIFFERENT'} records",
            flush=True,
        )


def kills(folder, count):
    """Kill an ingest so many times at random moments, and compare the bytes."""
    begun = time.monotonic()
    whole, _ = measured(INGEST, folder)
    once, expected = time.monotonic() - begun, digest(folder)
    moments, same, killed, used = random.Random(0), 0, 0, os.times()
    finished = 0
    while killed < count:
        child = subprocess.Popen(
            [sys.executable, "-c", MEASURED % INGEST, folder, ""], stdout=subprocess.DEVNULL
        )
        try:
            child.wait(moments.uniform(0.3, once))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            killed += child.wait() == -signal.SIGKILL
            continue
        assert child.returncode == 0, "an ingest failed"
        finished += 1
        same += digest(folder) == expected
        print(f"{killed} kills so far, {finished} ingests ended", flush=True)
    measured(INGEST, folder)
    finished, same = finished + 1, same + (digest(folder) == expected)
    after = os.times()
    seconds = after.children_user + after.children_system - used.children_user - used.children_system
    print(
        f"{killed} kills, {finished} ingests ended, {same} of them with the same bytes; {seconds:.0f} s of processor "
        f"for {finished} times {whole:.1f} s"
    )


def digest(folder):
    files = sorted(path for path in (folder / "graph").rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


if __name__ == "__main__":
    what, m, n, form, count = [
        *sys.argv[1:],
        *["speed", "20000000", "2000000", "string", "50"][len(sys.argv) - 1 :],
    ]
    with tempfile.TemporaryDirectory() as temporary:
        write_tables(Path(temporary), int(n), int(m), form)
        if what == "alone":
            seconds, anonymous = measured(INGEST, temporary, count)
            print(f"ingest {seconds:.1f} s, {anonymous:.0f} MB")
        elif what == "kills":
            kills(Path(temporary), int(count))
        else:
            speed(Path(temporary))
