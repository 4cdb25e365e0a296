"""Folders of trainings: what is the user's stays, what is kept is opened and continued, and damage is named."""

import json
import shutil

import numpy as np
import pytest

import fastpart as fp
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.runs.run_folder import (  # noqa: E402
    MARKER,
    RunFolder,
    load_weights,
)

QUICK = {"hidden": 8, "threads": 1}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=2)


@pytest.fixture(scope="module")
def finished(parts, tmp_path_factory):
    """A training of 4 epochs. Tests copy it."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    fp.train.full(parts, out=folder, epochs=4, **QUICK)
    return folder


@pytest.fixture
def run(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def contents(folder):
    return {file.relative_to(folder): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def losses(trained):
    return trained.history["loss"].to_list()


# What is the user's.


def test_a_folder_that_holds_a_training_is_refused(parts, run):
    before = contents(run)
    with pytest.raises(
        fp.errors.ParameterError, match=r"out: .*run holds a training.*resume=True.*overwrite=True"
    ):
        fp.train.full(parts, out=run, epochs=1, **QUICK)
    assert contents(run) == before


@pytest.mark.parametrize("method", [fp.train.full, fp.train.sampled, fp.train.sdt])
def test_a_folder_of_the_user_is_refused(parts, tmp_path, method):
    mine = tmp_path / "mine"
    (mine / "embeddings" / "mine").mkdir(parents=True)
    (mine / "embeddings" / "mine" / "words.txt").write_text("precious")
    before = contents(mine)
    for given in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(
            fp.errors.ParameterError, match=r"out: .*mine is not empty.*\(embeddings is there\)"
        ):
            method(parts, out=mine, epochs=1, **given, **QUICK)
    assert contents(mine) == before


def test_checkpoints_of_others_are_not_overwritten(parts, tmp_path):
    (tmp_path / "mine").mkdir()
    torch.save({"network": {"a": torch.ones(2)}}, tmp_path / "mine" / "checkpoint.pt")
    before = contents(tmp_path / "mine")
    with pytest.raises(fp.errors.ParameterError, match="holds no training of fastpart"):
        fp.train.full(parts, out=tmp_path / "mine", overwrite=True, epochs=1, **QUICK)
    assert contents(tmp_path / "mine") == before


def test_overwrite_removes_what_is_listed_and_nothing_else(parts, run):
    (run / "notes.txt").write_text("precious")
    (run / "history.svg").write_text("drawn by the user")
    anew = fp.train.full(parts, out=run, overwrite=True, epochs=2, seed=5, **QUICK)
    assert len(anew.history) == 2
    assert losses(fp.train.open(run)) == losses(anew)
    assert {file.name for file in run.iterdir()} == {
        "notes.txt", "history.svg", MARKER, "checkpoint.pt", "best.pt", "history.parquet"
    }  # fmt: skip
    assert (run / "notes.txt").read_text() == "precious"


@pytest.mark.parametrize("given", [{"resume": True, "overwrite": True}, {"overwrite": True, "out": None}])
def test_overwrite_needs_a_folder_and_excludes_resume(parts, tmp_path, given):
    with pytest.raises(fp.errors.ParameterError, match=r"^overwrite: "):
        fp.train.full(parts, epochs=1, **{"out": tmp_path / "run", **given}, **QUICK)
    assert not (tmp_path / "run").exists()


def test_names_outside_of_the_folder_are_refused(parts, run):
    content = json.loads((run / MARKER).read_text())
    (run.parent / "precious").write_text("")
    for name in ("../precious", str(run.parent / "precious"), "a/../../precious", "..", "", "a\0b", "\ud800"):
        (run / MARKER).write_text(json.dumps({**content, "files": [name]}))
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"fastpart-run\.json: the field 'files\[0\]' holds a name"
        ):
            fp.train.full(parts, out=run, overwrite=True, epochs=1, **QUICK)
    assert (run.parent / "precious").exists()


def test_parts_of_the_user_are_not_taken_for_those_of_sdt(parts, run, tmp_path):
    given = {"epochs": 2, "workers": 1, **QUICK}
    out = tmp_path / "sdt"
    fp.train.sdt(parts, out=out, **given)
    shutil.copytree(parts, out / "parts-3")
    before = contents(out / "parts-3")
    for how in ("resume", "overwrite"):
        with pytest.raises(fp.errors.ParameterError, match=r"parts-3 was not written by this training"):
            fp.train.sdt(parts, out=out, parts=3, **{how: True}, **given)
        assert contents(out / "parts-3") == before


def saved_again(parts, folder, **changed):
    """Save the same partition with other rows."""
    loaded = fp.open_partition(parts)
    n = len(loaded)
    given = {"features": np.zeros((n, 8), np.float32), "labels": np.zeros(n, np.int64)}
    splits = {name: np.zeros(n, bool) for name in ("train", "val", "test")}
    for part in loaded.parts:
        given["features"][part.inner], given["labels"][part.inner] = part.features, part.labels
        for name, mask in splits.items():
            mask[part.inner] = getattr(part, name)
    given |= {"splits": splits}
    given |= {name: change(given[name]) for name, change in changed.items()}
    graph = fp.open_graph(parts.parent / "g.bin")
    fp.VertexPartition(np.asarray(loaded), k=loaded.k).save(folder, graph=graph, **given)
    return folder


CHANGES = {
    "labels": lambda labels: (labels + 1) % 4,
    "splits": lambda splits: {**splits, "train": splits["val"], "val": splits["train"]},
}


@pytest.mark.parametrize("what", CHANGES)
def test_sdt_partitions_again_for_other_rows(parts, tmp_path, what):
    source = saved_again(parts, tmp_path / "source")
    given = {"epochs": 2, "workers": 1, "parts": 3, **QUICK}
    fp.train.sdt(source, out=tmp_path / "run", **given)
    (tmp_path / "run" / "checkpoint.pt").unlink()  # the parts alone are left
    saved_again(parts, source, **{what: CHANGES[what]})
    again = fp.train.sdt(source, out=tmp_path / "run", **given)
    assert losses(again) == losses(fp.train.sdt(source, **given))


def test_sdt_keeps_its_parts_while_nothing_changed(parts, tmp_path):
    given = {"workers": 1, "parts": 3, "out": tmp_path / "run", **QUICK}
    fp.train.sdt(parts, epochs=2, **given)
    made = (tmp_path / "run" / "parts-3").stat().st_ino
    trained = fp.train.sdt(parts, epochs=3, resume=True, **given)
    assert len(trained.history) == 3
    assert (tmp_path / "run" / "parts-3").stat().st_ino == made


# What must agree, and what may change.


@pytest.mark.parametrize("what", CHANGES)
def test_other_rows_are_not_resumed(parts, run, tmp_path, what):
    other = saved_again(parts, tmp_path / "other", **{what: CHANGES[what]})
    before = contents(run)
    with pytest.raises(fp.errors.ParameterError, match=rf"resume: .*run was trained on other {what}\. "):
        fp.train.full(other, out=run, resume=True, epochs=4, **QUICK)
    assert contents(run) == before


def test_other_features_are_not_resumed(parts, run, tmp_path):
    """The list of a directory has the checksums of its rows, which may be too large to read."""
    source = shutil.copytree(parts, tmp_path / "source")
    manifest = json.loads((source / "manifest.json").read_text())
    files = {str(file.relative_to(source)): file for file in source.glob("part-*/*.npy")}

    def listed():
        sums = {
            name: {"size": file.stat().st_size, "xxh3": fp._core.hash_bytes(file.read_bytes())}
            for name, file in files.items()
        }
        (source / "manifest.json").write_text(json.dumps({**manifest, "files": sums}))

    listed()
    fp.train.full(source, out=run, overwrite=True, epochs=2, **QUICK)
    fp.train.full(source, out=run, resume=True, epochs=3, **QUICK)
    file = source / "part-00000" / "features.npy"
    np.save(file, np.load(file) * 2)
    listed()
    with pytest.raises(fp.errors.ParameterError, match="run was trained on other features"):
        fp.train.full(source, out=run, resume=True, epochs=4, **QUICK)


def test_more_epochs_and_patience_go_on_as_if_at_a_stretch(parts, run):
    at_once = fp.train.full(parts, epochs=7, patience=100, **QUICK)
    longer = fp.train.full(parts, out=run, resume=True, epochs=7, patience=100, **QUICK)
    assert losses(longer) == losses(at_once)
    assert all(torch.equal(weight, at_once.weights[name]) for name, weight in longer.weights.items())


def test_where_rows_and_batches_wait_may_change(parts, run):
    given = {"batch_size": 64, "fanouts": [4, 3], "workers": 2, **QUICK}
    at_once = fp.train.sampled(parts, epochs=4, **given)
    fp.train.sampled(parts, out=run, overwrite=True, epochs=2, ahead=0, **given)
    resumed = fp.train.sampled(
        parts, out=run, resume=True, epochs=4, ahead=3, cache=0.2, cache_by="degree", **given
    )
    assert losses(resumed) == losses(at_once)
    with pytest.raises(fp.errors.ParameterError, match=r"trained with sampling = 'uniform', not 'labor'"):
        fp.train.sampled(parts, out=run, resume=True, epochs=5, sampling="labor", **given)


def test_a_training_that_patience_ended_goes_on_with_more(parts, tmp_path):
    given = {"epochs": 6, "lr": 1e-12, "dropout": 0, "out": tmp_path / "run", **QUICK}
    assert fp.train.full(parts, patience=2, **given).summary["epochs"] == 3
    assert fp.train.full(parts, patience=4, resume=True, **given).summary["epochs"] == 5


MODEL = """
import torch
from torch import nn
class Mine(nn.Module):
    def __init__(self, task, options):
        super().__init__()
        self.map = nn.Linear(task.features, task.classes * {factor})
    def forward(self, x, edge_index):
        return self.map(x)[:, :4]
"""


def test_a_model_file_may_move(parts, tmp_path):
    (tmp_path / "before.py").write_text(MODEL.format(factor=1))
    given = {"out": tmp_path / "run", **QUICK}
    fp.train.full(parts, model=f"{tmp_path / 'before.py'}:Mine", epochs=2, **given)
    (tmp_path / "before.py").rename(tmp_path / "after.py")
    moved = f"{tmp_path / 'after.py'}:Mine"
    assert len(fp.train.full(parts, model=moved, epochs=3, resume=True, **given).history) == 3
    (tmp_path / "after.py").rename(tmp_path / "last.py")
    with pytest.raises(
        fp.errors.ParameterError, match=r"after\.py.*fastpart\.train\.open\(run, model=\.\.\.\)"
    ):
        fp.train.open(tmp_path / "run")
    trained = fp.train.open(tmp_path / "run", model=f"{tmp_path / 'last.py'}:Mine")
    assert trained.predict(parts).shape == (600,)
    assert len(trained.resume(epochs=4).history) == 4


def test_a_model_with_other_shapes_is_refused_by_its_tensor(parts, tmp_path):
    for name, factor in (("one", 1), ("two", 2)):
        (tmp_path / f"{name}.py").write_text(MODEL.format(factor=factor))
    given = {"out": tmp_path / "run", "epochs": 2, **QUICK}
    fp.train.full(parts, model=f"{tmp_path / 'one.py'}:Mine", **given)
    other = f"{tmp_path / 'two.py'}:Mine"
    text = r"model: .*tensor '\S*map\.weight' has the shape \(8, 8\), but in .*run it has the shape \(4, 8\)"
    with pytest.raises(fp.errors.ParameterError, match=text):
        fp.train.open(tmp_path / "run", model=other)
    with pytest.raises(fp.errors.ParameterError, match=text):
        fp.train.full(parts, model=other, resume=True, **given)


# Opened again.


def test_a_training_is_opened_as_it_was_returned(parts, tmp_path):
    trained = fp.train.full(parts, out=tmp_path / "run", epochs=4, **QUICK)
    opened = fp.train.open(tmp_path / "run")
    assert opened.summary == trained.summary
    assert opened.history.equals(trained.history)
    assert (opened.method, opened.task, opened.out) == (trained.method, trained.task, trained.out)
    assert all(torch.equal(weight, trained.weights[name]) for name, weight in opened.weights.items())
    np.testing.assert_array_equal(opened.predict(parts), trained.predict(parts))
    opened.plot(tmp_path / "history.svg")
    assert repr(opened) == repr(trained)


def test_resume_takes_a_moved_directory(parts, run, tmp_path):
    moved = shutil.copytree(parts, tmp_path / "moved")
    longer = fp.train.open(run).resume(epochs=6, source=moved)
    assert losses(longer) == losses(fp.train.full(parts, epochs=6, **QUICK))
    assert fp.train.open(run)._may_change["source"] == str(moved)


@pytest.mark.timeout(120)
def test_methods_with_workers_are_opened_and_continued(parts, tmp_path):
    given = {"fanouts": [3, 3], "batch_size": 100, "workers": 1, **QUICK}
    fp.train.sampled(parts, out=tmp_path / "run", epochs=2, **given)
    longer = fp.train.open(tmp_path / "run").resume(epochs=3)
    assert losses(longer) == losses(fp.train.sampled(parts, epochs=3, **given))
    assert fp.train.open(tmp_path / "run").summary == longer.summary


class Stop(Exception):
    pass


def test_an_interrupted_training_is_opened_and_goes_on(parts, tmp_path):
    def stop(row):
        if row["epoch"] == 1:
            raise Stop

    with pytest.raises(Stop) as raised:
        fp.train.full(parts, out=tmp_path / "run", epochs=4, on_epoch=stop, **QUICK)
    assert "The training so far is in" in raised.value.__notes__[0]
    opened = fp.train.open(tmp_path / "run")
    assert len(opened.history) == 2
    assert "without test scores" in repr(opened)
    assert losses(opened.resume()) == losses(fp.train.full(parts, epochs=4, **QUICK))


def test_a_training_that_was_not_kept_is_not_resumed(parts):
    with pytest.raises(
        fp.errors.ParameterError, match=r"resume: this training was not kept. Train with out="
    ):
        fp.train.full(parts, epochs=1, **QUICK).resume(epochs=2)


def test_folders_without_a_training_are_not_opened(tmp_path):
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(fp.errors.ParameterError, match=r"run: .* holds no training"):
            fp.train.open(folder)


def test_a_picture_is_drawn_only_where_asked_for(parts, run, monkeypatch):
    monkeypatch.setattr("fastpart.report.comparisons.plot_history", pytest.fail)
    fp.train.full(parts, out=run, overwrite=True, epochs=1, **QUICK)
    assert not list(run.glob("*.svg"))


# Folders of versions without the list.


def as_earlier(run, parts, **options):
    """Make the folder what versions without the list wrote."""
    content = json.loads((run / MARKER).read_text())
    checksum = json.loads((parts / "manifest.json").read_text())["checksum"]
    identity = json.dumps(["full", checksum, 600, json.dumps({**content["options"], **options}), None])
    saved = load_weights(run / "checkpoint.pt")
    torch.save({**saved, "identity": identity}, run / "checkpoint.pt")
    (run / MARKER).unlink()
    (run / "history.svg").write_text("")
    (run / "notes.txt").write_text("precious")


def test_folders_of_earlier_versions_go_on(parts, run):
    as_earlier(run, parts)
    longer = fp.train.full(parts, out=run, resume=True, epochs=6, **QUICK)
    assert losses(longer) == losses(fp.train.full(parts, epochs=6, **QUICK))
    assert losses(fp.train.open(run)) == losses(longer)
    fp.train.full(parts, out=run, overwrite=True, epochs=1, **QUICK)
    assert not (run / "history.svg").exists()
    assert (run / "notes.txt").exists()


def test_folders_of_earlier_versions_are_refused_as_others(parts, run):
    as_earlier(run, parts, hidden=9)
    before = contents(run)
    with pytest.raises(fp.errors.ParameterError, match="holds a training"):
        fp.train.full(parts, out=run, epochs=6, **QUICK)
    with pytest.raises(fp.errors.ParameterError, match="run was trained with hidden = 9, not 8"):
        fp.train.full(parts, out=run, resume=True, epochs=6, **QUICK)
    with pytest.raises(fp.errors.ParameterError, match=r"has no fastpart-run\.json.*resume=True"):
        fp.train.open(run)
    assert contents(run) == before


# Damage.


@pytest.mark.parametrize("name", ["checkpoint.pt", "best.pt"])
def test_flipped_bits_are_noticed(parts, run, name):
    whole = (run / name).read_bytes()
    random = np.random.default_rng(0)
    folder = RunFolder(run)
    for at in random.integers(0, 8 * len(whole), 200):
        content = bytearray(whole)
        content[at // 8] ^= 1 << (at % 8)
        (run / name).write_bytes(content)
        with pytest.raises(fp.errors.GraphFormatError, match=rf"{name}: damaged"):
            folder.read(name)
    for call in (fp.train.open, lambda out: fp.train.full(parts, out=out, resume=True, epochs=4, **QUICK)):
        with pytest.raises(fp.errors.GraphFormatError, match=rf"{name}: damaged"):
            call(run)


@pytest.mark.parametrize("dies_at", range(6))
def test_a_kill_between_the_files_of_a_checkpoint_leaves_one_that_is_known(tmp_path, monkeypatch, dies_at):
    """Also if it happens again to the next process, and so on."""
    write = fp._core.write_file
    RunFolder(tmp_path).write({"checkpoint.pt": b"0", "best.pt": b"0"})
    for turn in range(1, 4):
        left = iter(range(dies_at))

        def dying(target, content, left=left):
            next(left)
            write(target, content)

        folder = RunFolder(tmp_path)
        for name in ("checkpoint.pt", "best.pt"):
            folder.read(name)
        monkeypatch.setattr(fp._core, "write_file", dying)
        for content in (b"%d" % turn, b"%d again" % turn):
            try:
                folder.write({"checkpoint.pt": content, "best.pt": content})
            except StopIteration:
                break
        monkeypatch.setattr(fp._core, "write_file", write)
        folder = RunFolder(tmp_path)
        for name in ("checkpoint.pt", "best.pt"):
            folder.read(name)


def test_a_kill_while_the_first_list_is_written_is_no_obstacle(parts, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f".{MARKER}.tmp-1.0").write_text("{")
    assert len(fp.train.full(parts, out=tmp_path / "run", resume=True, epochs=1, **QUICK).history) == 1


@pytest.mark.parametrize("name", ["must_agree", "may_change", "options", "task", "checksums"])
@pytest.mark.parametrize("value", [7, "x", [], [1], {"a": 1}, {"epochs": "x"}])
def test_a_list_with_other_values_is_named(run, name, value):
    content = json.loads((run / MARKER).read_text())
    (run / MARKER).write_text(json.dumps({**content, name: value}))
    with pytest.raises(fp.errors.GraphFormatError, match=r"fastpart-run\.json: "):
        fp.train.open(run)


def test_a_damaged_list_is_named(parts, run):
    (run / MARKER).write_text("{")
    for call in (fp.train.open, lambda out: fp.train.full(parts, out=out, resume=True, epochs=4, **QUICK)):
        with pytest.raises(fp.errors.GraphFormatError, match=r"fastpart-run\.json: not JSON"):
            call(run)
