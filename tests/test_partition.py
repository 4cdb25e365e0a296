"""fastpart.partition(): the call without an algorithm."""

import pytest

import fastpart as fp
from fastpart.cli import main


@pytest.fixture
def file(tmp_path):
    fp.generate.planted(tmp_path / "g.bin", n=4000, m=30_000, seed=1)
    return tmp_path / "g.bin"


def test_it_is_multilevel(file):
    p = fp.partition(file, 8, balance=1.1, seed=3)
    assert p == fp.multilevel(file, 8, balance=1.1, seed=3)
    assert (p.algorithm, p.parameters["balance"], p.parameters["seed"]) == ("multilevel", 1.1, 3)
    assert fp.partition(file, 8) == fp.multilevel(file, 8)


def test_what_does_not_fit_names_the_calls_that_do(file, capsys):
    with pytest.raises(
        fp.MemoryBudgetError, match=r"fastpart\.grem\(graph, 8\).*fastpart\.spring\(graph, 8\)"
    ):
        fp.partition(file, 8, memory_limit="1M")
    assert main(["partition", str(file), "-k", "8", "--memory-limit", "1M"]) == 1
    assert "Or choose --algorithm grem or --algorithm spring" in capsys.readouterr().err
    assert main(["partition", str(file), "-k", "8", "--memory-limit", "1M", "--algorithm", "multilevel"]) == 1
    assert "choose" not in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 2, "balance": 0.5}, {"k": 2, "seed": -1}])
def test_wrong_parameters_are_named(wrong, file):
    with pytest.raises(fp.ParameterError, match=list(wrong)[-1]):
        fp.partition(file, **wrong)


def test_an_unknown_option_is_refused_with_the_list(file):
    with pytest.raises(TypeError, match=r"no parameter 'thread'.*threads"):
        fp.partition(file, 2, thread=1)
