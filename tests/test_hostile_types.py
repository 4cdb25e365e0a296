"""Typed graphs that lack what others have, and directories of them that contradict themselves."""

import json

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from typed_graphs import Typed, authors


def sparse():
    """Return a graph with a type and two relations that have nothing, and vertices without in-edges."""
    relations = [
        ("cites", "paper", "paper", "merged", [(0, 1), (1, 2), (3, 3)]),
        ("heard", "venue", "paper", True, []),
        ("knows", "author", "author", False, []),
        ("writes", "author", "paper", True, [(0, 0), (1, 3)]),
    ]
    return Typed([("author", 2), ("paper", 5), ("venue", 0)], relations, [0, 1, 0, 1, 1, 0, 1], 2)


def test_what_is_empty_is_measured_and_predicted(tmp_path):
    graph = sparse()
    features = {"paper": np.ones((5, 2), np.float32)}
    stored = graph.saved(
        tmp_path, features=features, splits={"paper": {"train": [0, 3]}}, times={"paper": np.arange(5)}
    )
    assert [each.of_type("venue").num_inner for each in stored.parts] == [0, 0]
    assert stored.parts[0].of_relation("heard").num_edges == 0
    assert stored.parts[0].of_type("author").times is None
    e = fp.evaluate(
        graph.graph(tmp_path), stored, splits={"paper": {"train": [0, 3]}, "venue": {"train": []}}
    )
    assert e.types["train_balance"].to_list() == [None, 2.0, None]
    assert e.types["halo_rf"][2] == e.types["vertex_balance"][2] == 1.0
    assert "vertices_venue" not in e.parts.columns
    assert e.parts["train_paper"].to_list() == [2, 0]
    for fanouts in ([2, 2], {"heard": [3, 3]}, {"knows": [-1]}, {"cites": [-1], "rev_heard": [1]}):
        for exact in (False, True):
            t = fp.predict_traffic(stored, fanouts, 8, exact=exact)
            assert t.row_bytes == {"author": 0, "paper": 8, "venue": 0}
            assert t.types["rows"][2] == 0
            assert t.parts["seeds"].sum() == 2
    assert fp.predict_traffic(stored, {"heard": [3, 3]}, 8).remote_rows == 0
    assert main(["verify", str(tmp_path / "parts")]) == 0
    stored.save_cache(0.5, fanouts=[2, 2])
    with pytest.raises(fp.errors.ParameterError, match="'venue' has no split 'train'"):
        fp.predict_traffic(stored, [2], input="venue")


@pytest.fixture
def stored(tmp_path):
    given = {"features": {"paper": np.ones((4, 3), np.float32)}, "times": {"paper": np.arange(4)}}
    return authors().saved(tmp_path, **given, splits={"paper": {"train": [0, 1, 2, 3]}})


def change(stored, name, values):
    np.save(stored.parts[1]._folder / name, values)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("types/paper/features.npy", lambda rows: rows[:, :2]),
        ("types/paper/features.npy", lambda rows: rows[:-1]),
        ("types/paper/features.npy", lambda rows: rows.astype(np.float64)),
        ("types/paper/train.npy", lambda rows: rows[:-1]),
        ("types/paper/times.npy", lambda rows: rows.astype(np.float32)),
        ("relations.npy", lambda rows: rows[::-1]),
        ("relations.npy", lambda rows: rows[:-1]),
        ("relations.npy", lambda rows: rows.astype(np.int32)),
    ],
)
def test_damaged_files_are_named(stored, name, damage, capsys):
    there = stored.parts[1]._folder / name
    values = damage(np.load(there))
    change(stored, name, values)
    assert main(["verify", str(stored.folder)]) != 0
    assert there.name in capsys.readouterr().err
    part = fp.open_partition(stored.folder).parts[1]
    holder = part if name == "relations.npy" else part.of_type("paper")
    with pytest.raises((fp.FastpartError, TypeError), match=there.stem):
        getattr(holder, there.stem)


@pytest.mark.parametrize("name", ["types/paper/features.npy", "types/paper/times.npy", "relations.npy"])
def test_missing_files_are_named(stored, name):
    (stored.parts[0]._folder / name).unlink()
    assert main(["verify", str(stored.folder)]) != 0
    part = fp.open_partition(stored.folder).parts[0]
    what = name.rpartition("/")[2].removesuffix(".npy")
    holder = part if what == "relations" else part.of_type("paper")
    with pytest.raises((fp.FastpartError, FileNotFoundError), match=what):
        getattr(holder, what)


@pytest.mark.parametrize(
    ("change_manifest", "message"),
    [
        (lambda m: m["types"].pop(), "num_inner_of_type"),
        (lambda m: m["types"][0].update(n=7), "types"),
        (lambda m: m["relations"][0].update(source="venues"), "relations"),
        (lambda m: m["relations"][1].update(m=1), "relations"),
        (lambda m: m["caps"].append({"of": "type", "cap": 3, "loads": [1, 1]}), "caps"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(stored, change_manifest, message):
    file = stored.folder / "manifest.json"
    manifest = json.loads(file.read_text())
    change_manifest(manifest)
    file.write_text(json.dumps(manifest))
    with pytest.raises(fp.FastpartError, match=message):
        _ = fp.open_partition(stored.folder).parts[0].types
