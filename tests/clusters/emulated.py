"""A cluster of Ray on one machine: each node is a raylet on the loopback."""

import contextlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path

import pytest

ADDRESS = "127.0.0.1"
TESTS = str(Path(__file__).parent)


@contextlib.contextmanager
def cluster(nodes):
    """Start nodes of one processor each, and connect to them. Nothing is left of them.

    Ray listens on every address of the machine unless its node is 127.0.0.1. It replaces that by the address of the
    network, where there is one, unless it is kept from it.
    """
    import ray
    from ray._private import services
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
        patch.setattr(services, "resolve_ip_for_localhost", lambda host: host)
        _settings_read_anew()
        made = Cluster()
        try:
            for _ in range(nodes):
                add(made)
            connect(made.address)
            yield made
        finally:
            ray.shutdown()
            made.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
    _settings_read_anew()


def connect(address):
    """Connect this process to a cluster of the loopback."""
    import ray

    ray.init(address=address, _node_ip_address=ADDRESS, log_to_driver=False, logging_level="ERROR")


def add(made):
    """Add a node of one processor."""
    made.add_node(node_ip_address=ADDRESS, num_cpus=1, object_store_memory=80 << 20, include_dashboard=False)


def _settings_read_anew():
    """Have this process look at the environment again, which Ray does as it is imported."""
    from ray._raylet import AuthenticationTokenLoader, Config

    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()
