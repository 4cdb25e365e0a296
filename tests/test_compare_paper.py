"""A comparison in a paper: profiles, tests, figures, tables and references. The guide's own lines make them."""

import itertools
import json
import math
import re
from pathlib import Path

import matplotlib
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.measures.compare.analysis import profile_of, signed_rank, signed_ranks_of
from fastpart.measures.compare.entries import BUILT_IN
from fastpart.measures.compare.outcomes import Outcome
from fastpart.measures.compare.peers import PEERS
from fastpart.measures.compare.provenance import PAPERS, bibtex_of
from fastpart.report.text import SHAPES, marks_of

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "comparing.md"
RANDOM = np.random.default_rng(1)
GRAPHS = {"Cora": RANDOM.integers(0, 200, (900, 2)), "Computers": RANDOM.integers(0, 150, (700, 2))}


def mine(graph, k, seed=0):
    return np.random.default_rng(seed).permutation(graph.num_vertices) % k


def uneven(graph, k):
    return np.minimum(np.arange(graph.num_vertices) // 9, k - 1)


def fails_once(graph, k):
    if k == 4:
        raise fp.errors.CapacityError("no room")
    return np.arange(graph.num_vertices) % k


@pytest.fixture(scope="module")
def done():
    algorithms = ["spring", "random", ("ours", mine), uneven, fails_once, "hdrf"]
    return fp.compare(GRAPHS, [4, 8], algorithms, seeds=3, threads=1)


def outcomes_of(values):
    """Return outcomes with a value for each algorithm and instance. None is a failure."""
    return [
        Outcome(
            {"graph": "g", "of": "vertices", "algorithm": name, "k": k, "cut_ratio": value, "error": error}
        )
        for name, row in values.items()
        for k, value in enumerate(row, 1)
        for error in [None if value is not None else "no room"]
    ]


# Profiles and tests, against slow and obvious code.

value = st.none() | st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.5])


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(st.lists(value, min_size=n, max_size=n), min_size=1, max_size=4)
    )
)
def test_a_profile_counts_instances_within_a_factor_of_the_best(rows):
    values = {f"a{place}": row for place, row in enumerate(rows)}
    if not any(each is not None for row in rows for each in row):
        return
    frame = profile_of(outcomes_of(values), "cut_ratio")
    assert frame["algorithm"].unique(maintain_order=True).to_list() == list(values)
    for name, tau, fraction in frame.rows():
        within = 0
        for place, mine_ in enumerate(values[name]):
            best = min((row[place] for row in rows if row[place] is not None), default=None)
            within += mine_ is not None and (mine_ == best or (best > 0 and mine_ / best <= tau))
        assert fraction == pytest.approx(within / len(rows[0]))
    for name, curve in frame.group_by("algorithm"):
        made = sum(each is not None for each in values[name[0]])
        assert curve["fraction"].max() <= made / len(rows[0])  # a failure is within no factor
        assert curve["tau"][0] == 1
        assert curve["tau"].is_sorted()
        assert curve["fraction"].is_sorted()


def test_parts_above_the_bound_are_failures_of_a_profile(done):
    last = done.profile("cut_ratio").group_by("algorithm", maintain_order=True).last()
    ends = dict(last.select("algorithm", "fraction").rows())
    assert ends == {"spring": 1, "random": ends["random"], "ours": 1, "uneven": 0, "fails_once": 0.5}
    within = done.summary.filter(algorithm="random")["above_bound"].not_().mean()
    assert ends["random"] == within
    assert done.profile("rf")["algorithm"].unique().to_list() == ["hdrf"]


def by_all_signs(differences):
    """Return the p-value from all 2^n assignments of signs to the mean ranks."""
    known = [each for each in differences if each]
    ranks = [
        np.mean([place for place, other in enumerate(sorted(map(abs, known)), 1) if other == abs(each)])
        for each in known
    ]
    mean = sum(ranks) / 2
    seen = abs(sum(rank for rank, each in zip(ranks, known, strict=True) if each > 0) - mean)
    sums = [sum(chosen) for chosen in itertools.product(*((0, rank) for rank in ranks))]
    return sum(abs(each - mean) >= seen - 1e-9 for each in sums) / len(sums)


@given(st.lists(st.integers(-6, 6), max_size=9))
def test_the_signed_rank_test_counts_all_signs(differences):
    assert signed_rank(differences) == pytest.approx(by_all_signs(differences))


@pytest.mark.parametrize("n", [6, 25, 120])
def test_the_signed_rank_test_is_that_of_scipy(n):
    stats = pytest.importorskip("scipy.stats")
    differences = np.random.default_rng(n).normal(0.2, 1, n)
    expected = stats.wilcoxon(differences, method="exact").pvalue
    assert signed_rank(differences) == pytest.approx(expected, rel=1e-9)


def test_an_algorithm_is_tested_where_both_made_a_partition():
    values = {
        "base": [0.2, 0.3, 0.4, None],
        "better": [0.1, 0.1, 0.1, 0.1],
        "same": [0.2, 0.3, 0.4, 0.5],
        "none": [None] * 4,
    }
    frame = signed_ranks_of(outcomes_of(values), "cut_ratio", None)
    assert frame.rows() == [
        ("better", "base", 3, 3, 0, 0.25), ("same", "base", 3, 0, 0, 1.0), ("none", "base", 0, 0, 0, None),
    ]  # fmt: skip


# Names, choices and lengths.


def test_graphs_have_the_names_that_they_are_given(done):
    assert [graph["name"] for graph in done.graphs] == ["Cora", "Computers"]
    assert done.summary["graph"].unique(maintain_order=True).to_list() == ["Cora", "Computers"]
    assert fp.compare({"one": GRAPHS["Cora"]}, 2, ["random"]).graphs[0]["name"] == "one"


@pytest.mark.parametrize("graphs", [{}, {1: GRAPHS["Cora"]}, {" ": GRAPHS["Cora"]}])
def test_graphs_by_name_have_a_name(graphs):
    with pytest.raises(
        fp.errors.ParameterError, match=r"graph: expected graphs by name, such as \{'Cora': graph\}"
    ):
        fp.compare(graphs, 2, ["random"])


def test_a_graph_of_ogb_is_one_graph():
    graph = {"edge_index": GRAPHS["Cora"].T, "num_nodes": 200, "edge_feat": None, "node_feat": None}
    assert [each["m"] for each in fp.compare(graph, 2, ["random"]).graphs] == [900]


def test_pairs_with_names_are_no_graphs():
    with pytest.raises(TypeError, match=r"^graph: .*A dict names graphs: \{'Cora': graph\}"):
        fp.compare([*GRAPHS.items()], 2, ["random"])
    edges = [("Cora", "Computers"), ("Computers", "DBLP")]
    assert fp.compare(edges, 2, ["random"]).graphs[0]["m"] == 2


def test_a_dict_names_algorithms():
    parts = fp.VertexPartition(np.arange(200) % 2, 2)
    algorithms = {
        "best": ("spring", {"passes": 2}),
        "quick": "spring:passes=1",
        "ours": mine,
        "theirs": parts,
    }
    named = fp.compare(GRAPHS["Cora"], 2, algorithms, seeds=[3])
    plain = fp.compare(
        GRAPHS["Cora"], 2, ["spring:passes=2", "spring:passes=1", mine, ("theirs", parts)], seeds=[3]
    )
    assert named.summary["algorithm"].to_list() == ["best", "quick", "ours", "theirs"]
    assert named.summary["cut_ratio"].to_list() == plain.summary["cut_ratio"].to_list()
    assert [*named.provenance["algorithms"].values()] == ["spring", "spring", None, None]
    assert named.provenance["parameters"]["best"]["passes"] == 2
    assert "spring" in named.bibtex()
    for clash in ({"spring": "random"}, [("random", "spring")], [("metis", ("spring", {"passes": 2}))]):
        with pytest.raises(fp.errors.ParameterError, match="is the name of another algorithm"):
            fp.compare(GRAPHS["Cora"], 2, clash)


def test_a_part_of_a_name_is_understood(done):
    for word, names in (("cut", "'cut_ratio'"), ("balance", "'vertex_balance' or 'edge_balance'")):
        with pytest.raises(fp.errors.ParameterError, match=rf"Did you mean {names}\?$"):
            done.select(algorithms=["spring"]).plot(measure=word)


@pytest.mark.parametrize("length", [0, 199, 201, 899])
def test_a_function_of_a_wrong_length_is_told_the_right_ones(length):
    (row,) = fp.compare(GRAPHS["Cora"], 2, [lambda graph, k: np.zeros(length, int)]).summary.rows(named=True)
    assert row["error"] == (
        f"the function returned {length} parts. Return one for each of the 200 vertices, or for each of the 900 records"
    )


def test_a_selection_has_the_runs_that_were_asked_for(done):
    some = done.select(algorithms=["ours", "hdrf"], graphs=["Cora"], k=8)
    assert some.summary.select("algorithm", "k").rows() == [("ours", 8), ("hdrf", 8)]
    assert len(some.runs) == 6
    assert [graph["name"] for graph in some.graphs] == ["Cora"]
    assert list(some.provenance["parameters"]) == ["ours", "hdrf"]
    assert set(done.select(of="edges").summary["algorithm"]) == {"hdrf"}
    assert done.select() == done


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"algorithms": ["our"]}, fp.errors.ParameterError, r"algorithms: no run has 'our'.*mean 'ours'"),
        (
            {"graphs": ["cora"]},
            fp.errors.ParameterError,
            "graphs: no run has 'cora'. There are Cora, Computers",
        ),
        ({"k": [2]}, fp.errors.ParameterError, "k: no run has 2. There are 4, 8"),
        ({"algorithms": "ours"}, TypeError, "algorithms: expected a list, got str"),
        ({"algorithms": ["ours"], "of": "edges"}, fp.errors.ParameterError, "select: no run is left"),
    ],
)
def test_a_selection_names_runs_that_are_there(done, given, error, text):
    with pytest.raises(error, match=text):
        done.select(**given)


# Figures.


def texts_of(figure):
    """Return the texts that are drawn. Ticks outside the view have labels, too, which are not."""
    figure.draw_without_rendering()
    (axes,), (legend,) = figure.axes, figure.legends
    texts = [axes.xaxis.label, axes.yaxis.label, *axes.texts, *legend.get_texts()]
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        places = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=True)
        texts += [text for place, text in places if low <= place <= high]
    return [text for text in texts if text.get_text()]


@pytest.mark.parametrize(
    "given", [{"measure": "cut_ratio"}, {"measure": "seconds"}, {"profile": True}, {"measure": "rf"}]
)
@pytest.mark.parametrize("width", ["column", "page"])
def test_a_figure_can_be_read_in_the_width_of_a_column(done, given, width):
    figure = done.plot(**given, width=width)
    assert figure.get_figwidth() == {"column": 3.33, "page": 7.0}[width]
    texts = texts_of(figure)
    assert len(texts) > 5
    assert min(text.get_fontsize() for text in texts) >= 6
    boxes = [text.get_window_extent() for text in texts]
    for one, other in itertools.combinations(boxes, 2):
        assert (
            min(one.x1, other.x1) - max(one.x0, other.x0) < 1
            or min(one.y1, other.y1) - max(one.y0, other.y0) < 1
        )
    low, high = figure.bbox.x0 - 1, figure.bbox.x1 + 1
    assert all(low <= box.x0 and box.x1 <= high for box in boxes)


def test_own_algorithms_those_of_fastpart_and_peers_are_told_apart():
    peers, built_in = dict.fromkeys(PEERS), dict.fromkeys(["spring", "sigma", "multilevel", "grem"])
    marks = marks_of({name: name for name in (*peers, *built_in)} | {"one": None, "two": None})
    groups = [[marks[name] for name in names] for names in (peers, built_in, ("one", "two"))]
    for one, other in itertools.combinations(groups, 2):
        assert not {mark.colour for mark in one} & {mark.colour for mark in other}
    assert [{mark.filled for mark in group} for group in groups] == [{False}, {True}, {True}]
    for group in groups:
        assert len({mark.marker for mark in group}) == len(group) <= len(SHAPES)


def test_points_are_means_and_bars_their_deviations(done):
    axes = done.plot(measure="cut_ratio").axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == [
        "Cora, k = 4", "Cora, k = 8", "Computers, k = 4", "Computers, k = 8",
    ]  # fmt: skip
    rows = done.summary.filter(of="vertices").drop_nulls("cut_ratio")
    several = rows.filter(pl.col("cut_ratio_sd").is_not_null())
    drawn = {container.lines[0].get_xdata()[0]: container for container in axes.containers}
    assert sorted(drawn) == pytest.approx(sorted(several["cut_ratio"]))
    for mean, deviation in several.select("cut_ratio", "cut_ratio_sd").rows():
        (segment,) = drawn[mean].lines[2][0].get_segments()
        assert segment[:, 0].tolist() == pytest.approx([mean - deviation, mean + deviation])
    stars = [text.get_text() for text in axes.texts]
    assert stars == ["*"] * rows["above_bound"].sum() != []
    legend = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert legend == ["spring", "random", "ours", "uneven", "fails_once (2 failed)"]


def test_a_profile_is_drawn_as_it_is_counted(done):
    axes = done.plot(profile=True).axes[0]
    frame = done.profile()
    lines = [line for line in axes.lines if len(line.get_xdata())]
    for line, (_, curve) in zip(lines, frame.group_by("algorithm", maintain_order=True), strict=True):
        assert line.get_xdata()[:-1].tolist() == curve["tau"].to_list()
        assert line.get_ydata().tolist() == [*curve["fraction"], curve["fraction"][-1]]
    assert "uneven (4 failed)" in [text.get_text() for text in axes.figure.legends[0].get_texts()]


def test_axes_of_the_user_are_plotted_into(done, tmp_path):
    figure = matplotlib.figure.Figure()
    left, right = figure.subplots(1, 2)
    assert done.plot(measure="seconds", ax=right) is figure
    assert (len(left.lines), len(figure.legends)) == (0, 0)
    assert right.get_xlabel() == "seconds (less is better)"
    assert right.get_legend() is not None
    for name, other in (("out", tmp_path / "a.png"), ("width", "page")):
        with pytest.raises(fp.errors.ParameterError, match=f"{name}: the figure of ax= is yours"):
            done.plot(ax=left, **{name: other})
    with pytest.raises(TypeError, match="ax: expected axes of matplotlib, got Figure"):
        done.plot(ax=figure)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"measure": "cut"},
            r"measure: the comparison has no 'cut'. Its measures are cut_ratio, vertex_balance",
        ),
        ({"measure": "edges_per_s"}, "measure: the comparison has no 'edges_per_s'"),
        ({"width": "wide"}, "width: 'wide' is neither"),
        ({"width": 0.5}, "width: 0.5 is neither"),
    ],
)
def test_what_cannot_be_plotted_is_refused(done, given, text):
    with pytest.raises(fp.errors.ParameterError, match=text):
        done.plot(**given)


# Tables.


def test_a_table_has_the_columns_and_digits_that_were_asked_for(done, tmp_path):
    done.save(tmp_path / "t.tex", columns=["seconds", "cut_ratio"], digits={"cut_ratio": 2})
    text = (tmp_path / "t.tex").read_text()
    assert r"graph & algorithm & k & seconds & cut ratio \\" in text
    row = done.summary.row(
        by_predicate=(pl.col("algorithm") == "random") & (pl.col("graph") == "Cora") & (pl.col("k") == 8),
        named=True,
    )
    assert rf"{row['cut_ratio']:.2f} $\pm$ {row['cut_ratio_sd']:.2f} \\" in text
    assert "halo" not in text
    done.save(tmp_path / "t.md", columns=["rf"], digits=1)
    text = (tmp_path / "t.md").read_text()
    assert "vertex partitions" not in text
    assert re.search(r"\| hdrf \| 4 \| \d\.\d ±0\.\d \|", text)


def test_the_best_within_the_bound_is_bold_and_failures_are_named(done, tmp_path):
    done.save(tmp_path / "t.tex", columns=["cut_ratio"], digits=9)
    text = (tmp_path / "t.tex").read_text()
    rows = done.summary.filter(of="vertices").drop_nulls("cut_ratio")
    best = (
        rows.filter(pl.col("above_bound").not_())
        .group_by("graph", "k")
        .agg(pl.col("cut_ratio").min())["cut_ratio"]
    )
    bold = re.findall(r"\\textbf\{([\d.]+)", text.split("no partition")[0])
    assert sorted(bold) == sorted(f"{each:.9f}" for each in best)  # without ties
    assert rows["cut_ratio"].min() < best.min()  # the part above the bound cuts least, and wins nothing
    assert (
        text.split("no partition")[0].count(r"\midrule") == 4
    )  # behind the head, and between the four groups
    for graph in GRAPHS:
        assert rf"{graph} & fails\_once & 4 & no room \\" in text


def test_a_table_says_what_its_marks_mean(done, tmp_path):
    for name, bound in (("t.tex", "% Bound: "), ("t.md", "Bound: ")):
        done.save(tmp_path / name)
        lines = (tmp_path / name).read_text().splitlines()
        (place,) = (place for place, line in enumerate(lines) if line.startswith(bound))
        assert re.search(r"1\.03 of the mean.* \\?\* marks parts above it\.$", lines[place])
        assert any("3 seeds: mean ± standard deviation." in line for line in lines)
        assert place < min(place for place, line in enumerate(lines) if "uneven" in line)


@pytest.mark.parametrize(
    ("name", "given", "error", "text"),
    [
        ("t.tex", {"columns": ["cut"]}, fp.errors.ParameterError, "columns: unknown column 'cut'. They are"),
        ("t.tex", {"columns": "cut_ratio"}, TypeError, "columns: expected a list, got str"),
        ("t.tex", {"digits": 99}, fp.errors.ParameterError, "digits: 99 is not between 0 and 15"),
        (
            "t.tex",
            {"digits": {"rff": 2}},
            fp.errors.ParameterError,
            "digits: unknown column 'rff'.*mean 'rf'",
        ),
        (
            "t.csv",
            {"columns": ["rf"]},
            fp.errors.ParameterError,
            "columns: they are for .md and .tex. A .csv holds all",
        ),
        (
            "t.json",
            {"digits": 2},
            fp.errors.ParameterError,
            "digits: they are for .md and .tex. A .json holds all",
        ),
    ],
)
def test_what_no_table_can_have_is_refused(done, tmp_path, name, given, error, text):
    with pytest.raises(error, match=text):
        done.save(tmp_path / name, **given)
    assert list(tmp_path.iterdir()) == []


def test_deviations_have_the_digits_of_their_means(done, tmp_path):
    done.report(tmp_path / "r.html")
    pairs = re.findall(r"([\d.]+) ±([\d.e-]+)", (tmp_path / "r.html").read_text())
    assert len(pairs) > 10
    for mean, deviation in pairs:
        assert len(mean.partition(".")[2]) == len(deviation.partition(".")[2])


# References.


def fields_of(bibtex):
    """Return the fields of each entry by key. It reads braces, as BibTeX does."""
    entries = {}
    for kind, key, body in re.findall(r"@(\w+)\{(\w+),\n(.*?)\n\}", bibtex, re.DOTALL):
        fields = {}
        for line in body.splitlines():
            name, text = re.fullmatch(r"  (\w+) += \{(.*)\},", line).groups()
            assert text.count("{") == text.count("}")
            fields[name] = text
        entries[key] = {"kind": kind} | fields
    assert len(entries) == bibtex.count("@")
    return entries


def test_what_ran_is_cited(done):
    entries = fields_of(done.bibtex())
    assert list(entries) == ["fastpart", "hdrf", "spring"]
    assert f"Version {fp.__version__}" in entries["fastpart"]["note"]
    assert "Petroni, Fabio and" in entries["hdrf"]["author"]
    assert list(fields_of(done.select(algorithms=["ours"]).bibtex())) == ["fastpart"]


def test_every_algorithm_has_its_papers(done):
    free = {"random", "hash", "custom"}
    assert set(PAPERS) == ({*BUILT_IN, *PEERS} - free)
    provenance = done.provenance | {"algorithms": {name: name for name in PAPERS}}
    entries = fields_of(bibtex_of(provenance, []))
    assert {key for keys in PAPERS.values() for key in keys} == set(entries) - {"fastpart"}
    for key, entry in entries.items():
        where = {"article": "journal", "inproceedings": "booktitle", "misc": "note"}[entry["kind"]]
        assert {"author", "title", where} <= set(entry), key
    assert {"hep", "sigma"} <= set(
        fields_of(bibtex_of(done.provenance | {"algorithms": {"p": "partition"}}, ["p"]))
    )


def test_the_build_is_that_of_the_installed_files(done, tmp_path):
    build = done.provenance["build"]
    assert re.fullmatch(r"[0-9a-f]{32}", build["digest"])
    assert build["commit"] is None or re.fullmatch(r"[0-9a-f]{40}\+?", build["commit"])
    done.save(tmp_path / "c.json")
    assert fp.open_comparison(tmp_path / "c.json") == done
    content = json.loads((tmp_path / "c.json").read_text())
    del content["provenance"]["algorithms"]["ours"]
    (tmp_path / "c.json").write_text(json.dumps(content))
    with pytest.raises(fp.errors.GraphFormatError, match="a row of an algorithm that is not listed"):
        fp.open_comparison(tmp_path / "c.json")


# The guide.


def test_six_lines_of_the_guide_make_a_table_and_figures(tmp_path, monkeypatch, capsys):
    section = GUIDE.read_text().split("## Publish a table and a figure")[1].split("\n## ")[0]
    (code,) = re.findall(r"^```python\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    head, *lines = [line for line in code.splitlines() if line]
    assert (head, len(lines)) == ("import fastpart as fp", 6)
    monkeypatch.chdir(tmp_path)
    names = {"cora": GRAPHS["Cora"], "computers": GRAPHS["Computers"], "mine": mine}
    exec(code, names)
    assert {file.name for file in tmp_path.iterdir()} == {
        "table.tex",
        "cut.pdf",
        "profile.pdf",
        "references.bib",
    }
    assert r"\textbf" in (tmp_path / "table.tex").read_text()
    for name in ("cut.pdf", "profile.pdf"):
        content = (tmp_path / name).read_bytes()
        width = float(re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", content)[1])
        assert width == pytest.approx(3.33 * 72)
        assert b"/Type3" not in content
    assert "sigma" in fields_of((tmp_path / "references.bib").read_text())
    assert "multilevel" in capsys.readouterr().out
    assert math.isclose(names["done"].provenance["balance"], 1.03)
