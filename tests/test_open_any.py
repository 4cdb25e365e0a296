"""One door: whatever holds the edges, open_graph gives the graph of the array."""

import bz2
import gzip
import io
import lzma
import pickle
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given

import fastpart as fp
from fastpart.cli import main
from same_graph import RECORDS, parquet, same, text
from soaked import examples
from strategies import edge_lists, raw

SYMMETRIC = "%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n10 10 4\n6 8\n8 10\n1 10\n4 4\n"
GENERAL = "%%MatrixMarket matrix coordinate real general\n10 10 4\n6 8 1.5\n8 10 2\n1 10 0.25\n4 4 -3\n"


def zstd(content):
    pa = pytest.importorskip("pyarrow")
    return pa.compress(content, "zstd", asbytes=True)


def metis():
    neighbours = {v: set() for v in range(10)}
    for u, v in RECORDS.tolist():
        if u != v:
            neighbours[u].add(v)
            neighbours[v].add(u)
    rows = [" ".join(str(u + 1) for u in sorted(each)) for each in neighbours.values()]
    return ("10 3\n" + "\n".join(rows) + "\n").encode()


def binedgelist():
    return np.uint32(10).tobytes() + np.uint64(4).tobytes() + RECORDS.astype("<u4").tobytes()


U, V = (column.tolist() for column in RECORDS.T)

FILES = {
    "g.txt": text(),
    "snap.txt.gz": gzip.compress(text("\t", "# FromNodeId\tToNodeId\n")),
    "g.csv": text(",", "source,target\n"),
    "g.tsv.bz2": bz2.compress(text("\t")),
    "g.csv.xz": lzma.compress(text(",", "u,v\n")),
    "g.xz": lzma.compress(text()),
    "named.csv": b"id,Target,Source,x\n" + b"".join(b"1,%d,%d,y\n" % (v, u) for u, v in RECORDS.tolist()),
    "triples.tsv": b"head\trelation\ttail\n" + b"".join(b"%d\tr\t%d\n" % (u, v) for u, v in RECORDS.tolist()),
    "g.parquet": parquet(source=U, target=V),
    "wide.parquet": parquet(id=V, dst=V, src=U),
    "without-a-suffix": parquet(u=U, v=V),
    "g.binedgelist": binedgelist(),
    "g.mtx": SYMMETRIC.encode(),
    "g.mtx.gz": gzip.compress(SYMMETRIC.encode()),
    "g.mtx.xz": lzma.compress(SYMMETRIC.encode()),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_any_format_is_the_graph_of_the_array(tmp_path, name, recwarn):
    (tmp_path / name).write_bytes(FILES[name])
    graph = same(fp.open_graph(tmp_path / name))
    assert graph.path == tmp_path / name
    assert graph.directedness == "undirected"
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert not [each for each in recwarn if each.category is fp.errors.GraphWarning]
    same(pickle.loads(pickle.dumps(graph)))
    same(fp.open_graph(str(tmp_path / name)))
    assert fp.spring(tmp_path / name, 2).num_vertices == 10
    assert fp.convert(tmp_path / name, tmp_path / "out.bin").identify() == graph.identify()


def test_zstd(tmp_path):
    (tmp_path / "g.csv.zst").write_bytes(zstd(text(",", "source,target\n")))
    same(fp.open_graph(tmp_path / "g.csv.zst"))


def test_metis_graphs_list_each_edge_once(tmp_path):
    (tmp_path / "g.graph").write_bytes(metis())
    same(fp.open_graph(tmp_path / "g.graph"), [[0, 9], [5, 7], [7, 9]])
    (tmp_path / "weighted.graph").write_text("2 1 1\n2 3\n1 3\n")
    assert fp.open_graph(tmp_path / "weighted.graph").weights.tolist() == [3]


def test_matrices_say_what_a_record_means(tmp_path):
    (tmp_path / "g.mtx").write_text(GENERAL)
    graph = same(fp.open_graph(tmp_path / "g.mtx"))
    assert (graph.directedness, graph.weights) == ("directed", None)
    (tmp_path / "both.mtx").write_text(
        "%%MatrixMarket matrix coordinate integer general\n3 3 2\n1 2 4\n2 1 4\n"
    )
    assert fp.open_graph(tmp_path / "both.mtx").directedness == "symmetric"
    assert fp.open_graph(tmp_path / "both.mtx", directedness="directed").directedness == "directed"
    assert fp.open_graph(tmp_path / "both.mtx", weights="data").weights.tolist() == [4, 4]
    assert fp.open_graph(tmp_path / "both.mtx", weights=3).weights.tolist() == [4, 4]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("%%MatrixMarket matrix array real general\n2 2\n1\n", "line 1, column 1: no sparse matrix"),
        ("%%MatrixMarket matrix coordinate complex general\n2 2 0\n", "a matrix of complex values"),
        ("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 0\n", "a skew-symmetric matrix"),
        ("%%MatrixMarket matrix coordinate real general\n2 3 0\n", "line 2.*2 rows and 3 columns"),
        ("%%MatrixMarket matrix coordinate real general\n2 2\n", "line 2.*the numbers of rows"),
        ("%%MatrixMarket matrix coordinate real general\n% c\n", "ends before the numbers"),
        ("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n", "2 entries, but 1 lines"),
        ("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 3\n", r"entry 1: row 1, column 3"),
        ("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n0 1\n", r"outside 1\.\.2"),
        (
            "%%MatrixMarket matrix coordinate pattern general\n%\n2 2 1\n1 x\n",
            'line 4, column 3: "x" is no id',
        ),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_damaged_matrices(tmp_path, content, error, packed):
    file = tmp_path / ("g.mtx.gz" if packed else "g.mtx")
    file.write_bytes(gzip.compress(content.encode()) if packed else content.encode())
    with pytest.raises(fp.errors.GraphFormatError, match=rf"g\.mtx.*: .*{error}"):
        fp.open_graph(file)


def test_raw_records_that_look_like_text_are_raw_if_a_sidecar_says_so(tmp_path):
    records = np.full((16, 2), 0x20202020, "<u4")  # blanks
    fp.convert(raw(tmp_path / "g.bin", records), tmp_path / "h.bin", dtype="u32", num_vertices=2**30)
    assert fp.open_graph(tmp_path / "h.bin").num_edges == 16
    assert fp.open_graph(tmp_path / "g.bin", dtype="u32", max_vertices=2**30).num_edges == 16


# Several files.


def parts_in(folder):
    """Write the records in two files, and others that are not read."""
    (folder / "day=1").mkdir(parents=True)
    (folder / "b.csv").write_bytes(text(",", "source,target\n", RECORDS[:1]))
    (folder / "day=1" / "a.csv.gz").write_bytes(gzip.compress(text(",", "source,target\n", RECORDS[1:])))
    for ignored in ("_SUCCESS", ".b.csv.crc"):
        (folder / ignored).write_bytes(b"x")
    return [folder / "b.csv", folder / "day=1" / "a.csv.gz"]


def test_lists_globs_and_folders(tmp_path, monkeypatch):
    files = parts_in(tmp_path / "parts")
    assert same(fp.open_graph(files)).path is None
    assert same(fp.open_graph(tmp_path / "parts")).path == tmp_path / "parts"
    same(fp.open_graph(tuple(map(str, files))))
    same(fp.open_graph(files[::-1]), np.concatenate([RECORDS[1:], RECORDS[:1]]))
    same(fp.open_graph(str(tmp_path / "parts" / "**" / "*.csv*")))
    monkeypatch.chdir(tmp_path)
    assert same(fp.open_graph("parts/b.c?v"), RECORDS[:1], 8).num_edges == 1
    assert fp.convert(files, tmp_path / "g.bin").identify() == fp.open_graph("parts").identify()
    same(pickle.loads(pickle.dumps(fp.open_graph("parts"))))


def test_several_files_of_parquet_and_of_raw_records(tmp_path):
    for name, records in {"b.parquet": RECORDS[:2], "c.parquet": RECORDS[2:]}.items():
        columns = dict(zip(("x", "source", "target"), [[1.0] * 2, *records.T.tolist()], strict=True))
        (tmp_path / name).write_bytes(parquet(**columns))
    same(fp.open_graph(tmp_path))
    weighted = fp.open_graph(str(tmp_path / "*.parquet"), weights="x")
    assert weighted.weights.tolist() == [1] * 4
    same(fp.open_graph([raw(tmp_path / "1.bin", RECORDS[:3]), raw(tmp_path / "2.bin", RECORDS[3:])]))


def test_files_that_do_not_go_together(tmp_path):
    files = parts_in(tmp_path / "parts")
    (tmp_path / "g.graph").write_bytes(metis())
    (tmp_path / "g.parquet").write_bytes(parquet(u=U, v=V))
    with pytest.raises(fp.errors.ParameterError, match=r"b\.csv is text, but .*g\.parquet is parquet"):
        fp.open_graph([files[0], tmp_path / "g.parquet"])
    with pytest.raises(fp.errors.ParameterError, match=r"g\.graph is a whole graph"):
        fp.open_graph([tmp_path / "g.graph", files[0]])
    with pytest.raises(FileNotFoundError, match="no file matches"):
        fp.open_graph(tmp_path / "*.nothing")
    with pytest.raises(FileNotFoundError, match=r"absent\.csv"):
        fp.open_graph([files[0], tmp_path / "absent.csv"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(fp.errors.GraphFormatError, match="a directory without files of edges"):
        fp.open_graph(tmp_path / "empty")
    (tmp_path / "parts" / "y.npy").write_bytes(b"x")
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"in which \S*y\.npy holds no edges\)\. Name the files"
    ):
        fp.open_graph(tmp_path / "parts")


def test_a_partition_directory_is_no_graph(tmp_path):
    fp.spring(RECORDS, 2).save(tmp_path / "parts")
    with pytest.raises(fp.errors.GraphFormatError, match="a partition directory, and no graph"):
        fp.open_graph(tmp_path / "parts")


def test_the_standard_input(tmp_path, monkeypatch, capsys):
    for content in (text(), lzma.compress(text()), FILES["g.parquet"], FILES["g.mtx"], gzip.compress(text())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        graph = same(fp.open_graph("-", tmp_dir=tmp_path))
        same(pickle.loads(pickle.dumps(graph)))
        del graph
        assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"0 1\n1 x\n")))
    with pytest.raises(fp.errors.GraphFormatError, match=r'^stdin: line 2, column 3: "x" is no id'):
        fp.open_graph("-")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text())))
    same(fp.convert("-", tmp_path / "out.bin"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text())))
    assert main(["info", "-", "--json", "-q"]) == 0
    assert '"n": 10, "m": 4' in capsys.readouterr().out


# Columns.

WIDE = b"when,who,whom\n1,5,7\n2,7,9\n3,0,9\n4,3,3\n"


def test_columns_by_name_or_number(tmp_path, monkeypatch, capsys):
    (tmp_path / "g.csv").write_bytes(WIDE)
    frame = pl.read_csv(io.BytesIO(WIDE))
    frame.write_parquet(tmp_path / "g.parquet")
    sources = [tmp_path / "g.csv", tmp_path / "g.parquet", frame, frame.lazy(), frame.to_pandas()]
    for source in sources:
        for columns in (("who", "whom"), (2, 3), ["who", 3]):
            same(fp.open_graph(source, columns=columns))
        same(fp.open_graph(source, columns=("whom", "who")), RECORDS[:, ::-1])
        with pytest.raises((fp.errors.GraphFormatError, TypeError), match=r"when.*who.*whom.*columns="):
            fp.open_graph(source)
        with pytest.raises((fp.errors.ParameterError, fp.errors.GraphFormatError), match=r"no column .wer"):
            fp.open_graph(source, columns=("wer", "whom"))
        with pytest.raises((fp.errors.ParameterError, fp.errors.GraphFormatError), match="no column 4"):
            fp.open_graph(source, columns=(1, 4))
        with pytest.raises((fp.errors.ParameterError, fp.errors.GraphFormatError), match="columns: both"):
            fp.open_graph(source, columns=(2, "who"))
    monkeypatch.chdir(tmp_path)
    for columns in ("who,whom", "2,3"):
        assert main(["convert", "g.csv", "out.bin", "--columns", columns, "-q"]) == 0
        same(fp.open_graph("out.bin"))
    assert main(["info", "g.parquet", "--columns", "who,whom", "--json", "-q"]) == 0
    assert '"m": 4' in capsys.readouterr().out


def test_columns_without_a_header(tmp_path):
    (tmp_path / "g.txt").write_text("1 5 7 0.5\n2 7 9 1\n\n# c\n3 0 9 2\n4 3 3 4\n")
    same(fp.open_graph(tmp_path / "g.txt", columns=(2, 3)))
    graph = fp.open_graph(tmp_path / "g.txt", columns=(2, 3), weights=4)
    assert (graph.weights / graph.weight_scale).tolist() == [0.5, 1, 2, 4]
    with pytest.raises(fp.errors.GraphFormatError, match="no header names the columns"):
        fp.open_graph(tmp_path / "g.txt", columns=("a", "b"))
    with pytest.raises(fp.errors.GraphFormatError, match=r"which columns hold the ids.*columns="):
        fp.open_graph(tmp_path / "g.txt")
    (tmp_path / "g.txt").write_text("1 5 7\n2 7\n")
    with pytest.raises(fp.errors.GraphFormatError, match=r"line 2.*2 columns, but the first line has 3"):
        fp.open_graph(tmp_path / "g.txt", columns=(2, 3))


def test_weights_by_name(tmp_path):
    (tmp_path / "g.csv").write_text("source,target,w\n5,7,1\n7,9,2\n0,9,3\n3,3,0\n")
    graph = same(fp.open_graph(tmp_path / "g.csv", weights="w"))
    assert graph.weights.tolist() == [1, 2, 3, 0]
    assert fp.open_graph(tmp_path / "g.csv", weights=3) == graph
    assert fp.open_graph(tmp_path / "g.csv", weights=np.arange(4)).weights.tolist() == [0, 1, 2, 3]
    assert fp.open_graph(tmp_path / "g.csv").weights is None
    with pytest.raises(fp.FastpartError, match='weights: there is no column "x", only source, target, w'):
        fp.open_graph(tmp_path / "g.csv", weights="x")
    with pytest.raises(fp.FastpartError, match='weights: column 2 is "target", which holds ids'):
        fp.open_graph(tmp_path / "g.csv", weights=2)


def test_the_columns_that_were_taken_are_told(tmp_path, caplog):
    caplog.set_level("INFO", "fastpart")
    (tmp_path / "g.csv").write_text("source,target,w\n5,7,1\n")
    fp.open_graph(tmp_path / "g.csv")
    assert "the ids are in the columns source and target" in caplog.messages
    fp.open_graph(pl.DataFrame({"x": [0.5], "b": [1], "a": [0]}))
    assert "graph: the polars frame: the ids are in the columns b and a" in caplog.messages
    (tmp_path / "h.txt").write_text("5 7 0.5\n")
    fp.open_graph(tmp_path / "h.txt")
    assert "the ids are in the first two of 3 columns" in caplog.messages


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("source,target,from,to\n5,7,1,1\n", "several pairs of the columns source, target, from, to may"),
        ("source,target\n5,7,1\n", "the header names 2 columns"),
        ("a,b\nx,y\n", '"x" is no id.*columns=\\("a", "b"\\)'),
        ("source,target\n0.5,1\n", "floating-point number"),
        ("source,target\n-1,1\n", "negative"),
    ],
)
def test_ambiguous_or_wrong_text_is_refused(tmp_path, source, error):
    (tmp_path / "g.csv").write_text(source)
    with pytest.raises(fp.errors.GraphFormatError, match=rf"g\.csv: line \d+, column \d+: .*{error}"):
        fp.open_graph(tmp_path / "g.csv")


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"columns": "source,target"}, fp.errors.ParameterError, "Expected two names or numbers"),
        ({"columns": (1,)}, fp.errors.ParameterError, "Expected two names or numbers"),
        ({"columns": (1, 2.5)}, TypeError, "expected names or numbers, got float"),
        ({"columns": (True, 2)}, TypeError, "expected names or numbers, got bool"),
        ({"columns": (1, 2)}, fp.errors.ParameterError, "holds raw records"),
        ({"relabel": True}, fp.errors.ParameterError, "convert` relabels these"),
        ({"weights": 3}, fp.errors.ParameterError, "has no columns"),
    ],
)
def test_parameters_that_do_not_fit_raw_records(tmp_path, options, error, text):
    with pytest.raises(error, match=text):
        fp.open_graph(raw(tmp_path / "g.bin", RECORDS), **options)


def test_parameters_that_do_not_fit_arrays():
    with pytest.raises(fp.errors.ParameterError, match="columns: the source is no table"):
        fp.open_graph(RECORDS, columns=(1, 2))
    with pytest.raises(fp.errors.ParameterError, match="columns: the graph is open already"):
        fp.open_graph(fp.open_graph(RECORDS), columns=(1, 2))


# Ids that are not used.


def test_an_implausible_n_is_refused_in_every_door(tmp_path):
    far = np.array([[0, 1_700_000_000], [1, 2]])
    frame = pl.DataFrame(far, schema=["source", "target"])
    (tmp_path / "g.csv").write_bytes(text(",", "source,target\n", far))
    frame.write_parquet(tmp_path / "g.parquet")
    (tmp_path / "g.txt.xz").write_bytes(lzma.compress(text(records=far)))
    doors = [tmp_path / "g.csv", tmp_path / "g.parquet", tmp_path / "g.txt.xz", frame, frame.lazy(), far]
    doors += [raw(tmp_path / "g.bin", far), frame.to_pandas(), [tmp_path / "g.csv"]]
    for door in doors:
        name = door.name if hasattr(door, "name") else "g.csv" if isinstance(door, list) else "array"
        with pytest.raises(fp.errors.GraphFormatError, match=rf"{name}.*implausible.*(relabel|max_vertices)"):
            fp.open_graph(door)
        graph = fp.open_graph(door, max_vertices=2**31)
        assert graph.num_vertices == 1_700_000_001
        with pytest.raises(fp.errors.GraphFormatError, match="exceeds max_vertices=5000"):
            fp.open_graph(door, max_vertices=5000)
        assert fp.open_graph(door, num_vertices=1_800_000_000).num_vertices == 1_800_000_000


@examples(8)
@given(edge_lists(50, 40))
def test_text_its_packed_copies_parquet_and_frames_are_equal(tmp_path_factory, graph):
    n, edges = graph
    folder = tmp_path_factory.mktemp("same")
    lines = text(",", "source,target\n", edges) if len(edges) else b""
    for name, pack in {
        ".csv": bytes,
        ".csv.gz": gzip.compress,
        ".csv.bz2": bz2.compress,
        ".csv.xz": lzma.compress,
    }.items():
        (folder / f"g{name}").write_bytes(pack(lines))
    frame = pl.DataFrame(edges, schema=["source", "target"])
    frame.write_parquet(folder / "g.parquet")
    array = fp.open_graph(edges, num_vertices=n)
    for source in [*folder.iterdir(), frame, frame.lazy()]:
        assert fp.open_graph(source, num_vertices=n) == array


def test_links_out_of_a_folder_or_glob_are_refused(tmp_path):
    folder, other = tmp_path / "edges", tmp_path / "other.txt"
    folder.mkdir()
    (folder / "a.txt").write_text("0 1\n")
    other.write_text("1 2\n")
    (folder / "b.txt").symlink_to("a.txt")
    (tmp_path / "alias").symlink_to("edges")
    for source in (folder, folder / "*.txt", tmp_path / "alias", tmp_path / "alias" / "*.txt"):
        assert fp.open_graph(source).num_edges == 2
    (folder / "c.txt").symlink_to(other)
    for source in (folder, folder / "*.txt", folder / "**" / "*.txt", tmp_path / "alias"):
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"c\.txt: leads out of \S+ by a link\. .* in a list"
        ):
            fp.open_graph(source)
    assert fp.open_graph([folder / "a.txt", folder / "c.txt"]).num_edges == 2
    assert fp.open_graph(folder / "c.txt").num_edges == 1
