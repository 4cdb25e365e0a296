"""A refused parameter shows two frames of the package at most. Any other error shows where it comes from."""

import os
import traceback

import numpy as np
import pytest

import fastpart as fp
from fastpart.core.calls import called_well
from fastpart.errors import FastpartError, ParameterError

HOME = os.path.dirname(fp.__file__)
RING = np.array([[v, (v + 1) % 60] for v in range(60)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tracebacks")


@pytest.fixture(scope="module")
def partition(folder):
    return fp.spring(RING, k=2)


@pytest.fixture(scope="module")
def stored(partition, folder):
    labels, splits = np.arange(60) % 3, {"train": np.arange(40), "val": np.arange(40, 60)}
    partition.save(folder / "parts", features=np.eye(60, dtype=np.float32), labels=labels, splits=splits)
    return fp.open_partition(folder / "parts")


def frames_of(error):
    """Return the functions of the package that a printed error shows, with those of the errors before it."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    shown = traceback.extract_tb(error.__traceback__)
    ours = [frame.name for frame in shown if frame.filename.startswith(HOME)]
    return ours if before is None else frames_of(before) + ours


def frames(error, function, *args, **given):
    with pytest.raises(error) as caught:
        function(*args, **given)
    return frames_of(caught.value)


REFUSED = {
    "type": lambda p, parts: fp.partition(RING, k="x"),
    "name": lambda p, parts: fp.partition(RING, 2, effrt="best"),
    "option": lambda p, parts: fp.partition(RING, 2, threads=-1),
    "config": lambda p, parts: fp.config(threads=-1),
    "missing": lambda p, parts: fp.multilevel(),
    "of a builtin": lambda p, parts: fp.multilevel(RING, k=0),
    "inside a list": lambda p, parts: fp.multilevel(RING, k=2, balance="x"),
    "start": lambda p, parts: fp.refine(p.graph, p, balance=-1),
    "of several": lambda p, parts: fp.compare(RING, k=[2, 0]),
    "given array": lambda p, parts: fp.evaluate(RING, p, labels=[1, 2]),
    "array": lambda p, parts: p.evaluate(labels=[1, 2]),
    "keyword": lambda p, parts: p.evaluate(wrong=1),
    "wrong name": lambda p, parts: p.save(parts.folder, wrong=1),
    "wrong value": lambda p, parts: p.save(parts.folder, halo_hops=7),
    "suffix": lambda p, parts: p.save("parts.unknown"),
    "measures": lambda p, parts: p.evaluate().save("measures.unknown"),
    "plan": lambda p, parts: parts.plan(fanouts=[2], workers=0),
    "cache": lambda p, parts: parts.save_cache(2, fanouts=[1]),
    "in a context": lambda p, parts: fp.evaluate(RING, p, shared="folder"),
    "in a property": lambda p, parts: parts.plan(fanouts=[2], temporal="last"),
    "of two": lambda p, parts: fp.split_edges(RING, val=0.1, test=[[0, 1]]),
    "export": lambda p, parts: fp.export.text(parts, out=3),
    "constructor": lambda p, parts: fp.VertexPartition([0, 5], k=2),
}
REFUSED_WITH_TORCH = {
    "size": lambda p, parts: parts.loader(fanouts=[2], batch_size=-1),
    "loader": lambda p, parts: parts.loader(fanout=[2]),
    "links": lambda p, parts: parts.link_loader(fanouts=3),
    "epochs": lambda p, parts: fp.train.sampled(parts, epochs=-1),
    "rate": lambda p, parts: fp.train.sampled(parts, lr="x"),
    "training": lambda p, parts: fp.train.sampled(parts, wrong=1),
    "model": lambda p, parts: fp.train.full(parts, model="x"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_a_refused_parameter_shows_two_frames(partition, stored, call):
    shown = frames((ParameterError, TypeError), REFUSED[call], partition, stored)
    assert 1 <= len(shown) <= 2


@pytest.mark.torch
@pytest.mark.parametrize("call", REFUSED_WITH_TORCH)
def test_a_refused_parameter_of_a_training_shows_two_frames(partition, stored, call):
    shown = frames((ParameterError, TypeError), REFUSED_WITH_TORCH[call], partition, stored)
    assert 1 <= len(shown) <= 2


def test_the_second_frame_is_the_function(partition):
    assert frames(TypeError, fp.partition, RING, k="x") == ["call", "partition"]
    assert frames(TypeError, fp.partition, RING, 2, threads="x") == ["call", "integer"]  # it was not called
    assert frames(ParameterError, partition.save, "parts.unknown") == ["call", "save"]


def test_other_refusals_keep_their_frames(folder):
    (folder / "bad.npy").write_bytes(b"no array")
    assert len(frames(FastpartError, fp.partition, folder / "bad.npy", 2)) > 2
    assert len(frames(FileNotFoundError, fp.partition, folder / "absent.npy", 2)) > 2


@pytest.fixture
def broken(monkeypatch):
    """Return a function that breaks :func:`fastpart.partition` with an error, as if the package raised it."""

    def breaks(error):
        def choose(*_, **__):
            raise error

        monkeypatch.setitem(choose.__globals__, "__name__", "fastpart.broken")
        monkeypatch.setattr("fastpart.partitions.partitioners.choosing.choose", choose)

    return breaks


@pytest.mark.parametrize(
    "error",
    [
        TypeError("unsupported operand type(s) for +: 'NoneType' and 'int'"),
        ParameterError("inner: no parameter of the function that was called"),
        FastpartError("k: no error of a parameter"),
    ],
    ids=str,
)
def test_a_defect_keeps_its_frames(broken, error):
    broken(error)
    with pytest.raises(type(error)) as caught:
        fp.partition(RING, 2)
    assert [frame.name for frame in caught.traceback[-2:]] == ["partition", "choose"]


def test_a_parameter_that_is_refused_deep_inside_shows_two_frames(broken):
    broken(ParameterError("k: too many"))
    with pytest.raises(ParameterError) as caught:
        fp.partition(RING, 2)
    assert [frame.name for frame in caught.traceback[-2:]] == ["call", "partition"]


def test_code_of_users_keeps_its_frames():
    def progress(phase, done, total):
        raise ParameterError("k: said by the user's own code")

    with pytest.raises(ParameterError) as caught:
        fp.partition(RING, 2, progress=progress)
    assert caught.traceback[-1].name == "progress"


def test_a_function_that_is_called_by_another_ends_at_the_outer_one():
    @called_well
    def outer(graph, k):
        return fp.multilevel(graph, k)

    with pytest.raises(ParameterError, match="k: 0") as caught:
        outer(RING, 0)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[1:] == ["call", "outer", "call", "function"]  # outer is no code of the package
