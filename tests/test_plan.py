"""The plan of epochs: batches of a loader with it are those without it, bit for bit, and it says what they read."""

import json
import os
import re
import shutil

import numpy as np
import pytest

import fastpart as fp
from attributed import attributed
from bits.digests import digest_of
from coded import FEATURES, saved
from fastpart.loading.planning.windows import Window
from fastpart.measures import reading
from fastpart.store.manifest import OWN
from flipped import REPLACEMENTS, bits_of, flipped, replace
from typed_training import typed_parts

BATCHES = {"fanouts": [4, 3], "batch_size": 32, "seed": 3}


@pytest.fixture(autouse=True)
def a_moment_for_the_disk(monkeypatch):
    monkeypatch.setattr(reading, "SECONDS", 0.01)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    graph, rows = attributed()
    folder = tmp_path_factory.mktemp("plan") / "parts"
    fp.algorithms.hash(graph, 3).save(folder, **rows)
    return fp.open_partition(folder, of="vertices")


@pytest.fixture(scope="module")
def coded(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("coded") / "parts", FEATURES["row"], feature_dtype="int8")


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """Types and relations of several widths and dtypes, of which authors and ``has_topic`` have no features."""
    rng = np.random.default_rng(3)
    return typed_parts(
        tmp_path_factory.mktemp("typed"),
        3,
        features={"field": rng.random((20, 3)).astype(np.float16), "paper": rng.random((240, 8))},
        edge_features={"cites": rng.random((600, 2)), "writes": rng.random((480, 3)).astype(np.float32)},
        times={"paper": rng.integers(0, 99, 240)},
        edge_times={"cites": rng.integers(0, 99, 600)},
    )[0]


def loaders(stored, plan=None, *, workers=1, **given):
    return [
        stored.loader(**{**BATCHES, **given}, plan=plan, rank=rank, world_size=workers)
        for rank in range(workers)
    ]


def same_epochs(stored, plan, epochs, *, workers=1, loading=None, **given):
    """Compare the batches of all ranks in some epochs, and return the loaders."""
    plain, planned = (
        loaders(stored, each, workers=workers, **given, **(loading or {})) for each in (None, plan)
    )
    for mine, other in zip(plain, planned, strict=True):
        for epoch in epochs:
            mine.set_epoch(epoch)
            other.set_epoch(epoch)
            for batch, found in zip(mine, other, strict=True):
                np.testing.assert_array_equal(batch.n_id.numpy(), found.n_id.numpy())
                assert batch.x.numpy().tobytes() == found.x.numpy().tobytes()
    return planned


@pytest.mark.torch
@pytest.mark.parametrize("memory", [None, 900, "1M"])
@pytest.mark.parametrize(
    ("given", "loading"),
    [
        ({}, {}),
        ({"sampling": "labor", "merged": True}, {"ahead": 0}),
        ({"drop_last": True, "shuffle": False}, {"io": "direct", "threads": 2}),
        ({}, {"scheduled": True}),
        ({"vertices": np.arange(40, 90)}, {}),
    ],
)
def test_planned_batches_are_those_of_the_files(stored, tmp_path, memory, given, loading):
    plan = stored.plan(2, **BATCHES | given, workers=2, memory=memory, pack=tmp_path / "plan")
    same_epochs(stored, tmp_path / "plan", [1, 0], workers=2, loading=loading, **given)
    rows = sum(
        len(np.unique(batch.rows))
        for each in loaders(stored, workers=2, **given)
        for _ in range(2)
        for batch in each
    )
    assert plan.workers["rows"].sum() == rows
    cached, read = plan.workers["cached_rows"].sum(), plan.workers["read_rows"].sum()
    assert (cached == 0) == (memory is None)
    assert read == rows if memory is None else read < rows


BY_RELATION = {"cites": [4, 3], "rev_writes": [3, 2], "has_topic": [0, 1], "rev_has_topic": [3, 2]}


@pytest.mark.torch
@pytest.mark.parametrize("memory", [None, 900, "1M"])
@pytest.mark.parametrize(
    ("given", "loading"),
    [
        ({"fanouts": BY_RELATION}, {}),
        ({"sampling": "labor"}, {"scheduled": True}),
        ({"temporal": "last"}, {"io": "direct", "threads": 2}),
        ({"vertices": np.arange(40, 90), "input": "author"}, {"ahead": 0}),
    ],
)
def test_planned_batches_over_types_are_those_of_the_files(typed, tmp_path, memory, given, loading):
    plan = typed.plan(2, **BATCHES | given, workers=2, memory=memory, pack=tmp_path / "plan")
    pairs = zip(
        loaders(typed, workers=2, **given),
        loaders(typed, plan.folder, workers=2, **given, **loading),
        strict=True,
    )
    rows = 0
    for mine, other in pairs:
        for _ in range(3):  # the last one is beyond the plan
            for batch, found in zip(mine, other, strict=True):
                assert digest_of(batch) == digest_of(found)
                assert set(batch.x_dict) == {"field", "paper"}
                assert batch.edge_attr_dict
                rows += batch.epoch < 2 and sum(
                    len(np.unique(batch.rows_dict[name])) for name in batch.x_dict
                )
        other.close()
    assert plan.workers["type"].to_list() == ["field", "paper"] * 2
    assert plan.workers["rows"].sum() == rows
    assert plan.row_bytes == {"field": 6, "paper": 64}
    cached, read = plan.workers["cached_rows"], plan.workers["read_rows"]
    assert (read.sum() == rows) == (memory is None) == (cached.sum() == 0)
    if memory == 900:
        held = [6 * fields + 64 * papers for fields, papers in cached.reshape((2, 2)).to_numpy()]
        assert 900 - 64 < min(held) <= max(held) <= 900


@pytest.mark.torch
@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"fanouts": [4, 2]}, "fanouts={'cites': [4, 3], "),
        (
            {"vertices": np.arange(5), "input": "author"},
            "other vertices; shuffle=True, not False; input='paper', not 'author'",
        ),
    ],
)
def test_other_batches_over_types_are_refused(typed, tmp_path, other, text):
    typed.plan(1, **BATCHES, pack=tmp_path / "plan")
    with pytest.raises(fp.errors.ParameterError, match=re.escape(f"was made for {text}")):
        loaders(typed, tmp_path / "plan", **other)


@pytest.mark.torch
def test_features_of_a_type_that_were_replaced_are_refused(tmp_path):
    parts = typed_parts(tmp_path, 2)[0]
    plan = parts.plan(1, **BATCHES, pack=tmp_path / "plan")
    file = tmp_path / "parts" / "part-00001" / "types" / "field" / "features.npy"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    replace(next(iter(REPLACEMENTS)), file, content)
    with pytest.raises(fp.errors.ParameterError, match="other features or other parts"):
        loaders(fp.open_partition(tmp_path / "parts"), plan)


@pytest.mark.torch
@pytest.mark.parametrize("form", ["plain", "typed"])
def test_what_a_plan_predicts_is_what_is_counted(stored, typed, tmp_path, form):
    stored = stored if form == "plain" else typed
    plan = stored.plan(2, **BATCHES, memory=900, pack=tmp_path / "plan")
    ways = {row["way"]: row for row in plan.ways.iter_rows(named=True)}
    if "direct" not in ways:
        pytest.skip("the file system refuses direct reads")
    for way, loading in (("direct", {"io": "direct"}), ("plan", {"plan": plan})):
        (loader,) = loaders(stored, **loading)
        for _ in range(2):
            list(loader)
        counts = loader.read_counts()
        assert counts["rows"] == plan.workers["rows"].sum()
        assert counts["read_bytes"] / 2 == pytest.approx(ways[way]["bytes"], abs=0.5)


@pytest.mark.torch
@pytest.mark.parametrize("loading", [{}, {"scheduled": True}])
def test_coded_rows_are_packed_as_they_are(coded, tmp_path, loading):
    plan = coded.plan(1, **BATCHES, memory=200, pack=tmp_path / "plan")
    same_epochs(coded, plan, [0], loading=loading)
    packed = np.load(tmp_path / "plan" / "worker-00000" / "epoch-00000.npy", mmap_mode="r")
    assert packed.dtype == np.uint8
    assert len(packed) == plan.workers["read_rows"].sum()


@pytest.mark.torch
@pytest.mark.parametrize("until", [None, 7])
def test_epochs_beyond_the_plan_are_packed_and_removed(stored, tmp_path, until):
    plan = stored.plan(2, **BATCHES, memory=900, pack=tmp_path / "plan")
    plain, planned = loaders(stored)[0], loaders(stored, plan)[0]
    if until is not None:
        planned.use_until(until)
    for _ in range(7):
        for batch, found in zip(plain, planned, strict=True):
            assert batch.x.numpy().tobytes() == found.x.numpy().tobytes()
        assert len(list(tmp_path.iterdir())) <= 3  # the plan, this window, the next one
    planned.set_epoch(2)  # back
    assert len(list(planned)) == len(planned)
    planned.close()
    assert [each.name for each in tmp_path.iterdir()] == ["plan"]


@pytest.mark.torch
def test_the_windows_of_killed_processes_are_removed(stored, tmp_path):
    plan = stored.plan(1, **BATCHES, pack=tmp_path / "plan")
    child = os.fork()
    if child == 0:
        Window(plan, range(1, 2))
        os._exit(9)
    os.waitpid(child, 0)
    mine = Window(plan, range(1, 2))
    assert len(list(tmp_path.glob(".plan.window.tmp-*"))) == 1  # the other one is gone
    child = os.fork()
    if child == 0:
        Window(plan, range(1, 2))
        os._exit(9)
    os.waitpid(child, 0)
    planned = loaders(stored, plan)[0]  # which needs no window
    assert [each.name for each in tmp_path.glob(".plan.*")] == [mine.folder.name]
    planned.close()
    mine.close()
    assert os.listdir(tmp_path) == ["plan"]


@pytest.mark.torch
def test_a_training_that_ends_early_leaves_no_window(stored, tmp_path):
    planned = loaders(stored, stored.plan(1, **BATCHES, pack=tmp_path / "plan"))[0]
    planned.use_until(100)
    next(iter(planned))
    planned.close()
    assert [each.name for each in tmp_path.iterdir()] == ["plan"]


@pytest.mark.torch
@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"batch_size": 31}, "batch_size=32, not 31"),
        ({"fanouts": [4]}, "fanouts=[4, 3], not [4]"),
        ({"seed": 4, "sampling": "labor"}, "seed=3, not 4; sampling='uniform', not 'labor'"),
        ({"vertices": "val", "shuffle": True}, "other vertices"),
        ({"workers": 2}, "workers=1, not 2"),
    ],
)
def test_other_batches_are_refused(stored, tmp_path, other, text):
    plan = stored.plan(1, **BATCHES, pack=tmp_path / "plan")
    with pytest.raises(
        fp.errors.ParameterError, match=re.escape(f"was made for {text}. Pass what it was made for")
    ):
        loaders(stored, plan, **other)


@pytest.mark.torch
def test_another_partition_is_refused(stored, coded, tmp_path):
    plan = coded.plan(1, **BATCHES, pack=tmp_path / "plan")
    with pytest.raises(fp.errors.ParameterError, match="was made for another partition"):
        loaders(stored, plan)


def saved_again(folder, form, scale=1.0, **given):
    """Save the same partition to the same directory, with features times ``scale``."""
    graph, rows = attributed()
    rows["features"] = rows["features"] * np.float32(scale)
    fp.algorithms.hash(graph, 3).save(folder, overwrite=True, **rows, **given)
    if form == "unlisted":  # as a version wrote it that kept no list of checksums
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(
            json.dumps({name: value for name, value in manifest.items() if name not in ("files", OWN)})
        )
    return fp.open_partition(folder, of="vertices")


@pytest.mark.torch
@pytest.mark.parametrize("form", ["listed", "unlisted"])
@pytest.mark.parametrize("other", [{"scale": 2.0}, {"standardise": True}])
def test_parts_that_were_saved_again_with_other_features_are_refused(tmp_path, form, other):
    parts = saved_again(tmp_path / "parts", form)
    plan = parts.plan(1, **BATCHES, memory=900, pack=tmp_path / "plan")
    same_epochs(fp.open_partition(tmp_path / "parts", of="vertices"), plan, [0])
    with pytest.raises(fp.errors.ParameterError, match="other features or other parts"):
        loaders(saved_again(tmp_path / "parts", form, **other), plan)


@pytest.mark.torch
def test_the_plan_of_a_directory_is_that_of_its_copies(tmp_path):
    parts = saved_again(tmp_path / "parts", "listed")
    plan = parts.plan(1, **BATCHES, pack=tmp_path / "plan")
    shutil.copytree(tmp_path / "parts", tmp_path / "copy", copy_function=shutil.copyfile)
    same_epochs(fp.open_partition(tmp_path / "copy", of="vertices"), plan, [0])


@pytest.mark.torch
@pytest.mark.parametrize("how", REPLACEMENTS)
@pytest.mark.parametrize("form", ["listed", "unlisted"])
def test_features_that_were_replaced_are_refused(tmp_path, form, how):
    plan = saved_again(tmp_path / "parts", form).plan(1, **BATCHES, pack=tmp_path / "plan")
    file = tmp_path / "parts" / "part-00001" / "features.npy"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    replace(how, file, content)
    with pytest.raises(fp.errors.ParameterError, match="other features or other parts"):
        loaders(fp.open_partition(tmp_path / "parts", of="vertices"), plan)


@pytest.mark.torch
@pytest.mark.parametrize("form", ["plain", "coded", "typed"])
def test_a_flipped_bit_changes_no_batch_in_silence(stored, coded, typed, tmp_path, form):
    parts = {"plain": stored, "coded": coded, "typed": typed}[form]
    parts.plan(2, **BATCHES, memory=900, pack=tmp_path / "plan")

    def batches():
        loader = loaders(parts, tmp_path / "plan")[0]
        try:
            return [digest_of(batch) for _ in range(2) for batch in loader]
        finally:
            loader.close()

    expected, refused = batches(), 0
    for file, bit in bits_of(tmp_path / "plan", 12):
        with flipped(file, bit):
            try:
                assert batches() == expected, (file.name, bit)
            except (fp.errors.GraphFormatError, fp.errors.ParameterError) as error:
                assert "plan" in str(error), error  # noqa: PT017
                refused += 1
    assert refused > 70


@pytest.mark.torch
def test_a_plan_without_a_pack_tells_and_writes_nothing(stored, tmp_path):
    plan = stored.plan(3, **BATCHES)
    assert plan.folder is None
    assert repr(plan).startswith("<Plan: 3 epochs, ")
    assert "per epoch" in str(plan)
    assert "<table>" in plan._repr_html_()
    with pytest.raises(
        fp.errors.ParameterError, match=r"plan: its rows are not packed\. Make it with pack=, a folder"
    ):
        loaders(stored, plan)


@pytest.mark.torch
def test_rows_of_other_samples_are_refused(stored, tmp_path):
    plan = stored.plan(1, **BATCHES, pack=tmp_path / "plan")
    checksums = tmp_path / "plan" / "worker-00000" / "epoch-00000.checksums.npy"
    np.save(checksums, np.load(checksums) + np.uint64(1))
    with pytest.raises(fp.errors.GraphFormatError, match="step 0: its rows are not those that were packed"):
        next(iter(loaders(stored, plan)[0]))


@pytest.mark.torch
@pytest.mark.parametrize("name", ["epoch-00000.npy", "epoch-00000.offsets.npy", "cached.npy"])
def test_damaged_files_are_named(stored, tmp_path, name):
    plan = stored.plan(1, **BATCHES, memory=900, pack=tmp_path / "plan")
    file = tmp_path / "plan" / "worker-00000" / name
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(fp.errors.GraphFormatError, match=name):
        next(iter(loaders(stored, plan)[0]))


@pytest.mark.torch
def test_what_is_no_plan_is_refused(stored, tmp_path):
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"is no plan: it has no plan.json. Make one with `fastpart plan`"
    ):
        loaders(stored, tmp_path)
    for content in ("[]", "{}", json.dumps({"schema": 99})):
        (tmp_path / "plan.json").write_text(content)
        with pytest.raises(fp.errors.GraphFormatError, match=r"plan\.json"):
            loaders(stored, tmp_path)


@pytest.mark.torch
def test_a_plan_replaces_a_plan_and_nothing_else(stored, tmp_path):
    stored.plan(2, **BATCHES, pack=tmp_path / "plan")
    stored.plan(1, **BATCHES, memory=900, pack=tmp_path / "plan")
    same_epochs(stored, tmp_path / "plan", [0])
    (tmp_path / "plan" / "mine.txt").touch()
    with pytest.raises(fp.errors.ParameterError, match=r"mine\.txt"):
        stored.plan(1, **BATCHES, pack=tmp_path / "plan")
    with pytest.raises(FileExistsError, match="is not a plan"):
        stored.plan(1, **BATCHES, pack=tmp_path)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"epochs": 0}, "epochs: "),
        ({"workers": 4}, "workers: "),
        ({"memory": "much"}, "memory: 'much' is not a size"),
        ({"memory": "0.1"}, "memory: '0.1' has no unit and is no whole number"),
        ({"memory": "1000T"}, "memory: the rows of all workers take"),
        ({"vertices": "other"}, "has no split 'other'"),
    ],
)
def test_parameters_are_checked(stored, given, text):
    with pytest.raises(fp.FastpartError, match=re.escape(text)):
        stored.plan(**BATCHES | given)


@pytest.mark.torch
def test_loaders_that_take_no_plan_say_so(stored, tmp_path):
    plan = stored.plan(1, **BATCHES, pack=tmp_path / "plan")
    with pytest.raises(fp.errors.ParameterError, match="resident: a loader with plan= does not take it"):
        loaders(stored, plan, resident=100)
