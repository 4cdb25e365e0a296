"""Training on a Ray cluster whose nodes are processes of this machine: the losses of one worker, whatever is lost."""

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest

import fastpart as fp
from trainable import planted

pytest.importorskip("torch")

from fastpart.train.on_ray import _cause_of

EXACT = {
    "precision": "float64",
    "threads": 1,
    "epochs": 6,
    "hidden": 8,
    "fanouts": [4, 3],
    "batch_size": 75,
}

# Two workers on two nodes. After its third epoch one of them is killed, and after the fourth one kills its node. Ray
# resolves the address of the loopback to another one, which would be that of the network.
CLUSTER = """
import json, os, signal, sys, time
from pathlib import Path
import ray
from ray._private import services
from ray.cluster_utils import Cluster
import fastpart as fp
from torch.optim.lr_scheduler import LambdaLR
parts, folder, given = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
services.resolve_ip_for_localhost = lambda host: host
node = {"node_ip_address": "127.0.0.1", "object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args={**node, "num_cpus": 0, "include_dashboard": False})

def rate(epoch):
    rank = int(os.environ["RANK"])
    for at, victim, name in ((3, 1, "worker"), (4, 0, "node")):
        if epoch == at and rank == victim and not (folder / name).exists():
            (folder / name).touch()
            if name == "node":
                os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
    return 1.0

try:
    for _ in range(2):
        cluster.add_node(num_cpus=1, **node)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, _node_ip_address="127.0.0.1", log_to_driver=False)
    end = time.monotonic() + 60
    while ray.available_resources().get("CPU", 0) < 2 and time.monotonic() < end:
        time.sleep(0.05)  # nodes tell what they have after they have joined
    try:
        fp.train.ray("sampled", parts, out=folder / "refused", workers=(3, 8))
    except fp.errors.ParameterError as error:
        few = str(error)
    scheduler = lambda optimizer: LambdaLR(optimizer, rate)
    trained = fp.train.ray("sampled", parts, out=folder / "out", workers=(1, 2), scheduler=scheduler, **given)
    print("RESULT", json.dumps([trained.history["loss"].to_list(), trained.summary["workers"], few]))
finally:
    ray.shutdown()
    cluster.shutdown()
"""


@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
@pytest.mark.timeout(400)
def test_a_lost_worker_and_a_lost_node_change_no_loss(tmp_path):
    parts = planted(tmp_path, k=4)
    expected = fp.train.sampled(parts, workers=1, **EXACT)
    # Sockets have short names only. Ray Train knows of the death of a node late, and waits for its processors.
    with tempfile.TemporaryDirectory(prefix="fp", dir="/tmp", ignore_cleanup_errors=True) as home:
        environment = {name: text for name, text in os.environ.items() if not name.startswith("RAY_")} | {
            "HOME": home,
            "RAY_TMPDIR": home,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",
            "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "0.2",
            "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "3",
            "GLOO_SOCKET_IFNAME": "lo",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        words = [str(parts), str(tmp_path), json.dumps(EXACT)]
        ended = subprocess.run(
            [sys.executable, "-c", CLUSTER, *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=360,
        )
    assert "RESULT" in ended.stdout, ended.stdout + ended.stderr
    losses, workers, few = json.loads(ended.stdout.partition("RESULT ")[2])
    np.testing.assert_allclose(losses, expected.history["loss"], rtol=1e-9)
    assert workers == 1
    assert {"worker", "node"} <= set(os.listdir(tmp_path))
    assert few.startswith("workers: 3 of them need 3 CPUs, but 2 of the cluster are free. ")
    assert sorted(os.listdir(tmp_path / "out")) == [
        "best.pt",
        "checkpoint.pt",
        "fastpart-run.json",
        "history.parquet",
    ]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"method": "full"}, "^method: unknown value 'full'"),
        ({"workers": 0}, "^workers: "),
        (
            {"workers": (3, 2)},
            r"^workers: expected a number, or the fewest and the most, got \(3, 2\)",
        ),
        ({"workers": (1, 2, 3)}, r"^workers: expected a number"),
        ({"method": "distgnn", "workers": (1, 2)}, "^workers: distgnn has one worker for each part"),
        ({"max_failures": -1}, "^max_failures: "),
    ],
)
def test_parameters_are_checked_before_ray_is_asked(tmp_path, given, text):
    given = {"method": "sampled", "source": "absent", "out": tmp_path / "out", "workers": 2, **given}
    with pytest.raises((fp.errors.ParameterError, TypeError), match=text):
        fp.train.ray(**given)
    assert not (tmp_path / "out").exists()


def test_the_cause_of_a_failure_is_what_a_worker_refused(tmp_path):
    gone, refused = fp.errors.TrainingError("rank 1: no answer"), fp.errors.ParameterError("labels: none")
    lost = RuntimeError("The actor died.\n\tclass_name: RayTrainWorker")
    for failures, cause in (({0: gone, 1: refused}, refused), ({2: OSError("full")}, "full")):
        assert str(_cause_of(SimpleNamespace(worker_failures=failures))) == str(cause)
    both = _cause_of(SimpleNamespace(worker_failures={1: lost, 0: gone}))
    assert isinstance(both, fp.errors.TrainingError)
    assert str(both) == "rank 0: rank 1: no answer. rank 1: The actor died."
    assert str(_cause_of(RuntimeError("no controller"))) == "no controller"


def test_without_ray_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        ModuleNotFoundError,
        match=r"needs ray.train, which is not installed: pip install 'fastpart\[ray-train\]'",
    ):
        fp.train.ray("sampled", "absent", out=tmp_path / "out", workers=2)
