"""The table of `make quality`: what it says of rows that are known, and a small one that is measured."""

import importlib
import math
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.measures.compare.peers import PEERS


@pytest.fixture(scope="module")
def quality():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(
            Path(__file__).parents[1] / "benches"
        )  # where the processes that it starts find it, too
        yield importlib.import_module("quality")


def row(graph, k, algorithm, cut=0.1, *, halo=2.0, seconds=1.0, memory=1000, m=200_000, **more):
    return {
        "graph": graph, "n": 100, "m": m, "k": k, "algorithm": algorithm, "cut_ratio": cut, "halo_rf": halo,
        "vertex_balance": 1.0, "edge_balance": 1.0, "seconds": seconds, "memory_kb": memory, "error": None, **more,
    }  # fmt: skip


def failed(graph, k, algorithm):
    return {"graph": graph, "n": 100, "m": 9, "k": k, "algorithm": algorithm, "error": "no room"}


def frame_of(quality, *rows):
    return pl.DataFrame(list(rows), schema=quality.SCHEMA)


def test_means_are_geometric_and_relative_to_the_baseline(quality):
    frame = frame_of(
        quality,
        row("a", 4, "multilevel", 0.2, halo=3.0, seconds=2.0, memory=2000), row("a", 4, "metis", 0.1),
        row("a", 8, "multilevel", 0.1), row("a", 8, "metis", 0.2),
        row("b", 4, "multilevel", 0.8, m=10), row("b", 4, "metis", 0.1),
        row("b", 8, "multilevel", 0.0), row("b", 8, "metis", 0.0),  # of which there is no ratio
        failed("c", 4, "multilevel"), row("c", 4, "metis"),
    )  # fmt: skip
    ours, metis, none = quality.means(frame, ["multilevel", "metis", "kaminpar"], "metis").rows(named=True)
    assert (ours["cells"], metis["cells"], none["cells"]) == (3, 4, 0)
    assert ours["cut_4"] == pytest.approx(math.sqrt(2 * 8))
    assert ours["cut_8"] == pytest.approx(1 / 2)
    assert ours["cut"] == pytest.approx((2 * 8 / 2) ** (1 / 3))
    assert ours["halo"] == pytest.approx(1.5 ** (1 / 3))
    assert ours["time"] == ours["memory"] == pytest.approx(2 ** (1 / 3))
    assert ours["ns_per_edge"] == round(math.sqrt(2) * 1e9 / 200_000)
    assert ours["bytes_per_edge"] == round(math.sqrt(2) * 1e6 / 200_000)
    assert [metis[name] for name in ("cut_4", "cut_8", "cut", "halo", "time", "memory")] == [1.0] * 6
    assert none["cut"] is none["ns_per_edge"] is None


def test_means_of_edge_partitions_are_those_of_replicas(quality):
    frame = frame_of(
        quality,
        row("a", 4, "edges", None, rf=3.0, replica_balance=1.2), row("a", 4, "hep", None, rf=2.0, replica_balance=1.5),
        row("b", 4, "edges", None, rf=1.0, replica_balance=1.2), row("b", 4, "hep", None, rf=2.0, replica_balance=1.2),
    )  # fmt: skip
    ours, _ = quality.means(frame, ["edges", "hep"], "hep").rows(named=True)
    assert ours["rf_4"] == ours["rf"] == pytest.approx(math.sqrt(3 / 4))
    assert ours["replica_balance"] == pytest.approx(math.sqrt(0.8))
    assert quality.lost(frame, "edges", "hep", "rf") == ["a 4 (+50.0%)"]
    over = row("a", 8, "edges", None, edge_balance=1.06, m=200_000)
    assert quality.breaks_a_bound(over)
    assert not quality.breaks_a_bound(over | {"edge_balance": 1.05})


def test_cells_where_a_peer_is_better_are_named_the_worst_first(quality):
    frame = frame_of(
        quality,
        row("a", 4, "multilevel", 0.11), row("a", 4, "metis", 0.10),
        row("a", 8, "multilevel", 0.10), row("a", 8, "metis", 0.10),
        row("b", 4, "multilevel", 0.30), row("b", 4, "metis", 0.20, vertex_balance=1.08),
        row("c", 4, "multilevel", 0.10), row("c", 4, "metis", 0.00),
        row("d", 4, "multilevel", 0.10), failed("d", 4, "metis"),
    )  # fmt: skip
    assert quality.lost(frame, "multilevel", "metis", "cut_ratio") == [
        "c 4 (+inf%)",
        "b 4 (+50.0%*)",
        "a 4 (+10.0%)",
    ]
    assert quality.lost(frame, "multilevel", "metis", "seconds") == []
    text = quality.document(frame, range(1, 6))
    assert "**metis below multilevel in `cut_ratio`: 3 of 4.** c 4" in text
    assert "- metis: 1 of 4. b 4 (1.080, 1.000)" in text
    assert "metis, k = 4: no room" in text
    assert "metis/2" not in text.replace("metis/2 made no partition", "")


@given(n=st.integers(1, 300), k=st.integers(1, 40), load=st.integers(1, 300))
def test_a_bound_is_a_number_of_vertices_rounded_up(quality, n, k, load):
    balance = {
        "n": n,
        "m": 1,
        "k": k,
        "vertex_balance": load / (n / k),
        "edge_balance": 9.0,
        "algorithm": "metis",
    }
    assert quality.breaks_a_bound(balance) == (load > math.ceil(1.03 * (n / k)))


def test_the_volume_is_bounded_where_there_are_two_bounds(quality):
    balances = {"n": 100, "m": 10_000, "k": 4, "vertex_balance": 1.0}
    for name, volume, expected in [
        ("metis", 2.0, False),
        ("metis/2", 1.1, False),
        ("sigma/2", 1.2, True),
    ]:
        assert quality.breaks_a_bound(balances | {"edge_balance": volume, "algorithm": name}) == expected


def test_a_row_is_the_run_of_median_cut(quality):
    runs = [
        {"n": 1000, "k": 4, "algorithm": "x", "cut_ratio": cut, "halo_rf": 10 * cut, "seconds": seconds,
         "bytes_per_vertex": size, "error": None}
        for cut, seconds, size in [(0.3, 1.0, 5), (0.1, 2.0, 9), (0.2, 9.0, 7)]
    ]  # fmt: skip
    made = quality.median_run("g", runs)
    assert list(made) == list(quality.SCHEMA)
    told = ("graph", "cut_ratio", "halo_rf", "seconds", "memory_kb", "error")
    assert [made[name] for name in told] == ["g", 0.2, 2.0, 2.0, 9, None]
    made = quality.median_run("g", [runs[0], {"n": 1000, "k": 4, "algorithm": "x", "error": "no room"}])
    assert [made[name] for name in told] == ["g", None, None, None, None, "no room"]


def test_slow_peers_run_with_the_first_seed_only(quality, monkeypatch):
    asked = []

    def runs_of(graph, ks, names, seeds):
        asked.append((names, list(seeds)))
        return [failed(graph.name, k, name) for k in ks for name in names]

    monkeypatch.setattr(quality, "runs_of", runs_of)
    quality.measure(quality.Graph("g", Path("g.bin")), [4], ["metis", "mtkahypar"], range(1, 4))
    assert asked == [(["metis"], [1, 2, 3]), (["mtkahypar"], [1])]


@pytest.mark.parametrize("more", [False, True])
def test_two_presets_run_on_request(quality, tmp_path, monkeypatch, more):
    asked = []

    def measure(graph, ks, algorithms, seeds):
        asked.extend(algorithms)
        return frame_of(quality, row(graph.name, 4, "metis"))

    monkeypatch.setattr(quality, "measure", measure)
    monkeypatch.setattr(quality, "OUT", tmp_path)
    quality.main(["g.bin", *["--all-peers"] * more])
    assert [name for name in asked if name.startswith("mtkahypar")] == [
        "mtkahypar",
        *quality.ON_REQUEST * more,
    ]


def test_it_measures_what_the_partitioners_make(quality, datasets, tmp_path, monkeypatch, capsys):
    some = ["spring", "multilevel/2", "metis", "metis/2", "mtkahypar"]
    installed = PEERS["metis"].installed()
    monkeypatch.setattr(quality, "ALGORITHMS", {name: quality.ALGORITHMS[name] for name in some})
    monkeypatch.setattr(quality, "OUT", tmp_path / "out")
    edges = fp.convert(datasets / "cora.txt.gz", tmp_path / "cora.bin", num_vertices=2708)
    quality.main([str(edges.path), "-k", "3", "--seeds", "1"])
    table = pl.read_parquet(tmp_path / "out" / "table.parquet")
    assert table.schema == quality.SCHEMA
    assert table.select("graph", "n", "m", "k", "algorithm").rows() == [
        ("cora", 2708, 5278, 3, name) for name in some
    ]
    spring, multilevel, *peers = table.rows(named=True)
    for made, part in [
        (spring, fp.spring(edges, 3, balance=1.03, seed=1)),
        (multilevel, fp.multilevel(edges, 3, balance=1.03, volume_balance=1.1, seed=1)),
    ]:
        totals = fp.evaluate(edges, part).summary.row(0, named=True)
        shared = ("cut_ratio", "halo_rf", "vertex_balance", "edge_balance")
        assert [made[name] for name in shared] == [totals[name] for name in shared]
        assert made["seconds"] > 0
    for made in peers:
        there = PEERS[made["algorithm"].partition("/")[0]].installed()
        assert (made["error"] is None) == there
        assert not there or (made["seconds"] > 0 and made["memory_kb"] > 500 and made["cut_ratio"] < 0.1)
    printed = capsys.readouterr().out
    assert "cora: n = 2,708, m = 5,278" in printed
    document = (tmp_path / "out" / "quality.md").read_text()
    assert "1 thread; median of 1 seeds" in document
    assert "geometric means over 1 graphs" in document
    assert ("metis made no partition" in document) == (not installed)
    assert {file.name for file in (tmp_path / "out").glob("*.svg")} == (
        {"heat-vertices.svg", "heat-two-bounds.svg"} if installed else set()
    )
    assert ("**metis/2 below multilevel/2 in `cut_ratio`: " in document) == installed


def test_the_pictures_show_every_algorithm_and_ratio(quality, tmp_path):
    frame = frame_of(
        quality, row("a", 4, "metis", 0.1), row("a", 4, "multilevel", 0.05), row("a", 4, "kaminpar", 1.2),
        row("b", 4, "metis", 0.0), row("b", 4, "multilevel", 0.05),
    )  # fmt: skip
    quality.draw(frame, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"cut-and-time.svg", "heat-vertices.svg"}
    points = (tmp_path / "cut-and-time.svg").read_text()
    assert [name in points for name in (">METIS<", ">KaMinPar<", ">multilevel<")] == [True] * 3
    cells = re.findall(r">([\d.]+)</text>", (tmp_path / "heat-vertices.svg").read_text())
    assert {"0.50", "12"} <= set(cells)
    assert ">b<" not in (tmp_path / "heat-vertices.svg").read_text()  # of a cut of 0 there is no ratio


def test_the_graphs_that_come_along_are_always_there(quality, tmp_path, monkeypatch):
    here = quality.known_graphs(tmp_path)
    assert [graph.open().num_edges for graph in here] == sorted(graph.open().num_edges for graph in here)
    assert {(graph.name, graph.n) for graph in here} >= {("cora", 2708), ("amazon-computers", 13752)}


@pytest.mark.parametrize("arguments", [["a.bin", "b/a.bin"], ["--seeds", "0"], ["-k", "x"]])
def test_wrong_command_lines_are_refused(quality, arguments, capsys):
    with pytest.raises(SystemExit):
        quality.main(arguments)
    assert "usage:" in capsys.readouterr().err
