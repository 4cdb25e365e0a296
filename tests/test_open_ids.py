"""Ids that are no numbers 0..n-1: open_graph numbers strings, and numbers with gaps where that is asked for."""

import gzip
import lzma
import pickle

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from same_graph import same, text

NAMES = [["ann", "bob"], ["bob", "eve"], ["dan", "ann"]]
BY_RANK = [[0, 1], [1, 3], [2, 0]]  # of ann, bob, dan, eve


def ids_of(graph):
    table = pl.read_parquet(graph.directory / "ids" / "vertex.parquet")
    assert table["vertex"].to_list() == list(range(graph.num_vertices))
    return table["id"].to_list()


def test_strings_are_numbered_by_their_rank(tmp_path, caplog):
    caplog.set_level("INFO", "fastpart")
    frame = pl.DataFrame(NAMES, schema=["source", "target"], orient="row")
    lines = text(",", "source,target\n", NAMES)
    for name, content in {
        "g.csv": lines,
        "g.csv.gz": gzip.compress(lines),
        "g.csv.xz": lzma.compress(lines),
        "g.tsv": text("\t", "x\tfrom\tto\n", [["1", *record] for record in NAMES]),
        "quoted.csv": b'source,target\n"ann","bob"\n"bob","eve"\ndan,"ann"\n',
    }.items():
        (tmp_path / name).write_bytes(content)
    frame.write_parquet(tmp_path / "g.parquet")
    sources = [*sorted(tmp_path.iterdir()), frame, frame.lazy(), frame.to_pandas(), frame.to_arrow()]
    sources += [frame.cast(pl.Categorical), [tmp_path / "g.csv"]]
    for source in sources:
        caplog.clear()
        graph = same(fp.open_graph(source), BY_RANK, 4)
        assert ids_of(graph) == ["ann", "bob", "dan", "eve"]
        assert any("numbered by the rank of their ids" in note for note in caplog.messages)
        copy = same(pickle.loads(pickle.dumps(graph)), BY_RANK, 4)
        if graph.path is not None:
            assert ids_of(copy) == ids_of(graph)


def test_results_go_home_by_the_ids(tmp_path):
    (tmp_path / "g.csv").write_bytes(text(",", "source,target\n", NAMES))
    for source in (tmp_path / "g.csv", pl.read_csv(tmp_path / "g.csv")):
        graph = fp.open_graph(source)
        table = fp.store.restore(fp.VertexPartition([0, 1, 1, 0], 2), graph=graph)
        assert table.sort("id").rows() == [("ann", 0), ("bob", 1), ("dan", 1), ("eve", 0)]


def test_columns_of_strings(tmp_path):
    (tmp_path / "g.csv").write_bytes(text(",", "who,whom,w\n", [[*record, 2] for record in NAMES]))
    graph = fp.open_graph(tmp_path / "g.csv", columns=("who", "whom"), weights="w")
    assert same(graph, BY_RANK, 4).weights.tolist() == [2, 2, 2]
    with pytest.raises(fp.errors.ParameterError, match="nothing says whether the first line is a header"):
        fp.open_graph(tmp_path / "g.csv", columns=(1, 2))
    with pytest.raises(fp.errors.GraphFormatError, match="which columns hold the ids"):
        fp.open_graph(tmp_path / "g.csv")
    with pytest.raises(fp.errors.ParameterError, match="num_vertices: the vertices are those whose ids"):
        fp.open_graph(tmp_path / "g.csv", columns=("who", "whom"), num_vertices=9)


def test_numbers_with_gaps_are_relabelled_when_asked(tmp_path):
    wide = [[10**15, 7], [7, 2**62], [5, 10**15]]
    frame = pl.DataFrame(wide, schema={"source": pl.UInt64, "target": pl.UInt64}, orient="row")
    frame.write_parquet(tmp_path / "g.parquet")
    (tmp_path / "g.csv").write_bytes(text(",", "source,target\n", wide))
    for source in (frame, frame.lazy(), tmp_path / "g.parquet", tmp_path / "g.csv", frame.to_pandas()):
        with pytest.raises(fp.errors.GraphFormatError, match=r"(?i)(exceeds|outside).*relabel"):
            fp.open_graph(source)
        graph = same(fp.open_graph(source, relabel=True), [[2, 1], [1, 3], [0, 2]], 4)
        assert ids_of(graph) == [5, 7, 10**15, 2**62]


def test_a_graph_directory_opens(tmp_path):
    (tmp_path / "g.csv").write_bytes(text(",", "source,target\n", NAMES))
    graph = fp.open_graph(tmp_path / "g.csv")
    moved = graph.directory.rename(tmp_path / "graph")
    for source in (moved, f"{moved}/"):
        opened = same(fp.open_graph(source), BY_RANK, 4)
        assert (opened.path, opened.directory) == (moved, moved)
        assert pickle.loads(pickle.dumps(opened)) == opened
    with pytest.raises(fp.errors.ParameterError, match=r"columns: .*graph is a graph directory"):
        fp.open_graph(moved, columns=(1, 2))
    (moved / "edges.bin").unlink()
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"an incomplete graph directory, without edges\.bin"
    ):
        fp.open_graph(moved)


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (pl.DataFrame({"u": ["a", None], "v": ["b", "c"]}), "null|no id"),
        (pl.DataFrame({"u": ["a"], "v": [1]}), "column 'u' is String, but column 'v' is Int64"),
        (pl.DataFrame({"u": [0.5], "v": [1.5]}), "expected integers or strings, but column 'u' is Float64"),
        (pl.DataFrame({"u": ["a"], "v": ["b"], "src": [1], "dst": [2]}), "several pairs of columns"),
    ],
)
def test_frames_that_hold_no_edges(frame, error):
    for source in (frame, frame.lazy()):
        with pytest.raises((TypeError, fp.errors.GraphFormatError), match=error):
            fp.open_graph(source)


def test_weights_of_frames_with_strings():
    frame = pl.DataFrame(NAMES, schema=["source", "target"], orient="row").with_columns(w=pl.lit(0.5))
    for source in (frame, frame.lazy(), frame.to_pandas(), frame.to_arrow()):
        graph = same(fp.open_graph(source, weights="w"), BY_RANK, 4)
        assert (graph.weights / graph.weight_scale).tolist() == [0.5] * 3
        with pytest.raises(fp.errors.ParameterError, match="frame has no column 'x', only source, target, w"):
            fp.open_graph(source, weights="x")
    assert fp.open_graph(frame, weights=np.arange(3)).weights.tolist() == [0, 1, 2]


def test_lazy_frames_that_cannot_be_computed():
    frame = pl.LazyFrame({"source": ["1", "x"], "target": ["1", "2"]})
    for broken in (frame.with_columns(pl.col("nothing")), frame.cast(pl.Int64)):
        with pytest.raises(fp.errors.GraphFormatError, match=r"^graph: the lazy frame cannot be computed: "):
            fp.open_graph(broken)


def test_errors_of_strings_speak_of_the_file(tmp_path):
    (tmp_path / "g.csv").write_text("source,target\nann,bob\neve,\n")
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"g\.csv: line 3, column 5: an empty field where an id belongs$"
    ):
        fp.open_graph(tmp_path / "g.csv")
    (tmp_path / "g.csv").write_text("source,target\nann,bob\n")
    with pytest.raises(fp.FastpartError, match=r'weights: there is no column "x"'):
        fp.open_graph(tmp_path / "g.csv", weights="x")


def test_strange_objects_of_pandas():
    frame = pl.DataFrame({"u": ["a", "b"], "v": ["b", "c"]}).to_pandas()
    frame["u"] = [("a",), "b"]
    with pytest.raises(TypeError, match=r"column 'u' holds .* of type tuple"):
        fp.open_graph(frame)
    with pytest.raises(fp.errors.GraphFormatError, match="column 'v' has no id in row 1"):
        fp.open_graph(frame.assign(u=["a", "b"], v=["b", None]))
