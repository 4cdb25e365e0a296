"""info(): what a graph is; and what importing the package needs."""

import json
import pickle
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
import oracles
from fastpart.core.protocols import Table, shortened, side_by_side
from soaked import examples
from strategies import edge_lists, raw


@examples(15)
@given(edge_lists(12, 40))
def test_facts_equal_the_definitions(graph):
    n, edges = graph
    opened = fp.open_graph(edges, num_vertices=n, directedness="directed")
    degrees = oracles.degrees(n, edges.tolist())
    facts = fp.info(opened)
    assert list(facts) == [
        "n",
        "m",
        "loops",
        "directedness",
        "isolated",
        "mean_degree",
        "degrees",
        "checksum",
        "k",
        "memory",
        "plans",
    ]
    assert (facts["n"], facts["m"], facts["directedness"]) == (n, len(edges), "directed")
    assert facts["loops"] == (edges[:, 0] == edges[:, 1]).sum()
    assert facts["isolated"] == degrees.count(0)
    assert facts["mean_degree"] == pytest.approx(sum(degrees) / n if n else 0, abs=5e-4)
    assert list(facts["degrees"]) == ["min", "25%", "50%", "75%", "90%", "99%", "99.9%", "max"]
    quantiles = list(facts["degrees"].values())
    assert quantiles == sorted(quantiles)
    assert (quantiles[0], quantiles[-1]) == (min(degrees, default=0), max(degrees, default=0))
    assert set(quantiles) <= {*degrees, *([0] if not n else [])}
    assert (facts["loops"], facts["checksum"]) == opened.identify()
    assert json.loads(json.dumps(facts)) == facts


def test_checksum_does_not_depend_on_the_container_but_on_order_and_direction(tmp_path):
    edges = np.array([[0, 1], [2, 1], [2, 2]], np.uint32)
    checksum = fp.info(edges)["checksum"]
    assert len(checksum) == 32
    assert int(checksum, 16)
    assert fp.info(raw(tmp_path / "g.bin", edges))["checksum"] == checksum
    assert fp.info(edges.astype(">i8"))["checksum"] == checksum
    for other in (edges[::-1], edges[:, ::-1], edges[:2]):
        assert fp.info(other)["checksum"] != checksum


def test_memory_is_what_the_partitioner_asks_for():
    edges = np.array([[0, 999_999]], np.uint32)
    needed = fp.info(edges)["memory"]["spring"]
    assert 32 * 10**6 + (8 << 20) < needed < 33 * 10**6 + (8 << 20)
    with pytest.raises(fp.errors.MemoryBudgetError, match=r"needs 40\.4 MB"):
        fp.spring(edges, k=64, memory_limit=needed - 1)
    assert len(fp.spring(edges, k=64, memory_limit=needed)) == 10**6
    assert fp.info(edges, k=8)["memory"]["refine"] == 72 * 10**6 + 128 * 8


def test_plans_say_what_each_memory_limit_leads_to(tmp_path, caplog):
    graph = fp.generate.rmat(tmp_path / "g.bin", n=1 << 16, m=1_000_000)
    plans = fp.info(graph, k=8)["plans"]
    assert [plan["memory"] for plan in plans] == sorted({plan["memory"] for plan in plans})
    assert {"one_level", "two_levels", "memory"} == {plan["path"] for plan in plans}
    assert plans[-1]["path"] == plans[-1]["adjacency"] == "memory"
    assert pl.DataFrame(plans)["files"][-1] == 0
    for plan in plans:
        seconds = list(plan["seconds"].values())
        assert list(plan["seconds"]) == ["cached", "2 GB/s", "0.5 GB/s", "0.2 GB/s"]
        assert seconds == sorted(seconds)
        assert seconds[3] - seconds[0] == pytest.approx((plan["read"] + plan["written"]) / 0.2e9, abs=2e-3)
        caplog.clear()
        with caplog.at_level("INFO", "fastpart"):
            made = fp.multilevel(fp.open_graph(tmp_path / "g.bin"), 8, memory_limit=plan["memory"])
        assert (made.parameters["path"], made.parameters["sample"]) == (plan["path"], plan["sample"])
        assert f'path="{plan["path"]}"' in caplog.text or not plan["files"]
        assert made.costs["files"] <= plan["files"]
        assert made.costs["seconds"] > 0
        assert made.costs["read"] is None or made.costs["read"] >= 0
        del made  # and its graph, whose adjacency may lie in files
    assert fp.info(graph, k=512)["memory"]["spring"] > fp.info(graph, k=8)["memory"]["spring"]
    with pytest.raises(fp.errors.ParameterError, match="k"):
        fp.info(graph, k=0)


@examples(10)
@given(
    st.integers(1, 2000),
    st.integers(0, 10_000),
    st.integers(1, 100),
    st.lists(st.floats(0.9, 1.1), max_size=3),
)
def test_a_larger_memory_limit_never_leads_to_a_worse_plan(n, m, k, factors):
    k = min(k, n)  # more parts would be empty, with a warning
    edges = np.random.default_rng(m).integers(0, n, (m, 2), np.uint32)
    plans = fp.info(fp.open_graph(edges, num_vertices=n), k=k, threads=2)["plans"]
    order = ["memory", "one_level", "two_levels"]
    ranks = [(order.index(plan["path"]), -(plan["sample"] or 1)) for plan in plans]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[-1] == (0, -1)
    # The run does what is said, at the limits of the list and beside them.
    limits = {int(plan["memory"] * factor) for plan in plans for factor in (1, *factors)}
    for limit in sorted(limit for limit in limits if limit >= plans[0]["memory"]):
        said = [plan for plan in plans if plan["memory"] <= limit][-1]
        fresh = fp.open_graph(edges, num_vertices=n)
        made = fp.multilevel(fresh, k, effort="quick", memory_limit=limit, threads=2).parameters
        assert (made["path"], made["sample"]) == (said["path"], said["sample"])


def test_quantiles_are_degrees_that_occur():
    star = np.array([[0, v] for v in range(1, 1001)])
    quantiles = fp.info(star)["degrees"]
    assert quantiles == dict.fromkeys(quantiles, 1) | {"max": 1000}


def tables_of(page):
    """Return the number of columns of each row of the tables of a page."""
    return [
        [len(re.findall("<t[hd]>", row)) for row in re.findall("<tr>.*?</tr>", table)]
        for table in re.findall("<table>.*?</table>", page)
    ]


def test_facts_print_as_tables_that_fit():
    edges = np.concatenate([[[0, v] for v in range(1, 1001)], [[5, 5]]])
    facts = fp.info(fp.open_graph(edges, num_vertices=1005), k=8)
    text = str(facts)
    assert repr(facts) == text
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith(
        "vertices      1,005, of which 4 isolated\nedges         1,001, of which 1 loops\n"
    )
    assert f"checksum      {facts['checksum']}\n" in text
    assert re.search(r"min  25% .* max\n  0    1    1 .* 1,000\n", text)
    assert "memory, k = 8\n" in text
    for name, needed in facts["memory"].items():
        unit, digits = (1e6, "MB") if needed >= 1e6 else (1e3, "kB")
        assert re.search(rf"\b{name} +{needed / unit:.1f} {digits}\b", text)
    for plan in facts["plans"]:
        assert re.search(rf"^ +[\d.]+ [kM]B  {plan['path']} .* {plan['seconds']['cached']:.3g}", text, re.M)


def test_facts_are_a_dict_whose_page_has_narrow_tables():
    facts = fp.info(np.array([[0, 1], [1, 2]]))
    for rows in tables_of(facts._repr_html_()):
        assert len(set(rows)) == 1
        assert 1 < rows[0] <= 8
    assert pickle.loads(pickle.dumps(facts)) == facts == dict(facts)


def test_tables_align_and_shorten():
    assert str(Table("", ("name", "n"), [("a", "1"), ("bcdef", "1,000")])) == (
        "name       n\na          1\nbcdef  1,000"
    )
    long = shortened([(str(row), "1") for row in range(50)])
    assert str(Table("title", ("name", "n"), long)).splitlines()[-2:] == ["39           1", "... 10 more"]
    assert str(side_by_side("", ("a", "n"), [("x", "1"), ("y", "2"), ("z", "3")], 2)) == (
        "a  n  a  n\nx  1  z  3\ny  2"
    )


def test_wide_tables_become_narrow_ones_in_notebooks():
    evaluation = fp.evaluate(np.array([[0, 1], [1, 2]]), fp.VertexPartition([0, 1, 1], k=2))
    assert evaluation.summary.width > 8
    comparison = fp.compare(np.array([[0, 1], [1, 2]]), k=2, algorithms=["spring", "dbh"])
    for page in (evaluation._repr_html_(), comparison._repr_html_()):
        assert max(max(rows) for rows in tables_of(page)) <= 8
        for name in ("cut_ratio", "halo_rf"):
            assert f"<th>{name}</th>" in page


# 49
def test_import_needs_none_of_the_extras():
    code = (
        "import sys\n"
        "extras = ('torch', 'dgl', 'pandas', 'scipy', 'torch_geometric')\n"
        "sys.modules.update(dict.fromkeys(extras))\n"
        "import fastpart as fp, numpy as np\n"
        "graph = np.array([[0, 1], [1, 2]])\n"
        "evaluation = fp.evaluate(graph, fp.spring(graph, k=2))\n"
        "evaluation.plot()\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False
    )
    assert (child.returncode, child.stderr) == (0, "")


# 49
def test_import_loads_none_of_the_extras():
    code = (
        "import sys, fastpart\n"
        "print(sorted({'torch', 'dgl', 'jinja2', 'matplotlib', 'pandas', 'scipy'} & set(sys.modules)))"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert child.stdout == "[]\n"


def test_every_public_name_is_there_and_documented():
    for name in fp.__all__:
        assert getattr(fp, name).__doc__
    assert fp.__version__.count(".") == 2


# Which builtin catches what.
@pytest.mark.parametrize(
    ("error", "bases"),
    [
        (fp.errors.GraphFormatError, (fp.FastpartError, ValueError)),
        (fp.errors.ParameterError, (fp.FastpartError, ValueError)),
        (fp.errors.CapacityError, (fp.FastpartError, ValueError)),
        (fp.errors.MemoryBudgetError, (fp.FastpartError, MemoryError)),
        (fp.errors.EdgeFileChangedError, (fp.FastpartError, OSError)),
        (fp.errors.InternalError, (RuntimeError,)),
        (fp.errors.CapacityWarning, (UserWarning,)),
    ],
)
def test_families_of_errors(error, bases):
    assert all(issubclass(error, base) for base in bases)
    assert str(error("why")) == "why"


def test_parameters_of_a_training_are_in_train():
    with pytest.raises(
        TypeError, match=r"info\(\) has no parameter 'fanouts': .* Pass train={'fanouts': ...}"
    ):
        fp.info(np.array([[0, 1]]), fanouts=[2])
