"""Training by workers, whatever the method: what is asked of a worker, and in which order."""

import copy
import json
import pickle
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

import fastpart as fp
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.core.calls import full_signature  # noqa: E402
from fastpart.core.option_groups import parameters_of  # noqa: E402
from fastpart.runtime.environment import TORCHRUN, Ranks  # noqa: E402
from fastpart.train import plugged  # noqa: E402
from fastpart.train.jobs import driver, launch  # noqa: E402
from fastpart.train.jobs.job import Job, Place  # noqa: E402
from fastpart.train.jobs.launch import Launch  # noqa: E402
from fastpart.train.method_options import SDTOptions  # noqa: E402
from fastpart.train.methods.sdt.worker import Worker  # noqa: E402
from fastpart.train.models import build  # noqa: E402
from fastpart.train.models.scores import Task  # noqa: E402
from fastpart.train.options import Options, TrainOptions  # noqa: E402
from fastpart.train.registry import Method  # noqa: E402
from fastpart.train.runs import history  # noqa: E402
from fastpart.train.runs.run_folder import RunFolder  # noqa: E402

pytestmark = pytest.mark.usefixtures("_one_process")


@pytest.fixture
def _one_process(tmp_path, monkeypatch):
    """Be the only worker."""
    ranks = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "LOCAL_WORLD_SIZE": 1}
    for name, value in ranks.items():
        monkeypatch.setenv(name, str(value))
    rendezvous = f"file://{tmp_path / 'rendezvous'}"
    launch.join_group("cpu", init_method=rendezvous, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


class Counting:
    """A worker whose weight is the number of epochs, and which is best in the fourth."""

    def __init__(self, dataset, options, place, state):
        self.calls = dataset.calls
        self.calls.append(("begin", options.epochs_per_round, state))
        self.network = torch.nn.Linear(1, 1, bias=False)
        self._epochs = state.get("epochs", 0)

    @staticmethod
    def open(src, target=None):
        return SimpleNamespace(
            path=Path(src),
            manifest={"n": 7},
            has_types=False,
            refuse_types=lambda: None,
            types={"": []},
            num_val=1,
            count_of=lambda split: 1,
            task=Task(1, 2, False),
            partition=SimpleNamespace(parts=[]),
            calls=CALLS,
        )

    def round(self, epochs, scored):
        self.calls.append(epochs)
        self._epochs += epochs
        torch.nn.init.constant_(self.network.weight, self._epochs)
        score = float(self._epochs <= 4) * self._epochs
        return {"loss": 0.0, "seconds": 0.1, "val_f1": score, "remote_bytes": 8, "worker_bytes": 9}

    def state(self):
        return {"epochs": self._epochs}

    def final(self, best):
        self.calls.append(("final", best["weight"].item()))
        return {"test_accuracy": 0.5, "of the method": ["anything"]}


class Closing(Counting):
    def close(self):
        self.calls.append("close")


CALLS = []


@pytest.fixture
def counting(monkeypatch):
    def of(worker):
        CALLS.clear()
        monkeypatch.setitem(sys.modules, "counting.training", SimpleNamespace(Worker=worker))
        return worker.open("parts")

    return of


class Counted(driver.Driver):
    """A training by workers that count."""

    def needs(self):
        return (), ()

    def summary(self):
        return {"added": 1}

    def guessing(self):
        return None


@contextmanager
def here(options, workers, alone):
    """Be the only process of a launcher."""
    folder = RunFolder.claim(options.out, options.resume, overwrite=False)
    yield Launch(folder, options.resume, None, options.out, joined=True)


METHOD = Method(
    "counting", SDTOptions, driver="", worker="counting.training:Worker", without={"baselines": ""}
)


def joined(dataset, output, how, resume=False, epochs=5, progress=None):
    options = SDTOptions(out=output, resume=resume, epochs=epochs, progress=progress, **how)
    counted = Counted(METHOD, options, dataset, 1)
    counted.decisive = how
    with patch.object(driver, "launching", here):
        return counted.train()


@pytest.mark.parametrize("worker", [Counting, Closing])
@pytest.mark.parametrize(("how", "rounds"), [({}, [1] * 5), ({"average_every": 2}, [2, 2, 1])])
def test_the_course_of_a_training(counting, tmp_path, worker, how, rounds):
    told = []
    trained = joined(counting(worker), tmp_path / "out", how, progress=lambda *said: told.append(said))
    end = ["close"] if worker is Closing else []
    assert [
        ("begin", how.get("average_every", 1), {}),
        *rounds,
        ("final", 4.0),
        *end,
    ] == CALLS
    ends = [sum(rounds[: i + 1]) for i in range(len(rounds))]
    assert told == [("epoch", done, 5) for done in ends]
    assert trained.history["epoch"].to_list() == [done - 1 for done in ends]
    assert (trained.method, trained.weights["weight"].item()) == ("counting", 4.0)
    expected = {"test_accuracy": 0.5, "of the method": ["anything"], "added": 1, "best_epoch": 3}
    assert expected.items() <= trained.summary.items()


def test_a_worker_goes_on_from_its_state(counting, tmp_path, monkeypatch):
    monkeypatch.setattr(history, "SAVE_SECONDS", 0.0)

    def stop(_, done, __):
        if done == 3:
            raise InterruptedError

    dataset = counting(Counting)
    with pytest.raises(InterruptedError):
        joined(dataset, tmp_path / "out", {}, progress=stop)
    went_on = joined(dataset, tmp_path / "out", {}, resume=True)
    assert CALLS[4:] == [
        ("begin", 1, {"epochs": 3}),
        1,
        1,
        ("final", 4.0),
    ]
    assert went_on.history["epoch"].to_list() == list(range(5))


def test_a_job_is_the_same_in_another_process():
    options = SDTOptions(
        fanouts={"cites": (1, 2), "writes": (3, -1)}, average_every=3, tmp_dir=Path("t"), out="b"
    )
    job = Job("sdt", "m:W", "a", Place(Path("c"), Path("b"), 9), options, True, 2, steps=False)
    again = Job.from_json(job.to_json())
    assert replace(again, options=job.options) == job
    assert type(again.options) is SDTOptions
    assert replace(again.options, tmp_dir=Path("t")) == options


class Watching:
    """A callback that cannot be copied, with the options that a model got."""

    def __init__(self):
        self.lock, self.got = threading.Lock(), []

    def on_epoch(self, row):
        pass

    def model(self, task, options):
        self.got.append(type(options))
        return build(task, replace(options, model="graphsage"))


def test_neither_results_nor_models_keep_what_is_called(tmp_path):
    watching, source = Watching(), planted(tmp_path, k=2)
    called = {"callbacks": [watching], "on_epoch": lambda row: None, "progress": lambda *said: None}
    trained = fp.train.full(source, epochs=1, hidden=4, threads=1, **called)
    assert pickle.loads(pickle.dumps(trained)).summary == copy.deepcopy(trained).summary == trained.summary
    fp.train.full(source, epochs=1, hidden=4, threads=1, model=watching.model, **called)
    assert set(watching.got) == {Options}


def test_what_is_called_in_the_process_of_the_user_stays_there():
    options = TrainOptions(callbacks=[SimpleNamespace(on_epoch=print)], on_epoch=print, progress=print)
    sent = TrainOptions.received(json.loads(json.dumps(options.sent())))
    assert sent == TrainOptions()


@pytest.mark.parametrize(("gpus", "workers"), [(0, 1), (2, 2), (2, 3)])
def test_gpus_are_used_if_asked_for_and_there_is_one_for_each(monkeypatch, gpus, workers):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    launch.refuse_few_gpus("cpu", workers)
    if gpus < workers:
        with pytest.raises(
            fp.errors.ParameterError, match=rf"each of the {workers} processes .* torch sees {gpus}\. Use"
        ):
            launch.refuse_few_gpus("cuda", workers)
    else:
        launch.refuse_few_gpus("cuda", workers)


def test_the_device_is_what_was_asked_for_whatever_there_is(monkeypatch):
    joined, device = [], []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "set_device", device.append)
    monkeypatch.setattr(launch.dist, "init_process_group", lambda name, **_: joined.append(name))
    monkeypatch.setenv("LOCAL_RANK", "3")
    launch.join_group("cpu")
    launch.join_group("cuda")
    assert (joined, device) == (["gloo", "cpu:gloo,cuda:nccl"], [3])
    for method in (fp.train.distgnn, fp.train.sancus):
        assert full_signature(method).parameters["device"].default == "cpu"


BROKEN = """
import pathlib, sys, tempfile
folder = pathlib.Path(tempfile.mkdtemp(dir=sys.argv[1]))
(folder / "dgl.py").write_text("raise FileNotFoundError('libgraphbolt.so')")
sys.path.insert(0, str(folder))
import fastpart as fp
fp.train.full
try:
    fp.train.distdgl("parts")
except ValueError as error:
    print(error, "|", type(error.__cause__).__name__)
"""


def test_a_library_that_cannot_be_imported_is_named(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BROKEN, str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    text = r"training needs dgl, but its import failed \(FileNotFoundError: libgraphbolt.so\)\. Reinstall it: .*dgl\]'"
    assert re.search(rf"^{text} \| FileNotFoundError$", done.stdout, re.MULTILINE), done.stderr


@pytest.mark.parametrize(
    ("error", "is_short"),
    [
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), True),
        (OSError(12, "Cannot allocate memory"), True),
        (MemoryError(), True),
        (ImportError("libgomp.so.1: cannot allocate memory in static TLS block"), False),
        (ImportError("undefined symbol: cudaMalloc"), False),
    ],
)
def test_too_little_memory_for_a_library_is_told(monkeypatch, error, is_short):
    def fails(name):
        raise error

    monkeypatch.setattr(plugged.importlib, "import_module", fails)
    with pytest.raises(fp.FastpartError) as caught:
        plugged.import_torch()
    assert isinstance(caught.value, fp.errors.MemoryBudgetError) == is_short
    assert ("too little memory" in str(caught.value), "Reinstall" in str(caught.value)) == (
        is_short,
        not is_short,
    )


@pytest.mark.parametrize("method", ["full", "sampled", "armada", "sdt", "distdgl", "distgnn", "sancus"])
def test_every_option_is_in_the_signature_with_its_default(method):
    function = getattr(fp.train, method)
    known = full_signature(function).parameters
    whole_graph, typed = method in ("distgnn", "sancus"), method in ("full", "sampled", "armada", "sdt")
    for name, each in parameters_of(Options, {}).items():
        default = each.default
        if (whole_graph and name in ("batch_size", "fanouts")) or (name == "target" and not typed):
            assert name not in known
        else:
            assert known[name].default == (
                1000 if name == "batch_size" and method in ("distdgl", "sampled", "armada") else default
            )
    assert {"threads", "tmp_dir", "progress"} <= set(known)
    with pytest.raises(TypeError, match=rf"^{method}\(\) has no parameter 'epocs'. Did you mean 'epochs'\?$"):
        function("absent", epocs=1)


def test_what_torchrun_leaves_to_say(tmp_path):
    ranks = Ranks(TORCHRUN, 0, 2)
    assert launch.shared_output(ranks, tmp_path / "out") == tmp_path / "out"
    for output, workers in ((None, None), (tmp_path / "out", 2)):
        with pytest.raises(fp.errors.ParameterError, match=r"--nproc-per-node .* and pass out="):
            launch.shared_output(ranks, output, workers)


def test_the_worker_of_model_averaging_opens_a_directory(tmp_path):
    dataset = Worker.open(planted(tmp_path, k=2))
    assert dataset.partition.k == 2
