"""Training with DGL as it is, on machines of their own; emulated, each with a network and a /dev/shm."""

import re
import shutil

import pytest

import fastpart as fp
from distributed import planted
from machines import PORT, needs_machines, on_machines

pytest.importorskip("torch")
pytest.importorskip("dgl")

pytestmark = pytest.mark.timeout(300)

TRAIN = """
import os, signal, sys, time
import fastpart as fp
machines, config, kill, samplers = sys.argv[1:]
config = config.format(os.environ["MACHINE"])
ended = []
def progress(phase, done, total):
    if phase == "epoch" and done == 3 and os.environ["MACHINE"] == "1" and kill:
        mine = [int(pid) for pid in open(f"/proc/self/task/{os.getpid()}/children").read().split()]
        those = [pid for pid in mine if kill in open(f"/proc/{pid}/cmdline").read()]
        os.kill(those[0], signal.SIGKILL)
        print("killed", time.monotonic(), flush=True)
try:
    trained = fp.train.distdgl(
        config, ip_config=machines, epochs=2000 if kill else 8, seed=5, samplers=int(samplers), progress=progress
    )
    print(trained.summary["test_accuracy"], trained.history["loss"].to_list())
except fp.errors.TrainingError as error:
    print("ended", time.monotonic())
    print(error)
    sys.exit(7)
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    needs_machines()
    folder = tmp_path_factory.mktemp("graph")
    return fp.export.dgl(planted(folder / "parts", 2), folder / "dgl", "tiny")


@pytest.mark.parametrize("samplers", [0, 1])
def test_unmodified_dgl_trains_on_two_machines(config, tmp_path, samplers):
    # Each finds its own part only.
    for machine in range(2):
        folder = tmp_path / f"machine{machine}"
        shutil.copytree(config.parent, folder)
        shutil.rmtree(folder / f"part{1 - machine}")
    found = tmp_path / "machine{}" / config.name
    (code0, left0, said0), (code1, left1, said1) = on_machines(2, tmp_path, TRAIN, found, "", samplers)
    assert (code0, code1) == (0, 0), said0 + said1
    # What servers and samplers print comes with their names, which differ.
    (last0, last1) = (said.splitlines()[-1] for said in (said0, said1))
    assert last0 == last1
    assert float(last0.split()[0]) > 0.5
    assert (left0, left1) == ([], [])


@pytest.mark.parametrize("who", ["worker", "server"])
def test_a_death_on_one_machine_ends_all(config, tmp_path, who):
    (code0, left0, said0), (code1, left1, said1) = on_machines(2, tmp_path, TRAIN, config, who, 0)
    assert (code0, code1) == (7, 7), said0 + said1
    assert re.search(
        r"^(the server of part 1|trainer 1 \(of part 1\)) was killed by SIGKILL", said1, re.MULTILINE
    )
    killed = float(re.search(r"killed (\S+)", said1)[1])
    for said in (said0, said1):
        assert 0 < float(re.search(r"ended (\S+)", said)[1]) - killed < 10
    assert (left0, left1) == ([], [])


def test_what_an_ip_config_cannot_be(config, tmp_path):
    file = tmp_path / "machines.txt"
    for text, said in {
        f"127.0.0.1 {PORT}\n": "lists 1 machines for 2 parts",
        f"198.51.100.1 {PORT}\n198.51.100.2 {PORT}\n": "0 lines of .* are addresses of this machine",
        f"127.0.0.1 {PORT}\n127.0.0.1 {PORT}\n": "2 lines of .* are addresses of this machine",
        f"127.0.0.1 {PORT}\nhost\n": "line 2: expected an IPv4 address and a port",
    }.items():
        file.write_text(text)
        with pytest.raises(fp.FastpartError, match=said):
            fp.train.distdgl(config, ip_config=file)
    empty = fp.export.dgl(planted(tmp_path / "parts", 2, [0] * 300), tmp_path / "dgl")
    with pytest.raises(fp.errors.ParameterError, match="part 1 has no vertices or no edges"):
        fp.train.distdgl(empty, ip_config=file)
