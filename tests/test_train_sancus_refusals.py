"""What sancus refuses, before any process starts: models, bounds, and damaged halos."""

import numpy as np
import pytest

import fastpart as fp
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.method_options import SancusOptions  # noqa: E402
from fastpart.train.methods.distgnn.blocks import Blocks  # noqa: E402
from fastpart.train.methods.distgnn.driver import try_model  # noqa: E402
from fastpart.train.methods.distgnn.staleness import BlocksExchange  # noqa: E402
from fastpart.train.models import MODELS  # noqa: E402
from fastpart.train.models.scores import Task  # noqa: E402

REFUSED = dict.fromkeys(("gat", "gatv2", "transformer"), "constant matrix of the edges") | dict.fromkeys(
    ("clustergcn", "graphsaint"), "needs sampled graphs"
)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("multilabel", [False, True])
def test_models_that_cannot_be_trained_so_are_refused_before_anything_starts(name, multilabel):
    given = Task(3, 4, multilabel), SancusOptions(model=name, layers=3), BlocksExchange
    if name in REFUSED:
        with pytest.raises(fp.errors.ParameterError, match=REFUSED[name]):
            try_model(*given)
    else:
        try_model(*given)


NONE = {"period": None, "max_age": None, "max_change": None}


def bounds(**given):
    checked = SancusOptions.checked(given)
    return {name: getattr(checked, name) for name in NONE}


def test_there_is_one_bound():
    assert bounds() == bounds(period=1) == bounds(max_age=0) == bounds(max_change=0.0) == NONE
    assert bounds(period=4) == {**NONE, "period": 4}
    assert bounds(max_change=0.5) == {**NONE, "max_change": 0.5}
    with pytest.raises(fp.errors.ParameterError, match="max_change, period: only one bound"):
        bounds(period=1, max_change=0.1)


@pytest.mark.parametrize("name", ["period", "max_age", "max_change"])
def test_bounds_below_zero_are_refused(name):
    with pytest.raises(fp.errors.ParameterError, match=f"{name}: -1"):
        bounds(**{name: -1})
    with pytest.raises(TypeError, match=name):
        bounds(**{name: "2"})
    with pytest.raises(fp.errors.ParameterError if name == "max_change" else TypeError, match=name):
        bounds(**{name: float("nan")})


@pytest.mark.parametrize(
    ("owner", "expected"),
    [(-1, "parts below 2"), (1, "other parts than part 1"), (2, "parts below 2")],
)
def test_halo_of_parts_that_do_not_hold_it_is_refused(tmp_path, owner, expected):
    path = planted(tmp_path, k=2)
    file = next(path.glob("*1*/halo_parts.npy"))
    np.save(file, np.full_like(np.load(file), owner))
    with pytest.raises(
        fp.errors.GraphFormatError, match=rf"part-00001/halo_parts\.npy: expected {expected}$"
    ):
        Blocks.load(Dataset(path), 1)
