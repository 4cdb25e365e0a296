"""What differs between systems is in one module of each language, and Python works without what only Linux has."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]

# Where fastpart may name what only some systems have.
RUST = re.compile(
    r"std::os::|cfg\((not\()?(any\(|all\()?(not\()?(unix|windows|target_os)|\"/(proc|sys)/|memmap2::Advice|libc::\w+\("
)
PYTHON = re.compile(
    r"import (fcntl|resource|msvcrt)|posix_fallocate|memfd_create|register_at_fork|sysconf\(|sched_[gs]etaffinity"
    r"|os\.fork\b|\"/(proc|sys)/"
)
STARTED = (
    "runtime/",
    "machines/on_ray.py",
    "measures/compare/peers/child.py",
    "train/methods/distdgl/local.py",
)
"""Modules whose work needs Linux as a whole. What they do begins with ``require_processes``, or with nothing to do."""


def naming(folder: Path, suffix: str, what: re.Pattern[str]) -> set[str]:
    found = set()
    for file in folder.rglob(f"*{suffix}"):
        text = file.read_text().partition("#[cfg(test)]\nmod tests")[0]
        if what.search(text):
            found.add(file.relative_to(folder).as_posix())
    return found


def test_rust_names_systems_in_one_module():
    found = naming(HOME / "rust", ".rs", RUST)
    assert {file for file in found if not file.startswith("base/system/")} <= {
        "lib.rs",
        "base/output/tests.rs",
    }


def test_python_names_systems_in_one_module():
    found = naming(HOME / "python/fastpart", ".py", PYTHON)
    assert {file for file in found if not file.startswith(STARTED)} == {"core/system.py"}


LACKING = """
import os, pathlib, signal, socket, sys, types
import asyncio, concurrent.futures.process, multiprocessing, subprocess  # they look for themselves

for module in ("fcntl", "resource"):
    sys.modules[module] = None  # importing it fails
locks = types.ModuleType("msvcrt")
locks.LK_NBLCK, locks.locking = 2, lambda *_: None
sys.modules["msvcrt"] = locks
for of, names in (
    (os, "fork memfd_create posix_fallocate register_at_fork sched_getaffinity sched_setaffinity sysconf waitid "
         "killpg geteuid getuid setsid O_CLOEXEC O_PATH O_NONBLOCK"),
    (signal, "SIGKILL SIGUSR1 SIGBUS SIGCONT SIGCHLD pthread_sigmask"),
    (socket, "AF_UNIX SOCK_SEQPACKET send_fds recv_fds"),
):
    for name in names.split():
        of.__dict__.pop(name, None)
exists, read = pathlib.Path.exists, pathlib.Path.read_text
pathlib.Path.exists = lambda path, **how: not str(path).startswith(("/proc", "/dev/shm")) and exists(path, **how)
"""


def without_linux(code: str, folder: Path) -> str:
    """Output of a program in a Python that lacks what Windows lacks."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LACKING + code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_graph_is_partitioned_kept_and_measured_without_linux(tmp_path):
    code = """
import fastpart as fp
graph = fp.datasets.cora().graph
partition = fp.partition(graph, 4, seed=1)
partition.save("parts")
print(fp.evaluate(graph, fp.open_partition("parts")).cut_ratio == fp.evaluate(graph, partition).cut_ratio)
print(len(fp.compare(graph, 4, ["multilevel", "hdrf"]).summary))
"""
    assert without_linux(code, tmp_path).split() == ["True", "2"]


def test_every_module_of_the_core_is_imported_without_linux(tmp_path):
    code = """
import importlib, pkgutil
import fastpart
optional = {"torch", "ray", "dgl", "torch_geometric", "dask", "distributed", "obstore", "pyarrow", "deltalake"}
for module in pkgutil.walk_packages(fastpart.__path__, "fastpart."):
    if module.name.endswith((".__main__", ".server")):
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] not in optional:
            raise
"""
    without_linux(code, tmp_path)


def test_processes_are_refused_in_one_sentence_without_linux(tmp_path):
    code = """
import fastpart
from fastpart.runtime.launch import NewProcess
from fastpart.runtime.watch import Supervisor
for start in (Supervisor, lambda: NewProcess(["true"], {}, -1, -1)):
    try:
        start()
    except fastpart.FastpartError as error:
        print(error)
"""
    lines = without_linux(code, tmp_path).splitlines()
    assert len(lines) == 2
    assert all(" needs Linux: " in line for line in lines)


def test_a_full_or_simple_disk(tmp_path, monkeypatch):
    import errno
    import os

    from fastpart.core.system import allocate

    def refused(number):
        def call(*_):
            raise OSError(number, os.strerror(number))

        return call

    with (tmp_path / "file").open("wb") as file:
        monkeypatch.setattr(os, "posix_fallocate", refused(errno.EOPNOTSUPP))
        allocate(file.fileno(), 100)
        assert os.fstat(file.fileno()).st_size == 100
        monkeypatch.setattr(os, "posix_fallocate", refused(errno.ENOSPC))
        with pytest.raises(OSError, match="No space"):
            allocate(file.fileno(), 200)
        monkeypatch.delattr(os, "posix_fallocate")
        allocate(file.fileno(), 300)
        assert os.fstat(file.fileno()).st_size == 300


def test_a_lock_is_one_process_s_until_it_closes_the_file(tmp_path):
    from fastpart.core.system import try_lock

    with (tmp_path / "lock").open("w") as one, (tmp_path / "lock").open("w") as other:
        assert try_lock(one.fileno())
        assert not try_lock(other.fileno())
        one.close()
        assert try_lock(other.fileno())
