"""Text whose ids are numbers or names: one description of a file, to which every line is held."""

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def opened(text, name="g.csv", **options):
    """Return the records of text by the ids in it."""
    data = text.encode()
    with open(name, "wb") as file:
        file.write(gzip.compress(data) if name.endswith(".gz") else data)
    return records_of(name, **options)


def records_of(name, **options):
    shutil.rmtree("cache", ignore_errors=True)
    graph = fp.open_graph(name, **options)
    (edges,) = Path("cache").rglob("edges.bin")
    records = np.fromfile(edges, "<u4").reshape(-1, 2).tolist()
    if graph.directory is None:
        return records
    ids = pl.read_parquet(graph.directory / "ids" / "vertex.parquet")["id"].to_list()
    return [[ids[u], ids[v]] for u, v in records]


NOTE = "with a mark of comments behind the first record"


def test_marks_begin_names_behind_the_header(caplog):
    caplog.set_level("INFO", "fastpart")
    assert opened("source,target\n#love,#peace\n#a,b\n") == [["#love", "#peace"], ["#a", "b"]]
    assert opened("# made by x\nsource,target\n#love,x\ny,z\n%a,//b\n")[2] == ["%a", "//b"]
    notes = [text for text in caplog.messages if NOTE in text]
    assert [re.search(r"g\.csv: (\d+) lines? .* line (\d+)\.", note).groups() for note in notes] == [
        ("2", "2"),
        ("2", "3"),
    ]
    remedy = re.search(r'comments="#"', notes[0])
    assert remedy
    assert opened("source,target\nx,y\n#a,b\n", comments="#") == [["x", "y"]]


def test_a_comment_between_names_is_refused_with_the_remedy():
    text = "source,target\nx,y\n# a comment\nz,k\n"
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"g\.csv: line 3, .*1 column, .*pass its mark: comments=\"#\""
    ):
        opened(text)
    assert opened(text, comments="#") == [["x", "y"], ["z", "k"]]


def test_comments_among_numbers_are_comments_anywhere():
    text = "# a\n1 2\n% b\n2 3\n// c\n"
    for options in ({}, {"relabel": True}, {"columns": (1, 2)}):
        assert opened(text, **options) == [[1, 2], [2, 3]]
    with pytest.raises(fp.errors.GraphFormatError, match='"#" is no id'):
        opened(text, comments="")
    assert opened("; a\n1 2\n; b\n2 3\n", comments=";") == [[1, 2], [2, 3]]
    for mark in ("1", " ", '"', "x"):
        with pytest.raises(fp.errors.ParameterError, match=r"^comments: "):
            opened(text, comments=mark)


@pytest.mark.parametrize("text", ["# only\n", "source,target\n", "\n\n", "\ufeff", "# a\n% b", "u v\n# x\n"])
def test_bytes_without_a_record_are_refused(text):
    for options in ({}, {"relabel": True}):
        with pytest.raises(fp.errors.GraphFormatError, match=r"g\.csv: no line is a record"):
            opened(text, **options)
    assert fp.open_graph(_write("empty.txt", "")).num_vertices == 0
    assert fp.open_graph([_write("a.txt", "u,v\n"), _write("b.txt", "u,v\n1,2\n")]).num_edges == 1


def _write(name, text):
    with open(name, "w") as file:
        file.write(text)
    return name


def test_lines_longer_than_the_first_are_refused_and_the_remedy_works():
    text = "0 1\n1 2 3\n2 3\n"
    for options in ({}, {"relabel": True}, {"columns": (1, 2)}, {"columns": (2, 1)}):
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"line 2, column 6: 3 columns, but the first line has 2"
        ) as error:
            opened(text, **options)
    command = re.search(r"`(awk .*)`", str(error.value))[1].replace("FILE", "g.csv")
    subprocess.run(f"{command} > edges.txt", shell=True, check=True)
    assert fp.open_graph("edges.txt").num_edges == 4
    with pytest.raises(fp.errors.GraphFormatError, match="2 columns, but the first line has 3"):
        opened("1,2,0.5\n3,4\n")
    assert opened("1 2 {}\n2 3 {'weight': 3, 'color': 'red'}\n", columns=(1, 2)) == [[1, 2], [2, 3]]


def test_a_first_line_that_counts_the_others_is_said(caplog):
    caplog.set_level("INFO", "fastpart")
    opened("4 5\n1 2\n2 3\n3 4\n4 1\n1 3\n")
    (note,) = [text for text in caplog.messages if "counts the lines behind it" in text]
    command = re.search(r"`(sed .*)`", note)[1].replace("FILE", "g.csv")
    subprocess.run(f"{command} > edges.txt", shell=True, check=True)
    assert fp.open_graph("edges.txt").num_edges == 5


@pytest.mark.parametrize(
    "text",
    [
        "# SNAP\n# FromNodeId\tToNodeId\n1\t2\n3\t4\n",
        "% sym unweighted\n% 2 4 4\n1  2\n\n3 \t 4 \n",
        "1 2\n\n\n# c\n3\t4\n",
        '"1","2"\n"3","4"\n',
        'source,target\n"1",2\n3,"4"\n',
    ],
)
@pytest.mark.parametrize("name", ["g.txt", "g.txt.gz"])
def test_what_is_read_is_read_with_relabel(text, name):
    for options in ({}, {"relabel": True}, {"columns": (1, 2)}):
        assert opened(text, name, **options) == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("source,target,label\nann,bob,\neve,dan,x\n", [["ann", "bob"], ["eve", "dan"]]),
        ("source\ttarget\tlabel\nann\tbob\t\neve\tdan\tx\n", [["ann", "bob"], ["eve", "dan"]]),
        ("Source, Target\nann, bob\neve , dan\n", [["ann", "bob"], ["eve", "dan"]]),
        ('source,target\n"a\nb",c\nd,"e ""f"", g"\n', [["a\nb", "c"], ["d", 'e "f", g']]),
        ('source,target\nd,e\n"a\r\nb",c\n', [["d", "e"], ["a\r\nb", "c"]]),
        ("source target\nann  bob\n\neve\tdan\n", [["ann", "bob"], ["eve", "dan"]]),
    ],
)
def test_names_as_people_write_them(text, records):
    assert opened(text) == records
    assert opened(text, "g.csv.gz") == records


def test_a_name_behind_many_numbers():
    text = "source,target\n" + "".join(f"{v},{v + 1}\n" for v in range(20_000)) + "ann,5\n"
    with pytest.raises(fp.errors.GraphFormatError, match=r'line 20002, column 1: "ann" is no id') as error:
        opened(text)
    remedy = re.search(r"columns=(\(.*\))$", str(error.value))[1]
    assert opened(text, columns=eval(remedy))[-1] == ["ann", "5"]
    assert opened(text, columns=eval(remedy), relabel=True)[0] == ["0", "1"]
    with pytest.raises(fp.errors.GraphFormatError, match='"-5" is negative'):
        opened("source,target\n0,1\n-5,2\n", columns=("source", "target"))


def test_names_without_a_header_and_each_remedy():
    text = "ann,bob\neve,dan\n"
    with pytest.raises(fp.errors.GraphFormatError, match='"eve" is no id') as error:
        opened(text)
    assert opened(text, columns=eval(re.search(r"columns=(\(.*\))$", str(error.value))[1])) == [
        ["eve", "dan"]
    ]
    with pytest.raises(
        fp.errors.ParameterError, match="nothing says whether the first line is a header"
    ) as error:
        opened(text, columns=(1, 2))
    subprocess.run(
        re.search(r"`(.*)`", str(error.value))[1].replace("FILE", "g.csv > h.csv"), shell=True, check=True
    )
    assert records_of("h.csv") == [["ann", "bob"], ["eve", "dan"]]
    with pytest.raises(fp.errors.GraphFormatError, match='"ann" is no id') as error:
        opened("1,2\nann,3\n")
    subprocess.run(
        re.search(r"`(.*)`", str(error.value))[1].replace("FILE", "g.csv > h.csv"), shell=True, check=True
    )
    assert records_of("h.csv", columns=("source", "target")) == [["1", "2"], ["ann", "3"]]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('source,target\n"a,b\nc,d\n', "line 2, column 1: a quote that does not close"),
        ('source,target\na,b\n"c,d\n', "line 3, column 1: a quote that does not close"),
        ('source,target\n1,2\n"3,4\n5,6\n', "line 3, column 1: a quote that does not close on its line"),
        ('source,target\na,b\n"c" x,d\n', "line 3, column 1: a quote that does not enclose its whole field"),
        ("source,target\na,b\nc\n", "line 3, .*1 column, but the first line has 2"),
        ("source,target\na,b\nc,d,e\n", "line 3, .*3 columns, but the first line has 2"),
        ("source,target\na,b\n,d\n", "line 3, column 1: an empty field where an id belongs"),
        ("source,target\na,b\nc,\0\n", "line 3, column 3: a NUL byte"),
    ],
)
def test_every_line_is_held_to_the_dialect(text, error):
    with pytest.raises(fp.errors.GraphFormatError, match=rf"^g\.csv: {error}"):
        opened(text)


@pytest.mark.parametrize("ids", ["1,2,0\n2,3,0\n", "a,b,0\nb,c,0\n"])
def test_weights_that_are_all_0_are_refused_under_the_name_of_the_file(ids):
    for options in ({}, {"relabel": True}):
        with pytest.raises(fp.errors.GraphFormatError, match=r"^g\.csv: .*all weights are 0"):
            opened("source,target,w\n" + ids, weights="w", **options)


def test_integers_of_128_bits():
    frame = pl.DataFrame({"source": [1, 2], "target": [2, 3], "w": [5, 6]})
    for dtype in (pl.Int128, pl.UInt128):
        wide = frame.cast(dtype)
        wide.write_parquet("g.parquet")
        for source in (wide, "g.parquet"):
            assert fp.open_graph(source, weights="w").weights.tolist() == [5, 6]
        assert fp.open_graph(wide.lazy(), columns=(1, 2)).num_edges == 2
        large = wide.with_columns(source=pl.lit(2**70, dtype))
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"'source' holds numbers that 64 bits do not hold.*cast\(str\)"
        ):
            fp.open_graph(large, columns=(1, 2))
        strings = large.with_columns(pl.col("source", "target").cast(str))
        assert fp.open_graph(strings, columns=(1, 2)).num_edges == 2


def test_results_of_an_empty_graph_are_restored():
    graph = fp.open_graph(pl.DataFrame(schema={"source": pl.String, "target": pl.String}))
    assert fp.store.restore(fp.VertexPartition([], 2), graph=graph).shape == (0, 2)


def test_the_shell_has_it_too(capsys):
    _write("g.csv", "source,target\nx,y\n#a,b\n")
    assert main(["info", "g.csv"]) == 0
    assert "--comments '#'" in (said := capsys.readouterr().err) or "--comments #" in said
    assert main(["info", "g.csv", "--comments", "#", "--json"]) == 0
    assert '"num_edges": 1' in (said := capsys.readouterr().out) or '"m": 1' in said
