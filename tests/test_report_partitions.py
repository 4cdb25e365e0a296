"""Plots of single partitions."""

import re
import subprocess
import sys

import numpy as np
import pytest

import fastpart as fp
from fastpart.report import partitions

PATH = np.array([[0, 1], [1, 2], [2, 3]])


def heights(axes):
    return [[bar.get_height() for bar in bars] for bars in axes.containers]


def test_a_vertex_partition_with_its_graph():
    p = fp.spring(PATH, 2)
    left, right, _ = p.plot().subfigs[0].axes
    evaluation = p.evaluate()
    assert heights(left) == [evaluation.parts[name].to_list() for name in ("vertices", "halo")]
    assert [line.get_ydata()[0] for line in left.lines] == [p.cap]
    (image,) = right.images
    assert image.get_array().filled(0).tolist() == evaluation.cut_matrix.tolist()


def test_the_colour_bar_has_several_ticks():
    graph = np.random.default_rng(0).integers(0, 300, (2000, 2))
    figure = fp.spring(graph, 4).plot()
    figure.draw_without_rendering()
    (bar,) = [axes for axes in figure.subfigs[0].axes if axes.get_label() == "<colorbar>"]
    low, high = bar.get_ylim()
    shown = [tick.get_text() for tick in bar.get_yticklabels() if low <= tick.get_position()[1] <= high]
    assert len([text for text in shown if text]) >= 3


def test_a_notebook_shows_each_number_of_a_part_once():
    graph = np.random.default_rng(0).integers(0, 300, (2000, 2))
    p = fp.multilevel(graph, 4, volume_balance=1.2)
    page = p.evaluate()._repr_html_()
    head = re.findall("<thead>.*?</thead>", page)
    assert len(head) == 1  # all columns are in one table
    assert f"<p>multilevel: parts of vertices, cap {p.cap}, volume_cap {p.volume_cap:,}</p>" in page
    assert re.findall("<th>(.*?)</th>", head[0])[-2:] == ["components", "volume_load"]


def test_an_edge_partition_with_its_graph():
    p = fp.algorithms.hdrf(PATH, 2)
    left, right = p.plot().subfigs[0].axes
    assert heights(left) == [p.loads.tolist()]
    assert heights(right) == [p.evaluate().parts["replicas"].to_list()]


def drawn(p):
    """Return the lines of a drawn graph, as (colour, number of edges), and its legend."""
    (axes,) = p.plot().subfigs[1].axes
    lines = [(tuple(line.get_color()), len(line.get_xdata()) // 3) for line in axes.lines]
    return lines, [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_small_graph_is_drawn_in_the_colours_of_its_parts():
    graph = fp.open_graph(PATH)
    p = fp.spring(graph, 2)
    lines, legend = drawn(p)
    u, v = p.assignment[PATH.T]
    assert [count for _, count in lines] == [np.sum(u != v), *np.bincount(u[u == v], minlength=2)]
    assert len({colour for colour, _ in lines}) == 3
    assert legend == ["part 0", "part 1"]
    of_edges, legend = drawn(fp.algorithms.hdrf(graph, 2))
    assert [count for _, count in of_edges] == fp.algorithms.hdrf(graph, 2).loads.tolist()
    assert legend == ["part 0", "part 1"]


def test_of_many_edges_some_are_drawn(monkeypatch):
    monkeypatch.setattr(partitions, "MOST_LINES", 2)
    assert sum(count for _, count in drawn(fp.algorithms.hdrf(PATH, 2))[0]) == 2
    for most in ((3, 3, 2), (4, 2, 2), (4, 3, 1)):
        monkeypatch.setattr(partitions, "MOST_DRAWN", most)
        assert len(fp.algorithms.hdrf(PATH, 2).plot().subfigs) == 1


@pytest.mark.parametrize("kind", [fp.VertexPartition, fp.EdgePartition])
def test_without_a_graph_the_sizes_are_there(kind):
    (place,) = kind([0, 1, 1], k=2).plot().subfigs
    (axes,) = place.axes
    assert heights(axes) == [[1, 2]]
    assert place.get_suptitle() == "user, k = 2"


@pytest.mark.parametrize("k", [200, 5000])
def test_many_parts(k, tmp_path):
    graph = np.array([[i, i + 1] for i in range(k)])
    p = fp.spring(graph, k)
    (place,) = p.plot(tmp_path / "p.svg").subfigs
    assert len(place.axes) == (3 if k <= 4096 else 1)
    assert place.axes[0].patches[0].get_data().values.tolist() == p.loads.tolist()


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_draw_writes_the_same_file_in_every_run(tmp_path, suffix):
    rows = {"user": fp.evaluate(PATH, [0, 0, 1, 1]), "edges": fp.algorithms.hdrf(PATH, 2).evaluate()}
    files = [tmp_path / f"{name}{suffix}" for name in ("a", "b")]
    assert [len(fp.report.draw(rows, file).subfigs) for file in files] == [2, 2]
    magic = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert files[0].read_bytes().startswith(magic[suffix])
    assert files[0].read_bytes() == files[1].read_bytes()


def test_next_to_nothing_is_drawn(tmp_path):
    none = fp.open_graph(np.zeros((0, 2), np.uint32), num_vertices=0)
    for p in (fp.spring(none, 1), fp.algorithms.hdrf(none, 2)):
        p.plot(tmp_path / "p.svg")
    fp.report.draw({}, tmp_path / "p.svg")
    for wrong in (fp.VertexPartition([0], 1), {"parts": fp.VertexPartition([0], 1)}):
        with pytest.raises(TypeError, match="evaluations: expected evaluations by the title of their row"):
            fp.report.draw(wrong)


def test_refusals_leave_nothing(tmp_path):
    for plot in (
        fp.spring(PATH, 2).plot,
        fp.VertexPartition([0], 1).plot,
        lambda out: fp.report.draw({}, out),
    ):
        with pytest.raises(
            fp.errors.ParameterError, match=r"unknown suffix '\.gif' of .* Use \.svg, \.png or \.pdf"
        ):
            plot(tmp_path / "parts.gif")
        with pytest.raises(FileNotFoundError):
            plot(tmp_path / "absent" / "parts.svg")
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_not_a_formula(tmp_path):
    evaluation = fp.evaluate(PATH, [0, 0, 1, 1])
    fp.report.draw({"$\\frac{$ <b>\x00\ud800\N{CJK UNIFIED IDEOGRAPH-5B57}": evaluation}, tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert re.search(r">\$\\frac\{\$ &lt;b&gt;\\x00\?字: cut", text)


def test_a_notebook_shows_figures_and_nothing_of_the_user_changes():
    code = """
import sys, matplotlib
matplotlib.rcParams["font.size"] = 33
import fastpart as fp
figure = fp.VertexPartition([0, 1, 1], k=2).plot()
data, size = figure._repr_png_()
assert data.startswith(b"\\x89PNG") and size["width"] > 2 * size["height"], size
assert matplotlib.rcParams["font.size"] == 33 and matplotlib.rcParams["svg.fonttype"] == "path"
assert "matplotlib.pyplot" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
