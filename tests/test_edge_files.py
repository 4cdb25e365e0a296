"""Edge files: their sidecars, every refusal, and paths of any bytes."""

import ctypes
import json
import os
import socket
import threading

import numpy as np
import pytest

import fastpart as fp
from strategies import raw

TRIANGLE = np.array([[0, 1], [1, 2], [2, 0]], dtype=np.uint32)


@pytest.fixture
def graph(tmp_path):
    """A raw file of three records."""
    return raw(tmp_path / "g.bin", TRIANGLE)


# Sidecars.


def sidecar(graph, **changes):
    """Write a sidecar beside ``graph``; a value of None leaves the key out."""
    content = {
        "fastpart": 1,
        "dtype": "u32",
        "n": 4,
        "m": 3,
        "directedness": "symmetric",
        "checksum": "0",
    } | changes
    content = {key: value for key, value in content.items() if value is not None}
    graph.with_name(graph.name + ".json").write_text(json.dumps(content))


def test_sidecar_is_used(graph):
    sidecar(graph)
    edges = fp.open_graph(graph, dtype="u32", num_vertices=4, directedness="symmetric")
    assert edges.notes == ()
    plain = fp.open_graph(graph)
    assert (plain.num_vertices, plain.num_edges, plain.directedness, plain.notes) == (4, 3, "symmetric", ())


def test_sidecar_of_an_earlier_version_is_used(graph):
    sidecar(graph, directedness=None, kind="symmetric")
    assert fp.open_graph(graph).directedness == "symmetric"


def test_sidecar_says_the_type(graph):
    raw(graph, TRIANGLE, "<u8")
    sidecar(graph, dtype="u64", checksum=None)
    assert fp.open_graph(graph).dtype == "u64"
    assert fp.open_graph(graph).identify() == fp.open_graph(TRIANGLE).identify()


@pytest.mark.parametrize("changes", [{"m": 4}, {"dtype": "u64"}])
def test_sidecar_of_another_size_is_ignored_with_a_warning(graph, changes):
    sidecar(graph, **changes)
    with pytest.warns(fp.errors.GraphWarning) as seen:
        edges = fp.open_graph(graph)
    assert (edges.num_vertices, edges.directedness) == (3, "undirected")
    assert edges.notes == tuple(str(warning.message) for warning in seen)
    assert len(edges.notes) == 2
    assert "g.bin.json describes another file" in edges.notes[0]
    assert "24 bytes). It is ignored" in edges.notes[0]


@pytest.mark.parametrize(
    ("argument", "stored"),
    [({"dtype": "i32"}, "u32"), ({"num_vertices": 5}, "4"), ({"directedness": "directed"}, "symm")],
)
def test_arguments_that_contradict_the_sidecar_are_refused(graph, argument, stored):
    sidecar(graph)
    (name, value) = next(iter(argument.items()))
    with pytest.raises(
        fp.errors.ParameterError, match=rf"{name}: '?{value}'?, but .*g\.bin\.json says '?{stored}.*Correct"
    ):
        fp.open_graph(graph, **argument)


def test_sidecar_with_too_small_an_n_is_found_out(graph):
    sidecar(graph, n=2)
    with pytest.raises(fp.errors.GraphFormatError, match=r"g\.bin: record 1 holds the id 2, outside 0\.\.2"):
        fp.open_graph(graph).degrees()


@pytest.mark.parametrize(
    "changes",
    [
        {"n": None}, {"directedness": None}, {"n": -1}, {"n": 2**32}, {"n": 4.0}, {"m": "3"}, {"m": True},
        {"dtype": "f32"}, {"dtype": 4}, {"dtype": ["u32"]}, {"directedness": "mixed"}, {"directedness": {}},
    ],
)  # fmt: skip
def test_corrupt_sidecar_fields_are_refused(graph, changes):
    sidecar(graph, **changes)
    with pytest.raises(
        fp.errors.GraphFormatError,
        match=rf"g\.bin\.json: the field '{next(iter(changes))}'.*Delete it or write",
    ):
        fp.open_graph(graph)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"3", b"null", b"\xff\xfe", b"[" * 100_000, b'{"fastpart": 1}']
)
def test_corrupt_sidecars_are_refused(graph, content):
    graph.with_name("g.bin.json").write_bytes(content)
    with pytest.raises(fp.errors.GraphFormatError, match=r"g\.bin\.json: .*Delete it or write it again"):
        fp.open_graph(graph)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (2, "A newer fastpart wrote it. Upgrade"),
        ("x", "holds text"),
        (True, "holds a truth value"),
        (0, ">= 1"),
    ],
)
def test_sidecars_of_other_versions_are_refused(graph, version, message):
    sidecar(graph, fastpart=version)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"g\.bin\.json: .*{message}"):
        fp.open_graph(graph)


def test_json_of_somebody_else_is_no_sidecar(graph):
    graph.with_name("g.bin.json").write_text('{"nodes": 7}')
    assert fp.open_graph(graph).num_vertices == 3


# Files.


# 1
def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.bin") as caught:
        fp.open_graph(tmp_path / "absent.bin")
    assert caught.value.filename == str(tmp_path / "absent.bin")
    with pytest.raises(NotADirectoryError, match="inside"):
        fp.open_graph(raw(tmp_path / "g.bin", TRIANGLE) / "inside")


# 2
@pytest.mark.timeout(10)
@pytest.mark.parametrize("kind", ["directory", "FIFO", "device", "socket"])
@pytest.mark.parametrize("reader", ["open_graph", "convert", "spring"])
def test_what_is_no_regular_file_is_refused_without_blocking(tmp_path, monkeypatch, kind, reader):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    path = "odd"
    match kind:
        case "directory":
            os.mkdir(path)
        case "FIFO":
            os.mkfifo(path)
        case "device":
            path = "/dev/zero"
        case "socket":
            with socket.socket(socket.AF_UNIX) as endpoint:
                endpoint.bind(path)
    call = {
        "open_graph": lambda: fp.open_graph(path),
        "convert": lambda: fp.convert(path, "out.bin"),
        "spring": lambda: fp.spring(path, 2),
    }[reader]
    with pytest.raises(fp.errors.GraphFormatError, match=rf"{path}: not a regular file \(a .*{kind}"):
        call()
    assert not os.path.exists("out.bin")


def without_privileges(call):
    """Run ``call`` in a thread that permissions bind even if the user is root; return what it raised."""
    libc = ctypes.CDLL(None, use_errno=True)
    raised = []

    def drop_and_call():
        # Capabilities belong to threads, and those that this one starts inherit none.
        header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert libc.capset(header, none) == 0
        try:
            call()
        except OSError as error:
            raised.append(error)

    thread = threading.Thread(target=drop_and_call)
    thread.start()
    thread.join()
    return raised


# 3
def test_file_without_permission(graph):
    graph.chmod(0)
    (error,) = without_privileges(lambda: fp.open_graph(graph))
    assert isinstance(error, PermissionError)
    assert str(graph) in str(error)
    graph.chmod(0o400)
    assert without_privileges(lambda: fp.open_graph(graph).degrees()) == []


# 4
@pytest.mark.parametrize(
    "name", [b"two words.bin", b"new\nline.bin", b"\xff\xfe\x80.bin", "größe→.bin".encode()]
)
@pytest.mark.parametrize("form", [bytes, str, "Path"])
def test_paths_of_any_bytes_work(tmp_path, name, form):
    path = os.fsencode(tmp_path) + b"/" + name
    with open(path, "wb") as file:
        file.write(TRIANGLE.tobytes())
    given = path if form is bytes else os.fsdecode(path) if form is str else tmp_path / os.fsdecode(name)
    edges = fp.open_graph(given)
    assert os.fsencode(edges.path) == path
    partition = fp.spring(given, k=1)
    out = path.replace(b".bin", b".npy")
    partition.save(out, graph=given)
    assert fp.open_partition(out, graph=given).k == 1
    partition.save(path.replace(b".bin", b"") + b"/", graph=given)
    assert fp.open_partition(path.replace(b".bin", b""), graph=given).algorithm == "spring"
    copy = path.replace(b".bin", b".u32")
    assert fp.convert(given, copy).identify() == edges.identify()
    # The sidecar beside the copy is found, so nothing is noted.
    assert fp.open_graph(copy).notes == ()


# 4: whatever the bytes of a path, a message is one line of text.
@pytest.mark.parametrize("name", [b"new\nline", b"\xff\xfe\x80"])
def test_messages_show_odd_paths_lossily(tmp_path, name):
    folder = os.fsencode(tmp_path) + b"/" + name
    os.mkdir(folder)
    for file, content in {
        b"g.bin": b"\xff",
        b"s.bin": b"",
        b"s.bin.json": b"{",
        b"p.npy": b"x",
        b"p.txt": b"x",
    }.items():
        with open(folder + b"/" + file, "wb") as out:
            out.write(content)
    messages = []
    for call in (
        lambda: fp.open_graph(folder + b"/g.bin"),
        lambda: fp.open_graph(folder + b"/s.bin"),
        lambda: fp.open_graph(folder),
        lambda: fp.open_partition(folder + b"/p.npy"),
        lambda: fp.open_partition(folder + b"/p.txt"),
        lambda: fp.open_partition(folder),
        lambda: fp.spring(TRIANGLE, 2).save(folder + b"/p.odd"),
        lambda: fp.evaluate(TRIANGLE, [0, 0, 0], labels=folder + b"/p.npy"),
    ):
        with pytest.raises(fp.FastpartError) as caught:
            call()
        messages.append(str(caught.value))
    shown = {b"new\nline": r"new\nline", b"\xff\xfe\x80": "\ufffd\ufffd\ufffd"}[name]
    for message in messages:
        message.encode()
        assert "\n" not in message
        assert shown in message


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("", fp.errors.ParameterError),
        ("a\0b", fp.errors.ParameterError),
        ("\ud800", fp.errors.ParameterError),
        (3, TypeError),
        (None, TypeError),
    ],
)
def test_what_is_no_path_is_refused(path, error):
    with pytest.raises(error, match="graph: "):
        fp.open_graph(path)


# 5
@pytest.mark.parametrize("io", ["mmap", "read"])
def test_empty_file_is_the_empty_graph(tmp_path, io):
    edges = fp.open_graph(raw(tmp_path / "g.bin", np.zeros((0, 2))), io=io)
    assert (edges.num_vertices, edges.num_edges) == (0, 0)
    partition = fp.spring(edges, k=3)
    assert partition.assignment.shape == (0,)
    assert partition.assignment.dtype == np.int32
    assert partition.loads.tolist() == [0, 0, 0]
    assert fp.evaluate(edges, partition).summary["cut_ratio"][0] == 0
    assert fp.info(edges)["degrees"]["max"] == 0
    seven = fp.spring(fp.open_graph(tmp_path / "g.bin", num_vertices=7), k=3)
    assert sorted(seven.loads) == [2, 2, 3]


# 6
@pytest.mark.parametrize(
    ("size", "dtype", "text"),
    [
        (9, None, r"length 9 is not a multiple of 8, .* u32 record \(remainder 1\)\. The file is cut off"),
        (12, None, r"length 12 is not a multiple of 8, .*\(remainder 4\)\. The file is cut off"),
        (
            12 + 8 * 5,
            "u32",
            r"length 52 .*\(remainder 4\)\. A header of 12 bytes \(as 2PS and HEP .*convert x\.binedgelist",
        ),
        (
            24,
            "u64",
            r"length 24 is not a multiple of 16, .* u64 record \(remainder 8\)\. It suits dtype=\"u32\"",
        ),
        (33, "u64", r"length 33 is not a multiple of 16, .*\(remainder 1\)\. The file is cut off"),
    ],
)
def test_odd_lengths_are_refused(tmp_path, size, dtype, text):
    (tmp_path / "g.bin").write_bytes(bytes(size))
    with pytest.raises(fp.errors.GraphFormatError, match=rf"g\.bin: {text}"):
        fp.open_graph(tmp_path / "g.bin", dtype=dtype)


# 7
def test_one_edge_and_one_vertex():
    one_edge = fp.spring(np.array([[0, 1]]), k=2)
    assert sorted(one_edge.assignment) == [0, 1] or one_edge.assignment.tolist() in ([0, 0], [1, 1])
    assert one_edge.loads.max() <= one_edge.cap
    one_vertex = fp.spring(np.array([[0, 0]]), k=1)
    assert one_vertex.assignment.tolist() == [0]
    assert one_vertex.loops == 1


# 8, 10
def test_loops_and_gaps_are_placed_to_balance():
    loops = fp.spring(np.array([[v, v] for v in range(10)]), k=5)
    assert loops.loads.tolist() == [2] * 5
    assert loops.loops == 10
    gap = fp.spring(np.array([[0, 10**6]]), k=4)
    assert len(gap) == 10**6 + 1
    assert gap.loads.max() <= gap.cap
    assert gap.loads.min() >= 10**6 // 4 - 1


# 12
def test_ids_are_never_wrapped(tmp_path):
    wide = raw(tmp_path / "wide.bin", [[2**32 + v, v + 1] for v in range(20)], "<u8")
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"record 0 holds the id 4294967296, .*2\^32 - 2\. Relabel"
    ):
        fp.open_graph(wide, dtype="u64")
    with pytest.raises(fp.errors.GraphFormatError, match="record 0 holds the id 4294967296"):
        fp.open_graph(np.fromfile(wide, "<u8").reshape(-1, 2))
    narrow = raw(tmp_path / "narrow.bin", [[v, v + 1] for v in range(20)])
    with pytest.raises(fp.errors.GraphFormatError, match="record 0 holds the id 4294967296"):
        fp.open_graph(narrow, dtype="u64")
    with pytest.raises(fp.errors.GraphFormatError, match=r"record 1 holds the id -3, .*must not be negative"):
        fp.open_graph(np.array([[0, 1], [-3, 2]]))
    with pytest.raises(fp.errors.GraphFormatError, match="record 1 holds the id -3"):
        fp.open_graph(raw(tmp_path / "signed.bin", [[0, 1], [2, -3]], "<i4"), dtype="i32")


# 12: ids that fit, of twice the width, and random ones that do not.
def test_u64_files_taken_as_u32_are_refused(tmp_path):
    random = np.random.default_rng(0)
    small = raw(tmp_path / "small.bin", random.integers(0, 1000, (50, 2)), "<u8")
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"every second word is zero: these look like u64 ids\. Pass dtype="
    ):
        fp.open_graph(small)
    assert fp.open_graph(small, dtype="u64").num_edges == 50
    assert fp.open_graph(small, dtype="u32").num_edges == 100
    huge = raw(tmp_path / "huge.bin", random.integers(2**32, 2**63, (50, 2)), "<u8")
    with pytest.raises(fp.errors.GraphFormatError, match=r"implausible.*--relabel.*dtype=\"u64\""):
        fp.open_graph(huge)


# 13
def test_big_endian_files_are_refused_with_the_remedy(tmp_path):
    edges = np.random.default_rng(0).integers(0, 1000, (50, 2))
    path = raw(tmp_path / "big.bin", edges, ">u4")
    with pytest.raises(fp.errors.GraphFormatError, match=r"looks big-endian.*convert --swap.*dtype="):
        fp.open_graph(path)
    with pytest.raises(fp.errors.GraphFormatError, match=r"implausible.*--swap"):
        fp.open_graph(path, dtype="u32")
    converted = fp.convert(path, tmp_path / "little.bin", swap=True)
    assert converted.identify() == fp.open_graph(edges).identify()


# 14
@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (b"PK\x03\x04" + bytes(20), r"this is a zip or \.npz file \(magic PK\), .*Unpack it"),
        (b"PAR1" + bytes(20), r"not a Parquet file"),
        (b"\x28\xb5\x2f\xfd" + bytes(20), r"the zstd data are damaged"),
        (b"\x7fELF" + bytes(20), r"this is an ELF program \(magic 7f ELF\)"),
    ],
)
def test_other_kinds_of_files_are_refused_by_their_magic(tmp_path, content, seen):
    (tmp_path / "g.bin").write_bytes(content)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"g\.bin: {seen}"):
        fp.open_graph(tmp_path / "g.bin")


# 14
def test_npy_says_its_own_type_whatever_its_name(tmp_path):
    with open(tmp_path / "g.bin", "wb") as file:
        np.save(file, TRIANGLE.astype("<i8"))
    assert fp.open_graph(tmp_path / "g.bin", dtype="i64").identify() == fp.open_graph(TRIANGLE).identify()
    with pytest.raises(fp.errors.ParameterError, match=r"dtype: u32 was given, but .*g\.bin holds i64"):
        fp.open_graph(tmp_path / "g.bin", dtype="u32")


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.zeros((3, 2)), "dtype <f8. Ids must be"),
        (np.zeros((3, 2), np.uint8), r"dtype \|u1"),
        (np.zeros(6, np.uint32), r"shape \[6\]. Edges are \(m, 2\)"),
        (np.zeros((3, 3), np.uint32), r"shape \[3, 3\]. Edges are \(m, 2\)"),
        (np.zeros((1, 3, 2), np.uint32), "shape"),
    ],
)
def test_npy_files_that_hold_no_edges(tmp_path, array, text):
    np.save(tmp_path / "g.npy", array)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"g\.npy: {text}"):
        fp.open_graph(tmp_path / "g.npy")


# 14, 45
def test_npy_files_that_lie_are_refused(tmp_path):
    path = tmp_path / "g.npy"
    np.save(path, TRIANGLE)
    whole = path.read_bytes()
    for content, text in {
        whole[:-1]: "151 bytes do not hold the 3 records",
        whole + b"\0": "153 bytes do not hold the 3 records",
        whole[:40]: "header is cut off",
        whole.replace(
            b"(3, 2)", b"(9" + b"9" * 17 + b", 2)", 1
        ): "do not hold the 9+ records|header is cut off",
        whole.replace(b"'<u4'", b"'|O' ", 1): "dtype .?O",
        whole[:6] + b"\x09" + whole[7:]: r"unknown \.npy version",
        whole[:8] + b"\xff\xff" + whole[10:]: "header is cut off",
        whole.replace(b"(3, 2)", b"(-3,2)", 1): "shape",
    }.items():
        path.write_bytes(content)
        with pytest.raises(fp.errors.GraphFormatError, match=rf"g\.npy: .*({text})"):
            fp.open_graph(path)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"dtype": "u16"},
            fp.errors.ParameterError,
            "dtype: unknown value 'u16'. Valid values are 'u32', 'i32', 'u64', 'i64'",
        ),
        ({"dtype": "float"}, fp.errors.ParameterError, "dtype: unknown value"),
        ({"dtype": "nonsense"}, fp.errors.ParameterError, "dtype: unknown value 'nonsense'"),
        (
            {"directedness": "undirect"},
            fp.errors.ParameterError,
            "directedness: .*'undirected', 'symmetric', 'directed'",
        ),
        ({"io": "map"}, fp.errors.ParameterError, "io: .*'mmap', 'read'"),
        ({"layout": "columns"}, fp.errors.ParameterError, "layout: .*'rows', 'edge_index'"),
        (
            {"layout": "edge_index"},
            fp.errors.ParameterError,
            "layout: a raw file holds one record after the other",
        ),
        ({"directedness": 1}, TypeError, "directedness: expected a string, got int"),
    ],
)
def test_ways_to_read_that_are_refused(graph, options, error, text):
    with pytest.raises(error, match=text):
        fp.open_graph(graph, **options)


@pytest.mark.parametrize("dtype", ["u32", "uint32", np.uint32, np.dtype("<u4")])
def test_dtype_in_every_form(graph, dtype):
    assert fp.open_graph(graph, dtype=dtype).dtype == "u32"
