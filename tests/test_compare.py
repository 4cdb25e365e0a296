"""Comparisons: what a row says, who may compete, what is refused, what is saved."""

import json
import os

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.measures.compare.entries import peak
from fastpart.measures.compare.outcomes import LISTED_PARTS, MATRIX_PARTS
from fastpart.partitions.partitioners import PARTITIONERS, VARIANTS
from soaked import examples, some_of
from strategies import edge_lists, raw

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [5, 5]], dtype=np.uint32)
"""Two triangles joined by one edge, and a loop."""

ALWAYS = ["of", "algorithm", "k", "n", "m", "loops", "cut_ratio", "vertex_balance", "edge_balance", "halo_rf", "rf",
          "replica_balance", "above_bound", "seconds", "edges_per_s", "bytes_per_vertex", "error"]  # fmt: skip


def halves(edges, k):
    return np.arange(edges.num_vertices) * k // edges.num_vertices


def alternating(edges, k):
    return fp.EdgePartition(np.arange(edges.num_edges) % k, k)


def rows(comparison):
    return comparison.summary.rows(named=True)


@examples(10)
@given(graph=edge_lists(), k=st.integers(1, 5), data=st.data())
def test_a_row_is_the_evaluation_of_the_partition(graph, k, data):
    n, edges = graph
    edges = fp.open_graph(edges, num_vertices=n)
    some = st.integers(0, k - 1)
    vertex = fp.VertexPartition(data.draw(st.lists(some, min_size=n, max_size=n)), k)
    edge = fp.EdgePartition(data.draw(st.lists(some, min_size=len(graph[1]), max_size=len(graph[1]))), k)
    compared = fp.compare(edges, k, [("v", vertex), ("e", edge)])
    assert compared.summary.columns == ALWAYS
    for row, part in zip(rows(compared), (vertex, edge), strict=True):
        expected = fp.evaluate(edges, part).summary.row(0, named=True)
        expected.pop("components", None)  # the table of a comparison leaves them out
        assert {name: row[name] for name in expected if name != "algorithm"} == {
            name: value for name, value in expected.items() if name != "algorithm"
        }
        told = {name for name in ALWAYS if row[name] is not None} - {"halo_rf", "above_bound"}
        assert told == (set(expected) | {"algorithm"}) - {"halo_rf"}
    assert [row["algorithm"] for row in rows(compared)] == ["v", "e"]


def test_each_algorithm_runs_at_each_k_in_the_order_named():
    done = fp.compare(EDGES, [3, 2], ["spring:passes=2", halves, ("edges", alternating)])
    assert [(row["algorithm"], row["k"]) for row in rows(done)] == [
        ("spring:passes=2", 3), ("halves", 3), ("edges", 3), ("spring:passes=2", 2), ("halves", 2), ("edges", 2),
    ]  # fmt: skip
    assert [row["of"] for row in rows(done)] == ["vertices", "vertices", "edges"] * 2
    assert all(row["seconds"] > 0 and row["bytes_per_vertex"] >= 0 for row in rows(done))
    for row in rows(done):
        assert row["edges_per_s"] == round(8 / row["seconds"])


def test_by_default_all_built_in_ones_in_both_forms_compete():
    splits = {"train": [0, 1]}
    entered = [row["algorithm"] for row in rows(fp.compare(EDGES, 2, peers=False, splits=splits))]
    assert {name.partition(":")[0] for name in entered} == set(PARTITIONERS)
    assert {"sigma:of=edges", "random:of=edges", "two_phase:scoring=hdrf"} < set(entered)
    assert len(entered) == len(set(entered))


def test_a_partitioner_of_edges_is_a_competitor_of_its_own(monkeypatch):
    def both(edges, k, *, of="vertices", seed=0, threads=None):
        assert (seed, threads) == (7, 1)
        return {"vertices": halves, "edges": alternating}[of](edges, k)

    monkeypatch.setitem(PARTITIONERS, "both", both)
    monkeypatch.setitem(VARIANTS, "both", ({"of": "edges"},))
    done = fp.compare(EDGES, 2, peers=False, seed=7, threads=1)
    items = {row["algorithm"]: row["of"] for row in rows(done)}
    assert (items["both"], items["both:of=edges"]) == ("vertices", "edges")
    done = fp.compare(EDGES, 2, [("both", {"of": "edges"})], seed=7, threads=1)
    assert [(row["algorithm"], row["of"]) for row in rows(done)] == [("both:of=edges", "edges")]


def test_parameters_reach_the_algorithm():
    edges = fp.open_graph(np.random.default_rng(0).integers(0, 300, (2000, 2), dtype=np.uint32))
    done = fp.compare(edges, 4, ["spring:balance=1.5:batch=1", ("spring", {"strict": False, "passes": 3})])
    parts = [
        fp.spring(edges, 4, balance=1.5, batch=1),
        fp.spring(edges, 4, balance=1.03, strict=False, passes=3),
    ]
    expected = [fp.evaluate(edges, part).summary["cut_ratio"][0] for part in parts]
    assert done.summary["cut_ratio"].to_list() == expected
    assert done.summary["algorithm"].to_list() == [
        "spring:balance=1.5:batch=1",
        "spring:strict=False:passes=3",
    ]


@pytest.mark.filterwarnings("ignore:chunk:UserWarning")
@pytest.mark.parametrize("chunk", [0.5, 1.0, 300])
def test_a_parameter_may_be_a_share_or_a_number(chunk):
    edges = np.random.default_rng(0).integers(0, 300, (2000, 2), dtype=np.uint32)
    done = fp.compare(edges, 4, [f"grem:chunk={chunk}"])
    assert (
        done.summary["cut_ratio"][0]
        == fp.evaluate(edges, fp.grem(edges, 4, balance=1.03, chunk=chunk)).summary["cut_ratio"][0]
    )
    assert done.summary["algorithm"][0] == f"grem:chunk={chunk}"


def test_labels_and_splits_are_measured_on_vertex_partitions():
    labels, splits = [0, 0, 0, 1, 1, 1], {"train": [0, 1], "test": [5]}
    done = fp.compare(EDGES, 2, [halves, alternating], labels=labels, splits=splits)
    expected = fp.evaluate(EDGES, halves(fp.open_graph(EDGES), 2), labels, splits).summary
    vertex, edge = rows(done)
    for name in ("train_balance", "test_balance", "label_skew"):
        assert vertex[name] == expected[name][0]
        assert edge[name] is None
    assert "val_balance" not in done.summary.columns


def test_a_finished_partition_is_measured_at_its_own_k():
    partition = fp.VertexPartition([0, 1, 2, 0, 1, 2], 3)
    done = fp.compare(EDGES, 2, [halves, partition])
    assert [(row["algorithm"], row["k"]) for row in rows(done)] == [("halves", 2), ("user", 3)]
    assert (rows(done)[1]["seconds"], rows(done)[1]["bytes_per_vertex"]) == (None, None)


def test_edge_partitions_have_the_halo_of_their_home_parts():
    done = fp.compare(EDGES, 2, [alternating, halves])
    homes = fp.home_parts(EDGES, alternating(fp.open_graph(EDGES), 2))
    assert rows(done)[0]["halo_rf"] == fp.evaluate(EDGES, homes).summary["halo_rf"][0]
    assert rows(done)[1]["halo_rf"] == fp.evaluate(EDGES, [0, 0, 0, 1, 1, 1]).summary["halo_rf"][0]


def refuses(edges, k):
    raise fp.errors.CapacityError("no room\nat all")


def breaks(edges, k):
    return {}["absent"]


def short(edges, k):
    return [0, 0]


def other_k(edges, k):
    return fp.VertexPartition(np.zeros(6, int), k + 1)


def test_who_fails_gets_a_row_with_the_reason():
    with pytest.warns(fp.errors.CapacityWarning):
        done = fp.compare(EDGES, 9, [refuses, breaks, "spring", short, other_k, "spring:balance=0.5"])
    assert [row["error"] for row in rows(done)] == [
        "no room at all",
        "KeyError: 'absent'",
        None,
        "the function returned 2 parts. Return one for each of the 6 vertices, or for each of the 8 records",
        "the function returned a partition of 10 parts instead of 9",
        "balance: 0.5 is not a ratio of at least 1, such as 1.05 for 5 % above the mean",
    ]
    failed = rows(done)[0]
    assert {name for name in ALWAYS if failed[name] is not None} == {
        "algorithm",
        "k",
        "n",
        "m",
        "loops",
        "error",
    }
    assert rows(done)[5]["of"] == "vertices"
    assert "refuses, k = 9: no room at all" in str(done)


def test_an_internal_error_keeps_its_traceback(tmp_path):
    def breaks(graph, k):
        return [][k]

    def refuses(graph, k):
        raise fp.errors.ParameterError("no")

    done = fp.compare(EDGES, 2, [breaks, refuses])
    broken, refused = done.outcomes
    assert broken.row["error"] == "IndexError: list index out of range"
    assert "in breaks\n    return [][k]" in broken.traceback
    assert refused.traceback is None
    done.save(tmp_path / "comparison.json")
    assert fp.open_comparison(tmp_path / "comparison.json").outcomes == done.outcomes
    done.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<summary>IndexError: list index out of range</summary><pre>Traceback" in page
    assert page.count("<details>") == 1


def test_what_the_progress_callback_raises_is_not_a_reason():
    def progress(phase, done, total):
        if phase.startswith("spring, k=2: "):
            raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        fp.compare(EDGES, 2, ["spring"], progress=progress)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (
            {"algorithms": ["sprung"]},
            fp.errors.ParameterError,
            "algorithms: unknown name 'sprung'. The names are spring, ",
        ),
        (
            {"algorithms": ["spring:pases=2"]},
            fp.errors.ParameterError,
            "unknown parameter 'pases' of spring. Its parameters: balance",
        ),
        ({"algorithms": ["spring:seed=2"]}, fp.errors.ParameterError, "unknown parameter 'seed' of spring"),
        ({"algorithms": ["spring:passes=x"]}, fp.errors.ParameterError, "spring:passes: 'x' is not a number"),
        (
            {"algorithms": ["kaminpar:x=1"]},
            fp.errors.ParameterError,
            "unknown parameter 'x' of kaminpar. Its parameters: preset",
        ),
        (
            {"algorithms": ["mtkahypar:preset=qualty"]},
            fp.errors.ParameterError,
            "mtkahypar:preset: unknown value 'qualty'. Valid values are 'default', 'deterministic', "
            "'deterministic_quality', 'quality', 'highest_quality', 'large_k'. Did you mean 'quality'?",
        ),
        (
            {"algorithms": [("mtkahypar", {"preset": 3})]},
            TypeError,
            "mtkahypar:preset: expected a string, got int",
        ),
        (
            {"algorithms": ["kaminpar:preset=best"]},
            fp.errors.ParameterError,
            "kaminpar:preset: unknown value 'best'",
        ),
        (
            {"algorithms": ["buffcut:buffer=1"]},
            fp.errors.ParameterError,
            "buffcut:buffer: 1 is not between 2",
        ),
        (
            {"algorithms": ["heistream:batch=0"]},
            fp.errors.ParameterError,
            "heistream:batch: 0 is not between 1",
        ),
        ({"algorithms": []}, fp.errors.ParameterError, "the list is empty"),
        ({"algorithms": [halves, halves]}, fp.errors.ParameterError, "two are called 'halves'"),
        ({"algorithms": "spring"}, TypeError, "expected a list"),
        ({"algorithms": [3]}, TypeError, "got int"),
        ({"algorithms": [("", halves)]}, TypeError, "got tuple"),
        ({"k": 0}, fp.errors.ParameterError, "k: 0 is not between"),
        ({"k": [2, 2.0]}, TypeError, "k: expected an integer"),
        ({"seed": -1}, fp.errors.ParameterError, "seed"),
        ({"time_limit": 0}, fp.errors.ParameterError, "time_limit: 0 is not above 0"),
        ({"time_limit": float("nan")}, fp.errors.ParameterError, "time_limit: nan is not above 0"),
        ({"time_limit": "9"}, TypeError, "time_limit: expected a number"),
        ({"labels": [1]}, fp.errors.ParameterError, "labels: 1 rows for 6 vertices"),
        ({"splits": {"train": [9]}}, fp.errors.ParameterError, "splits: train holds the id 9"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_anything_runs(given, error, text):
    def never(edges, k):
        raise AssertionError("it ran")

    with pytest.raises(error, match=text):
        fp.compare(EDGES, **({"k": 2, "algorithms": [never]} | given))


def test_memory_is_the_growth_of_the_call():
    held = np.ones(1 << 20)
    with peak() as taken:
        more = np.ones(4 << 20)
    # The system may take a few pages of others back meanwhile.
    assert more.nbytes - (64 << 10) <= taken.growth < more.nbytes + held.nbytes


# Files.


@pytest.fixture
def compared(tmp_path):
    graph = np.random.default_rng(0).integers(0, 90, (400, 2), dtype=np.uint32)
    path = raw(tmp_path / "a <b> & c.bin", graph)
    return fp.compare(path, [2, 70, 1100], ["spring", alternating, refuses], peers=False)


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
def test_saved_as_json_and_loaded(compared, tmp_path):
    compared.save(tmp_path / "c.json")
    loaded = fp.open_comparison(tmp_path / "c.json")
    assert loaded == compared
    assert loaded.summary.equals(compared.summary)
    assert str(loaded) == str(compared)
    for ours, theirs in zip(compared.outcomes, loaded.outcomes, strict=True):
        kept = [ours.row["of"] is not None and ours.row["k"] <= most for most in (LISTED_PARTS, MATRIX_PARTS)]
        assert [theirs.parts is not None, theirs.matrix is not None] == [
            kept[0],
            kept[1] and ours.row["of"] == "vertices",
        ]
        if theirs.parts is not None:
            assert theirs.parts.rows() == ours.parts.rows()
        if theirs.matrix is not None:
            assert np.array_equal(theirs.matrix, ours.matrix)
    assert os.path.getsize(tmp_path / "c.json") < 60_000


def test_predicted_traffic_is_saved_and_loaded(tmp_path):
    compared = fp.compare(EDGES, 2, ["spring"], fanouts=[2], splits={"train": [0, 1]}, peers=False)
    assert compared.summary["remote_rows"].null_count() == 0
    compared.save(tmp_path / "c.json")
    assert fp.open_comparison(tmp_path / "c.json").summary.equals(compared.summary)


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
def test_saved_as_parquet_is_the_table(compared, tmp_path):
    compared.save(tmp_path / "c.parquet")
    assert pl.read_parquet(tmp_path / "c.parquet").equals(compared.summary)
    with pytest.raises(
        fp.errors.ParameterError,
        match=r"unknown suffix '.xls' .*. Use .json, .csv, .md, .tex, .parquet, .bib, .html, .svg, .png or",
    ):
        compared.save(tmp_path / "c.xls")
    assert "c.xls" not in os.listdir(tmp_path)


def deep(levels):
    nested = [1, 2]
    for _ in range(levels):
        nested = [nested, 2]
    return nested


DAMAGE = {
    "no comparison": lambda content: content.pop("fastpart_comparison"),
    "of the future": lambda content: content.update(fastpart_comparison=4),
    "no graphs": lambda content: content.pop("graphs"),
    "n is text": lambda content: content["graphs"][0].update(n="9"),
    "a row of another graph": lambda content: content["rows"][0].update(graph="other"),
    "a seed below 0": lambda content: content["rows"][0].update(seed=-1),
    "a mark that is a number": lambda content: content["rows"][0].update(above_bound=1),
    "no provenance": lambda content: content.pop("provenance"),
    "a bound below the mean": lambda content: content["provenance"].update(balance=0.5),
    "a date that is a number": lambda content: content["provenance"].update(date=2026),
    "seeds that are a number": lambda content: content["provenance"].update(seeds=3),
    "versions that are a list": lambda content: content["provenance"].update(versions=["1"]),
    "a machine without a processor": lambda content: content["provenance"]["machine"].pop("processor"),
    "parameters that are a list": lambda content: content["provenance"]["parameters"].update(spring=[1]),
    "rows is a number": lambda content: content.update(rows=3),
    "a row is a list": lambda content: content["rows"].append([]),
    "k is text": lambda content: content["rows"][0].update(k="<b>"),
    "k is huge": lambda content: content["rows"][0].update(k=2**40),
    "of is foreign": lambda content: content["rows"][0].update(of="both"),
    "of is a number": lambda content: content["rows"].append(
        {**content["rows"][0], "seed": 1, "error": "no room", "of": 1.5}
    ),
    "the algorithm is a number": lambda content: content["rows"][0].update(algorithm=1),
    "seconds is text": lambda content: content["rows"][0].update(seconds="fast"),
    "cut is a list": lambda content: content["rows"][0].update(cut_ratio=[1]),
    "parts are missing": lambda content: content["rows"][0]["parts"].pop("halo"),
    "parts are texts": lambda content: content["rows"][0]["parts"].update(load=["a", "b"]),
    "a part too many": lambda content: [part.append(1) for part in content["rows"][0]["parts"].values()],
    "a ragged matrix": lambda content: content["rows"][0]["matrix"][0].pop(),
    "a matrix of texts": lambda content: content["rows"][0].update(matrix=[["a", "b"], ["c", "d"]]),
    "a cut that is missing": lambda content: content["rows"][0].update(cut_ratio=None),
    "infinite": lambda content: content["rows"][0].update(cut_ratio=float("inf")),
    "negative seconds": lambda content: content["rows"][0].update(seconds=-1.0),
    "an error that is a number": lambda content: content["rows"][0].update(error=3),
    "half a load": lambda content: content["rows"][0]["parts"].update(load=[2.5, 3.5]),
    "a negative matrix": lambda content: content["rows"][0].update(matrix=[[-1, 0], [0, 1]]),
    "a part without a number": lambda content: content["rows"][0]["parts"].update(val=[float("nan"), 1]),
    "a count beyond int64": lambda content: content["rows"][0]["parts"].update(load=[2**70, 1]),
    "parts that are rows": lambda content: content["rows"][0].update(parts=[{"load": 1}, {"load": 2}]),
    "deep lists": lambda content: content["rows"][0]["parts"].update(cap=deep(500)),
    "too late a cap": lambda content: content["rows"][0]["parts"].update(cap=["x", "y"]),
}


@pytest.mark.parametrize("name", some_of(DAMAGE, [*DAMAGE][::3]))
def test_a_damaged_comparison_is_refused(tmp_path, name):
    fp.compare(EDGES, 2, ["spring", alternating], peers=False).save(tmp_path / "c.json")
    content = json.loads((tmp_path / "c.json").read_text())
    DAMAGE[name](content)
    (tmp_path / "c.json").write_text(json.dumps(content))
    said = (
        "Upgrade fastpart"
        if name == "of the future"
        else r"not a comparison .*fastpart compare -o NAME\.json"
    )
    with pytest.raises(fp.errors.GraphFormatError, match=rf"c\.json: .*{said}"):
        fp.open_comparison(tmp_path / "c.json")


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"3", b"\xff", b"{", b"[" * 100_000, b'{"fastpart_comparison": NaN}']
)
def test_another_file_is_no_comparison(tmp_path, text):
    (tmp_path / "c.json").write_bytes(text)
    with pytest.raises(fp.errors.GraphFormatError, match="not a comparison"):
        fp.open_comparison(tmp_path / "c.json")


# The command line.


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    """Run a command in a folder with a graph and its sidecar."""
    monkeypatch.chdir(tmp_path)
    raw(tmp_path / "g.bin", EDGES)
    sidecar = {"fastpart": 1, "dtype": "u32", "n": 6, "m": 8, "directedness": "undirected"}
    (tmp_path / "g.bin.json").write_text(json.dumps(sidecar))
    return run


def test_the_command_prints_the_table(run):
    code, out, err = run("compare", "g.bin", "-k", "2,3", "--algorithms", "spring,spring:passes=2")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    bound = "Bound: parts of at most 1.03 of the mean, rounded up. * marks parts above it."
    assert lines[:4] == ["g.bin: n = 6, m = 8, 1 loops", bound, "", "vertex partitions"]
    assert [line.split()[:2] for line in lines[5:]] == [
        [name, k] for k in "23" for name in ("spring", "spring:passes=2")
    ]
    assert sorted(os.listdir()) == ["g.bin", "g.bin.json"]


def test_the_command_as_json_and_into_files(run):
    code, out, err = run("compare", "g.bin", "-k", 2, "--algorithms", "spring", "--json", "-o", "c.json")
    assert (code, err) == (0, "")
    content = json.loads(out)
    assert content["rows"] == fp.open_comparison("c.json").runs.rows(named=True)
    code, out, err = run("compare", "g.bin", "-k", 2, "--algorithms", "spring", "-o", "t.parquet")
    assert (code, err, out.splitlines()[-1]) == (0, "", "saved to t.parquet")
    assert pl.read_parquet("t.parquet")["algorithm"].to_list() == ["spring"]


def test_the_command_fails_if_nobody_made_a_partition(run):
    code, out, err = run("compare", "g.bin", "-k", 2, "--algorithms", "spring:balance=0.5")
    assert code == 1
    assert "spring:balance=0.5, k = 2: balance: 0.5 is not a ratio" in out
    assert err.startswith("fastpart: error: no algorithm returned a partition. The first error: balance: 0.5")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("-k", "x"), 2, "-k: 'x' is not a number"),
        (("-k", "2", "--algorithms", "sprung"), 2, "unknown name 'sprung'"),
        (("-k", "2", "--passes", "2"), 2, "unknown option '--passes'"),
        (("-k", "2", "-o", "c.xls"), 2, "unknown suffix '.xls'"),
        (("-k", "2", "-o", "missing/c.json"), 1, "missing: the folder of the output does not exist"),
        (("-k", "2", "-o", "g.bin.html/c.json"), 1, "does not exist"),
    ],
)
def test_the_command_refuses_in_one_line(run, arguments, code, text):
    got, out, err = run("compare", "g.bin", *arguments)
    assert (got, out) == (code, "")
    assert text in err
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == ["g.bin", "g.bin.json"]
