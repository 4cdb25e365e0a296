"""A cluster of Ray on one machine: each node is a raylet with an address of its own on the loopback."""

import contextlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path

import pytest

TESTS = str(Path(__file__).parent)


@contextlib.contextmanager
def cluster(nodes):
    """Start nodes of one processor each, and connect to them. Nothing is left of them.

    Ray listens on every address of the machine unless its node is 127.0.0.1, which `ray.init` does not connect to where
    there is a network. So nobody is let in without the token.
    """
    import ray
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="fp", dir="/tmp")  # sockets have short names only
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("HOME", folder)
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")  # 15 by default, which a busy machine lets wait
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH")])))
        patch.delenv("RAY_ADDRESS", raising=False)
        _settings_read_anew()
        made = Cluster()
        try:
            for number in range(nodes):
                add(made, number)
            ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
            yield made
        finally:
            ray.shutdown()
            made.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
    _settings_read_anew()


def add(made, number):
    """Add a node of one processor."""
    address = f"127.0.0.{number + 2}"
    made.add_node(node_ip_address=address, num_cpus=1, object_store_memory=80 << 20, include_dashboard=False)


def _settings_read_anew():
    """Have this process look at the environment again, which Ray does as it is imported."""
    from ray._raylet import AuthenticationTokenLoader, Config

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
