"""Partitions on disk: every format comes back as it went, and nothing hostile gets through."""

import json
import os

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart import _core
from soaked import examples
from strategies import assignments, edge_lists, raw

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [5, 5]], dtype=np.uint32)
"""Two triangles joined by one edge, and a loop."""

FORMATS = ["part.npy", "part.txt", "part.parquet", "part", "part/"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def save(part, folder, name, **options):
    part.save(f"{folder}/{name}", **options)
    return folder / name


def equal(one, other):
    return (
        type(one) is type(other)
        and one.k == other.k
        and one.assignment.dtype == other.assignment.dtype
        and (one.assignment == other.assignment).all()
        and one.loads.tolist() == other.loads.tolist()
    )


@st.composite
def partitions(draw):
    size = draw(st.integers(0, 50))
    parts, k = draw(assignments(size))
    k = draw(st.sampled_from([k, k, 255, 256, 40_000]).filter(lambda value: value >= k))
    return draw(st.sampled_from([fp.VertexPartition, fp.EdgePartition]))(parts, k)


# 30
@examples(10)
@given(part=partitions())
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_saved_is_loaded(tmp_path_factory, part, name):
    folder = tmp_path_factory.mktemp("save")
    told = {} if name.startswith("part.p") or "." not in name else {"k": part.k, "of": part.of}
    loaded = fp.open_partition(save(part, folder, name), **told)
    assert equal(loaded, part)
    with pytest.raises(ValueError, match="read-only"):
        loaded.assignment[:] = 0
    assert len(names(folder)) == 1


@examples(10)
@given(graph=edge_lists(20, 40), k=st.integers(1, 20))
@pytest.mark.parametrize("name", ["part.parquet", "part"])
def test_identity_and_parameters_are_loaded(tmp_path_factory, graph, k, name):
    n, edges = graph
    opened = fp.open_graph(edges, num_vertices=max(n, k))
    partition = fp.spring(opened, k=k, balance=1.2, seed=2**64 - 1)
    loaded = fp.open_partition(
        save(partition, tmp_path_factory.mktemp("save"), name, graph=opened), graph=opened
    )
    assert equal(loaded, partition)
    for field in ("algorithm", "parameters", "cap", "num_vertices", "num_edges", "loops", "checksum"):
        assert getattr(loaded, field) == getattr(partition, field)


@pytest.mark.parametrize("kind", [fp.VertexPartition, fp.EdgePartition])
def test_files_are_what_other_tools_read(tmp_path, kind):
    part = kind([2, 0, 1, 0], 3)
    assert np.load(save(part, tmp_path, "part.npy")).tolist() == [2, 0, 1, 0]
    assert np.load(tmp_path / "part.npy").dtype == part.assignment.dtype
    assert save(part, tmp_path, "part.txt").read_bytes() == b"2\n0\n1\n0\n"
    frame = pl.read_parquet(save(part, tmp_path, "part.parquet"))
    assert frame.to_dict(as_series=False) == {"part": [2, 0, 1, 0]}
    stored = json.loads(pl.read_parquet_metadata(tmp_path / "part.parquet")["fastpart"])
    assert (stored["schema"], stored["of"], stored["k"]) == (3, part.of, 3)


def test_files_of_other_tools_are_read(tmp_path):
    np.save(tmp_path / "a.npy", np.array([0, 3, 1], np.int64))
    (tmp_path / "a.txt").write_text("0\n3\n1")
    pl.DataFrame({"part": [0, 3, 1], "more": ["a", "b", "c"]}).write_parquet(tmp_path / "a.parquet")
    for name in ("a.npy", "a.txt", "a.parquet"):
        partition = fp.open_partition(tmp_path / name)
        assert (partition.of, partition.k, partition.assignment.tolist()) == ("vertices", 4, [0, 3, 1])
        assert fp.open_partition(tmp_path / name, k=9, of="edges").k == 9
    # Edge partitions are told by their types.
    assert fp.open_partition(save(fp.EdgePartition([0, 1], 2), tmp_path, "b.npy")).of == "edges"
    assert fp.open_partition(save(fp.EdgePartition([0, 1], 300), tmp_path, "c.npy")).of == "edges"


# The partition directory.


def test_directory_holds_manifest_assignment_and_measures(tmp_path):
    graph = raw(tmp_path / "g.bin", EDGES)
    partition = fp.spring(graph, k=2, passes=2)
    splits = {"train": [0, 3], "val": [1], "test": [2]}
    folder = save(partition, tmp_path, "parts/", graph=graph, labels=[0, 0, 0, 1, 1, 1], splits=splits)
    parts = ["part-00000", "part-00001"]
    assert names(folder) == ["assignment.npy", "manifest.json", "metrics.parquet", *parts]
    assert np.load(folder / "assignment.npy").tolist() == partition.assignment.tolist()
    evaluation = fp.evaluate(graph, partition, [0, 0, 0, 1, 1, 1], splits)
    assert pl.read_parquet(folder / "metrics.parquet").equals(evaluation.parts)
    manifest = json.loads((folder / "manifest.json").read_text())
    listed, digits = manifest.pop("files"), manifest.pop("manifest_xxh3")
    arrays = ["degree", "edge_ids", "indices", "indptr", "vertices", "labels", "test", "train", "val"]
    arrays += ["halo_parts", "halo_rows"]
    of_parts = [f"{part}/{name}" for part in parts for name in [*(f"{a}.npy" for a in arrays), "part.json"]]
    assert sorted(listed) == sorted(["assignment.npy", "metrics.parquet", *of_parts])
    assert all(facts["size"] == (folder / name).stat().st_size for name, facts in listed.items())
    assert all(len(digits) == 32 for digits in [digits, *(facts["xxh3"] for facts in listed.values())])
    assert manifest == {
        "schema": 3,
        "fastpart": fp.__version__,
        "of": "vertices",
        "algorithm": "spring",
        "parameters": {
            "k": 2,
            "balance": 1.05,
            "balance_on": None,
            "balance_on_ratio": 1.05,
            "seed": 0,
            "passes": 2,
            "batch": None,
            "strict": True,
        },
        "k": 2,
        "caps": [{"of": "vertices", "cap": 4, "loads": [3, 3]}],
        "n": 6,
        "m": 8,
        "loops": 1,
        "checksum": fp.open_graph(EDGES).identify()[1],
        "directedness": "undirected",
        "num_directed_edges": 15,
        "halo_hops": 1,
        "labels": {"dtype": "int64", "shape": []},
        "splits": ["train", "val", "test"],
        "input": {"path": str(graph), "bytes": 64},
        "summary": evaluation.summary.row(0, named=True),
    }


def test_directory_without_edges_has_no_measures(tmp_path):
    folder = save(fp.VertexPartition([0, 1], 2), tmp_path, "parts")
    assert names(folder) == ["assignment.npy", "manifest.json"]
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["algorithm"], manifest["n"], manifest["checksum"]) == ("user", None, None)
    assert "summary" not in manifest


# 46: saving with edges binds a user's own array to the graph.
@pytest.mark.parametrize("part", [fp.VertexPartition([0] * 6, 1), fp.EdgePartition([0] * 8, 1)])
def test_a_directory_saved_with_edges_belongs_to_them(tmp_path, part):
    folder = save(part, tmp_path, "parts", graph=EDGES)
    assert fp.open_partition(folder, graph=EDGES).checksum == fp.open_graph(EDGES).identify()[1]
    with pytest.raises(fp.errors.GraphFormatError, match="its checksum is"):
        fp.open_partition(folder, graph=EDGES[::-1])


# Names.


@pytest.mark.parametrize("name", ["part.csv", "part.npz", "part.NPY", "part.npy.gz", "v1.0"])
def test_unknown_suffixes_list_the_valid_ones(tmp_path, name):
    with pytest.raises(
        fp.errors.ParameterError,
        match=r"out: unknown suffix '\..*\. Use \.npy, \.txt, \.parquet, or no suffix",
    ):
        save(fp.VertexPartition([0], 1), tmp_path, name)
    assert names(tmp_path) == []
    (tmp_path / name).write_bytes(b"0\n")
    with pytest.raises(
        fp.errors.ParameterError, match=r"source: .* is not a partition directory, \.npy, \.txt or"
    ):
        fp.open_partition(tmp_path / name)


def test_a_trailing_slash_makes_any_name_a_directory(tmp_path):
    save(fp.VertexPartition([0, 1], 2), tmp_path, "v1.0/")
    assert (tmp_path / "v1.0" / "manifest.json").is_file()
    assert fp.open_partition(tmp_path / "v1.0").k == 2


# 36
@pytest.mark.parametrize("name", FORMATS)
def test_missing_parent(tmp_path, name):
    with pytest.raises(FileNotFoundError, match="absent") as caught:
        fp.VertexPartition([0], 1).save(f"{tmp_path}/absent/{name}")
    assert "the folder of the output does not exist. Create it first" in str(caught.value)
    assert names(tmp_path) == []


# 1
@pytest.mark.parametrize("name", FORMATS)
def test_missing_source(tmp_path, name):
    with pytest.raises(FileNotFoundError, match=r"No such file.*part"):
        fp.open_partition(tmp_path / name)


# 47
def test_what_an_interrupted_replacement_left_is_named(tmp_path):
    save(fp.VertexPartition([0], 1), tmp_path, "parts").rename(tmp_path / ".parts.old-123.0")
    with pytest.raises(
        FileNotFoundError, match=r"left only \.parts\.old-123\.0\. To restore it, rename it to parts"
    ):
        fp.open_partition(tmp_path / "parts")


@pytest.mark.parametrize("out", ["", "a\0b.npy", 3, None])
def test_what_is_no_path_is_refused(out):
    with pytest.raises((fp.errors.ParameterError, TypeError), match="out: "):
        fp.VertexPartition([0], 1).save(out)


# Replacing.


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_ours_is_replaced(tmp_path, name):
    save(fp.VertexPartition([0, 0, 0], 1), tmp_path, name, graph=np.array([[0, 2]]))
    save(fp.VertexPartition([1, 0], 2), tmp_path, name, overwrite=True)  # which has no parts
    assert fp.open_partition(tmp_path / name).assignment.tolist() == [1, 0]
    assert names(tmp_path) == [name.strip("/")]
    if "." not in name:
        assert names(tmp_path / name) == ["assignment.npy", "manifest.json"]


def test_an_empty_directory_is_filled_and_another_one_refused(tmp_path):
    partition = fp.VertexPartition([0, 1], 2)
    (tmp_path / "empty").mkdir()
    save(partition, tmp_path, "empty")
    assert fp.open_partition(tmp_path / "empty").k == 2
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    for name in ("thesis", "thesis/"):
        with pytest.raises(
            FileExistsError, match=r"not a partition directory \(no manifest\.json of fastpart in it\)"
        ):
            save(partition, tmp_path, name)
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="not a partition directory"):
        save(partition, tmp_path, "file")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder\.npy"):
        save(partition, tmp_path, "folder.npy")
    assert names(tmp_path) == ["empty", "file", "folder.npy", "thesis"]


# 36
@pytest.mark.parametrize("alias", [None, "symlink", "hard link"])
def test_output_that_is_the_input_is_refused(tmp_path, alias):
    np.save(tmp_path / "g.npy", EDGES)
    before = (tmp_path / "g.npy").read_bytes()
    out = tmp_path / "g.npy"
    if alias == "symlink":
        out = tmp_path / "part.npy"
        out.symlink_to(tmp_path / "g.npy")
    elif alias == "hard link":
        out = tmp_path / "part.npy"
        os.link(tmp_path / "g.npy", out)
    with pytest.raises(fp.errors.ParameterError, match=r"out: .* is the input. Choose another name"):
        fp.spring(tmp_path / "g.npy", k=2).save(out, graph=tmp_path / "g.npy")
    assert (tmp_path / "g.npy").read_bytes() == before


def test_new_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "plain").write_text("")
    usual = (tmp_path / "plain").stat().st_mode
    folder = save(fp.VertexPartition([0], 1), tmp_path, "parts")
    for file in (save(fp.VertexPartition([0], 1), tmp_path, "part.npy"), *folder.iterdir()):
        assert file.stat().st_mode == usual


# 46
@pytest.mark.parametrize("name", ["part.parquet", "part"])
def test_a_partition_of_another_graph_is_refused(tmp_path, name):
    path = save(fp.spring(EDGES, k=2), tmp_path, name)
    assert fp.open_partition(path, graph=EDGES).k == 2
    other = EDGES.copy()
    other[0] = [1, 0]
    for edges, field in [(EDGES[:2], "n"), (np.vstack([EDGES, EDGES]), "m"), (other, "checksum")]:
        with pytest.raises(
            fp.errors.GraphFormatError, match=f"the partition belongs to another graph: its {field} is"
        ):
            fp.open_partition(path, graph=edges)
        with pytest.raises(
            fp.errors.GraphFormatError, match=f"the partition belongs to another graph: its {field} is"
        ):
            fp.spring(EDGES, k=2).save(tmp_path / "other.npy", graph=edges)
    assert not (tmp_path / "other.npy").exists()


@pytest.mark.parametrize("name", ["part.npy", "part.txt"])
def test_arrays_of_another_length_are_refused(tmp_path, name):
    path = save(fp.spring(EDGES, k=2), tmp_path, name)
    with pytest.raises(fp.errors.GraphFormatError, match="it has 6 vertices, the graph has 3"):
        fp.open_partition(path, graph=EDGES[:3])


def test_k_and_kind_that_contradict_the_file_are_refused(tmp_path):
    path = save(fp.VertexPartition([0, 1, 2], 3), tmp_path, "part")
    with pytest.raises(fp.errors.ParameterError, match=r"k: 2, but .*part holds 3 parts"):
        fp.open_partition(path, k=2)
    with pytest.raises(fp.errors.ParameterError, match=r"of: 'edges', but .*part holds parts of vertices"):
        fp.open_partition(path, of="edges")
    with pytest.raises(
        fp.errors.ParameterError, match=r"of: unknown value 'vertexes'\. Valid values are 'vertices', 'edges'"
    ):
        fp.open_partition(path, of="vertexes")
    np.save(tmp_path / "part.npy", np.array([0, 1, 2]))
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"part\.npy: assignment: vertex 2 has part 2, outside 0\.\.1"
    ):
        fp.open_partition(tmp_path / "part.npy", k=2)


def test_too_little_memory_is_not_called_a_damaged_file(tmp_path, monkeypatch):
    np.save(tmp_path / "part.npy", np.zeros(3, np.int32))

    def refused(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(_core, "MappedFile", refused)
    with pytest.raises(MemoryError, match="no room"):
        fp.open_partition(tmp_path / "part.npy")


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float64])
@pytest.mark.parametrize("kind", ["vertex", "edge"])
def test_several_labels_of_a_vertex_come_back(tmp_path, kind, dtype):
    labels = np.random.default_rng(0).integers(0, 2, (6, 3)).astype(dtype)
    np.save(tmp_path / "y.npy", labels)
    partition = (
        fp.VertexPartition([0, 1, 0, 1, 1, 0], 3) if kind == "vertex" else fp.EdgePartition([0, 1] * 4, 3)
    )
    folder = save(partition, tmp_path, "parts", graph=EDGES, labels=tmp_path / "y.npy")
    assert json.loads((folder / "manifest.json").read_text())["labels"] == {"dtype": "uint8", "shape": [3]}
    for loaded in fp.open_partition(folder).parts:
        assert loaded.labels.dtype == np.uint8
        assert loaded.labels.tolist() == labels[loaded.vertices[: loaded.num_inner]].tolist()
