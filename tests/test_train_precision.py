"""The numbers that layers compute with, and where: the same choice for every method."""

import numpy as np
import pytest

import fastpart as fp
from trainable import planted

torch = pytest.importorskip("torch")

QUICK = {"epochs": 8, "hidden": 16, "dropout": 0.1, "threads": 2}
METHODS = {"full": {}, "sdt": {"workers": 1}, "sancus": {}}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=1, n=300, m=1500)


@pytest.mark.parametrize("method", METHODS)
def test_bfloat16_is_close_and_weights_stay_float32(parts, method):
    half, single = (
        getattr(fp.train, method)(parts, precision=each, **QUICK, **METHODS[method])
        for each in ("bfloat16", "float32")
    )
    assert half.history["loss"].to_list() != single.history["loss"].to_list()
    np.testing.assert_allclose(half.history["loss"], single.history["loss"], rtol=0.1)
    assert {weight.dtype for weight in half.weights.values()} == {torch.float32}


def test_a_resume_keeps_the_numbers(parts, tmp_path):
    run = {"out": tmp_path / "run", **QUICK}
    fp.train.full(parts, precision="float64", **{**run, "epochs": 2})
    with pytest.raises(fp.errors.ParameterError, match="trained with precision = 'float64', not 'float32'"):
        fp.train.full(parts, resume=True, **run)
    longer = fp.train.open(tmp_path / "run").resume(epochs=8)
    at_once = fp.train.full(parts, precision="float64", **QUICK)
    assert longer.history["loss"].to_list() == at_once.history["loss"].to_list()
    assert longer.predict(parts, what="logits").dtype == np.float32


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without GPUs")
@pytest.mark.parametrize("method", METHODS)
def test_gpus_that_are_not_there_are_refused(parts, method):
    with pytest.raises(
        fp.errors.ParameterError, match="device: 'cuda' needs a GPU for each of the 1 processes"
    ):
        getattr(fp.train, method)(parts, device="cuda", **QUICK, **METHODS[method])
