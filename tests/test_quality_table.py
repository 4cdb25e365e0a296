"""The table of `make quality`: what it says of rows that are known, and a small one that is measured."""

import importlib
import itertools
import math
import re
from pathlib import Path

import numpy as np
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


@pytest.fixture(scope="module")
def page(quality):
    return importlib.import_module("quality_page")


@pytest.fixture(scope="module")
def kinds(quality):
    return importlib.import_module("quality_kinds")


def row(graph, k, algorithm, cut=0.1, *, halo=2.0, seconds=1.0, memory=1000, m=200_000, **more):
    return {
        "graph": graph, "n": 100, "m": m, "k": k, "algorithm": algorithm, "cut_ratio": cut, "halo_rf": halo,
        "vertex_balance": 1.0, "edge_balance": 1.0, "seconds": seconds, "memory_kb": memory, "error": None, **more,
    }  # fmt: skip


def failed(graph, k, algorithm):
    return {"graph": graph, "n": 100, "m": 9, "k": k, "algorithm": algorithm, "error": "no room"}


def frame_of(quality, *rows):
    return pl.DataFrame(list(rows), schema=quality.SCHEMA)


def test_means_are_geometric_and_relative_to_the_baseline(quality, page):
    frame = frame_of(
        quality,
        row("a", 4, "multilevel", 0.2, halo=3.0, seconds=2.0, memory=2000), row("a", 4, "metis", 0.1),
        row("a", 8, "multilevel", 0.1), row("a", 8, "metis", 0.2),
        row("b", 4, "multilevel", 0.8, m=10), row("b", 4, "metis", 0.1),
        row("b", 8, "multilevel", 0.0), row("b", 8, "metis", 0.0),  # of which there is no ratio
        failed("c", 4, "multilevel"), row("c", 4, "metis"),
    )  # fmt: skip
    ours, metis, none = page.means(frame, ["multilevel", "metis", "kaminpar"], "metis").rows(named=True)
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


def test_means_of_edge_partitions_are_those_of_replicas(quality, page):
    frame = frame_of(
        quality,
        row("a", 4, "edges", None, rf=3.0, replica_balance=1.2), row("a", 4, "hep", None, rf=2.0, replica_balance=1.5),
        row("b", 4, "edges", None, rf=1.0, replica_balance=1.2), row("b", 4, "hep", None, rf=2.0, replica_balance=1.2),
    )  # fmt: skip
    ours, _ = page.means(frame, ["edges", "hep"], "hep").rows(named=True)
    assert ours["rf_4"] == ours["rf"] == pytest.approx(math.sqrt(3 / 4))
    assert ours["replica_balance"] == pytest.approx(math.sqrt(0.8))
    assert page.lost(frame, "edges", "hep", "rf") == ["a 4 (+50.0%)"]
    over = row("a", 8, "edges", None, edge_balance=1.06, m=200_000)
    assert page.breaks_a_bound(over)
    assert not page.breaks_a_bound(over | {"edge_balance": 1.05})


def test_cells_where_a_peer_is_better_are_named_the_worst_first(quality, page):
    frame = frame_of(
        quality,
        row("a", 4, "multilevel", 0.11), row("a", 4, "metis", 0.10),
        row("a", 8, "multilevel", 0.10), row("a", 8, "metis", 0.10),
        row("b", 4, "multilevel", 0.30), row("b", 4, "metis", 0.20, vertex_balance=1.08),
        row("c", 4, "multilevel", 0.10), row("c", 4, "metis", 0.00),
        row("d", 4, "multilevel", 0.10), failed("d", 4, "metis"),
        row("e", 4, "multilevel", 0.1001), row("e", 4, "metis", 0.1000),
        row("f", 4, "multilevel", 0.000115), row("f", 4, "metis", 0.00010),
    )  # fmt: skip
    assert page.lost(frame, "multilevel", "metis", "cut_ratio") == [
        "c 4 (+inf%)",
        "b 4 (+50.0%*)",
        "f 4 (+15.0%, 3 edges)",
        "a 4 (+10.0%)",
    ]
    assert page.lost(frame, "multilevel", "metis", "seconds") == []
    text = page.document(frame, range(1, 6))
    assert "**metis below multilevel in `cut_ratio`: 5 of 6, 4 by more than 1 %.** c 4" in text
    assert "- metis: 1 of 6. b 4 (1.080, 1.000)" in text
    assert "- Never: multilevel (0 of 7)" in text
    assert (
        "<summary>metis below multilevel, of 6 cells: cut_ratio 4, halo_rf 0, seconds 0, memory_kb 0</summary>"
        in text
    )
    assert text.count("<details>") == text.count("\n</details>\n") == 1 + 6
    assert "<summary>a: n = 100, m = 200,000</summary>\n\n```\na: n = " in text
    assert "metis, k = 4: no room" in text
    assert "metis/2" not in text.replace("metis/2 made no partition", "")


@given(n=st.integers(1, 300), k=st.integers(1, 40), load=st.integers(1, 300))
def test_a_bound_is_a_number_of_vertices_rounded_up(page, n, k, load):
    balance = {
        "n": n,
        "m": 1,
        "k": k,
        "vertex_balance": load / (n / k),
        "edge_balance": 9.0,
        "algorithm": "metis",
    }
    assert page.breaks_a_bound(balance) == (load > math.ceil(1.03 * (n / k)))


def test_the_volume_is_bounded_where_there_are_two_bounds(page):
    balances = {"n": 100, "m": 10_000, "k": 4, "vertex_balance": 1.0}
    for name, volume, expected in [
        ("metis", 2.0, False),
        ("metis/2", 1.1, False),
        ("sigma/2", 1.2, True),
    ]:
        assert page.breaks_a_bound(balances | {"edge_balance": volume, "algorithm": name}) == expected


def test_a_row_is_the_run_of_median_cut(quality):
    runs = [
        {"n": 1000, "k": 4, "algorithm": "x", "cut_ratio": cut, "halo_rf": 10 * cut, "seconds": seconds,
         "bytes_per_vertex": size, "error": None}
        for cut, seconds, size in [(0.3, 1.0, 5), (0.1, 2.0, 9), (0.2, 9.0, 7)]
    ]  # fmt: skip
    made = quality.median_run({"seeds": 3}, runs)
    assert list(made) == list(quality.SCHEMA)
    told = ("seeds", "cut_ratio", "halo_rf", "seconds", "memory_kb", "error")
    assert [made[name] for name in told] == [3, 0.2, 2.0, 2.0, 9, None]
    made = quality.median_run(
        {"seeds": 3}, [runs[0], {"n": 1000, "k": 4, "algorithm": "x", "error": "no room"}]
    )
    assert [made[name] for name in told] == [3, None, None, None, None, "no room"]


def failing(quality, monkeypatch):
    """Let every run fail, and return the list of those that were asked for."""
    asked = []

    def runs_of(graph, ks, names, seeds):
        asked.append((ks, names, list(seeds)))
        return [failed(graph.name, k, name) for k in ks for name in names]

    monkeypatch.setattr(quality, "runs_of", runs_of)
    return asked


@pytest.fixture
def graph(quality, tmp_path):
    file = tmp_path / "g.npy"
    np.save(file, np.array([[0, 1], [1, 2]], np.uint32))
    return quality.Graph("g", file, 3)


def test_slow_peers_run_with_the_first_seed_only(quality, graph, monkeypatch):
    asked = failing(quality, monkeypatch)
    made = quality.measure(graph, [4], ["metis", "mtkahypar"], range(1, 4), {})
    assert asked == [([4], ["metis"], [1, 2, 3]), ([4], ["mtkahypar"], [1])]
    assert made["seeds"].to_list() == [3, 1]


def test_rows_of_peers_of_the_same_measurement_are_taken(quality, graph, tmp_path, monkeypatch):
    asked = failing(quality, monkeypatch)
    names = ["metis", "mtkahypar"]
    first = quality.measure(graph, [4, 8], names, range(1, 4), {}).with_columns(error=None, cut_ratio=0.5)
    first.with_columns(graph=pl.lit("as it was called")).write_parquet(tmp_path / "table.parquet")
    stored = quality.rows_of_peers(tmp_path / "table.parquet")

    def measured(seeds, ks=(4, 8), stored=stored):
        asked.clear()
        return quality.measure(graph, ks, names, range(1, seeds + 1), stored), [
            names for _, names, _ in asked
        ]

    again, ran = measured(3)
    assert ran == []
    assert again.equals(first)
    assert measured(3, [4, 16])[1] == [["metis"], ["mtkahypar"]]
    assert measured(2)[1] == [["metis"]] * 2  # Mt-KaHyPar has one seed in both
    for column in ("checksum", "bounds", "version"):
        first.with_columns(pl.lit("other").alias(column)).write_parquet(tmp_path / "other.parquet")
        assert len(measured(3, stored=quality.rows_of_peers(tmp_path / "other.parquet"))[1]) == 4


def test_rows_of_ours_are_never_taken(quality, graph, tmp_path):
    frame_of(quality, row("g", 4, "multilevel"), row("g", 4, "metis/2")).write_parquet(tmp_path / "t.parquet")
    (only,) = quality.rows_of_peers(tmp_path / "t.parquet").values()
    assert only["algorithm"] == "metis/2"
    pl.DataFrame({"algorithm": ["metis"]}).write_parquet(tmp_path / "t.parquet")
    with pytest.raises(SystemExit, match="has no column graph"):
        quality.rows_of_peers(tmp_path / "t.parquet")


@pytest.mark.parametrize("more", [False, True])
def test_presets_run_on_request(quality, tmp_path, monkeypatch, more):
    asked = []

    def measure(graph, ks, algorithms, seeds, stored):
        asked.extend(algorithms)
        return frame_of(quality, row(graph.name, 4, "metis"))

    monkeypatch.setattr(quality, "measure", measure)
    monkeypatch.setattr(quality, "OUT", tmp_path)
    quality.main(["g.bin", *["--all-peers"] * more])
    presets = [name for name in asked if "preset" in name]
    assert presets == list(quality.ON_REQUEST) * more
    for name in presets:
        peer, _, preset = name.partition(":preset=")
        PEERS[peer].parameters(preset=preset)  # which refuses unknown ones


def test_other_kinds_have_means_of_their_own(quality, page):
    frame = frame_of(
        quality,
        row("a", 4, "multilevel", 0.2), row("a", 4, "metis", 0.1), row("a", 4, "mtkahypar", 0.4),
        row("mesh", 4, "multilevel", 0.1), row("mesh", 4, "metis", 0.2), row("mesh", 4, "mtkahypar", 0.1),
        row("mesh", 8, "multilevel", 0.4), row("mesh", 8, "mtkahypar", 0.1, seconds=4.0),
    )  # fmt: skip
    rows = {
        (each["ours"], each["peer"], each["graphs"]): each for each in page.anchors(frame).rows(named=True)
    }
    assert set(rows) == {
        ("multilevel", "mtkahypar", graphs) for graphs in ("1 graphs", "1 graphs of other kinds")
    }
    real, other = rows.values()
    assert [real[name] for name in ("cells", "k=4", "k=8", "all", "worst")] == [1, 0.5, None, 0.5, 0.5]
    assert [other[name] for name in ("cells", "k=4", "k=8", "all", "worst", "time")] == [
        2, 1.0, pytest.approx(4), pytest.approx(2), pytest.approx(4), 0.5,
    ]  # fmt: skip
    text = page.document(frame, range(1))
    assert text.index("means over 1 graphs, relative") < text.index(
        "means over 1 graphs of other kinds, relative"
    )
    assert "Graphs of other kinds have means of their own: mesh." in text


def test_it_measures_what_the_partitioners_make(quality, datasets, tmp_path, monkeypatch, capsys):
    some = ["spring", "multilevel/2", "metis", "metis/2", "mtkahypar"]
    assert all(quality.version_of(name) for name in some[:2])
    installed = PEERS["metis"].installed()
    monkeypatch.setattr(quality, "ALGORITHMS", {name: quality.ALGORITHMS[name] for name in some})
    monkeypatch.setattr(quality, "OUT", tmp_path / "out")
    edges = fp.convert(datasets / "cora.txt.gz", tmp_path / "cora.bin", num_vertices=2708)
    quality.main([str(edges.path), "-k", "3", "--seeds", "1"])
    table = pl.read_parquet(tmp_path / "out" / "table.parquet")
    assert table.schema == quality.SCHEMA
    assert set(table["checksum"]) == {edges.identify()[1]}
    assert table["bounds"].to_list() == ["vertices 1.03", "vertices 1.03, volume 1.1"] * 2 + ["vertices 1.03"]
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
        assert not there or (made["seconds"] > 0 and made["memory_kb"] > 100 and made["cut_ratio"] < 0.1)
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


def test_the_pictures_show_every_algorithm_and_ratio(quality, page, tmp_path):
    frame = frame_of(
        quality, row("a", 4, "metis", 0.1), row("a", 4, "multilevel", 0.05), row("a", 4, "kaminpar", 1.2),
        row("b", 4, "metis", 0.0), row("b", 4, "multilevel", 0.05),
    )  # fmt: skip
    page.draw(frame, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {"cut-and-time.svg", "heat-vertices.svg"}
    points = (tmp_path / "cut-and-time.svg").read_text()
    assert [name in points for name in (">METIS<", ">KaMinPar<", ">multilevel<")] == [True] * 3
    assert "@media (prefers-color-scheme: dark)" in points
    assert "fill: #ffffff" not in points.split("</style>")[-1]  # no slab on dark paper
    cells = re.findall(r">([\d.]+)</text>", (tmp_path / "heat-vertices.svg").read_text())
    assert {"0.50", "12"} <= set(cells)
    assert ">b<" not in (tmp_path / "heat-vertices.svg").read_text()  # of a cut of 0 there is no ratio


def test_no_name_of_the_front_picture_covers_another(quality):
    pictures = importlib.import_module("quality_pictures")
    names = ["multilevel", "multilevel best", *pictures.PEERS]
    rows = [(name, 1.0 + 0.3 * place, 1.1 + 0.01 * (place % 3)) for place, name in enumerate(names)]
    figure = pictures.plotted(lambda: pictures._points(rows), None)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert len(boxes) == len(names)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_the_graphs_that_come_along_are_always_there(quality, kinds, tmp_path, monkeypatch):
    monkeypatch.setattr(kinds, "KINDS", {"grid-2d": (12, lambda folder: kinds.grid(folder, 3, 4))})
    here = quality.known_graphs(tmp_path)
    assert [graph.open().num_edges for graph in here] == sorted(graph.open().num_edges for graph in here)
    assert {(graph.name, graph.n) for graph in here} >= {
        ("cora", 2708),
        ("amazon-computers", 13752),
        ("grid-2d", 12),
    }


def test_generated_graphs_are_simple_and_what_they_say(kinds, tmp_path, monkeypatch):
    small = {
        "mesh": (200, lambda folder: kinds.mesh(folder, 200)),
        "grid-3d": (60, lambda folder: kinds.grid(folder, 3, 4, 5)),
        "correlated": (50, lambda folder: kinds.correlated(folder, 50, 300)),
        "geometric": (300, lambda folder: kinds.geometric(folder, 300)),
    }
    monkeypatch.setattr(kinds, "KINDS", small)
    graphs = {name: np.load(kinds.write(name, tmp_path)).astype(int) for name in small}
    for name, edges in graphs.items():
        n = small[name][0]
        assert (edges[:, 0] < edges[:, 1]).all()
        assert edges.max() < n
        assert len({*map(tuple, edges.tolist())}) == len(edges)
        assert np.load(kinds.write(name, tmp_path)).tolist() == edges.tolist()  # the seed is fixed
    assert 2 * 200 < len(graphs["mesh"]) <= 3 * 200 - 6  # planar, of triangles
    assert len(graphs["grid-3d"]) == 2 * 4 * 5 + 3 * 3 * 5 + 3 * 4 * 4
    steps = np.diff(np.stack(np.unravel_index(graphs["grid-3d"].ravel(), (3, 4, 5))).reshape(3, -1, 2))
    assert (np.abs(steps).sum(axis=0) == 1).all()
    assert len(graphs["correlated"]) == 300
    places = np.random.default_rng(3).random((300, 2))
    near = np.linalg.norm(places[:, None] - places, axis=2) <= (12 / (np.pi * 300)) ** 0.5
    assert len(graphs["geometric"]) == np.triu(near, 1).sum()


@pytest.mark.parametrize("arguments", [["a.bin", "b/a.bin"], ["--seeds", "0"], ["-k", "x"]])
def test_wrong_command_lines_are_refused(quality, arguments, capsys):
    with pytest.raises(SystemExit):
        quality.main(arguments)
    assert "usage:" in capsys.readouterr().err
