"""Peers at the end of their parent: Ctrl-C, and kill -9, leave no process and no folder."""

import signal
import time
from contextlib import suppress
from pathlib import Path

from child import SignalAt, run_child

# A child whose peer says that it is there, and works for ever.
HANGING = """
import json, os, signal, sys
import numpy as np, fastpart as fp
from fastpart.measures.compare.peers import PEERS, Peer
folder = sys.argv[1]
code = (
    "import os, sys, json, time;"
    "from fastpart.core.system import die_with;"
    "die_with(json.loads(sys.argv[1])['parent']);"
    f"open({folder!r} + '/pid', 'w').write(str(os.getpid())); os.rename({folder!r} + '/pid', {folder!r} + '/at work');"
    "time.sleep(1000)"
)
PEERS["fake"] = Peer("fake", "numpy", command=(sys.executable, "-c", code))

def progress(phase, done, total):
    pass

os.mkdir(folder + "/tmp")
import threading, time
def tell():
    while not os.path.exists(folder + "/at work"):
        time.sleep(0.01)
    print("ready", flush=True)
threading.Thread(target=tell, daemon=True).start()
try:
    fp.compare(np.array([[0, 1]]), 2, ["fake", "spring"], tmp_dir=folder + "/tmp")
except KeyboardInterrupt:
    print("caught", time.monotonic())
    print(os.listdir(folder + "/tmp"))
"""


def runs(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def gone(pid: int) -> bool:
    """Wait until a process has ended; the kernel may take a moment."""
    deadline = time.monotonic() + 10
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not runs(pid)


def test_ctrl_c_during_a_peer(tmp_path):
    outcome = run_child(HANGING, tmp_path, signal_at=SignalAt(signal.SIGINT, "ready"))
    assert outcome.rc == 0, outcome.err
    ready, caught, left = outcome.out.splitlines()
    assert (ready, left) == ("ready", "[]")
    seconds = float(caught.split()[1]) - outcome.signalled
    assert 0 < seconds < 1
    assert gone(int((tmp_path / "at work").read_text()))


def test_a_killed_parent_takes_its_peer_along(tmp_path):
    outcome = run_child(
        HANGING, tmp_path, signal_at=SignalAt(signal.SIGKILL, "ready"), may_die_of=[signal.SIGKILL]
    )
    assert outcome.rc == -signal.SIGKILL
    # It has a session of its own, so nobody but the kernel ended it.
    assert gone(int((tmp_path / "at work").read_text()))
