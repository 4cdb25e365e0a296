"""Several bounds at once, and a least number of vertices: results, files, the command line."""

import json
import pickle

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main

N = 1500
RANDOM = np.random.default_rng(0)
EDGES = np.array([[v, v + 1] for v in range(N - 1)] + [[v, v + 40] for v in range(N - 40)], dtype=np.uint32)
"""A strip of a grid."""
SPLIT = RANDOM.choice(["train", "val", "test", "none"], N, p=[0.1, 0.2, 0.3, 0.4])
MASKS = [SPLIT == "train", SPLIT == "val", SPLIT == "test"]


def multilevel(**options):
    return fp.multilevel(EDGES, 6, **options)


def loads_of(weights, partition):
    return np.bincount(partition.assignment, weights, minlength=partition.k).astype(int).tolist()


@pytest.fixture(scope="module")
def part():
    return multilevel(volume_balance=1.1, balance_on=MASKS, min_balance=0.9)


# What is promised.


def test_masks_volume_and_vertices_at_once(part):
    assert part.loads.max() <= part.cap
    assert part.loads.min() >= int(0.9 * N / 6)
    assert part.weight_loads.shape == (3, 6)
    assert part.weight_loads.tolist() == [loads_of(mask, part) for mask in MASKS]
    assert part.weight_cap.tolist() == [-(-105 * int(mask.sum()) // 600) for mask in MASKS]
    assert (part.weight_loads.max(axis=1) <= part.weight_cap).all()
    degrees = fp.open_graph(EDGES).degrees()
    assert part.volume_loads.tolist() == loads_of(degrees + 1, part)
    assert part.volume_loads.max() <= part.volume_cap
    assert part.parameters["balance_on"] == [f"array of {N} weights, sum {mask.sum()}" for mask in MASKS]
    # The parts still follow the edges.
    assert part.cut_ratio < 3 * multilevel().cut_ratio


def test_one_array_keeps_its_names():
    one, listed = (multilevel(balance_on=each) for each in (MASKS[0], MASKS[:1]))
    assert one == listed
    assert one.weight_loads.shape == (6,)
    assert isinstance(one.weight_cap, int)
    assert listed.weight_loads.tolist() == [one.weight_loads.tolist()]
    assert listed.weight_cap.tolist() == [one.weight_cap]
    both = multilevel(balance_on=MASKS[0].tolist(), volume_balance=1.1)
    assert both.weight_loads.shape == both.volume_loads.shape == (6,)
    assert "weight_balance" in both.evaluate().summary.columns


def test_seven_arrays_beside_vertices():
    masks = [RANDOM.random(N) < 0.2 for _ in range(7)]
    part = multilevel(balance_on=tuple(masks), balance_on_ratio=1.2)
    assert part.weight_loads.tolist() == [loads_of(mask, part) for mask in masks]
    with pytest.raises(fp.errors.ParameterError, match=r"^balance_on: 9 bounds .* 8 in all"):
        multilevel(balance_on=masks, volume_balance=1.1)
    with pytest.raises(fp.errors.ParameterError, match=r"^balance_on: 9 bounds .* 8 in all"):
        multilevel(balance_on=[*masks, masks[0]])


def test_what_is_out_of_reach_is_raised_and_said():
    star = np.array([[0, v] for v in range(1, 60)])
    masks = [np.arange(60) % 2 == 0, np.arange(60) % 3 == 0]
    with pytest.warns(
        fp.errors.CapacityWarning, match=r"^volume_balance: the parts cannot be kept within"
    ) as caught:
        part = fp.multilevel(star, 4, volume_balance=1.0, balance_on=masks, balance_on_ratio=1.2, balance=1.2)
    assert f"raised to {part.volume_cap}" in str(caught[0].message)
    assert len(caught) == 1
    assert part.volume_loads.max() == part.volume_cap
    assert (part.weight_loads.max(axis=1) <= part.weight_cap).all()
    with pytest.raises(fp.errors.CapacityError, match="volume_balance"):
        fp.multilevel(star, 4, volume_balance=1.0, balance_on=masks, on_infeasible="error")


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]])
def test_the_last_of_three_that_contradict_each_other_gives_way(order):
    # Two parts of two vertices: 0 and 1 apart, 0 and 2 apart, so 1 and 2 cannot be.
    pairs = [[0, 1], [0, 2], [1, 2]]
    masks = [np.isin(np.arange(4), pairs[index]) for index in order]
    with pytest.warns(
        fp.errors.CapacityWarning, match=r"^balance_on\[2\]: the parts cannot be kept within 1 "
    ) as caught:
        part = fp.multilevel([[0, 1], [2, 3]], 2, balance=1.0, balance_on=masks, balance_on_ratio=1.0)
    assert len(caught) == 1
    assert part.loads.tolist() == [2, 2]
    assert part.weight_cap.tolist() == [1, 1, 2]


# The least number of vertices.


def test_no_part_is_left_empty():
    blocks = np.array([[8 * b + u, 8 * b + v] for b in range(5) for u in range(8) for v in range(u)])
    assert fp.multilevel(blocks, 7, balance=3.0, min_balance=0.0) == fp.multilevel(blocks, 7, balance=3.0)
    for ratio in (0.01, 0.5, 1):
        loads = fp.multilevel(blocks, 7, balance=3.0, min_balance=ratio).loads
        assert loads.min() >= max(1, int(ratio * 40 / 7))


@pytest.mark.parametrize(
    ("ratio", "error", "text"),
    [
        (1.5, fp.errors.ParameterError, r"^min_balance: 1\.5 is not a ratio from 0 to 1"),
        (-0.1, fp.errors.ParameterError, r"^min_balance: -0\.1 is not a ratio"),
        (float("nan"), fp.errors.ParameterError, r"^min_balance: NaN is not a ratio"),
        (True, TypeError, r"^min_balance: expected a number"),
    ],
)
def test_least_numbers_that_cannot_be(ratio, error, text):
    with pytest.raises(error, match=text):
        multilevel(min_balance=ratio)


def test_more_parts_than_vertices_cannot_all_have_one():
    with pytest.raises(
        fp.errors.CapacityError, match=r"^min_balance: 3 parts cannot have a vertex each, since there are 2"
    ):
        fp.multilevel([[0, 1]], 3, min_balance=0.5)


# What weights may be.


@pytest.mark.parametrize(
    ("arrays", "error", "text"),
    [
        (
            [MASKS[0], MASKS[1][:-1]],
            fp.errors.ParameterError,
            rf"^balance_on: array 1: {N - 1} weights for {N} vertices",
        ),
        ([MASKS[0], np.ones(N)], TypeError, r"^balance_on\[1\]: .*got dtype float64"),
        ([MASKS[0], 5], TypeError, r"^balance_on\[1\]: .*got shape \(\)"),
        ([MASKS[0], None], TypeError, r"^balance_on\[1\]"),
        ([MASKS[0], np.full(N, -1)], fp.errors.ParameterError, r"^balance_on\[1\]: vertex 0 has weight -1"),
        (np.array(MASKS), TypeError, r"^balance_on: .*got shape \(3, 1500\)"),
    ],
)
def test_arrays_that_cannot_be(arrays, error, text):
    with pytest.raises(error, match=text):
        multilevel(balance_on=arrays)


def test_other_partitioners_take_one_array():
    with pytest.raises(TypeError, match=r"^balance_on: .*got shape"):
        fp.spring(EDGES, 6, balance_on=MASKS)


# Measures and files.


def test_measures(part):
    evaluation = part.evaluate()
    for index, mask in enumerate(MASKS):
        assert evaluation.parts[f"weight_load_{index}"].to_list() == part.weight_loads[index].tolist()
        assert evaluation.parts[f"weight_cap_{index}"].to_list() == [part.weight_cap[index]] * 6
        largest = part.weight_loads[index].max()
        assert getattr(evaluation, f"weight_balance_{index}") == largest / (mask.sum() / 6)
    assert "weight_load" not in evaluation.parts.columns
    json.loads(evaluation.to_json())


@pytest.mark.parametrize("out", ["parts", "part.parquet", "pickle"])
def test_saved_and_opened(part, tmp_path, out):
    listed = multilevel(balance_on=MASKS[:1])
    for index, saved in enumerate((part, listed, multilevel(balance_on=MASKS[0]))):
        if out == "pickle":
            loaded = pickle.loads(pickle.dumps(saved))
        else:
            saved.save(tmp_path / f"{index}{out}", graph=EDGES)
            loaded = fp.open_partition(tmp_path / f"{index}{out}", graph=EDGES)
        assert loaded == saved
        assert loaded.parameters == saved.parameters
        for name in ("weight_loads", "weight_cap", "volume_loads", "volume_cap"):
            ours, theirs = getattr(saved, name), getattr(loaded, name)
            assert type(ours) is type(theirs)
            np.testing.assert_array_equal(ours, theirs)
            if isinstance(theirs, np.ndarray):
                assert theirs.dtype == np.int64
                assert not theirs.flags.writeable
        assert fp.evaluate(EDGES, loaded) == fp.evaluate(EDGES, saved)


@pytest.mark.parametrize("indices", [[0, 1, 1], [0, 2, 1], [None, 1, 2], [1, 2, 3], ["0", "1", "2"]])
def test_a_manifest_is_not_believed(part, tmp_path, indices):
    part.save(tmp_path / "parts")
    manifest = tmp_path / "parts" / "manifest.json"
    content = json.loads(manifest.read_text())
    assert [bound["of"] for bound in content["caps"]] == ["vertices", *["weights"] * 3, "volume"]
    for bound, index in zip(content["caps"][1:4], indices, strict=True):
        bound["index"] = index
    manifest.write_text(json.dumps(content))
    with pytest.raises(fp.errors.GraphFormatError, match="caps: weights: index"):
        fp.open_partition(tmp_path / "parts")


# The command line.


def test_several_files_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("g.npy", EDGES)
    np.savez("split.npz", **dict(zip(("train", "val", "test"), MASKS, strict=True)))
    np.save("w.npy", np.arange(N))
    call = ["partition", "g.npy", "-k", "6", "-q", "--json", "--algorithm", "multilevel"]
    call += ["--min-balance", "0.9", "-o", "part.npy"]
    assert main([*call, "--balance-on", "split.npz:train,split.npz:val,w.npy"]) == 0
    rows = json.loads(capsys.readouterr().out)["parts"]
    part = multilevel(balance_on=[*MASKS[:2], np.arange(N)], min_balance=0.9)
    assert np.load("part.npy").tolist() == part.assignment.tolist()
    for index in range(3):
        assert [row[f"weight_load_{index}"] for row in rows] == part.weight_loads[index].tolist()
    assert main([*call, "--balance-on", "w.npy"]) == 0
    assert "weight_load" in json.loads(capsys.readouterr().out)["parts"][0]
    assert main([*call, "--balance-on", "w.npy,gone.npy"]) == 1
    assert "gone.npy" in capsys.readouterr().err
    assert main(["partition", "--algorithm", "multilevel", "--help"]) == 0
    assert "--balance-on FILE,..." in capsys.readouterr().out
