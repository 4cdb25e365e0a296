"""JSON files of strangers in partition directories and what is made of them: refused by name, or read as before."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.partitions.plan import Plan
from json_damage import VALUES, check_all, check_version, is_refused, places, replaced
from soaked import examples
from typed_graphs import authors

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [0, 4], [5, 5]], dtype=np.uint32)
"""Two triangles joined by two edges, and a loop."""

TOLD = (
    "fastpart",
    "algorithm",
    "parameters",
    "summary",
    "input",
    "costs",
    "manifest_xxh3",
    "checksum",
    "changed_parts",
)
"""Entries of a manifest that are told, and decide nothing."""  # fmt: skip


def plain(folder):
    fp.VertexPartition([0, 0, 0, 1, 1, 1], 2).save(
        folder,
        graph=EDGES,
        features=np.eye(6, dtype=np.float32),
        labels=np.arange(6) % 2,
        splits={"train": [0, 3], "val": [1, 4], "test": [2, 5]},
        edge_features=np.arange(9.0),
        times=np.arange(6),
        halo_features=True,
        feature_dtype="int8",
        edge_splits={"val": [[1, 5]], "test": [[2, 4]]},
    )


def edges(folder):
    fp.EdgePartition([0, 0, 0, 1, 1, 1, 0, 1, 1], 2).save(folder, graph=EDGES, labels=np.arange(6) % 2)


def typed(folder):
    given = {"features": {"paper": np.ones((4, 3), np.float32)}, "times": {"paper": np.arange(4)}}
    stored = authors().saved(folder.parent, **given, splits={"paper": {"train": [0, 1, 2, 3]}})
    stored.folder.rename(folder)


MADE = {"plain": plain, "edges": edges, "typed": typed}


@pytest.fixture(params=MADE)
def folder(request, tmp_path):
    MADE[request.param](tmp_path / "stored")
    return tmp_path / "stored"


def attributes(part):
    """Return all arrays of a part, with their dtypes, as bytes."""
    names = [name for name in dir(type(part)) if not name.startswith("_")]
    values = {name: getattr(part, name) for name in names}
    return {
        name: (str(value.dtype), value.shape, value.tobytes())
        for name, value in values.items()
        if isinstance(value, np.ndarray)
    }


def facts(folder):
    """Open a directory, and return what decides a result."""
    partition = fp.open_partition(folder)
    found = [partition.of, partition.k, partition.num_vertices, partition.num_edges, partition.cap]
    found.append(partition.assignment.tobytes())
    for part in partition.parts:
        found.append(attributes(part))
        if getattr(part, "types", None):
            found += [attributes(part.of_type(each.name)) for each in part.types]
            found += [attributes(part.of_relation(each.name)) for each in part.edge_types]
    return found


@pytest.mark.parametrize("name", ["manifest.json", "part-00001/part.json"])
def test_every_value_is_checked(folder, name):
    of_edges = fp.open_partition(folder).of == "edges"  # nothing else knows how many vertices these have
    check_all(folder / name, lambda: facts(folder), (*TOLD, *(("n",) if of_edges else ())))


def test_newer_versions_are_refused(folder):
    check_version(folder / "manifest.json", lambda: facts(folder), "schema", 4)
    check_version(folder / "manifest.json", lambda: fp.store.verify(folder), "schema", 4)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folders = [tmp_path_factory.mktemp(name) / "stored" for name in MADE]
    for make, folder in zip(MADE.values(), folders, strict=True):
        make(folder)
    return folders


@examples(20)
@given(st.data())
def test_whatever_replaces_a_value_is_refused_or_changes_nothing(stored, data):
    folder = data.draw(st.sampled_from(stored))
    file = folder / data.draw(st.sampled_from(["manifest.json", "part-00000/part.json"]))
    whole = file.read_bytes()
    content = json.loads(whole)
    place = data.draw(st.sampled_from([each for each in places(content) if not {*each} & {*TOLD, "n"}]))
    intact = facts(folder)
    try:
        file.write_text(json.dumps(replaced(content, place, data.draw(VALUES))))
        is_refused(file, lambda: facts(folder), intact)
    finally:
        file.write_bytes(whole)


def test_values_of_caches(folder):
    if folder.name != "stored" or fp.open_partition(folder).of == "edges":
        pytest.skip("no caches")
    from fastpart.store.caches import has_caches, read_cache

    fp.open_partition(folder).save_cache(0.5, fanouts=[2])

    def read():
        partition = fp.open_partition(folder)
        return has_caches(partition) and [read_cache(partition, part).tolist() for part in range(2)]

    check_all(folder / "cache.json", read, ("size", "fanouts", "policy", "batch_size"))


def test_values_of_plans(tmp_path):
    worker = {"worker": 0, "batches": 2, "rows": 5, "distinct_rows": 4, "cached_rows": 1, "read_rows": 3}
    way = {"way": "plan", "bytes": None, "seconds": 0.5, "once_bytes": 3, "once_seconds": None}
    key = {"workers": 1, "seed": 0}
    plan = Plan(3, pl.DataFrame([worker]), pl.DataFrame([way]), 8, key, tmp_path)
    (tmp_path / "plan.json").write_bytes(plan._marker([]))
    check_all(tmp_path / "plan.json", lambda: repr(Plan.read(tmp_path))[:5], ("fastpart", "seed", "files"))


def test_values_of_comparisons(tmp_path):
    file = tmp_path / "c.json"
    fp.compare(fp.open_graph(EDGES), 2, ["spring", "random"], peers=False).save(file)

    def read():
        comparison = fp.open_comparison(file)
        comparison.save(tmp_path / "again.json")
        return repr(comparison)[:5]  # a row more or less is another comparison

    check_all(file, read, ("versions", "parameters", "parts"))
    check_version(file, read, "fastpart_comparison", json.loads(file.read_text())["fastpart_comparison"])


def test_a_marker_of_somebody_else_is_not_replaced(tmp_path):
    """Whatever the marker of an output says, only a folder of fastpart is replaced."""
    plain(tmp_path / "stored")
    marker = tmp_path / "stored" / "manifest.json"
    lists = ({"\ud800": {}}, {"/etc/passwd": {}}, ["../x"], ["a\0b"], [""], [3], 3)
    listed = [json.dumps({"fastpart": "0", "files": each}).encode() for each in lists]
    for content in (b"[" * 100_000, b"3", b"\xff", b'{"files": []}', *listed):
        marker.write_bytes(content)
        with pytest.raises(FileExistsError, match=r"no manifest\.json of fastpart in it"):
            plain(tmp_path / "stored")
        assert marker.read_bytes() == content
