"""Epochs of training with a plan, beside direct reads and features in memory.

``.venv-train/bin/python benches/planned.py PARTS [--limit 2G] [--fanouts 10,10] [--direct]`` plans two epochs of
batches of 1,000 and packs them, and trains them: without a limit, with the plan in a control group of so many bytes
and, on request, with direct reads in it. It prints the seconds of each epoch, and megabytes of the rows that were read.
The folder of the pack lies beside PARTS.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

from disk import enter, made

import fastpart as fp
from fastpart.core.parameters import memory_size

BATCH, EPOCHS, HIDDEN = 1000, 2, 64


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", type=Path)
    parser.add_argument("--limit", default="2G")
    parser.add_argument("--fanouts", default="10,10")
    parser.add_argument("--direct", action="store_true", help="also with direct reads")
    parser.add_argument("--way", choices=["plan", "memory", "packed", "direct"])
    given = parser.parse_args()
    fanouts, pack = (
        list(map(int, given.fanouts.split(","))),
        given.parts.with_name(f"{given.parts.name}.packed"),
    )
    if given.way is not None:
        run(given.parts, given.way, pack, fanouts)
        return
    group = made(memory_size(given.limit, "--limit", 1) or 0)
    for way in ("plan", "memory", "packed", *(["direct"] if given.direct else [])):
        command = [sys.executable, __file__, *sys.argv[1:], "--way", way]
        subprocess.run(command, check=True, preexec_fn=None if way == "memory" else lambda: enter(group))
    group.rmdir()
    shutil.rmtree(pack)


def run(parts: Path, way: str, pack: Path, fanouts: list[int]) -> None:
    """Plan or train, and print what it took."""
    start = time.perf_counter()
    if way == "plan":
        fp.open_partition(parts).plan(EPOCHS, fanouts=fanouts, batch_size=BATCH, pack=pack)
        told = f"{time.perf_counter() - start:.1f} s"
    else:
        io, plan = {"memory": ("mmap", None), "packed": (None, pack), "direct": ("direct", None)}[way]
        trained = fp.train.sampled(
            parts,
            workers=1,
            epochs=EPOCHS,
            batch_size=BATCH,
            fanouts=fanouts,
            hidden=HIDDEN,
            scores="none",
            io=io,
            plan=plan,
        )
        history = trained.history
        seconds = ", ".join(f"{each:.2f}" for each in history["seconds"])
        told = f"{seconds} s per epoch, {history['read_bytes'][-1] / 1e6:,.0f} MB of rows"
    print(f"{way:8} {told}", flush=True)


if __name__ == "__main__":
    main()
