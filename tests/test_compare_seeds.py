"""Comparisons that a paper can cite: one bound, several seeds and graphs, and what they were measured with."""

import getpass
import inspect
import json
import math
import platform
import re
import socket
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from fastpart.measures.compare.entries import BALANCE
from fastpart.measures.compare.outcomes import Outcome, merged, ratios_of
from fastpart.measures.compare.peers import PEERS
from strategies import raw

RANDOM = np.random.default_rng(0).integers(0, 200, (1500, 2), dtype=np.uint32)


def rows(frame):
    return frame.rows(named=True)


# The bound.


def test_all_algorithms_get_the_bound_of_the_comparison():
    seen = []

    def mine(graph, k, balance=1.5):
        seen.append(balance)
        return np.arange(graph.num_vertices) % k

    names = ["spring", "multilevel", "fennel", "sigma", "spring:balance=1.4", "two_phase", "random", mine]
    done = fp.compare(RANDOM, 4, names, balance=1.07)
    assert seen == [1.07]
    parameters = done.provenance["parameters"]
    bounds = {name: given.get("balance") for name, given in parameters.items()}
    assert bounds == dict.fromkeys(bounds, 1.07) | {"spring:balance=1.4": 1.4, "random": None}
    expected = fp.evaluate(RANDOM, fp.multilevel(RANDOM, 4, balance=1.07)).cut_ratio
    assert done.summary["cut_ratio"][1] == expected


def test_the_default_bound_is_one_for_all_and_none_leaves_each_its_own():
    names = ["spring", "fennel"]
    own, one = fp.compare(RANDOM, 4, names, balance=None), fp.compare(RANDOM, 4, names)
    for done, spring, fennel in ((own, 1.05, 1.1), (one, 1.03, 1.03)):
        cuts = [
            fp.spring(RANDOM, 4, balance=spring).cut_ratio,
            fp.algorithms.fennel(RANDOM, 4, balance=fennel).cut_ratio,
        ]
        assert done.summary["cut_ratio"].to_list() == cuts
        assert [each["balance"] for each in done.provenance["parameters"].values()] == [spring, fennel]
    assert inspect.signature(fp.compare).parameters["balance"].default == BALANCE
    assert own.summary["above_bound"].to_list() == [None, None]
    assert "Bound" not in str(own)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.floats(1, 1.5))
def test_a_mark_is_a_part_above_the_bound_rounded_up(parts, balance):
    n = len(parts)
    graph = fp.open_graph(np.zeros((0, 2), np.uint32), num_vertices=n)
    (row,) = rows(fp.compare(graph, 4, [fp.VertexPartition(parts, 4)], balance=balance).summary)
    most = np.bincount(parts, minlength=4).max()
    assert row["above_bound"] == (most > max(math.ceil(balance * n / 4), balance * math.ceil(n / 4)))


def test_marks_are_shown():
    uneven = fp.VertexPartition(np.arange(200) % 5 // 3, 2)
    dealt = fp.EdgePartition(np.arange(1500) % 3 // 2, 2)
    done = fp.compare(RANDOM, 2, ["spring", ("uneven", uneven), ("dealt", dealt)])
    assert done.summary["above_bound"].to_list() == [False, True, True]
    assert "Bound: parts of at most 1.03 of the mean, rounded up. * marks parts above it." in str(done)
    assert re.findall(r"^(\w+) .*\*", str(done), re.M) == ["uneven", "dealt"]
    assert "1.2000*" in done._repr_html_()
    assert "Bound: parts" in done._repr_html_()


# Seeds.


def test_runs_of_several_seeds_are_one_row():
    done = fp.compare(RANDOM, [2, 4], ["random", "dbh", ("p", fp.spring(RANDOM, 2))], seed=5, seeds=3)
    runs = rows(done.runs)
    assert [(row["algorithm"], row["k"], row["seed"]) for row in runs] == [
        ("random", 2, 5), ("random", 2, 6), ("random", 2, 7), ("dbh", 2, 5), ("dbh", 2, 6), ("dbh", 2, 7),
        ("p", 2, None), ("random", 4, 5), ("random", 4, 6), ("random", 4, 7), ("dbh", 4, 5), ("dbh", 4, 6),
        ("dbh", 4, 7),
    ]  # fmt: skip
    first, edges, finished, *_ = rows(done.summary)
    cuts = [fp.algorithms.random(RANDOM, 2, seed=seed).cut_ratio for seed in (5, 6, 7)]
    assert first["cut_ratio"] == pytest.approx(statistics.fmean(cuts))
    assert first["cut_ratio_sd"] == pytest.approx(statistics.stdev(cuts))
    assert edges["rf_sd"] == statistics.stdev(row["rf"] for row in runs[3:6])
    for row, mine in ((first, runs[:3]), (edges, runs[3:6])):
        assert row["edge_balance"] == max(each["edge_balance"] for each in mine)
        assert row["seconds"] == pytest.approx(statistics.fmean(each["seconds"] for each in mine))
        assert row["seconds_sd"] == pytest.approx(statistics.stdev(each["seconds"] for each in mine))
        assert row["bytes_per_vertex"] == max(each["bytes_per_vertex"] for each in mine)
    assert (finished["cut_ratio_sd"], finished["seconds"]) == (None, None)
    assert f"{first['cut_ratio']:.4f} \u00b1{first['cut_ratio_sd']:.4f}" in str(done)
    assert "3 seeds: mean \u00b1 standard deviation." in str(done)


def test_only_the_first_seed_keeps_its_parts():
    done = fp.compare(RANDOM, 2, ["random"], seeds=[9, 4])
    assert [(each.row["seed"], each.parts is None) for each in done.outcomes] == [(9, False), (4, True)]
    assert merged(done.outcomes)[0].parts.equals(
        fp.evaluate(RANDOM, fp.algorithms.random(RANDOM, 2, seed=9)).parts
    )


def test_a_failed_seed_is_the_outcome_of_its_algorithm():
    def fails(graph, k, seed):
        if seed == 1:
            raise fp.errors.CapacityError("no room")
        return np.arange(graph.num_vertices) % k

    done = fp.compare(RANDOM, 2, [fails], seeds=3)
    assert done.summary["error"].to_list() == ["no room"]
    assert done.runs["error"].to_list() == [None, "no room", None]


def test_peers_get_the_seeds_and_the_bound():
    names = [name for name in ("metis", "kaminpar") if PEERS[name].installed()]
    if not names:
        pytest.skip("needs the extra peers")
    done = fp.compare(RANDOM, 2, names, seeds=2, balance=1.2)
    assert done.runs["seed"].to_list() == [0, 1] * len(names)
    assert not any(done.summary["above_bound"])
    assert done.summary["vertex_balance"].max() > 1.03
    assert {PEERS[name].module for name in names} < set(done.provenance["versions"])


# Graphs.


def test_graphs_of_a_list_have_rows_and_means_of_their_own(tmp_path):
    second = raw(tmp_path / "second.bin", RANDOM[:700])
    done = fp.compare([RANDOM, second, RANDOM[:90]], [2, 4], ["spring", "hash", "dbh"], baseline="hash")
    assert [graph["name"] for graph in done.graphs] == ["graph", "second.bin", "graph #2"]
    assert [graph["m"] for graph in done.graphs] == [1500, 700, 90]
    table = done.summary
    assert table["graph"].to_list() == [graph["name"] for graph in done.graphs for _ in range(6)]
    alone = fp.compare(second, [2, 4], ["spring", "hash", "dbh"]).summary
    assert "graph" not in alone.columns
    mine = table.filter(graph="second.bin")
    for name in ("algorithm", "k", "cut_ratio", "rf", "halo_rf", "edge_balance"):
        assert mine[name].to_list() == alone[name].to_list()
    spring, hashed, dbh = rows(done.ratios)
    cuts = {name: table.filter(algorithm=name)["cut_ratio"].to_list() for name in ("spring", "hash")}
    both = [a / b for a, b in zip(cuts["spring"], cuts["hash"], strict=True) if a]
    assert spring["cut_ratio"] == pytest.approx(statistics.geometric_mean(both))
    assert (spring["baseline"], spring["cells"], hashed["cut_ratio"]) == ("hash", 6, pytest.approx(1))
    assert (dbh["baseline"], dbh["cut_ratio"], dbh["rf"]) == ("dbh", None, pytest.approx(1))
    assert "vertex partitions: geometric means over graphs and k, relative to hash" in str(done)
    assert all(table.count("<th>") <= 8 for table in done._repr_html_().split("</thead>"))


cell = st.tuples(st.sampled_from("ab"), st.sampled_from([2, 4]))
measure = st.floats(1e-3, 1e3)


@given(st.dictionaries(cell, measure, min_size=1), st.dictionaries(cell, measure, min_size=1))
def test_ratios_are_geometric_means_over_common_cells(mine, theirs):
    outcomes = [
        Outcome({"graph": graph, "of": "vertices", "algorithm": name, "k": k, "cut_ratio": cut})
        for name, cells in (("theirs", theirs), ("mine", mine))
        for (graph, k), cut in cells.items()
    ]
    row = next(each for each in rows(ratios_of(outcomes, None)) if each["algorithm"] == "mine")
    common = [mine[cell] / theirs[cell] for cell in mine.keys() & theirs.keys()]
    assert row["cells"] == len(common)
    assert row["cut_ratio"] == (pytest.approx(statistics.geometric_mean(common)) if common else None)


def test_a_list_of_pairs_and_a_pair_of_arrays_are_one_graph():
    for one in ([(0, 1), (1, 2)], [[0, 1], [1, 2]], (np.array([0, 1]), np.array([1, 2]))):
        done = fp.compare(one, 2, ["spring"])
        assert [graph["m"] for graph in done.graphs] == [2]


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"balance": 0.9}, fp.errors.ParameterError, "balance: 0.9 is not a ratio of at least 1"),
        ({"seeds": 0}, fp.errors.ParameterError, "seeds: 0 is not between 1"),
        ({"seeds": []}, fp.errors.ParameterError, "seeds: name at least one seed, and each once"),
        ({"seeds": [1, 1]}, fp.errors.ParameterError, "seeds: name at least one seed, and each once"),
        ({"seeds": [-1]}, fp.errors.ParameterError, "seeds: -1 is not between 0"),
        ({"seeds": "5"}, TypeError, "seeds: expected"),
        ({"baseline": "sprin"}, fp.errors.ParameterError, "no algorithm is called 'sprin'.*mean 'spring'"),
        ({"graph": [RANDOM, RANDOM], "labels": [1]}, fp.errors.ParameterError, "labels: they are those of one graph"),
        ({"graph": [RANDOM, RANDOM], "splits": {"train": [1]}}, fp.errors.ParameterError, "splits: they are those of"),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_refused(given, error, text):
    with pytest.raises(error, match=text):
        fp.compare(**{"graph": RANDOM, "k": 2, "algorithms": ["spring"]} | given)


# What it was measured with.


def test_the_provenance_is_saved_and_shown(tmp_path):
    def mine(graph, k, *, weights=RANDOM[0], tolerance=math.inf):
        return np.arange(graph.num_vertices) % k

    done = fp.compare([RANDOM, RANDOM[:300]], 2, ["spring:passes=2", mine], seeds=[3, 1], threads=1,
                      time_limit=math.inf)  # fmt: skip
    done.save(tmp_path / "c.json")
    assert fp.open_comparison(tmp_path / "c.json") == done
    said = json.loads((tmp_path / "c.json").read_text())["provenance"]
    assert said == done.provenance
    assert (said["balance"], said["seeds"], said["threads"]) == (1.03, [3, 1], 1)
    assert said["versions"]["python"] == platform.python_version()
    assert {"fastpart", "numpy"} <= set(said["versions"])
    assert said["parameters"]["spring:passes=2"]["passes"] == 2
    assert said["parameters"]["mine"] == {"weights": "ndarray of 2", "tolerance": "inf"}
    assert said["machine"]["cores"] >= 1
    assert said["machine"]["memory"] > 1 << 20
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", said["date"])
    done.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    for text in (said["date"], said["machine"]["processor"], "seeds</dt><dd>3, 1<", "passes=2", "graph #2"):
        assert text in page
    assert "ertex partitions: geometric means over graphs and k, relative to" in page
    for private in (socket.gethostname(), getpass.getuser()):
        assert not re.search(rf"\b{re.escape(private)}\b", json.dumps(said))


def test_hostile_parameters_of_a_saved_comparison_are_escaped(tmp_path):
    fp.compare(RANDOM, 2, ["spring"]).save(tmp_path / "c.json")
    content = json.loads((tmp_path / "c.json").read_text())
    content["provenance"]["parameters"]["<b>"] = {"<script>": ["<script>", {"x": None}]}
    content["provenance"]["versions"]["<i>"] = "<script>"
    (tmp_path / "c.json").write_text(json.dumps(content))
    fp.open_comparison(tmp_path / "c.json").report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


# The command line.


def test_the_command_compares_several_graphs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, records in (("a.npy", RANDOM), ("b.npy", RANDOM[:500])):
        np.save(name, records)
    words = (
        "compare a.npy b.npy -k 2 --algorithms spring,hash --balance 1.1 --seeds 2 --baseline hash -o c.json"
    )
    assert main(words.split()) == 0
    out = capsys.readouterr().out
    done = fp.open_comparison("c.json")
    assert [graph["name"] for graph in done.graphs] == ["a.npy", "b.npy"]
    assert (done.provenance["balance"], done.provenance["seeds"]) == (1.1, [0, 1])
    assert "relative to hash" in out
    assert str(done) in out
    assert (
        main(["compare", "a.npy", "-k", "2", "--algorithms", "spring", "--seeds", "4,7", "-o", "d.json"]) == 0
    )
    assert fp.open_comparison("d.json").provenance["seeds"] == [4, 7]
    assert main(["compare", "a.npy", "b.npy", "-k", "2", "--labels", "y.npy"]) == 2
