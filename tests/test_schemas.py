"""Partition directories of every schema: each is read, and upgrading one makes it what the newest is."""

import json
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from soaked import some_of

DATA = Path(__file__).parent / "data" / "schemas"
"""One directory of vertices and one of edges per schema, each written by the version that it is of."""

OF = ["vertices", "edges"]
OLD = ["1", "2"]
DIAGONAL = pytest.mark.parametrize(
    ("of", "schema"), some_of(product(OF, OLD), [("vertices", "1"), ("edges", "2")]), indirect=["schema"]
)
ARRAYS = ["vertices", "degree", "indptr", "indices", "edge_ids", "features", "labels", "train", "val", "test"]
LISTED = ["files", "manifest_xxh3"]
HALO = ["halo_parts", "halo_rows", "halo_features"]


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def told(folder):
    """The manifest without the list of files and its own checksum, which directories of old versions lack."""
    return {name: value for name, value in manifest(folder).items() if name not in LISTED}


def files(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def without_rows(folder):
    return {name: content for name, content in files(folder).items() if not name.endswith("halo_rows.npy")}


def newest(of, schema):
    """The manifest that a directory of an old schema gets: that of the newest without an option that came later."""
    stored = manifest(DATA / "3" / of)
    assert stored["parameters"].pop("refine") is False
    return stored | {"schema": schema}


@pytest.fixture(params=OLD)
def schema(request):
    return request.param


@pytest.fixture
def old(tmp_path, of, schema):
    return Path(shutil.copytree(DATA / schema / of, tmp_path / "parts"))


@pytest.mark.parametrize("of", OF)
def test_every_schema_is_read_and_gives_the_same(of, schema):
    first, second = (fp.open_partition(DATA / s / of, DATA / "g.bin") for s in (schema, "3"))
    assert first.manifest == manifest(DATA / "2" / of) == newest(of, 2)
    assert second.manifest == manifest(DATA / "3" / of)
    assert second.parameters.pop("refine") is False
    for name in (
        "of", "k", "cap", "volume_cap", "weight_cap", "algorithm", "parameters", "num_vertices", "num_edges", "loops",
        "checksum",
    ):  # fmt: skip
        assert getattr(first, name) == getattr(second, name)
    for name in ("assignment", "loads", "volume_loads"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for one, other in zip(first.parts, second.parts, strict=True):
        for name in ARRAYS + HALO * (of == "vertices"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), strict=True)


def test_caps_of_schema_1_are_known():
    vertices, edges = (fp.open_partition(DATA / "1" / of) for of in OF)
    assert (vertices.of, vertices.cap, vertices.volume_cap) == ("vertices", 16, 96)
    assert vertices.volume_loads.tolist() == [83, 91]
    assert (vertices.parameters["of"], edges.parameters["of"]) == ("vertices", "edges")
    assert (edges.of, edges.cap, edges.volume_cap) == ("edges", 41, None)


@pytest.mark.parametrize("of", OF)
def test_what_is_saved_today_is_of_the_newest_schema(tmp_path, monkeypatch, of):
    """The graph, features and labels of the directories are read from them, so nothing depends on random numbers."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DATA / "g.bin", "g.bin")
    stored = fp.open_partition(DATA / "3" / of)
    features = np.empty((30, 2), np.float32)
    records = np.empty((73, 1), np.float32)
    for part in stored.parts:
        features[part.vertices[: part.num_inner]] = part.features
        if of == "vertices":
            records[part.edge_ids % 73] = part.edge_features
    graph = fp.open_graph("g.bin", num_vertices=30)
    more = {"edge_features": records, "halo_features": True} if of == "vertices" else {}
    splits = {name: range(i, 30, 3) for i, name in enumerate(("train", "val", "test"))}
    fp.sigma(graph, 2, of=of).save(
        "parts", graph=graph, features=features, labels=np.arange(30) // 15, splits=splits, **more
    )
    today = told(Path("parts"))
    assert (today["summary"].pop("components", None) is None) == (of == "edges")  # a measure that came later
    assert {**today, "fastpart": ""} == {**manifest(DATA / "3" / of), "fastpart": ""}
    written, expected = files(Path("parts")), files(DATA / "3" / of)
    assert written.keys() == expected.keys()
    assert all(written[name] == expected[name] for name in expected if name.endswith((".npy", "part.json")))


@pytest.mark.parametrize("of", OF)
def test_an_upgraded_directory_is_one_of_the_newest_schema(old, of):
    before = {name: (old / name).stat().st_ino for name in files(old)}
    assert fp.store.upgrade(old) is True
    assert told(old) == newest(of, 3)
    ours, stored = files(old), files(DATA / "3" / of)
    assert ours.keys() == stored.keys()
    assert all(ours[name] == stored[name] for name in stored if name != "manifest.json")
    assert all((old / name).stat().st_ino == before[name] for name in before if name != "manifest.json")
    once = files(old)
    assert fp.store.upgrade(old) is False
    assert files(old) == once


@pytest.mark.parametrize("of", OF)
def test_the_files_of_an_older_directory_are_listed(tmp_path, of):
    folder = Path(shutil.copytree(DATA / "3" / of, tmp_path / "parts"))
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"lists no checksums.*`fastpart upgrade .*` adds those"
    ):
        fp.store.verify(folder)
    assert fp.store.upgrade(folder) is True
    assert told(folder) == manifest(DATA / "3" / of)
    assert fp.store.verify(folder).files == len(files(folder))
    assert fp.store.upgrade(folder) is False


@pytest.mark.parametrize("of", OF)
def test_the_order_of_the_keys_is_that_of_the_newest_schema(old, of):
    fp.store.upgrade(old)
    assert list(manifest(old)) == [*manifest(DATA / "3" / of), *LISTED]


@pytest.mark.parametrize("of", ["vertices"])
def test_command(old, of, capsys):
    assert main(["upgrade", str(old)]) == 0
    assert capsys.readouterr().out == f"{old}: rewritten to schema 3\n"
    assert main(["upgrade", str(old)]) == 0
    assert capsys.readouterr().out == f"{old}: already schema 3\n"
    assert main(["upgrade", str(old), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"source": str(old), "schema": 3, "upgraded": False}


def test_what_is_no_partition_directory_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    fp.VertexPartition([0, 1], 2).save(tmp_path / "part.npy")
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"empty is not a partition directory: it has no manifest\.json"
    ):
        fp.store.upgrade(tmp_path / "empty")
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"part\.npy is a file\. Only partition directories can be upgraded"
    ):
        fp.store.upgrade(tmp_path / "part.npy")
    with pytest.raises(FileNotFoundError, match="absent"):
        fp.store.upgrade(tmp_path / "absent")
    assert main(["upgrade", str(tmp_path / "empty")]) == 1


@pytest.mark.parametrize(("of", "schema"), [("vertices", "1")])
@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"schema": 5}, r"schema 5, but this fastpart \(.*\) reads up to 4\. .*Upgrade"),
        ({"schema": None}, "the field .schema. holds null, not an integer"),
        ({"schema": [1]}, "the field .schema. holds a list"),
        ({"kind": "hyper"}, "of: unknown value 'hyper'"),
        ({"kind": {}}, "of: expected a string"),
        ({"cap": "16"}, "caps: vertices: cap: expected an integer"),
        ({"volume_loads": [1]}, "caps: volume: loads: expected a list of 2 integers"),
        ({"volume_cap": None}, "caps: volume: cap: expected an integer"),
    ],
)
def test_damaged_manifests_are_refused_and_stay(old, of, changes, text):
    content = manifest(old) | changes
    (old / "manifest.json").write_text(json.dumps(content))
    before = files(old)
    for call in (fp.open_partition, fp.store.upgrade):
        with pytest.raises(fp.errors.GraphFormatError, match=text):
            call(old)
    assert files(old) == before


UPGRADE = """
import sys
from fastpart import _core, store
_core.write_file = lambda *_: None  # the last step never happens
store.upgrade(sys.argv[1])
"""

KILLED = """
import json, os, shutil, signal, sys, time
import fastpart as fp
old, target = sys.argv[1:]
fp.open_partition(old)
for i in range(60):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(old, target)
    child = os.fork()
    if not child:
        fp.store.upgrade(target)
        os._exit(0)
    time.sleep(i * 0.00005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    partition = fp.open_partition(target)
    for part in partition.parts:
        if partition.of == "vertices":
            assert (part.halo_rows == fp.open_partition(old).parts[part.index].halo_rows).all()
    print(json.load(open(target + "/manifest.json"))["schema"], partition.cap)
"""


@DIAGONAL
def test_killed_at_any_time_the_directory_is_old_or_new(tmp_path, of, schema):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, DATA / schema / of, tmp_path / "parts"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    seen = set(done.stdout.split("\n")) - {""}
    cap = fp.open_partition(DATA / "2" / of).cap
    assert seen <= {f"{schema} {cap}", f"3 {cap}"}
    assert len(done.stdout.split("\n")) == 61


@DIAGONAL
def test_before_the_last_step_the_directory_is_of_its_old_schema(old, of, schema):
    before = files(old)
    subprocess.run([sys.executable, "-c", UPGRADE, old], check=True)
    assert without_rows(old) == before
    assert manifest(old)["schema"] == int(schema)
    assert fp.store.upgrade(old) is True
    assert told(old) == newest(of, 3)


@pytest.mark.parametrize("of", ["vertices"])
def test_a_halo_that_its_owner_does_not_hold_is_refused_and_nothing_is_written(old, of):
    file = old / "part-00001" / "vertices.npy"
    vertices = np.load(file)
    vertices[-1] = vertices[: fp.open_partition(old).parts[1].num_inner].max()
    np.save(file, vertices)
    before = files(old)
    with pytest.raises(
        fp.errors.GraphFormatError, match="part 1 has halo vertices that part 0 does not hold"
    ):
        fp.store.upgrade(old)
    assert files(old) == before


@pytest.mark.parametrize("of", ["vertices"])
def test_a_directory_without_parts_is_upgraded(tmp_path, of):
    fp.VertexPartition([0, 0, 1], k=2).save(tmp_path / "parts")
    today = files(tmp_path / "parts")
    (tmp_path / "parts" / "manifest.json").write_text(
        json.dumps(told(tmp_path / "parts") | {"schema": 2}, indent=1) + "\n"
    )
    assert fp.store.upgrade(tmp_path / "parts") is True
    assert files(tmp_path / "parts") == today


@pytest.mark.parametrize("name", ["part.parquet"])
def test_parquet_of_schema_1_is_read(tmp_path, name):
    import polars as pl

    stored = {
        "schema": 1,
        "kind": "edge",
        "algorithm": "user",
        "parameters": {"mode": "edge"},
        "k": 2,
        "cap": 3,
    }
    frame = pl.DataFrame({"part": np.array([0, 1, 1], np.uint8)})
    frame.write_parquet(tmp_path / name, metadata={"fastpart": json.dumps(stored)})
    partition = fp.open_partition(tmp_path / name)
    assert (partition.of, partition.cap, partition.parameters) == ("edges", 3, {"of": "edges"})


def test_loads_that_are_not_those_of_the_assignment_are_refused(tmp_path):
    folder = Path(shutil.copytree(DATA / "2" / "edges", tmp_path / "parts"))
    content = manifest(folder)
    content["caps"][0]["loads"] = [36, 37]
    (folder / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(
        fp.errors.GraphFormatError, match="caps: the loads of edges contradict the assignment"
    ):
        fp.open_partition(folder)


@pytest.mark.filterwarnings("ignore:.* assumed n")
@pytest.mark.parametrize("of", OF)
def test_parts_of_plain_graphs_are_written_as_ever(tmp_path, of):
    """Every array of a directory that an earlier version wrote comes out byte for byte, and the same manifest."""
    stored = fp.open_partition(DATA / "3" / of, DATA / "g.bin")
    known, parts = stored.manifest, list(stored.parts)
    rows = {
        name: gathered(parts, name, known["n"]) for name in ("features", "labels", "train", "val", "test")
    }
    splits = {name: rows.pop(name) for name in ("train", "val", "test")}
    if "edge_features" in known:
        rows["edge_features"] = np.empty((known["m"], *known["edge_features"]["shape"]), np.float32)
        for part in parts:
            rows["edge_features"][part.edge_ids % known["m"]] = part.edge_features
    if of == "vertices":
        rows |= {"halo_hops": known["halo_hops"], "halo_features": "halo_features" in known}
    stored.folder = stored.manifest = None
    stored.save(tmp_path / "parts", splits=splits, **rows)
    old, new = files(DATA / "3" / of), files(tmp_path / "parts")
    own = {"manifest.json", "metrics.parquet"}  # they say who wrote them
    assert {name: new[name] for name in new.keys() - own} == {name: old[name] for name in old.keys() - own}
    differ = {"fastpart", "input", "parameters", "summary", *LISTED}
    now = manifest(tmp_path / "parts")
    assert [name for name in now if name not in LISTED] == [name for name in known if name not in LISTED]
    assert {name: now[name] for name in now.keys() - differ} == {
        name: known[name] for name in known.keys() - differ
    }


def gathered(parts, name, n):
    """Return the rows of all vertices from those of the parts."""
    first = getattr(parts[0], name)
    rows = np.empty((n, *first.shape[1:]), first.dtype)
    for part in parts:
        rows[part.vertices[: part.num_inner]] = getattr(part, name)
    return rows
