"""Ranks of torchrun that are restarted, bothered by strangers, or joined by a bad network."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import fastpart as fp
from machines import needs_machines, on_machines
from soaked import some_of
from trainable import planted

pytest.importorskip("torch")

pytestmark = pytest.mark.timeout(180)

QUICK = {"hidden": 8, "threads": 1, "epochs": 3, "batch_size": 100, "fanouts": [4, 3]}

RANK = """
import json, os, signal, sys, time
import fastpart as fp
import fastpart.train.runs.history, fastpart.train.runs.run_folder
folder, given, before = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
rank, restarts = os.environ["RANK"], int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
fp.train.runs.history.SAVE_SECONDS = 0
exec(before)
trained = fp.train.sampled(f"{folder}/rank{rank}", out=f"{folder}/out", **given)
if rank == "0":
    print("RESULT", json.dumps(trained.history["loss"].to_list()))
"""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=2)


@pytest.fixture
def folder(parts, tmp_path):
    """Return a folder with a partition directory for each of two ranks, with the features of its own part only."""
    for rank in range(2):
        shutil.copytree(parts, tmp_path / f"rank{rank}")
        (tmp_path / f"rank{rank}" / f"part-{1 - rank:05d}" / "features.npy").unlink()
    (tmp_path / "rank.py").write_text(RANK)
    return tmp_path


def torchrun(folder, *options, before="", given=QUICK):
    """Start two ranks. ``before`` is what each does before it trains. What they say goes to files."""
    words = [folder / "rank.py", folder, json.dumps(given), before]
    run = ["-m", "torch.distributed.run", "--nproc-per-node", "2", *options]
    with open(folder / "said", "w") as said, open(folder / "errors", "w") as errors:
        return subprocess.Popen(
            [sys.executable, *run, *words], stdout=said, stderr=errors,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip


def losses(out, errors=""):
    assert "RESULT" in out, out + errors
    return json.loads(out.partition("RESULT ")[2])


@pytest.fixture(scope="module")
def expected(parts):
    return fp.train.sampled(parts, workers=2, **QUICK).history["loss"].to_list()


DIES_ONCE = """
if restarts == 0 and rank == "0":
    def on_epoch(row):
        if row["epoch"] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    given["on_epoch"] = on_epoch
if restarts == 1 and rank == "0":
    saved = fastpart.train.runs.run_folder.load_weights(f"{folder}/out/checkpoint.pt")
    print("CONTINUED", len(json.loads(saved["rows"])))
"""


def test_restarted_ranks_continue_from_the_checkpoint(folder, expected):
    torchrun(folder, "--standalone", "--max-restarts", "1", before=DIES_ONCE).wait()
    out, errors = (folder / "said").read_text(), (folder / "errors").read_text()
    assert "CONTINUED 2" in out, errors
    assert losses(out, errors) == expected
    files = ["best.pt", "checkpoint.pt", "fastpart-run.json", "history.parquet"]
    assert sorted(os.listdir(folder / "out")) == files


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Strangers:
    """Connections to a port, made again and again."""

    def __init__(self, port, content):
        self.port, self.content, self.open = port, content, []

    def bother(self):
        """Connect, send, and keep the connection. Return whether somebody listens."""
        try:
            line = socket.create_connection(("127.0.0.1", self.port), timeout=1)
            line.sendall(self.content)
        except OSError:
            return False
        self.open.append(line)
        return True

    def close(self):
        for line in self.open:
            line.close()


def peak_bytes(pid):
    """Return the largest resident memory of a process and those below it so far."""
    peaks = [0]
    for each in [pid, *children(pid)]:
        try:
            status = Path(f"/proc/{each}/status").read_text()
        except OSError:
            continue
        peaks += [int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM")]
    return max(peaks)


def children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


NOTHING = b""
NONSENSE = bytes(range(256)) * 16
# The greeting of a client of TCPStore, then a key to set whose length is 2**62.
LONG = b"\x00" + (0x3C85F7CE).to_bytes(4, "little") + b"\x01" + (1 << 62).to_bytes(8, "little")


@pytest.mark.timeout(150)
@pytest.mark.parametrize(
    "content",
    some_of([NOTHING, NONSENSE, LONG], always=[LONG]),
    ids=["nothing", "nonsense", "a length of 2**62"],
)
def test_strangers_at_the_rendezvous_neither_stop_nor_hang_a_training(folder, expected, content):
    port = free_port()
    strangers, peak, heard = Strangers(port, content), 0, 0
    run = torchrun(
        folder, "--master-addr", "127.0.0.1", "--master-port", str(port), given={**QUICK, "timeout": 20}
    )
    end = time.monotonic() + 90
    while run.poll() is None and time.monotonic() < end:
        heard += len(strangers.open) < 20 and strangers.bother()
        peak = max(peak, peak_bytes(run.pid))
        time.sleep(0.1)
    strangers.close()
    hangs = run.poll() is None
    run.terminate()
    run.wait()
    out, errors = (folder / "said").read_text(), (folder / "errors").read_text()
    assert not hangs, errors
    assert heard
    assert peak < 2 << 30
    if run.returncode == 0:
        assert losses(out, errors) == expected
    else:
        assert "Error" in errors


NETWORKED = """
import os, sys
import fastpart as fp
import torch.distributed as dist
machines, folder, rank = sys.argv[1], sys.argv[2], os.environ["MACHINE"]
address = open(machines).read().split()[0]
os.environ.update(
    RANK=rank, WORLD_SIZE="2", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", MASTER_ADDR=address, MASTER_PORT="29411",
    TORCHELASTIC_RUN_ID="none", GLOO_SOCKET_IFNAME="e0",
)
given = {"hidden": 8, "threads": 1, "epochs": 3, "batch_size": 100, "fanouts": [4, 3]}
trained = fp.train.sampled(f"{folder}/rank{rank}", out=f"{folder}/out", timeout=60, **given)
if rank == "0":
    import json
    print("RESULT", json.dumps(trained.history["loss"].to_list()))
"""


# A short queue loses packets, too, and needs no module of the kernel.
@pytest.mark.parametrize("qdisc", ["netem rate 20mbit loss 1%", "tbf rate 20mbit burst 8kb limit 16kb"])
def test_a_slow_and_lossy_network_changes_no_loss(folder, expected, qdisc):
    needs_machines(qdisc)
    (code0, _, said0), (code1, _, said1) = on_machines(2, folder, NETWORKED, folder, qdisc=qdisc)
    assert (code0, code1) == (0, 0), said0 + said1
    assert losses(said0) == expected
