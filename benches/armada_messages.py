"""GB/s of armada's messages between two processes over the loopback interface, into shared memory.

    python benches/armada_messages.py [CHECKOUT] ...

It measures this checkout and others in turns, and prints the median of each, and of its ratio to the first one that is
given in the same turn.
"""

import mmap
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

TURNS = 7
SIZES = {"5 MB": (5_000_000, 100), "50 kB": (50_000, 3000)}
"""Bytes of the features of a message, and number of messages."""

HERE = str(Path(__file__).resolve().parent.parent)


def lines() -> list[socket.socket]:
    """Return both ends of a connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        return [one, server.accept()[0]]


def rate(size: int, messages: int) -> float:
    """Return GB/s of messages of one batch, whose features have so many bytes."""
    from fastpart.train.methods.armada.messages import Link

    # Features, rows, slots, what is kept and where, and rows, offsets and sources of a batch.
    lengths = [size // 400, 0, 0, 0, size // 400, size // 4000, size // 400]
    arrays = [np.ones((size // 400, 100), np.float32), *(np.ones(length, np.int32) for length in lengths)]
    one, other = lines()
    if os.fork() == 0:
        link = Link(one)
        for step in range(messages):
            link.send({"kind": "batch", "step": step, "graphs": [[0, [1000, 9000], [9000]]]}, arrays)
        os._exit(0)
    link, total, memory = Link(other), 0, mmap.mmap(-1, 2 * size)

    def destination(_, specs):
        found, end = [], 0
        for dtype, shape in specs:
            found.append(np.frombuffer(memory, dtype, int(np.prod(shape)), end).reshape(shape))
            end += found[-1].nbytes
        return found

    def receive():
        if not hasattr(link, "fill"):  # in older checkouts
            return link.receive(1 << 40, destination).num_bytes
        message = link.receive(1 << 40)
        link.fill(destination(None, message.specs))
        return message.num_bytes

    receive()
    start = time.perf_counter()
    for _ in range(messages - 1):
        total += receive()
    seconds = time.perf_counter() - start
    os.wait()
    return total / seconds / 1e9


def measured(checkout: str, name: str) -> float:
    """Return the rate of a checkout, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": f"{checkout}/python"}
    command = [sys.executable, __file__, "--size", name]
    return float(subprocess.check_output(command, env=environment, text=True))


def main(checkouts: list[str]) -> None:
    print("| message | checkout | GB/s | ratio to the first |")
    print("|---|---|---:|---:|")
    for name in SIZES:
        turns = [[measured(checkout, name) for checkout in checkouts] for _ in range(TURNS)]
        for place, checkout in enumerate(checkouts):
            ratio = median(rates[place] / rates[0] for rates in turns)
            found = median(rates[place] for rates in turns)
            print(f"| {name} | {Path(checkout).name} | {found:.2f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--size"]:
        print(rate(*SIZES[sys.argv[2]]))
    else:
        main([*sys.argv[1:], HERE])
