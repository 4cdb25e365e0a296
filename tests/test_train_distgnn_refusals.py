"""What distgnn refuses, before any process starts: parameters, models, directories, and processes of torchrun."""

import numpy as np
import pytest

import fastpart as fp
from edge_partitioned import planted_edges

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_thread", "no_processes")

FEW = {"hidden": 8, "heads": 2, "epochs": 5, "threads": 1}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted_edges(tmp_path_factory.mktemp("two"), k=2)


@pytest.fixture
def no_processes(monkeypatch):
    monkeypatch.setattr("fastpart.runtime.watch.Supervisor.start", lambda *_, **__: pytest.fail("started"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delay": "5"}, "delay: expected an integer, got str"),
        ({"delay": 1001}, "delay: 1001 is not between 0 and 1000"),
        ({"delay": -1}, "delay: -1 is not between 0 and 1000"),
        ({"exchange": "late"}, "exchange: unknown value 'late'. Valid values are 'always', 'never'"),
        ({"delay": 5, "exchange": "never"}, 'delay: 5, but exchange="never" sends no messages'),
        ({"model": "gat", "delay": 2}, 'delay: attention .*. Use delay=0 or exchange="never"'),
        ({"model": "gatv2", "delay": 1}, 'delay: attention .*. Use delay=0 or exchange="never"'),
        ({"model": "clustergcn"}, "model: 'clustergcn' needs sampled graphs, .*. Train it with sdt"),
        ({"model": "graphsaint"}, "model: 'graphsaint' needs sampled graphs, .*. Train it with sdt"),
        ({"model": "perceptron"}, "model: unknown value 'perceptron'. Valid values are 'graphsage'"),
        ({"epochs": 0}, "epochs: 0 is not between"),
        ({"threads": -1}, "threads: -1"),
        ({"resume": True}, "resume: needs out="),
        ({"out": "absent/out"}, "absent"),
    ],
)
def test_refusals(parts, given, message):
    with pytest.raises((fp.FastpartError, TypeError, OSError), match=f"(?s){message}"):
        fp.train.distgnn(parts, **{**FEW, **given})


MODELS = {
    "layers of another library": (
        """
import torch
class Mine(torch.nn.Module):
    def __init__(self, task, options):
        super().__init__()
        self.layer = torch.nn.Linear(task.features, task.classes)
    def forward(self, graphs, x):
        return self.layer(graphs[0].local_var().ndata["x"])
""",
        r"model: .*mine.py:Mine' cannot be trained over parts: AttributeError: .*"
        r"the methods of fastpart.train.graphs.neighbourhood.Neighbourhood",
    ),
    "rows too many": (
        """
import torch
class Mine(torch.nn.Linear):
    def __init__(self, task, options):
        super().__init__(task.features, task.classes)
    def forward(self, graphs, x):
        return super().forward(torch.cat([x, x]))
""",
        r"model: .*mine.py:Mine' must return a tensor of shape \(2, 4\), .* got rows of shape \(4, 4\)",
    ),
    "several tensors": (
        """
import torch
class Mine(torch.nn.Linear):
    def __init__(self, task, options):
        super().__init__(task.features, task.classes)
    def forward(self, graphs, x):
        return super().forward(x), x
""",
        r"model: .*mine.py:Mine' must return a tensor of shape \(2, 4\), .* got a tuple",
    ),
    "no weights": (
        """
import torch
class Mine(torch.nn.Module):
    def __init__(self, task, options):
        super().__init__()
        self.classes = task.classes
    def forward(self, graphs, x):
        return x[:, :self.classes]
""",
        r"model: .*mine.py:Mine' has no weights to train",
    ),
    "no module": (
        "def Mine(task, options):\n    return 3\n",
        r"model: .*mine.py:Mine returned a int instead of a torch.nn.Module",
    ),
    "an error": (
        "def Mine(task, options):\n    raise ValueError('too late')\n",
        r"model: .*mine.py:Mine' cannot be made: ValueError: too late \(in Mine, .*mine.py, line 2\)",
    ),
}


@pytest.mark.parametrize("what", MODELS)
def test_models_that_cannot_be_trained_so(parts, mine, what):
    code, message = MODELS[what]
    with pytest.raises(fp.errors.ParameterError, match=f"(?s)^{message}"):
        fp.train.distgnn(parts, **FEW, model=mine(code))


def test_a_model_that_no_other_process_finds(parts):
    from fastpart.train.models import GraphSAGE

    class Local(GraphSAGE):
        pass

    with pytest.raises(
        fp.errors.ParameterError, match=r"model: other processes cannot import Local\. Define it at the top"
    ):
        fp.train.distgnn(parts, **FEW, model=Local)


def test_directories_that_lack_something(tmp_path):
    edges = np.array([[0, 1], [1, 2], [2, 0]], np.uint32)
    given = {
        "graph": edges,
        "features": np.ones((3, 2), np.float32),
        "labels": np.arange(3),
        "splits": {"train": [0]},
    }
    for missing in given:
        kept = {name: value for name, value in given.items() if name != missing}
        p = fp.algorithms.hdrf(edges, k=2)
        if missing == "graph":
            p.graph, kept = None, {}
        if missing == "labels":
            del kept["splits"]
        p.save(tmp_path / missing, **kept)
        with pytest.raises(
            fp.errors.ParameterError, match=rf"holds no {missing}.*\. Save the partition with p.save\("
        ):
            fp.train.distgnn(tmp_path / missing)
    fp.algorithms.hdrf(edges, k=2).save(tmp_path / "unlabelled", **{**given, "labels": np.array([-1, 0, 0])})
    with pytest.raises(fp.errors.ParameterError, match="has no labelled vertex to train on"):
        fp.train.distgnn(tmp_path / "unlabelled")
    fp.algorithms.random(edges, k=2).save(tmp_path / "vertex", **given)
    with pytest.raises(
        fp.errors.ParameterError, match=r"is a vertex partition\. .*over parts of the edges\. Make .*hdrf"
    ):
        fp.train.distgnn(tmp_path / "vertex")


@pytest.mark.parametrize(
    ("processes", "output", "message"),
    [
        (
            3,
            "out",
            "source: 2 parts for 3 processes. Start one process per part: --nnodes times --nproc-per-node",
        ),
        (1, "out", "source: 2 parts for 1 processes. Start one process per part"),
        (2, None, "under torchrun, .* pass out=, a folder that all workers see"),
    ],
)
def test_refusals_under_torchrun(parts, tmp_path, monkeypatch, processes, output, message):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    folder = output and tmp_path / output
    with pytest.raises(fp.errors.ParameterError, match=f"^{message}"):
        fp.train.distgnn(parts, **FEW, out=folder)
    assert list(tmp_path.iterdir()) == []
