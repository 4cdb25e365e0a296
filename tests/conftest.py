"""What every test may rely on."""

import gc
import json
import logging
import os
import re
import signal
import warnings
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test, settings

import fastpart as fp
from fastpart.cli import main
from fastpart.runtime import launch, watch
from fastpart.train.registry import METHODS, of
from soaked import SEARCH

ROOT = Path(__file__).parents[1]

# Without it, the first import of dgl asks, and answers itself by writing to the home directory.
os.environ.setdefault("DGLBACKEND", "pytorch")

# The threads of OpenMP spin while they wait for each other. On a machine with as many busy processes as processors they
# spin for as long as the system lets another process run, which is most of what small trainings take.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A shell that starts this in the background ignores Ctrl-C, and all children would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

WORKERS = (
    *("fastpart.cli", "fastpart.train.jobs.launch", "fastpart.train.jobs.job", "fastpart.train.jobs.driver"),
    *dict.fromkeys(
        place.partition(":")[0] for name in METHODS for place in (of(name).driver, of(name).worker) if place
    ),
)
"""What workers import, and ranks of a launcher. A package whose library is missing is left out."""

# The same examples in every run; `HYPOTHESIS_PROFILE=search` looks for new ones. A property that needs another number
# says so (`examples` in `soaked.py`).
settings.register_profile("ci", max_examples=25, derandomize=True, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile("search" if SEARCH else "ci")


WHOLE = {
    "torch": re.compile(r'^(\w+ = )?pytest\.importorskip\("torch', re.MULTILINE),
    "ray": re.compile(r'^(\w+ = )?pytest\.importorskip\("ray', re.MULTILINE),
    "dgl": re.compile(r'^(\w+ = )?pytest\.importorskip\("(dgl|torch_geometric\.dist)', re.MULTILINE),
}
"""How a module says that all its tests need a library."""


def pytest_collection_modifyitems(items):
    """Mark the tests of modules that need a library, so that its environment runs them and nothing else.

    A search for new examples is for ``make soak``, which runs the properties then, for as long as they take.
    """
    marks = {path: _marks(path.read_text()) for path in {item.path for item in items}}
    for item in items:
        for name in marks[item.path]:
            item.add_marker(name)
        if SEARCH and is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("soak")
            item.add_marker(pytest.mark.timeout(3600))


def pytest_collection_finish():
    """Let no collection of garbage look at thousands of tests again: a comparison has one before each algorithm."""
    gc.collect()
    gc.freeze()


def _marks(text):
    return [name for name, needs in WHOLE.items() if needs.search(text)]


def pytest_runtest_setup(item):
    """Skip a test that is marked by itself where torch is not installed."""
    if item.get_closest_marker("torch"):
        pytest.importorskip("torch")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """Fail a test that skips for want of torch without its mark, since no other environment would run it."""
    report = (yield).get_result()
    if report.skipped and "import 'torch" in str(report.longrepr) and not item.get_closest_marker("torch"):
        report.outcome, report.longrepr = (
            "failed",
            f"{item.nodeid} needs torch: mark it with pytest.mark.torch",
        )


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Keep conversions out of the cache of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _imported_once():
    """Let the server of this process import what workers of trainings import, which takes each of them a second.

    Receivers and batch workers of armada become copies of it, too. None of these modules starts the threads of Polars
    or of torch. Commands and ranks that tests run start processes as those of users do.
    """

    def begin(module, arguments, environment, pipes, preloaded):
        preloaded = preloaded or module == "fastpart.train.methods.armada"
        return launch.begin(module, arguments, environment, pipes, preloaded)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "PRELOADED", (*launch.PRELOADED, *WORKERS))
        patch.setattr(watch, "begin", begin)
        yield


@pytest.fixture(scope="session")
def datasets() -> Path:
    """Folder of the small real graphs that come with the repository."""
    return ROOT / "python" / "fastpart" / "datasets"


@pytest.fixture(scope="session")
def rmat(tmp_path_factory):
    """Return an R-MAT graph with loops, above the 2**18 records from where on defaults work in batches."""
    path = tmp_path_factory.mktemp("rmat") / "g.bin"
    return fp.generate.rmat(path, n=1 << 16, m=1_000_000, seed=3)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of larger real graphs beside the repository; tests that need it are skipped elsewhere."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip(f"{path} does not exist")
    return path


@pytest.fixture(scope="module")
def real_graphs(shared_data):
    """Return all graphs of the shared data, by name."""
    graphs = {}
    for meta in sorted(shared_data.glob("*/meta.json")):
        n = json.loads(meta.read_text())["n"]
        graphs[meta.parent.name] = fp.open_graph(meta.with_name("edges.npy"), num_vertices=n)
    return graphs


@pytest.fixture(scope="module")
def one_thread():
    """Let torch compute with one thread, since tests run beside one another."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def mine(tmp_path):
    """Return a function that writes a model to a file, and says where it is."""

    def write(code, name="Mine"):
        file = tmp_path / "mine.py"
        file.write_text(code)
        return f"{file}:{name}"

    return write


# Commands.


@pytest.fixture
def restored(monkeypatch):
    """Undo what the command line sets up for its process."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    yield
    log = logging.getLogger("fastpart")
    log.handlers.clear()
    log.setLevel(logging.NOTSET)


@pytest.fixture
def run(capsys):
    """Run a command in this process; return exit code, stdout and stderr."""

    def run(*arguments):
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
