"""Errors lead on: each names the remedy, in Python by parameters and in the shell by options.

The first part holds the sixteen errors that once led nowhere, rows 82 and 83 of the list of inputs and faults.
"""

import os
import pickle
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.cli.call import _functions, read
from fastpart.cli.wording import Wording
from fastpart.core.notes import log
from fastpart.core.parameters import meant_parameter, seconds
from fastpart.errors import arg, code, marked, refusal, warn
from same_graph import same
from strategies import raw
from typed_graphs import authors

PARAMETERS = sorted(
    {name for each in _functions() for name in read(each) if "_" in name} - {"edge_index", "edge_features"}
)
"""Parameters that the shell spells otherwise."""

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]], np.uint32)
FAR = np.array([[0, 10**12], [1, 2]])


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """Run a command in a folder that holds a graph, and return its exit code and what it prints."""
    monkeypatch.chdir(tmp_path)
    raw(tmp_path / "g.bin", EDGES)

    def run(*words):
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err.removeprefix("fastpart: error: ")

    return run


# 1: tables as files.
@pytest.mark.parametrize("name", ["e.parquet", "e.csv"])
def test_tables_are_partitioned(shell, tmp_path, name):
    frame = pl.DataFrame(EDGES, schema=["source", "target"])
    (frame.write_csv if name.endswith("csv") else frame.write_parquet)(tmp_path / name)
    code, out, _ = shell("partition", name, "-k", "2", "-q")
    assert code == 0
    assert "cut_ratio" in out


# 2: arrays of strings.
@pytest.mark.parametrize(
    "kind",
    [
        np.array,
        lambda pairs: np.array(pairs, object),
        lambda pairs: np.array(pairs, "S"),
        lambda pairs: [tuple(pair) for pair in pairs],
        lambda pairs: tuple(map(list, zip(*pairs, strict=True))),
        lambda pairs: tuple(map(pl.Series, zip(*pairs, strict=True))),
    ],
)
def test_arrays_of_strings_are_numbered(kind):
    names = [["ann", "bob"], ["bob", "eve"], ["dan", "ann"]]
    same(fp.open_graph(kind(names)), [[0, 1], [1, 3], [2, 0]], 4)


# 3: columns without an id in some row.
def test_the_row_without_an_id_is_named():
    frame = pl.DataFrame({"source": [0, 1, None], "target": [1, 2, 0]})
    for given in (frame, frame.lazy(), frame.to_pandas(), frame.to_pandas().convert_dtypes()):
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"column 'source' has no id in row 2\. Drop such rows first$"
        ):
            fp.open_graph(given)
    with pytest.raises(TypeError, match=r"column 'source' is Float64\. Cast it, or name others: columns="):
        fp.open_graph(pl.DataFrame({"source": [0.5], "target": [1]}))


# 4 and 5: ids of an array that are too large.
@pytest.mark.parametrize(("edges", "parameter"), [(FAR, ""), (np.array([[0, 2**31]]), "max_vertices=")])
def test_large_ids_of_an_array_are_relabelled(edges, parameter):
    with pytest.raises(
        fp.errors.GraphFormatError, match="Pass relabel=True to number the vertices"
    ) as refused:
        fp.open_graph(edges)
    assert parameter in str(refused.value)
    assert not re.search("fastpart convert|big-endian|dtype", str(refused.value))
    graph = fp.open_graph(edges, relabel=True)
    ids = np.unique(edges)
    same(graph, np.searchsorted(ids, edges), len(ids))
    table = fp.store.restore(fp.VertexPartition(np.zeros(len(ids), int), 1), graph=graph)
    assert table["id"].sort().to_list() == ids.tolist()


# 6, 7 and 8, a data set of PyG, a sparse tensor and a dict with edge_index, are in test_open_objects.py.


# 9: labels of a table.
def test_labels_may_be_a_table(shell, tmp_path):
    pl.DataFrame({"y": [0, 0, 0, 1, 1, 1]}).write_csv(tmp_path / "s.csv")
    np.save(tmp_path / "part.npy", np.repeat([0, 1], 3))
    code, out, _ = shell("evaluate", "g.bin", "part.npy", "--labels", "s.csv", "-q")
    assert code == 0
    assert "label_skew" in out


# 10: parameters that do not exist.
@pytest.mark.parametrize(
    ("call", "word", "meant"),
    [
        (lambda: fp.partition(EDGES, num_parts=2), "num_parts", "k"),
        (lambda: fp.partition(EDGES, 2, balanse=1.1), "balanse", "balance"),
        (lambda: fp.multilevel(EDGES, 2, imbalance=1.1), "imbalance", "balance"),
        (lambda: fp.open_graph(EDGES, directed=True), "directed", "directedness"),
        (lambda: fp.train.sampled("parts", num_neighbors=[5]), "num_neighbors", "fanouts"),
        pytest.param(lambda: fp.train.compare(EDGES, 2, epocs=2), "epocs", "epochs", marks=pytest.mark.torch),
    ],
)
def test_python_asks_did_you_mean(call, word, meant):
    with pytest.raises(TypeError, match=rf"\(\) has no parameter '{word}'\. Did you mean '{meant}'\?$"):
        call()


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: fp.compare(EDGES, 2, algorithms=["sprng"]), "spring"),
        pytest.param(
            lambda: fp.train.sampled("parts", model="graphsge"), "graphsage", marks=pytest.mark.torch
        ),
        pytest.param(
            lambda: fp.train.compare(EDGES, 2, methods=["distgn"], features=0, labels=0, splits=0),
            "distgnn",
            marks=pytest.mark.torch,
        ),
        (lambda: fp.partition(EDGES, 2, objective="trafic"), "traffic"),
    ],
)
def test_python_asks_did_you_mean_of_names(call, meant):
    with pytest.raises((fp.errors.ParameterError, TypeError), match=rf"Did you mean '{meant}'\?"):
        call()


# 11: -k by other names.
@pytest.mark.parametrize(
    ("words", "given", "meant"),
    [
        (["partition", "g.bin", "--k", "2"], "--k", "-k"),
        (["partition", "g.bin", "--k=2"], "--k", "-k"),
        (["partition", "g.bin", "--num-parts", "2"], "--num-parts", "-k"),
        (["partition", "g.bin", "-k", "2", "--imbalance", "1.1"], "--imbalance", "--balance"),
        (["generate", "rmat", "r.bin", "-n", "5", "--m", "5"], "-n", "--n"),
    ],
)
def test_the_shell_asks_did_you_mean(shell, words, given, meant):
    code, _, err = shell(*words)
    assert code == 2
    assert err.startswith(f"unknown option '{given}'. Did you mean '{meant}'? (see `fastpart ")


# 12: a partition directory is no graph.
def test_what_opens_a_partition_directory(shell):
    assert shell("partition", "g.bin", "-k", "2", "-o", "parts", "-q")[0] == 0
    code, out, _ = shell("info", "parts")
    assert code == 0
    assert "2 parts of vertices by multilevel" in out
    code, _, err = shell("partition", "parts", "-k", "2")
    assert code == 1
    assert "`fastpart evaluate GRAPH DIRECTORY` measures it, and `fastpart verify DIRECTORY` checks it" in err
    with pytest.raises(fp.errors.GraphFormatError, match=r"fp\.open_partition opens it"):
        fp.open_graph("parts")


# 13: small integers.
@pytest.mark.parametrize("dtype", ["u1", "u2", "i1", "i2", ">i2"])
def test_small_integers_are_ids(dtype):
    same(fp.open_graph(EDGES.astype(dtype)), EDGES, 6)
    same(fp.open_graph(tuple(EDGES.T.astype(dtype))), EDGES, 6)
    if dtype[0] != ">":
        frame = pl.DataFrame(EDGES.astype(dtype), schema=["source", "target"])
        for table in (frame, frame.to_pandas(), frame.to_pandas().convert_dtypes()):
            same(fp.open_graph(table), EDGES, 6)
    with pytest.raises(fp.errors.GraphFormatError, match="the id -1"):
        fp.open_graph(np.array([[0, -1]], np.int8))


# 14: times with a unit.
def test_times_have_units(shell):
    assert shell("partition", "g.bin", "-k", "2", "--effort", "best", "--time-limit", "5m", "-q")[0] == 0
    assert shell("compare", "g.bin", "-k", "2", "--algorithms", "spring", "--time-limit", "1h")[0] == 0
    code, _, err = shell("partition", "g.bin", "-k", "2", "--time-limit", "5 days")
    assert code == 2
    assert err.startswith(
        "--time-limit: '5 days' is not a time. Write seconds, or a time such as 90s, 5m or 1h"
    )
    times = {"90": 90, "0.5": 0.5, "90s": 90, "5m": 300, "1.5h": 5400, "2M": 120}
    assert {text: seconds("t", text) for text in times} == times
    for text in ("", "-1", "1e3", "5x", "m", "1:30", "nan"):
        with pytest.raises(fp.errors.ParameterError, match="is not a time"):
            seconds("t", text)
    assert shell("train", "sampled", "parts", "--timeout", "soon")[2].startswith("--timeout: 'soon' is not")


# 15: a triangular matrix.
def test_a_triangular_matrix_is_doubted():
    sparse = pytest.importorskip("scipy.sparse")
    ring = sparse.coo_matrix((np.ones(4), ([0, 1, 2, 3], [1, 2, 3, 0])), (4, 4)).tocsr()
    whole = ring + ring.T
    for half in (sparse.triu(whole), sparse.tril(whole)):
        with pytest.warns(fp.errors.GraphWarning, match='is triangular.*pass directedness="undirected"'):
            assert fp.open_graph(half).directedness == "directed"
        assert fp.open_graph(half, directedness="undirected").directedness == "undirected"
    assert fp.open_graph(whole).directedness == "symmetric"  # none of these warns
    assert fp.open_graph(ring).directedness == "directed"


# 16: columns are known by their names, in any order.
def test_columns_are_known_by_their_names(tmp_path):
    frame = pl.DataFrame({"target": EDGES[:, 1], "source": EDGES[:, 0]})
    frame.write_csv(tmp_path / "e.csv")
    frame.write_parquet(tmp_path / "e.parquet")
    for source in (frame, frame.lazy(), frame.to_pandas(), tmp_path / "e.csv", tmp_path / "e.parquet"):
        same(fp.open_graph(source, directedness="directed"), EDGES, 6)


# The words of the shell.


@pytest.mark.parametrize(
    ("said", "in_shell"),
    [
        ("time_limit: -1 is not", "--time-limit: -1 is not"),
        ("labels, splits: leave them out", "--labels, --splits: leave them out"),
        ("balance_on[1]: expected integers", "--balance-on[1]: expected integers"),
        ("Pass splits= with train, or machines=[8, 8].", "Pass --splits with train, or --machines 8,8."),
        ('columns=("a", "b") or columns=(1, 2)', "--columns a,b or --columns 1,2"),
        ('Pass relation_weights={"cites": 2.0}', "Pass --relation-weights cites=2.0"),
        ("Pass num_vertices=5 or more, max_vertices=7.", "Pass --num-vertices 5 or more, --max-vertices 7."),
        ("strict=False keeps no cap. Write cites=2,writes=0.5", "strict=False keeps no cap. Write cites=2,writes=0.5"),
        ("here connected=False keeps them", "here --no-connected keeps them"),
        ("Pass connected=True to join", "Pass --connected to join"),
        ("Save the partition with standardise=True, or", "Save the partition with --standardise, or"),
        ("Open it with weights=False", "Open it with --weights no"),
        ("the file leaves balance_on=[] out", "the file leaves --balance-on vertices out"),
        ("Raise memory_limit or free memory", "Raise --memory-limit or free memory"),
        ("call f(memory_limit=3, seed=1) here", "call f(memory_limit=3, seed=1) here"),
        ("the column 'memory_limit' of a/max_vertices=3.csv", "the column 'memory_limit' of a/max_vertices=3.csv"),
        ("g.bin: n = 3, seed", "g.bin: n = 3, seed"),
    ],
)  # fmt: skip
def test_messages_name_options(said, in_shell):
    words = ["partition", "g.bin", "-k", "2", "--algorithm", "multilevel"]
    said = said if said[0] != "c" or ":" in said else f"Name {said}"
    assert Wording(words).of_shell(said).removeprefix("Name ") == in_shell


MARKED = [
    (f"{arg('balance_on', [])} leaves", "balance_on=[] leaves", "--balance-on vertices leaves"),
    (f"Pass {arg('k', 3)} or {arg('columns', ('a', 1))}", 'Pass k=3 or columns=("a", 1)', "Pass -k 3 or --columns a,1"),
    (f"Leave out {arg('strict', False)}", "Leave out strict=False", "Leave out --no-strict"),
    (f"a/seed=1 has {arg('row_bytes')}", "a/seed=1 has row_bytes=", "a/seed=1 has --row-bytes"),
    (f"{code('fp.f(p)', '`fastpart restore`')} lists", "fp.f(p) lists", "`fastpart restore` lists"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "python", "in_shell"), MARKED)
def test_each_front_writes_what_is_marked(text, python, in_shell):
    error = pickle.loads(pickle.dumps(fp.errors.ParameterError(f"k: no. {text}")))
    assert (str(error), error.args) == (f"k: no. {python}", (f"k: no. {python}",))
    assert (error.parameter, error.reason, error.remedy) == ("k", "no", python)
    other = pickle.loads(pickle.dumps(refusal(FileExistsError, 17, text, "x")))
    assert (other.strerror, marked(other)) == (python, text)
    words = Wording(["partition", "a/seed=1", "-k", "2"])
    assert words.of_shell(error._marked) == f"-k: no. {in_shell}"
    with pytest.warns(fp.errors.GraphWarning, match=re.escape(python)) as caught:
        warn(text, fp.errors.GraphWarning)
    assert marked(caught[0].message) == text


def test_notes_have_marks_for_other_fronts(caplog):
    with caplog.at_level("INFO", "fastpart"):
        log.info("%s: pass %s", "x", arg("seed", 3))
    assert caplog.messages == ["x: pass seed=3"]
    assert Wording(["partition"]).of_shell(caplog.records[0].marked) == "x: pass --seed 3"


def test_a_text_without_a_parameter_has_none():
    error = fp.errors.GraphFormatError("g.bin: not a graph. Convert it")
    assert (error.parameter, error.reason, error.remedy) == (None, "g.bin: not a graph", "Convert it")
    assert fp.errors.ParameterError("val, test: too large").parameter == "val"
    with pytest.raises(fp.errors.ParameterError) as refused:
        fp.partition(EDGES, 2, balance=0.5)
    assert refused.value.parameter == "balance"


def test_warnings_and_notes_name_options_too(shell):
    done = subprocess.run(
        [sys.executable, "-m", "fastpart", "info", "g.bin"],
        capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    assert "If isolated vertices follow, pass --num-vertices or write a sidecar" in done.stderr


def test_an_error_of_an_unknown_verb_or_algorithm_is_one_line(shell):
    assert Wording(["sprng"]).of_shell("time_limit: 3") == "time_limit: 3"
    assert Wording(["partition", "--algorithm", "sprng"]).of_shell("k: 3") == "k: 3"
    assert shell("partition", "g.bin", "-k", "2", "--algorithm", "sprng")[0] == 2


def test_names_of_other_libraries_are_real_ones_here():
    for word in ("num_parts", "--num-parts", "nparts"):
        assert meant_parameter(word, {"k": "-k"}) == ". Did you mean '-k'?"
    assert meant_parameter("num_parts", {"seed": "seed"}) == ""


# Help and tables fit the screen.


def test_help_fits_80_columns():
    commands = ["--help", "partition --help", "convert --help", "compare --help", "train compare --help"]
    commands += [
        "split-edges --help",
        "train links --help",
        "ingest --help",
        "partition --algorithm hep --help",
    ]
    code = "import sys; from fastpart.cli import main\nfor words in sys.argv[1:]: main(words.split())"
    for width in (80, 120):
        done = subprocess.run(
            [sys.executable, "-c", code, *commands],
            capture_output=True, text=True, timeout=60, check=True, env=os.environ | {"COLUMNS": str(width)},
        )  # fmt: skip
        assert done.stderr == ""
        assert max(map(len, done.stdout.splitlines())) <= width
        assert "as 8,8" in done.stdout
        assert "as [8, 8]" not in done.stdout


def test_the_summary_comes_last(shell):
    _, out, _ = shell("partition", "g.bin", "-k", "2", "-q")
    parts, summary = out.strip().split("\n\n")
    assert parts.startswith("part ")
    assert summary.startswith("of ")


@pytest.mark.parametrize(
    "name", ["seed=3.bin", "my threads=2.bin", "lake/year=2020/k=4/time_limit.bin", "memory_limit"]
)
def test_names_of_files_stay_as_they_are(shell, tmp_path, name):
    for given in (name, f"./{name}", f"{tmp_path}/{name}"):
        code, _, said = shell("partition", given, "-k", "2", "--seed", "1")
        assert code == 1
        assert os.path.normpath(given) in said
        assert Wording(["partition", given, "-k", "2"]).of_shell(f"no {given}. Pass seed=4") == (
            f"no {given}. Pass --seed 4"
        )


def test_what_is_no_option_stays_as_it_is():
    needs = Wording(["partition", "g.bin"]).of_shell('machines: needs of="vertices"')
    assert needs == "--machines: needs --of vertices"
    said = "rows of year=2020 have no column seed_of_rows. Pass seed=4"
    assert Wording(["partition", "g.bin", "-k", "2"]).of_shell(said) == said.replace("seed=4", "--seed 4")


REFUSALS = {
    "info {plain} --train": "PLAIN holds no features, no labels, no splits. Save the partition with "
    "`fastpart partition GRAPH -o DIR --features FILE --labels FILE --splits FILE`",
    "info {plain} --columns a,b": "--columns: leave it out, or name the graph",
    "info {graph} --fanouts 2": "--fanouts: pass --train, too",
    "plan {plain} --fanouts 2": "SOURCE: it has no features to plan for. Save it with --features",
    "plan {plain} --fanouts 2 --cache 2G": "unknown option '--cache'. Did you mean '--memory'?",
    "plan {plain} --fanouts 2 --memory 0.1": "--memory: '0.1' has no unit and is no whole number",
    "plan {plain} --fanouts 2 --temporal last": "SOURCE: it has no features to plan for",
    "plan {edges} --fanouts 2": "SOURCE: EDGES holds parts of edges. Pass a partition of the vertices",
    "train links {plain}": "Split the edges with `fastpart split-edges GRAPH TRAIN`, then run",
    "train distgnn {plain}": "Make an edge partition with `fastpart partition GRAPH --of edges -o DIR`",
    "train sampled {plain}": "PLAIN holds no features",
    "train sampled {plain} --resume": "PLAIN holds no features",
    "train sampled {plain} --overwrite": "PLAIN holds no features",
    "train sampled {edges}": "Make a vertex partition, as with `fastpart partition GRAPH --algorithm spring`, or",
    "train sampled FULL --resume": "--resume: needs --out, the folder to resume from",
    "train sampled FULL --overwrite": "--overwrite: needs --out, the folder to replace",
    "train sampled FULL --patience 3": "vertices (--splits FILE) or edges, or leave out --patience",
    "train sampled FULL --scores none --patience 3": "--patience: with --scores none no epoch is better than another. "
    "Leave it out, or use --scores sampled",
    "train sampled FULL --memory-limit 1M": "Raise --memory-limit, or use ",
    "train sampled FULL -o RUN --resume --overwrite": "--overwrite: --resume goes on with the training",
    "train sampled FULL --model rgcn": "",
    "train armada FULL --order global --hold 1": "--hold: --order global maps all parts. Leave it out, or use --order "
    "parts",
    "train distgnn {edges} --exchange never --delay 2": "--delay: 2, but --exchange never sends no messages",
    "train bytegnn FULL --temporal last --sampling ladies": "--sampling: ",
    "train links LINKS": "for example --embeddings 64, or save the partition with --features",
    "train links LINKS --embeddings 2 --temporal last": "",
    "train links typed/parts": "Split the edges with `fastpart split-edges GRAPH TRAIN`",
    "train sampled typed/parts": "Save the partition with labels and splits of a type. In the schema of",
    "train full typed/parts": "Save the partition with labels and splits of a type",
    "train embeddings LINKS --encoder rgcn": "Train an encoder over it with `fastpart train links`",
    "train full {plain} --patience 3": "",
    "train embeddings {plain}": "",
    "train sdt {graph}": "",
    "export dgl {plain} out": "",
    "export pyg {edges} out": "",
    "export text {graph} out": "",
    "partition {graph} -k 2 --cache 0.1": "unknown option '--cache'",
    "partition {graph} -k 0": "-k: 0 is not between 1",
    "partition {graph} -k 2 --objective traffic": "--splits: --objective traffic depends on the training "
    "vertices. Pass --splits with train",
    "partition {graph} -k 2 --of edges --machines 1,1": "--machines: needs --of vertices",
    "partition {graph} -k 2 --of edges --relation-weights a=2": "--relation-weights: needs a partition of "
    "the vertices. Leave it out",
    "partition {graph} -k 2 --relation-weights a=2": "--relation-weights: ",
    "partition {graph} -k 2 --balance 0.5": "--balance: 0.5 is not a ratio",
    "partition {graph} -k 2 --sizes 1,2,3": "--sizes: ",
    "partition {graph} -k 2 --time-limit soon": "--time-limit: 'soon' is not a time",
    "partition {graph} -k 2 --shared here": "--shared: needs --cluster",
    "partition {graph} -k 2 --cluster auto --objective halo": "--shared: name a folder",
    "partition {graph} -k 2 --memory-limit 1": "--memory-limit",
    "partition {graph} -k 2 --max-vertices 2": "",
    "partition {graph} -k 2 --num-vertices 2": "",
    "partition {graph} -k 2 --weights w.npy": "",
    "partition {graph} -k 2 --dtype u64": "",
    "partition {graph} -k 2 --comments x": "--comments: ",
    "partition {graph} -k 2 --fixed labels.npy": "",
    "partition {graph} -k 2 --labels labels.npy": "If trailing vertices are isolated, open the graph with "
    "--num-vertices 9",
    "partition {graph} -k 2 -o x --feature-dtype int8": "--feature-dtype: there are no features. Pass --features",
    "partition {graph} -k 2 -o x --standardise": "--standardise: there are no features. Pass --features",
    "partition {graph} -k 2 -o x --standardise --features x.npy": "Pass --splits",
    "partition {graph} -k 2 -o x --halo-hops 0 --edge-splits s.npz": "vertices, saved with --halo-hops 1 or 2",
    "partition {graph} -k 2 --algorithm sigma --of edges --balance-on b.npy": "",
    "partition {graph} -k 2 --algorithm metis": "",
    "partition {plain} -k 2": "`fastpart evaluate GRAPH DIRECTORY` measures it",
    "partition far.npy -k 2": "Relabel with `fastpart convert --relabel`",
    "partition three.csv -k 2": "Name two of them: --columns source,target or --columns 1,2",
    "partition https://example.org/a.csv https://example.org/b.csv -k 2": "",
    "refine {graph} absent.npy": "",
    "refine {graph} {edges}": "PARTITION: EDGES holds parts of edges. Pass a partition of the vertices",
    "refine {graph} {plain} -k 3": "",
    "update {graph} {plain} --moves 2": "--moves: ",
    "edges-of {graph} {edges}": "",
    "cache": "Did you mean 'conversions'?",
    "cluster {graph} --max-size 3 --method hollocou": "--max-size: needs --method modularity",
    "cluster {graph} -o c.csv": "--out: unknown suffix '.csv'",
    "order {graph} -o {graph}": "",
    "evaluate {graph} absent.npy": "",
    "evaluate {graph} {plain} --splits absent.npz --split 3": "",
    "evaluate far.npy {plain}": "",
    "restore {plain} --graph {plain} -o x.csv": "",
    "compare {graph} -k 2 --fanouts 2": "--splits: the traffic of training depends on its vertices. Pass --splits with "
    "train",
    "convert https://example.org/g.csv g.bin": "",
    "convert three.csv g.bin": "Name two of them: --columns source,target or --columns 1,2",
    "convert {graph} g.bin --columns a,b": "",
    "convert {graph} g.bin --max-vertices 2": "",
    "convert names.csv g.txt": "",
    "split-edges {graph} t.bin --val 2": "",
    "split-edges {graph} t.bin --times labels.npy": "",
    "ingest {graph} -o g": "",
    "ingest absent.yaml": "-o: name the folder of the graph",
    "ingest three.csv -o g --relabel": "unknown option '--relabel'",
    "generate rmat r.bin --n 0 --m 3": "--n: edges need at least one vertex",
    "generate planted r.bin --n 9 --m 9 --classes 0": "--classes: ",
    "report {graph} -o r.html": "is not a comparison",
    "verify {graph}": "",
    "upgrade {graph}": "",
    "work {graph} --task 0": "",
}
"""What commands say of what they refuse.

PLAIN is a directory without features, EDGES one of an edge partition, FULL one with features, labels and training
vertices, LINKS one with edge splits, typed/parts one of a graph with types, far.npy has an id above the limits,
three.csv has three columns of numbers, and labels.npy has nine rows for six vertices.
"""

PYTHON = re.compile(
    r"\bfp\.|\bfastpart\.[a-z]|\bp\.save|\.save\(|\b\w+\(\)|(?<![-\w:])[a-z_]+="
    r"|(?<![-\w])(source|partition|graph|out): |\b(" + "|".join(PARAMETERS) + r")\b"
)
"""Code, parameters with values, what the shell calls otherwise, and parameters with an underscore."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    graph = np.array([[v, (v + 1) % 6] for v in range(6)], np.uint32)
    np.save(folder / "g.npy", graph)
    np.save(folder / "far.npy", FAR)
    np.save(folder / "labels.npy", np.arange(9))
    (folder / "three.csv").write_text("a,b,c\n0,1,2\n1,2,0\n")
    (folder / "names.csv").write_text("source,target\nann,bob\nbob,eve\n")
    fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2).save(folder / "PLAIN", graph=graph)
    fp.algorithms.hdrf(graph, k=2).save(folder / "EDGES", graph=graph)
    features, halves = np.eye(6, dtype=np.float32), fp.VertexPartition([0, 0, 0, 1, 1, 1], k=2)
    np.save(folder / "x.npy", features)
    data = {"features": features, "labels": np.arange(6) % 2, "splits": {"train": np.arange(6)}}
    halves.save(folder / "FULL", graph=graph, **data)
    splits = fp.split_edges(graph, val=0.2, test=0.2)
    halves.save(folder / "LINKS", graph=splits.graph, edge_splits=splits)
    (folder / "typed").mkdir()
    authors().saved(folder / "typed")
    return folder


@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=pytest.mark.torch) if "train" in line else line for line in REFUSALS],
)
def test_no_refusal_speaks_python(shell, plain, monkeypatch, line):
    monkeypatch.chdir(plain)
    code, _, said = shell(*line.format(plain="PLAIN", edges="EDGES", graph="g.npy").split())
    assert code in (1, 2)
    assert REFUSALS[line] in said
    assert not PYTHON.search(said)
