"""Labels and splits of records in a partition directory: every in-edge has those of its record."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from soaked import examples
from strategies import edge_lists
from typed_graphs import Typed

RECORDS = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [2, 3], [1, 1]])
M = len(RECORDS)
LABELS = np.array([0, 1, 2, -1, 0, 1, 2, 0])
SPLITS = {"train": [0, 1, 4], "val": [2], "test": np.arange(M) == 6}


def saved(folder, **given):
    fp.VertexPartition([0, 0, 1, 1, 2, 2], 3).save(folder / "parts", graph=RECORDS, **given)
    return fp.open_partition(folder / "parts")


@examples(10)
@given(edge_lists(), st.sampled_from(["undirected", "directed"]), st.integers(1, 3), st.integers(0, 2))
def test_in_edges_have_the_labels_and_splits_of_their_records(tmp_path_factory, edges, directedness, k, hops):
    n, records = edges
    m, random = len(records), np.random.default_rng(0)
    labels, fold = random.integers(-1, 3, m), random.integers(0, 4, m)
    splits = {name: fold == index for index, name in enumerate(("train", "val", "test"))}
    graph = fp.open_graph(
        np.array(records, np.int64).reshape(-1, 2), num_vertices=n, directedness=directedness
    )
    folder = tmp_path_factory.mktemp("labels") / "parts"
    given = {"edge_labels": labels, "edge_label_splits": splits}
    fp.VertexPartition(random.integers(0, k, n), k).save(folder, graph=graph, halo_hops=hops, **given)
    for part in fp.open_partition(folder).parts:
        record = part.edge_ids % max(m, 1)
        np.testing.assert_array_equal(part.edge_labels, labels[record])
        for name, mask in splits.items():
            np.testing.assert_array_equal(getattr(part, f"edge_label_{name}"), mask[record])
    fp.store.verify(folder)


@pytest.mark.parametrize(
    ("labels", "stored"),
    [
        (LABELS.astype(float), LABELS),
        (np.where(LABELS < 0, np.nan, LABELS), LABELS),
        (np.arange(2 * M).reshape(M, 2) % 2 == 0, np.arange(1, 2 * M + 1).reshape(M, 2).astype(np.uint8) % 2),
        (np.arange(M) / 2 + 0.25, (np.arange(M) / 2 + 0.25).astype(np.float32)),
        (pl.DataFrame({"u": np.arange(M), "label": LABELS}), LABELS),
        (pl.Series(["b", "a", None, "b", "b", "a", "a", "b"]), [1, 0, -1, 1, 1, 0, 0, 1]),
    ],
)
def test_labels_follow_the_rules_of_labels_of_vertices(tmp_path, labels, stored):
    for part in saved(tmp_path, edge_labels=labels).parts:
        stored = np.asarray(stored)
        np.testing.assert_array_equal(part.edge_labels, stored[part.edge_ids % M])
        assert part.edge_labels.dtype == stored.dtype
        assert part.edge_label_train is None


def test_parts_of_an_edge_partition_have_labels_too(tmp_path):
    p = fp.EdgePartition(np.arange(M) % 2, 2)
    p.save(tmp_path / "parts", graph=RECORDS, edge_labels=LABELS, edge_label_splits=SPLITS)
    for part in fp.open_partition(tmp_path / "parts").parts:
        np.testing.assert_array_equal(part.edge_labels, LABELS[part.edge_ids % M])
        np.testing.assert_array_equal(part.edge_label_test, part.edge_ids % M == 6)


def typed():
    relations = [
        ("rates", "user", "film", True, [(0, 1), (1, 0), (2, 2), (0, 2)]),
        ("knows", "user", "user", "merged", [(0, 1), (1, 2)]),
    ]
    return Typed([("user", 3), ("film", 3)], relations, [0, 1, 0, 1, 1, 0], 2)


def test_a_relation_has_labels_of_its_own(tmp_path):
    labels, splits = [4, 3, -1, 2], {"train": [0, 1], "test": [3]}
    stored = typed().saved(tmp_path, edge_labels={"rates": labels}, edge_label_splits={"rates": splits})
    entry = stored.manifest["relations"][0]
    assert entry["edge_labels"] == {"dtype": "int64", "shape": []}
    assert entry["edge_label_splits"] == ["train", "test"]
    for part in stored.parts:
        for name in ("rates", "rev_rates"):
            rows = part.of_relation(name)
            record = rows.edge_ids % stored.manifest["m"]
            np.testing.assert_array_equal(rows.edge_labels, np.array(labels)[record])
            np.testing.assert_array_equal(rows.edge_label_test, record == 3)
            assert rows.edge_label_val is None
        assert part.of_relation("knows").edge_labels is None
    facts = fp.info(tmp_path / "parts")
    assert facts["data"]["rates"]["label_splits"] == ["train", "test"]
    assert "train, test" in str(facts)
    fp.store.verify(tmp_path / "parts")
    assert not fp.store.upgrade(tmp_path / "parts")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"edge_labels": LABELS[:3]}, "edge_labels: 3 rows for 8 records"),
        ({"edge_labels": np.full((M, 2), 7)}, "edge_labels: expected 0 and 1 .* A record without known"),
        ({"edge_labels": np.array([0.5, np.inf] * 4)}, "edge_labels: the target of record 1 is infinite"),
        ({"edge_labels": np.zeros((M, 1, 1))}, "edge_labels: shape .* expected one label per record"),
        ({"edge_label_splits": {"train": [M]}}, "edge_label_splits: train holds the id 8, outside 0..7"),
        ({"edge_label_splits": {"train": [1, 1, 3]}}, "edge_label_splits: train: 1 occurs more than once"),
        (
            {"edge_label_splits": {"train": np.ones(3, bool)}},
            "edge_label_splits: train: 3 rows for 8 records",
        ),
        ({"edge_label_splits": {"training": [1]}}, "edge_label_splits: unknown name 'training'"),
        ({"edge_labels": pl.DataFrame({"u": ["x"] * M, "v": [1] * M})}, "edge_labels: .*Name one of them"),
    ],
)
def test_what_is_refused(tmp_path, given, told):
    with pytest.raises(fp.errors.ParameterError, match=told):
        saved(tmp_path, **given)
    assert not (tmp_path / "parts").exists()


def test_records_in_two_splits_are_a_warning(tmp_path):
    with pytest.warns(fp.errors.GraphWarning, match="edge_label_splits: train and val share record 2"):
        saved(tmp_path, edge_label_splits={"train": [1, 2], "val": [2]})


def test_masks_that_the_manifest_does_not_describe_are_refused(tmp_path):
    stored = saved(tmp_path, edge_labels=LABELS, edge_label_splits=SPLITS)
    file = stored.folder / "manifest.json"
    manifest = json.loads(file.read_text())
    for name in ("edge_labels", "edge_label_splits"):
        less = {key: value for key, value in manifest.items() if key != name}
        file.write_text(json.dumps(less))
        with pytest.raises(fp.errors.GraphFormatError, match="lists edge_label"):
            fp.open_partition(stored.folder)


def test_the_command_line_takes_files(tmp_path, capsys):
    RECORDS.astype(np.uint32).tofile(tmp_path / "g.bin")
    np.save(tmp_path / "y.npy", LABELS)
    np.savez(tmp_path / "s.npz", **SPLITS)
    files = f"--edge-labels {tmp_path}/y.npy --edge-label-splits {tmp_path}/s.npz"
    assert main(f"partition {tmp_path}/g.bin -k 2 -o {tmp_path}/parts {files}".split()) == 0
    part = fp.open_partition(tmp_path / "parts").parts[0]
    np.testing.assert_array_equal(part.edge_labels, LABELS[part.edge_ids % M])
    np.testing.assert_array_equal(part.edge_label_val, part.edge_ids % M == 2)
    capsys.readouterr()
    assert main(["info", f"{tmp_path}/parts"]) == 0
    assert "train, val, test" in capsys.readouterr().out
