"""Numpy finds in the files for WholeGraph what the graph says."""

import json
import resource

import numpy as np
import pytest
from hypothesis import given, settings

import fastpart as fp
from exported import Case, cases, triangles
from fastpart.cli import main


def export(folder, case, **options):
    return fp.export.wholegraph(case.save(folder / "parts"), folder / "out", **options)


def loaded(root):
    """Return the partition book, and each array as WholeGraph has it: the files one after the other, cut into rows."""
    book = json.loads((root / "partition_book.json").read_text())
    k, arrays = book["num_parts"], {}
    for name, stated in book["arrays"].items():
        files = [root / f"{name}_part_{i}_of_{k}" for i in range(k)]
        values = np.concatenate([np.fromfile(file, stated["dtype"]) for file in files])
        arrays[name] = values.reshape(-1, stated["row"]) if stated["row"] else values
    return book, arrays


def check(root, case):
    """Compare all arrays with the case."""
    book, arrays = loaded(root)
    nids, eids = np.load(root / "orig_nids.npy"), np.load(root / "orig_eids.npy")
    assert nids.tolist() == [v for i in range(case.k) for v in case.members(i)]
    assert book["vertices"] == [len(case.members(i)) for i in range(case.k)]
    edges = case.directed_edges()
    assert book["edges"] == [sum(case.parts[v] == i for _, v in edges.values()) for i in range(case.k)]
    ends = zip(nids[arrays["sources"]].tolist(), nids[arrays["destinations"]].tolist(), strict=True)
    assert dict(zip(eids.tolist(), ends, strict=True)) == edges
    assert len(eids) == len(edges)
    bounds = arrays["row_offsets"]
    assert np.array_equal(np.repeat(np.arange(case.n), np.diff(bounds)), arrays["destinations"])
    assert len(bounds) == case.n + 1
    names = {"sources", "destinations", "row_offsets"}
    if case.full:
        names |= {"features", "labels", "edge_features", "train", "val", "test"}
        assert np.array_equal(arrays["features"], case.features[nids])
        assert arrays["features"].dtype == case.features.dtype
        assert np.array_equal(arrays["labels"], case.labels[nids])
        assert np.array_equal(arrays["edge_features"], case.edge_features[eids % max(len(case.records), 1)])
        for name, mask in case.masks.items():
            assert arrays[name].tolist() == np.flatnonzero(mask[nids]).tolist()
    assert arrays.keys() == names
    files = {f"{name}_part_{i}_of_{case.k}" for name in names for i in range(case.k)}
    files |= {"partition_book.json", "orig_nids.npy", "orig_eids.npy"}
    assert {path.name for path in root.iterdir()} == files


@settings(max_examples=30)
@given(case=cases())
def test_all_that_the_files_hold_is_the_graph(tmp_path_factory, case):
    check(export(tmp_path_factory.mktemp("wholegraph"), case), case)


@pytest.mark.parametrize("k", [1, 3, 9])
@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_a_graph_with_everything(tmp_path, k, kind):
    case = triangles(k)
    case.kind = kind
    root = export(tmp_path, case)
    assert root == tmp_path / "out"
    check(root, case)


@pytest.mark.parametrize("partitioner", [fp.algorithms.random, fp.sigma])
def test_each_rank_holds_its_range(tmp_path, partitioner):
    """Each file is what the rank of its number stores: the range of the partition book, of vertices or of edges."""
    random = np.random.default_rng(1)
    records = random.integers(0, 300, (2000, 2)).astype(np.uint32)
    partition = partitioner(fp.open_graph(records, num_vertices=300), 3)
    case = Case(300, records, "undirected", partition.assignment.tolist(), 3)
    root = export(tmp_path, case)
    check(root, case)
    book, arrays = loaded(root)
    ends = {name: np.cumsum([0, *book[name]]) for name in ("vertices", "edges")}
    of = dict.fromkeys(("features", "labels"), "vertices") | dict.fromkeys(
        ("sources", "destinations", "edge_features"), "edges"
    )
    for name, items in of.items():
        for i in range(3):
            mine = arrays[name][ends[items][i] : ends[items][i + 1]]
            assert (root / f"{name}_part_{i}_of_3").read_bytes() == mine.tobytes()


@pytest.mark.torch
def test_torch_maps_a_file(tmp_path):
    import torch

    case = triangles(3)
    root = export(tmp_path, case)
    rows = torch.from_file(str(root / "features_part_1_of_3"), size=2 * 3, dtype=torch.float32).reshape(-1, 3)
    assert rows.tolist() == case.features[case.members(1)].tolist()


def test_several_classes_are_int8(tmp_path):
    case = triangles(2)
    case.labels = np.eye(7, dtype=np.uint8)
    book, arrays = loaded(export(tmp_path, case))
    assert book["arrays"]["labels"] == {"dtype": "int8", "row": 7}
    assert arrays["labels"].tolist() == case.labels[np.load(tmp_path / "out" / "orig_nids.npy")].tolist()


@pytest.mark.parametrize(
    ("name", "rows", "text"),
    [
        ("features", np.zeros((7, 2), np.uint8), r"features of .*parts are uint8 in rows of shape \[2\]"),
        ("features", np.zeros((7, 2, 2)), r"features of .* are float64 in rows of shape \[2, 2\]"),
        ("edge_features", np.zeros((9, 2), bool), r"edge_features of .* are bool"),
        ("features", np.zeros((7, 0)), r"shape \[0\], which WholeGraph does not have. Save them as float32"),
    ],
)
def test_rows_that_wholegraph_does_not_have_are_refused(tmp_path, name, rows, text):
    case = triangles(2)
    setattr(case, name, rows)
    with pytest.raises(fp.errors.ParameterError, match=text):
        export(tmp_path, case)
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_an_earlier_export_is_replaced(tmp_path):
    export(tmp_path, triangles(3))
    check(export(tmp_path, triangles(2)), triangles(2))


@pytest.mark.parametrize("name", ["orig_eids.npy", "features_part_1_of_2"])
def test_a_full_disk_leaves_the_earlier_export(tmp_path, name):
    case = triangles(2)
    case.features = np.zeros((7, {"features_part_1_of_2": 300}.get(name, 3)), np.float32)
    root = export(tmp_path, case)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((root / name).stat().st_size - 1, hard))
    try:
        with pytest.raises(OSError, match=r"out.tmp-.*/"):
            fp.export.wholegraph(tmp_path / "parts", root)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check(root, case)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "parts"]


def test_the_command(tmp_path, capsys):
    case = triangles(3)
    assert main(["export", "wholegraph", str(case.save(tmp_path / "parts")), f"{tmp_path}/out"]) == 0
    assert capsys.readouterr() == (f"saved to {tmp_path}/out\n", "")
    check(tmp_path / "out", case)
