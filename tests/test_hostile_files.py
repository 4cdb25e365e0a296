"""Hostile and damaged files: refused with the reason, and nothing worse."""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import zipfile

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.core import parsing

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [5, 5]], dtype=np.uint32)
"""Two triangles joined by one edge, and a loop."""


def save(part, folder, name, **options):
    part.save(f"{folder}/{name}", **options)
    return folder / name


# 45
@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([0, None]), r"not a \.npy array of parts \(.*Python objects"),
        (np.array([0.0, 1.0]), "assignment: expected integers, got dtype float64"),
        (np.array([[0, 1]]), r"assignment: .* got shape \(1, 2\)"),
        (np.array([0, -1]), "vertex 1 has part -1"),
        (np.array([0, 2**40]), "k: 1099511627777 is not between 1 and 1048576"),
        (np.array([0, 2**64 - 1], np.uint64), "k: 18446744073709551616 is not between"),
        (np.array("x"), "assignment: .* got shape"),
    ],
)
def test_hostile_arrays(tmp_path, array, text):
    np.save(tmp_path / "part.npy", array, allow_pickle=True)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"part\.npy: .*({text})"):
        fp.open_partition(tmp_path / "part.npy")


# 45
def test_headers_that_claim_too_much(tmp_path):
    path = save(fp.VertexPartition([0, 1, 0], 2), tmp_path, "part.npy")
    whole = path.read_bytes()
    for content in (
        whole.replace(b"(3,)", b"(999999999999999,)"),
        whole.replace(b"(3,)", b"(2305843009213693952,)"),
        whole.replace(b"(3,)", b"(4,)"),
        whole.replace(b"(3,)", b"(-3,)"),
        whole.replace(b"(3,)", b"(3.5,)"),
        whole[:50],
        whole[:-1],
        b"",
        b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535,
        b"PK\x03\x04" + bytes(30),
        b"\x80\x04\x95" + bytes(30),
    ):
        path.write_bytes(content)
        with pytest.raises(fp.errors.GraphFormatError, match=r"part\.npy: not a \.npy array of parts \(.+\)"):
            fp.open_partition(path)
    np.savez(tmp_path / "archive", part=np.zeros(3))
    (tmp_path / "archive.npz").rename(path)
    with pytest.raises(fp.errors.GraphFormatError, match="magic"):
        fp.open_partition(path)


# 45
@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"0\n-1\n", "vertex 1 has part -1"),
        (b"0\n1.5\n", "not one part per line"),
        (b"0\nx\n", "not one part per line"),
        (b"0\n\n1\n", "line 2 holds no part|not one part per line"),
        (b"0 1\n1 0\n", "not one part per line"),
        (b"0,1\n1,0\n", "not one part per line"),
        (b"0\n99999999999999999999\n", "not one part per line"),
        (b"0\n2000000000\n", "k: 2000000001 is not between"),
        (b"\x00\xff\n", "not one part per line"),
        (b"\xff\xfe0\n", "not one part per line"),
    ],
)
def test_hostile_text(tmp_path, text, named):
    (tmp_path / "part.txt").write_bytes(text)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"part\.txt: .*({named})"):
        fp.open_partition(tmp_path / "part.txt")


# 45
@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (pl.DataFrame({"parts": [0, 1]}), "not a Parquet file with a column 'part'"),
        (pl.DataFrame({"part": [0.5, 1.0]}), "assignment: .* got dtype float64"),
        (pl.DataFrame({"part": [0, None]}), "assignment: .* got dtype float64|nulls"),
        (pl.DataFrame({"part": ["a", "b"]}), "assignment: .* got dtype"),
        (pl.DataFrame({"part": [[0], [1]]}), "assignment: "),
        (pl.DataFrame({"part": [0, -7]}), "vertex 1 has part -7"),
    ],
)
def test_hostile_parquet(tmp_path, frame, text):
    frame.write_parquet(tmp_path / "part.parquet")
    with pytest.raises(fp.errors.GraphFormatError, match=rf"part\.parquet: .*({text})"):
        fp.open_partition(tmp_path / "part.parquet")


# 45
@pytest.mark.parametrize(
    "metadata", ["", "{", "[]", "3", "[" * 100_000, '{"schema": 5}', '{"schema": 2, "of": "vertices"}']
)
def test_hostile_metadata_of_parquet(tmp_path, metadata):
    pl.DataFrame({"part": [0, 1]}).write_parquet(tmp_path / "part.parquet", metadata={"fastpart": metadata})
    with pytest.raises(
        fp.errors.GraphFormatError,
        match=r"part\.parquet: (not JSON|expected a JSON object|schema 5, .*Upgrade|k: )",
    ):
        fp.open_partition(tmp_path / "part.parquet")


@pytest.fixture
def folder(tmp_path):
    """A partition directory of two triangles."""
    return save(fp.spring(EDGES, k=2), tmp_path, "parts", graph=EDGES)


def change(folder, **fields):
    manifest = json.loads((folder / "manifest.json").read_text()) | fields
    (folder / "manifest.json").write_text(json.dumps(manifest))


# 45
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"schema": 5}, r"schema 5, but this fastpart \(.*\) reads up to 4\. .*Upgrade"),
        ({"schema": None}, "the field .schema. holds null, not an integer"),
        ({"schema": "1"}, "the field .schema. holds text, not an integer"),
        ({"of": "hyper"}, "of: unknown value 'hyper'. Valid values are 'vertices', 'edges'"),
        ({"of": ["vertices"]}, "of: expected a string, got list"),
        ({"of": None}, "of: expected a string"),
        ({"of": "edges"}, "assignment: 6 records, but the manifest says 8"),
        ({"k": 1}, r"assignment: vertex \d has part 1, outside 0\.\.0"),
        ({"k": 0}, "k: 0 is not between"),
        ({"k": 10**30}, "k: 10+ is not between"),
        ({"k": 2.0}, "k: expected an integer, got float"),
        ({"k": True}, "k: expected an integer, got bool"),
        ({"k": None}, "k: expected an integer"),
        ({"n": 7}, "assignment: 6 vertices, but the manifest says 7"),
        ({"n": -6}, "n: -6"),
        ({"n": "6"}, "n: expected an integer, got str"),
        ({"m": 1e3}, "m: expected an integer, got float"),
        ({"loops": [0]}, "loops: expected an integer, got list"),
        ({"caps": 4}, "caps: expected a list of objects"),
        ({"caps": [4]}, "caps: expected a list of objects"),
        ({"caps": [{}]}, "caps: of: expected a string, got NoneType"),
        (
            {"caps": [{"of": "edges", "cap": 4}]},
            "caps: of: unknown value 'edges'. Valid values are 'vertices', 'weights'",
        ),
        ({"caps": [{"of": "vertices"}]}, "caps: vertices: cap: expected an integer, got NoneType"),
        ({"caps": [{"of": "vertices", "cap": "4"}]}, "caps: vertices: cap: expected an integer, got str"),
        ({"algorithm": 3}, "algorithm: expected str, got int"),
        ({"parameters": "k=2"}, "parameters: expected dict, got str"),
        ({"checksum": 7}, "checksum: expected str, got int"),
    ],
)
def test_hostile_manifests(folder, fields, text):
    change(folder, **fields)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"parts(/manifest\.json)?: {text}"):
        fp.open_partition(folder)


# 45
@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"nan", b"[" * 100_000, b'{"a":' * 50_000, b"[1]", b"1" * 9999]
)
def test_manifests_that_are_no_json_object(folder, content):
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"manifest\.json: (not JSON \(.+\)|expected a JSON object)"
    ):
        fp.open_partition(folder)


# 45
def test_unknown_fields_and_files_are_tolerated_and_paths_not_followed(folder):
    change(
        folder,
        novelty={"deep": [1]},
        assignment="../../etc/passwd",
        input={"path": "/etc/passwd", "bytes": -1},
    )
    (folder / "more.npy").write_bytes(b"?")
    partition = fp.open_partition(folder, graph=EDGES)
    assert (partition.algorithm, partition.assignment.tolist()) == (
        "spring",
        fp.spring(EDGES, k=2).assignment.tolist(),
    )


# 45, 46: a manifest copied from elsewhere does not pass for the graph's.
def test_a_manifest_with_another_checksum_is_refused(folder):
    change(folder, checksum="0" * 32)
    with pytest.raises(fp.errors.GraphFormatError, match=r"another graph: its checksum is 0{32}"):
        fp.open_partition(folder, graph=EDGES)


def test_incomplete_directories(folder):
    (folder / "assignment.npy").unlink()
    with pytest.raises(fp.errors.GraphFormatError, match=r"assignment\.npy is missing"):
        fp.open_partition(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"parts is not a partition directory: it has no manifest\.json"
    ):
        fp.open_partition(folder)


# 2, 45
@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", ["part.npy", "part.txt", "part.parquet"])
def test_a_fifo_is_refused_without_blocking(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"{name}: not a regular file"):
        fp.open_partition(tmp_path / name)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"{name}: not a regular file"):
        fp.evaluate(EDGES, [0] * 6, labels=tmp_path / name)


TAKES_A_PARTITION = {
    "evaluate": lambda graph, file: fp.evaluate(graph, file, k=2),
    "refine": lambda graph, file: fp.refine(graph, file, k=2),
    "update": lambda graph, file: fp.update(graph, file, k=2),
    "edges_of": lambda graph, file: fp.edges_of(graph, file, k=2),
    "predict_traffic": lambda graph, file: fp.predict_traffic(file, [2], graph=graph, splits={"train": [0]}),
    "expected_cut": lambda graph, file: fp.algorithms.expected_cut(graph, file, 0.5),
    "home_parts": fp.home_parts,
    "open_partition": lambda graph, file: fp.open_partition(file, graph, k=2),
}


# 2, 45
@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", TAKES_A_PARTITION)
def test_whatever_takes_a_partition_refuses_what_is_no_file(tmp_path, name):
    for suffix in ("", ".npy", ".txt", ".parquet"):
        os.mkfifo(tmp_path / f"pipe{suffix}")
        (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
        (tmp_path / f"folder{suffix}").mkdir()
    for file in sorted(tmp_path.iterdir()):
        refusal = " is not a partition directory" if file.is_dir() else ": not a regular file"
        with pytest.raises(fp.errors.GraphFormatError, match=re.escape(file.name) + refusal):
            TAKES_A_PARTITION[name](EDGES, file)


# 2, 45
@pytest.mark.timeout(10)
@pytest.mark.parametrize("verb", ["evaluate", "refine", "update", "edges-of"])
def test_commands_refuse_a_partition_that_is_no_file(tmp_path, capsys, verb):
    graph, pipe = tmp_path / "g.bin", tmp_path / "part.npy"
    graph.write_bytes(EDGES.astype("<u4").tobytes())
    os.mkfifo(pipe)
    for file in (str(pipe), "/dev/zero"):
        assert main([verb, str(graph), file, "--quiet"]) == 1
        assert f"{file}: not a regular file" in capsys.readouterr().err


# 2, 45
@pytest.mark.timeout(10)
@pytest.mark.parametrize("name", ["assignment.npy", "manifest.json"])
def test_a_fifo_in_a_directory_is_refused_without_blocking(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(fp.errors.GraphFormatError, match=f"{name}: not a regular file"):
        fp.open_partition(folder)


# Fuzz: damaged files raise what is documented, and nothing else.


def mutated(chance, content):
    """Return ``content`` with a few random damages."""
    content = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 8])):
        at = chance.randrange(len(content) + 1)
        length = chance.choice([1, 1, 4, 64])
        match chance.randrange(5):
            case 0:
                del content[at:]
            case 1:
                del content[at : at + length]
            case 2:
                content[at:at] = chance.randbytes(length)
            case 3:
                content[at : at + length] = bytes([chance.choice(b'\0\xff\x7f\x80019-(,\n "{')]) * length
            case _:
                content[at : at + 1] = bytes([chance.randrange(256)])
    return bytes(content)


def damage(path, call, rounds=200):
    """Call with damaged versions of the file; return how many were refused and how many passed."""
    chance = random.Random(path.name)
    whole = path.read_bytes()
    outcomes = [0, 0]
    for _ in range(rounds):
        path.write_bytes(mutated(chance, whole))
        try:
            call()
            outcomes[1] += 1
        except (fp.FastpartError, OSError):
            outcomes[0] += 1
    return outcomes


# 45
@pytest.mark.filterwarnings("ignore:Reading `.np:UserWarning")
@pytest.mark.parametrize("name", ["part.npy", "part.txt", "part/manifest.json", "part/assignment.npy"])
def test_fuzzed_partitions(tmp_path, name):
    partition = fp.spring(fp.generate.rmat(tmp_path / "g.bin", n=300, m=900), k=7)
    out = save(partition, tmp_path, name.split("/")[0], graph=tmp_path / "g.bin")
    refused, _ = damage(tmp_path / name, lambda: fp.open_partition(out, graph=tmp_path / "g.bin"))
    assert refused


# 45: cut off only, since other damages of a Parquet file can make Polars abort the process.
def test_truncated_parquet(tmp_path):
    path = save(fp.spring(fp.generate.rmat(tmp_path / "g.bin", n=300, m=900), k=7), tmp_path, "part.parquet")
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"part\.parquet: not a Parquet file with a column 'part' \(.+\)"
        ):
            fp.open_partition(path)


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@pytest.mark.parametrize(
    "name",
    [
        *("g.bin", "g.npy", "g.bin.json", "g.txt", "g.txt.gz", "g.txt.xz", "g.txt.bz2", "g.mtx", "g.graph"),
        "g.binedgelist",
    ],
)
def test_fuzzed_graphs(tmp_path, name):
    edges = fp.generate.rmat(tmp_path / "g.bin", n=300, m=900)
    array = np.fromfile(tmp_path / "g.bin", "<u4").reshape(-1, 2)
    np.save(tmp_path / "g.npy", array)
    np.savetxt(tmp_path / "g.txt", array, fmt="%d", header="u v")
    (tmp_path / "g.txt.gz").write_bytes(gzip.compress((tmp_path / "g.txt").read_bytes(), mtime=0))
    (tmp_path / "g.txt.xz").write_bytes(lzma.compress((tmp_path / "g.txt").read_bytes()))
    (tmp_path / "g.txt.bz2").write_bytes(bz2.compress((tmp_path / "g.txt").read_bytes()))
    header = "%%MatrixMarket matrix coordinate pattern general\n300 300 900\n"
    np.savetxt(tmp_path / "g.mtx", array + 1, fmt="%d", header=header.rstrip(), comments="")
    for converted in ("g.graph", "g.binedgelist"):
        fp.convert(tmp_path / "g.bin", tmp_path / converted)
    assert edges.num_edges == 900

    def partition():
        graph = tmp_path / name.removesuffix(".json")
        if name not in ("g.bin", "g.npy", "g.bin.json"):
            fp.convert(graph, tmp_path / "converted.bin")
            graph = tmp_path / "converted.bin"
        part = fp.spring(graph, k=4, memory_limit="200M")
        assert part.loads.max(initial=0) <= part.cap

    refused, passed = damage(tmp_path / name, partition)
    assert refused
    assert passed or name.endswith((".gz", ".xz", ".bz2", ".graph"))  # whose checks find every damage


def evaluated_with(file):
    """Read labels, or splits from an archive."""
    graph = np.array([[0, 1], [1, 2]], np.uint32)
    return fp.evaluate(graph, [0, 0, 1], **{"splits" if file.suffix == ".npz" else "labels": file})


@pytest.mark.parametrize("claim", [4, 10**11, 2**61, 10**30])
def test_labels_and_splits_that_claim_too_much_are_damaged(tmp_path, claim):
    header = io.BytesIO()
    np.save(header, np.arange(3))
    content = header.getvalue().replace(b"(3,)", b"(%d,)" % claim)
    (tmp_path / "y.npy").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "s.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train.npy", content)
    for file in ("y.npy", "s.npz"):
        with pytest.raises(
            fp.errors.GraphFormatError, match=rf"{file}: .*it claims [\d,]+ bytes, but holds [\d,]+\)"
        ):
            evaluated_with(tmp_path / file)


def test_labels_and_splits_without_memory_for_them_are_not_called_damaged(tmp_path, monkeypatch):
    np.save(tmp_path / "y.npy", np.arange(3))
    np.savez(tmp_path / "s.npz", train=np.arange(3))
    for file in ("y.npy", "s.npz"):
        assert evaluated_with(tmp_path / file) is not None

    def refused(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(parsing, "npy_header", refused)
    for file in ("y.npy", "s.npz"):
        with pytest.raises(MemoryError, match="no room"):
            evaluated_with(tmp_path / file)


def test_a_part_without_memory_for_it_is_not_called_damaged(tmp_path, monkeypatch):
    graph = np.array([[0, 1], [1, 2]], np.uint32)
    fp.VertexPartition([0, 0, 1], 2).save(tmp_path / "parts", graph=graph)
    part = fp.open_partition(tmp_path / "parts").parts[0]

    def refused(*_, **__):
        raise MemoryError("no room")

    monkeypatch.setattr(parsing, "npy_header", refused)
    with pytest.raises(MemoryError, match="no room"):
        part.in_edges()


def test_an_archive_that_lacks_bytes_is_named(tmp_path):
    file = tmp_path / "s.npz"
    np.savez(file, train=np.arange(2))
    content = file.read_bytes()
    for lacking in (1, 2, 30):  # so that all offsets in it lead too far back
        file.write_bytes(content[:42] + content[42 + lacking :])
        with pytest.raises(fp.errors.GraphFormatError, match=r"s\.npz: not a .npz of plain arrays"):
            evaluated_with(file)


@pytest.mark.parametrize("name", ["features", "labels", "splits"])
def test_a_link_to_itself_is_refused_by_its_name(tmp_path, name):
    file = tmp_path / "loop.npy"
    file.symlink_to(file.name)
    with pytest.raises(fp.errors.GraphFormatError, match=r"loop\.npy: not a regular file, but a link"):
        fp.VertexPartition([0] * 6, 2).save(tmp_path / "parts", graph=EDGES, **{name: file})


@pytest.mark.timeout(60)
def test_a_device_in_a_directory_is_not_listed(tmp_path):
    parts = save(fp.spring(EDGES, k=2), tmp_path, "parts", graph=EDGES)
    change(parts, schema=2)
    file = parts / "part-00000" / "indices.npy"
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"indices\.npy: leads out of the partition directory"
    ):
        fp.store.upgrade(parts)


def test_names_of_an_archive_are_known_without_unpacking(tmp_path, monkeypatch):
    from fastpart.core import parsing

    np.savez(tmp_path / "s.npz", train=np.arange(2))
    archive = parsing.Archive(tmp_path / "s.npz")
    monkeypatch.setattr(parsing, "npy_array", None)
    assert ["train" in archive, "val" in archive] == [True, False]
