"""The reader of .npy files: what numpy writes, byte for byte, and no Python parser in between."""

import ast
import errno
import io
import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fastpart as fp
from fastpart.core.inputs import labels_of, splits_of
from fastpart.core.parameters import regular, shown
from fastpart.core.parsing import Archive, PathBelow, conform, json_object, mapped, npy_array
from fastpart.core.rows import rows_of

ARRAYS = [
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(5, dtype=">u8"),
    np.array(3.5),
    np.zeros(0, bool),
    np.zeros((0, 7), np.float32),
    np.array(["a", "bc"]),
    np.array(["2024-01-01"], "datetime64[ns]"),
]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}-{array.shape}")
def test_what_numpy_writes_is_read(tmp_path, array, version):
    file = tmp_path / "x.npy"
    with file.open("wb") as opened:
        np.lib.format.write_array(opened, array, version)
    stored = file.read_bytes()
    for read in (mapped(file), npy_array(io.BytesIO(stored), len(stored))):
        assert (read.dtype, read.shape) == (array.dtype, array.shape)
        assert np.array_equal(read, array)
        assert read.flags.f_contiguous == array.flags.f_contiguous
    assert not mapped(file).flags.writeable


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"PK\x03\x04", "no .npy magic"),
        (b"\x93NUMPY", "unknown .npy version"),
        (b"\x93NUMPY\x09\x00", "unknown .npy version"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", "claims 2,147,483,647 bytes"),
        (b"\x93NUMPY\x01\x00\x40\x00{", "its header is cut off"),
    ],
)
def test_another_file_is_refused(tmp_path, content, cause):
    (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(fp.errors.GraphFormatError, match=f"x.npy: not a .npy array .*{cause}"):
        mapped(tmp_path / "x.npy")


def _write(file, descr, shape):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    file.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)


def test_rows_with_fields_are_read_if_asked_for(tmp_path):
    rows = np.zeros(3, [("codes", "u1", (5,)), ("low", "<f4"), ("step", "<f4")])
    rows["codes"], rows["low"] = np.arange(15).reshape(3, 5), [1, 2, 3]
    np.save(tmp_path / "x.npy", rows)
    found = mapped(tmp_path / "x.npy", fields=True)
    assert (found.dtype, found.shape, found.tobytes()) == (rows.dtype, rows.shape, rows.tobytes())
    for plain in ARRAYS:
        np.save(tmp_path / "y.npy", plain)
        assert mapped(tmp_path / "y.npy", fields=True).dtype == plain.dtype
    for descr in ("[('a', '|O')]", "[('a', '|V3')]", "[('a', 'nonsense')]", "[('a', '<i4'), ('a', '<i4')]"):
        _write(tmp_path / "z.npy", descr, "(0,)")
        with pytest.raises(fp.errors.GraphFormatError, match=r"z\.npy"):
            mapped(tmp_path / "z.npy", fields=True)
    _write(tmp_path / "z.npy", f"[('a', '|u1', ({10**10},))]", "(7,)")
    with pytest.raises(fp.errors.GraphFormatError, match=r"z\.npy"):
        mapped(tmp_path / "z.npy", fields=True)


@pytest.mark.parametrize(
    ("descr", "shape", "cause"),
    [
        ("'<f8'", "(9999999999999999999,)", "claims 79,999,999,999,999,999,992 bytes, but holds 0"),
        ("'|O'", "()", "holds Python objects, which are never loaded"),
        ("'|V8'", "()", "holds '|V8'. Expected numbers"),
        ("[('a', '<i4')]", "(1,)", "no valid descr"),
        ("'<i4,<i4'", "(1,)", "no valid descr"),
        ("'<i4'", "(-1,)", "no valid shape"),
        ("'<i4'", "(1,", "no valid shape"),
    ],
)
def test_headers_that_claim_what_cannot_be_are_refused(tmp_path, descr, shape, cause):
    _write(tmp_path / "x.npy", descr, shape)
    with pytest.raises(fp.errors.GraphFormatError) as error:
        mapped(tmp_path / "x.npy")
    assert cause in str(error.value)


def test_headers_are_read_without_a_parser_of_python(tmp_path, monkeypatch):
    """With several threads, that of CPython 3.11 raises SystemError or RecursionError now and then."""

    def fails(*_, **__):
        raise SystemError("AST constructor recursion depth mismatch")

    np.save(tmp_path / "x.npy", np.arange(9))
    np.savez(tmp_path / "x.npz", train=np.arange(9))
    splits_of(tmp_path / "x.npz", 9)  # numpy imports some of its modules late
    with monkeypatch.context() as patched:
        patched.setattr(ast, "literal_eval", fails)
        patched.setattr(ast, "parse", fails)
        with ThreadPoolExecutor(4) as pool:
            lengths = {len(array) for array in pool.map(mapped, [tmp_path / "x.npy"] * 40)}
        train = splits_of(tmp_path / "x.npz", 9)["train"]
        labels = labels_of(tmp_path / "x.npy", 9)
    assert lengths == {9}
    assert train.tolist() == labels.tolist() == list(range(9))


def test_an_archive_that_unpacks_to_more_than_it_can_need_is_refused(tmp_path, monkeypatch):
    """A megabyte of zeros says nothing of what it unpacks to."""
    zeros = np.zeros(2_000_000, np.int64)
    np.savez_compressed(tmp_path / "s.npz", train=zeros)
    np.savez_compressed(tmp_path / "m.npz", train_masks=zeros.reshape(2, -1))
    assert (tmp_path / "s.npz").stat().st_size < 100_000
    read = []
    monkeypatch.setattr("fastpart.core.parsing.npy_array", lambda *given: read.append(given))
    with pytest.raises(
        fp.errors.ParameterError, match=r"splits: train has shape \(2000000,\), but there are 9 vertices"
    ):
        splits_of(tmp_path / "s.npz", 9)
    with pytest.raises(
        fp.errors.ParameterError, match=r"splits: train_masks has shape \(2, 1000000\), but there are 9"
    ):
        splits_of(tmp_path / "m.npz", 9, 0)
    monkeypatch.setattr("fastpart._core.memory_budget", lambda: 1_000_000)
    with pytest.raises(
        fp.errors.MemoryBudgetError, match=r"s.npz: train unpacks to 16\.0 MB, but the budget is 1\.0 MB"
    ):
        Archive(tmp_path / "s.npz")["train"]
    matrix = dict.fromkeys(("data", "indices", "indptr", "shape", "format"), zeros)
    np.savez_compressed(tmp_path / "x.npz", **matrix)
    with pytest.raises(
        fp.errors.MemoryBudgetError, match=r"x\.npz need 80\.0 MB of memory, but the budget is 1\.0 MB"
    ):
        rows_of("features", tmp_path / "x.npz")
    assert read == []


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket"))
        for name in ("pipe", "folder", "loop", "zero", "socket"):
            with pytest.raises(fp.errors.GraphFormatError, match=f"{name}: not a regular file"):
                regular(tmp_path / name)
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    for name in ("absent", "nowhere"):
        assert regular(tmp_path / name) == tmp_path / name


def test_a_file_out_of_reach_is_no_missing_file(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "x")

    monkeypatch.setattr("pathlib.Path.stat", refused)
    with pytest.raises(PermissionError):
        regular(tmp_path / "x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", r"not JSON \(.*\)\. Again"),
        ("[" * 100_000, "not JSON"),
        ("3", r"expected a JSON object\. Again"),
        ("{}", r"the field 'n' is missing\. Again"),
        ('{"n": true, "name": ""}', "the field 'n' holds a truth value, not an integer"),
        ('{"n": 1, "name": []}', "the field 'name' holds a list, not text or null"),
    ],
)
def test_json_of_ours_names_file_and_field(tmp_path, text, said):
    file = tmp_path / "ours.json"
    file.write_text(text)
    fields = {"n": int, "name": (str, type(None))}
    with pytest.raises(fp.errors.GraphFormatError, match=rf"ours\.json: {said}"):
        json_object(file, None, fields, "Again")
    file.write_text('{"n": 1, "name": null, "more": 2}')
    assert json_object(file, None, fields)["more"] == 2


@pytest.mark.parametrize("path", ["a", "a/b", "a/b/", "..a/b..", "...", "a.b/..c", " x"])
def test_paths_below_a_folder(path):
    conform({"file": path}, {"file": PathBelow})


LEADING_OUT = ["", "/", "/a", "..", "../a", "a/..", "a/../b", "a\0", "\ud800", "/.."]


def test_paths_that_lead_out_of_a_folder():
    """Long ones take no longer than linear time."""
    for path in (*LEADING_OUT, "a" * 10**6 + "\0", "a/" * 10**6 + ".."):
        with pytest.raises(ValueError, match="the field 'file' holds a name that fastpart does not write"):
            conform({"file": path}, {"file": PathBelow})


def test_versions_of_ours(tmp_path):
    file = tmp_path / "ours.json"
    refused = {3: "A newer fastpart wrote it. Upgrade", 0: ">= 1", 1.5: "a number", "x": "text", None: "null"}
    for version, said in refused.items():
        file.write_text(json.dumps({"version": version}))
        with pytest.raises(fp.errors.GraphFormatError, match=rf"ours\.json: .*{said}"):
            json_object(file, version=("version", 2))
    file.write_text('{"version": 2}')
    assert json_object(file, version=("version", 2)) == {"version": 2}


def test_names_that_no_system_has_are_shown():
    assert shown("a\ud800b\n") == "a\N{REPLACEMENT CHARACTER}b\\n"
