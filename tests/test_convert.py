"""convert(): every form of text and binary in, raw u32 edges with a sidecar out."""

import gzip
import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from soaked import examples
from strategies import edge_lists, raw

RECORDS = [[0, 1], [1, 2], [2, 0], [3, 3]]
"""A triangle, and a loop."""

PLAIN = "".join(f"{u} {v}\n" for u, v in RECORDS).encode()
"""The same as text."""


def convert(folder, content, name="g.txt", **options):
    """Convert bytes; return the records of the output and the open graph."""
    (folder / name).write_bytes(content)
    edges = fp.convert(folder / name, folder / "out.bin", **options)
    return np.fromfile(folder / "out.bin", "<u4").reshape(-1, 2).tolist(), edges


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# 18
@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        PLAIN.rstrip(),
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b"\n", b"\r\n").rstrip(),
        PLAIN.replace(b" ", b"\t"),
        PLAIN.replace(b" ", b","),
        PLAIN.replace(b" ", b" ; "),
        PLAIN.replace(b" ", b"  \t "),
        PLAIN.replace(b"\n", b" 1.7\n"),
        PLAIN.replace(b"\n", b"\t0.25\t1234567890\n"),
        PLAIN.replace(b"\n", b" a text\n"),
        PLAIN.replace(b" ", b",").replace(b"\n", b",a text\n"),
        PLAIN.replace(b"\n", b"  \n"),
        PLAIN.replace(b"\n", b"\n\n \t\n"),
        b"  " + PLAIN,
        b"# Nodes: 4 Edges: 4\n% sym\n//\n" + PLAIN.replace(b"1 2\n", b"1 2\n  # between\n") + b"#end",
        b"\xef\xbb\xbf" + PLAIN,
        b"source,target\n" + PLAIN.replace(b" ", b","),
        b'# comment\n"from" "to"\n' + PLAIN,
        PLAIN.replace(b"3 3", b"00003 0000000000000000000000003"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_text_in_every_form(tmp_path, text, packed):
    records, edges = convert(
        tmp_path, gzip.compress(text) if packed else text, "g.txt.gz" if packed else "g.txt"
    )
    assert records == RECORDS
    assert (edges.num_vertices, edges.num_edges, edges.identify()[0]) == (4, 4, 1)


# 18
@examples(15)
@given(edge_lists(2000, 60), st.sampled_from([" ", "\t", ",", ";", " , "]), st.sampled_from(["\n", "\r\n"]))
def test_what_numpy_writes_is_read(tmp_path_factory, graph, separator, newline):
    _, edges = graph
    folder = tmp_path_factory.mktemp("text")
    np.savetxt(folder / "g.txt", edges, fmt="%d", delimiter=separator, newline=newline, header="u v")
    if not len(edges):
        (folder / "g.txt").write_bytes(b"")  # a header alone is refused
    converted = fp.convert(folder / "g.txt", folder / "g.bin")
    assert converted.identify() == fp.open_graph(edges).identify()


def test_kind_of_input_is_told_by_the_bytes_not_the_name(tmp_path):
    assert convert(tmp_path, gzip.compress(PLAIN), "g.txt")[0] == RECORDS
    assert convert(tmp_path, gzip.compress(PLAIN[:8]) + gzip.compress(PLAIN[8:]), "g.bin")[0] == RECORDS
    assert convert(tmp_path, PLAIN, "g.bin")[0] == RECORDS
    np.save(tmp_path / "g.npy", np.array(RECORDS, ">i8"))
    assert convert(tmp_path, (tmp_path / "g.npy").read_bytes(), "g.txt")[0] == RECORDS


def test_empty_text_is_the_empty_graph(tmp_path):
    records, edges = convert(tmp_path, b"")
    assert (records, edges.num_vertices, edges.num_edges) == ([], 0, 0)
    for content in (b"# nothing\n", b"\n\n"):
        with pytest.raises(fp.errors.GraphFormatError, match="no line is a record"):
            convert(tmp_path, content)


# 18
@pytest.mark.parametrize(
    ("text", "line", "column", "what"),
    [
        (b"0 1\n1 -2\n", 2, 3, '"-2" is negative'),
        (b"0 1\n\n# c\n1.5 2\n", 4, 1, r'"1\.5" is a floating-point number'),
        (b"0 1\n7 2e3\n", 2, 3, '"2e3" is a floating-point number'),
        (b"0 99999999999999999999\n", 1, 3, '"99999999999999999999" exceeds 2^64 - 1'.replace("^", r"\^")),
        (b"0 1\n1 4294967295\n", 2, 3, "the id 4294967295 exceeds 4294967294, .*--relabel"),
        (b"0 1\n1 \x002\n", 2, 3, "a NUL byte"),
        (b"0 1\r1 2\r2 3\n", 1, 4, "a carriage return within the line"),
        (b"0 1\n5\n", 2, 2, "one id, where a record needs two"),
        (b"0,1\n1,,2\n", 2, 3, "an empty field"),
        (b"0 1\n1 two\n", 2, 3, '"two" is no id'),
        (b"0 1\nvertex 2\n", 2, 1, '"vertex" is no id'),
        (b"u v\nw x\n0 1\n", 2, 1, '"w" is no id'),
        ("0 1\n1 \N{FULLWIDTH DIGIT TWO}\n".encode(), 2, 3, "is no id"),
        (b"0 1\n1 +2\n", 2, 3, r'"\+2" is no id'),
        (b"0 1\n1:2\n", 2, 1, '"1:2" is no id'),
        (b"%%MatrixMarket matrix coordinate\n3 3 1\n1 2\n", 1, 1, "(no sparse matrix|a Matrix Market file)"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_errors_in_text_name_line_and_column(tmp_path, text, line, column, what, packed):
    text = gzip.compress(text) if packed else text
    with pytest.raises(fp.errors.GraphFormatError, match=rf"g\.txt: line {line}, column {column}: .*{what}"):
        convert(tmp_path, text)
    assert names(tmp_path) == ["g.txt"]


# 18: lines of any length in bounded memory.
def test_a_huge_line_is_refused_and_a_huge_comment_is_not(tmp_path):
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"line 2, column 1048577: the line is longer than 1048576 bytes"
    ):
        convert(tmp_path, b"0 1\n" + b"1 2 " + b"x" * (3 << 20))
    records, _ = convert(tmp_path, b"#" + b"x" * (3 << 20) + b"\n" + PLAIN)
    assert records == RECORDS
    with pytest.raises(fp.errors.MemoryBudgetError, match="buffers for text"):
        convert(tmp_path, PLAIN, memory_limit="1M")


# The first error of the file is named, and line numbers count on over the pieces that threads parse.
@pytest.mark.parametrize("threads", [1, 3])
def test_line_numbers_of_large_files(tmp_path, threads):
    lines = [b"%d %d\n" % (v, v + 1) for v in range(300_000)]
    lines[250_000] = b"12 x\n"
    lines[270_000] = b"y 12\n"
    with pytest.raises(fp.errors.GraphFormatError, match='line 250001, column 4: "x" is no id'):
        convert(tmp_path, b"".join(lines), threads=threads)


def test_damaged_gzip_is_refused(tmp_path):
    packed = gzip.compress(b"".join(b"%d %d\n" % (v, v * 7 % 1000) for v in range(1000)))
    broken = bytearray(packed)
    broken[len(packed) // 2] ^= 0xFF
    for content in (packed[:-10], packed[: len(packed) // 2], bytes(broken)):
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"g\.gz: (the gzip data are damaged or cut off|line \d+)"
        ):
            convert(tmp_path, content, "g.gz")
        assert names(tmp_path) == ["g.gz"]


# Sidecar.


def test_sidecar_says_everything(tmp_path):
    _, edges = convert(tmp_path, PLAIN, directedness="symmetric", num_vertices=9)
    assert (edges.num_vertices, edges.directedness, edges.notes) == (9, "symmetric", ())
    assert names(tmp_path) == ["g.txt", "out.bin", "out.bin.json"]
    sidecar = json.loads((tmp_path / "out.bin.json").read_text())
    checksum = fp.open_graph(np.array(RECORDS)).identify()[1]
    expected = {
        "fastpart": 1,
        "dtype": "u32",
        "n": 9,
        "m": 4,
        "directedness": "symmetric",
        "checksum": checksum,
    }
    assert sidecar == expected


def test_num_vertices_below_the_ids_is_refused(tmp_path):
    with pytest.raises(fp.errors.ParameterError, match="num_vertices: 3, but the largest id is 3"):
        convert(tmp_path, PLAIN, num_vertices=3)
    with pytest.raises(fp.errors.ParameterError, match="num_vertices: relabelled graphs have no isolated"):
        convert(tmp_path, PLAIN, num_vertices=9, relabel=True)
    assert names(tmp_path) == ["g.txt"]


# Relabelling.


def test_relabelling_gives_dense_ids_in_order_of_appearance(tmp_path):
    big = 2**64 - 1
    records, edges = convert(tmp_path, f"70 {big}\n5 70\n{big} {big}\n".encode(), relabel=True)
    assert records == [[0, 1], [2, 0], [1, 1]]
    assert edges.num_vertices == 3
    ids = np.load(tmp_path / "out.bin.ids.npy")
    assert ids.dtype == np.uint64
    assert ids.tolist() == [70, big, 5]


@examples(10)
@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 90)), max_size=40))
def test_the_map_leads_back(tmp_path_factory, records):
    folder = tmp_path_factory.mktemp("relabel")
    array = np.array(records, np.uint64).reshape(-1, 2)
    np.save(folder / "wide.npy", array)
    text = "".join(f"{u} {v}\n" for u, v in records).encode()
    (folder / "wide.txt").write_bytes(text)
    for source in ("wide.npy", "wide.txt"):
        edges = fp.convert(folder / source, folder / "g.bin", relabel=True)
        ids = np.load(folder / "g.bin.ids.npy")
        dense = np.fromfile(folder / "g.bin", "<u4").reshape(-1, 2)
        assert (ids[dense] == array).all()
        assert len(ids) == len(np.unique(ids)) == edges.num_vertices


def test_relabelling_mends_ids_that_are_too_large(tmp_path):
    edges = raw(tmp_path / "g.bin", [[0, 2**32 - 2], [7, 0]])
    with pytest.raises(fp.errors.GraphFormatError, match="convert --relabel"):
        fp.open_graph(edges)
    assert fp.convert(edges, tmp_path / "dense.bin", relabel=True).num_vertices == 3


# Binary input.


@pytest.mark.parametrize("dtype", ["<u4", "<u8", "<i4", "<i8"])
def test_raw_input(tmp_path, dtype):
    name = dtype.replace("<", "").replace("4", "32").replace("8", "64")
    content = np.array(RECORDS).astype(dtype).tobytes()
    assert convert(tmp_path, content, "g.raw", dtype=name)[0] == RECORDS


# 13
@pytest.mark.parametrize(("dtype", "given"), [(">u4", None), (">u4", "u32"), (">u8", "u64"), (">i8", "i64")])
def test_swapped_input(tmp_path, dtype, given):
    content = np.array(RECORDS).astype(dtype).tobytes()
    assert convert(tmp_path, content, "g.raw", swap=True, dtype=given)[0] == RECORDS


def test_npy_input_of_either_layout(tmp_path):
    np.save(tmp_path / "g.npy", np.array(RECORDS).T)
    fp.convert(tmp_path / "g.npy", tmp_path / "g.bin")
    assert fp.open_graph(tmp_path / "g.bin").identify() == fp.open_graph(np.array(RECORDS)).identify()
    np.save(tmp_path / "two.npy", np.array([[0, 1], [0, 2]]))
    square = fp.convert(tmp_path / "two.npy", tmp_path / "g.bin", layout="edge_index")
    assert square.identify() == fp.open_graph(np.array([[0, 0], [1, 2]])).identify()


@pytest.mark.parametrize(
    ("name", "content", "options", "error", "text"),
    [
        ("g.raw", bytes(12), {}, fp.errors.GraphFormatError, r"g\.raw: length 12 is not a multiple of 8"),
        (
            "g.raw",
            bytes(12),
            {"dtype": "u64"},
            fp.errors.GraphFormatError,
            r"g\.raw: length 12 is not a multiple of 16",
        ),
        ("g.raw", b"\xff" * 8, {}, fp.errors.GraphFormatError, "record 0 holds the id 4294967295"),
        ("g.raw", b"\xff" * 16, {"dtype": "i64"}, fp.errors.GraphFormatError, "record 0 holds the id -1"),
        ("g.raw", b"\xff" * 16, {"dtype": "i64", "relabel": True}, fp.errors.GraphFormatError, "the id -1"),
        (
            "g.txt",
            PLAIN,
            {"layout": "edge_index"},
            fp.errors.ParameterError,
            "layout: text holds one record a line",
        ),
        (
            "g.txt",
            PLAIN,
            {"directedness": "mixed"},
            fp.errors.ParameterError,
            "directedness: unknown value 'mixed'. Valid values are 'undirected'",
        ),
        (
            "g.txt",
            PLAIN,
            {"dtype": "f32"},
            fp.errors.ParameterError,
            "dtype: unknown value 'f32'. Valid values are 'u32'",
        ),
        ("g.txt", PLAIN, {"num_vertices": -1}, fp.errors.ParameterError, "num_vertices: -1"),
        ("g.txt", PLAIN, {"relabel": 1}, TypeError, "relabel: expected True or False, got int"),
        ("g.txt", PLAIN, {"swap": "no"}, TypeError, "swap: expected True or False, got str"),
        ("g.txt", PLAIN, {"threads": -1}, fp.errors.ParameterError, "threads: -1"),
    ],
)
def test_input_and_parameters_that_are_refused(tmp_path, name, content, options, error, text):
    with pytest.raises(error, match=text):
        convert(tmp_path, content, name, **options)
    assert names(tmp_path) == [name]


def test_swapping_a_npy_is_refused(tmp_path):
    np.save(tmp_path / "g.npy", np.array(RECORDS))
    with pytest.raises(fp.errors.ParameterError, match=r"swap: a \.npy file says its byte order itself"):
        fp.convert(tmp_path / "g.npy", tmp_path / "out.bin", swap=True)
    assert names(tmp_path) == ["g.npy"]


# Output.


# 36
@pytest.mark.parametrize("alias", ["itself", "symlink", "hard link", "dots"])
@pytest.mark.parametrize("relabel", [False, True])
def test_output_that_is_the_input_is_refused(tmp_path, alias, relabel):
    source = raw(tmp_path / "g.bin", RECORDS)
    out = tmp_path / "other.bin"
    match alias:
        case "itself":
            out = source
        case "symlink":
            out.symlink_to(source)
        case "hard link":
            os.link(source, out)
        case "dots":
            out = tmp_path / ".." / tmp_path.name / "g.bin"
    before = names(tmp_path)
    with pytest.raises(fp.errors.ParameterError, match=r"out: .* is the input\. Name another file"):
        fp.convert(source, out, relabel=relabel)
    assert names(tmp_path) == before
    assert source.read_bytes() == np.array(RECORDS, "<u4").tobytes()


# 36: the map and the sidecar are outputs, too.
def test_input_under_the_name_of_a_by_product_is_refused(tmp_path):
    np.save(tmp_path / "out.bin.ids.npy", np.array(RECORDS))
    with pytest.raises(fp.errors.ParameterError, match="is the input"):
        fp.convert(tmp_path / "out.bin.ids.npy", tmp_path / "out.bin", relabel=True)
    (tmp_path / "out.bin.json").write_bytes(PLAIN)
    with pytest.raises(fp.errors.ParameterError, match="is the input"):
        fp.convert(tmp_path / "out.bin.json", tmp_path / "out.bin")
    assert names(tmp_path) == ["out.bin.ids.npy", "out.bin.json"]
    assert (tmp_path / "out.bin.json").read_bytes() == PLAIN


def test_output_without_a_place_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileNotFoundError, match="absent"):
        fp.convert(raw(tmp_path / "g.bin", RECORDS), tmp_path / "absent" / "out.bin")
    with pytest.raises((fp.errors.ParameterError, IsADirectoryError), match="folder"):
        fp.convert(tmp_path / "g.bin", tmp_path / "folder")
    assert names(tmp_path) == ["folder", "g.bin"]


# 1
def test_missing_input(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"absent\.txt"):
        fp.convert(tmp_path / "absent.txt", tmp_path / "out.bin")
    assert names(tmp_path) == []


def test_a_conversion_replaces_an_older_one(tmp_path):
    convert(tmp_path, PLAIN, num_vertices=70)
    records, edges = convert(tmp_path, b"4 5\n")
    assert (records, edges.num_vertices) == ([[4, 5]], 6)


def test_refused_conversions_leave_the_older_output(tmp_path):
    convert(tmp_path, PLAIN)
    before = (tmp_path / "out.bin").read_bytes()
    with pytest.raises(fp.errors.GraphFormatError, match="line 2"):
        convert(tmp_path, b"x y z\n? ?\n")
    assert (tmp_path / "out.bin").read_bytes() == before
    assert names(tmp_path) == ["g.txt", "out.bin", "out.bin.json"]


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_no_byte(tmp_path, threads):
    text = b"".join(b"%d %d\n" % (v % 977, v * v % 1009) for v in range(200_000))
    (tmp_path / "g.txt").write_bytes(text)
    one = fp.convert(tmp_path / "g.txt", tmp_path / "one.bin", threads=1)
    many = fp.convert(tmp_path / "g.txt", tmp_path / "many.bin", threads=threads)
    assert one.identify() == many.identify()
    assert (tmp_path / "one.bin").read_bytes() == (tmp_path / "many.bin").read_bytes()
