"""The speed of this machine beside that of the server that predictions of seconds were measured on.

The core predicts the seconds of a partition on that server. A reference graph is partitioned here, and the ratio of its
processor time to that on the server multiplies predictions. It takes a second once. The ratio is kept in the cache
folder of the user, with the name of the processor and the version of fastpart. If one of them changes, it is measured
once more.
"""

from __future__ import annotations

import functools
import json
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from ... import _core
from ...core.options import run_options
from ...core.parsing import is_intact, json_object, with_checksum
from ...core.system import processor
from ...errors import FastpartError
from ...graphs import conversion_cache
from ...graphs.opening import open_graph
from . import builtin

_FILE = "speed.json"

_SERVER = 0.155
"""Seconds of the processor that the reference takes on the server."""

_RUNS = 5
"""Runs of the reference. The first ones touch memory and code for the first time, and the fastest one counts."""


@functools.cache
def slowness() -> float:
    """Return the processor time of a partition here as a multiple of that on the server.

    It is 1 if the reference cannot be partitioned, as where no temporary file can be written.
    """
    here = {"processor": processor(), "fastpart": _core.__version__}
    file = conversion_cache.home() / _FILE
    with suppress(OSError, FastpartError):
        text = file.read_bytes()
        known = json_object(file, text, {"slowness": float, **dict.fromkeys(here, str)})
        if is_intact(text) and known["slowness"] > 0 and all(known[name] == here[name] for name in here):
            return float(known["slowness"])
    try:
        found = _measured() / _SERVER
    except (OSError, FastpartError):
        return 1.0
    with suppress(OSError, FastpartError):
        file.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps({**here, "slowness": round(found, 4)}, indent=1)
        _core.write_file(file, with_checksum(f"{content}\n".encode()))
    return found


def _measured() -> float:
    """Return the seconds of the processor that the reference takes."""
    taken = []
    with TemporaryDirectory(prefix="fastpart-") as folder:
        file = Path(folder) / "reference.bin"
        _core.generate_rmat(file, n=1 << 14, m=1 << 17, seed=0, options=run_options(threads=1))
        for _ in range(_RUNS):
            graph = open_graph(file, num_vertices=1 << 14, threads=1)
            begin = time.process_time()
            builtin.multilevel(graph, 8, threads=1, progress=False)
            taken.append(time.process_time() - begin)
    return min(taken)
