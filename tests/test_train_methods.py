"""The methods of training: a record each, a signature and a docstring from what they share, and methods of users."""

import importlib.util
import inspect
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import fastpart as fp
from fastpart.core.calls import full_signature
from fastpart.core.option_groups import OptionGroup, entries_of, split
from fastpart.partitions.loader_options import NegativeOptions
from fastpart.train import options, registry
from fastpart.train.registry import METHODS, of


@pytest.mark.torch
@pytest.mark.parametrize("name", METHODS)
def test_what_users_call_is_the_function_whatever_is_imported(name):
    pytest.importorskip("torch")
    importlib.import_module(of(name).driver.partition(":")[0])
    assert getattr(fp.train, name) is of(name).function
    assert importlib.util.find_spec(f"fastpart.train.{name}") is None, (
        "importing it would replace the function"
    )


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_is_in_the_docs_once(name):
    function = of(name).function
    documented = function.full_doc.partition("Parameters\n")[2].partition("\nReturns\n")[0]
    entries = re.findall(r"^(\w[\w, ]*?)(?: :|$)", documented, re.MULTILINE)
    assert sorted(", ".join(entries).split(", ")) == sorted(full_signature(function).parameters)


def _shared():
    groups = [
        each for each in vars(options).values() if isinstance(each, type) and issubclass(each, OptionGroup)
    ]
    for group in [*groups, NegativeOptions]:
        for names, _ in entries_of(split(inspect.cleandoc(group.__doc__ or ""))[1]):
            yield names.partition(" :")[0]


def test_what_methods_share_is_described_once():
    names = list(_shared())
    assert len(set(names)) == len(names) > 30


@pytest.mark.parametrize("name", METHODS)
def test_a_method_adds_to_what_it_shares(name):
    own = set(dict(entries_of(split(inspect.getdoc(inspect.unwrap(of(name).function)))[1])))
    shared = set(_shared())
    assert all(" :" in entry or entry in shared for entry in own)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_what_all_take_or_says_why_not(name):
    taken = full_signature(of(name).function).parameters
    shared = full_signature(fp.train.sampled).parameters.keys() & vars(options.TrainOptions()).keys()
    for each in shared:
        why = of(name).without.get(each)
        assert (each in taken) == (why is None)
        if why:
            with pytest.raises(TypeError, match=re.escape(f"{name}() has no parameter {each!r}: {why}")):
                of(name).function("absent", **{each: 1})


@pytest.mark.parametrize("name", METHODS)
def test_all_defaults_pass_their_own_checks(name):
    known = of(name)
    defaults = {
        each.name: each.default
        for each in full_signature(known.function).parameters.values()
        if each.name != "source"
    }
    assert known.options.checked(defaults) == known.options.checked(known.defaults)


OWN = """
import json, sys
from dataclasses import dataclass
from typing import Annotated

import fastpart as fp
from fastpart.core.option_groups import Within
from fastpart.train.registry import Method
from fastpart.train.options import TrainOptions

@dataclass(frozen=True, kw_only=True)
class DoubledOptions(TrainOptions):
    \"\"\"The options of ``doubled``.\"\"\"

    rate: Annotated[int, Within(1, 10)] = 2

METHOD = Method(
    "doubled",
    DoubledOptions,
    driver="own:Driver",
    worker="own:Worker",
    over=None,
    without={"workers": "it trains in one process", "timeout": "it waits for nobody"},
    launched=False,
)

@METHOD.keywords
def doubled(source, options):
    \"\"\"Train on the whole graph, with a rate.

    Parameters
    ----------
    source : path
        A partition directory.
    rate : int
        A factor of the learning rate.
    \"\"\"
    return METHOD.train(source, options)

fp.train.register(METHOD)

def __getattr__(name):  # torch is imported by the training
    from dataclasses import replace
    from fastpart.train.methods.full import driver, worker
    class Worker(worker.Worker):
        def __init__(self, dataset, options, place, state):
            super().__init__(dataset, replace(options, lr=options.rate * options.lr), place, state)
    return {"Driver": driver.Driver, "Worker": Worker}[name]
"""

USE = """
import sys
import numpy as np
import fastpart as fp, own
folder, run, refused = sys.argv[1], sys.argv[2], ""
mine = own.doubled(folder, epochs=2, rate=3, seed=1, out=run)
full = fp.train.full(folder, epochs=2, lr=0.03, seed=1)
assert mine.history["loss"].to_list() == full.history["loss"].to_list()
assert fp.train.open(run).resume(epochs=3).summary["method"] == "doubled"
for wrong in ({"rate": 11}, {"rates": 1}, {"workers": 2}):
    try:
        own.doubled(folder, **wrong)
    except (TypeError, ValueError) as error:
        print(error)
graph = [[i, (i + 1) % 12] for i in range(12)]
y, splits = [i // 6 for i in range(12)], {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
x = np.array([[float(each), 1.0] for each in y], np.float32)
print(fp.train.compare(graph, 2, features=x, labels=y, splits=splits,
    methods=["doubled"], seeds=1, epochs=1)["method"].item())
"""


@pytest.mark.torch
def test_a_method_of_a_user_trains_resumes_and_is_compared(tmp_path):
    ring = np.array([[i, (i + 1) % 12] for i in range(12)])
    labels = np.arange(12) // 6
    splits = {"train": [0, 3, 6, 9], "val": [1, 7], "test": [2, 8]}
    features = np.eye(2, dtype=np.float32)[labels]
    part = fp.VertexPartition(labels, k=2)
    part.save(tmp_path / "parts", graph=ring, features=features, labels=labels, splits=splits)
    (tmp_path / "own.py").write_text(textwrap.dedent(OWN))
    done = subprocess.run(
        [sys.executable, "-c", USE, "parts", "run"], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    rate, unknown, workers, compared = done.stdout.splitlines()
    assert rate == "rate: 11 is not between 1 and 10"
    assert unknown == "doubled() has no parameter 'rates'. Did you mean 'rate'?"
    assert workers == "doubled() has no parameter 'workers': it trains in one process"
    assert compared == "doubled"


def test_a_method_of_a_user_takes_no_name_of_ours():
    with pytest.raises(fp.errors.ParameterError, match="full comes with fastpart"):
        registry.register(of("full"))
    with pytest.raises(
        fp.errors.ParameterError, match=r"method: unknown value 'sampeld'.*Did you mean 'sampled'"
    ):
        of("sampeld")
