"""The methods of training as presets: four choices, a signature and a docstring from what they share."""

import inspect
import re
from itertools import product
from typing import get_args, get_type_hints, is_typeddict

import pytest

import fastpart as fp
from fastpart.core.shared_parameters import _described, _entries, _split
from fastpart.train import keywords, trainer
from fastpart.train.methods import METHODS, method
from fastpart.train.trainer import Trainer


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_is_in_the_docs_once(name):
    documented = method(name).__doc__.partition("Parameters\n")[2].partition("\nReturns\n")[0]
    entries = re.findall(r"^(\w[\w, ]*?)(?: :|$)", documented, re.MULTILINE)
    assert sorted(", ".join(entries).split(", ")) == sorted(inspect.signature(method(name)).parameters)


def test_what_methods_share_is_described_once():
    names = [
        names.partition(" :")[0] for names, _ in _described(filter(is_typeddict, vars(keywords).values()))
    ]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_adds_to_what_it_shares(name):
    own = set(dict(_entries(_split(inspect.getdoc(inspect.unwrap(method(name))))[1])))
    shared = {
        names.partition(" :")[0] for names, _ in _described(filter(is_typeddict, vars(keywords).values()))
    }
    assert all(" :" in entry or entry in shared for entry in own)


def test_a_method_is_four_choices(monkeypatch):
    made = []
    monkeypatch.setattr(Trainer, "train", lambda self, source, **given: made.append((self.method, given)))
    for name in METHODS:
        method(name)("parts", epochs=3)
    assert [found for found, _ in made] == list(METHODS)
    assert all(
        given["epochs"] == 3 and given["timeout" if "timeout" in given else "out"] in (1800.0, None)
        for _, given in made
    )


def test_only_some_choices_fit_together():
    choices = [get_args(of) for of in get_type_hints(Trainer).values()]
    assert len(choices) == 4
    fitting = [each for each in product(*choices) if each in trainer.METHODS]
    assert len(fitting) == len(METHODS)
    for each in product(*choices):
        if each not in trainer.METHODS:
            with pytest.raises(
                fp.ParameterError, match=r"^Trainer: .* do not fit together\. These do: Neigh"
            ):
                Trainer(*(choice() for choice in each))


@pytest.mark.torch
def test_a_description_refuses_what_its_method_does_not_take():
    sancus = Trainer(trainer.Whole(), trainer.Here(), trainer.Blocks(), trainer.GradientSum())
    with pytest.raises(TypeError, match=r"^sancus\(\) has no parameter 'scores'\. Its parameters: model, "):
        sancus.train("absent", scores="none")
    with pytest.raises(TypeError, match=r"^sancus\(\) has no parameter 'workers': it starts one worker"):
        sancus.train("absent", workers=2)
    with pytest.raises(TypeError, match=r"^train\(\) has no parameter 'epocs'"):
        sancus.train("absent", epocs=3)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_what_all_take_or_says_why_not(name):
    taken = inspect.signature(method(name)).parameters
    for shared in keywords.Training.__annotations__:
        why = trainer.WITHOUT[name].get(shared)
        assert (shared in taken) == (why is None)
        if why is not None:
            with pytest.raises(TypeError, match=re.escape(f"{name}() has no parameter {shared!r}: {why}")):
                method(name)("absent", **{shared: 1})


def test_the_defaults_of_a_run_are_of_parameters_that_exist():
    assert set(keywords.DEFAULTS) <= set(keywords.SampledTraining.__annotations__)
